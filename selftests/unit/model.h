/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small world for the real pure layer: two ends, one connection, an inner TCP
 * connection and links that die. See model.c.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

/* A promise of the books that is broken ends the run, not the program. */
void model_promise(bool kept, const char *promise);
#define AFR_CHECK(ok)	model_promise(ok, #ok)

#include "../../net/afrdma/proto/link_credit.h"
#include "../../net/afrdma/proto/cursor.h"
#include "../../net/afrdma/proto/frame.h"
#include "../../net/afrdma/proto/hello.h"
#include "../../net/afrdma/proto/imm.h"
#include "../../net/afrdma/proto/sequence.h"
#include "../../net/afrdma/proto/ring.h"

#define LINKS		6	/* made in one run, one after another */
#define SLOTS		2	/* few, so that they are used again at once */
#define SLOT_NOISE	9	/* another connection's */
#define MESSAGES	64	/* on one link in one direction, at most */
#define TCP_MAX		(1 << 17)

/* Failing rules of the protocol model, to be put back on demand. */
#define MUTATIONS \
	M(NONE, "none", "the rules as they are") \
	M(B03, "b03", "the sender frees at its own completion") \
	M(B05, "b05", "no fence before RESUME") \
	M(B07, "b07", "completions polled after RESUME are counted") \
	M(B09, "b09", "resume at X, not at max(X, S)") \
	M(B11, "b11", "MOVE without an epoch") \
	M(B18, "b18", "an end with nothing outstanding does not tell of a dead link") \
	M(C04, "c04", "CREDIT by TCP beside immediates") \
	M(C06, "c06", "immediates of a link decoded after its RESUME") \
	M(C07, "c07", "credit at half a ring only, BLOCKED never said") \
	M(C08, "c08", "BLOCKED not remembered") \
	M(SPACE, "space-not-blocked", "BLOCKED for the peer's window only, not for a full send ring") \
	M(CRUMBS, "crumbs-not-blocked", "BLOCKED for a full send ring, writers sleep until a third is free") \
	M(ONCE, "blocked-once", "BLOCKED is not said again when a cursor brought too little") \
	M(C10, "c10", "RESUME without the consumed cursor") \
	M(C20, "c20", "DATA on TCP needs no window") \
	M(D02, "d02", "the ring is freed at the peer's RESUME, not at its DETACH") \
	M(D12, "d12", "the reader sees the end when FIN arrives") \
	M(D17, "d17", "inner TCP is shut when the own FIN is acknowledged") \
	M(D34, "d34", "inner TCP is shut when DETACH is posted") \
	M(PE4, "pe4", "inner TCP is shut before the peer's DETACH has come") \
	M(REORDER, "credit-before-resume", "CREDIT overtakes RESUME in the send queue") \
	M(FROZEN, "resume-frozen", "RESUME tells what was received when the epoch was closed") \
	M(ORDER, "resume-before-attach", "RESUME overtakes the ATTACH of its epoch") \
	M(QUIET, "quiet-after-resume", "a link that dies after a voluntary RESUME is not told") \
	M(HASTE, "attach-before-resume", "the next ATTACH does not wait for the peer's RESUME") \
	M(UNTOLD, "close-without-resume", "a refused attach closes the books and sends no RESUME") \
	M(GREEDY, "detach-reserve", "DETACH takes the credit kept back for announcements") \
	M(NORESERVE, "no-reserve", "data uses every credit") \
	M(LATE, "attached-late", "ATTACHED samples its cursor when it is written") \
	M(LOWAT, "c11", "the reader may wait for a whole ring of coarse units")

/* States that the honest schedules must have passed through, or they prove little. */
#define REACHES \
	R(BOTH, "both directions on the link") \
	R(EARLY, "a write landed before its MOVE") \
	R(STALE_MOVE, "MOVE of a closed epoch") \
	R(REWIND, "RESUME rewinds the sender") \
	R(BELOW_S, "RESUME below S") \
	R(LATER, "read beyond X before RESUME was written") \
	R(UNAWAITED, "RESUME not awaited") \
	R(LATE, "a completion polled after its epoch was closed") \
	R(LOST_CREDIT, "a cursor lost with its link") \
	R(HOLD_FINACK, "FINACK ends a hold") \
	R(RESEND_FIN, "DATA below an end already named") \
	R(REUSE, "the next epoch on the same link") \
	R(SLOT, "a slot used again on a living link") \
	R(REFUSED, "an attach refused") \
	R(TWICE, "a second RESUME of one epoch") \
	R(EARLY_DETACH, "DETACH polled before ATTACHED came") \
	R(CURSOR_WRAP, "a 16-bit cursor wrapped") \
	R(COARSE, "a cursor rounded down") \
	R(FULL, "a receive ring exactly full") \
	R(ROOMLESS, "BLOCKED for a full send ring") \
	R(NO_CREDIT, "a link end out of credits") \
	R(EPOCHS, "four epochs in one connection")

enum reach {
#define R(id, text) REACH_##id,
	REACHES
#undef R
	REACH_COUNT,
};

enum mutation {
#define M(id, name, text) MUT_##id,
	MUTATIONS
#undef M
	MUT_COUNT,
};

struct message {
	u32	imm;
	u32	len;
	u32	epoch;		/* ghost: what the slot stood for when it was posted */
	u64	offset;		/* of the first byte in the sender's direction */
};

struct message_queue {
	struct message	at[MESSAGES];
	unsigned int	head, count;
};

/* One end of a link: its queue pair, its receive queue, its completion queue. */
struct link_end {
	bool		up;		/* the queue pair works: packets land */
	bool		died;		/* the device failed here */
	bool		error;		/* a write of ours was not acknowledged */
	bool		told;		/* the peer says the link is lost */
	bool		stopped;	/* nothing is posted any more */
	bool		drained;	/* fenced, drained, books closed */
	unsigned int	receives;	/* posted and unused */
	u32		slot_epoch[SLOTS];	/* 0 = free */
	struct afr_link_credit credit;
	struct message_queue wire;	/* packets on their way to this end */
	struct message_queue cq;	/* landed here, not polled */
};

struct link {
	bool		made;
	struct link_end	end[2];
};

/* TCP in one direction. */
struct tcp {
	u8		*bytes;
	u32		size, head, count;
	bool		shut;
};

struct end {
	int			id;
	struct afr_tx	tx;
	struct afr_rx	rx;
	u8			*send_ring, *receive_ring;

	/* the application */
	u64			total;		/* end of what it writes */
	u32			want;		/* bytes its reader waits for now */
	bool			patient;	/* its writer sleeps until it is worth waking */
	bool			write_first;	/* reads nothing before it wrote everything */

	/* the frame being written */
	u8			out[sizeof(struct afr_wire_hello)];
	unsigned int		out_len, out_at;
	u32			out_data;	/* bytes of DATA behind it */
	/* kinds waiting to be written, one flag each (PC9) */
	bool			say_hello, say_blocked, say_attach, say_attached;
	bool			say_move, say_resume, say_fin, say_finack, say_riddle;
	u64			blocked_at;	/* the cursor that BLOCKED was said at */
	bool			blocked_said;	/* since the application wrote */
	struct afr_frame	attach, attached, move, resume;

	/* the frame being read */
	u8			in[sizeof(struct afr_wire_hello)];
	unsigned int		in_len;
	u32			in_data;	/* bytes of DATA still to come */
	u32			in_skip;	/* bytes of an unknown frame still to come */
	bool			hello_in;
	bool			eof_in;

	/* the current epoch */
	struct link		*link;
	u16			slot, peer_id;
	bool			pending;	/* client: ATTACH is not answered */
	bool			ready;		/* peer_id is known */
	bool			leaving;	/* no write but DETACH any more */
	bool			detach_wanted, detach_posted, detach_done;
	bool			refused;
	bool			resume_said, resume_came;

	bool			shut;
	bool			ended;
};

struct world {
	struct end	end[2];
	struct link	link[LINKS];
	unsigned int	links;
	u16		depth[2];	/* receives each end posts on a link */
	struct tcp	tcp[2];		/* towards end i */
	unsigned int	scale;		/* ring sizes on the wire are shifted left by this */
	unsigned int	adversity;	/* percent of the steps */
	unsigned int	deaths, leaves, noise, attaches;	/* adversary's budget */
	u64		random;
	unsigned int	steps;
};

extern struct world world;
extern enum mutation mutation;
extern bool verbose;
extern u64 reached[REACH_COUNT];

/* model.c */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void story(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define say(...) do { if (verbose) story(__VA_ARGS__); } while (0)
u32 pick(u32 below);			/* 0 .. below - 1 */
bool chance(u32 percent);
u8 byte_at(int sender, u64 offset);	/* what the stream has at this offset */

static inline struct end *peer_of(const struct end *e)
{
	return &world.end[!e->id];
}

static inline struct link_end *link_of(const struct end *e)
{
	return e->link ? &e->link->end[e->id] : NULL;
}

/* Every step: returns whether it is possible; does it when @go. */
typedef bool (*step_fn)(struct end *e, bool go);

/* model_end.c: application, epochs, the end */
bool step_app_write(struct end *e, bool go);
bool step_app_fin(struct end *e, bool go);
bool step_app_read(struct end *e, bool go);
bool step_tcp_shut(struct end *e, bool go);
bool step_end(struct end *e, bool go);
bool step_attach(struct end *e, bool go);
bool step_move(struct end *e, bool go);
bool step_leave(struct end *e, bool go);
bool step_finish(struct end *e, bool go);
void end_init(struct end *e, int id, u32 send_ring, u32 receive_ring);
void end_free(struct end *e);
void end_detach_polled(struct end *e, u16 slot);
void end_close(struct end *e, u32 reason);
void end_stop(struct end *e);
bool end_by_imm(const struct end *e);
void end_refused(struct end *e);
void end_slot_free(struct end *e);
void end_attach_came(struct end *e, const struct afr_frame *f);
void end_attached_came(struct end *e, const struct afr_frame *f);
void end_must(const struct end *e, int reason, const char *what);
void end_rx_changed(struct end *e);

/* model_frame.c: what is said on TCP */
bool step_tcp_write(struct end *e, bool go);
bool step_tcp_read(struct end *e, bool go);

/* model_link.c: links, fabric */
struct link *link_make(void);
bool step_write(struct end *e, bool go);
bool step_credit(struct end *e, bool go);
bool step_detach(struct end *e, bool go);
bool step_announce(struct end *e, bool go);
bool step_land(struct end *e, bool go);
bool step_drop(struct end *e, bool go);
bool step_poll(struct end *e, bool go);
bool step_stop(struct end *e, bool go);
bool step_drain(struct end *e, bool go);
bool step_die(struct end *e, bool go);
bool step_noise(struct end *e, bool go);

#endif /* MODEL_H */
