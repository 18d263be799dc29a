/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * AF_RDMA: a socket family that is TCP at the socket calls and RDMA on the wire
 * whenever both ends and the fabric between them allow it.
 */
#ifndef _UAPI_LINUX_AF_RDMA_H
#define _UAPI_LINUX_AF_RDMA_H

#include <linux/types.h>

/*
 * The kernel refuses family numbers it does not know (AF_MAX), so an
 * out-of-tree family has to use a free one. 27 is AF_IB: an address family of
 * rdma_cm for which no sockets are ever registered. The module parameter
 * "family" changes it.
 */
#ifndef AF_RDMA
#define AF_RDMA	27
#define PF_RDMA	AF_RDMA
#endif

/* socket(AF_RDMA, SOCK_STREAM, protocol): which addresses the socket speaks. */
#define AFRDMA_PROTO_INET	0	/* struct sockaddr_in (IPPROTO_TCP is taken too) */
#define AFRDMA_PROTO_INET6	1	/* struct sockaddr_in6 */

/* The same by the family of an address (AF_INET, AF_INET6), such as ai_family of getaddrinfo(). */
#define AFRDMA_PROTOCOL(family) \
	((family) == AF_INET6 ? AFRDMA_PROTO_INET6 : AFRDMA_PROTO_INET)

/* setsockopt/getsockopt level of this family. */
#define SOL_AFRDMA	427

/* Options of that level. */
#define AFRDMA_INFO		1	/* struct afrdma_info, read only */
#define AFRDMA_RDMA		2	/* int: enum afrdma_rdma */
#define AFRDMA_SNDRING		3	/* int: bytes of the send ring, before connect and listen */
#define AFRDMA_RCVRING		4	/* int: the same of the receive ring */
#define AFRDMA_BUSY_POLL	5	/* int: microseconds that recv() looks before it sleeps */

/* What the program wants. It can be changed at any time, and is inherited by accept(). */
enum afrdma_rdma {
	AFRDMA_RDMA_AUTO,	/* the sysctls decide when a connection deserves RDMA */
	AFRDMA_RDMA_NEVER,	/* TCP; said before connect or listen, plain TCP on the wire */
	AFRDMA_RDMA_ALWAYS,	/* RDMA as soon as there is a connection, if we are the client */
};

/* How the connection speaks on its inner TCP connection. */
enum afrdma_mode {
	AFRDMA_MODE_NONE,	/* not connected (yet), or listening */
	AFRDMA_MODE_UNDECIDED,	/* connected, waiting to learn what the peer speaks */
	AFRDMA_MODE_PLAIN,	/* the peer is a TCP program: this socket is TCP */
	AFRDMA_MODE_HALF,	/* one direction framed, one raw: stays on TCP */
	AFRDMA_MODE_FRAMED,	/* both ends speak AF_RDMA: RDMA is possible */
};

/* Where the bytes of one direction travel now. */
enum afrdma_path {
	AFRDMA_PATH_TCP,	/* on the inner TCP connection */
	AFRDMA_PATH_RDMA,	/* RDMA writes into the peer's ring */
	AFRDMA_PATH_WAIT,	/* link lost: waiting to learn where to go on */
};

struct afrdma_info {
	__u32	mode;		/* enum afrdma_mode */
	__u32	tx_path;	/* enum afrdma_path */
	__u32	rx_path;	/* enum afrdma_path */
	__u32	reason;		/* why not RDMA: number from the reason list, 0 = none */
	__u64	tx_bytes_tcp;	/* application bytes sent over TCP */
	__u64	tx_bytes_rdma;	/* application bytes sent by RDMA writes */
	__u64	rx_bytes_tcp;	/* application bytes received over TCP */
	__u64	rx_bytes_rdma;	/* application bytes received by RDMA writes */
	__u64	moves;		/* times that sending went onto a link, or left one */
	__u64	link;		/* link id, 0 = none */
	__u32	tx_ring;	/* send ring size in bytes */
	__u32	rx_ring;	/* receive ring size in bytes */
	__u32	reason_peer;	/* 1: the peer has told this reason, and it is about that end */
	__u32	server;		/* 1: accepted, 0: connected, or not yet */
};

#endif /* _UAPI_LINUX_AF_RDMA_H */
