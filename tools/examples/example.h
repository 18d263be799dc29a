/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Functions that the examples share. Only report() makes a call that TCP sockets reject. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/af_rdma.h>

#define BLOCK	65536	/* bytes per block */

static inline void send_all(int fd, const char *from, size_t len)
{
	while (len) {
		ssize_t done = send(fd, from, len, MSG_NOSIGNAL);

		if (done < 0)
			err(1, "send");
		from += done;
		len -= done;
	}
}

/*
 * Prints the byte counters of both directions, and the number of the reason why the connection is
 * not on RDMA, or 0 if there is none. "smctl reasons" lists all reasons.
 */
static inline void report(int fd)
{
	struct afrdma_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len))
		err(1, "AFRDMA_INFO");
	printf("sent by RDMA %llu, by TCP %llu; received by RDMA %llu, by TCP %llu; reason %u\n",
	       (unsigned long long)info.tx_bytes_rdma, (unsigned long long)info.tx_bytes_tcp,
	       (unsigned long long)info.rx_bytes_rdma, (unsigned long long)info.rx_bytes_tcp,
	       info.reason);
	fflush(stdout);
}

/* Client: sends blocks, and checks that each comes back. */
static inline void exchange(int fd, long blocks)
{
	static char out[BLOCK], in[BLOCK];

	for (; blocks > 0; blocks--) {
		memset(out, blocks, sizeof(out));
		send_all(fd, out, sizeof(out));
		if (recv(fd, in, sizeof(in), MSG_WAITALL) != sizeof(in))
			err(1, "recv");
		if (memcmp(in, out, sizeof(in)))
			errx(1, "something else came back");
	}
	report(fd);
	close(fd);
}

/* Server: sends back what it receives. */
static inline void serve(int fd)
{
	static char buf[BLOCK];
	ssize_t len;

	while ((len = recv(fd, buf, sizeof(buf), 0)) > 0)
		send_all(fd, buf, len);
	if (len < 0)
		err(1, "recv");
	report(fd);
	close(fd);
}

#endif /* EXAMPLE_H */
