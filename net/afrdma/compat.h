/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Differences between kernel versions. The rest of the module is written for 7.2, with two
 * exceptions: sock.c and sendmsg.c test AFR_HAVE_SPLICE_EOF, and some code is only for older
 * kernels, namely code that runs if AFR_CUSTOM_SOCKOPT is false, or whose comment says so. The
 * Makefile searches the headers of the kernel for differences and defines AFR_HAVE_* accordingly.
 * "#ifndef NAME" is right only for what is a macro in every kernel that has it: an enum constant
 * would be redefined without a warning.
 */
#ifndef AFR_COMPAT_H
#define AFR_COMPAT_H

#include <linux/fs.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/sysctl.h>
#include <linux/timer.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/sock.h>

#ifdef AFR_HAVE_LINUX_UNALIGNED
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

/*
 * proto_ops.accept: write
 *	static int f(struct socket *sock, struct socket *newsock, AFR_ACCEPT_ARGS)
 * and use AFR_ACCEPT_FLAGS for the flags.
 */
#ifdef AFR_HAVE_ACCEPT_ARG
#define AFR_ACCEPT_ARGS		struct proto_accept_arg *arg
#define AFR_ACCEPT_FLAGS	((arg)->flags)
#else
#define AFR_ACCEPT_ARGS		int accept_flags, bool accept_kern
#define AFR_ACCEPT_FLAGS	(accept_flags)
#endif

/*
 * opt_child_init, the last parameter of icsk_af_ops->syn_recv_sock(), including the comma before
 * it; empty if the kernel does not have it.
 */
#ifdef AFR_HAVE_CHILD_INIT
#define AFR_CHILD_INIT_PARAM	, void (*init)(struct sock *newsk, const struct sock *sk)
#define AFR_CHILD_INIT_ARG	, init
#else
#define AFR_CHILD_INIT_PARAM
#define AFR_CHILD_INIT_ARG
#endif

/*
 * rdma_restrict_node_type(), to listen on no iWARP device; older kernels listen on all devices.
 * The replacement is a macro, so that this file does not need the types of rdma_cm.h.
 */
#ifdef AFR_HAVE_RESTRICT_NODE_TYPE
#define AFR_CM_RESTRICTS	true
#else
#define AFR_CM_RESTRICTS	false
#define rdma_restrict_node_type(id, type)	(-EOPNOTSUPP)
#endif

/*
 * Can rxe be used in every network namespace? In older kernels it has sockets only in the initial
 * one. The headers do not show where it has sockets. But the kernel version that added sockets in
 * the other namespaces also added dellink() to rdma_netlink.h, where the Makefile looks for it.
 */
#ifdef AFR_HAVE_RXE_NETNS
#define AFR_RXE_NETNS	true
#else
#define AFR_RXE_NETNS	false
#endif

/*
 * Only for compilation: on kernels without this function, AFR_RXE_NETNS is false, and so serves()
 * of device.c never calls port_is_in(), the only user.
 */
#ifndef AFR_HAVE_DEVICE_NETDEV
#define ib_device_get_netdev(ib, port) NULL
#endif

/*
 * The flag by which a socket asks for setsockopt(SOL_SOCKET) calls. Older kernels pass these calls
 * to no protocol but MPTCP and do not define the flag; for them it is an unused bit of
 * socket.flags.
 */
#ifdef AFR_HAVE_CUSTOM_SOCKOPT
#define AFR_CUSTOM_SOCKOPT	true
#else
#define AFR_CUSTOM_SOCKOPT	false
#define SOCK_CUSTOM_SOCKOPT	(BITS_PER_LONG - 1)
#endif

/* Older headers may lack this flag; with 0, afr_sendmsg() clears nothing. */
#ifndef AFR_HAVE_SPLICE_PAGES
#define MSG_SPLICE_PAGES 0
#endif

/* A control message that names the memory of a device from which TCP shall send. */
#ifndef SCM_DEVMEM_DMABUF
#define SCM_DEVMEM_DMABUF 79
#endif

/* The workqueue of the kernel for work that need not run on the processor that queues it. */
#ifndef AFR_HAVE_DFL_WQ
#define system_dfl_wq system_unbound_wq
#endif

/* A zeroed object of the type of @obj, or NULL. */
#ifndef kzalloc_obj
#define kzalloc_obj(obj) kzalloc(sizeof(obj), GFP_KERNEL)
#endif

/* For older kernels, @table must have an empty entry behind its @n entries, which marks its end. */
#ifndef AFR_HAVE_SYSCTL_SZ
#define register_net_sysctl_sz(net, path, table, n) register_net_sysctl(net, path, table)
#endif

/* The type of the address in proto_ops.bind and .connect; its length is another argument. */
#ifndef AFR_HAVE_SOCKADDR_UNSIZED
#define sockaddr_unsized sockaddr
#endif

#ifndef AFR_HAVE_SK_UID
#define sk_uid(sk) READ_ONCE((sk)->sk_uid)
#endif

#ifndef timer_container_of
#define timer_container_of from_timer
#endif

#ifndef AFR_HAVE_TIMER_DELETE
#define timer_delete_sync del_timer_sync
#endif

#ifndef AFR_HAVE_ZEROCOPY_DEVMEM
#define msg_zerocopy_realloc(sk, size, uarg, devmem) msg_zerocopy_realloc(sk, size, uarg)
#endif

/* Where IPv6 can be a module, its functions are called through a table. */
#include <net/ipv6.h>
#ifdef AFR_HAVE_IPV6_STUB
#include <net/ipv6_stubs.h>
#define ip6_dst_lookup_flow ipv6_stub->ipv6_dst_lookup_flow
#endif

#ifndef AFR_HAVE_PUT_UINT
/* Adds a number as an attribute of 4 bytes if it fits, else of 8 bytes. */
static inline int nla_put_uint(struct sk_buff *skb, int type, u64 value)
{
	if (value <= U32_MAX)
		return nla_put_u32(skb, type, value);
	return nla_put(skb, type, sizeof(value), &value);
}
#endif

#endif /* AFR_COMPAT_H */
