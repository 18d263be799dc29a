/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * rogue: a hostile peer in user space, without RDMA. It owns a TUN device and has a small TCP of
 * its own, so that it can send TCP options, bytes and frames that the module never sends. The
 * victim is an ordinary program on an AF_RDMA socket (with --family tcp, a TCP socket), in a child
 * process. A bystander connection shows that other connections are not affected.
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

/* ---- packets (rogue_tun.c) ---- */

#define PACKET_MAX	1500
#define MSS		1200

union tun_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* The TUN device, the kernel's address on it, and rogue's address. */
struct tun {
	int fd;
	bool v6;
	union tun_addr kernel, own;
};

/* One TCP segment; in a received one, @options and @data point into the packet buffer. */
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
bool tun_receive(struct tun *tun, int ms, u8 *buf, struct segment *seg);

/* ---- a TCP connection (rogue_tcp.c) ---- */

#define IN_MAX		(1 << 20)

struct tcb {
	struct tun *tun;
	u16 port, peer_port;
	u32 snd_una, snd_nxt, rcv_nxt;
	u32 peer_window;
	/*
	 * Always 0, since rogue offers no window scaling. But in echoed() the SYN-ACK contains the
	 * peer's own offer, so the peer scales its windows, and they appear too small to rogue.
	 */
	unsigned int peer_scale;
	bool established;
	bool peer_fin;			/* FIN was received, in order */
	bool fin_sent;
	bool reset;			/* RST was received */
	bool urgent;			/* a segment with URG was received */
	u8 syn_options[40];		/* TCP options of the peer's SYN or SYN-ACK */
	unsigned int syn_options_len;
	u32 syn_seq;
	unsigned int syns;		/* SYNs and SYN-ACKs received */
	u8 *in;				/* bytes received in order */
	size_t in_len;
	void (*before_ack)(struct tcb *tcb);	/* called before the SYN-ACK is acknowledged */
};

void tcp_init(struct tcb *tcb, struct tun *tun, u16 port, u16 peer_port);
bool tcp_connect(struct tcb *tcb, const u8 *options, unsigned int len);
bool tcp_await_syn(struct tcb *tcb);
bool tcp_answer_syn(struct tcb *tcb, const u8 *options, unsigned int len);
void tcp_cross_syn(struct tcb *tcb);
bool tcp_turn(struct tcb *tcb, int ms);
bool tcp_send(struct tcb *tcb, const void *data, size_t len, size_t chunk);
void tcp_fin(struct tcb *tcb);
void tcp_rst(struct tcb *tcb);

/* ---- the victim (rogue_victim.c) ---- */

#define SAY_MAX		(256 * 1024)
#define FIRST		500	/* bytes that an accepting victim sends first, with MSG_DONTWAIT */
#define HEAR_MAX	(4 * 1024 * 1024)

enum victim_state {
	VICTIM_STARTING,
	VICTIM_CONNECTED,
	VICTIM_CLOSING,		/* with @lingers only */
	VICTIM_ENDED,
};

struct victim_report {
	int state;		/* enum victim_state */
	int read_now;		/* a victim with @sleepy waits for this before it reads */
	int listen_now;		/* set by rogue: a victim with @relistens may listen again */
	int listens_again;	/* set by that victim when it listens again */
	/*
	 * errno of open_conn() or recv() or, if neither failed, of send(); 0 = none. With @closes,
	 * no error of send() is stored. EPIPE of send() is stored only with @lingers.
	 */
	int err;
	int err_again;		/* error that SO_ERROR reports after recv() has failed; 0 = none */
	u32 mode, reason;	/* AFRDMA_INFO after the last recv(); 0 without recv() */
	/* now() after a failed open_conn(), the last recv(), or close() with @lingers */
	double ended;
	bool stalled;		/* @stalls has an effect: the kernel has userfaultfd */
	size_t heard_len;
	u8 heard[HEAR_MAX];
};

struct victim {
	pid_t pid;
	struct victim_report *report;
};

struct victim_plan {
	bool listens;		/* the victim accepts; otherwise it connects to rogue */
	bool rdma;
	bool sleepy;		/* the victim does not read before read_now is set */
	bool urgent;		/* the victim sends its first bytes with MSG_OOB */
	bool times_out;		/* the victim sets SO_RCVTIMEO when it is connected */
	bool oob_early;		/* the victim calls recv(MSG_OOB) when it is connected */
	bool lingers;		/* the victim does not read; it sends and closes with SO_LINGER */
	bool crosses;		/* in SYN-RECEIVED, the victim calls shutdown(SHUT_WR) */
	/* with @sleepy and userfaultfd: after FIRST bytes, send() faults and waits for read_now */
	bool stalls;
	bool closes;		/* the victim closes after its last byte, and does not read */
	bool lowat;		/* the victim sets SO_RCVLOWAT when it is connected */
	/* before accept(), the victim disconnects its listener, denies RDMA and listens again */
	bool relistens;
	unsigned int sends;	/* number of bytes that the victim sends */
	u16 port;
};

void victim_start(struct victim *victim, const struct tun *tun, const struct victim_plan *plan);
int victim_state(const struct victim *victim);
bool victim_join(struct victim *victim, double seconds);
u8 victim_byte(size_t i);
u8 rogue_byte(size_t i);

/* ---- the run, time and random numbers (rogue_util.c) ---- */

/* Settings of the run, and its TUN device. */
struct rogue_run {
	struct tun tun;
	bool rdma;
	bool quick;
	double patience;	/* seconds within which the outcome must occur */
	u64 seed;
	unsigned int cases;	/* number of cases of each row with RANDOM, 0 = its count */
};

extern struct rogue_run rogue;

double now(void);
bool has_tcp_ao(void);
u64 rnd(void);
void rnd_start(u64 seed);

/* ---- one case (rogue_peer.c) ---- */

/*
 * The required outcome for a victim on AF_RDMA. With EXPECT_PLAIN, all bytes that the victim sends
 * must also arrive unframed, unless rogue, as server, has accepted the victim's offer. With
 * --family tcp, all but EXPECT_SURVIVE mean EXPECT_PLAIN.
 */
enum expect {
	EXPECT_PLAIN,		/* reads all bytes after the TCP handshake as data, then the end */
	/* reads all payload of the valid DATA frames, then the end; see also wants_frames() */
	EXPECT_STREAM,
	EXPECT_ERROR,		/* reads a prefix of peer->stream, then ECONNRESET or EPROTO */
	EXPECT_EITHER,		/* EXPECT_STREAM or EXPECT_ERROR */
	/* reads all bytes of EXPECT_PLAIN, then the end; or a prefix, then ECONNRESET or EPROTO */
	EXPECT_PLAIN_OR_ERROR,
	EXPECT_SURVIVE,		/* must end in time, with any result; other connections must work */
};

#define AS_CLIENT	0x1	/* rogue connects, the victim listens */
#define AS_SERVER	0x2	/* the victim connects to rogue */
#define AS_BOTH		(AS_CLIENT | AS_SERVER)
#define OPEN_SELF	0x4	/* the row does the TCP handshake itself; implies NO_HELLO */
/* the victim reads only once read_now is set: by the row, or else by act() of rogue_peer.c */
#define SLEEPY		0x8
#define NO_HELLO	0x10	/* the row sends its own HELLO, or none */
#define LINGERS		0x20	/* the victim does not read; it sends and closes with SO_LINGER */
#define SHORT_TIMERS	0x40	/* the timers of run_timed() are SHORT_TIMER, else LONG_TIMER */
#define RANDOM		0x100	/* --cases sets the number of cases; each has its own seed */
#define TIMES_OUT	0x400	/* the victim sets SO_RCVTIMEO after connect() or accept() */
#define OOB_EARLY	0x800	/* the victim's recv(MSG_OOB) before HELLO must fail at once */
#define URGENT_FIRST	0x200	/* the victim's first send() has MSG_OOB */
#define CLOSES		0x1000	/* the victim closes after its last byte, and does not read */
#define MALFORMED	0x2000	/* the option list of a SYN or SYN-ACK is malformed */
/* with SLEEPY and userfaultfd: after FIRST bytes, send() faults and waits for read_now */
#define STALLS		0x8000
#define CROSSES		0x10000	/* in SYN-RECEIVED, the victim calls shutdown(SHUT_WR) */
#define LOWAT		0x20000	/* the victim sets SO_RCVLOWAT after connect() or accept() */
#define RELISTENS	0x40000	/* before accept(), the victim disconnects and listens again */
#define RAW_BACK	0x80	/* the victim sends in fallback mode, even if rogue sends frames */

struct peer;

struct rogue_row {
	const char *name;
	unsigned int flags;
	void (*act)(struct peer *p, unsigned int i);
	unsigned int count;	/* act() gets each i < count; --quick and --cases change that */
	enum expect expect;
	unsigned int reason;	/* in AFRDMA_INFO if recv() or send() of the victim fails; 0 = any */
	unsigned int sends;	/* bytes that the victim sends */
};

struct peer {
	const struct rogue_row *row;
	struct tcb tcb;
	struct victim victim;
	bool as_client;
	u32 nonce;		/* nonce in the client's option */
	u64 offset;		/* stream offset of the next DATA frame */
	u8 *raw;		/* every byte that rogue has sent after the TCP handshake */
	size_t raw_len;
	u8 *stream;		/* payload of DATA that the victim may read; judge() compares it */
	size_t stream_len;
	/* The members below, but for @finacked and @why, describe what the victim has sent. */
	size_t parsed;		/* number of bytes of tcb.in that were parsed */
	bool hello_seen;
	struct afr_hello hello;
	u64 heard;		/* payload bytes of DATA */
	u64 fin;		/* end of the stream, AFR_NO_END before FIN */
	bool finacked;		/* answer_fin() has sent FINACK */
	unsigned int frames[16];	/* number of frames of each type; @last: the last of them */
	struct afr_frame last[16];
	char why[300];		/* the first error, see wrong() */
};

#define AFR_NO_END	U64_MAX

extern const struct rogue_row option_rows[], hello_rows[], frame_rows[];
extern const struct rogue_row state_rows[], flood_rows[];
void wrong(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

void peer_raw(struct peer *p, const void *data, size_t len, size_t chunk);
void peer_raw_bytes(struct peer *p, size_t len);
void peer_default_hello(struct peer *p, struct afr_wire_hello *hello);
void peer_hello(struct peer *p);
void peer_frame(struct peer *p, const struct afr_frame *frame);
void peer_offset_frame(struct peer *p, u8 type, u64 offset);
void peer_data(struct peer *p, size_t len);
void peer_data_at(struct peer *p, u64 offset, size_t len);
void peer_fin(struct peer *p);
bool peer_open(struct peer *p);
bool peer_open_options(struct peer *p, const u8 *options, unsigned int len);
bool peer_await_frame(struct peer *p, u8 type, unsigned int count, double seconds);
bool peer_await_hello(struct peer *p, double seconds);
void peer_settle(struct peer *p, double seconds);
const char *peer_run(const struct rogue_row *row, unsigned int i, bool as_client);

#endif /* AFR_NET_ROGUE_H */
