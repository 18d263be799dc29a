/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The reasons why connections are not on RDMA or were aborted, why links ended, and why devices
 * cannot be used: each has a number, a name, a sentence and a remedy. smctl, the tracepoints,
 * the wire format (ERROR, ATTACHED, RESUME, the rejection of a link) and the documentation share
 * this list.
 * Numbers are part of the wire format: append, never renumber.
 *
 * The sentence says what happened, and the remedy what an administrator does about it. A remedy
 * that begins with "none is needed" tells how to change what is intended; an empty one says that
 * there is nothing to do.
 *
 * ERROR, ATTACHED, RESUME and the rejection of a link carry a reason to the peer. The sentence of
 * a reason is written for the end that sends it: if the peer's smctl shows the reason, it prints
 * "peer:" before the sentence, and "at the peer" before the remedy. But after ERROR the peer shows
 * PEER_ERROR instead, whatever reason the frame contains.
 *
 * AFR_REASON(number, NAME, "sentence for an administrator", "remedy")
 */
#define AFR_REASONS \
	AFR_REASON(0, NONE, "no reason: nothing was denied, lost or aborted", \
		   "") \
	/* why a connection has fallen back to TCP, or may not use RDMA */ \
	AFR_REASON(1, PEER_PLAIN, "the server did not answer the client's offer of AF_RDMA: it runs a TCP program, or a middlebox removed the option (TCP option kind 254)", \
		   "load the module at the server and start its program with smctl run; if that is done, let TCP option kind 254 pass the firewalls and middleboxes on the path") \
	AFR_REASON(2, OPTION_ECHOED, "the SYN-ACK repeats the client's AF_RDMA option unchanged: a middlebox or the server echoes TCP options that it does not know", \
		   "route the connection around the middlebox that echoes options, or update its software") \
	AFR_REASON(3, OPTION_BAD, "the peer's AF_RDMA option in SYN or SYN-ACK is malformed or of another version", \
		   "update the module at the end that has the older one; if they are the same, find out what changes TCP option kind 254 on the path") \
	AFR_REASON(4, OPTION_NO_ROOM, "the SYN or SYN-ACK of this end had no space for the AF_RDMA option: TCP-MD5, TCP-AO, TCP Fast Open or many other options; such a connection stays on TCP", \
		   "do without TCP-MD5, TCP-AO, TCP Fast Open or AccECN for the connections that are to use RDMA") \
	AFR_REASON(5, OPTION_DROPPED, "SYN or SYN-ACK segments with the AF_RDMA option were lost, so the next one was sent without it", \
		   "let TCP option kind 254 pass the firewalls and middleboxes on the path; if some connections have the option, look for packet loss") \
	AFR_REASON(6, CLIENT_PLAIN, "the client did not offer AF_RDMA: it is a TCP program, a middlebox removed the option (TCP option kind 254), or SYN cookies hid it", \
		   "start the client program with smctl run; if that is done, let TCP option kind 254 pass the firewalls and middleboxes on the path, or raise the listen backlog (net.core.somaxconn) if the server sends SYN cookies") \
	AFR_REASON(7, NO_HELLO, "the client offered AF_RDMA, but its first bytes are no HELLO: a middlebox removed the option from the SYN-ACK, or the client ended without sending anything", \
		   "if this happens often, let TCP option kind 254 in SYN-ACK segments pass the middleboxes on the path") \
	AFR_REASON(8, HELLO_TIMEOUT, "the client had sent no HELLO after hello_timeout_ms, so the server sent its bytes unframed", \
		   "raise sysctl net.afrdma.hello_timeout_ms at the server if the path is slow") \
	AFR_REASON(9, FAMILY_OFF, "AF_RDMA is disabled: sysctl net.afrdma.enabled is 0, in the network namespace of the socket or in the initial one", \
		   "set sysctl net.afrdma.enabled to 1 in both, before connect() or listen()") \
	AFR_REASON(10, NO_NETFILTER, "the netfilter hook that adds the AF_RDMA option to SYN and SYN-ACK could not be registered: not enough memory, or too many hooks", \
		   "free memory, or remove netfilter hooks (nft list ruleset); then start the program again") \
	AFR_REASON(11, MIGRATION, "the listener shares its port (SO_REUSEPORT), and sysctl net.ipv4.tcp_migrate_req or a BPF program may pass a connection to a listener of a TCP program", \
		   "set sysctl net.ipv4.tcp_migrate_req to 0, or detach the BPF program") \
	AFR_REASON(12, SOCKET_OPTION, "the program, or a rule of smctl run, has denied RDMA for this socket (AFRDMA_RDMA_NEVER)", \
		   "if RDMA is wanted, change the rule (options of smctl run, /etc/afrdma/run.conf) or the program") \
	AFR_REASON(13, CALL_RUNNING, "a call on the former connection of this socket had not returned yet", \
		   "change the program: it should close the socket and use a new one") \
	AFR_REASON(14, SHUT_BEFORE, "the program had called shutdown() before connect() or listen(), and with TCP this stays in force for later connections", \
		   "change the program: it should close the socket and use a new one") \
	/* why a framed or one-way connection is not on RDMA */ \
	AFR_REASON(20, NOT_YET, "not on RDMA yet: the connection has transferred neither upgrade_bytes nor upgrade_msgs", \
		   "none is needed; to move connections earlier, lower sysctl net.afrdma.upgrade_bytes or net.afrdma.upgrade_msgs at the client") \
	AFR_REASON(21, UPGRADE_OFF, "RDMA is disabled: sysctl net.afrdma.upgrade is 0", \
		   "set sysctl net.afrdma.upgrade to 1") \
	AFR_REASON(22, PEER_NO_SERVICE, "the server accepts no RDMA connections: it has no RDMA device that its network namespace can use", \
		   "see smctl dev at the server; for Soft-RoCE, create a device there: rdma link add rxe0 type rxe netdev DEV") \
	AFR_REASON(23, NO_ROUTE, "no RDMA device at this end for the route of the TCP connection, or rdma_cm could not resolve the address of the peer", \
		   "see smctl dev and rdma link; the interface of the route (ip route get PEER) needs an RDMA device; for Soft-RoCE: rdma link add rxe0 type rxe netdev DEV") \
	AFR_REASON(24, CONNECT_FAILED, "the RDMA connection to the peer failed, or was rejected without a reason", \
		   "if link_refused of smctl stats rises at the peer, raise sysctl net.afrdma.link_requests_max there; else see the kernel log of both ends") \
	AFR_REASON(25, CONNECT_TIMEOUT, "the peer did not answer the request for an RDMA connection in time", \
		   "open the path for RDMA both ways (RoCE: UDP port 4791), and see smctl dev at the peer") \
	AFR_REASON(26, NO_MEMORY, "not enough memory for rings or for resources of the RDMA device", \
		   "free memory, raise the limit of the memory cgroup of the program, or see rdma resource for limits of the device") \
	AFR_REASON(27, MR_FAILED, "the RDMA device could not register a ring as a memory region", \
		   "set sysctl net.afrdma.ring_max to at most ring_max of smctl dev") \
	AFR_REASON(28, DMA_SYNC, "the RDMA device needs bounce buffers (swiotlb, encrypted memory), which do not work for rings that a peer writes to at any time", \
		   "use another device, or boot without swiotlb=force; with encrypted memory there is no remedy") \
	AFR_REASON(29, XFRM_POLICY, "an IPsec policy applies to the TCP connection, and RDMA would bypass it", \
		   "none is needed; if the network may carry these bytes unencrypted, remove the policy (ip xfrm policy)") \
	AFR_REASON(30, SOCKET_FILTER, "a socket filter is attached to the socket, and RDMA would bypass it", \
		   "none is needed; if the filter is not, configure the program to attach none") \
	AFR_REASON(31, NO_SLOT, "the link has as many connections as it may have", \
		   "raise sysctl net.afrdma.conns_per_link or net.afrdma.links_per_group") \
	AFR_REASON(32, RING_LIMIT, "not enough ring memory is left for RDMA", \
		   "raise sysctl net.afrdma.mem_max and the module parameter mem_max, or use smaller rings (sysctl net.afrdma.sndbuf, net.afrdma.rcvbuf)") \
	AFR_REASON(33, UNKNOWN_LINK, "the link that the client named did not come up at the server in time, or was lost there: the client tries again", \
		   "none is needed, unless it stays: then open the path for RDMA both ways (RoCE: UDP port 4791)") \
	AFR_REASON(34, ATTACH_TIMEOUT, "the server has not answered ATTACH within attach_timeout_ms: the connection moves to RDMA when the answer comes", \
		   "none is needed, unless it stays: then look at the load of the server, and for packet loss") \
	AFR_REASON(35, LINK_BUSY, "the link was lost while the connection attached to it: the client tries again", \
		   "") \
	AFR_REASON(36, NETNS, "no RDMA device can be used in this network namespace", \
		   "give the namespace an interface of a RoCE device or, in exclusive mode (rdma system), a device of its own") \
	AFR_REASON(37, CLOSING, "the connection is closing, or the client had ended its send direction (shutdown or close) before the connection was on RDMA: it stays on TCP", \
		   "none is needed; for long answers by RDMA, the client should call shutdown() only after the answer has come") \
	AFR_REASON(38, HALF_FRAMED, "one-way connection, which stays on TCP: the client's HELLO came after the server had begun to send unframed", \
		   "raise sysctl net.afrdma.hello_timeout_ms at the server; new connections can use RDMA") \
	AFR_REASON(39, DEVICE_LACKS, "the RDMA device does not support fast registration of memory, or its queues are too short", \
		   "use another device") \
	AFR_REASON(40, OPERATOR, "an administrator keeps this connection on TCP (smctl conn move ID tcp)", \
		   "smctl conn move ID rdma, at the end where it was moved to TCP") \
	AFR_REASON(41, ATTACH_LIMIT, "too many connections were moving to RDMA at the same time: the client tries again", \
		   "none is needed, unless it stays: then raise sysctl net.afrdma.attaches_max") \
	AFR_REASON(42, GROUP_LIMIT, "links to too many peers (groups_max), or to too many instances of one host (8 between two addresses)", \
		   "raise sysctl net.afrdma.groups_max; no setting raises the limit of 8 instances") \
	AFR_REASON(43, PEER_SHARE, "the connections with the remote address have used up its share of ring memory, which is as much as they leave free for RDMA", \
		   "raise sysctl net.afrdma.mem_max and the module parameter mem_max, or close idle connections of that peer") \
	AFR_REASON(44, USER_SHARE, "the connections of the user have used up the user's share of ring memory, which is four times what they leave free for RDMA", \
		   "raise sysctl net.afrdma.mem_max and the module parameter mem_max, or close idle connections of that user") \
	AFR_REASON(45, LINK_LIMIT, "there are as many links between the two hosts as there may be (32)", \
		   "close links that are not needed: smctl link drain ID") \
	AFR_REASON(47, UPGRADING, "moving to RDMA: waiting for a link, or for the peer's answer to ATTACH", \
		   "") \
	AFR_REASON(48, CLIENT_BEGINS, "not on RDMA yet: the client starts the move, after its upgrade_bytes or upgrade_msgs", \
		   "see the reason that smctl conn shows at the client") \
	AFR_REASON(49, TUNNEL, "TCP is routed through a tunnel (IPsec interface, WireGuard, GRE, VXLAN, ...), and RDMA would bypass it", \
		   "none is needed; if the network may carry these bytes outside the tunnel, change the route") \
	/* why a link was lost, closed or not made */ \
	AFR_REASON(50, LINK_COMPLETION, "a work request on the link failed, at the local device or at that of the other end", \
		   "see the kernel log of both ends; debug messages of the module have the status of the work request") \
	AFR_REASON(51, LINK_DISCONNECTED, "the other end or rdma_cm disconnected the link", \
		   "see the reason that smctl conn shows at the other end, and whether that host is up") \
	AFR_REASON(52, LINK_DEVICE_REMOVED, "the RDMA device was removed", \
		   "if it was not intended, add the device again (Soft-RoCE: rdma link add) and see the kernel log") \
	AFR_REASON(53, LINK_QP_EVENT, "the RDMA device reported a fatal error of its own or of the queue pair", \
		   "see the messages of the device's driver in the kernel log") \
	AFR_REASON(54, LINK_PORT_DOWN, "the port of the RDMA device went down", \
		   "bring the interface up (ip link); look at cable and switch") \
	AFR_REASON(55, LINK_ADDR_CHANGE, "an address of the link, or the way to the other end, changed or went away", \
		   "if it was not intended, restore the address or the route (ip address, ip route)") \
	AFR_REASON(56, LINK_PEER_RESUME, "the other end left the link", \
		   "see the reason that smctl conn shows at the other end") \
	AFR_REASON(57, LINK_DETACH_TIMEOUT, "the other end hangs: it did not leave the link within detach_timeout_ms, so the link was closed; or half of the channel ids of the link were lost in that way", \
		   "look at the load of the other end; if it is only slow, raise sysctl net.afrdma.detach_timeout_ms") \
	AFR_REASON(58, LINK_IDLE, "no connection used the link for link_linger_ms, so it was closed", \
		   "") \
	AFR_REASON(59, LINK_SHUTDOWN, "the module or the network namespace is going away", \
		   "") \
	AFR_REASON(60, LINK_PROTOCOL, "the other end broke the protocol of links: wrong version or secret in its request, a message for a channel id that is not in use, or impossible credits", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(61, LINK_OPERATOR, "an administrator closed the link (smctl link drain)", \
		   "") \
	AFR_REASON(62, LINK_SILENT, "nothing came from the device of the other end for link_timeout_ms", \
		   "open the path for RDMA both ways (RoCE: UDP port 4791), and see whether the other end is up") \
	AFR_REASON(63, LINK_UNACKED, "the device of the other end acknowledged nothing, although the local device sent it several times: the path loses RDMA packets, or only large ones (see mtu of smctl link)", \
		   "make the path carry RDMA packets of the MTU of the interface, or give the route its real MTU: ip route change PREFIX ... mtu N") \
	AFR_REASON(64, LINK_SHORT, "links to this peer were lost soon after they came up, so no link is made for a while: the path loses RDMA packets, or only large ones (see mtu of smctl link)", \
		   "make the path carry RDMA packets of the MTU of the interface, or give the route its real MTU: ip route change PREFIX ... mtu N") \
	/* why a connection was aborted */ \
	AFR_REASON(79, SYN_TAKEN, "the SYN-ACK had agreed to AF_RDMA, but then the server program disconnected its listener, or the SYN that TCP had saved was gone", \
		   "use a new socket to listen again; if the program did not disconnect its listener, this is a bug: please report it") \
	AFR_REASON(80, RESET, "the peer, or something on the path, reset the TCP connection", \
		   "see whether the program of the peer ended, and whether a firewall on the path resets idle connections") \
	AFR_REASON(81, TCP_ERROR, "the TCP connection failed, for example by a timeout", \
		   "see whether the peer is up and the path is open (ping, ss)") \
	AFR_REASON(82, TCP_EOF, "the peer ended the TCP connection without a FIN frame: the stream may be incomplete", \
		   "see whether the program or the host of the peer failed; the program must treat the stream as incomplete") \
	AFR_REASON(83, CLOSED_UNREAD, "the program closed the socket with unread data, so the connection was reset, as with TCP", \
		   "none is needed; if the peer misses bytes, change the program: it should read up to the end before it closes") \
	AFR_REASON(84, LINGER_ZERO, "the program closed the socket with SO_LINGER 0, so the connection was reset", \
		   "none is needed; if the peer misses bytes, change the program: it should not set SO_LINGER to 0") \
	AFR_REASON(85, ORPHAN_DATA, "data arrived after the program had closed the socket or shut down both directions, so the connection was reset, as with TCP", \
		   "none is needed; if the reset disturbs the peer, change the program: it should read up to the end before it closes") \
	AFR_REASON(86, ORPHAN_TIMEOUT, "after the program had closed the socket, the peer took nothing for orphan_timeout_ms, or did not end in time, so the connection was reset", \
		   "see why the program of the peer does not read; if it is only slow, raise sysctl net.afrdma.orphan_timeout_ms") \
	AFR_REASON(87, PEER_ERROR, "the peer aborted the connection with an ERROR frame after a protocol violation", \
		   "see the trace event afrdma_conn_abort at the peer for its reason; update the module at both ends to the same version; if they have it, report the bug") \
	AFR_REASON(88, ORPHAN_LIMIT, "the program closed the socket while too many closed connections, of all users or of its user, still delivered, so the connection was reset", \
		   "raise sysctl net.afrdma.orphans_max and the module parameter orphans_max") \
	AFR_REASON(89, HELLO_BAD, "protocol violation by the peer: a HELLO with the right proof and a wrong length, version, ring size or reserved field", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(90, HELLO_CUT, "the connection ended, or hello_timeout_ms expired, in the middle of the HELLO of the peer", \
		   "see whether the program or the host of the peer failed; if the path is slow, raise sysctl net.afrdma.hello_timeout_ms") \
	AFR_REASON(91, FRAME_BAD, "protocol violation by the peer: a frame with an impossible type, length, flag or field", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(93, DATA_OFFSET, "protocol violation by the peer: DATA at another offset than the next one", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(94, WINDOW_EXCEEDED, "protocol violation by the peer: more bytes than the receive window allows", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(95, DATA_AFTER_FIN, "protocol violation by the peer: bytes at or above the end that its FIN had named", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(96, FIN_BAD, "protocol violation by the peer: a FIN below what was received, or a second FIN with another end", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(97, FINACK_BAD, "protocol violation by the peer: a FINACK for bytes that were not sent, or not up to the end of the stream", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(98, CREDIT_BAD, "protocol violation by the peer: a consumer cursor beyond what was sent", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(99, ATTACH_BAD, "protocol violation by the peer: an ATTACH or ATTACHED that was not expected, or with a wrong epoch, ring or link", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(100, MOVE_BAD, "protocol violation by the peer: a MOVE at another offset than the next one, or a second MOVE in an epoch", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(101, RESUME_BAD, "protocol violation by the peer: a RESUME at an offset that was not sent, or is no longer in the send ring", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer") \
	AFR_REASON(102, MOVE_DATA, "protocol violation by the peer: DATA on TCP while the direction is on a link", \
		   "update the module at both ends to the same version; if they have it, report the bug, or block this peer")

#ifndef AFR_PROTO_REASON_H
#define AFR_PROTO_REASON_H

enum afr_reason {
#define AFR_REASON(number, name, sentence, remedy) AFR_REASON_##name = number,
	AFR_REASONS
#undef AFR_REASON
};

/* Flag in a stored reason: the peer reported the reason, which describes the peer's end. */
#define AFR_REASON_PEER		0x10000

/* Converts a number from the peer to a stored reason; a number that is too large is clamped. */
static inline unsigned int afr_reason_of_peer(unsigned int number)
{
	return AFR_REASON_PEER | (number < AFR_REASON_PEER ? number : AFR_REASON_PEER - 1);
}

/* Returns the number of a stored reason, without AFR_REASON_PEER. */
static inline unsigned int afr_reason_number(unsigned int reason)
{
	return reason & ~AFR_REASON_PEER;
}

const char *afr_reason_name(unsigned int reason);
const char *afr_reason_text(unsigned int reason);
const char *afr_reason_remedy(unsigned int reason);

#endif /* AFR_PROTO_REASON_H */
