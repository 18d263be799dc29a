// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Injections on the link: false immediates, addresses, keys, lengths and operations, messages that
 * are not posted, floods.
 */
#include "../proto/imm.h"
#include "../proto/wire.h"
#include "inject.h"

/* Changes of messages that are about to be posted */

static bool is_data(const struct ib_rdma_wr *wr)
{
	return wr->wr.num_sge;
}

static bool is_credits(const struct ib_rdma_wr *wr)
{
	u16 id = afr_inject_channel(wr);

	return id == AFR_CHANNEL_CREDITS || id == AFR_CHANNEL_ASK;
}

static bool is_detach(const struct ib_rdma_wr *wr)
{
	return afr_inject_channel(wr) == AFR_CHANNEL_DETACH;
}

static bool is_channel(const struct ib_rdma_wr *wr)
{
	return afr_inject_channel(wr) <= AFR_CHANNEL_MAX;
}

static void set_channel(struct ib_rdma_wr *wr, u16 id)
{
	wr->wr.ex.imm_data = cpu_to_be32(afr_imm_pack(id, afr_inject_cursor(wr)));
}

static void set_low(struct ib_rdma_wr *wr, u64 low)
{
	wr->wr.ex.imm_data = cpu_to_be32(afr_imm_pack(afr_inject_channel(wr), low));
}

/*
 * Returns @value plus "arg" if that was given, else any 16 bits. Unlike afr_inject_bend(), it does
 * not prefer extremes: here all values are equally meaningful.
 */
static u16 bend16(u16 value)
{
	return afr_byzantine.has_arg ? value + afr_byzantine.arg : afr_inject_rnd();
}

static bool imm_any(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (afr_inject_due())
		wr->wr.ex.imm_data = cpu_to_be32(afr_inject_rnd());
	return false;
}

static bool imm_channel(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_channel(wr) && afr_inject_due())
		set_channel(wr, bend16(afr_inject_channel(wr)) % (AFR_CHANNEL_MAX + 1));
	return false;
}

static bool imm_reserved(struct afr_link *link, struct ib_rdma_wr *wr)
{
	u16 reserved = AFR_CHANNEL_ASK - AFR_CHANNEL_MAX - 1;

	if (is_channel(wr) && afr_inject_due())
		set_channel(wr, AFR_CHANNEL_MAX + 1 + afr_inject_rnd() % reserved);
	return false;
}

static bool imm_cursor(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_channel(wr) && afr_inject_due())
		set_low(wr, bend16(afr_inject_cursor(wr)));
	return false;
}

/* Each message that is changed carries the cursor of the first one, or "arg" if that was given. */
static bool imm_frozen(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (!is_channel(wr) || !afr_inject_due())
		return false;
	if (!afr_byzantine.has_arg)
		afr_byzantine.arg = afr_inject_cursor(wr);
	afr_byzantine.has_arg = true;
	set_low(wr, afr_byzantine.arg);
	return false;
}

static bool imm_credits(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_credits(wr) && afr_inject_due())
		set_low(wr, bend16(afr_inject_cursor(wr)));
	return false;
}

/* Without "arg", makes DETACH for a random id from 0 to 7: such an id is probably in use. */
static bool imm_detach(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (!is_channel(wr) || !afr_inject_due())
		return false;
	set_low(wr, afr_byzantine.has_arg ? afr_inject_channel(wr) + afr_byzantine.arg :
					    afr_inject_rnd() % 8);
	set_channel(wr, AFR_CHANNEL_DETACH);
	return false;
}

static bool imm_bytes(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (!is_data(wr) || !afr_inject_due())
		return false;
	/* valid but for the bytes: no announcement or DETACH of the unmodified module has any */
	set_low(wr, afr_byzantine.has_arg ? afr_inject_channel(wr) : link->sq.credit.announced);
	set_channel(wr, afr_byzantine.has_arg ? AFR_CHANNEL_DETACH : AFR_CHANNEL_CREDITS);
	return false;
}

static bool write_addr(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due())
		wr->remote_addr = afr_inject_bend(wr->remote_addr);
	return false;
}

static bool write_near(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due())
		wr->remote_addr = afr_inject_rnd() % (wr->remote_addr + 1);
	return false;
}

static bool write_rkey(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due())
		wr->rkey = afr_inject_bend(wr->rkey);
	return false;
}

static bool write_key(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due())
		wr->rkey ^= 1 + afr_inject_rnd() % 255;
	return false;
}

static bool write_short(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due())
		wr->wr.sg_list->length = 1 + afr_inject_rnd() % wr->wr.sg_list->length;
	return false;
}

/*
 * The memory region of a mirrored ring lists its pages twice, so it continues behind the end of
 * the ring. If "arg" is the size of the local send ring, and the peer's receive ring is as large,
 * a write that is longer by "arg" fits, unless the original write crosses the end of a ring. In
 * that case the original write is left alone: a device would refuse the longer one before the
 * peer's module could check it. Regions begin at address 0, so a write crosses the end of a ring
 * if one of its addresses plus its length exceeds "arg".
 */
static bool write_long(struct afr_link *link, struct ib_rdma_wr *wr)
{
	struct ib_sge *sge = wr->wr.sg_list;

	if (!is_data(wr) ||
	    (afr_byzantine.has_arg &&
	     max(wr->remote_addr, sge->addr) + sge->length > afr_byzantine.arg) ||
	    !afr_inject_due())
		return false;
	sge->length += afr_byzantine.has_arg ? afr_byzantine.arg : 1 + afr_inject_rnd() % 65536;
	return false;
}

/*
 * Was @link the link of the channel that last posted DETACH? stale_rkey() uses the rkey of that
 * channel again, and flood_ended() its id.
 */
static bool had_ended_channel(const struct afr_link *link)
{
	return afr_byzantine.ended.link == link->id;
}

static bool stale_rkey(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (had_ended_channel(link) && is_data(wr) && afr_inject_due())
		wr->rkey = afr_byzantine.ended.rkey;
	return false;
}

static bool mute_write(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_data(wr) && afr_inject_due();
}

static bool mute_channel(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_channel(wr) && afr_inject_due();
}

static bool mute_detach(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_detach(wr) && afr_inject_due();
}

static bool mute_credits(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_credits(wr) && afr_inject_due();
}

static bool op(struct ib_rdma_wr *wr, enum ib_wr_opcode opcode)
{
	if (is_data(wr) && afr_inject_due())
		wr->wr.opcode = opcode;
	return false;
}

static bool op_read(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return op(wr, IB_WR_RDMA_READ);
}

static bool op_write(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return op(wr, IB_WR_RDMA_WRITE);
}

static bool op_send(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return op(wr, IB_WR_SEND);
}

static bool op_send_imm(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return op(wr, IB_WR_SEND_WITH_IMM);
}

static bool op_send_inv(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due()) {
		wr->wr.opcode = IB_WR_SEND_WITH_INV;
		wr->wr.ex.invalidate_rkey = wr->rkey;
		wr->wr.num_sge = 0;	/* the peer's receives have no buffer */
	}
	return false;
}

static bool op_send_empty(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due()) {
		wr->wr.opcode = IB_WR_SEND;
		wr->wr.num_sge = 0;
	}
	return false;
}

static bool op_broken(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_inject_due())
		wr->wr.sg_list->lkey ^= 0xff00;
	return false;
}

/*
 * Floods: messages in addition to those of the module. Each uses a receive credit: a message
 * without a credit might find no receive at the peer, and break the queue pair.
 */

static bool flood_any(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_inject_rnd();
	return true;
}

static bool flood_channel(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_inject_rnd() % (AFR_CHANNEL_MAX + 1), afr_inject_rnd());
	return true;
}

static bool flood_cursor(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_byzantine.last.id, afr_inject_rnd());
	return true;
}

static bool flood_empty(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_byzantine.last.id, afr_byzantine.last.cursor);
	return true;
}

/*
 * Repeats, to the same address, the last write that carried bytes on the channel of the last
 * message. Returns false if no write carried bytes.
 */
static bool flood_again(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	if (!afr_byzantine.last.sge.length)
		return false;
	wr->wr.sg_list = &afr_byzantine.last.sge;
	wr->wr.num_sge = 1;
	wr->remote_addr = afr_byzantine.last.remote;
	wr->rkey = afr_byzantine.last.rkey;
	*imm = afr_imm_pack(afr_byzantine.last.id, afr_byzantine.last.cursor);
	return true;
}

static bool flood_credits(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_CHANNEL_CREDITS, bend16(0));
	return true;
}

/* Repeats the last announcement, which is correct but redundant. */
static bool flood_announced(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_CHANNEL_CREDITS, link->sq.credit.announced);
	return true;
}

static bool flood_detach(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_CHANNEL_DETACH, bend16(0) % 64);
	return true;
}

/* DETACH of a channel to which writes continue. */
static bool flood_early(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_CHANNEL_DETACH, afr_byzantine.last.id);
	return true;
}

static bool flood_ended(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_byzantine.ended.id, afr_byzantine.ended.cursor);
	return had_ended_channel(link);
}

#define POST(function, text)	{ .name = #function, .what = text, .post = function }
#define FLOOD(function, text)	{ .name = #function, .what = text, .flood = function }

const struct afr_injection afr_byzantine_link_injections[] = {
	POST(imm_any, "the whole immediate"),
	POST(imm_channel, "a channel id that is not ours"),
	POST(imm_reserved, "a channel id that nobody has"),
	POST(imm_cursor, "the cursor"),
	POST(imm_frozen, "the cursor never moves"),
	POST(imm_credits, "how many receives we have posted"),
	POST(imm_detach, "DETACH of some id instead of a write"),
	POST(imm_bytes, "bytes with an announcement (arg: with DETACH)"),
	POST(write_addr, "the address of a write"),
	POST(write_near, "the address, within what was written before"),
	POST(write_rkey, "the key of a write"),
	POST(write_key, "the low byte of the key"),
	POST(write_short, "fewer bytes than the sequence state allows"),
	POST(write_long, "more bytes than the sequence state allows"),
	POST(stale_rkey, "the key of a connection that has detached"),
	POST(mute_write, "no writes with bytes"),
	POST(mute_channel, "no writes at all"),
	POST(mute_detach, "no DETACH"),
	POST(mute_credits, "no announcements"),
	POST(op_read, "RDMA READ instead of a write"),
	POST(op_write, "a write without immediate"),
	POST(op_send, "SEND instead of a write"),
	POST(op_send_imm, "SEND with immediate instead of a write"),
	POST(op_send_empty, "SEND of nothing"),
	POST(op_send_inv, "SEND that invalidates the peer's key"),
	POST(op_broken, "a request that breaks our own queue pair: the link drops"),
	FLOOD(flood_any, "immediates at random"),
	FLOOD(flood_channel, "writes of nothing to random channels"),
	{ .name = "flood_cursor", .what = "cursors at random, no DETACH",
	  .flood = flood_cursor, .stays = true },
	FLOOD(flood_empty, "true cursors, over and over"),
	FLOOD(flood_again, "the last write, over and over"),
	FLOOD(flood_credits, "announcements at random"),
	FLOOD(flood_announced, "true announcements, over and over"),
	FLOOD(flood_detach, "DETACH of random channels"),
	FLOOD(flood_early, "DETACH before the last write"),
	FLOOD(flood_ended, "writes behind our DETACH"),
	{ }
};
