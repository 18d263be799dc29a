// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Agreement on AF_RDMA in the TCP handshake. TCP offers modules no way to add options.
 *
 * Outgoing: a netfilter LOCAL_OUT hook per address family inserts the option into SYNs of clients
 * for which afr_handshake_arm() has prepared an offer. If a listener consents, the hook also
 * inserts the option into the SYN-ACKs that answer such SYNs. It runs before all other hooks, so
 * that the administrator's rules see the segment as it leaves. A rule that strips the option makes
 * the connection fall back to TCP. If a rule strips the option from the SYN-ACK, the server's
 * output waits for the first bytes of the client, at most hello_timeout_ms.
 *
 * Incoming: no hook is used, as an inbound hook sees segments that TCP has not validated yet. The
 * server reads the SYN that TCP saved with the request. On the client, TCP passes the SYN-ACK that
 * it has accepted to sk_rx_dst_set().
 *
 * The module replaces sk_rx_dst_set() of clients and syn_recv_sock() of listeners, which are
 * members of the table icsk_af_ops. TCP has three such tables; the module keeps three modified
 * copies of each. TCP reads the pointer to the table without lock or RCU, which is safe because a
 * copy is never freed while the module is loaded.
 */
#include <linux/netfilter.h>
#include <linux/random.h>
#include <linux/tcp.h>
#include <net/inet_hashtables.h>
#include <net/request_sock.h>
#include <net/sock_reuseport.h>
#include <net/tcp.h>

#include "compat.h"
#include "handshake.h"
#include "netns.h"
#include "proto/tcp_option.h"
#include "syn_segment.h"

/* After this many SYNs with the option, omit it: the path may drop such SYNs. */
#define SYN_OPTION_MAX		3
/* After this many retransmissions, SYN-ACKs are sent without the option, for the same reason. */
#define SYNACK_RETRANS_MAX	2

static void offer_state_change(struct sock *sk);
static void offer_synack(struct sock *sk, const struct sk_buff *skb);
static bool saved_syn_has_consent(const struct sock *sk);

/* Modified copies of icsk_af_ops */

struct afr_listen_override {
	const struct inet_connection_sock_af_ops *orig;
	struct inet_connection_sock_af_ops client;	/* sk_rx_dst_set: offer_synack */
	struct inet_connection_sock_af_ops listener;	/* syn_recv_sock: listener_syn_recv */
	struct inet_connection_sock_af_ops silent;	/* the same, but no option in SYN-ACKs */
};

/* IPv4, IPv6, IPv4 mapped to IPv6, and one spare. Entries are never removed. */
static struct afr_listen_override ops_table[4];
static unsigned int ops_count;		/* count of complete entries: store-release, load-acquire */
static DEFINE_SPINLOCK(ops_lock);	/* protects additions to ops_table */

static struct afr_listen_override *ops_find(const struct inet_connection_sock_af_ops *ops)
{
	unsigned int count = smp_load_acquire(&ops_count); /* that many entries are complete */
	struct afr_listen_override *one;

	for (one = ops_table; one < ops_table + count; one++)
		if (ops == one->orig || ops == &one->client || ops == &one->listener ||
		    ops == &one->silent)
			return one;
	return NULL;
}

/*
 * The sk_user_data of a child points here if a SYN-ACK was to carry the server's consent. The
 * pointer is set while TCP still has the new child locked, and stays until afr_tcp_sock_install()
 * replaces it or accepted() finds no saved SYN. It has two purposes:
 * - accepted() knows of the consent even if the saved SYN is gone.
 * - The child cannot get into a sockmap, which would read HELLO and frames: sk_psock_init() refuses
 *   a socket whose sk_user_data is in use.
 * A child has no pointer if its listener had no override when TCP made the child. If the saved SYN
 * of such a child says that a SYN-ACK was to carry the consent, a sockmap may already have read
 * HELLO. So accepted() returns AFR_REASON_SYN_TAKEN, with which sock.c aborts the connection.
 */
static u64 consent_mark __aligned(8);

static bool has_consent(const struct sock *sk)
{
	return ((unsigned long)sk->sk_user_data & SK_USER_DATA_PTRMASK) ==
	       (unsigned long)&consent_mark;
}

/*
 * Replaces syn_recv_sock() of a listener. TCP clones a child from its listener, including the
 * pointer to the modified table. Restore TCP's own table before anyone else can lock the child:
 * with SO_REUSEPORT, TCP may move the child to the listener of a TCP program, where it may outlive
 * this module.
 */
static struct sock *listener_syn_recv(const struct sock *sk, struct sk_buff *skb,
				      struct request_sock *req, struct dst_entry *dst,
				      struct request_sock *req_unhash,
				      bool *own_req AFR_CHILD_INIT_PARAM)
{
	const struct inet_connection_sock_af_ops *ops = READ_ONCE(inet_csk(sk)->icsk_af_ops);
	struct afr_listen_override *override = ops_find(ops);
	struct sock *child;

	/*
	 * If the override was removed just now, @ops is already TCP's own table again. ops_find()
	 * finds that, too, and override->orig is then the same table.
	 */
	if (override)
		ops = override->orig;
	child = ops->syn_recv_sock(sk, skb, req, dst, req_unhash, own_req AFR_CHILD_INIT_ARG);
	if (!child)
		return NULL;
	override = ops_find(inet_csk(child)->icsk_af_ops);
	if (override)
		WRITE_ONCE(inet_csk(child)->icsk_af_ops, override->orig);
	if (saved_syn_has_consent(child)) {
		/* the child must not keep sk_shutdown of its listener: it has to exchange frames */
		WRITE_ONCE(child->sk_shutdown, 0);
		__rcu_assign_sk_user_data_with_flags(child, &consent_mark, SK_USER_DATA_NOCOPY);
	}
	return child;
}

/*
 * Returns the entry of ops_table for @ops, which is a table of TCP or a modified copy of one. Adds
 * the entry if there is none; returns NULL if ops_table is full.
 */
static struct afr_listen_override *ops_find_or_add(const struct inet_connection_sock_af_ops *ops)
{
	struct afr_listen_override *one = ops_find(ops);

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
		one->silent = one->listener;
		smp_store_release(&ops_count, ops_count + 1); /* the entry is complete */
	}
	spin_unlock_bh(&ops_lock);
	return one;
}

static void ops_restore(struct sock *sk)
{
	struct afr_listen_override *override = ops_find(inet_csk(sk)->icsk_af_ops);

	if (override)
		WRITE_ONCE(inet_csk(sk)->icsk_af_ops, override->orig);
}

/* Client */

/*
 * Returns the offer of a client's TCP socket, or NULL. The socket lock keeps the offer valid; for
 * a call without that lock, see client_syn().
 */
static struct afr_handshake *offer_of(const struct sock *sk)
{
	struct afr_handshake *offer;

	rcu_read_lock();
	offer = rcu_dereference_sk_user_data(sk);
	rcu_read_unlock();
	return offer;
}

/*
 * Inserts the option, and installs the table by which TCP calls offer_synack() for the SYN-ACK.
 * Returns 0, or the reason why the SYN leaves without the option.
 */
static enum afr_reason offer_insert(struct afr_handshake *offer, struct sock *sk,
				    struct sk_buff *skb, u8 pf)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct afr_tcp_option opt = { .nonce = offer->nonce };
	struct afr_listen_override *override;

	if (offer->syns >= SYN_OPTION_MAX)
		return AFR_REASON_OPTION_DROPPED;
	/*
	 * In afr_handshake_arm() this would be too early: afterwards, a connect() to a v4-mapped
	 * address replaces the table.
	 */
	override = ops_find_or_add(icsk->icsk_af_ops);
	if (!override || afr_syn_segment_check_room(skb) || afr_syn_segment_insert(skb, pf, &opt))
		return AFR_REASON_OPTION_NO_ROOM;
	WRITE_ONCE(icsk->icsk_af_ops, &override->client);
	offer->syns++;
	return AFR_REASON_NONE;
}

/*
 * Inserts the option into a SYN of @sk, if @sk has an offer. @sk is locked, except when a SYN that
 * has already passed this hook passes it again, delayed by a VRF device. Once a SYN has left
 * without the option, the connection falls back to TCP: the server may have saved that SYN, and
 * then does not know of the offer.
 */
static void client_syn(struct net *net, struct sock *sk, struct sk_buff *skb, u8 pf)
{
	struct afr_handshake *offer = offer_of(sk);
	struct afr_tcp_option opt;
	unsigned int len;
	const u8 *opts;

	/*
	 * If a VRF device has delayed the SYN until the handshake was over, sk_user_data may be
	 * NULL, or the connection. The connection was stored after sk_state_change had been reset,
	 * which the check below detects. An offer that ends after it was read here stays readable,
	 * because RCU delays the freeing of the AF_RDMA socket that contains it.
	 */
	smp_rmb();	/* pairs with the store to sk_user_data in afr_tcp_sock_install() */
	if (!offer || READ_ONCE(sk->sk_state_change) != offer_state_change)
		return;
	opts = afr_syn_segment_options(skb, &len);
	/* With a VRF device, the same SYN passes the hook twice. */
	if (!afr_tcp_option_find(opts, len, &opt) && opt.nonce == offer->nonce)
		return;
	if (!offer->reason)
		offer->reason = offer_insert(offer, sk, skb, pf);
	afr_netns_count(net, offer->reason ? AFR_STAT_SYN_NO_OPTION : AFR_STAT_SYN_OPTION);
}

/* Checks the answer to @offer in the SYN-ACK @skb. */
static enum afr_reason offer_check_answer(const struct afr_handshake *offer,
					  const struct sk_buff *skb)
{
	struct afr_tcp_option opt;
	unsigned int len;
	const u8 *opts;
	int err;

	opts = afr_syn_segment_options(skb, &len);
	err = afr_tcp_option_find(opts, len, &opt);
	if (err == -ENOENT)
		return AFR_REASON_PEER_PLAIN;
	if (err)
		return AFR_REASON_OPTION_BAD;
	if (!opt.server)
		return AFR_REASON_OPTION_ECHOED;
	if (opt.nonce != afr_tcp_option_answer(offer->nonce))
		return AFR_REASON_OPTION_BAD;
	return AFR_REASON_NONE;
}

/*
 * Replaces sk_rx_dst_set() of a client. TCP calls it with the SYN-ACK @skb that it has accepted,
 * and with later segments if the socket has no cached route.
 */
static void offer_synack(struct sock *sk, const struct sk_buff *skb)
{
	const struct inet_connection_sock_af_ops *ops = inet_csk(sk)->icsk_af_ops;
	struct afr_listen_override *override = ops_find(ops);
	struct afr_handshake *offer;
	enum afr_reason reason;

	if (override)
		ops = override->orig;
	ops->sk_rx_dst_set(sk, skb);
	if (sk->sk_state_change != offer_state_change || !tcp_hdr(skb)->syn)
		return;
	offer = offer_of(sk);
	reason = offer_check_answer(offer, skb);
	if (reason == AFR_REASON_OPTION_ECHOED || reason == AFR_REASON_OPTION_BAD)
		afr_netns_count(sock_net(sk), AFR_STAT_OPTION_BAD);
	if (offer->reason)
		return;
	offer->reason = reason;
	offer->agreed = !reason;
}

/*
 * Ends an offer: removes the af_ops override, restores the socket's own sk_state_change, and
 * clears sk_user_data.
 */
static void offer_remove(struct afr_handshake *offer, struct sock *sk)
{
	ops_restore(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_state_change = offer->state_change;
	rcu_assign_sk_user_data(sk, NULL);
	write_unlock_bh(&sk->sk_callback_lock);
	offer->state_change = NULL;
}

/* The sk_state_change of a socket that has an offer, until the handshake is over. */
static void offer_state_change(struct sock *sk)
{
	struct afr_handshake *offer = offer_of(sk);
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
	else	/* offer->reason may be 0: TCP calls no offer_synack() in a simultaneous open */
		reason = offer->reason ?: AFR_REASON_PEER_PLAIN;
	offer_remove(offer, sk);
	offer->settled(offer, sk, reason);
	state_change(sk);
}

/**
 * afr_handshake_arm() - offer AF_RDMA to the peer of the next connect()
 * @offer: with settled() set by the caller; may be freed an RCU grace period after settled() or
 *	afr_handshake_disarm() was called
 * @sk: a TCP socket that is neither connected nor listening
 * @reason: AFR_REASON_NONE; or the reason not to offer AF_RDMA, which settled() reports if TCP
 *	connects
 *
 * Context: Process, @sk locked.
 * Return: 0; -EBUSY if sk_user_data of @sk is in use; -EOPNOTSUPP if @reason is AFR_REASON_NONE and
 * afr_handshake_hook_use() has not succeeded. After an error, @sk can still connect, but only in
 * fallback mode, and settled() is not called.
 */
int afr_handshake_arm(struct afr_handshake *offer, struct sock *sk, enum afr_reason reason)
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
 * afr_handshake_disarm() - give up an offer that has not settled
 * @offer: nothing happens unless it is armed
 * @sk: its TCP socket
 *
 * Called after a connect() that has failed, after connect(AF_UNSPEC), and by close(). settled() is
 * not called afterwards.
 *
 * Context: Process, @sk locked.
 */
void afr_handshake_disarm(struct afr_handshake *offer, struct sock *sk)
{
	sock_owned_by_me(sk);
	if (offer->state_change)
		offer_remove(offer, sk);
}

/**
 * afr_handshake_nonce() - get the nonce of an offer
 * @offer: armed or settled
 *
 * Each end computes the proof in its HELLO from this nonce. The proof shows that HELLO belongs to
 * the same connection as the SYN.
 *
 * Context: Any.
 * Return: the nonce in the option of the SYN.
 */
u32 afr_handshake_nonce(const struct afr_handshake *offer)
{
	return offer->nonce;
}

/* Server */

/* A decision is the reason for a refusal, or this value if a SYN-ACK is to carry the answer. */
#define DECISION_ANSWERED	0xffff

/* The value that server_decide() stores in a saved SYN: a keyed hash, which no client can forge. */
static u32 decision_hash(const struct sock *sk, u32 nonce, u32 decision)
{
	return siphash_2u32(nonce, decision, &afr_net(sock_net(sk))->secret_key);
}

/*
 * Whether TCP may move a child to another listener of the same port. That may be the listener of a
 * TCP program, which would read HELLO as data.
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

/* Why a SYN-ACK must not carry the option, even if the client has offered AF_RDMA. */
static enum afr_reason server_refusal(const struct request_sock *req, const struct sk_buff *skb)
{
	const struct sock *listener = req->rsk_listener;

	if (!afr_netns_enabled(afr_net(sock_net(listener))))
		return AFR_REASON_FAMILY_OFF;
	if (listener_migrates(listener))
		return AFR_REASON_MIGRATION;
	if (READ_ONCE(listener->sk_shutdown))	/* its children inherit it */
		return AFR_REASON_SHUT_BEFORE;
	if (req->num_retrans >= SYNACK_RETRANS_MAX)
		return AFR_REASON_OPTION_DROPPED;
	return afr_syn_segment_check_room(skb) ? AFR_REASON_OPTION_NO_ROOM : AFR_REASON_NONE;
}

/*
 * Returns whether the SYN-ACK is to carry the answer: true if the request is hashed, its saved SYN
 * offers AF_RDMA, and there is no @refusal. Stores decision_hash() of the decision in the saved
 * SYN, which belongs to the request only while the request is hashed: later a child takes it over,
 * and frees it without RCU.
 */
static bool server_decide(struct request_sock *req, enum afr_reason refusal, u32 *nonce)
{
	struct inet_hashinfo *hashinfo =
		sock_net(req->rsk_listener)->ipv4.tcp_death_row.hashinfo;
	spinlock_t *lock = inet_ehash_lockp(hashinfo, req->rsk_hash);
	struct afr_tcp_option opt;
	int err = -ENOENT;
	u32 answered;

	spin_lock_bh(lock);
	if (sk_hashed(req_to_sk(req)) && req->saved_syn)
		err = afr_syn_segment_saved_find(req->saved_syn, &opt);
	if (!err) {
		/*
		 * A later @refusal does not replace DECISION_ANSWERED: the client may accept the
		 * SYN-ACK that carried the answer.
		 */
		answered = decision_hash(req->rsk_listener, opt.nonce, DECISION_ANSWERED);
		if (afr_syn_segment_saved_decision(req->saved_syn) != answered)
			afr_syn_segment_saved_set_decision(req->saved_syn, !refusal ? answered :
							   decision_hash(req->rsk_listener,
									 opt.nonce, refusal));
		*nonce = opt.nonce;
	}
	spin_unlock_bh(lock);
	if (err && err != -ENOENT)
		afr_netns_count(sock_net(req->rsk_listener), AFR_STAT_OPTION_BAD);
	return !err && !refusal;
}

/**
 * afr_handshake_consents() - whether a listener consents to clients that offer AF_RDMA
 * @sk: a TCP socket
 *
 * Context: Any.
 * Return: true if the last call of afr_handshake_listen() in which @sk was in state CLOSE was with
 * consent, and the override that it installed is still there. Calls while @sk listens change
 * nothing.
 */
bool afr_handshake_consents(const struct sock *sk)
{
	const struct inet_connection_sock_af_ops *ops = READ_ONCE(inet_csk(sk)->icsk_af_ops);
	struct afr_listen_override *override = ops_find(ops);

	return override && ops == &override->listener;
}

/*
 * Inserts the answer into a SYN-ACK of a request, if server_decide() permits. SYN-ACKs without
 * request (SYN cookies) or from a full socket (TCP Fast Open, simultaneous open) never get the
 * option: these connections fall back to TCP.
 */
static void server_synack(struct net *net, struct request_sock *req, struct sk_buff *skb, u8 pf)
{
	struct afr_tcp_option opt = { .server = true };
	struct afr_tcp_option found;
	unsigned int len;
	const u8 *opts;
	u32 nonce;

	if (!req->rsk_listener || !afr_handshake_consents(req->rsk_listener))
		return;
	opts = afr_syn_segment_options(skb, &len);
	if (!afr_tcp_option_find(opts, len, &found))
		return;		/* already inserted: packets of a VRF device pass the hook twice */
	if (!server_decide(req, server_refusal(req, skb), &nonce))
		return;
	opt.nonce = afr_tcp_option_answer(nonce);
	if (!afr_syn_segment_insert(skb, pf, &opt))
		afr_netns_count(net, AFR_STAT_SYNACK_OPTION);
}

/**
 * afr_handshake_listen() - install the af_ops override of a TCP socket that is about to listen
 * @sk: a TCP socket
 * @consents: consent to clients that offer AF_RDMA; needs afr_handshake_hook_use()
 *
 * Does nothing if @sk is listening already. The override is installed even without @consents:
 * @sk may listen with consent at one time and without consent at another. A request that arrived
 * during one of the two may become a child during the other, and listener_syn_recv() has to handle
 * that child, too. Sets TCP_SAVE_SYN if @consents. Without an override, which happens if ops_table
 * is full, no accepted connection becomes framed.
 *
 * Context: Process, @sk unlocked.
 * Return: 0; -EINVAL if @sk is in a state in which listen() fails.
 */
int afr_handshake_listen(struct sock *sk, bool consents)
{
	struct afr_listen_override *override;
	int err = 0;

	lock_sock(sk);
	if (sk->sk_state == TCP_CLOSE) {
		override = ops_find_or_add(inet_csk(sk)->icsk_af_ops);
		if (override && consents && !tcp_sk(sk)->save_syn)
			tcp_sk(sk)->save_syn = 1;
		if (override)
			WRITE_ONCE(inet_csk(sk)->icsk_af_ops,
				   consents ? &override->listener : &override->silent);
	} else if (sk->sk_state != TCP_LISTEN) {
		err = -EINVAL;
	}
	release_sock(sk);
	return err;
}

/**
 * afr_handshake_unlisten() - remove the af_ops override of a listener
 * @sk: a TCP socket
 *
 * Called by close() for every socket, and by connect(), except with AF_UNSPEC, for a socket that
 * was a listener and is in state CLOSE now.
 *
 * Context: Process, @sk locked.
 */
void afr_handshake_unlisten(struct sock *sk)
{
	sock_owned_by_me(sk);
	ops_restore(sk);
}

/*
 * Identifies the decision whose hash server_decide() has stored in the saved SYN. Returns
 * AFR_REASON_NONE if a SYN-ACK was to carry the answer (then only a lack of memory can have kept
 * the answer out), the reason if the decision was a refusal, or AFR_REASON_OPTION_NO_ROOM if no
 * hash was stored.
 */
static enum afr_reason saved_syn_reason(const struct sock *sk, u32 nonce)
{
	static const enum afr_reason refusals[] = {
		AFR_REASON_FAMILY_OFF, AFR_REASON_MIGRATION, AFR_REASON_OPTION_DROPPED,
		AFR_REASON_SHUT_BEFORE,
	};
	u32 stored = afr_syn_segment_saved_decision(tcp_sk(sk)->saved_syn);
	unsigned int i;

	if (stored == decision_hash(sk, nonce, DECISION_ANSWERED))
		return AFR_REASON_NONE;
	for (i = 0; i < ARRAY_SIZE(refusals); i++)
		if (stored == decision_hash(sk, nonce, refusals[i]))
			return refusals[i];
	return AFR_REASON_OPTION_NO_ROOM;
}

/* Whether the client of a new child offered AF_RDMA and the answer was due in a SYN-ACK. */
static bool saved_syn_has_consent(const struct sock *sk)
{
	const struct saved_syn *syn = tcp_sk(sk)->saved_syn;
	struct afr_tcp_option opt;

	return syn && !afr_syn_segment_saved_find(syn, &opt) && !saved_syn_reason(sk, opt.nonce);
}

/* See afr_handshake_accepted(). */
static enum afr_reason accepted(struct sock *sk, u32 *nonce)
{
	const struct saved_syn *syn = tcp_sk(sk)->saved_syn;
	struct afr_tcp_option opt;
	int err = syn ? afr_syn_segment_saved_find(syn, &opt) : -ENOENT;

	sock_owned_by_me(sk);
	if (!has_consent(sk)) {
		if (err)
			return err == -ENOENT ? AFR_REASON_CLIENT_PLAIN : AFR_REASON_OPTION_BAD;
		/*
		 * If the saved SYN gives no reason, the answer was due, but the override of the
		 * listener was removed before TCP made the child.
		 */
		return saved_syn_reason(sk, opt.nonce) ?: AFR_REASON_SYN_TAKEN;
	}
	if (err) {
		rcu_assign_sk_user_data(sk, NULL);
		return AFR_REASON_SYN_TAKEN;
	}
	*nonce = opt.nonce;
	/* sk_user_data points to consent_mark until afr_tcp_sock_install() replaces the pointer */
	return AFR_REASON_NONE;
}

/**
 * afr_handshake_accepted() - get the result of the handshake for an accepted connection
 * @sk: accepted TCP socket
 * @nonce: out, the client's nonce, if the result is 0
 *
 * Frees the saved SYN, and removes an af_ops override that @sk may have got from its listener. The
 * result 0 means that the client offered AF_RDMA and the answer was due in a SYN-ACK; the client's
 * first bytes show whether an answer has arrived.
 *
 * Context: Process, @sk unlocked.
 * Return: 0; AFR_REASON_SYN_TAKEN if the server has consented, but the connection has to end: the
 * saved SYN is gone, so HELLO cannot be verified, or @sk is unprotected from sockmaps, so a sockmap
 * may have taken HELLO; else the reason why the connection falls back to TCP.
 */
enum afr_reason afr_handshake_accepted(struct sock *sk, u32 *nonce)
{
	enum afr_reason reason;

	lock_sock(sk);
	ops_restore(sk);	/* if the override came while TCP was making the child */
	reason = accepted(sk, nonce);
	tcp_saved_syn_free(tcp_sk(sk));
	release_sock(sk);
	return reason;
}

/* Outgoing packets */

/**
 * afr_handshake_out() - netfilter hook LOCAL_OUT: insert the option into SYNs and SYN-ACKs
 * @priv: unused
 * @skb: the packet
 * @state: of the hook: address family and network namespace
 *
 * Context: Any but hard irq.
 * Return: NF_ACCEPT.
 */
unsigned int afr_handshake_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct sock *sk = skb->sk;

	switch (sk ? READ_ONCE(sk->sk_state) : TCP_CLOSE) {
	case TCP_SYN_SENT:
		if (READ_ONCE(sk->sk_state_change) == offer_state_change &&
		    afr_syn_segment_is(skb, state->pf, false))
			client_syn(state->net, sk, skb, state->pf);
		break;
	case TCP_NEW_SYN_RECV:
		if (afr_syn_segment_is(skb, state->pf, true))
			server_synack(state->net, inet_reqsk(sk), skb, state->pf);
		break;
	}
	return NF_ACCEPT;
}
