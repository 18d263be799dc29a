// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Urgent data: MSG_OOB, SO_OOBINLINE, SIOCATMARK, SIGURG, POLLPRI, SO_RCVLOWAT. */
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "test.h"

/* Receives as many bytes as @text has, which must be those of @text. */
static void recv_text(int fd, const char *text)
{
	char buf[16];
	size_t len = strlen(text);

	WANT_EQ(SYS(recv(fd, buf, len, MSG_WAITALL)), len);
	WANT(!memcmp(buf, text, len));
}

/* Sends "abc", the urgent byte X and "def"; the peer reads them only after all are sent. */
static void send_three(void)
{
	int fd = open_conn();

	barrier("nothing yet");
	SYS(send(fd, "abc", 3, MSG_NOSIGNAL));
	WANT_EQ(SYS(send(fd, "X", 1, MSG_OOB | MSG_NOSIGNAL)), 1);
	SYS(send(fd, "def", 3, MSG_NOSIGNAL));
	barrier("sent");
	path_check(fd, 7, 0);
}

/* Other end of send_three(): opens the connection, and waits for POLLPRI. */
static int open_three(void)
{
	int fd = open_conn();
	char byte;

	SYS_ERRNO(recv(fd, &byte, 1, MSG_OOB), EINVAL);
	WANT_EQ(ask_int(fd, SIOCATMARK), 0);
	barrier("nothing yet");
	barrier("sent");
	await(fd, POLLPRI);
	return fd;
}

/* A read without MSG_OOB stops at the urgent offset; the next one leaves out the urgent byte. */
static void urgent_recv(void)
{
	int fd = open_three();
	char buf[16];

	WANT_EQ(SYS(recv(fd, buf, 1, MSG_OOB | MSG_PEEK)), 1);
	WANT_EQ(SYS(recv(fd, buf, 10, MSG_OOB)), 1);
	WANT(buf[0] == 'X');
	SYS_ERRNO(recv(fd, buf, 1, MSG_OOB), EINVAL);
	WANT_EQ(poll_one(fd, POLLPRI, 0), 0);
	WANT_EQ(ask_int(fd, SIOCATMARK), 0);
	WANT_EQ(ask_int(fd, SIOCINQ), 3);
	WANT_EQ(SYS(recv(fd, buf, 10, MSG_WAITALL)), 3);
	WANT(!memcmp(buf, "abc", 3));
	WANT_EQ(ask_int(fd, SIOCATMARK), 1);
	WANT_EQ(SYS(recv(fd, buf, 0, 0)), 0);
	recv_text(fd, "def");
	WANT_EQ(ask_int(fd, SIOCATMARK), 0);
	path_check(fd, 0, 7);
}

/* Without SO_OOBINLINE, a read that passes the urgent byte omits it; recv(MSG_OOB) then fails. */
static void missed_recv(void)
{
	int fd = open_three();
	char buf[16];

	WANT_EQ(SYS(recv(fd, buf, 10, MSG_PEEK)), 3);
	WANT_EQ(SYS(recv(fd, buf, 10, 0)), 3);
	WANT_EQ(ask_int(fd, SIOCATMARK), 1);
	EVENTUALLY(recv(fd, buf, 10, MSG_PEEK | MSG_DONTWAIT) == 3);
	WANT_EQ(SYS(recv(fd, buf, 0, 0)), 0);
	WANT_EQ(ask_int(fd, SIOCATMARK), 1);
	recv_text(fd, "def");
	SYS_ERRNO(recv(fd, buf, 1, MSG_OOB), EINVAL);
	path_check(fd, 0, 7);
}

/* With SO_OOBINLINE a read still stops at the urgent offset; the next read returns the byte. */
static void inline_recv(void)
{
	int fd = open_conn();
	char buf[16];

	set_int(fd, SOL_SOCKET, SO_OOBINLINE, 1);
	barrier("nothing yet");
	barrier("sent");
	await(fd, POLLPRI);
	SYS_ERRNO(recv(fd, buf, 1, MSG_OOB), EINVAL);
	EVENTUALLY(ask_int(fd, SIOCINQ) == 7);
	WANT_EQ(SYS(recv(fd, buf, 10, 0)), 3);
	WANT_EQ(ask_int(fd, SIOCATMARK), 1);
	recv_text(fd, "Xdef");
	path_check(fd, 0, 7);
}

/* SIGURG announces the urgent byte. */
static void signal_recv(void)
{
	int fd = open_conn();
	char buf[4];

	on_signal(SIGURG, SA_RESTART);
	SYS(fcntl(fd, F_SETOWN, getpid()));
	barrier("nothing yet");
	barrier("sent");
	EVENTUALLY(signals_seen > 0);
	await(fd, POLLPRI);
	recv_text(fd, "abc");
	WANT_EQ(SYS(recv(fd, buf, 1, MSG_OOB)), 1);
	recv_text(fd, "def");
	path_check(fd, 0, 7);
}

/* ---- urgent bytes in a long stream ---- */

#define CHUNK	(12 * KIB + 1)

static size_t rounds(void)
{
	return amount(200, 20);
}

/*
 * An urgent byte would replace an earlier one that is still unread. So before the next round, the
 * sender waits until the reader has read the urgent byte or bytes behind it.
 */
static void stream_send(void)
{
	struct flow out = flow_out(0);
	int fd = open_conn();

	for (size_t i = 0; i < rounds(); i++) {
		char byte = i;

		flow_send_random(fd, &out, CHUNK, CHUNK);
		WANT_EQ(SYS(send(fd, &byte, 1, MSG_OOB | MSG_NOSIGNAL)), 1);
		if (i % 3)
			barrier("urgent byte read");
		else
			flow_send(fd, &out, 1, 1);
		barrier("chunk read");
	}
	path_check(fd, out.off + rounds(), 0);
}

static char read_urgent(int fd)
{
	char byte;

	EVENTUALLY(recv(fd, &byte, 1, MSG_OOB) == 1);
	return byte;
}

/* Reads without MSG_OOB omit the urgent byte, even a read that waits when the byte arrives. */
static void stream_recv(void)
{
	struct flow in = flow_in(0);
	int fd = open_conn();

	for (size_t i = 0; i < rounds(); i++) {
		flow_recv(fd, &in, CHUNK, CHUNK);
		if (i % 3) {
			WANT_EQ(read_urgent(fd), (char)i);
			WANT_EQ(ask_int(fd, SIOCATMARK), 1);
			barrier("urgent byte read");
		} else {
			flow_recv(fd, &in, 1, 1);
		}
		barrier("chunk read");
	}
	path_check(fd, 0, in.off + rounds());
}

/* ---- an urgent byte at the end of the stream ---- */

/* Nothing follows the urgent byte but the end of the stream. */
static void end_send(void)
{
	int fd = open_conn();

	SYS(send(fd, "abcX", 4, MSG_OOB | MSG_NOSIGNAL));
	SYS(shutdown(fd, SHUT_WR));
	barrier("read");
}

static void end_recv(void)
{
	int fd = open_conn();

	recv_text(fd, "abc");
	WANT_EQ(read_urgent(fd), 'X');
	want_eof(fd);
	barrier("read");
}

/* ---- SO_RCVLOWAT and an urgent byte ---- */

/* Sends ten bytes, an urgent byte, and 1,000 more bytes. */
static void lowat_send(void)
{
	static char more[1000];
	int fd = open_conn();

	SYS(send(fd, "0123456789", 10, MSG_NOSIGNAL));
	SYS(send(fd, "X", 1, MSG_OOB | MSG_NOSIGNAL));
	SYS(send(fd, more, sizeof(more), MSG_NOSIGNAL));
	barrier("read");
	path_check(fd, 1011, 0);
}

/* For SO_RCVLOWAT, poll() also counts bytes behind the urgent offset, at which a read stops. */
static void lowat_recv(void)
{
	int fd = open_conn();
	char buf[100];

	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, sizeof(buf));
	await(fd, POLLPRI);
	WANT_EQ(SYS(recv(fd, buf, 1, MSG_OOB)), 1);
	await(fd, POLLIN);
	WANT_EQ(ask_int(fd, SIOCINQ), 10);
	WANT_EQ(SYS(recv(fd, buf, sizeof(buf), 0)), 10);
	await(fd, POLLIN);
	WANT_EQ(SYS(recv(fd, buf, sizeof(buf), 0)), sizeof(buf));
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	for (int left = 900; left;)
		left -= SYS(recv(fd, buf, sizeof(buf), 0));
	barrier("read");
	path_check(fd, 0, 1011);
}

const struct row urgent_rows[] = {
	{ "urgent_lowat", lowat_send, lowat_recv, ON_ALL | QUICK },
	{ "urgent", send_three, urgent_recv, ON_ALL | QUICK_ALL },
	{ "urgent_back", urgent_recv, send_three, ON_ALL },
	{ "urgent_missed", send_three, missed_recv, ON_ALL | QUICK },
	{ "urgent_inline", send_three, inline_recv, ON_ALL | QUICK },
	{ "urgent_signal", send_three, signal_recv, ON_ALL | QUICK },
	{ "urgent_stream", stream_send, stream_recv, ON_ALL | QUICK_ALL },
	{ "urgent_stream_back", stream_recv, stream_send, ON_ALL },
	{ "urgent_end", end_send, end_recv, ON_ALL | QUICK },
	{ }
};
