// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The server. It serves connections concurrently, each in a thread of its own, and starts one more
 * thread whenever none would be left to wait in accept(). While a stream goes both ways, a second
 * thread of the connection sends. When the client has ended a connection, its thread accepts
 * another one.
 */
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define STACK_SIZE	(64 << 10)

struct listener {
	int fd;
	atomic_int idle;	/* threads that wait in accept() */
};

struct writer {
	pthread_t thread;
	int fd;
	size_t size;
	volatile bool stop;
};

static void *write_back(void *arg)
{
	struct writer *w = arg;

	send_messages(w->fd, w->size, 0, &w->stop);
	return NULL;
}

/* Also called if the thread that reads has lost the connection: then the writer fails, too. */
static void end_writer(void *arg)
{
	struct writer *w = arg;

	w->stop = true;
	pthread_join(w->thread, NULL);
}

/* Reads a stream to its end; if the client wants both directions, sends one at the same time. */
static void stream(int fd, const struct request *r)
{
	struct writer w = { .fd = fd, .size = r->size };

	if (!r->back) {
		recv_to_end(fd);
		return;
	}
	if (pthread_create(&w.thread, NULL, write_back, &w))
		errx(1, "no thread");
	pthread_cleanup_push(end_writer, &w);
	recv_to_end(fd);
	pthread_cleanup_pop(1);
}

static void echo(int fd, const struct request *r)
{
	char *buf = memory(r->size);

	while (recv_all(fd, buf, r->size))
		send_all(fd, buf, r->size);
	free(buf);
}

/* Executes the requests of a connection until the client ends it. */
static void serve_connection(int fd)
{
	struct request r;

	while (recv_all(fd, &r, 1)) {
		if (r.op == OP_ONE) {
			send_all(fd, &r, 1);
			continue;
		}
		if (!recv_all(fd, (char *)&r + 1, sizeof(r) - 1))
			errx(1, "incomplete request");
		if (r.op == OP_OFFLOADS)
			set_offloads(r.size);
		if (r.op == OP_STREAM)
			stream(fd, &r);
		else if (r.op == OP_ECHO)
			echo(fd, &r);
		else
			send_all(fd, &r, sizeof(r));
	}
}

static void close_fd(void *fd)
{
	close(*(int *)fd);
}

static void one_more(struct listener *l);

/* Thread: serves one connection after another; sees to it that a thread waits in accept(). */
static void *serve_listener(void *arg)
{
	struct listener *l = arg;
	int fd;

	for (;;) {
		fd = accept(l->fd, NULL, NULL);
		if (fd < 0)
			err(1, "accept");
		if (atomic_fetch_sub(&l->idle, 1) == 1)
			one_more(l);
		set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		pthread_cleanup_push(close_fd, &fd);
		serve_connection(fd);
		pthread_cleanup_pop(1);
		atomic_fetch_add(&l->idle, 1);
	}
	return NULL;
}

/* Starts one more thread that accepts and serves connections. */
static void one_more(struct listener *l)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	atomic_fetch_add(&l->idle, 1);
	if (pthread_create(&thread, &attr, serve_listener, l))
		errx(1, "no thread");
}

static void start(const struct family *family)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(family->port) };
	struct listener *l = memory(sizeof(*l));

	l->fd = socket(family->domain, SOCK_STREAM, 0);
	if (l->fd < 0) {
		warn("no %s", family->name);
		return;
	}
	set_int(l->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(l->fd, (struct sockaddr *)&at, sizeof(at)) || listen(l->fd, 1024))
		err(1, "listen with %s", family->name);
	one_more(l);
}

int serve(void)
{
	serving = true;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		start(&families[i]);
	for (;;)
		pause();
}
