/* SPDX-License-Identifier: GPL-2.0 */
/* Conventions between the runner and the processes of rows. */
#ifndef AFR_NET_MAIN_H
#define AFR_NET_MAIN_H

#define EXIT_FAIL	1
#define EXIT_SKIP	4	/* as in kselftest */

/* First words of lines on the control channel that end the row of the side that reads them. */
#define LINE_FAIL	"FAIL"
#define LINE_SKIP	"SKIP"

#endif /* AFR_NET_MAIN_H */
