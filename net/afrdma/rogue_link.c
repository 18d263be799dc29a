// SPDX-License-Identifier: GPL-2.0
/* Lies on the link: immediates, addresses, keys, lengths, operations, floods. */
#include "imm.h"
#include "rogue_knob.h"
#include "wire.h"

/* Bent when posted */

static bool is_data(const struct ib_rdma_wr *wr)
{
	return wr->wr.num_sge;
}

static bool is_credits(const struct ib_rdma_wr *wr)
{
	u16 slot = afr_rogue_slot(wr);

	return slot == AFR_SLOT_CREDITS || slot == AFR_SLOT_ASK;
}

static bool is_detach(const struct ib_rdma_wr *wr)
{
	return afr_rogue_slot(wr) == AFR_SLOT_DETACH;
}

static bool is_port(const struct ib_rdma_wr *wr)
{
	return afr_rogue_slot(wr) <= AFR_SLOT_MAX;
}

static void set_slot(struct ib_rdma_wr *wr, u16 slot)
{
	wr->wr.ex.imm_data = cpu_to_be32(afr_imm_pack(slot, afr_rogue_cursor(wr)));
}

static void set_low(struct ib_rdma_wr *wr, u64 low)
{
	wr->wr.ex.imm_data = cpu_to_be32(afr_imm_pack(afr_rogue_slot(wr), low));
}

/* Any 16 bits: where each value has a meaning, extremes have no more of it. */
static u16 bend16(u16 value)
{
	return afr_rogue.has_arg ? value + afr_rogue.arg : afr_rogue_rnd();
}

static bool imm_any(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (afr_rogue_due())
		wr->wr.ex.imm_data = cpu_to_be32(afr_rogue_rnd());
	return false;
}

static bool imm_slot(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_port(wr) && afr_rogue_due())
		set_slot(wr, bend16(afr_rogue_slot(wr)) % (AFR_SLOT_MAX + 1));
	return false;
}

static bool imm_reserved(struct afr_link *link, struct ib_rdma_wr *wr)
{
	u16 reserved = AFR_SLOT_ASK - AFR_SLOT_MAX - 1;

	if (is_port(wr) && afr_rogue_due())
		set_slot(wr, AFR_SLOT_MAX + 1 + afr_rogue_rnd() % reserved);
	return false;
}

static bool imm_cursor(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_port(wr) && afr_rogue_due())
		set_low(wr, bend16(afr_rogue_cursor(wr)));
	return false;
}

/* What it is at the first lie. */
static bool imm_frozen(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (!is_port(wr) || !afr_rogue_due())
		return false;
	if (!afr_rogue.has_arg)
		afr_rogue.arg = afr_rogue_cursor(wr);
	afr_rogue.has_arg = true;
	set_low(wr, afr_rogue.arg);
	return false;
}

static bool imm_credits(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_credits(wr) && afr_rogue_due())
		set_low(wr, bend16(afr_rogue_cursor(wr)));
	return false;
}

/* Slots are few: one of the first is likely to be somebody's. */
static bool imm_detach(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (!is_port(wr) || !afr_rogue_due())
		return false;
	set_low(wr, afr_rogue.has_arg ? afr_rogue_slot(wr) + afr_rogue.arg : afr_rogue_rnd() % 8);
	set_slot(wr, AFR_SLOT_DETACH);
	return false;
}

static bool imm_bytes(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (!is_data(wr) || !afr_rogue_due())
		return false;
	/* but for the bytes it is what an honest end may say */
	set_low(wr, afr_rogue.has_arg ? afr_rogue_slot(wr) : link->credit.told);
	set_slot(wr, afr_rogue.has_arg ? AFR_SLOT_DETACH : AFR_SLOT_CREDITS);
	return false;
}

static bool write_addr(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_rogue_due())
		wr->remote_addr = afr_rogue_bend(wr->remote_addr);
	return false;
}

static bool write_near(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_rogue_due())
		wr->remote_addr = afr_rogue_rnd() % (wr->remote_addr + 1);
	return false;
}

static bool write_rkey(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_rogue_due())
		wr->rkey = afr_rogue_bend(wr->rkey);
	return false;
}

static bool write_key(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_rogue_due())
		wr->rkey ^= 1 + afr_rogue_rnd() % 255;
	return false;
}

static bool write_short(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_rogue_due())
		wr->wr.sg_list->length = 1 + afr_rogue_rnd() % wr->wr.sg_list->length;
	return false;
}

/*
 * The registered rings are there twice in a row, so there is something behind the end. As
 * much as a ring too many fits where the run itself does not cross the end: the device
 * would refuse what does not fit, and the peer's books never see it. Rings begin at 0.
 */
static bool write_long(struct afr_link *link, struct ib_rdma_wr *wr)
{
	struct ib_sge *sge = wr->wr.sg_list;

	if (!is_data(wr) ||
	    (afr_rogue.has_arg && max(wr->remote_addr, sge->addr) + sge->length > afr_rogue.arg) ||
	    !afr_rogue_due())
		return false;
	sge->length += afr_rogue.has_arg ? afr_rogue.arg : 1 + afr_rogue_rnd() % 65536;
	return false;
}

static bool has_ended(const struct afr_link *link)
{
	return afr_rogue.ended.link == link->id;
}

static bool stale_rkey(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (has_ended(link) && is_data(wr) && afr_rogue_due())
		wr->rkey = afr_rogue.ended.rkey;
	return false;
}

static bool mute_write(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_data(wr) && afr_rogue_due();
}

static bool mute_port(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_port(wr) && afr_rogue_due();
}

static bool mute_detach(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_detach(wr) && afr_rogue_due();
}

static bool mute_credits(struct afr_link *link, struct ib_rdma_wr *wr)
{
	return is_credits(wr) && afr_rogue_due();
}

static bool op(struct ib_rdma_wr *wr, enum ib_wr_opcode opcode)
{
	if (is_data(wr) && afr_rogue_due())
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
	if (is_data(wr) && afr_rogue_due()) {
		wr->wr.opcode = IB_WR_SEND_WITH_INV;
		wr->wr.ex.invalidate_rkey = wr->rkey;
		wr->wr.num_sge = 0;	/* the receives have no room: without bytes it gets in */
	}
	return false;
}

static bool op_send_empty(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_rogue_due()) {
		wr->wr.opcode = IB_WR_SEND;
		wr->wr.num_sge = 0;
	}
	return false;
}

static bool op_broken(struct afr_link *link, struct ib_rdma_wr *wr)
{
	if (is_data(wr) && afr_rogue_due())
		wr->wr.sg_list->lkey ^= 0xff00;
	return false;
}

/* Messages that nobody asked for; each costs a credit, or the queue pair would stop */

static bool flood_any(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_rogue_rnd();
	return true;
}

static bool flood_slot(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_rogue_rnd() % (AFR_SLOT_MAX + 1), afr_rogue_rnd());
	return true;
}

static bool flood_cursor(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_rogue.last.slot, afr_rogue_rnd());
	return true;
}

static bool flood_empty(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_rogue.last.slot, afr_rogue.last.cursor);
	return true;
}

/* The last write once more, at its place. */
static bool flood_again(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	if (!afr_rogue.last.sge.length)
		return false;
	wr->wr.sg_list = &afr_rogue.last.sge;
	wr->wr.num_sge = 1;
	wr->remote_addr = afr_rogue.last.remote;
	wr->rkey = afr_rogue.last.rkey;
	*imm = afr_imm_pack(afr_rogue.last.slot, afr_rogue.last.cursor);
	return true;
}

static bool flood_credits(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_SLOT_CREDITS, bend16(0));
	return true;
}

/* What we did announce, again and again: true, and of no use. */
static bool flood_told(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_SLOT_CREDITS, link->credit.told);
	return true;
}

static bool flood_detach(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_SLOT_DETACH, bend16(0) % 64);
	return true;
}

/* DETACH of the slot that goes on being written to. */
static bool flood_early(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(AFR_SLOT_DETACH, afr_rogue.last.slot);
	return true;
}

static bool flood_ended(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	*imm = afr_imm_pack(afr_rogue.ended.slot, afr_rogue.ended.cursor);
	return has_ended(link);
}

#define POST(function, says)	{ .name = #function, .what = says, .post = function }
#define FLOOD(function, says)	{ .name = #function, .what = says, .flood = function }

const struct afr_rogue_knob afr_rogue_link_knobs[] = {
	POST(imm_any, "the whole immediate"),
	POST(imm_slot, "a slot that is not ours"),
	POST(imm_reserved, "a slot that nobody has"),
	POST(imm_cursor, "the cursor"),
	POST(imm_frozen, "the cursor never moves"),
	POST(imm_credits, "how many receives we have posted"),
	POST(imm_detach, "DETACH of some slot instead of a write"),
	POST(imm_bytes, "bytes with an announcement (arg: with DETACH)"),
	POST(write_addr, "the address of a write"),
	POST(write_near, "the address, within what was written before"),
	POST(write_rkey, "the key of a write"),
	POST(write_key, "the low byte of the key"),
	POST(write_short, "fewer bytes than the books say"),
	POST(write_long, "more bytes than the books say"),
	POST(stale_rkey, "the key of a connection that has detached"),
	POST(mute_write, "no writes with bytes"),
	POST(mute_port, "no writes at all"),
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
	FLOOD(flood_slot, "writes of nothing to random slots"),
	{ .name = "flood_cursor", .what = "cursors at random, no DETACH",
	  .flood = flood_cursor, .stays = true },
	FLOOD(flood_empty, "true cursors, over and over"),
	FLOOD(flood_again, "the last write, over and over"),
	FLOOD(flood_credits, "announcements at random"),
	FLOOD(flood_told, "true announcements, over and over"),
	FLOOD(flood_detach, "DETACH of random slots"),
	FLOOD(flood_early, "DETACH before the last write"),
	FLOOD(flood_ended, "writes behind our DETACH"),
	{ }
};
