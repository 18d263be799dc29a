/* SPDX-License-Identifier: GPL-2.0 */
/* Between the runner and the process of a row. */
#ifndef AFR_NET_MAIN_H
#define AFR_NET_MAIN_H

#define EXIT_FAIL	1
#define EXIT_SKIP	4	/* as in kselftest */

/* First words on the control channel that end a row wherever they are read. */
#define LINE_FAIL	"FAIL"
#define LINE_SKIP	"SKIP"

#endif /* AFR_NET_MAIN_H */
