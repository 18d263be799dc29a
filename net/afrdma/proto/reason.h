/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The reasons for fallbacks, refusals, moves and aborts: each has a number, a name and a sentence.
 * smctl, the tracepoints, the wire format (ERROR, ATTACHED, RESUME) and the documentation share
 * this list. Numbers are part of the wire format: append, never renumber.
 *
 * AFR_REASON(number, NAME, "sentence for an administrator")
 */
#define AFR_REASONS \
	AFR_REASON(0, NONE, "no reason: nothing was refused") \
	/* why a connection has fallen back to TCP */ \
	AFR_REASON(1, PEER_PLAIN, "the peer did not answer our TCP option: it does not speak AF_RDMA, or a middlebox removed the option") \
	AFR_REASON(2, OPTION_ECHOED, "the TCP option came back unchanged: a middlebox or the peer echoes options it does not know") \
	AFR_REASON(3, OPTION_BAD, "the peer's TCP option is malformed or of another version") \
	AFR_REASON(4, OPTION_NO_ROOM, "no room for our TCP option: TCP-MD5, TCP-AO, TCP Fast Open or too many options in the SYN") \
	AFR_REASON(5, OPTION_DROPPED, "the SYN was retransmitted, and the option was left out in case it was the cause") \
	AFR_REASON(6, CLIENT_PLAIN, "the client did not ask for AF_RDMA, or SYN cookies hid its request") \
	AFR_REASON(7, NO_HELLO, "the peer's first bytes are not a HELLO: it never saw our consent") \
	AFR_REASON(8, HELLO_TIMEOUT, "the client stayed silent longer than hello_timeout_ms, so our output went out as plain TCP") \
	AFR_REASON(9, FAMILY_OFF, "forbidden here: sysctl net.afrdma.enabled is 0") \
	AFR_REASON(10, NO_NETFILTER, "the netfilter hook that carries our TCP option could not be registered") \
	AFR_REASON(11, MIGRATION, "the listener shares its port (SO_REUSEPORT) and connections may migrate to one that is a TCP program") \
	AFR_REASON(12, SOCKET_OPTION, "forbidden here: the program, or a rule for it, wants TCP on this socket (AFRDMA_RDMA_NEVER)") \
	/* why a framed connection is not on RDMA */ \
	AFR_REASON(20, NOT_YET, "not on RDMA yet: the connection has not moved upgrade_bytes or upgrade_msgs") \
	AFR_REASON(21, UPGRADE_OFF, "forbidden here: sysctl net.afrdma.upgrade is 0") \
	AFR_REASON(22, PEER_NO_SERVICE, "the peer has no RDMA service: no device or no listener there") \
	AFR_REASON(23, NO_ROUTE, "no RDMA device here for the connection's address, or rdma_cm found no route to the peer's") \
	AFR_REASON(24, CONNECT_FAILED, "the RDMA connection to the peer was refused or failed") \
	AFR_REASON(25, CONNECT_TIMEOUT, "the RDMA connection to the peer was not answered in time: has it still a device, and is UDP port 4791 (RoCE) open both ways?") \
	AFR_REASON(26, NO_MEMORY, "not enough memory for rings or RDMA resources") \
	AFR_REASON(27, MR_FAILED, "the RDMA device could not register the ring") \
	AFR_REASON(28, DMA_SYNC, "the device needs DMA syncing (bounce buffers), which RDMA into a live ring cannot have") \
	AFR_REASON(29, XFRM_POLICY, "an IPsec policy applies to this connection, and RDMA would bypass it") \
	AFR_REASON(30, SOCKET_FILTER, "a socket filter is attached, and RDMA would bypass it") \
	AFR_REASON(31, NO_SLOT, "the link has no room for more connections (sysctl net.afrdma.conns_per_link)") \
	AFR_REASON(32, RING_LIMIT, "over the limit of ring memory (sysctl net.afrdma.mem_max, or the module's mem_max)") \
	AFR_REASON(33, UNKNOWN_LINK, "the peer named a link we do not have") \
	AFR_REASON(34, ATTACH_TIMEOUT, "the peer did not answer ATTACH in time") \
	AFR_REASON(35, LINK_BUSY, "the link went away while attaching") \
	AFR_REASON(36, NETNS, "RDMA is used in the initial network namespace only") \
	AFR_REASON(37, CLOSING, "the client has ended its output (shutdown or close), or the connection is closing: it does not move to RDMA any more") \
	AFR_REASON(38, HALF_FRAMED, "only one direction is framed: the client's HELLO came after our output had started") \
	AFR_REASON(39, DEVICE_LACKS, "the RDMA device lacks what we need: fast registration of memory, or long queues") \
	AFR_REASON(40, OPERATOR, "an administrator keeps this connection on TCP (smctl conn move)") \
	AFR_REASON(41, ATTACH_LIMIT, "too many connections were moving to RDMA at once (sysctl net.afrdma.attaches_max)") \
	AFR_REASON(42, GROUP_LIMIT, "links to too many peers (sysctl net.afrdma.groups_max)") \
	AFR_REASON(43, PEER_SHARE, "the peer's address has its share of ring memory: at most as much as is free of what RDMA may have of mem_max") \
	AFR_REASON(44, USER_SHARE, "the user has its share of ring memory: at most four times what is free of what RDMA may have of mem_max") \
	AFR_REASON(45, LINK_LIMIT, "this peer has as many links as one may have (32)") \
	AFR_REASON(47, UPGRADING, "on its way to RDMA: looking for a link, or waiting for the peer's answer") \
	AFR_REASON(48, CLIENT_BEGINS, "not on RDMA yet: the client begins, when it has moved its upgrade_bytes or upgrade_msgs") \
	AFR_REASON(49, TUNNEL, "TCP is routed through a tunnel (an IPsec interface, WireGuard, GRE, ...), and RDMA would bypass it") \
	/* why a link was lost or closed */ \
	AFR_REASON(50, LINK_COMPLETION, "a work request on the link failed") \
	AFR_REASON(51, LINK_DISCONNECTED, "the peer or rdma_cm disconnected the link") \
	AFR_REASON(52, LINK_DEVICE_REMOVED, "the RDMA device was removed") \
	AFR_REASON(53, LINK_QP_EVENT, "the device reported a fatal queue pair event") \
	AFR_REASON(54, LINK_PORT_DOWN, "the RDMA port went down") \
	AFR_REASON(55, LINK_ADDR_CHANGE, "the address of the link changed or went away") \
	AFR_REASON(56, LINK_PEER_RESUME, "the peer left the link") \
	AFR_REASON(57, LINK_DETACH_TIMEOUT, "the peer did not detach in time, so the link was taken down") \
	AFR_REASON(58, LINK_IDLE, "the last connection left and the link lingered long enough") \
	AFR_REASON(59, LINK_SHUTDOWN, "the module or the namespace is going away") \
	AFR_REASON(60, LINK_PROTOCOL, "the peer broke the rules of the link: unknown slot, or credits that cannot be") \
	AFR_REASON(61, LINK_OPERATOR, "an administrator took the link down") \
	AFR_REASON(62, LINK_SILENT, "the peer's device did not answer for link_timeout_ms: is the path of RDMA, such as UDP port 4791 of RoCE, still open?") \
	AFR_REASON(63, LINK_UNACKED, "the peer's device acknowledged nothing of what was sent again and again: does the path lose RDMA packets, or only large ones (mtu of smctl link)?") \
	AFR_REASON(64, LINK_SHORT, "links to this peer were lost soon after they came up, having carried little, so there is none for a while: does the path lose RDMA packets, or only large ones?") \
	/* why a connection was aborted */ \
	AFR_REASON(79, SYN_TAKEN, "the saved SYN of this connection was gone at accept(), after we had consented to the client") \
	AFR_REASON(80, RESET, "the peer or the network reset the TCP connection") \
	AFR_REASON(81, TCP_ERROR, "the inner TCP connection failed") \
	AFR_REASON(82, TCP_EOF, "TCP ended without a FIN frame: the stream may be cut short") \
	AFR_REASON(83, CLOSED_UNREAD, "closed with unread data, so the peer was told by a reset") \
	AFR_REASON(84, LINGER_ZERO, "closed with SO_LINGER 0") \
	AFR_REASON(85, ORPHAN_DATA, "data arrived for a connection that its program had closed") \
	AFR_REASON(86, ORPHAN_TIMEOUT, "a closed connection could not be finished in time") \
	AFR_REASON(87, PEER_ERROR, "the peer ended the connection with an ERROR frame") \
	AFR_REASON(88, ORPHAN_LIMIT, "closed, with too many closed connections still delivering (sysctl net.afrdma.orphans_max, or the module's orphans_max)") \
	AFR_REASON(89, HELLO_BAD, "HELLO with the right proof and wrong contents") \
	AFR_REASON(90, HELLO_CUT, "the connection ended or timed out in the middle of a HELLO") \
	AFR_REASON(91, FRAME_BAD, "a frame with a length, flag or field that can never be right") \
	AFR_REASON(93, DATA_OFFSET, "DATA at another offset than the next one expected") \
	AFR_REASON(94, WINDOW_EXCEEDED, "more bytes than the receive window allows") \
	AFR_REASON(95, DATA_AFTER_FIN, "bytes at or above the end that FIN had named") \
	AFR_REASON(96, FIN_BAD, "FIN below what was received, or a second FIN with another end") \
	AFR_REASON(97, FINACK_BAD, "FINACK for an end we did not name") \
	AFR_REASON(98, CREDIT_BAD, "a consumer cursor beyond what was sent") \
	AFR_REASON(99, ATTACH_BAD, "ATTACH or ATTACHED that was not awaited, or with an epoch that is not a later one") \
	AFR_REASON(100, MOVE_BAD, "MOVE at an offset where the stream is not, or twice") \
	AFR_REASON(101, RESUME_BAD, "RESUME outside what was sent and is still held") \
	AFR_REASON(102, MOVE_DATA, "DATA on TCP while the direction is on a link")

#ifndef AFR_PROTO_REASON_H
#define AFR_PROTO_REASON_H

enum afr_reason {
#define AFR_REASON(number, name, sentence) AFR_REASON_##name = number,
	AFR_REASONS
#undef AFR_REASON
};

/* Flag in a stored reason: the peer reported it, and it describes the peer's end. */
#define AFR_REASON_PEER		0x10000

/* Converts a number from the peer to a stored reason; a number that is too large is clamped. */
static inline unsigned int afr_reason_of_peer(unsigned int told)
{
	return AFR_REASON_PEER | (told < AFR_REASON_PEER ? told : AFR_REASON_PEER - 1);
}

/* Returns the number of a stored reason, without AFR_REASON_PEER. */
static inline unsigned int afr_reason_number(unsigned int kept)
{
	return kept & ~AFR_REASON_PEER;
}

const char *afr_reason_name(unsigned int reason);
const char *afr_reason_text(unsigned int reason);

#endif /* AFR_PROTO_REASON_H */
