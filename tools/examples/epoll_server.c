// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * epoll_server PORT: like server.c, for many clients at the same time in one thread. Each
 * connection waits either for bytes to receive, or for space to send the received ones back.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>

#include "example.h"

struct client {
	int fd;
	size_t at, len;		/* the bytes from buf[at] to buf[len - 1] have yet to be sent */
	char buf[BLOCK];
};

static void watch(int epoll, int what, int fd, struct client *client, int events)
{
	struct epoll_event event = { .events = events, .data.ptr = client };

	if (epoll_ctl(epoll, what, fd, &event))
		err(1, "epoll_ctl");
}

static void accept_client(int epoll, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	struct client *client = calloc(1, sizeof(*client));

	if (fd < 0 || !client)
		err(1, "accept");
	client->fd = fd;
	watch(epoll, EPOLL_CTL_ADD, fd, client, EPOLLIN);
}

/* Receives or sends once, without waiting. Returns false at the end of the stream, or on error. */
static bool step(struct client *client)
{
	ssize_t done;

	if (client->at < client->len) {
		done = send(client->fd, client->buf + client->at, client->len - client->at,
			    MSG_NOSIGNAL);
		client->at += done > 0 ? done : 0;
		return done >= 0 || errno == EAGAIN;
	}
	done = recv(client->fd, client->buf, sizeof(client->buf), 0);
	client->at = 0;
	client->len = done > 0 ? done : 0;
	return done > 0 || (done < 0 && errno == EAGAIN);
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int epoll = epoll_create1(0), fd = socket(AF_RDMA, SOCK_STREAM, 0);
	struct epoll_event event;

	any.sin_port = htons(argc == 2 ? atoi(argv[1]) : 7);
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 128))
		err(1, "AF_RDMA, port %d", ntohs(any.sin_port));
	watch(epoll, EPOLL_CTL_ADD, fd, NULL, EPOLLIN);
	for (;;) {
		struct client *client;

		if (epoll_wait(epoll, &event, 1, -1) != 1) {
			/* EINTR: a signal was handled, or the process was stopped and continued */
			if (errno != EINTR)
				err(1, "epoll_wait");
			continue;
		}
		client = event.data.ptr;
		if (!client) {
			accept_client(epoll, fd);
		} else if (step(client)) {
			watch(epoll, EPOLL_CTL_MOD, client->fd, client,
			      client->at < client->len ? EPOLLOUT : EPOLLIN);
		} else {
			report(client->fd);
			close(client->fd);
			free(client);
		}
	}
}
