/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * Agreement on AF_RDMA in the TCP handshake: a client offers it with a TCP option in its SYN, and
 * the server consents with one in its SYN-ACK.
 */
#ifndef AFR_HANDSHAKE_H
#define AFR_HANDSHAKE_H

#include <linux/types.h>
#include <net/inet_connection_sock.h>

#include "proto/reason.h"

struct net;
struct sock;

/*
 * A client's offer, embedded in an object of the caller. From afr_handshake_arm() until settled()
 * or afr_handshake_disarm(), sk_user_data of the TCP socket points to it and handshake.c owns
 * sk_state_change.
 */
struct afr_handshake {
	/*
	 * Called once, when the handshake is over, unless afr_handshake_disarm() is called first.
	 * The TCP socket is ESTABLISHED (@reason is 0 if the peer consented, else why the
	 * connection falls back to TCP) or CLOSED (connect failed; @reason is
	 * AFR_REASON_TCP_ERROR). Called from sk_state_change, maybe in softirq, with the TCP
	 * socket locked and its sk_user_data and callbacks restored.
	 */
	void (*settled)(struct afr_handshake *offer, struct sock *sk, enum afr_reason reason);

	/* private to handshake.c */
	u32 nonce;
	u8 syns;		/* SYNs that carried the option */
	u8 reason;		/* enum afr_reason: why RDMA is ruled out, 0 = not yet */
	bool agreed;		/* a valid answer came while @reason was 0 */
	void (*state_change)(struct sock *sk);	/* the socket's own; NULL if not armed */
};

struct nf_hook_state;
struct sk_buff;
unsigned int afr_handshake_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

int afr_handshake_arm(struct afr_handshake *offer, struct sock *sk, enum afr_reason reason);
void afr_handshake_disarm(struct afr_handshake *offer, struct sock *sk);
u32 afr_handshake_nonce(const struct afr_handshake *offer);

int afr_handshake_listen(struct sock *sk, bool consents);
void afr_handshake_unlisten(struct sock *sk);
bool afr_handshake_consents(const struct sock *sk);
enum afr_reason afr_handshake_accepted(struct sock *sk, u32 *nonce);

#endif /* AFR_HANDSHAKE_H */
