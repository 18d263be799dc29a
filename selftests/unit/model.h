/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * What the files of the model share: mutations, situations to reach, the two ends of the
 * connection, its TCP connection, its links, and functions. See model.c.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * A violated invariant of the sequence state ends the run, not the program. With mutation
 * window-ignored, it is ignored.
 */
void model_check(bool holds, const char *expression);
#define AFR_CHECK(ok)	model_check(ok, #ok)

#include "../../net/afrdma/proto/link_credit.h"
#include "../../net/afrdma/proto/cursor.h"
#include "../../net/afrdma/proto/frame.h"
#include "../../net/afrdma/proto/hello.h"
#include "../../net/afrdma/proto/imm.h"
#include "../../net/afrdma/proto/sequence.h"
#include "../../net/afrdma/proto/ring.h"

#define LINKS		6	/* a run creates at most so many links */
#define CHANNELS	2	/* few, so that channel ids are reused soon */
#define CHANNEL_NOISE	9	/* step_noise(): channel id of another connection */
#define MESSAGES	64	/* space in a message queue: more than the credits allow */
#define TCP_MAX		(1 << 17)

/*
 * NONE stands for the correct rules. Every other row is a wrong rule: when it is enabled, at least
 * one schedule must fail.
 */
#define MUTATIONS \
	M(NONE, "none", "the correct rules") \
	M(FREE, "free-at-completion", "the sender frees its ring at its own completion") \
	M(NOFENCE, "no-fence", "no fence before RESUME") \
	M(STRAY, "completions-after-resume", "completions polled after RESUME are counted") \
	M(BACK, "continue-at-x", "continue at X, not at max(X, S)") \
	M(NOEPOCH, "move-without-epoch", "MOVE without an epoch") \
	M(SILENT, "lost-link-unreported", "an end with nothing outstanding does not report a lost link") \
	M(DOUBLE, "credit-twice", "CREDIT frames in addition to immediates") \
	M(STALE, "decode-after-resume", "immediates of a link are decoded after its RESUME") \
	M(HALF, "credit-at-half-only", "credit only at half a ring, without BLOCKED") \
	M(FORGET, "blocked-forgotten", "BLOCKED is not remembered") \
	M(SPACE, "space-not-blocked", "BLOCKED for the window only, not for a full send ring") \
	M(CRUMBS, "crumbs-not-blocked", "BLOCKED only for a full ring, writers wait for a third") \
	M(ONCE, "blocked-once", "BLOCKED is not repeated after a cursor that frees too little") \
	M(NOCURSOR, "resume-without-cursor", "RESUME without the consumer cursor") \
	M(NOWINDOW, "window-ignored", "DATA on TCP ignores the window") \
	M(RELEASE, "release-at-resume", "the ring is released at the peer's RESUME, not at its DETACH") \
	M(EARLYEOF, "end-at-fin", "the reader sees the end of the stream when FIN arrives") \
	M(SHUTOWN, "shut-at-own-finack", "TCP is shut down when the own FIN is acknowledged") \
	M(SHUTPOST, "shut-at-detach-posted", "TCP is shut down when DETACH is posted") \
	M(SHUTEARLY, "shut-before-detach", "TCP is shut down before the peer's DETACH has come") \
	M(REORDER, "credit-before-resume", "CREDIT overtakes RESUME in the send queue") \
	M(FROZEN, "resume-frozen", "RESUME reports what was received when the epoch was closed") \
	M(ORDER, "resume-before-attach", "RESUME overtakes the ATTACH of its epoch") \
	M(QUIET, "quiet-after-resume", "loss of a link after a voluntary RESUME is not reported") \
	M(HASTE, "attach-before-resume", "the next ATTACH does not wait for the peer's RESUME") \
	M(UNSENT, "close-without-resume", "a refused attach closes the epoch without RESUME") \
	M(GREEDY, "detach-reserve", "DETACH uses the credit reserved for announcements") \
	M(NORESERVE, "no-reserve", "data uses every credit") \
	M(LATE, "attached-late", "ATTACHED samples its cursor when it is written") \
	M(LOWAT, "lowat-whole-ring", "the reader may wait for a whole ring of coarse units")

/* Situations, each of which must occur in at least one schedule without mutation. */
#define REACHES \
	R(BOTH, "both directions on the link") \
	R(EARLY, "a write landed before its MOVE") \
	R(STALE_MOVE, "MOVE of a closed epoch") \
	R(REWIND, "RESUME makes the sender send bytes again") \
	R(BELOW_S, "RESUME below S") \
	R(LATER, "read beyond X before RESUME was written") \
	R(UNAWAITED, "RESUME for a direction that is not suspended") \
	R(LATE, "a completion polled after its epoch was closed") \
	R(LOST_CREDIT, "a cursor lost with its link") \
	R(SUSPENDED_FINACK, "FINACK for a suspended direction") \
	R(RESEND_FIN, "DATA after FIN has come") \
	R(REUSE, "the next epoch on the same link") \
	R(CHANNEL, "a channel id reused on a link that is up") \
	R(REFUSED, "an attach refused") \
	R(TWICE, "a second RESUME of one epoch") \
	R(EARLY_DETACH, "DETACH polled before ATTACHED came") \
	R(CURSOR_WRAP, "a 16-bit cursor wrapped") \
	R(COARSE, "a cursor rounded down") \
	R(FULL, "a receive ring exactly full") \
	R(ROOMLESS, "BLOCKED for a full send ring") \
	R(NO_CREDIT, "an end of a link without credits") \
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
	/* not on the wire: epoch in which it was posted; 0 in announcements and noise */
	u32	epoch;
	u64	offset;		/* of its first byte in the sender's stream, if it has bytes */
};

struct message_queue {
	struct message	at[MESSAGES];
	unsigned int	head, count;
};

/* One end of a link: its state, receives, channel ids and credits, and the messages to it. */
struct link_end {
	bool		up;		/* the queue pair works: packets can land */
	bool		died;		/* the device of this end has failed */
	bool		error;		/* a message that this end posted got an error */
	bool		reported_lost;	/* the peer has reported that the link is lost */
	bool		stopped;	/* this end treats the link as lost: posts no messages */
	bool		drained;	/* fenced and drained; no epoch is open at this link end */
	unsigned int	receives;	/* posted and unused */
	u32		channel_epoch[CHANNELS];	/* 0 = free */
	struct afr_link_credit credit;
	struct message_queue wire;	/* packets in flight to this end */
	struct message_queue cq;	/* landed, not polled */
};

struct link {
	struct link_end	end[2];
};

/* One direction of the TCP connection. */
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
	u64			total;		/* end offset of the stream that it writes */
	u32			want;		/* number of bytes that its reader waits for */
	bool			writer_waits;	/* its writer sleeps until afr_tx_writable() */
	bool			writes_first;	/* it reads only after it has written all */

	/* HELLO, or the frame that is being written */
	u8			out[sizeof(struct afr_wire_hello)];
	unsigned int		out_len, out_at;
	u32			out_data;	/* bytes of DATA still to be written behind it */
	/* HELLO and frames that are pending (PC9); DATA, CREDIT and BLOCKED need no flag */
	bool			hello_pending, attach_pending, attached_pending;
	bool			move_pending, resume_pending, fin_pending, finack_pending;
	bool			unknown_pending;	/* an optional frame of an unknown type */
	u64			blocked_at;	/* tx.consumed when BLOCKED was last built */
	bool			blocked_sent;	/* since the last write of the application */
	struct afr_frame	attach, attached, move, resume;

	/* HELLO, or the frame that is being read */
	u8			in[sizeof(struct afr_wire_hello)];
	unsigned int		in_len;
	u32			in_data;	/* bytes of DATA still to come */
	u32			in_skip;	/* bytes of an unknown frame still to come */
	bool			hello_in;
	bool			eof_in;

	/* the current epoch */
	struct link		*link;
	u16			channel, peer_id;	/* channel ids of this end and the peer */
	bool			unanswered;	/* client: ATTACH has no answer yet */
	bool			ready;		/* peer_id is known */
	/* this end posts nothing more in this epoch, except perhaps DETACH */
	bool			leaving;
	bool			detach_wanted, detach_posted, detach_done;
	bool			refused;
	bool			resume_sent, resume_came;

	bool			shut;
	bool			ended;
};

struct world {
	struct end	end[2];
	struct link	link[LINKS];
	unsigned int	links;
	u16		depth[2];	/* receives that each end posts on a link */
	struct tcp	tcp[2];		/* tcp[i] carries the bytes to end i */
	unsigned int	scale;		/* ring sizes on the wire are shifted left by this */
	unsigned int	adversity;	/* percentage of steps at which an adverse one is tried */
	unsigned int	deaths, leaves, noise, attaches;	/* adverse steps still allowed */
	u64		random;
	unsigned int	steps;
};

extern struct world world;
extern enum mutation mutation;
extern bool verbose;
extern u64 reached[REACH_COUNT];
extern jmp_buf failed;
extern char why[256];	/* the message of the last fail() */

/* model_world.c */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void trace_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define trace(...) do { if (verbose) trace_step(__VA_ARGS__); } while (0)
u32 random32(void);
u32 pick(u32 below);			/* 0 .. below - 1 */
bool chance(u32 percent);
u8 byte_at(int sender, u64 offset);	/* the byte of the stream at this offset */
struct link *link_make(void);

static inline struct end *peer_of(const struct end *e)
{
	return &world.end[!e->id];
}

static inline struct link_end *link_of(const struct end *e)
{
	return e->link ? &e->link->end[e->id] : NULL;
}

/* A step: returns whether it is possible, and executes it if @go is set. */
typedef bool (*step_fn)(struct end *e, bool go);

/* model_end.c: the application, epochs, and how the connection ends */
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
void end_detach_polled(struct end *e, u16 channel);
void end_close(struct end *e, u32 reason);
void end_link_lost(struct end *e);
bool end_by_imm(const struct end *e);
void end_refused(struct end *e);
void end_channel_free(struct end *e);
void end_attach_came(struct end *e, const struct afr_frame *f);
void end_attached_came(struct end *e, const struct afr_frame *f);
void end_check(const struct end *e, int reason, const char *what);
void end_rx_changed(struct end *e);

/* model_frame.c: frames on TCP */
bool step_tcp_write(struct end *e, bool go);
bool step_tcp_read(struct end *e, bool go);

/* model_link.c: links, fabric */
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
