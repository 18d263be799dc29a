// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * A test program for run.py and run.sh, linked statically and dynamically. It prints its seccomp
 * mode, and checks that getsockopt() reports TCP for its sockets.
 *
 *	socket_probe			only that
 *	socket_probe ADDRESS PORT BYTES	then sends BYTES to an echo server, from a thread
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK	65536

static struct sockaddr_in peer = { .sin_family = AF_INET };
static size_t bytes;

static int get_option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) || len != sizeof(int) ? -1 : value;
}

/* Creates a socket; exits unless getsockopt() reports TCP for it. */
static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || get_option(fd, SO_DOMAIN) != AF_INET ||
	    get_option(fd, SO_PROTOCOL) != IPPROTO_TCP) {
		fprintf(stderr, "socket %d: %d, %d\n", fd, get_option(fd, SO_DOMAIN),
			get_option(fd, SO_PROTOCOL));
		exit(1);
	}
	return fd;
}

/* Sends a block, which begins at byte @offset of the stream, and checks that it comes back. */
static void echo(int fd, size_t offset)
{
	static char sent[BLOCK], block[BLOCK];
	size_t got, i;
	ssize_t ret;

	for (i = 0; i < BLOCK; i++)
		sent[i] = (offset + i) % 251;
	if (write(fd, sent, BLOCK) != BLOCK)
		exit(3);
	for (got = 0; got < BLOCK; got += ret) {
		ret = read(fd, block + got, BLOCK - got);
		if (ret <= 0)
			exit(4);
	}
	if (memcmp(sent, block, BLOCK))
		exit(5);
}

static void *talk(void *unused)
{
	int fd = tcp_socket();
	size_t done;

	if (connect(fd, (void *)&peer, sizeof(peer))) {
		perror("connect");
		exit(2);
	}
	for (done = 0; done < bytes; done += BLOCK)
		echo(fd, done);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	close(tcp_socket());
	printf("seccomp %d\n", prctl(PR_GET_SECCOMP));
	fflush(stdout);
	if (argc != 4)
		return 0;
	peer.sin_port = htons(atoi(argv[2]));
	bytes = strtoul(argv[3], NULL, 10);
	if (inet_pton(AF_INET, argv[1], &peer.sin_addr) != 1 ||
	    pthread_create(&thread, NULL, talk, NULL) || pthread_join(thread, NULL))
		return 6;
	puts("echoed");
	return 0;
}
