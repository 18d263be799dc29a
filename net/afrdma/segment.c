// SPDX-License-Identifier: GPL-2.0
/* Segments of the handshake: those on their way out, and the SYN that TCP has saved. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/tcp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/request_sock.h>

#include "compat.h"
#include "option.h"
#include "segment.h"

/* Does a TCP header follow the IP header and its options or extensions? */
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
 * afr_segment_is() - is this a SYN, or a SYN-ACK?
 * @skb: an outgoing packet, data at the IP header
 * @pf: NFPROTO_IPV4 or NFPROTO_IPV6
 * @ack: what the ACK flag has to be
 *
 * skb->sk does not tell: tunnels send other packets in the name of the socket.
 *
 * Context: Any.
 * Return: true if it is, with its whole TCP header in the linear part.
 */
bool afr_segment_is(const struct sk_buff *skb, u8 pf, bool ack)
{
	unsigned int offset = skb_transport_offset(skb);

	if (!carries_tcp(skb, pf) || skb_headlen(skb) < offset + sizeof(struct tcphdr) ||
	    skb_headlen(skb) < offset + tcp_hdrlen(skb))
		return false;
	return tcp_hdr(skb)->syn && tcp_hdr(skb)->ack == ack;
}

/**
 * afr_segment_options() - the options of a TCP header
 * @skb: a segment whose whole header is in the linear part
 * @len: out, their length in bytes
 *
 * Context: Any.
 * Return: the first.
 */
const u8 *afr_segment_options(const struct sk_buff *skb, unsigned int *len)
{
	*len = tcp_optlen(skb);
	return (const u8 *)(tcp_hdr(skb) + 1);
}

/**
 * afr_segment_room() - can the option be inserted?
 * @skb: a SYN or SYN-ACK
 *
 * Context: Any.
 * Return: 0; -EINVAL for data in the SYN (TCP Fast Open) or a finished checksum;
 * else as afr_option_room().
 */
int afr_segment_room(const struct sk_buff *skb)
{
	unsigned int len;
	const u8 *opts = afr_segment_options(skb, &len);

	if (skb->len != skb_transport_offset(skb) + tcp_hdrlen(skb) ||
	    skb->ip_summed != CHECKSUM_PARTIAL)
		return -EINVAL;
	return afr_option_room(opts, len);
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
 * afr_segment_insert() - put the option in front of the others
 * @skb: a SYN or SYN-ACK for which afr_segment_room() has said 0
 * @pf: NFPROTO_IPV4 or NFPROTO_IPV6
 * @opt: what to write
 *
 * In front, because nothing counts behind an end-of-options.
 *
 * Context: Any.
 * Return: 0, or -ENOMEM and @skb is as it was.
 */
int afr_segment_insert(struct sk_buff *skb, u8 pf, const struct afr_option *opt)
{
	unsigned int len = tcp_optlen(skb);
	struct tcphdr *th;
	u8 *opts;

	/* A SYN shares its buffer with the one TCP keeps for retransmission. */
	if ((skb_cloned(skb) || skb_tailroom(skb) < AFR_OPT_LEN) &&
	    pskb_expand_head(skb, 0, AFR_OPT_LEN, GFP_ATOMIC))
		return -ENOMEM;
	skb_put(skb, AFR_OPT_LEN);
	th = tcp_hdr(skb);
	opts = (u8 *)(th + 1);
	memmove(opts + AFR_OPT_LEN, opts, len);
	afr_option_write(opts, opt);
	th->doff += AFR_OPT_LEN / 4;
	/* The field holds the sum of the pseudo header, of which the length is part. */
	th->check = csum16_add(th->check, htons(AFR_OPT_LEN));
	update_ip(skb, pf);
	return 0;
}

static const u8 *saved_tcp(const struct saved_syn *syn)
{
	return syn->data + syn->mac_hdrlen + syn->network_hdrlen;
}

/**
 * afr_saved_find() - our option in a saved SYN
 * @syn: as TCP saved it, of a request or of a connection
 * @opt: out
 *
 * Context: Any; the caller sees to it that nobody frees @syn.
 * Return: as afr_option_find(); -EPROTO for an answer, which only servers give.
 */
int afr_saved_find(const struct saved_syn *syn, struct afr_option *opt)
{
	int err = afr_option_find(saved_tcp(syn) + sizeof(struct tcphdr),
				  syn->tcp_hdrlen - sizeof(struct tcphdr), opt);

	return !err && opt->server ? -EPROTO : err;
}

/*
 * The note is where the checksum was, and the urgent pointer, which means nothing without
 * its flag. A client may have put anything there: notes are such as it cannot know.
 */
static u8 *saved_note(const struct saved_syn *syn)
{
	static_assert(offsetofend(struct tcphdr, urg_ptr) - offsetof(struct tcphdr, check) == 4);
	return (u8 *)saved_tcp(syn) + offsetof(struct tcphdr, check);
}

/**
 * afr_saved_note() - read the note in a saved SYN
 * @syn: the saved SYN
 *
 * Context: Any.
 * Return: what afr_saved_set_note() wrote, or what the client put there.
 */
u32 afr_saved_note(const struct saved_syn *syn)
{
	return get_unaligned_be32(saved_note(syn));
}

/**
 * afr_saved_set_note() - leave a note for the connection that will take this SYN along
 * @syn: the saved SYN
 * @note: anything
 *
 * Context: Any; the caller has @syn to itself.
 */
void afr_saved_set_note(struct saved_syn *syn, u32 note)
{
	put_unaligned_be32(note, saved_note(syn));
}
