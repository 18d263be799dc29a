// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile peer: its hooks, and the module parameter "rogue", which sets a knob:
 *
 *	KNOB [arg N] [rate N] [after N] [count N] [seed N] [drop N] [new|newest]
 *
 * Of the chances a knob has, the first "after" are let go by, then one of "rate" is
 * taken, "count" of them at most. With "arg" a number is added to the true value;
 * without, the value is random. "new": only connections made from now on; "newest":
 * those and the youngest there is. "drop": the Nth write with bytes breaks our queue
 * pair. Reading tells the knob and how often it has lied; the parameter "rogue_knobs"
 * has the list. "off" ends it.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "frame.h"
#include "rogue.h"
#include "rogue_knob.h"

/* The kernel says so, too, and taints itself. */
MODULE_INFO(test, "Y");

static DEFINE_SPINLOCK(lock);	/* all of it; BH, under link->lock */
static u64 newest;		/* connection that has said something */
static struct {
	u64 conn, link;
	u16 slot;
} attaches[64];			/* the last ones: ours, as told to the peer */
static unsigned int attaches_count;
static struct afr_link *flooding;

/* Whose message is this? Anybody's, if its connection is not known. */
static bool spared(struct afr_link *link, u16 slot)
{
	struct afr_port *port;
	unsigned int i;

	if (!afr_rogue.first || slot > AFR_SLOT_MAX)
		return false;
	list_for_each_entry(port, &link->ports, member) {
		if (port->peer_slot != slot)
			continue;
		for (i = 1; i <= ARRAY_SIZE(attaches); i++) {
			unsigned int n = (attaches_count - i) % ARRAY_SIZE(attaches);

			if (attaches[n].link == link->id && attaches[n].slot == port->slot)
				return attaches[n].conn < afr_rogue.first;
		}
	}
	return true;
}

static void remember(struct afr_link *link, const struct ib_rdma_wr *wr)
{
	u16 slot = afr_rogue_whose(wr);
	struct afr_rogue_seen *s = afr_rogue_seen(slot);

	if (slot > AFR_SLOT_MAX)
		return;
	s->link = link->id;
	s->slot = slot;
	if (afr_rogue_slot(wr) == AFR_SLOT_DETACH) {
		afr_rogue.ended = *s;
		return;
	}
	s->cursor = afr_rogue_cursor(wr);
	if (wr->wr.num_sge) {
		s->rkey = wr->rkey;
		s->remote = wr->remote_addr;
		s->sge = *wr->wr.sg_list;
	}
	if (!spared(link, slot))
		afr_rogue.last = *s;
}

/**
 * afr_rogue_post() - a message is about to be posted
 * @link: the link
 * @wr: the request, immediate and all
 *
 * Context: Process or softirq, under link->lock.
 * Return: true if it is not to be posted.
 */
bool afr_rogue_post(struct afr_link *link, struct ib_rdma_wr *wr)
{
	bool swallow = false;
	u16 slot;

	if (flooding == link || link->iwarp)	/* there a message is another thing */
		return false;
	spin_lock_bh(&lock);
	remember(link, wr);
	slot = afr_rogue_whose(wr);
	if (afr_rogue.knob && afr_rogue.knob->post && !spared(link, slot))
		swallow = afr_rogue.knob->post(link, wr);
	/* a slot that is flooded is not given back, or the flood would end with it */
	if (afr_rogue.knob && afr_rogue.knob->stays && !spared(link, slot))
		swallow = afr_rogue_slot(wr) == AFR_SLOT_DETACH;
	if (wr->wr.num_sge && afr_rogue.drop && !--afr_rogue.drop)
		wr->wr.sg_list->lkey ^= 0xff00;
	spin_unlock_bh(&lock);
	return swallow;
}

static bool next_flood(struct afr_link *link, struct ib_rdma_wr *wr, u32 *imm)
{
	const struct afr_rogue_knob *knob;
	bool found;

	spin_lock_bh(&lock);
	knob = afr_rogue.knob;
	found = knob && knob->flood && afr_rogue.left && afr_rogue.last.link == link->id &&
		knob->flood(link, wr, imm) && afr_rogue_due();
	spin_unlock_bh(&lock);
	return found;
}

/**
 * afr_rogue_flood() - post what nobody asked for
 * @link: the link
 * @post: afr_link_io_post(), which stands below us
 *
 * Context: Softirq, under link->lock.
 */
void afr_rogue_flood(struct afr_link *link,
		     int (*post)(struct afr_link *link, struct ib_rdma_wr *wr, u32 imm,
				 const struct afr_link_mark *mark))
{
	flooding = link;
	while (link->state == AFR_LINK_UP && link->sq_used + AFR_SQ_RESERVE < link->sq_size &&
	       afr_credit_available(&link->credit, AFR_CREDIT_RESERVE)) {
		struct ib_rdma_wr wr = {};
		u32 imm;

		if (!next_flood(link, &wr, &imm) || post(link, &wr, imm, NULL))
			break;
	}
	flooding = NULL;
}

static bool concerns(const struct afr_rogue_knob *knob, u64 conn, u8 type)
{
	if (!knob || conn < afr_rogue.first)
		return false;
	if (type == AFR_ROGUE_HELLO || knob->type)
		return type == knob->type || type == knob->type2;
	return true;
}

/**
 * afr_rogue_frame() - a frame is about to be written
 * @conn: id of the connection
 * @frame: what is in @out, NULL for HELLO
 * @out: room for a HELLO
 * @len: bytes in there
 *
 * Context: Process.
 * Return: bytes in there now, 0 if nothing is to be said.
 */
unsigned int afr_rogue_frame(u64 conn, const struct afr_frame *frame, u8 *out, unsigned int len)
{
	u8 type = frame ? frame->type : AFR_ROGUE_HELLO;

	spin_lock_bh(&lock);
	newest = max(newest, conn);
	if (type == AFR_FRAME_ATTACH || type == AFR_FRAME_ATTACHED) {
		unsigned int n = attaches_count++ % ARRAY_SIZE(attaches);

		attaches[n].conn = conn;
		attaches[n].link = frame->attach.link;
		attaches[n].slot = frame->attach.slot;
	}
	if (concerns(afr_rogue.knob, conn, type) && afr_rogue.knob->frame && afr_rogue_due())
		len = afr_rogue.knob->frame(afr_rogue.knob, frame, out, len);
	spin_unlock_bh(&lock);
	return len;
}

static void make_up(struct afr_frame *frame, u8 type)
{
	u8 *byte = (u8 *)frame;
	u64 value;
	size_t i;

	memset(frame, 0, sizeof(*frame));
	/* each field by itself: what is meant is the union behind the head */
	for (i = offsetof(struct afr_frame, offset); i + 4 <= sizeof(*frame); i += 4) {
		value = afr_rogue_rnd() % 3 ? afr_rogue_rnd() % 4 : afr_rogue_bend(0);
		memcpy(byte + i, &value, 4);
	}
	frame->type = type;
	if (afr_rogue.has_arg)
		frame->offset = afr_rogue.arg;
	if (type != AFR_FRAME_ATTACH && type != AFR_FRAME_ATTACHED)
		return;
	if (afr_rogue_rnd() % 4)
		frame->attach.reason = 0;
	if (afr_rogue_rnd() % 4)
		frame->attach.ring = 262144;
	if (afr_rogue_rnd() % 4)
		frame->attach.span = frame->attach.ring;
	frame->attach.flags = afr_rogue_rnd() % 2;
}

/**
 * afr_rogue_more() - make up a frame
 * @conn: id of the connection
 * @frame: filled when true is returned
 *
 * Context: Process or softirq.
 * Return: true if this is to be written.
 */
bool afr_rogue_more(u64 conn, struct afr_frame *frame)
{
	const struct afr_rogue_knob *knob;
	bool found;

	spin_lock_bh(&lock);
	knob = afr_rogue.knob;
	found = knob && knob->more && conn >= afr_rogue.first && afr_rogue_due();
	if (found)
		make_up(frame, knob->type);
	spin_unlock_bh(&lock);
	return found;
}

/**
 * afr_rogue_cm() - private data of rdma_cm is about to be sent
 * @data: struct afr_wire_cm_req or afr_wire_cm_rep
 * @len: its size tells which
 *
 * Context: Process.
 * Return: true if nothing is to be sent.
 */
bool afr_rogue_cm(void *data, unsigned int len)
{
	bool silent = false;

	spin_lock_bh(&lock);
	if (afr_rogue.knob && afr_rogue.knob->cm == len && afr_rogue_due()) {
		silent = !afr_rogue.knob->size;
		if (!silent)
			afr_rogue_bytes(afr_rogue.knob, data, len);
	}
	spin_unlock_bh(&lock);
	return silent;
}

/* The parameters */

static const struct afr_rogue_knob *const tables[] = {
	afr_rogue_link_knobs, afr_rogue_frame_knobs,
};

static const struct afr_rogue_knob *find(const char *name)
{
	const struct afr_rogue_knob *knob;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (knob = tables[i]; knob->name; knob++)
			if (!strcmp(knob->name, name))
				return knob;
	return NULL;
}

static int parse_number(struct afr_rogue_state *to, const char *word, char **rest)
{
	static const struct {
		const char *word;
		size_t offset;
	} numbers[] = {
		{ "arg", offsetof(struct afr_rogue_state, arg) },
		{ "rate", offsetof(struct afr_rogue_state, rate) },
		{ "after", offsetof(struct afr_rogue_state, after) },
		{ "count", offsetof(struct afr_rogue_state, left) },
		{ "seed", offsetof(struct afr_rogue_state, seed) },
		{ "drop", offsetof(struct afr_rogue_state, drop) },
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

static int parse(struct afr_rogue_state *to, char *text)
{
	char *word = strsep(&text, " ");
	int ret = 0;

	to->knob = find(word);
	if (!to->knob)
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
	struct afr_rogue_state wanted = { .rate = 1, .left = U64_MAX, .seed = 1 };
	char *copy = kstrdup(text, GFP_KERNEL);
	int ret;

	if (!copy)
		return -ENOMEM;
	spin_lock_bh(&lock);
	wanted.last = afr_rogue.last;
	wanted.ended = afr_rogue.ended;
	ret = parse(&wanted, strim(copy));
	if (wanted.first)
		wanted.last.link = 0;	/* it may be of one that is spared now */
	if (wanted.knob && wanted.knob->flood)
		wanted.ended.link = 0;	/* its slot may be somebody else's by now */
	if (!ret)
		afr_rogue = wanted;
	spin_unlock_bh(&lock);
	kfree(copy);
	return ret;
}

static int rogue_get(char *buf, const struct kernel_param *param)
{
	int len;

	spin_lock_bh(&lock);
	len = sysfs_emit(buf, "%s lies %llu chances %llu\n",
			 afr_rogue.knob ? afr_rogue.knob->name : "off", afr_rogue.lies,
			 afr_rogue.chances);
	spin_unlock_bh(&lock);
	return len;
}

static int knobs_get(char *buf, const struct kernel_param *param)
{
	const struct afr_rogue_knob *knob;
	unsigned int i;
	int len = 0;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (knob = tables[i]; knob->name; knob++)
			len += sysfs_emit_at(buf, len, "%s: %s\n", knob->name, knob->what);
	return len;
}

static const struct kernel_param_ops rogue_ops = { .set = rogue_set, .get = rogue_get };
static const struct kernel_param_ops knobs_ops = { .get = knobs_get };

module_param_cb(rogue, &rogue_ops, NULL, 0600);
MODULE_PARM_DESC(rogue, "the lie this host tells its peers: see rogue.c");
module_param_cb(rogue_knobs, &knobs_ops, NULL, 0400);
MODULE_PARM_DESC(rogue_knobs, "all lies, read only");

/**
 * afr_rogue_init() - say what this is
 *
 * Context: Module load.
 */
void afr_rogue_init(void)
{
	pr_warn("afrdma: this build LIES TO ITS PEERS (CONFIG_AFRDMA_ROGUE): for tests only\n");
}
