/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Segments of the handshake: SYNs and SYN-ACKs on their way out, into which our
 * option is inserted, and the SYN that TCP has saved.
 */
#ifndef AFR_SEGMENT_H
#define AFR_SEGMENT_H

#include <linux/skbuff.h>
#include <linux/types.h>

struct afr_option;
struct saved_syn;

/* A whole TCP header with SYN, and with ACK or not as @ack says? @pf: NFPROTO_IPV4 or 6. */
bool afr_segment_is(const struct sk_buff *skb, u8 pf, bool ack);
/* The options of its TCP header, @len bytes; also of a received segment. */
const u8 *afr_segment_options(const struct sk_buff *skb, unsigned int *len);
/* 0, or why the option cannot be inserted: as afr_option_room(), or -EINVAL. */
int afr_segment_room(const struct sk_buff *skb);
/* Insert it; afr_segment_room() has said 0. -ENOMEM leaves @skb as it was. */
int afr_segment_insert(struct sk_buff *skb, u8 pf, const struct afr_option *opt);

/* The client's option: as afr_option_find(), and -EPROTO if it is an answer. */
int afr_saved_find(const struct saved_syn *syn, struct afr_option *opt);
/* 32 bits in a saved SYN that are ours to use; at first as the client has chosen. */
u32 afr_saved_note(const struct saved_syn *syn);
void afr_saved_set_note(struct saved_syn *syn, u32 note);

#endif /* AFR_SEGMENT_H */
