/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Agreeing in the TCP handshake. Core TCP has no room for options of modules, so
 * a netfilter LOCAL_OUT hook edits our own SYNs and SYN-ACKs, and TCP itself
 * tells us what it accepted: the saved SYN on the server, the validated SYN-ACK
 * on the client.
 */
#ifndef AFR_TCPOPT_H
#define AFR_TCPOPT_H

#include <linux/types.h>
#include <net/inet_connection_sock.h>

#include "reason.h"

struct net;
struct sock;

/*
 * A client's offer. Embedded by the caller, armed before connect; from then until
 * settled() sk_user_data of the inner socket points to it and its
 * sk_state_change belongs to tcpopt.c.
 */
struct afr_offer {
	/*
	 * The handshake is over: the socket is ESTABLISHED (@reason 0: the peer
	 * agreed; else why the connection is plain) or CLOSED (connect failed; @reason
	 * is TCP_ERROR).
	 * Called once, from sk_state_change: the inner socket is locked, maybe in
	 * softirq; sk_user_data and all callbacks are the socket's own again.
	 */
	void (*settled)(struct afr_offer *offer, struct sock *sk, enum afr_reason reason);

	/* private to tcpopt.c */
	u32 nonce;
	u8 syns;		/* SYNs that carried the option */
	u8 reason;		/* enum afr_reason so far */
	bool agreed;
	void (*state_change)(struct sock *sk);
};

/* Register / unregister the pernet and the hooks' module-wide parts. */
int afr_tcpopt_init(void);
void afr_tcpopt_exit(void);

struct nf_hook_state;
struct sk_buff;
/* netfilter LOCAL_OUT. */
unsigned int afr_tcpopt_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

/* First use in @net registers the netfilter hooks (process context, idempotent). */
int afr_tcpopt_use(struct net *net);

/* Client, before connect; @sk is not connected and locked by the caller (lock_sock). */
int afr_offer_arm(struct afr_offer *offer, struct sock *sk, enum afr_reason reason);
/*
 * Give up an offer that has not settled (socket closed or connect refused at
 * once); @sk locked. Idempotent; settled() will not be called any more.
 */
void afr_offer_disarm(struct afr_offer *offer, struct sock *sk);
u32 afr_offer_nonce(const struct afr_offer *offer);

/*
 * Server. listen: mark the inner listener (TCP_SAVE_SYN, af_ops copy whose
 * syn_recv_sock gives the child its original ops back). @sk locked by the caller.
 * unlisten: before the listener is released.
 */
struct afr_listen_mark;
struct afr_listen_mark *afr_tcpopt_listen(struct sock *sk);	/* ERR_PTR */
void afr_tcpopt_unlisten(struct afr_listen_mark *mark, struct sock *sk);
/*
 * Accepted child @sk of a marked listener: did the client ask? 0 and the nonce,
 * or the AFR_REASON_* the connection is plain for. Frees the saved SYN.
 * Process context, @sk unlocked.
 */
enum afr_reason afr_tcpopt_accepted(struct sock *sk, u32 *nonce);

#endif /* AFR_TCPOPT_H */
