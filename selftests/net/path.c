// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Moves connections to RDMA, and checks by AFRDMA_INFO which path carried the bytes of a row.
 * Without this check, rows would also pass while all bytes stay on TCP. Also reads and writes the
 * module's settings.
 */
#define _GNU_SOURCE
#include <sys/ioctl.h>

#include "proto/reason.h"
#include "test.h"

#define WARM_UP_SIZE	(4 * KIB)
#define FD_MAX		4096

/* For each descriptor: its byte counters at the end of path_warm_up(), without unread bytes. */
static struct {
	uint64_t tx_tcp, tx_rdma, rx_tcp, rx_rdma;
} bases[FD_MAX];

struct warm_up {
	uint32_t ready;		/* set by the server: both directions are on RDMA */
	uint32_t last;		/* set by the client: the reply to this ends the warm-up */
	uint8_t fill[WARM_UP_SIZE - 8];
};

const char *path_mode_name(unsigned int mode)
{
	static const char *const names[] = { "none", "undecided", "plain", "half", "framed" };

	return mode < ARRAY_SIZE(names) ? names[mode] : "unknown";
}

static const char *path_name(unsigned int path)
{
	static const char *const names[] = { "tcp", "rdma", "wait" };

	return path < ARRAY_SIZE(names) ? names[path] : "unknown";
}

struct afrdma_info path_info(int fd)
{
	struct afrdma_info info = { 0 };
	socklen_t len = sizeof(info);

	SYS(getsockopt(fd, SOL_AFRDMA, AFRDMA_INFO, &info, &len));
	WANT(len == sizeof(info));
	return info;
}

/* Returns a text about @info; the next call overwrites the text. */
static const char *describe(const struct afrdma_info *info)
{
	static char text[300];

	snprintf(text, sizeof(text),
		 "mode %s, tx on %s: %llu tcp + %llu rdma, "
		 "rx on %s: %llu tcp + %llu rdma, %llu moves, reason %u (%s)",
		 path_mode_name(info->mode), path_name(info->tx_path),
		 (unsigned long long)info->tx_bytes_tcp, (unsigned long long)info->tx_bytes_rdma,
		 path_name(info->rx_path), (unsigned long long)info->rx_bytes_tcp,
		 (unsigned long long)info->rx_bytes_rdma, (unsigned long long)info->moves,
		 info->reason, afr_reason_name(info->reason));
	return text;
}

/* Are both directions on RDMA? Fails unless the connection is framed or still undecided. */
bool path_on_rdma(int fd)
{
	struct afrdma_info info = path_info(fd);

	/* a client is undecided until the server's HELLO arrives */
	if (info.mode != AFRDMA_MODE_FRAMED && info.mode != AFRDMA_MODE_UNDECIDED)
		fail("not framed: %s", describe(&info));
	return info.tx_path == AFRDMA_PATH_RDMA && info.rx_path == AFRDMA_PATH_RDMA;
}

static void send_all(int fd, const void *from, size_t len)
{
	const char *p = from;

	while (len) {
		size_t done = SYS(send(fd, p, len, MSG_NOSIGNAL));

		p += done;
		len -= done;
	}
}

static void recv_all(int fd, void *to, size_t len)
{
	char *p = to;

	while (len) {
		size_t got = SYS(recv(fd, p, len, 0));

		if (!got)
			fail("end of stream while moving to RDMA");
		p += got;
		len -= got;
	}
}

/* Sets bases[@fd], from which check_rdma() counts the bytes of the row. */
static void take_base(int fd)
{
	struct afrdma_info info = path_info(fd);
	int unread;

	WANT(fd < FD_MAX);
	bases[fd].tx_tcp = info.tx_bytes_tcp;
	bases[fd].tx_rdma = info.tx_bytes_rdma;
	bases[fd].rx_tcp = info.rx_bytes_tcp;
	/* rx_bytes_rdma includes unread bytes; they belong to the row, so the base excludes them */
	SYS(ioctl(fd, FIONREAD, &unread));
	bases[fd].rx_rdma = info.rx_bytes_rdma - unread;
}

/* The client's part of path_warm_up(): round trips until both ends report RDMA, and a last one. */
static void warm_up_client(int fd, struct warm_up *m)
{
	double end = now() + patience();
	bool peer_ready = false;

	for (unsigned int rounds = 1; ; rounds++) {
		bool last = path_on_rdma(fd) && peer_ready;

		m->ready = 0;
		m->last = last;
		send_all(fd, m, sizeof(*m));
		recv_all(fd, m, sizeof(*m));
		peer_ready = m->ready;
		if (last)
			return;
		if (now() > end) {
			struct afrdma_info info = path_info(fd);

			fail("not on RDMA after %u round trips: %s", rounds, describe(&info));
		}
	}
}

static void warm_up_server(int fd, struct warm_up *m)
{
	do {
		recv_all(fd, m, sizeof(*m));
		m->ready = path_on_rdma(fd);
		send_all(fd, m, sizeof(*m));
	} while (!m->last);
}

/*
 * Exchanges @len bytes in each direction, in variant rdma after path_warm_up(), and checks which
 * path carried them. Both sides call this function.
 */
void path_exchange(int fd, size_t len)
{
	struct flow out = flow_out(0), in = flow_in(0);

	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	flow_send(fd, &out, len, len);
	flow_recv(fd, &in, len, len);
	path_check(fd, len, len);
}

/* Exchanges messages until both directions are on RDMA. Both sides call it. */
void path_warm_up(int fd)
{
	struct warm_up *m = buffer(sizeof(*m));

	memset(m, 0xa5, sizeof(*m));
	if (run.server)
		warm_up_server(fd, m);
	else
		warm_up_client(fd, m);
	free(m);
	take_base(fd);
	barrier("on RDMA");	/* both sides have read their counters: the row may send */
}

static void check_rdma(int fd, const struct afrdma_info *info, uint64_t tx, uint64_t rx)
{
	bool good = info->mode == AFRDMA_MODE_FRAMED &&
		    info->tx_path == AFRDMA_PATH_RDMA && info->rx_path == AFRDMA_PATH_RDMA &&
		    info->tx_bytes_tcp == bases[fd].tx_tcp &&
		    info->rx_bytes_tcp == bases[fd].rx_tcp &&
		    info->tx_bytes_rdma - bases[fd].tx_rdma == tx &&
		    info->rx_bytes_rdma - bases[fd].rx_rdma == rx;

	if (!good)
		fail("row sent %llu and received %llu bytes, which must all be carried by RDMA "
		     "(counted before: tx %llu, rx %llu): %s",
		     (unsigned long long)tx, (unsigned long long)rx,
		     (unsigned long long)bases[fd].tx_rdma,
		     (unsigned long long)bases[fd].rx_rdma, describe(info));
}

static uint64_t bytes_sent(int fd)
{
	struct afrdma_info info = path_info(fd);

	return info.tx_bytes_tcp + info.tx_bytes_rdma;
}

/*
 * Variant cold: the bytes may have used either path. If a link died, as it may on a host that gets
 * no processor time for seconds, bytes that it had not delivered were sent again on TCP. The
 * sender's tx counters contain them twice, the receiver's rx counters only once.
 */
static void check_cold(const struct afrdma_info *info, uint64_t tx, uint64_t rx)
{
	uint64_t sent = info->tx_bytes_tcp + info->tx_bytes_rdma;

	if (info->mode != AFRDMA_MODE_FRAMED ||
	    (info->moves < 2 ? sent != tx : sent < tx) ||
	    info->rx_bytes_tcp + info->rx_bytes_rdma != rx)
		fail("row sent %llu and received %llu bytes, counters differ: %s",
		     (unsigned long long)tx, (unsigned long long)rx, describe(info));
}

static void check_fallback(const struct afrdma_info *info)
{
	unsigned int reason = run.server ? AFR_REASON_CLIENT_PLAIN : AFR_REASON_PEER_PLAIN;

	if (info->mode != AFRDMA_MODE_PLAIN || info->reason != reason)
		fail("expected fallback to TCP for reason %u (%s): %s", reason, afr_reason_name(reason),
		     describe(info));
}

/* Waits until an AF_RDMA connection is framed or has fallen back. */
void path_await_decided(int fd)
{
	if (speaks_rdma())
		EVENTUALLY(path_info(fd).mode != AFRDMA_MODE_UNDECIDED);
}

/* path_check() without barriers, for callers that know that the other side has read all bytes. */
void path_check_alone(int fd, uint64_t tx, uint64_t rx)
{
	struct afrdma_info info;

	if (!speaks_rdma())
		return;
	info = path_info(fd);
	switch (run.variant) {
	case VAR_RDMA:
		check_rdma(fd, &info, tx, rx);
		break;
	case VAR_COLD:
		/* if this side has only sent, the peer's HELLO may not have arrived yet */
		path_await_decided(fd);
		/* the module counts bytes after TCP takes them; the peer may read them earlier */
		EVENTUALLY(path_info(fd).mode != AFRDMA_MODE_FRAMED || bytes_sent(fd) >= tx);
		info = path_info(fd);
		check_cold(&info, tx, rx);
		break;
	default:
		check_fallback(&info);
	}
}

/*
 * Checks an AF_RDMA socket: in variant rdma that RDMA carried all @tx bytes sent and all @rx bytes
 * received; in variant cold that the connection is framed and both paths together carried them; in
 * other variants that the connection fell back. Both sides call it when they have read all bytes,
 * with the connection still open.
 */
void path_check(int fd, uint64_t tx, uint64_t rx)
{
	barrier("all bytes read");
	path_check_alone(fd, tx, rx);
	barrier("paths checked");
}

/* Opens a setting in /proc/sys/net/afrdma; NULL if there is none. */
static FILE *sysctl(const char *name, const char *mode)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/afrdma/%s", name);
	return fopen(path, mode);
}

/* The value of a setting in /proc/sys/net/afrdma; -1 if there is none. */
long path_sysctl(const char *name)
{
	FILE *file = sysctl(name, "r");
	long value = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

void path_set_sysctl(const char *name, long value)
{
	FILE *file = sysctl(name, "w");

	WANT(file);
	WANT(fprintf(file, "%ld", value) > 0);
	WANT(!fclose(file));
}
