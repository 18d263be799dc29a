// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * A Byzantine peer: the functions that the module calls where messages leave the host, and the
 * module parameter "rogue", which selects an injection:
 *
 *	INJECTION [arg N] [rate N] [after N] [count N] [seed N] [drop N] [new|newest]
 *	off
 *
 * The chances of an injection are the messages that it can change, omit or add. It skips the first
 * "after" chances, and then uses one of every "rate", at most "count" in total. Some injections
 * add "arg" to the correct value; others put "arg" in place of the value: those of HELLO, private
 * data of rdma_cm and invented frames, and a few more. Without "arg", values are mostly random or
 * extreme. "new": the injection applies only to connections that socket() or accept() created
 * later than every connection that has sent HELLO so far; "newest": also to the last created of
 * those that have sent HELLO. Neither exempts messages that belong to no connection. "drop": the
 * Nth write with bytes breaks the local queue pair. Reading the parameter shows the injection, how
 * often it was used, and its chances. The parameter "rogue_injections" lists all injections.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "../channel.h"
#include "../proto/frame.h"
#include "byzantine.h"
#include "inject.h"

/* On load, the kernel warns of a test module and is tainted. */
MODULE_INFO(test, "Y");

/*
 * Protects the variables of inject.c, and those of this file except "flooding". Taken inside
 * link->lock and tx.lock.
 */
static DEFINE_SPINLOCK(lock);
static u64 newest;		/* highest id of a connection that has sent HELLO */
static struct {
	u64 conn, link;
	u16 id;
} attaches[64];			/* one for each of the last 64 ATTACH and ATTACHED sent */
static unsigned int attaches_count;
static struct afr_link *flooding;

/*
 * Is a message to channel @id of the peer exempt? "new" and "newest" exempt messages of connections
 * that are older than those to which the injection is limited, and of unknown connections. A
 * message that belongs to no channel (@id above AFR_CHANNEL_MAX) is never exempt.
 */
static bool spared(struct afr_link *link, u16 id)
{
	struct afr_channel *channel;
	unsigned int i;

	if (!afr_byzantine.first || id > AFR_CHANNEL_MAX)
		return false;
	list_for_each_entry(channel, &link->members.list, member) {
		if (channel->peer_id != id)
			continue;
		for (i = 1; i <= ARRAY_SIZE(attaches); i++) {
			unsigned int n = (attaches_count - i) % ARRAY_SIZE(attaches);

			if (attaches[n].link == link->id && attaches[n].id == channel->id)
				return attaches[n].conn < afr_byzantine.first;
		}
	}
	return true;
}

/* Records a message about to be posted, for injections that use earlier messages. */
static void remember(struct afr_link *link, const struct ib_rdma_wr *wr)
{
	u16 id = afr_inject_whose(wr);
	struct afr_inject_seen *s = afr_inject_seen(id);

	if (id > AFR_CHANNEL_MAX)
		return;
	s->link = link->id;
	s->id = id;
	if (afr_inject_channel(wr) == AFR_CHANNEL_DETACH) {
		afr_byzantine.ended = *s;
		return;
	}
	s->cursor = afr_inject_cursor(wr);
	if (wr->wr.num_sge) {
		s->rkey = wr->rkey;
		s->remote = wr->remote_addr;
		s->sge = *wr->wr.sg_list;
	}
	if (!spared(link, id))
		afr_byzantine.last = *s;
}

/**
 * afr_byzantine_post() - apply the injection to a message that is about to be posted
 * @link: the link
 * @wr: the request, including the immediate
 *
 * Context: Process or softirq, under link->lock.
 * Return: true if the message is not to be posted.
 */
bool afr_byzantine_post(struct afr_link *link, struct ib_rdma_wr *wr)
{
	bool swallow = false;
	u16 id;

	/* messages of a flood stay as they are; iWARP has no immediates to change */
	if (flooding == link || link->iwarp)
		return false;
	spin_lock_bh(&lock);
	remember(link, wr);
	id = afr_inject_whose(wr);
	if (afr_byzantine.inj && afr_byzantine.inj->post && !spared(link, id))
		swallow = afr_byzantine.inj->post(link, wr);
	/* send no DETACH: behind it, the next message of the flood would end the link */
	if (afr_byzantine.inj && afr_byzantine.inj->stays && !spared(link, id))
		swallow = afr_inject_channel(wr) == AFR_CHANNEL_DETACH;
	if (wr->wr.num_sge && afr_byzantine.drop && !--afr_byzantine.drop)
		wr->wr.sg_list->lkey ^= 0xff00;
	spin_unlock_bh(&lock);
	return swallow;
}

/*
 * Fills in the next message and returns true, if the injection is a flood, concerns @link and is
 * due now. If the message carries bytes, @sge gets a copy of afr_byzantine.last.sge, since the
 * original may change when the lock is released.
 */
static bool next_flood(struct afr_link *link, struct ib_rdma_wr *wr, struct ib_sge *sge, u32 *imm)
{
	const struct afr_injection *inj;
	bool found;

	spin_lock_bh(&lock);
	inj = afr_byzantine.inj;
	found = inj && inj->flood && afr_byzantine.left && afr_byzantine.last.link == link->id &&
		inj->flood(link, wr, imm) && afr_inject_due();
	if (found && wr->wr.num_sge) {
		*sge = *wr->wr.sg_list;
		wr->wr.sg_list = sge;
	}
	spin_unlock_bh(&lock);
	return found;
}

/**
 * afr_byzantine_flood() - post the messages of a flood, while credits and send slots are free
 * @link: the link
 * @post: afr_link_queue_post(); passed in, because this file must not call link_queue.c, which is
 *	named after it in LAYERS
 *
 * Context: completion handler, under link->lock.
 */
void afr_byzantine_flood(struct afr_link *link,
			 int (*post)(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
				     const struct afr_link_send *ctx))
{
	flooding = link;
	while (link->state == AFR_LINK_UP && link->sq.used + AFR_SQ_RESERVE < link->sq.size &&
	       afr_link_credit_available(&link->sq.credit, AFR_LINK_CREDIT_RESERVE)) {
		struct ib_rdma_wr wr = {};
		struct ib_sge sge;
		u32 imm;

		if (!next_flood(link, &wr, &sge, &imm) || post(link, &wr, imm, NULL))
			break;
	}
	flooding = NULL;
}

/* Does the injection apply to frames of @type of this connection? */
static bool concerns(const struct afr_injection *inj, u64 conn, u8 type)
{
	if (!inj || conn < afr_byzantine.first)
		return false;
	if (type == AFR_BYZANTINE_HELLO || inj->type)
		return type == inj->type || type == inj->type2;
	return true;
}

/**
 * afr_byzantine_frame() - apply the injection to a frame that is about to be written
 * @conn: id of the connection
 * @frame: the frame in @out, NULL for HELLO
 * @out: buffer with the encoded frame, as large as a HELLO
 * @len: bytes in @out
 *
 * Context: Process.
 * Return: bytes in @out now, 0 if no frame is to be sent.
 */
unsigned int afr_byzantine_frame(u64 conn, const struct afr_frame *frame, u8 *out,
				 unsigned int len)
{
	u8 type = frame ? frame->type : AFR_BYZANTINE_HELLO;

	spin_lock_bh(&lock);
	newest = max(newest, conn);
	if (type == AFR_FRAME_ATTACH || type == AFR_FRAME_ATTACHED) {
		unsigned int n = attaches_count++ % ARRAY_SIZE(attaches);

		attaches[n].conn = conn;
		attaches[n].link = frame->attach.link;
		attaches[n].id = frame->attach.channel;
	}
	if (concerns(afr_byzantine.inj, conn, type) && afr_byzantine.inj->frame &&
	    afr_inject_due())
		len = afr_byzantine.inj->frame(afr_byzantine.inj, frame, out, len);
	spin_unlock_bh(&lock);
	return len;
}

/* Fills in a frame of @type with random fields, many of them plausible. */
static void make_up(struct afr_frame *frame, u8 type)
{
	u8 *byte = (u8 *)frame;
	u64 value;
	size_t i;

	memset(frame, 0, sizeof(*frame));
	/* one value per 32-bit word, so that any field of the union may be small or extreme */
	for (i = offsetof(struct afr_frame, offset); i + 4 <= sizeof(*frame); i += 4) {
		value = afr_inject_rnd() % 3 ? afr_inject_rnd() % 4 : afr_inject_bend(0);
		memcpy(byte + i, &value, 4);
	}
	frame->type = type;
	if (afr_byzantine.has_arg)
		frame->offset = afr_byzantine.arg;
	if (type != AFR_FRAME_ATTACH && type != AFR_FRAME_ATTACHED)
		return;
	if (afr_inject_rnd() % 4)
		frame->attach.reason = 0;
	if (afr_inject_rnd() % 4)
		frame->attach.ring = 262144;
	if (afr_inject_rnd() % 4)
		frame->attach.span = frame->attach.ring;
	frame->attach.flags = afr_inject_rnd() % 2;
}

/**
 * afr_byzantine_more() - invent an additional frame
 * @conn: id of the connection
 * @frame: filled if true is returned
 *
 * Context: Process, under conn->tx.lock.
 * Return: true if @frame is to be written.
 */
bool afr_byzantine_more(u64 conn, struct afr_frame *frame)
{
	const struct afr_injection *inj;
	bool found;

	spin_lock_bh(&lock);
	inj = afr_byzantine.inj;
	found = inj && inj->more && conn >= afr_byzantine.first && afr_inject_due();
	if (found)
		make_up(frame, inj->type);
	spin_unlock_bh(&lock);
	return found;
}

/**
 * afr_byzantine_cm() - apply the injection to private data of rdma_cm that is about to be sent
 * @data: struct afr_wire_cm_req or afr_wire_cm_rep
 * @len: its size, by which the two are distinguished
 *
 * Context: Process.
 * Return: true if nothing is to be sent.
 */
bool afr_byzantine_cm(void *data, unsigned int len)
{
	bool silent = false;

	spin_lock_bh(&lock);
	if (afr_byzantine.inj && afr_byzantine.inj->cm == len && afr_inject_due()) {
		silent = !afr_byzantine.inj->size;
		if (!silent)
			afr_inject_bytes(afr_byzantine.inj, data, len);
	}
	spin_unlock_bh(&lock);
	return silent;
}

/* The parameters */

static const struct afr_injection *const tables[] = {
	afr_byzantine_link_injections, afr_byzantine_frame_injections,
};

static const struct afr_injection *find(const char *name)
{
	const struct afr_injection *inj;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (inj = tables[i]; inj->name; inj++)
			if (!strcmp(inj->name, name))
				return inj;
	return NULL;
}

static int parse_number(struct afr_byzantine_state *to, const char *word, char **rest)
{
	static const struct {
		const char *word;
		size_t offset;
	} numbers[] = {
		{ "arg", offsetof(struct afr_byzantine_state, arg) },
		{ "rate", offsetof(struct afr_byzantine_state, rate) },
		{ "after", offsetof(struct afr_byzantine_state, after) },
		{ "count", offsetof(struct afr_byzantine_state, left) },
		{ "seed", offsetof(struct afr_byzantine_state, seed) },
		{ "drop", offsetof(struct afr_byzantine_state, drop) },
	};
	const char *number = strsep(rest, " ");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (strcmp(word, numbers[i].word))
			continue;
		to->has_arg |= !i;
		return number ? kstrtou64(number, 0, (u64 *)((u8 *)to + numbers[i].offset)) :
				-EINVAL;
	}
	return -EINVAL;
}

static int parse(struct afr_byzantine_state *to, char *text)
{
	char *word = strsep(&text, " ");
	int ret = 0;

	to->inj = find(word);
	if (!to->inj)
		return strcmp(word, "off") ? -ENOENT : 0;
	while (!ret && (word = strsep(&text, " "))) {
		if (!strcmp(word, "new"))
			to->first = newest + 1;
		else if (!strcmp(word, "newest"))
			to->first = newest;
		else
			ret = parse_number(to, word, &text);
	}
	return ret ? ret : to->rate ? 0 : -EINVAL;
}

static int rogue_set(const char *text, const struct kernel_param *param)
{
	struct afr_byzantine_state wanted = { .rate = 1, .left = U64_MAX, .seed = 1 };
	char *copy = kstrdup(text, GFP_KERNEL);
	int ret;

	if (!copy)
		return -ENOMEM;
	spin_lock_bh(&lock);
	wanted.last = afr_byzantine.last;
	wanted.ended = afr_byzantine.ended;
	ret = parse(&wanted, strim(copy));
	/* forget the last message: with @first, its connection may have become exempt */
	if (wanted.first)
		wanted.last.link = 0;
	/* forget the channel that has ended: its id may be in use again */
	if (wanted.inj && wanted.inj->flood)
		wanted.ended.link = 0;
	if (!ret)
		afr_byzantine = wanted;
	spin_unlock_bh(&lock);
	kfree(copy);
	return ret;
}

static int rogue_get(char *buf, const struct kernel_param *param)
{
	int len;

	spin_lock_bh(&lock);
	len = sysfs_emit(buf, "%s done %llu chances %llu\n",
			 afr_byzantine.inj ? afr_byzantine.inj->name : "off", afr_byzantine.done,
			 afr_byzantine.chances);
	spin_unlock_bh(&lock);
	return len;
}

static int injections_get(char *buf, const struct kernel_param *param)
{
	const struct afr_injection *inj;
	unsigned int i;
	int len = 0;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (inj = tables[i]; inj->name; inj++)
			len += sysfs_emit_at(buf, len, "%s: %s\n", inj->name, inj->what);
	return len;
}

static const struct kernel_param_ops rogue_ops = { .set = rogue_set, .get = rogue_get };
static const struct kernel_param_ops injections_ops = { .get = injections_get };

module_param_cb(rogue, &rogue_ops, NULL, 0600);
MODULE_PARM_DESC(rogue, "fault injection: how this host breaks the protocol, see byzantine.c");
module_param_cb(rogue_injections, &injections_ops, NULL, 0400);
MODULE_PARM_DESC(rogue_injections, "all injections, read only");

/**
 * afr_byzantine_init() - warn that this build contains fault injection
 *
 * Context: Module load.
 */
void afr_byzantine_init(void)
{
	pr_warn("afrdma: this build can violate the protocol on purpose (CONFIG_AFRDMA_BYZANTINE): for tests only\n");
}
