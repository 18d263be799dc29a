// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The TUN device, and the IP and TCP headers of its packets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rogue.h"

#define V4_HEADER	20
#define V6_HEADER	40
#define TCP_HEADER	20
#define PROTO_TCP	6

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the device ---- */

static void set_v4(const char *name, const struct tun *tun)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", name);
	memcpy(&ifr.ifr_addr, &tun->kernel.in, sizeof(tun->kernel.in));
	if (ioctl(fd, SIOCSIFADDR, &ifr))
		die("address of the TUN device");
	inet_pton(AF_INET, "255.255.255.0", &((struct sockaddr_in *)&ifr.ifr_netmask)->sin_addr);
	if (ioctl(fd, SIOCSIFNETMASK, &ifr))
		die("netmask of the TUN device");
	close(fd);
}

static void set_v6(const char *name, const struct tun *tun)
{
	struct in6_ifreq ifr = { .ifr6_prefixlen = 64 };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	ifr.ifr6_addr = tun->kernel.in6.sin6_addr;
	ifr.ifr6_ifindex = if_nametoindex(name);
	if (ioctl(fd, SIOCSIFADDR, &ifr))
		die("IPv6 address of the TUN device");
	close(fd);
}

/* Waits while the new IPv6 address is tentative, which it is at first even on a TUN device. */
static void await_address(const struct tun *tun)
{
	for (int i = 0; i < 1000; i++) {
		int fd = socket(AF_INET6, SOCK_DGRAM, 0);
		int err = bind(fd, &tun->kernel.sa, sizeof(tun->kernel.in6));

		close(fd);
		if (!err)
			return;
		poll(NULL, 0, 10);
	}
	die("IPv6 address of the TUN device");
}

static void set_up(const char *name)
{
	struct ifreq ifr = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &ifr))
		die("flags of the TUN device");
	ifr.ifr_flags |= IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &ifr))
		die("TUN device up");
	close(fd);
}

static void set_addresses(struct tun *tun, bool v6)
{
	tun->v6 = v6;
	if (v6) {
		tun->kernel.in6.sin6_family = AF_INET6;
		tun->own.in6.sin6_family = AF_INET6;
		inet_pton(AF_INET6, "fd78::1", &tun->kernel.in6.sin6_addr);
		inet_pton(AF_INET6, "fd78::2", &tun->own.in6.sin6_addr);
	} else {
		tun->kernel.in.sin_family = AF_INET;
		tun->own.in.sin_family = AF_INET;
		inet_pton(AF_INET, "10.78.0.1", &tun->kernel.in.sin_addr);
		inet_pton(AF_INET, "10.78.0.2", &tun->own.in.sin_addr);
	}
}

void tun_open(struct tun *tun, bool v6)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };

	set_addresses(tun, v6);
	tun->fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (tun->fd < 0)
		die("/dev/net/tun");
	strcpy(ifr.ifr_name, "tun%d");
	if (ioctl(tun->fd, TUNSETIFF, &ifr))
		die("TUNSETIFF");
	if (!v6)
		set_v4(ifr.ifr_name, tun);
	set_up(ifr.ifr_name);
	if (v6) {
		set_v6(ifr.ifr_name, tun);
		await_address(tun);
	}
}

/* ---- checksums ---- */

static u32 sum(u32 acc, const void *data, size_t len)
{
	const u8 *p = data;

	for (; len > 1; len -= 2, p += 2)
		acc += p[0] << 8 | p[1];
	return len ? acc + (p[0] << 8) : acc;
}

static u16 fold(u32 acc)
{
	while (acc >> 16)
		acc = (acc & 0xffff) + (acc >> 16);
	return ~acc;
}

static u32 pseudo_sum(const struct tun *tun, size_t tcp_len)
{
	u32 acc = PROTO_TCP + tcp_len;

	if (tun->v6) {
		acc = sum(acc, &tun->kernel.in6.sin6_addr, 16);
		return sum(acc, &tun->own.in6.sin6_addr, 16);
	}
	acc = sum(acc, &tun->kernel.in.sin_addr, 4);
	return sum(acc, &tun->own.in.sin_addr, 4);
}

/* ---- headers ---- */

static void put16(u8 *to, u16 v)
{
	to[0] = v >> 8;
	to[1] = v;
}

static void put32(u8 *to, u32 v)
{
	put16(to, v >> 16);
	put16(to + 2, v);
}

static u16 get16(const u8 *from)
{
	return from[0] << 8 | from[1];
}

static u32 get32(const u8 *from)
{
	return (u32)get16(from) << 16 | get16(from + 2);
}

/* Writes an IP header for @payload bytes that follow it; returns the header's length. */
static unsigned int put_ip(const struct tun *tun, u8 *to, unsigned int payload)
{
	if (tun->v6) {
		memset(to, 0, V6_HEADER);
		to[0] = 0x60;
		put16(to + 4, payload);
		to[6] = PROTO_TCP;
		to[7] = 64;
		memcpy(to + 8, &tun->own.in6.sin6_addr, 16);
		memcpy(to + 24, &tun->kernel.in6.sin6_addr, 16);
		return V6_HEADER;
	}
	memset(to, 0, V4_HEADER);
	to[0] = 0x45;
	put16(to + 2, V4_HEADER + payload);
	put16(to + 6, 0x4000);
	to[8] = 64;
	to[9] = PROTO_TCP;
	memcpy(to + 12, &tun->own.in.sin_addr, 4);
	memcpy(to + 16, &tun->kernel.in.sin_addr, 4);
	put16(to + 10, fold(sum(0, to, V4_HEADER)));
	return V4_HEADER;
}

/* Writes a TCP segment; returns its length. */
static unsigned int put_tcp(const struct tun *tun, u8 *to, const struct segment *seg)
{
	unsigned int options = (seg->options_len + 3) & ~3u;
	unsigned int len = TCP_HEADER + options + seg->data_len;

	memset(to, 0, TCP_HEADER + options);
	put16(to, seg->sport);
	put16(to + 2, seg->dport);
	put32(to + 4, seg->seq);
	put32(to + 8, seg->ack);
	to[12] = (TCP_HEADER + options) / 4 << 4;
	to[13] = seg->flags;
	put16(to + 14, seg->window);
	if (seg->options_len)
		memcpy(to + TCP_HEADER, seg->options, seg->options_len);
	if (seg->data_len)
		memcpy(to + TCP_HEADER + options, seg->data, seg->data_len);
	put16(to + 16, fold(sum(pseudo_sum(tun, len), to, len)));
	return len;
}

void tun_send(struct tun *tun, const struct segment *seg)
{
	unsigned int options = (seg->options_len + 3) & ~3u;
	u8 packet[PACKET_MAX];
	unsigned int head = put_ip(tun, packet, TCP_HEADER + options + seg->data_len);
	unsigned int len = head + put_tcp(tun, packet + head, seg);

	if (write(tun->fd, packet, len) != (ssize_t)len)
		die("write to the TUN device");
}

/*
 * Returns the TCP header of packet @buf, and in @left the length of the TCP segment; NULL if the
 * packet does not contain one.
 */
static const u8 *find_tcp(const struct tun *tun, const u8 *buf, unsigned int len,
			  unsigned int *left)
{
	unsigned int head = tun->v6 ? V6_HEADER : (buf[0] & 15) * 4u;
	unsigned int total;

	if (len < V4_HEADER || buf[0] >> 4 != (tun->v6 ? 6 : 4) || len < head + TCP_HEADER)
		return NULL;
	if (buf[tun->v6 ? 6 : 9] != PROTO_TCP)
		return NULL;
	total = tun->v6 ? V6_HEADER + get16(buf + 4) : get16(buf + 2);
	if (total > len || total < head + TCP_HEADER)
		return NULL;
	*left = total - head;
	return buf + head;
}

/* Finds the TCP segment in packet @buf; false if there is none, or its header is malformed. */
static bool parse(const struct tun *tun, const u8 *buf, unsigned int len, struct segment *seg)
{
	unsigned int left, head;
	const u8 *tcp = find_tcp(tun, buf, len, &left);

	if (!tcp)
		return false;
	head = (tcp[12] >> 4) * 4;
	if (head < TCP_HEADER || head > left)
		return false;
	*seg = (struct segment) {
		.sport = get16(tcp), .dport = get16(tcp + 2),
		.seq = get32(tcp + 4), .ack = get32(tcp + 8),
		.flags = tcp[13], .window = get16(tcp + 14),
		.options = tcp + TCP_HEADER, .options_len = head - TCP_HEADER,
		.data = tcp + head, .data_len = left - head,
	};
	return true;
}

/* Receives a TCP segment into @buf (PACKET_MAX bytes); false if no packet arrives for @ms. */
bool tun_receive(struct tun *tun, int ms, u8 *buf, struct segment *seg)
{
	struct pollfd p = { .fd = tun->fd, .events = POLLIN };

	/* Other packets, such as neighbour discovery, are skipped. */
	while (poll(&p, 1, ms) > 0) {
		ssize_t len = read(tun->fd, buf, PACKET_MAX);

		if (len > 0 && parse(tun, buf, len, seg))
			return true;
	}
	return false;
}
