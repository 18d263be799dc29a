// SPDX-License-Identifier: GPL-2.0
/*
 * Agreeing in the TCP handshake.
 *
 * Out: one netfilter LOCAL_OUT hook per family inserts the option into SYNs of
 * armed clients and into SYN-ACKs of marked listeners. It runs first of all
 * hooks, so that every rule of the administrator sees the segment as it leaves;
 * a rule that strips the option makes the connection plain, and nothing else.
 *
 * In: no hook. A segment seen by an inbound hook has not passed TCP's checks yet.
 * The server reads the SYN that TCP saved with the request; the client is called
 * by TCP with the SYN-ACK it has accepted, through sk_rx_dst_set.
 *
 * That call, and syn_recv_sock of listeners, are members of the table
 * icsk_af_ops. TCP has three such tables, so we keep one altered copy of each
 * for the life of the module: tcp.c reads the pointer without lock or RCU, and a
 * copy that is never freed needs neither.
 */
#include <linux/netfilter.h>
#include <linux/random.h>
#include <linux/tcp.h>
#include <net/inet_hashtables.h>
#include <net/request_sock.h>
#include <net/sock_reuseport.h>
#include <net/tcp.h>

#include "compat.h"
#include "netns.h"
#include "option.h"
#include "segment.h"
#include "stats.h"
#include "tcpopt.h"

/* SYNs that carry the option before we suspect that something drops them for it. */
#define SYN_OPTION_MAX		3
/* The same for SYN-ACKs, counted in retransmissions. */
#define SYNACK_RETRANS_MAX	2

static void offer_state_change(struct sock *sk);
static void offer_synack(struct sock *sk, const struct sk_buff *skb);
static bool saved_consent(const struct sock *sk);

/* Altered tables */

struct afr_listen_mark {
	const struct inet_connection_sock_af_ops *orig;
	struct inet_connection_sock_af_ops client;	/* sk_rx_dst_set is ours */
	struct inet_connection_sock_af_ops listener;	/* syn_recv_sock is ours */
};

/* IPv4, IPv6, IPv4 mapped to IPv6, and one to spare. Entries are never removed. */
static struct afr_listen_mark ops_table[4];
static unsigned int ops_count;		/* whole entries: store-release, load-acquire */
static DEFINE_SPINLOCK(ops_lock);	/* adding one */

static struct afr_listen_mark *ops_find(const struct inet_connection_sock_af_ops *ops)
{
	unsigned int count = smp_load_acquire(&ops_count); /* entries below it are whole */
	struct afr_listen_mark *one;

	for (one = ops_table; one < ops_table + count; one++)
		if (ops == one->orig || ops == &one->client || ops == &one->listener)
			return one;
	return NULL;
}

/*
 * sk_user_data of a child that was consented for, from before anybody but TCP can see it until
 * accept(): what is decided by it must not hang on what BPF programs can reach. And no sockmap
 * takes such a child: it would read HELLO and frames (sk_psock_init() refuses a taken socket).
 */
static u64 consent_mark __aligned(8);

static bool has_consent(const struct sock *sk)
{
	return ((unsigned long)sk->sk_user_data & SK_USER_DATA_PTRMASK) ==
	       (unsigned long)&consent_mark;
}

/*
 * A child is cloned from its listener, table included. It gets TCP's own back
 * before anybody else can lock it: with reuseport it may end at a listener that
 * is not ours, and outlive us.
 */
static struct sock *listener_syn_recv(const struct sock *sk, struct sk_buff *skb,
				      struct request_sock *req, struct dst_entry *dst,
				      struct request_sock *req_unhash,
				      bool *own_req AFR_CHILD_INIT_PARAM)
{
	const struct inet_connection_sock_af_ops *ops = READ_ONCE(inet_csk(sk)->icsk_af_ops);
	struct afr_listen_mark *mark = ops_find(ops);
	struct sock *child;

	/* The listener may have been unmarked after TCP looked: then ops is TCP's. */
	if (mark)
		ops = mark->orig;
	child = ops->syn_recv_sock(sk, skb, req, dst, req_unhash, own_req AFR_CHILD_INIT_ARG);
	if (!child)
		return NULL;
	mark = ops_find(inet_csk(child)->icsk_af_ops);
	if (mark)
		WRITE_ONCE(inet_csk(child)->icsk_af_ops, mark->orig);
	if (saved_consent(child))
		__rcu_assign_sk_user_data_with_flags(child, &consent_mark, SK_USER_DATA_NOCOPY);
	return child;
}

/* The copies made of @ops, one of TCP's tables; NULL if there are too many. */
static struct afr_listen_mark *ops_make(const struct inet_connection_sock_af_ops *ops)
{
	struct afr_listen_mark *one = ops_find(ops);

	if (one)
		return one;
	spin_lock_bh(&ops_lock);
	one = ops_find(ops);
	if (!one && ops_count < ARRAY_SIZE(ops_table)) {
		one = &ops_table[ops_count];
		one->orig = ops;
		one->client = *ops;
		one->client.sk_rx_dst_set = offer_synack;
		one->listener = *ops;
		one->listener.syn_recv_sock = listener_syn_recv;
		smp_store_release(&ops_count, ops_count + 1); /* the entry is whole */
	}
	spin_unlock_bh(&ops_lock);
	return one;
}

static void ops_restore(struct sock *sk)
{
	struct afr_listen_mark *mark = ops_find(inet_csk(sk)->icsk_af_ops);

	if (mark)
		WRITE_ONCE(inet_csk(sk)->icsk_af_ops, mark->orig);
}

/* Client */

/* The offer of an armed socket; the socket lock keeps it there. */
static struct afr_offer *offer_of(const struct sock *sk)
{
	struct afr_offer *offer;

	rcu_read_lock();
	offer = rcu_dereference_sk_user_data(sk);
	rcu_read_unlock();
	return offer;
}

/* Insert the option, and see to it that TCP shows us the answer. */
static enum afr_reason offer_insert(struct afr_offer *offer, struct sock *sk,
				    struct sk_buff *skb, u8 pf)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct afr_option opt = { .nonce = offer->nonce };
	struct afr_listen_mark *mark;

	if (offer->syns >= SYN_OPTION_MAX)
		return AFR_REASON_OPTION_DROPPED;
	/* Not sooner: connect() to a mapped address changes the table. */
	mark = ops_make(icsk->icsk_af_ops);
	if (!mark || afr_segment_room(skb) || afr_segment_insert(skb, pf, &opt))
		return AFR_REASON_OPTION_NO_ROOM;
	WRITE_ONCE(icsk->icsk_af_ops, &mark->client);
	offer->syns++;
	return AFR_REASON_NONE;
}

/*
 * A SYN of an armed socket, which is locked. Once a SYN went without the option
 * the connection is plain: the server may have kept that one.
 */
static void client_syn(struct net *net, struct sock *sk, struct sk_buff *skb, u8 pf)
{
	struct afr_offer *offer = offer_of(sk);
	struct afr_option opt;
	unsigned int len;
	const u8 *opts;

	if (!offer)
		return;		/* settled since, as a VRF device may send it later */
	opts = afr_segment_options(skb, &len);
	/* A VRF device shows the same SYN twice. */
	if (!afr_option_find(opts, len, &opt) && opt.nonce == offer->nonce)
		return;
	if (!offer->reason)
		offer->reason = offer_insert(offer, sk, skb, pf);
	afr_stat_inc(net, offer->reason ? AFR_STAT_SYN_NO_OPTION : AFR_STAT_SYN_OPTION);
}

/* What the SYN-ACK says about our offer. */
static enum afr_reason offer_judge(const struct afr_offer *offer, const struct sk_buff *skb)
{
	struct afr_option opt;
	unsigned int len;
	const u8 *opts;
	int err;

	opts = afr_segment_options(skb, &len);
	err = afr_option_find(opts, len, &opt);
	if (err == -ENOENT)
		return AFR_REASON_PEER_PLAIN;
	if (err)
		return AFR_REASON_OPTION_BAD;
	if (!opt.server)
		return AFR_REASON_OPTION_ECHOED;
	if (opt.nonce != afr_option_answer(offer->nonce))
		return AFR_REASON_OPTION_BAD;
	return AFR_REASON_NONE;
}

/* sk_rx_dst_set: TCP has accepted the SYN-ACK @skb. */
static void offer_synack(struct sock *sk, const struct sk_buff *skb)
{
	const struct inet_connection_sock_af_ops *ops = inet_csk(sk)->icsk_af_ops;
	struct afr_listen_mark *mark = ops_find(ops);
	struct afr_offer *offer;
	enum afr_reason reason;

	if (mark)
		ops = mark->orig;
	ops->sk_rx_dst_set(sk, skb);
	if (sk->sk_state_change != offer_state_change || !tcp_hdr(skb)->syn)
		return;
	offer = offer_of(sk);
	reason = offer_judge(offer, skb);
	if (reason == AFR_REASON_OPTION_ECHOED || reason == AFR_REASON_OPTION_BAD)
		afr_stat_inc(sock_net(sk), AFR_STAT_OPTION_BAD);
	if (offer->reason)
		return;
	offer->reason = reason;
	offer->agreed = !reason;
}

/* Give the socket its callbacks back. */
static void offer_end(struct afr_offer *offer, struct sock *sk)
{
	ops_restore(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_state_change = offer->state_change;
	rcu_assign_sk_user_data(sk, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
	offer->state_change = NULL;
}

/* sk_state_change of an armed socket. */
static void offer_state_change(struct sock *sk)
{
	struct afr_offer *offer = offer_of(sk);
	void (*state_change)(struct sock *sk) = offer->state_change;
	enum afr_reason reason;

	sock_owned_by_me(sk);
	if (sk->sk_state == TCP_SYN_SENT || sk->sk_state == TCP_SYN_RECV) {
		state_change(sk);
		return;
	}
	if (sk->sk_state == TCP_CLOSE)
		reason = AFR_REASON_TCP_ERROR;
	else if (offer->agreed && sk->sk_state == TCP_ESTABLISHED)
		reason = AFR_REASON_NONE;
	else	/* no SYN-ACK at all: both ends connected at the same time */
		reason = offer->reason ?: AFR_REASON_PEER_PLAIN;
	offer_end(offer, sk);
	offer->settled(offer, sk, reason);
	state_change(sk);
}

/**
 * afr_offer_arm() - ask the peer of the next connect() for AF_RDMA
 * @offer: with settled set; stays where it is until settled or disarmed
 * @sk: an inner socket that is neither connected nor listening
 * @reason: AFR_REASON_NONE, or why nothing is asked: settled() will say so
 *
 * Context: Process, @sk locked.
 * Return: 0; -EBUSY if somebody else uses the callbacks of @sk; -EOPNOTSUPP
 * without afr_tcpopt_use(): connect, and it is plain.
 */
int afr_offer_arm(struct afr_offer *offer, struct sock *sk, enum afr_reason reason)
{
	sock_owned_by_me(sk);
	if (!reason && !READ_ONCE(afr_net(sock_net(sk))->hooks))
		return -EOPNOTSUPP;
	if (sk->sk_user_data)
		return -EBUSY;
	offer->nonce = get_random_u32();
	offer->syns = 0;
	offer->reason = reason;
	offer->agreed = false;
	write_lock_bh(&sk->sk_callback_lock);
	offer->state_change = sk->sk_state_change;
	__rcu_assign_sk_user_data_with_flags(sk, offer, SK_USER_DATA_NOCOPY);
	sk->sk_state_change = offer_state_change;
	write_unlock_bh(&sk->sk_callback_lock);
	return 0;
}

/**
 * afr_offer_disarm() - give up an offer that has not settled
 * @offer: armed, settled or never armed
 * @sk: its socket
 *
 * For a connect() that failed at once and for close(). settled() is not called
 * any more.
 *
 * Context: Process, @sk locked.
 */
void afr_offer_disarm(struct afr_offer *offer, struct sock *sk)
{
	sock_owned_by_me(sk);
	if (offer->state_change)
		offer_end(offer, sk);
}

/**
 * afr_offer_nonce() - what the client's HELLO proves
 * @offer: armed or settled
 *
 * Return: the nonce of the SYN.
 */
u32 afr_offer_nonce(const struct afr_offer *offer)
{
	return offer->nonce;
}

/* Server */

/* The note in a saved SYN, which no client may foretell: an enum afr_reason, or we answered. */
#define NOTE_ANSWERED	0xffff

static u32 note_of(const struct sock *sk, u32 nonce, u32 what)
{
	return siphash_2u32(nonce, what, &afr_net(sock_net(sk))->secret_key);
}

/*
 * With migration a child that we consented for may be handed to a listener of
 * the same port that is a TCP program, which would read our HELLO.
 */
static bool listener_migrates(const struct sock *sk)
{
	struct sock_reuseport *reuse;

	if (!sk->sk_reuseport)
		return false;
	if (READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_migrate_req))
		return true;
	reuse = rcu_dereference(sk->sk_reuseport_cb);
	return reuse && rcu_access_pointer(reuse->prog);
}

/* Why we will not answer, whatever the client asked. */
static enum afr_reason server_refuses(const struct request_sock *req, const struct sk_buff *skb)
{
	const struct sock *listener = req->rsk_listener;

	if (!afr_net_enabled(afr_net(sock_net(listener))))
		return AFR_REASON_FAMILY_OFF;
	if (listener_migrates(listener))
		return AFR_REASON_MIGRATION;
	if (req->num_retrans >= SYNACK_RETRANS_MAX)
		return AFR_REASON_OPTION_DROPPED;
	return afr_segment_room(skb) ? AFR_REASON_OPTION_NO_ROOM : AFR_REASON_NONE;
}

/*
 * Did the client ask, and do we answer? The saved SYN belongs to the request only
 * while that is hashed: a child takes it along, and frees it without RCU.
 */
static bool server_decide(struct request_sock *req, enum afr_reason refusal, u32 *nonce)
{
	struct inet_hashinfo *hashinfo =
		sock_net(req->rsk_listener)->ipv4.tcp_death_row.hashinfo;
	spinlock_t *lock = inet_ehash_lockp(hashinfo, req->rsk_hash);
	struct afr_option opt;
	int err = -ENOENT;
	u32 answered;

	spin_lock_bh(lock);
	if (sk_hashed(req_to_sk(req)) && req->saved_syn)
		err = afr_saved_find(req->saved_syn, &opt);
	if (!err) {
		/* One answer is enough: which SYN-ACK the client takes is not known. */
		answered = note_of(req->rsk_listener, opt.nonce, NOTE_ANSWERED);
		if (afr_saved_note(req->saved_syn) != answered)
			afr_saved_set_note(req->saved_syn, !refusal ? answered :
					   note_of(req->rsk_listener, opt.nonce, refusal));
		*nonce = opt.nonce;
	}
	spin_unlock_bh(lock);
	if (err && err != -ENOENT)
		afr_stat_inc(sock_net(req->rsk_listener), AFR_STAT_OPTION_BAD);
	return !err && !refusal;
}

static bool listener_is_marked(const struct sock *sk)
{
	const struct inet_connection_sock_af_ops *ops = READ_ONCE(inet_csk(sk)->icsk_af_ops);
	struct afr_listen_mark *mark = ops_find(ops);

	return mark && ops == &mark->listener;
}

/*
 * A SYN-ACK for a request. With SYN cookies there is no request, and a SYN-ACK of
 * a full socket is TCP Fast Open or a simultaneous connect: all of them plain.
 */
static void server_synack(struct net *net, struct request_sock *req, struct sk_buff *skb, u8 pf)
{
	struct afr_option opt = { .server = true };
	struct afr_option found;
	unsigned int len;
	const u8 *opts;
	u32 nonce;

	if (!req->rsk_listener || !listener_is_marked(req->rsk_listener))
		return;
	opts = afr_segment_options(skb, &len);
	if (!afr_option_find(opts, len, &found))
		return;		/* shown twice by a VRF device */
	if (!server_decide(req, server_refuses(req, skb), &nonce))
		return;
	opt.nonce = afr_option_answer(nonce);
	if (!afr_segment_insert(skb, pf, &opt))
		afr_stat_inc(net, AFR_STAT_SYNACK_OPTION);
}

/**
 * afr_tcpopt_listen() - let a listener answer clients that ask
 * @sk: an inner socket, best before its listen()
 *
 * Context: Process, @sk locked.
 * Return: the mark for afr_tcpopt_unlisten(), or ERR_PTR: -EOPNOTSUPP without
 * afr_tcpopt_use(), -EBUSY if @sk has an unknown table. Without a mark every
 * accepted connection is plain.
 */
struct afr_listen_mark *afr_tcpopt_listen(struct sock *sk)
{
	struct afr_listen_mark *mark;

	sock_owned_by_me(sk);
	if (!READ_ONCE(afr_net(sock_net(sk))->hooks))
		return ERR_PTR(-EOPNOTSUPP);
	mark = ops_make(inet_csk(sk)->icsk_af_ops);
	if (!mark)
		return ERR_PTR(-EBUSY);
	if (!tcp_sk(sk)->save_syn)
		tcp_sk(sk)->save_syn = 1;
	WRITE_ONCE(inet_csk(sk)->icsk_af_ops, &mark->listener);
	return mark;
}

/**
 * afr_tcpopt_unlisten() - take the mark off, before the listener is released
 * @mark: from afr_tcpopt_listen(); NULL and ERR_PTR are fine
 * @sk: the listener
 *
 * Context: Process, @sk locked.
 */
void afr_tcpopt_unlisten(struct afr_listen_mark *mark, struct sock *sk)
{
	sock_owned_by_me(sk);
	if (!IS_ERR_OR_NULL(mark))
		ops_restore(sk);
}

/* The note of a SYN that asked: what server_refuses() can say, else we answered. */
static enum afr_reason saved_verdict(const struct sock *sk, u32 nonce)
{
	static const enum afr_reason refusals[] = {
		AFR_REASON_FAMILY_OFF, AFR_REASON_MIGRATION, AFR_REASON_OPTION_DROPPED,
	};
	u32 note = afr_saved_note(tcp_sk(sk)->saved_syn);
	unsigned int i;

	if (note == note_of(sk, nonce, NOTE_ANSWERED))
		return AFR_REASON_NONE;
	for (i = 0; i < ARRAY_SIZE(refusals); i++)
		if (note == note_of(sk, nonce, refusals[i]))
			return refusals[i];
	return AFR_REASON_OPTION_NO_ROOM;
}

/* Did the client of a new child ask, and did a SYN-ACK leave with our answer? */
static bool saved_consent(const struct sock *sk)
{
	const struct saved_syn *syn = tcp_sk(sk)->saved_syn;
	struct afr_option opt;

	return syn && !afr_saved_find(syn, &opt) && !saved_verdict(sk, opt.nonce);
}

static enum afr_reason accepted(struct sock *sk, u32 *nonce)
{
	const struct saved_syn *syn = tcp_sk(sk)->saved_syn;
	struct afr_option opt;
	int err = syn ? afr_saved_find(syn, &opt) : -ENOENT;

	sock_owned_by_me(sk);
	if (!has_consent(sk)) {
		if (err)
			return err == -ENOENT ? AFR_REASON_CLIENT_PLAIN : AFR_REASON_OPTION_BAD;
		return saved_verdict(sk, opt.nonce) ?: AFR_REASON_OPTION_NO_ROOM; /* never none */
	}
	if (err) {
		rcu_assign_sk_user_data(sk, NULL);
		return AFR_REASON_SYN_TAKEN;
	}
	*nonce = opt.nonce;
	return AFR_REASON_NONE;		/* the mark stays until afr_hook_install() replaces it */
}

/**
 * afr_tcpopt_accepted() - did the client of an accepted connection ask?
 * @sk: the accepted inner socket
 * @nonce: the client's, when the answer is 0
 *
 * Frees the saved SYN. 0 means that the client asked and at least one SYN-ACK left
 * with our answer; its first bytes tell whether it saw that.
 *
 * Context: Process, @sk unlocked.
 * Return: 0; AFR_REASON_SYN_TAKEN, and the connection has to end, as we have consented but
 * cannot know the client's HELLO; or another reason: the connection is plain.
 */
enum afr_reason afr_tcpopt_accepted(struct sock *sk, u32 *nonce)
{
	enum afr_reason reason;

	lock_sock(sk);
	reason = accepted(sk, nonce);
	tcp_saved_syn_free(tcp_sk(sk));
	release_sock(sk);
	return reason;
}

/* Packets that leave */

/**
 * afr_tcpopt_out() - a packet leaves: insert the option, if it is a segment of ours
 * @priv: unused
 * @skb: the packet
 * @state: of the netfilter hook LOCAL_OUT, see tcpopt_hook.c
 *
 * Context: Any but hard irq.
 * Return: NF_ACCEPT.
 */
unsigned int afr_tcpopt_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct sock *sk = skb->sk;

	switch (sk ? READ_ONCE(sk->sk_state) : TCP_CLOSE) {
	case TCP_SYN_SENT:
		if (READ_ONCE(sk->sk_state_change) == offer_state_change &&
		    afr_segment_is(skb, state->pf, false))
			client_syn(state->net, sk, skb, state->pf);
		break;
	case TCP_NEW_SYN_RECV:
		if (afr_segment_is(skb, state->pf, true))
			server_synack(state->net, inet_reqsk(sk), skb, state->pf);
		break;
	}
	return NF_ACCEPT;
}
