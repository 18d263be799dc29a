// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Parses and writes HELLO. No length from the peer is used before it has been checked. Each time
 * that afr_hello_parse() is called, it reads the fields behind the proof at most once.
 */
#include "hello.h"
#include "ring.h"

/**
 * afr_hello_proof() - compute the proof that a HELLO belongs to this connection
 * @client_nonce: nonce in the client's TCP option
 * @from_server: true if the server sends the HELLO
 *
 * The client's nonce suffices, as the server's nonce is computed from it. The proof keeps bytes of
 * an application from being taken for a HELLO (PA5). It is no secret from an attacker on the path,
 * who could rewrite the whole TCP stream anyway.
 *
 * Context: any.
 * Return: the value of afr_wire_hello.proof.
 */
u64 afr_hello_proof(u32 client_nonce, bool from_server)
{
	u64 mix = (u64)client_nonce << 1 | from_server;

	/* each step is invertible, so different inputs have different proofs */
	mix = (mix + 0x5a3c96e17b2d48f1ull) * 0xd6e8a7153f94c26bull;
	mix ^= mix >> 31;
	mix *= 0x8cb92f4d7a61e305ull;
	mix ^= mix >> 29;
	return mix;
}

static bool hello_ok(const struct afr_hello *hello, const struct afr_wire_hello *wire)
{
	return hello->length >= sizeof(*wire) && hello->length <= AFR_HELLO_MAX &&
	       be16_to_cpu(wire->version) == AFR_WIRE_VERSION &&
	       afr_ring_is_valid(hello->ring) && !wire->reserved;
}

/**
 * afr_hello_parse() - find out whether a direction begins with a HELLO
 * @buf: the bytes that have arrived, from the first of the direction on
 * @len: bytes in @buf
 * @proof: afr_hello_proof() for the sender of the direction
 * @out: filled on AFR_HELLO_YES only
 *
 * Whether a direction is framed depends only on its own first bytes (PA1). The first byte that
 * differs from magic or @proof means AFR_HELLO_NO. If all of magic and proof match, the bytes
 * cannot be those of an application (PA5).
 *
 * After AFR_HELLO_YES, the first @out->length bytes of the direction are the HELLO. Those behind
 * the fixed part need not have arrived: @len may be as small as the fixed part.
 *
 * Context: any.
 * Return: enum afr_hello_verdict.
 */
enum afr_hello_verdict afr_hello_parse(const u8 *buf, unsigned int len, u64 proof,
				       struct afr_hello *out)
{
	const unsigned int settled = offsetof(struct afr_wire_hello, length);
	struct afr_wire_hello wire = { .proof = cpu_to_be64(proof) };
	struct afr_hello hello = { 0 };

	memcpy(wire.magic, AFR_HELLO_MAGIC, AFR_HELLO_MAGIC_LEN);
	if (memcmp(buf, &wire, min(len, settled)))
		return AFR_HELLO_NO;
	if (len < sizeof(wire))
		return AFR_HELLO_MORE;

	memcpy(&wire, buf, sizeof(wire));
	hello.proof = proof;
	hello.length = be16_to_cpu(wire.length);
	hello.features = be32_to_cpu(wire.features);
	hello.ring = be32_to_cpu(wire.ring);
	hello.port = be16_to_cpu(wire.port);
	memcpy(hello.instance, wire.instance, sizeof(hello.instance));
	memcpy(hello.secret, wire.secret, sizeof(hello.secret));
	if (!hello_ok(&hello, &wire))
		return AFR_HELLO_BAD;
	*out = hello;
	return AFR_HELLO_YES;
}

/**
 * afr_hello_write() - write the fixed part of a HELLO
 * @to: destination
 * @hello: contents; its length includes the bytes that the caller may append
 *
 * Context: any.
 */
void afr_hello_write(struct afr_wire_hello *to, const struct afr_hello *hello)
{
	memcpy(to->magic, AFR_HELLO_MAGIC, AFR_HELLO_MAGIC_LEN);
	to->proof = cpu_to_be64(hello->proof);
	to->length = cpu_to_be16(hello->length);
	to->version = cpu_to_be16(AFR_WIRE_VERSION);
	to->features = cpu_to_be32(hello->features);
	memcpy(to->instance, hello->instance, sizeof(to->instance));
	memcpy(to->secret, hello->secret, sizeof(to->secret));
	to->ring = cpu_to_be32(hello->ring);
	to->port = cpu_to_be16(hello->port);
	to->reserved = 0;
}
