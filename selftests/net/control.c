// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The control channel: lines of text on TCP connections, one for the session and one for each row.
 * It does not use AF_RDMA, so that a defect of AF_RDMA cannot disturb the control of the test.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>

#include "main.h"
#include "test.h"

void control_writef(const char *format, ...)
{
	char line[600];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (len > (int)sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (send(run.control, line, len, MSG_NOSIGNAL) != len)
		fail("control channel: %s", strerror(errno));
}

static bool starts_with(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

/*
 * Reads the next line. Calls fail() if the other side has failed or is gone, or if the line is too
 * long, and skip() if the other side skips the row. Both functions end the calling process, be it
 * a process of the row or the runner.
 */
void control_readline(char *line, size_t size)
{
	size_t len = 0;

	for (;;) {
		ssize_t got;

		at(__FILE__, __LINE__, "wait for a line from the other side");
		do
			got = recv(run.control, line + len, 1, 0);
		while (got < 0 && errno == EINTR);
		if (got <= 0)
			fail("the other side is gone");
		if (line[len] == '\n')
			break;
		if (++len == size)
			fail("line too long on the control channel");
	}
	line[len] = 0;
	if (starts_with(line, LINE_FAIL " "))
		fail("other side: %s", line + strlen(LINE_FAIL " "));
	if (starts_with(line, LINE_SKIP " "))
		skip("%s", line + strlen(LINE_SKIP " "));
}

/* Reads the next line, which must be @want. */
static void expect(const char *want)
{
	char line[600];

	control_readline(line, sizeof(line));
	if (strcmp(line, want))
		fail("the other side sent \"%s\", this side expected \"%s\"", line, want);
}

void control_send_number(const char *name, long long number)
{
	control_writef("%s %lld", name, number);
}

long long control_get_number(const char *name)
{
	size_t len = strlen(name);
	char line[600];

	control_readline(line, sizeof(line));
	if (strncmp(line, name, len) || line[len] != ' ')
		fail("the other side sent \"%s\", this side expected \"%s\"", line, name);
	return atoll(line + len);
}

/* Waits until the other side has called barrier() with the same @name. */
void barrier(const char *name)
{
	char line[100];

	snprintf(line, sizeof(line), "BARRIER %s", name);
	control_writef("%s", line);
	expect(line);
}

int control_listen(int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 10)) {
		perror("control port");
		exit(2);
	}
	return fd;
}

static int set_nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Returns -1 if no client connects within @seconds. */
int control_accept(int listener, double seconds)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };

	if (poll(&p, 1, seconds * 1000) <= 0)
		return -1;
	return set_nodelay(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}

/* Retries for @seconds, because the server may not have started yet; then returns -1. */
int control_connect(const char *host, int port, double seconds)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	double end = now() + seconds;

	if (inet_pton(AF_INET, host, &addr.sin_addr) != 1) {
		fprintf(stderr, "%s is not an IPv4 address\n", host);
		exit(2);
	}
	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
			return set_nodelay(fd);
		close(fd);
		if (now() > end)
			return -1;
		poll(NULL, 0, 20);
	}
}
