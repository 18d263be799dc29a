/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Exit codes and control-channel lines shared by the runner and the processes that run rows. */
#ifndef AFR_NET_MAIN_H
#define AFR_NET_MAIN_H

#define EXIT_FAIL	1
#define EXIT_SKIP	4	/* as in kselftest */

/* A control-channel line that begins with one of these ends the row on the side that reads it. */
#define LINE_FAIL	"FAIL"
#define LINE_SKIP	"SKIP"

#endif /* AFR_NET_MAIN_H */
