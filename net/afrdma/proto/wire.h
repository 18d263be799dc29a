/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The layouts and constants of the wire format, except those of frames (frame.h). Fields are
 * big-endian. Offsets and cursors are absolute 64-bit byte counts of one direction; an immediate
 * has room for 16 bits of a cursor only (cursor.h). In the comments on fields, the sender is the
 * end that sends the structure. Documentation/networking/afrdma-wire.rst shows the structures of
 * both headers, and repeats the comments on fields and constants; selftests/lint/wire_doc.py
 * compares them.
 */
#ifndef AFR_PROTO_WIRE_H
#define AFR_PROTO_WIRE_H

#include "portable.h"

#define AFR_WIRE_VERSION	1

/*
 * TCP option in SYN and SYN-ACK (RFC 6994: kind 254 and a 32-bit experiment identifier). The server
 * answers with the server role bit and a transform of the nonce, so that an option that a middlebox
 * only echoes is never taken for consent.
 */
#define AFR_OPT_KIND		254
#define AFR_OPT_LEN		12
#define AFR_OPT_EXID		0xaf4d41d7u
#define AFR_OPT_ROLE_SERVER	0x01	/* in flags: this is the answer */

struct afr_wire_option {
	u8	kind;		/* AFR_OPT_KIND */
	u8	len;		/* AFR_OPT_LEN */
	__be32	exid;		/* AFR_OPT_EXID */
	u8	version;	/* AFR_WIRE_VERSION */
	u8	flags;		/* AFR_OPT_* */
	__be32	nonce;		/* client: random; server: afr_tcp_option_answer() of it */
} __packed;
static_assert(sizeof(struct afr_wire_option) == AFR_OPT_LEN, "option size");

/*
 * First bytes of a framed direction. Hardly any protocol starts with the first byte of the magic. A
 * reader takes the bytes for a HELLO only if both magic and proof match (PA5).
 */
#define AFR_HELLO_MAGIC		"\xf7" "AFRDMA" "\x01"
#define AFR_HELLO_MAGIC_LEN	8
#define AFR_HELLO_MAX		512	/* longest HELLO a reader accepts */
#define AFR_WINDOW_INITIAL	16384	/* a client's send window before the server's HELLO */
#define AFR_RING_MIN		16384	/* smallest ring; ring sizes are powers of two */
#define AFR_RING_MAX		(1u << 26)	/* largest ring; its cursor unit is 4096 bytes */

#define AFR_FEATURE_SEND_RING	0xff	/* features: log2 of the send ring, 0 = AFR_RING_MIN */

struct afr_wire_hello {
	u8	magic[AFR_HELLO_MAGIC_LEN];
	__be64	proof;		/* afr_hello_proof() of the client's nonce and the sender's role */
	__be16	length;		/* of the whole HELLO; bytes past this struct are skipped */
	__be16	version;	/* AFR_WIRE_VERSION */
	__be32	features;	/* AFR_FEATURE_*: unknown bits are ignored */
	u8	instance[16];	/* random for each network namespace of each module load */
	u8	secret[16];	/* server: the client presents it to connect a link; client: 0 */
	__be32	ring;		/* size of the sender's receive ring, and of the peer's window */
	__be16	port;		/* server: rdma_cm port of its cm listener, 0 = none; client: 0 */
	__be16	reserved;
} __packed;
static_assert(sizeof(struct afr_wire_hello) == 64, "HELLO size");

/*
 * The 32-bit immediate of a message on a link. A write to a channel has the channel id in the high
 * half and the cursor in the low half. Announcements and DETACH have one of three other values in
 * the high half; the comment on each value says what the low half contains.
 */
#define AFR_CHANNEL_MAX		0xffef	/* largest channel id; the smallest is 0 */
#define AFR_CHANNEL_ASK		0xfffd	/* an AFR_CHANNEL_CREDITS that requests one in return */
#define AFR_CHANNEL_DETACH	0xfffe	/* low half: channel id; last message to that channel */
#define AFR_CHANNEL_CREDITS	0xffff	/* low half: receives posted so far, modulo 2^16 */

/* Body of the SEND that takes the place of the immediate on iWARP, which has none. */
struct afr_wire_note {
	__be32	imm;		/* the immediate */
	__be32	len;		/* bytes of the write before it, 0 = there was none */
} __packed;
static_assert(sizeof(struct afr_wire_note) == 8, "note size");

/* rdma_cm private data of the connect request; at most 56 bytes, to fit all transports. */
#define AFR_CM_MAGIC		0xaf4d41d8u

struct afr_wire_cm_req {
	__be32	magic;		/* AFR_CM_MAGIC */
	u8	version;	/* AFR_WIRE_VERSION */
	u8	tclass;		/* traffic class of the link's packets, 0 = default of rdma_cm */
	__be16	depth;		/* receives that the sender has posted: the first credits */
	u8	instance[16];	/* of the sender, as in its HELLO */
	u8	secret[16];	/* from the receiver's HELLO */
	__be64	link;		/* id of this link */
} __packed;
static_assert(sizeof(struct afr_wire_cm_req) == 48, "CM request size");

/*
 * rdma_cm private data of the accept (reason 0) and of a reject (reason set). In a reject, only
 * magic and reason have a meaning.
 */
struct afr_wire_cm_rep {
	__be32	magic;		/* AFR_CM_MAGIC */
	__be16	depth;		/* receives that the sender has posted: the first credits */
	__be16	reserved;
	__be32	reason;		/* reason of a reject, 0 in an accept */
	u8	instance[16];	/* of the sender, as in its HELLO */
	__be64	link;		/* id of the link, as in the request */
} __packed;
static_assert(sizeof(struct afr_wire_cm_rep) == 36, "CM reply size");

#endif /* AFR_PROTO_WIRE_H */
