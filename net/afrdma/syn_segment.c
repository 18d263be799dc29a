// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Recognises outgoing SYNs and SYN-ACKs, inserts the AF_RDMA option into them, and returns the
 * options of segments. Reads the SYN that TCP has saved on a server, and stores the server's
 * decision in it.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/tcp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/request_sock.h>

#include "compat.h"
#include "proto/tcp_option.h"
#include "syn_segment.h"

/* Whether an unfragmented TCP header follows the IP header and its options or extensions. */
static bool carries_tcp(const struct sk_buff *skb, u8 pf)
{
	int offset = skb_transport_offset(skb);
	__be16 frag_off;
	u8 proto;

	if (pf == NFPROTO_IPV4)
		return ip_hdr(skb)->protocol == IPPROTO_TCP &&
		       ip_hdrlen(skb) == offset && !ip_is_fragment(ip_hdr(skb));
	proto = ipv6_hdr(skb)->nexthdr;
	return ipv6_skip_exthdr(skb, sizeof(struct ipv6hdr), &proto, &frag_off) == offset &&
	       proto == IPPROTO_TCP && !frag_off;
}

/**
 * afr_syn_segment_is() - test whether a packet is a SYN or a SYN-ACK
 * @skb: an outgoing packet, data at the IP header
 * @pf: NFPROTO_IPV4 or NFPROTO_IPV6
 * @ack: true to test for a SYN-ACK, false for a SYN
 *
 * The packet itself has to be examined: tunnels send other packets with the same skb->sk.
 *
 * Context: Any.
 * Return: true if it is, and its whole TCP header is in the linear part.
 */
bool afr_syn_segment_is(const struct sk_buff *skb, u8 pf, bool ack)
{
	unsigned int offset = skb_transport_offset(skb);

	if (!carries_tcp(skb, pf) || skb_headlen(skb) < offset + sizeof(struct tcphdr) ||
	    skb_headlen(skb) < offset + tcp_hdrlen(skb))
		return false;
	return tcp_hdr(skb)->syn && tcp_hdr(skb)->ack == ack;
}

/**
 * afr_syn_segment_options() - get the options of a TCP header
 * @skb: a sent or received segment whose whole TCP header is in the linear part
 * @len: out, length of the options in bytes
 *
 * Context: Any.
 * Return: the first byte of the options.
 */
const u8 *afr_syn_segment_options(const struct sk_buff *skb, unsigned int *len)
{
	*len = tcp_optlen(skb);
	return (const u8 *)(tcp_hdr(skb) + 1);
}

/**
 * afr_syn_segment_check_room() - check whether the option can be inserted
 * @skb: a SYN or SYN-ACK
 *
 * Context: Any.
 * Return: 0 if it can; -EINVAL if the segment carries data (TCP Fast Open) or its checksum is
 * already complete; else the error of afr_tcp_option_check_room().
 */
int afr_syn_segment_check_room(const struct sk_buff *skb)
{
	unsigned int len;
	const u8 *opts = afr_syn_segment_options(skb, &len);

	if (skb->len != skb_transport_offset(skb) + tcp_hdrlen(skb) ||
	    skb->ip_summed != CHECKSUM_PARTIAL)
		return -EINVAL;
	return afr_tcp_option_check_room(opts, len);
}

static void update_ip(struct sk_buff *skb, u8 pf)
{
	struct iphdr *iph = ip_hdr(skb);

	if (pf == NFPROTO_IPV4) {
		csum_replace2(&iph->check, iph->tot_len, htons(skb->len));
		iph->tot_len = htons(skb->len);
	} else {
		ipv6_hdr(skb)->payload_len = htons(skb->len - sizeof(struct ipv6hdr));
	}
}

/**
 * afr_syn_segment_insert() - insert the option before all others
 * @skb: a SYN or SYN-ACK for which afr_syn_segment_check_room() has returned 0
 * @pf: NFPROTO_IPV4 or NFPROTO_IPV6
 * @opt: option to insert
 *
 * The option goes first because receivers ignore whatever follows an End of Option List.
 *
 * Context: Any.
 * Return: 0, or -ENOMEM with @skb unchanged.
 */
int afr_syn_segment_insert(struct sk_buff *skb, u8 pf, const struct afr_tcp_option *opt)
{
	unsigned int len = tcp_optlen(skb);
	struct tcphdr *th;
	u8 *opts;

	/* A SYN may be a clone: TCP keeps the original, with the same buffer, to retransmit it. */
	if ((skb_cloned(skb) || skb_tailroom(skb) < AFR_OPT_LEN) &&
	    pskb_expand_head(skb, 0, AFR_OPT_LEN, GFP_ATOMIC))
		return -ENOMEM;
	skb_put(skb, AFR_OPT_LEN);
	th = tcp_hdr(skb);
	opts = (u8 *)(th + 1);
	memmove(opts + AFR_OPT_LEN, opts, len);
	afr_tcp_option_write(opts, opt);
	th->doff += AFR_OPT_LEN / 4;
	/* CHECKSUM_PARTIAL: the field holds the pseudo-header sum, which includes the length. */
	th->check = csum16_add(th->check, htons(AFR_OPT_LEN));
	update_ip(skb, pf);
	return 0;
}

static const u8 *saved_tcp(const struct saved_syn *syn)
{
	return syn->data + syn->mac_hdrlen + syn->network_hdrlen;
}

/**
 * afr_syn_segment_saved_find() - find the client's option in a saved SYN
 * @syn: saved by TCP in a request, or inherited from the request by the child socket
 * @opt: out, the option
 *
 * Context: Any; the caller prevents @syn from being freed.
 * Return: as afr_tcp_option_find(); also -EPROTO for an answer, which only servers may send.
 */
int afr_syn_segment_saved_find(const struct saved_syn *syn, struct afr_tcp_option *opt)
{
	int err = afr_tcp_option_find(saved_tcp(syn) + sizeof(struct tcphdr),
				      syn->tcp_hdrlen - sizeof(struct tcphdr), opt);

	return !err && opt->server ? -EPROTO : err;
}

/*
 * Returns the place in a saved SYN where the server stores its decision. The decision overwrites
 * the checksum and the urgent pointer, which have no use in a saved SYN. Until the decision is
 * written, these bytes come from the client, so callers store values that no client can guess.
 */
static u8 *saved_decision(const struct saved_syn *syn)
{
	static_assert(offsetofend(struct tcphdr, urg_ptr) - offsetof(struct tcphdr, check) == 4);
	return (u8 *)saved_tcp(syn) + offsetof(struct tcphdr, check);
}

/**
 * afr_syn_segment_saved_decision() - read the decision in a saved SYN
 * @syn: the saved SYN
 *
 * Context: Any.
 * Return: what afr_syn_segment_saved_set_decision() wrote, else bytes chosen by the client.
 */
u32 afr_syn_segment_saved_decision(const struct saved_syn *syn)
{
	return get_unaligned_be32(saved_decision(syn));
}

/**
 * afr_syn_segment_saved_set_decision() - write a decision into a saved SYN
 * @syn: the saved SYN of a request
 * @decision: a value that no client can guess, see saved_decision()
 *
 * The child socket inherits @syn, and with it the decision.
 *
 * Context: Any; the caller has exclusive access to @syn.
 */
void afr_syn_segment_saved_set_decision(struct saved_syn *syn, u32 decision)
{
	put_unaligned_be32(decision, saved_decision(syn));
}
