/* SPDX-License-Identifier: GPL-2.0 */
/* SYNs and SYN-ACKs on their way out: look at them, insert our option. */
#ifndef AFR_SEGMENT_H
#define AFR_SEGMENT_H

#include <linux/skbuff.h>
#include <linux/types.h>

struct afr_option;

/* A whole TCP header with SYN, and with ACK or not as @ack says? @pf: NFPROTO_IPV4 or 6. */
bool afr_segment_is(const struct sk_buff *skb, u8 pf, bool ack);
/* The options of its TCP header, @len bytes; also of a received segment. */
const u8 *afr_segment_options(const struct sk_buff *skb, unsigned int *len);
/* 0, or why the option cannot be inserted: as afr_option_room(), or -EINVAL. */
int afr_segment_room(const struct sk_buff *skb);
/* Insert it; afr_segment_room() has said 0. -ENOMEM leaves @skb as it was. */
int afr_segment_insert(struct sk_buff *skb, u8 pf, const struct afr_option *opt);

#endif /* AFR_SEGMENT_H */
