/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* HELLO: the first bytes of each framed direction. */
#ifndef AFR_PROTO_HELLO_H
#define AFR_PROTO_HELLO_H

#include "portable.h"
#include "wire.h"

/* A HELLO in host byte order; for the fields see struct afr_wire_hello. */
struct afr_hello {
	u64	proof;
	u32	features;
	u32	ring;
	u16	length;		/* of the whole HELLO, >= sizeof(struct afr_wire_hello) */
	u16	port;
	u8	instance[16];
	u8	secret[16];
};

/* Result of parsing the first bytes of a direction. */
enum afr_hello_verdict {
	AFR_HELLO_MORE,		/* no mismatch with magic or proof yet: wait for more bytes */
	AFR_HELLO_YES,		/* a valid HELLO, of which the fixed part has arrived */
	AFR_HELLO_NO,		/* not a HELLO: these bytes are the application's */
	AFR_HELLO_BAD,		/* magic and proof match, but the rest is invalid: reset */
};

u64 afr_hello_proof(u32 client_nonce, bool from_server);
enum afr_hello_verdict afr_hello_parse(const u8 *buf, unsigned int len, u64 proof,
				       struct afr_hello *out);
void afr_hello_write(struct afr_wire_hello *to, const struct afr_hello *hello);

#endif /* AFR_PROTO_HELLO_H */
