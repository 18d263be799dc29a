// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Measures streams, round trips and connections between two hosts, on TCP, AF_SMC or AF_RDMA:
 *
 *	afr_bench serve
 *	afr_bench stream|rtt|connect|offloads FAMILY ADDRESS [--OPTION=VALUE...]
 *
 *	--size=N	bytes of a message			--seconds=T	duration
 *	--conns=N	connections at once			--messages=N	instead of seconds
 *	--both		stream: in both directions		--beside	rtt: beside a stream
 *	--warm=0|1|2	bytes to send first: none; some; until on RDMA	--on=0|1	offloads
 *	--pause		when one and when all connections are open: print a line, wait for input
 *
 * All commands of a client except "offloads" print lines of JSON. "by_rdma" is the share of the
 * bytes carried by RDMA according to AFRDMA_INFO; only stream and rtt on AF_RDMA have it. The
 * command "connect" always sends one byte per connection, and ignores --warm and --pause.
 */
#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define WARM_ROUNDS	4
#define WARM_SECONDS	5
#define BESIDE_SIZE	(64 << 10)
#define BESIDE_HEAD	0.2	/* seconds that the --beside stream runs before the round trips */
#define STACK_SIZE	(64 << 10)

struct conn {
	int fd;
	pthread_t thread;
	uint64_t sent, got;
	double end;
	struct afrdma_info before;
	struct sample trips;
};

static struct {
	const struct family *family;
	struct sockaddr_in to;
	size_t size;
	unsigned int conns, warm;
	double seconds;
	uint64_t messages;
	int both, beside, on, pause;
} opt = { .size = 64 << 10, .conns = 1, .warm = 2, .seconds = 1 };

static volatile bool stop;	/* threads read it between calls that may sleep */
static struct conn *conns;

static bool is_rdma(void)
{
	return opt.family->domain == AF_RDMA;
}

/* Connections */

/* Connects @c. With --warm=2, an AF_RDMA socket requests RDMA at once. */
static void dial(struct conn *c)
{
	c->fd = new_socket(opt.family);
	if (is_rdma() && opt.warm == 2)
		set_int(c->fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_ALWAYS);
	if (connect(c->fd, (struct sockaddr *)&opt.to, sizeof(opt.to)))
		err(1, "connect");
	set_int(c->fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

static bool on_rdma(int fd)
{
	struct afrdma_info info = rdma_info(fd);

	return info.tx_path == AFRDMA_PATH_RDMA && info.rx_path == AFRDMA_PATH_RDMA;
}

/* Does the round trips of --warm. On AF_RDMA, then stores the byte counters in @c->before. */
static void warm_up(struct conn *c)
{
	struct request r = { .op = OP_WARM };
	double end = now() + WARM_SECONDS;

	for (unsigned int i = 0; opt.warm && i < WARM_ROUNDS; ) {
		send_all(c->fd, &r, sizeof(r));
		recv_all(c->fd, &r, sizeof(r));
		if (!is_rdma() || opt.warm < 2 || on_rdma(c->fd) || now() > end)
			i++;
	}
	if (is_rdma())
		c->before = rdma_info(c->fd);
}

/* For --pause: prints how many connections are open, and waits for a line of input. */
static void print_and_wait(unsigned int open, double seconds)
{
	char line[10];

	printf("{\"open\": %u, \"seconds\": %.6f}\n", open, seconds);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static void dial_all(void)
{
	double begin = now();

	conns = memory(opt.conns * sizeof(*conns));
	for (unsigned int i = 0; i < opt.conns; i++) {
		dial(&conns[i]);
		warm_up(&conns[i]);
		if (opt.pause && (i == 0 || i + 1 == opt.conns)) {
			print_and_wait(i + 1, now() - begin);
			begin = now();
		}
	}
}

/* Ends a line of JSON; on AF_RDMA, first adds RDMA's share of the bytes since warm-up. */
static void print_by_rdma(void)
{
	uint64_t rdma = 0, tcp = 0;

	for (unsigned int i = 0; is_rdma() && i < opt.conns; i++) {
		struct afrdma_info *old = &conns[i].before, info = rdma_info(conns[i].fd);

		rdma += info.tx_bytes_rdma + info.rx_bytes_rdma -
			old->tx_bytes_rdma - old->rx_bytes_rdma;
		tcp += info.tx_bytes_tcp + info.rx_bytes_tcp -
		       old->tx_bytes_tcp - old->rx_bytes_tcp;
	}
	if (is_rdma())
		printf(", \"by_rdma\": %.6f", rdma ? (double)rdma / (rdma + tcp) : 0);
	printf("}\n");
	fflush(stdout);
}

/* Starts a thread per connection that executes @run; for_seconds() waits for the threads. */
static void for_each_conn(void *(*run)(void *))
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (unsigned int i = 0; i < opt.conns; i++)
		if (pthread_create(&conns[i].thread, &attr, run, &conns[i]))
			errx(1, "no thread");
}

/* Stops the threads after @seconds, unless --messages ends them, and waits for them. */
static void for_seconds(double seconds)
{
	if (!opt.messages)
		usleep(seconds * 1e6);
	stop = !opt.messages;
	for (unsigned int i = 0; i < opt.conns; i++)
		pthread_join(conns[i].thread, NULL);
}

/* Streams */

static void *read_stream(void *arg)
{
	struct conn *c = arg;

	c->got = recv_to_end(c->fd);
	return NULL;
}

/* Sends a stream, and waits until the server has read all of it and ends the other direction. */
static void *run_stream(void *arg)
{
	struct request r = { .op = OP_STREAM, .back = opt.both, .size = opt.size };
	struct conn *c = arg;
	pthread_t reader;

	send_all(c->fd, &r, sizeof(r));
	if (opt.both && pthread_create(&reader, NULL, read_stream, c))
		errx(1, "no thread");
	c->sent = send_messages(c->fd, opt.size, opt.messages, &stop);
	if (opt.both)
		pthread_join(reader, NULL);
	else
		recv_to_end(c->fd);
	c->end = now();
	return NULL;
}

static void stream_over_all(void)
{
	uint64_t sent = 0, got = 0;
	double begin = now(), end = 0;

	for_each_conn(run_stream);
	for_seconds(opt.seconds);
	for (unsigned int i = 0; i < opt.conns; i++) {
		sent += conns[i].sent;
		got += conns[i].got;
		end = conns[i].end > end ? conns[i].end : end;
	}
	printf("{\"seconds\": %.6f, \"bytes\": %llu, \"messages\": %llu", end - begin,
	       (unsigned long long)(sent + got), (unsigned long long)(sent / opt.size));
	print_by_rdma();
}

static void stream(void)
{
	dial_all();
	stream_over_all();
}

/* Round trips */

static void print_trips(struct sample *s)
{
	printf("{\"trips\": %zu, \"median\": %.1f, \"p99\": %.1f", s->n,
	       percentile(s, 0.5) * 1e6, percentile(s, 0.99) * 1e6);
}

/* For --beside: sends a stream on one more connection while round trips are measured. */
static void *run_beside(void *arg)
{
	struct request r = { .op = OP_STREAM, .size = BESIDE_SIZE };
	struct conn *c = arg;

	send_all(c->fd, &r, sizeof(r));
	send_messages(c->fd, BESIDE_SIZE, 0, &stop);
	recv_to_end(c->fd);
	return NULL;
}

static void rtt(void)
{
	struct request r = { .op = OP_ECHO, .size = opt.size };
	struct conn beside = { 0 };
	char *buf = memory(opt.size);
	double begin, before, end;
	uint64_t n = 0;

	dial_all();
	if (opt.beside) {
		dial(&beside);
		warm_up(&beside);
		pthread_create(&beside.thread, NULL, run_beside, &beside);
		usleep(BESIDE_HEAD * 1e6);
	}
	send_all(conns->fd, &r, sizeof(r));
	begin = now();
	end = begin;
	while (opt.messages ? n++ < opt.messages : end - begin < opt.seconds) {
		before = end;
		send_all(conns->fd, buf, opt.size);
		recv_all(conns->fd, buf, opt.size);
		end = now();
		sample_add(&conns->trips, end - before);
	}
	stop = true;
	if (opt.beside)
		pthread_join(beside.thread, NULL);
	print_trips(&conns->trips);
	print_by_rdma();
}

/* Until stop is set, or --messages times: connects, sends a byte, receives it back, closes. */
static void *run_connects(void *arg)
{
	struct conn *c = arg;
	char byte = OP_ONE;
	double begin;

	for (unsigned int n = 0; !stop && (!opt.messages || n < opt.messages); n++) {
		begin = now();
		dial(c);
		send_all(c->fd, &byte, 1);
		recv_all(c->fd, &byte, 1);
		sample_add(&c->trips, now() - begin);
		close(c->fd);
	}
	return NULL;
}

static void connects(void)
{
	struct sample all = { 0 };
	double begin = now();

	opt.warm = 0;
	conns = memory(opt.conns * sizeof(*conns));
	for_each_conn(run_connects);
	for_seconds(opt.seconds);
	begin = now() - begin;
	for (unsigned int i = 0; i < opt.conns; i++)
		for (size_t k = 0; k < conns[i].trips.n; k++)
			sample_add(&all, conns[i].trips.at[k]);
	print_trips(&all);
	printf(", \"per_second\": %.1f}\n", all.n / begin);
}

/* Sets the offloads of both hosts to --on. */
static void offloads(void)
{
	struct request r = { .op = OP_OFFLOADS, .size = opt.on };

	set_offloads(opt.on);
	opt.warm = 0;
	dial_all();
	send_all(conns->fd, &r, sizeof(r));
	recv_all(conns->fd, &r, sizeof(r));
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "stream", stream },
	{ "rtt", rtt },
	{ "connect", connects },
	{ "offloads", offloads },
};

static void read_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "size", required_argument, NULL, 's' },
		{ "conns", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 't' },
		{ "messages", required_argument, NULL, 'm' },
		{ "warm", required_argument, NULL, 'w' },
		{ "on", required_argument, NULL, 'o' },
		{ "both", no_argument, &opt.both, 1 },
		{ "beside", no_argument, &opt.beside, 1 },
		{ "pause", no_argument, &opt.pause, 1 },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 's': opt.size = atoll(optarg); break;
		case 'c': opt.conns = atoi(optarg); break;
		case 't': opt.seconds = atof(optarg); break;
		case 'm': opt.messages = atoll(optarg); break;
		case 'w': opt.warm = atoi(optarg); break;
		case 'o': opt.on = atoi(optarg); break;
		case 0: break;
		default: exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve"))
		return serve();
	if (argc < 4)
		errx(2, "see the top of afr_bench.c");
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (!strcmp(argv[2], families[i].name))
			opt.family = &families[i];
	if (!opt.family || inet_pton(AF_INET, argv[3], &opt.to.sin_addr) != 1)
		errx(2, "%s %s: no such family, or not an address", argv[2], argv[3]);
	opt.to.sin_family = AF_INET;
	opt.to.sin_port = htons(opt.family->port);
	read_options(argc - 3, argv + 3);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run();
			return 0;
		}
	errx(2, "%s: no such command", argv[1]);
}
