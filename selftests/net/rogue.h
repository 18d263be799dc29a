/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rogue: a hostile peer in user space. It owns a TUN device, speaks just enough
 * TCP over it to shake hands with our option, and then says what no module of
 * ours would say. The victim is an ordinary program on an AF_RDMA socket, in a
 * child; a bystander connection shows that others are not harmed.
 */
#ifndef AFR_NET_ROGUE_H
#define AFR_NET_ROGUE_H

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <linux/af_rdma.h>

#include "proto/frame.h"
#include "proto/hello.h"
#include "proto/reason.h"
#include "proto/tcp_option.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- the wire (rogue_tun.c) ---- */

#define PACKET_MAX	1500
#define MSS		1200

union tun_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Both ends of the TUN link; the kernel has the first, rogue the second. */
struct tun {
	int fd;
	bool v6;
	union tun_addr kernel, own;
};

/* One TCP segment, in or out; @options and @data point into a packet. */
struct segment {
	u16 sport, dport;
	u32 seq, ack;
	u8 flags;
	u16 window;
	const u8 *options;
	unsigned int options_len;
	const u8 *data;
	unsigned int data_len;
};

#define TCP_FIN	0x01
#define TCP_SYN	0x02
#define TCP_RST	0x04
#define TCP_PSH	0x08
#define TCP_ACK	0x10
#define TCP_URG	0x20

void tun_open(struct tun *tun, bool v6);
void tun_send(struct tun *tun, const struct segment *seg);
/* Next segment within @ms; @buf (PACKET_MAX bytes) backs its pointers. */
bool tun_receive(struct tun *tun, int ms, u8 *buf, struct segment *seg);

/* ---- a TCP connection (rogue_tcp.c) ---- */

#define IN_MAX		(1 << 20)

struct tcb {
	struct tun *tun;
	u16 port, peer_port;
	u32 snd_una, snd_nxt, rcv_nxt;
	u32 peer_window;
	unsigned int peer_scale;	/* of its windows, if both asked for scaling */
	bool established;
	bool peer_fin;			/* in order, behind all its bytes */
	bool fin_sent;
	bool reset;			/* by the peer */
	bool urgent;			/* it has said URG */
	u8 syn_options[40];		/* of its SYN or SYN-ACK */
	unsigned int syn_options_len;
	u32 syn_seq;
	unsigned int syns;		/* SYNs of it that were seen */
	u8 *in;				/* bytes received in order */
	size_t in_len;
};

void tcp_init(struct tcb *tcb, struct tun *tun, u16 port, u16 peer_port);
/* Active open with these options; false when nobody answers. */
bool tcp_connect(struct tcb *tcb, const u8 *options, unsigned int len);
/* Passive open in two steps, so that the answer can depend on the SYN. */
bool tcp_await_syn(struct tcb *tcb);
bool tcp_answer_syn(struct tcb *tcb, const u8 *options, unsigned int len);
/* Take what comes for @ms; false when nothing came. */
bool tcp_turn(struct tcb *tcb, int ms);
/* Segments of at most @chunk bytes, each acknowledged before the next. */
bool tcp_send(struct tcb *tcb, const void *data, size_t len, size_t chunk);
void tcp_fin(struct tcb *tcb);
void tcp_rst(struct tcb *tcb);

/* ---- the victim (rogue_victim.c) ---- */

#define SAY_MAX		(256 * 1024)
#define HEAR_MAX	(4 * 1024 * 1024)

enum victim_state { VICTIM_STARTING, VICTIM_CONNECTED, VICTIM_ENDED };

struct victim_report {
	int state;		/* enum victim_state */
	int read_now;		/* a sleepy victim reads when this is set */
	int err;		/* errno that ended reading, 0 = end of stream */
	u32 mode, reason;	/* AFRDMA_INFO at the end */
	double ended;		/* when */
	size_t heard_len;
	u8 heard[HEAR_MAX];
};

struct victim {
	pid_t pid;
	struct victim_report *report;
};

struct victim_plan {
	bool listens;		/* else it connects to rogue */
	bool rdma;
	bool sleepy;		/* does not read until told */
	bool shouts;
	unsigned int says;	/* bytes it writes at once */
	u16 port;
};

void victim_start(struct victim *victim, const struct tun *tun, const struct victim_plan *plan);
/* Wait; false: it had to be killed. */
bool victim_join(struct victim *victim, double seconds);
/* Byte @i of what a victim says, and of what rogue says as application. */
u8 victim_byte(size_t i);
u8 rogue_byte(size_t i);

/* ---- one case (rogue_peer.c) ---- */

enum expect {
	EXPECT_PLAIN,		/* all our bytes are the application's, TCP's end is its end */
	EXPECT_STREAM,		/* exactly what our DATA frames carried, then the end */
	EXPECT_ERROR,		/* a prefix of that, then ECONNRESET or EPROTO */
	EXPECT_EITHER,		/* EXPECT_STREAM or EXPECT_ERROR */
	EXPECT_PLAIN_OR_ERROR,
	EXPECT_SURVIVE,		/* it ends somehow; what counts is all the others */
};

#define AS_CLIENT	0x1	/* we connect, the victim listens */
#define AS_SERVER	0x2	/* the victim connects to us */
#define AS_BOTH		(AS_CLIENT | AS_SERVER)
#define OPEN_SELF	0x4	/* the row shakes hands itself */
#define SLEEPY		0x8	/* the victim reads when the row is over */
#define NO_HELLO	0x10	/* the row sends HELLO itself, or none */
#define KEEP_OPEN	0x20	/* no end from our side until the victim has ended */
#define SHORT_TIMERS	0x40	/* net.afrdma timers are a fraction of a second */
#define RANDOM		0x100	/* as many cases as --cases says, a seed for each */
#define SHOUTS		0x200	/* the first bytes the victim says end in an urgent one */
#define RAW_BACK	0x80	/* the victim's output is raw although ours is framed */

struct peer;

struct rogue_row {
	const char *name;
	unsigned int flags;
	void (*act)(struct peer *p, unsigned int i);
	unsigned int count;	/* runs for i = 0 .. count - 1 */
	enum expect expect;
	unsigned int reason;	/* AFRDMA_INFO must give it with an error; 0 = any */
	unsigned int says;
};

struct peer {
	const struct rogue_row *row;
	struct tcb tcb;
	struct victim victim;
	bool as_client;
	u32 nonce;		/* the client's */
	u64 offset;		/* of our next DATA */
	u8 *raw;		/* every byte behind the handshake */
	size_t raw_len;
	u8 *stream;		/* what DATA frames carried, in place */
	size_t stream_len;
	/* what the victim said */
	size_t parsed;
	bool hello_seen;
	struct afr_hello hello;
	u64 heard;		/* stream bytes */
	u64 fin;		/* AFR_NO_END until its FIN */
	bool finacked;
	unsigned int frames[16];
	struct afr_frame last[16];
	char why[300];		/* the first thing that was wrong */
};

#define AFR_NO_END	U64_MAX

extern const struct rogue_row option_rows[], hello_rows[], frame_rows[];
extern const struct rogue_row state_rows[], flood_rows[];

/* Settings of the run. */
struct rogue_run {
	struct tun tun;
	bool rdma;
	bool quick;
	double patience;	/* seconds an error may take to show */
	u64 seed;
	unsigned int cases;	/* of rows at random, 0 = as they say */
};

extern struct rogue_run rogue;

double now(void);
u64 rnd(void);
void rnd_start(u64 seed);
/* Note what is wrong; the first note stays. */
void wrong(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

void peer_raw(struct peer *p, const void *data, size_t len, size_t chunk);
/* Application bytes, with no frame around them. */
void peer_raw_bytes(struct peer *p, size_t len);
void peer_default_hello(struct peer *p, struct afr_wire_hello *hello);
void peer_hello(struct peer *p);
void peer_frame(struct peer *p, const struct afr_frame *frame);
void peer_offset_frame(struct peer *p, u8 type, u64 offset);
/* The next @len stream bytes in one DATA frame, or at another offset, which is a lie. */
void peer_data(struct peer *p, size_t len);
void peer_data_at(struct peer *p, u64 offset, size_t len);
void peer_fin(struct peer *p);
/* Handshake with the option as it should be. */
bool peer_open(struct peer *p);
bool peer_open_options(struct peer *p, const u8 *options, unsigned int len);
/* Look at what came for up to @seconds, until @count frames of @type were seen. */
bool peer_await_frame(struct peer *p, u8 type, unsigned int count, double seconds);
bool peer_await_hello(struct peer *p, double seconds);
/* Answer what an honest end would answer, until the victim is done. */
void peer_settle(struct peer *p, double seconds);
/* Run case @i of a row; NULL, or what was wrong. */
const char *peer_run(const struct rogue_row *row, unsigned int i, bool as_client);

#endif /* AFR_NET_ROGUE_H */
