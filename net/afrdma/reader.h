/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames in, and the work of a connection: what decides runs here, one step after
 * the other, on one CPU at a time.
 */
#ifndef AFR_READER_H
#define AFR_READER_H

/* Tell conn.c what the work is. */
void afr_reader_init(void);

#endif /* AFR_READER_H */
