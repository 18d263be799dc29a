/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Segments of the TCP handshake: outgoing SYNs and SYN-ACKs, into which the AF_RDMA option is
 * inserted; the SYN-ACK that a client has received; and the SYN that TCP has saved on the server.
 */
#ifndef AFR_SYN_SEGMENT_H
#define AFR_SYN_SEGMENT_H

#include <linux/skbuff.h>
#include <linux/types.h>

struct afr_tcp_option;
struct saved_syn;

bool afr_syn_segment_is(const struct sk_buff *skb, u8 pf, bool ack);
const u8 *afr_syn_segment_options(const struct sk_buff *skb, unsigned int *len);
int afr_syn_segment_check_room(const struct sk_buff *skb);
int afr_syn_segment_insert(struct sk_buff *skb, u8 pf, const struct afr_tcp_option *opt);

int afr_syn_segment_saved_find(const struct saved_syn *syn, struct afr_tcp_option *opt);
u32 afr_syn_segment_saved_decision(const struct saved_syn *syn);
void afr_syn_segment_saved_set_decision(struct saved_syn *syn, u32 decision);

#endif /* AFR_SYN_SEGMENT_H */
