/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * What is supported, and how: one row for each socket option, message flag, ioctl and call that
 * programs rely on. The rules of sockopt.c, tests and Documentation/networking/afrdma-support.rst
 * are derived from this file.
 *
 * AFR_OPTION(level, NAME, RULE, on RDMA, framed on TCP, fallback, row of selftests/net, note)
 * The other macros are the same without level and rule. A cell is "yes" (as TCP), "no", or a few
 * words. Rules:
 *
 * PASS		set on the TCP socket, and if its level is SOL_SOCKET, on the AF_RDMA socket, too;
 *		but the options SO_*_REUSEPORT_*BPF only on the TCP socket
 * STORE	kept by the AF_RDMA socket; set on the TCP socket, too, unless that is framed
 * LATE		kept by the AF_RDMA socket; set on the TCP socket only in fallback mode, as it
 *		changes what reads and writes do, including those of the module
 * SHARE	set on the AF_RDMA socket, and the TCP socket uses the same object
 * REFUSE	EOPNOTSUPP: it would let the program interfere with the module's use of TCP
 * CORE		handled by the socket core, as for TCP
 * FAMILY	getsockopt() returns the value of this family
 *
 * An option without a row is CORE if its level is SOL_SOCKET, else unknown: ENOPROTOOPT, but
 * EOPNOTSUPP from getsockopt() with a level other than SOL_AFRDMA and those of TCP, IP and IPv6.
 * Before adding a row with PASS, check in TCP that the option does not change what the TCP socket's
 * reads return and its writes accept, and that getsockopt() does not write to user memory under the
 * socket lock. The rows option_hazards and option_hazards6 of selftests/net test the option of each
 * AFR_OPTION() whose rule is not REFUSE.
 */
#ifndef AFR_SUPPORT_H
#define AFR_SUPPORT_H

/* Options of newer kernels; an older one refuses them. */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS		44
#endif
#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US		45
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US	46
#endif

#define AFR_SUPPORT_OPTIONS \
	/* blocking calls */ \
	AFR_OPTION(SOL_SOCKET, SO_RCVLOWAT, STORE, \
		"up to a bound", "up to a bound", "yes", "rcvlowat", \
		"the bound is what both rings can hold; it holds for poll(), too") \
	AFR_OPTION(SOL_SOCKET, SO_RCVTIMEO_OLD, PASS, "yes", "yes", "yes", "rcvtimeo", \
		"SO_RCVTIMEO of programs") \
	AFR_OPTION(SOL_SOCKET, SO_RCVTIMEO_NEW, PASS, "yes", "yes", "yes", "rcvtimeo", "") \
	AFR_OPTION(SOL_SOCKET, SO_SNDTIMEO_OLD, PASS, "yes", "yes", "yes", "sndtimeo", \
		"SO_SNDTIMEO of programs") \
	AFR_OPTION(SOL_SOCKET, SO_SNDTIMEO_NEW, PASS, "yes", "yes", "yes", "sndtimeo", "") \
	AFR_OPTION(SOL_SOCKET, SO_LINGER, STORE, "yes", "yes", "yes", "linger", \
		"close() waits until the peer has received all bytes; 0 s resets the connection") \
	AFR_OPTION(SOL_SOCKET, SO_BUSY_POLL, LATE, "recv() only", "recv() only", "yes", \
		"busy_poll", "recv() polls the ring before it sleeps") \
	AFR_OPTION(SOL_SOCKET, SO_PEEK_OFF, LATE, "yes", "yes", "yes", "peek_off", \
		"EOPNOTSUPP on 6.1, as TCP there") \
	/* buffer space */ \
	AFR_OPTION(SOL_SOCKET, SO_SNDBUF, STORE, "send ring", "send ring", "yes", "info_rings", \
		"rounded up to a power of two, 16384 to ring_max, when framing begins") \
	AFR_OPTION(SOL_SOCKET, SO_SNDBUFFORCE, STORE, \
		"send ring", "send ring", "yes", "info_rings", "") \
	AFR_OPTION(SOL_SOCKET, SO_RCVBUF, STORE, \
		"receive ring", "receive ring", "yes", "info_rings", \
		"rounded up to a power of two, 16384 to ring_max, when framing begins") \
	AFR_OPTION(SOL_SOCKET, SO_RCVBUFFORCE, STORE, \
		"receive ring", "receive ring", "yes", "info_rings", "") \
	AFR_OPTION(SOL_SOCKET, SO_ZEROCOPY, PASS, "copies, notification says so", \
		"copies, notification says so", "yes", "zerocopy", \
		"the notification has SO_EE_CODE_ZEROCOPY_COPIED; EOPNOTSUPP on 6.1") \
	/* addresses and ports */ \
	AFR_OPTION(SOL_SOCKET, SO_REUSEADDR, PASS, "yes", "yes", "yes", "time_wait", "") \
	AFR_OPTION(SOL_SOCKET, SO_REUSEPORT, PASS, "yes", "yes", "yes", "reuseport", \
		"EOPNOTSUPP on 6.1, which allows it for known families only") \
	AFR_OPTION(SOL_SOCKET, SO_BINDTODEVICE, PASS, "yes", "yes", "yes", "bind_device", \
		"RDMA uses the device on the route of the TCP connection") \
	AFR_OPTION(SOL_SOCKET, SO_BINDTOIFINDEX, PASS, "yes", "yes", "yes", "bind_device", "") \
	AFR_OPTION(SOL_SOCKET, SO_DONTROUTE, PASS, \
		"TCP packets only", "yes", "yes", "option_table", "") \
	AFR_OPTION(SOL_SOCKET, SO_BROADCAST, CORE, "yes", "yes", "yes", "option_table", \
		"without meaning for a stream, as with TCP") \
	/* packets */ \
	AFR_OPTION(SOL_SOCKET, SO_MARK, PASS, "TCP packets only", "yes", "yes", "option_table", \
		"") \
	AFR_OPTION(SOL_SOCKET, SO_PRIORITY, PASS, \
		"TCP packets only", "yes", "yes", "option_table", "") \
	AFR_OPTION(SOL_SOCKET, SO_MAX_PACING_RATE, PASS, \
		"TCP packets only", "yes", "yes", "pacing", "") \
	AFR_OPTION(SOL_SOCKET, SO_TIMESTAMP_OLD, LATE, "no", "no", "yes", "timestamp", \
		"SO_TIMESTAMP of programs; stored, but nothing is time-stamped") \
	AFR_OPTION(SOL_SOCKET, SO_TIMESTAMP_NEW, LATE, "no", "no", "yes", "timestamp", "") \
	AFR_OPTION(SOL_SOCKET, SO_TIMESTAMPNS_OLD, LATE, "no", "no", "yes", "timestamp", "") \
	AFR_OPTION(SOL_SOCKET, SO_TIMESTAMPNS_NEW, LATE, "no", "no", "yes", "timestamp", "") \
	AFR_OPTION(SOL_SOCKET, SO_TIMESTAMPING_OLD, LATE, "no", "no", "yes", "timestamp", "") \
	AFR_OPTION(SOL_SOCKET, SO_TIMESTAMPING_NEW, LATE, "no", "no", "yes", "timestamp", "") \
	AFR_OPTION(SOL_SOCKET, SO_INCOMING_CPU, PASS, \
		"as set", "as set", "as set", "option_table", \
		"never the CPU of the last packet") \
	AFR_OPTION(SOL_SOCKET, SO_ATTACH_FILTER, SHARE, \
		"connection moves to TCP", "filter sees frames", "yes", "option_table", \
		"keeps a connection on TCP, or moves it back to TCP; permission as for TCP (newer kernels: CAP_NET_ADMIN)") \
	AFR_OPTION(SOL_SOCKET, SO_ATTACH_BPF, SHARE, \
		"connection moves to TCP", "filter sees frames", "yes", "option_table", "") \
	AFR_OPTION(SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, PASS, "yes", "yes", "yes", \
		"option_table", \
		"chooses a listener; connections of such listeners fall back to TCP (MIGRATION)") \
	AFR_OPTION(SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, PASS, "yes", "yes", "yes", \
		"option_table", "the same") \
	AFR_OPTION(SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, PASS, "yes", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(SOL_SOCKET, SO_DETACH_FILTER, SHARE, "yes", "yes", "yes", "option_table", "") \
	AFR_OPTION(SOL_SOCKET, SO_LOCK_FILTER, CORE, "yes", "yes", "yes", "filter_rights", "") \
	/* peer and keepalive */ \
	AFR_OPTION(SOL_SOCKET, SO_KEEPALIVE, PASS, \
		"TCP connection", "TCP connection", "yes", "options_before_connect", \
		"probes the peer over TCP, whatever path the bytes take") \
	AFR_OPTION(SOL_SOCKET, SO_OOBINLINE, PASS, "yes", "yes", "yes", "urgent_inline", "") \
	AFR_OPTION(SOL_SOCKET, SO_PEERCRED, CORE, "as TCP", "as TCP", "as TCP", "option_table", \
		"the answer of TCP: no credentials") \
	AFR_OPTION(SOL_SOCKET, SO_PEERGROUPS, CORE, \
		"as TCP", "as TCP", "as TCP", "option_table", "") \
	AFR_OPTION(SOL_SOCKET, SO_PEERSEC, CORE, "as TCP", "as TCP", "as TCP", "option_table", \
		"") \
	AFR_OPTION(SOL_SOCKET, SO_PASSCRED, CORE, "as TCP", "as TCP", "as TCP", "option_table", \
		"no message of a stream carries credentials") \
	/* read-only */ \
	AFR_OPTION(SOL_SOCKET, SO_ERROR, CORE, "yes", "yes", "yes", "so_error", \
		"in fallback: once a call or poll() has noticed the error") \
	AFR_OPTION(SOL_SOCKET, SO_TYPE, CORE, "yes", "yes", "yes", "family", "") \
	AFR_OPTION(SOL_SOCKET, SO_DOMAIN, FAMILY, "27", "27", "27", "family", \
		"the number of the family; under smctl run that of TCP's addresses") \
	AFR_OPTION(SOL_SOCKET, SO_PROTOCOL, FAMILY, "0 or 1", "0 or 1", "0 or 1", "family", \
		"AFRDMA_PROTO_INET or AFRDMA_PROTO_INET6; under smctl run IPPROTO_TCP") \
	AFR_OPTION(SOL_SOCKET, SO_ACCEPTCONN, CORE, "yes", "yes", "yes", "family", "") \
	AFR_OPTION(SOL_SOCKET, SO_COOKIE, CORE, "yes", "yes", "yes", "cookie", \
		"of the AF_RDMA socket; the TCP socket, which ss -e shows, has another") \
	AFR_OPTION(SOL_SOCKET, SO_NETNS_COOKIE, CORE, "yes", "yes", "yes", "option_table", "") \
	/* TCP: when and how segments are sent */ \
	AFR_OPTION(IPPROTO_TCP, TCP_NODELAY, STORE, \
		"always on", "always on", "yes", "pingpong_byte", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_CORK, STORE, "yes", "yes", "yes", "more_held", \
		"as MSG_MORE") \
	AFR_OPTION(IPPROTO_TCP, TCP_QUICKACK, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT, PASS, "no", "no", "yes", "option_table", \
		"the size of the send ring limits the bytes that are not sent") \
	AFR_OPTION(IPPROTO_TCP, TCP_CONGESTION, PASS, \
		"TCP connection", "TCP connection", "yes", "congestion", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_CC_INFO, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_THIN_DUPACK, PASS, "as TCP", "as TCP", "as TCP", \
		"option_table", "without effect, as TCP's") \
	AFR_OPTION(IPPROTO_TCP, TCP_MD5SIG, PASS, "no", "no", "yes", "option_table", \
		"its option leaves no space for AF_RDMA's: the connection falls back to TCP") \
	AFR_OPTION(IPPROTO_TCP, TCP_MD5SIG_EXT, PASS, "no", "no", "yes", "option_table", \
		"the same") \
	AFR_OPTION(IPPROTO_TCP, TCP_TX_DELAY, PASS, \
		"TCP packets only", "yes", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_RTO_MAX_MS, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_RTO_MIN_US, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_DELACK_MAX_US, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	/* TCP: handshake and packets */ \
	AFR_OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT, PASS, "no", "no", "yes", "defer_accept", \
		"the client's HELLO counts as data") \
	AFR_OPTION(IPPROTO_TCP, TCP_SYNCNT, PASS, "yes", "yes", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_MAXSEG, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_WINDOW_CLAMP, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_FASTOPEN, REFUSE, "no", "no", "no", "option_table", \
		"data in a SYN cannot be framed") \
	AFR_OPTION(IPPROTO_TCP, TCP_FASTOPEN_CONNECT, REFUSE, "no", "no", "no", "option_table", \
		"") \
	AFR_OPTION(IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, REFUSE, "no", "no", "no", "option_table", \
		"") \
	AFR_OPTION(IPPROTO_TCP, TCP_FASTOPEN_KEY, REFUSE, "no", "no", "no", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_SAVE_SYN, REFUSE, "no", "no", "no", "option_table", \
		"the module reads the saved SYN itself") \
	AFR_OPTION(IPPROTO_TCP, TCP_SAVED_SYN, REFUSE, "no", "no", "no", "option_table", "") \
	/* TCP: keepalive, timeout and close */ \
	AFR_OPTION(IPPROTO_TCP, TCP_KEEPIDLE, PASS, \
		"TCP connection", "TCP connection", "yes", "options_before_connect", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_KEEPINTVL, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_KEEPCNT, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_LINGER2, PASS, \
		"TCP connection", "TCP connection", "yes", "option_table", "") \
	/* TCP: information, and options that would interfere with the module */ \
	AFR_OPTION(IPPROTO_TCP, TCP_INFO, PASS, \
		"TCP connection", "TCP connection", "yes", "tcp_info", \
		"tcpi_state is the state of the stream, so that a half-close is visible") \
	AFR_OPTION(IPPROTO_TCP, TCP_INQ, PASS, "yes", "yes", "yes", "tcp_inq", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_ULP, REFUSE, "no", "no", "no", "option_table", \
		"no kernel TLS") \
	AFR_OPTION(IPPROTO_TCP, TCP_REPAIR, REFUSE, "no", "no", "no", "option_table", \
		"connections cannot be checkpointed") \
	AFR_OPTION(IPPROTO_TCP, TCP_REPAIR_QUEUE, REFUSE, "no", "no", "no", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_REPAIR_OPTIONS, REFUSE, "no", "no", "no", "option_table", \
		"") \
	AFR_OPTION(IPPROTO_TCP, TCP_REPAIR_WINDOW, REFUSE, "no", "no", "no", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_QUEUE_SEQ, REFUSE, "no", "no", "no", "option_table", "") \
	AFR_OPTION(IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, REFUSE, "no", "no", "no", "option_table", \
		"bytes are copied") \
	/* IP */ \
	AFR_OPTION(IPPROTO_IP, IP_TOS, PASS, "the client's", "yes", "yes", "traffic_class", \
		"on RDMA both ends use the class that the client had when it moved there") \
	AFR_OPTION(IPPROTO_IP, IP_TTL, PASS, "TCP packets only", "yes", "yes", "option_table", \
		"") \
	AFR_OPTION(IPPROTO_IP, IP_FREEBIND, PASS, "yes", "yes", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, PASS, \
		"yes", "yes", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_IP, IP_RECVERR, LATE, "no", "no", "yes", "recverr", \
		"stored; an ICMP error does not end a framed connection") \
	AFR_OPTION(IPPROTO_IP, IP_MTU, PASS, "TCP connection", "yes", "yes", "option_table", \
		"read only") \
	AFR_OPTION(IPPROTO_IP, IP_MTU_DISCOVER, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IP, IP_MINTTL, PASS, "TCP packets only", "yes", "yes", "option_table", \
		"") \
	AFR_OPTION(IPPROTO_IP, IP_TRANSPARENT, PASS, "yes", "yes", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_IP, IP_UNICAST_IF, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IP, IP_LOCAL_PORT_RANGE, PASS, "yes", "yes", "yes", "option_table", \
		"") \
	AFR_OPTION(IPPROTO_IP, IP_XFRM_POLICY, PASS, "connection moves to TCP", "yes", "yes", \
		"option_table", "keeps a connection on TCP, or moves it back to TCP") \
	AFR_OPTION(IPPROTO_IP, SO_ORIGINAL_DST, PASS, "yes", "yes", "yes", "option_table", \
		"read only") \
	AFR_OPTION(IPPROTO_IPV6, IP6T_SO_ORIGINAL_DST, PASS, "yes", "yes", "yes", \
		"option_table", "read only") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_RECVERR, LATE, "no", "no", "yes", "option_table", \
		"as IP_RECVERR") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_MTU, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_MINHOPCOUNT, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_TRANSPARENT, PASS, "yes", "yes", "yes", "option_table", \
		"") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_FREEBIND, PASS, "yes", "yes", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_UNICAST_IF, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, PASS, "yes", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_DONTFRAG, PASS, "TCP packets only", "yes", "yes", \
		"option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_XFRM_POLICY, PASS, "connection moves to TCP", "yes", "yes", \
		"option_table", "as IP_XFRM_POLICY") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_TCLASS, PASS, \
		"the client's", "yes", "yes", "traffic_class6", "see IP_TOS") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS, PASS, \
		"TCP packets only", "yes", "yes", "option_table", "") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_V6ONLY, PASS, "yes", "yes", "yes", "v6only", "") \
	AFR_OPTION(IPPROTO_IP, IP_OPTIONS, REFUSE, "no", "no", "no", "option_table", \
		"the SYN needs the space for the AF_RDMA option") \
	AFR_OPTION(IPPROTO_IPV6, IPV6_ADDRFORM, REFUSE, "no", "no", "no", "option_table", \
		"the socket stays IPv6")

#define AFR_SUPPORT_AFRDMA \
	AFR_AFRDMA(AFRDMA_INFO, "yes", "yes", "yes", "info_calls", "struct afrdma_info, read only") \
	AFR_AFRDMA(AFRDMA_RDMA, "yes", "yes", "yes", "rdma_option", "auto, never or always") \
	AFR_AFRDMA(AFRDMA_SNDRING, "read", "read", "before", "ring_option", \
		"bytes, a power of two; to be set before connect() or listen()") \
	AFR_AFRDMA(AFRDMA_RCVRING, "read", "read", "before", "ring_option", "the same") \
	AFR_AFRDMA(AFRDMA_BUSY_POLL, "recv() only", "recv() only", "no", "busy_poll", \
		"microseconds; more than 1000 need CAP_NET_ADMIN")

#define AFR_SUPPORT_FLAGS \
	AFR_FLAG(MSG_PEEK, "yes", "yes", "yes", "peek", \
		"with MSG_WAITALL it waits for at most the bound of SO_RCVLOWAT") \
	AFR_FLAG(MSG_WAITALL, "yes", "yes", "yes", "waitall", "") \
	AFR_FLAG(MSG_TRUNC, "yes", "yes", "yes", "trunc", \
		"bytes are discarded without being copied") \
	AFR_FLAG(MSG_DONTWAIT, "yes", "yes", "yes", "dontwait", "") \
	AFR_FLAG(MSG_MORE, "yes", "yes", "yes", "more_held", \
		"holds back less than 32 KiB and an eighth of the smaller ring, for up to 200 ms") \
	AFR_FLAG(MSG_NOSIGNAL, "yes", "yes", "yes", "sigpipe", "SIGPIPE without it") \
	AFR_FLAG(MSG_WAITFORONE, "yes", "yes", "yes", "mmsg_one", "") \
	AFR_FLAG(MSG_OOB, "yes", "yes", "yes", "urgent", "") \
	AFR_FLAG(MSG_ERRQUEUE, "notifications of MSG_ZEROCOPY", \
		"notifications of MSG_ZEROCOPY", "yes", "errqueue", "no time stamps") \
	AFR_FLAG(MSG_ZEROCOPY, "copies, notification says so", \
		"copies, notification says so", "yes", "zerocopy", "")

#define AFR_SUPPORT_IOCTLS \
	AFR_IOCTL(SIOCINQ, "yes", "yes", "yes", "inq", "FIONREAD is the same") \
	AFR_IOCTL(SIOCOUTQ, "yes", "yes", "yes", "outq", \
		"on TCP what TCP has not accepted; on RDMA what was not posted, or is unread beyond half of the smaller ring") \
	AFR_IOCTL(SIOCOUTQNSD, "yes", "yes", "yes", "outq", \
		"bytes that were not passed to the path") \
	AFR_IOCTL(SIOCATMARK, "yes", "yes", "yes", "urgent", "") \
	AFR_IOCTL(FIOASYNC, "yes", "yes", "yes", "fioasync", "O_ASYNC of fcntl() is the same")

#define AFR_SUPPORT_CALLS \
	AFR_CALL("socket(), its flags", "yes", "yes", "yes", "family", "") \
	AFR_CALL("bind() errors", "yes", "yes", "yes", "misuse", "") \
	AFR_CALL("bind(), port in use", "yes", "yes", "yes", "port_in_use", "") \
	AFR_CALL("connect() refused", "yes", "yes", "yes", "refused", "") \
	AFR_CALL("connect() twice", "yes", "yes", "yes", "misuse_connected", "EISCONN") \
	AFR_CALL("connect(AF_UNSPEC)", "no", "no", "yes", "unspec_framed", \
		"EOPNOTSUPP on a framed connection, after its end, too") \
	AFR_CALL("connect() to itself", "no", "no", "yes", "connect_self", \
		"the connection falls back to TCP") \
	AFR_CALL("connect() without waiting", "yes", "yes", "yes", "connect_epoll_edge", "") \
	AFR_CALL("connect() and signals", "yes", "yes", "yes", "connect_interrupted", "") \
	AFR_CALL("dual stack, IPv4-mapped", "yes", "yes", "yes", "mapped_server", "") \
	AFR_CALL("link-local with scope", "yes", "yes", "yes", "link_local", "") \
	AFR_CALL("listen(), backlog overflow", "yes", "yes", "yes", "backlog_overflow", "") \
	AFR_CALL("accept4() flags", "yes", "yes", "yes", "accept_flags", "") \
	AFR_CALL("accept() by processes", "yes", "yes", "yes", "accept_processes", "") \
	AFR_CALL("accept() by threads", "yes", "yes", "yes", "accept_threads", "") \
	AFR_CALL("zero-length calls", "yes", "yes", "yes", "zero_length", "") \
	AFR_CALL("sendmmsg(), recvmmsg()", "yes", "yes", "yes", "mmsg", "") \
	AFR_CALL("readv(), writev(), sendmsg()", "yes", "yes", "yes", "vectors_to_server", "") \
	AFR_CALL("SIGPIPE", "yes", "yes", "yes", "sigpipe", "") \
	AFR_CALL("signals, SA_RESTART", "yes", "yes", "yes", "eintr_recv", "") \
	AFR_CALL("signals in a full send()", "yes", "yes", "yes", "eintr_send", "") \
	AFR_CALL("sendfile()", "yes", "yes", "yes", "sendfile", "") \
	AFR_CALL("splice() both ways", "yes", "yes", "yes", "splice_both", "") \
	AFR_CALL("vmsplice()", "yes", "yes", "yes", "vmsplice", \
		"pages are copied when the pipe is read") \
	AFR_CALL("tee()", "yes", "yes", "yes", "tee", "") \
	AFR_CALL("io_uring send, recv", "yes", "yes", "yes", "uring_both", "") \
	AFR_CALL("io_uring, many rings long", "yes", "yes", "yes", "uring_large", "") \
	AFR_CALL("io_uring accept, connect", "yes", "yes", "yes", "uring_accept", "") \
	AFR_CALL("io_uring poll", "yes", "yes", "yes", "uring_poll", "") \
	AFR_CALL("io_uring multishot recv", "yes", "yes", "yes", "uring_multishot", "") \
	AFR_CALL("io_uring cancel", "yes", "yes", "yes", "uring_cancel", "") \
	AFR_CALL("select(), poll(), epoll", "yes", "yes", "yes", "masks", "") \
	AFR_CALL("epoll, edge-triggered", "yes", "yes", "yes", "edge_each_arrival", "") \
	AFR_CALL("epoll, EPOLLONESHOT", "yes", "yes", "yes", "oneshot", "") \
	AFR_CALL("epoll, EPOLLEXCLUSIVE", "yes", "yes", "yes", "epoll_exclusive", "") \
	AFR_CALL("EPOLLRDHUP", "yes", "yes", "yes", "edge_late", "") \
	AFR_CALL("EPOLLPRI, SIGURG", "yes", "yes", "yes", "urgent_signal", "") \
	AFR_CALL("SIGIO", "yes", "yes", "yes", "sigio", "") \
	AFR_CALL("shutdown(SHUT_WR), client first", "yes", "yes", "yes", "half_close", \
		"the end is sent in a FIN frame, and the TCP connection stays open") \
	AFR_CALL("shutdown(SHUT_WR), server first", "yes", "yes", "yes", "half_close_back", "") \
	AFR_CALL("shutdown(SHUT_RD)", "yes", "yes", "yes", "shutdown_read", "") \
	AFR_CALL("close() over unread bytes", "yes", "yes", "yes", "close_unread", \
		"resets the connection") \
	AFR_CALL("close(), bytes unsent", "yes", "yes", "yes", "close_with_data", \
		"delivered in the background; reset if the peer takes none for orphan_timeout_ms") \
	AFR_CALL("fork()", "yes", "yes", "yes", "fork_both", "") \
	AFR_CALL("dup()", "yes", "yes", "yes", "dup", "") \
	AFR_CALL("SCM_RIGHTS", "yes", "yes", "yes", "rights_send", "") \
	AFR_CALL("threads in one call", "yes", "yes", "yes", "writers", "")

#endif /* AFR_SUPPORT_H */
