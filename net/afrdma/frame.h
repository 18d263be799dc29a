/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The framed stream: HELLO, then frames. Parsing never trusts a length before
 * it was compared with what arrived, and never reads a field twice.
 */
#ifndef AFR_FRAME_H
#define AFR_FRAME_H

#include "pure.h"
#include "wire.h"

/* HELLO, in host order. */
struct afr_hello {
	u64	proof;
	u32	features;
	u32	ring;
	u16	length;		/* on the wire, >= sizeof(struct afr_wire_hello) */
	u16	port;
	u8	instance[16];
	u8	secret[16];
};

/* What the first bytes of a direction are. */
enum afr_hello_verdict {
	AFR_HELLO_MORE,		/* a prefix of a HELLO: wait */
	AFR_HELLO_YES,		/* a whole valid HELLO */
	AFR_HELLO_NO,		/* not a HELLO: these bytes are the application's */
	AFR_HELLO_BAD,		/* magic and proof match, the rest is not valid: reset */
};

/* The proof a HELLO carries: 64 bits of both nonces and the role of its sender. */
u64 afr_hello_proof(u32 client_nonce, bool from_server);

/*
 * Look at the first @len bytes of a direction. Bytes are compared with magic and
 * @proof as far as they go; the first that differs means AFR_HELLO_NO. After
 * AFR_HELLO_YES, @out->length bytes belong to the HELLO (the tail past the fixed
 * part need not be in @buf: @len may be as small as the fixed part).
 */
enum afr_hello_verdict afr_hello_parse(const u8 *buf, unsigned int len, u64 proof,
				       struct afr_hello *out);
void afr_hello_write(struct afr_wire_hello *to, const struct afr_hello *hello);

/* One parsed frame, in host order. For DATA, @length is the count of stream bytes that follow. */
struct afr_frame {
	u8	type;
	u8	flags;
	u32	length;		/* DATA: stream bytes; unknown optional: body bytes to skip */
	union {
		u64	offset;	/* DATA, CREDIT, BLOCKED, FIN, FINACK, URGENT, URGENTACK */
		u32	reason;	/* ERROR */
		u16	port;	/* SERVICE */
		struct {
			u32	epoch, reason;
			u64	link, addr;
			u32	rkey, ring, span;
			u16	slot, flags;
			u64	consumed;
		} attach;
		struct {
			u32	epoch;
			u64	start;
		} move;
		struct {
			u32	epoch, reason;
			u64	received, consumed;
		} resume;
	};
};

/* Bytes of header plus fixed body that hold every field of any known frame. */
#define AFR_FRAME_HEAD_MAX	(sizeof(struct afr_wire_frame) + sizeof(struct afr_wire_attach))

/*
 * Parse header and fixed body out of @buf.
 * Returns the number of bytes they take (then @out is filled; for DATA the stream
 * bytes, for an unknown optional frame the body, follow them and are not
 * counted); 0 when more bytes are needed, @need told how many in all; -EPROTO
 * for a length that does not fit the type, a reserved field or unknown flag set,
 * an unknown type that is not optional, DATA of no bytes, or a field that can
 * never be right (ring not a power of two or out of bounds, slot out of range,
 * epoch 0, span neither ring nor 2 * ring, offsets beyond 2^62).
 */
int afr_frame_parse(const u8 *buf, unsigned int len, struct afr_frame *out,
		    unsigned int *need);

/* Write header and fixed body; returns their size. @to holds AFR_FRAME_HEAD_MAX bytes. */
unsigned int afr_frame_write(u8 *to, const struct afr_frame *frame);

/* "DATA", "CREDIT" ...; "unknown" for what is not in the table. */
const char *afr_frame_name(u8 type);

#endif /* AFR_FRAME_H */
