/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * AF_RDMA: a socket family with the socket calls of TCP. Every connection begins on TCP. RDMA can
 * take over its bytes if both ends use AF_RDMA and a path for RDMA exists.
 */
#ifndef _UAPI_LINUX_AF_RDMA_H
#define _UAPI_LINUX_AF_RDMA_H

#include <linux/types.h>

/* Version of the module, the tools and the manual pages. The wire format has its own version. */
#define AFRDMA_VERSION	"0.9"

/*
 * The kernel refuses family numbers from AF_MAX on, so an out-of-tree family has to use a free one.
 * 27 is AF_IB, an address family of rdma_cm, for which no module registers sockets. The module
 * parameter "family" selects another number.
 */
#ifndef AF_RDMA
#define AF_RDMA	27
#define PF_RDMA	AF_RDMA
#endif

/* socket(AF_RDMA, SOCK_STREAM, protocol): the protocol selects the address family. */
#define AFRDMA_PROTO_INET	0	/* struct sockaddr_in; IPPROTO_TCP means the same */
#define AFRDMA_PROTO_INET6	1	/* struct sockaddr_in6 */

/* The protocol to pass to socket() for addresses of @family, AF_INET or AF_INET6. */
#define AFRDMA_PROTOCOL(family) \
	((family) == AF_INET6 ? AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET)

/* Level of the socket options of this family. */
#define SOL_AFRDMA	427

/* Options of level SOL_AFRDMA. */
#define AFRDMA_INFO		1	/* struct afrdma_info, read only */
#define AFRDMA_RDMA		2	/* int: enum afrdma_rdma */
/* int: sizes of the rings in bytes. Set them before connect(), or on the listener. */
#define AFRDMA_SNDRING		3
#define AFRDMA_RCVRING		4
#define AFRDMA_BUSY_POLL	5	/* int: microseconds that recv() polls before it sleeps */

/* Values of the option AFRDMA_RDMA, which can be set at any time; accepted sockets inherit it. */
enum afrdma_rdma {
	AFRDMA_RDMA_AUTO,	/* RDMA after upgrade_bytes or upgrade_msgs (sysctls) */
	/* No RDMA. If it is set before connect() or listen(), AF_RDMA is not even negotiated. */
	AFRDMA_RDMA_NEVER,
	AFRDMA_RDMA_ALWAYS,	/* client: RDMA as soon as the connection is established */
};

/* Modes of a connection. */
enum afrdma_mode {
	AFRDMA_MODE_NONE,	/* neither connecting nor connected; also a listener */
	AFRDMA_MODE_UNDECIDED,	/* the mode of at least one direction is not settled yet */
	AFRDMA_MODE_PLAIN,	/* fallback to TCP: the socket behaves as a TCP socket */
	AFRDMA_MODE_HALF,	/* one-way: one direction framed, one in fallback; stays on TCP */
	AFRDMA_MODE_FRAMED,	/* both directions framed: RDMA is possible */
};

/* The path of the bytes of one direction. */
enum afrdma_path {
	AFRDMA_PATH_TCP,	/* the TCP connection */
	AFRDMA_PATH_RDMA,	/* RDMA writes into the receiver's ring */
	/* tx_path only: the direction has left the link, and waits for RESUME or FINACK. */
	AFRDMA_PATH_WAIT,
};

struct afrdma_info {
	__u32	mode;		/* enum afrdma_mode */
	__u32	tx_path;	/* enum afrdma_path */
	__u32	rx_path;	/* enum afrdma_path */
	__u32	reason;		/* why not on RDMA: a number of "smctl reasons", 0 = none */
	__u64	tx_bytes_tcp;	/* application bytes sent by TCP */
	__u64	tx_bytes_rdma;	/* application bytes sent by RDMA writes */
	__u64	rx_bytes_tcp;	/* application bytes received by TCP */
	__u64	rx_bytes_rdma;	/* application bytes received by RDMA writes */
	__u64	moves;		/* times that the send direction moved to a link or back to TCP */
	__u64	link;		/* id of the link on which this end may send, 0 = none */
	__u32	tx_ring;	/* send ring size in bytes */
	__u32	rx_ring;	/* receive ring size in bytes */
	__u32	reason_peer;	/* 1: the peer sent the reason, which describes the peer's end */
	__u32	server;		/* 1: an accepted connection, 0: any other socket */
};

#endif /* _UAPI_LINUX_AF_RDMA_H */
