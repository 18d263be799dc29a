/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters per network namespace, each with a sentence. One list: enum, names for
 * netlink and smctl, and the documents follow from it. Append only.
 */
#define AFR_STATS \
	AFR_STAT(SOCK_CREATED, "sockets created by socket() or accept()") \
	AFR_STAT(CONN_FRAMED, "connections where both ends speak AF_RDMA") \
	AFR_STAT(CONN_PLAIN, "connections that are plain TCP, for a reason that smctl shows") \
	AFR_STAT(CONN_HALF, "connections with one direction framed and one raw") \
	AFR_STAT(CONN_ABORTED, "connections ended by an error or a reset") \
	AFR_STAT(CONN_ORPHANED, "connections closed by their program and finished in the background") \
	AFR_STAT(CONN_FINISHED, "framed connections that ended in order") \
	AFR_STAT(SYN_OPTION, "SYNs sent with our option") \
	AFR_STAT(SYNACK_OPTION, "SYN-ACKs sent with our option") \
	AFR_STAT(SYN_NO_OPTION, "SYNs of our sockets sent without the option: no room, or retransmitted") \
	AFR_STAT(OPTION_BAD, "SYN or SYN-ACK options that were malformed, echoed or of another version") \
	AFR_STAT(HELLO_SENT, "HELLOs sent") \
	AFR_STAT(HELLO_RECEIVED, "valid HELLOs received") \
	AFR_STAT(HELLO_TIMEOUT, "servers whose output started raw because the client was silent") \
	AFR_STAT(FRAMES_SENT, "frames sent on TCP") \
	AFR_STAT(FRAMES_RECEIVED, "frames received on TCP") \
	AFR_STAT(TX_BYTES_TCP, "application bytes sent in DATA frames") \
	AFR_STAT(TX_BYTES_RDMA, "application bytes sent by RDMA writes") \
	AFR_STAT(RX_BYTES_TCP, "application bytes received in DATA frames") \
	AFR_STAT(RX_BYTES_RDMA, "application bytes received by RDMA writes") \
	AFR_STAT(TX_WRITES, "RDMA writes posted with data") \
	AFR_STAT(TX_CREDIT_WRITES, "RDMA writes posted without data, to tell a cursor") \
	AFR_STAT(UPGRADE_TRIED, "attempts to move a connection to RDMA") \
	AFR_STAT(UPGRADE_DONE, "connections attached to a link") \
	AFR_STAT(UPGRADE_FAILED, "attempts that ended on TCP, for a reason that smctl shows") \
	AFR_STAT(MOVE_TX, "directions we moved to a link") \
	AFR_STAT(MOVE_RX, "directions the peer moved to a link") \
	AFR_STAT(RESUME_TX, "directions we resumed on TCP after a link was lost") \
	AFR_STAT(RESUME_RX, "directions the peer was told to resume on TCP") \
	AFR_STAT(LINK_CREATED, "links set up") \
	AFR_STAT(LINK_FAILED, "links that could not be set up") \
	AFR_STAT(LINK_DIED, "links lost") \
	AFR_STAT(LINK_REFUSED, "link requests refused: wrong secret, unknown version or limits") \
	AFR_STAT(LINK_NO_CREDIT, "times a connection waited for receive credits or send slots of a link") \
	AFR_STAT(PEER_VIOLATION, "connections ended because the peer broke the protocol") \
	AFR_STAT(RING_PAGES, "pages of ring memory allocated, ever") \
	AFR_STAT(RING_NO_MEMORY, "ring allocations that failed") \
	AFR_STAT(LINK_PROBE, "writes of nothing (iWARP: questions) on quiet links, to see that the peer is there") \
	AFR_STAT(OVER_LIMIT, "times a limit on connections, peers or requests refused one more") \
	AFR_STAT(LINK_POSTS, "work requests posted on links, of all kinds") \
	AFR_STAT(TX_ANNOUNCES, "messages posted only to tell the peer of receives") \
	AFR_STAT(TX_COMPLETIONS, "completions of signaled work requests") \
	AFR_STAT(RX_COMPLETIONS, "completions of receives") \
	AFR_STAT(COPIED_IN, "bytes copied from programs into send rings") \
	AFR_STAT(COPIED_OUT, "bytes copied from receive rings to programs") \
	AFR_STAT(WAKES_READ, "times a program that waited was woken to read") \
	AFR_STAT(WAKES_WRITE, "times a program that waited was woken to write") \
	AFR_STAT(LINK_PACED, "times bulk waited, to leave room for short messages on its link") \
	AFR_STAT(LINK_TAIL, "writes of nothing behind a last message, so that the device notices if that was lost") \
	AFR_STAT(DETACH_LATE, "ended connections that left their link without the peer's DETACH, after detach_timeout_ms")

#ifndef AFR_STATS_H
#define AFR_STATS_H

#include <linux/types.h>

struct net;

enum afr_stat {
#define AFR_STAT(name, sentence) AFR_STAT_##name,
	AFR_STATS
#undef AFR_STAT
	AFR_STAT_COUNT
};

struct afr_stats {
	u64 count[AFR_STAT_COUNT];
};

/* Module load, called by afr_netns_init(). */
void afr_stats_init(void);

/* Any context. */
void afr_stat_add(struct net *net, enum afr_stat stat, u64 n);
static inline void afr_stat_inc(struct net *net, enum afr_stat stat)
{
	afr_stat_add(net, stat, 1);
}

/* Sum over CPUs into @out. */
void afr_stats_read(struct net *net, struct afr_stats *out);
/* Lower-case name ("conn_framed") and sentence of a counter. */
const char *afr_stat_name(enum afr_stat stat);
const char *afr_stat_text(enum afr_stat stat);

#endif /* AFR_STATS_H */
