/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Everything two hosts must agree on, and nothing else. Fields are big-endian;
 * offsets and cursors are absolute 64-bit byte counts of one direction.
 * Documentation/networking/afrdma-wire.rst draws these structures; a script
 * compares the two.
 */
#ifndef AFR_WIRE_H
#define AFR_WIRE_H

#include "pure.h"

#define AFR_WIRE_VERSION	1

/*
 * TCP option in SYN and SYN-ACK (RFC 6994: kind 254 and a 32-bit experiment
 * identifier). The server answers with its own role bit and a transform of the
 * nonce, so that an option merely echoed by a middlebox is never consent.
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
	__be32	nonce;		/* client: random; server: afr_option_answer() of it */
} __packed;
static_assert(sizeof(struct afr_wire_option) == AFR_OPT_LEN, "option size");

/*
 * First bytes of a framed direction. The first byte starts no known protocol;
 * magic and proof together are what a reader commits on.
 */
#define AFR_HELLO_MAGIC		"\xf7" "AFRDMA" "\x01"
#define AFR_HELLO_MAGIC_LEN	8
#define AFR_HELLO_MAX		512	/* longest HELLO a reader accepts */
#define AFR_WINDOW_INITIAL	16384	/* bytes a sender may send before the peer's HELLO */
#define AFR_RING_MIN		16384	/* smallest ring, a power of two as all are */
#define AFR_RING_MAX		(1u << 26)	/* a cursor unit is at most AFR_RING_MIN / 4 */

#define AFR_FEATURE_SEND_RING	0xff	/* features: log2 of my send ring, 0 = AFR_RING_MIN */

struct afr_wire_hello {
	u8	magic[AFR_HELLO_MAGIC_LEN];
	__be64	proof;		/* afr_hello_proof() of the two nonces and the role */
	__be16	length;		/* of the whole HELLO; bytes past this struct are skipped */
	__be16	version;	/* AFR_WIRE_VERSION */
	__be32	features;	/* AFR_FEATURE_*: ignore what is unknown */
	u8	instance[16];	/* random per host and module load: who this host is */
	u8	secret[16];	/* present this when connecting a link to me */
	__be32	ring;		/* size of my receive ring: the window at offset 0 */
	__be16	port;		/* rdma_cm service port of my listener, 0 = none */
	__be16	reserved;
} __packed;
static_assert(sizeof(struct afr_wire_hello) == 64, "HELLO size");

/* Frames behind the HELLO. */
enum afr_frame_type {
	AFR_FRAME_DATA		= 1,	/* bytes of the stream */
	AFR_FRAME_CREDIT	= 2,	/* my reader has consumed up to here */
	AFR_FRAME_ATTACH	= 3,	/* client: my ring on this link */
	AFR_FRAME_ATTACHED	= 4,	/* server: and mine, or why not */
	AFR_FRAME_BLOCKED	= 5,	/* I have bytes and no window */
	AFR_FRAME_MOVE		= 6,	/* from here on, this direction uses the link */
	AFR_FRAME_RESUME	= 7,	/* link lost: this is what I have */
	AFR_FRAME_FIN		= 8,	/* the stream ends here */
	AFR_FRAME_FINACK	= 9,	/* I have received all of it */
	AFR_FRAME_URGENT	= 10,	/* urgent byte at this offset */
	AFR_FRAME_ERROR		= 11,	/* I end the connection: reason */
	AFR_FRAME_URGENTACK	= 12,	/* I know of the urgent byte at this offset */
	AFR_FRAME_SERVICE	= 13,	/* server, optional: I have a device, connect here */
};

#define AFR_FRAME_OPTIONAL	0x01	/* flags: skip me if my type is unknown */
#define AFR_FRAME_BODY_MAX	(64 * 1024 + 8)	/* body of any frame */

struct afr_wire_frame {
	u8	type;		/* enum afr_frame_type */
	u8	flags;		/* AFR_FRAME_* */
	__be16	reserved;	/* 0 */
	__be32	length;		/* of the body that follows */
} __packed;
static_assert(sizeof(struct afr_wire_frame) == 8, "frame header size");

/* DATA: the stream bytes follow this. */
struct afr_wire_data {
	__be64	offset;
} __packed;
static_assert(sizeof(struct afr_wire_data) == 8, "DATA size");

/* CREDIT, BLOCKED, FIN, FINACK, URGENT, URGENTACK: one offset each. */
struct afr_wire_offset {
	__be64	offset;
} __packed;
static_assert(sizeof(struct afr_wire_offset) == 8, "offset size");

/* ATTACH and ATTACHED. */
#define AFR_ATTACH_ACTIVE	0x1	/* flags: my end of the link is the connecting one */

struct afr_wire_attach {
	__be32	epoch;		/* counts attaches of this connection, from 1 */
	__be32	reason;		/* ATTACHED: why not, 0 = attached; ATTACH: 0 */
	__be64	link;		/* link id, chosen by the end that connected the link */
	__be64	addr;		/* my receive ring: address ... */
	__be32	rkey;		/* ... and key for RDMA writes */
	__be32	ring;		/* size, as in my HELLO */
	__be16	slot;		/* put this into the immediates of writes to me */
	__be16	flags;		/* AFR_ATTACH_* */
	__be32	span;		/* bytes writable at addr: ring, or 2 * ring if mirrored */
	__be64	consumed;	/* my reader's cursor: the start of immediate cursors */
} __packed;
static_assert(sizeof(struct afr_wire_attach) == 48, "ATTACH size");

struct afr_wire_move {
	__be32	epoch;
	__be32	reserved;
	__be64	start;		/* first offset that travels on the link */
} __packed;
static_assert(sizeof(struct afr_wire_move) == 16, "MOVE size");

struct afr_wire_resume {
	__be32	epoch;
	__be32	reason;		/* why I left the link */
	__be64	received;	/* contiguous bytes I hold or have consumed */
	__be64	consumed;	/* my reader's cursor */
} __packed;
static_assert(sizeof(struct afr_wire_resume) == 24, "RESUME size");

struct afr_wire_error {
	__be32	reason;
} __packed;
static_assert(sizeof(struct afr_wire_error) == 4, "ERROR size");

struct afr_wire_service {
	__be16	port;		/* as in HELLO, not 0 */
	__be16	reserved;
} __packed;
static_assert(sizeof(struct afr_wire_service) == 4, "SERVICE size");

/*
 * The 32-bit immediate of every write on a link: slot in the high half, cursor
 * in the low half. Three slot values are messages about the link itself.
 */
#define AFR_SLOT_MAX		0xffef	/* last slot of a connection; slots start at 0 */
#define AFR_SLOT_ASK		0xfffd	/* as AFR_SLOT_CREDITS, and wants one in return */
#define AFR_SLOT_DETACH		0xfffe	/* low half: slot whose writer has ended */
#define AFR_SLOT_CREDITS	0xffff	/* low half: receives posted so far, modulo 2^16 */

/* iWARP has no immediates: a SEND with this stands for one. */
struct afr_wire_note {
	__be32	imm;		/* the immediate */
	__be32	len;		/* bytes of the write before it, 0 = there was none */
} __packed;
static_assert(sizeof(struct afr_wire_note) == 8, "note size");

/* rdma_cm private data of the connect request; fits all transports (<= 56). */
#define AFR_CM_MAGIC		0xaf4d41d8u

struct afr_wire_cm_req {
	__be32	magic;		/* AFR_CM_MAGIC */
	u8	version;	/* AFR_WIRE_VERSION */
	u8	reserved;
	__be16	depth;		/* receives I post: your first credits */
	u8	instance[16];	/* who I am, as in my HELLO */
	u8	secret[16];	/* what your HELLO told me */
	__be64	link;		/* id of this link */
} __packed;
static_assert(sizeof(struct afr_wire_cm_req) == 48, "CM request size");

/* rdma_cm private data of the accept, and of a reject (reason set). */
struct afr_wire_cm_rep {
	__be32	magic;		/* AFR_CM_MAGIC */
	__be16	depth;		/* receives I post: your first credits */
	__be16	reserved;
	__be32	reason;		/* reject: why */
	u8	instance[16];	/* who I am, as in my HELLO */
	__be64	link;		/* id of the link, repeated */
} __packed;
static_assert(sizeof(struct afr_wire_cm_rep) == 36, "CM reply size");

#endif /* AFR_WIRE_H */
