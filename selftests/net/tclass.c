// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The traffic class that a program sets is that of the packets of its link. */
#define _GNU_SOURCE
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "test.h"

#define CLASS		0x68	/* DSCP 26 */
#define ECN_BITS	0x03
#define ROCE_PORT	4791
#define TRIPS		100
#define LEN		1000

/* Number of RoCE packets with CLASS, by direction. */
struct seen {
	size_t out, in;
};

/* Is this IPv4 or IPv6 packet one of RoCE, with CLASS? */
static bool has_class(const uint8_t *packet, size_t len)
{
	bool v6 = packet[0] >> 4 == 6;
	size_t head = v6 ? 40 : (packet[0] & 0xf) * 4;
	uint8_t tclass = v6 ? packet[0] << 4 | packet[1] >> 4 : packet[1];

	return len >= head + 8 && packet[v6 ? 6 : 9] == IPPROTO_UDP &&
	       (packet[head + 2] << 8 | packet[head + 3]) == ROCE_PORT &&
	       (tclass & ~ECN_BITS) == CLASS;
}

static void count_packets(int packets, struct seen *seen)
{
	struct sockaddr_ll from;
	uint8_t packet[128];
	socklen_t size = sizeof(from);
	ssize_t len;

	while ((len = recvfrom(packets, packet, sizeof(packet), MSG_DONTWAIT,
			       (struct sockaddr *)&from, &size)) > 0) {
		if (!has_class(packet, len))
			continue;
		if (from.sll_pkttype == PACKET_OUTGOING)
			seen->out++;
		else
			seen->in++;
	}
}

static int connect_with_class(void)
{
	int fd = connect_port(server_port());

	if (run.inet6)
		set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, CLASS);
	else
		set_int(fd, IPPROTO_IP, IP_TOS, CLASS);
	path_warm_up(fd);
	return fd;
}

static void trips_client(void)
{
	int packets = SYS(socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL)));
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = connect_with_class();
	struct seen seen = {};

	count_packets(packets, &seen);
	seen = (struct seen){};
	for (unsigned int i = 0; i < TRIPS; i++) {
		flow_send(fd, &out, LEN, LEN);
		flow_recv(fd, &in, LEN, LEN);
		count_packets(packets, &seen);
	}
	path_check(fd, out.off, in.off);
	if (seen.out < TRIPS || seen.in < TRIPS)
		fail("%zu packets of RoCE sent and %zu received have traffic class %#x, expected %d",
		     seen.out, seen.in, CLASS, TRIPS);
	barrier("counted");
}

static void trips_server(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();

	for (unsigned int i = 0; i < TRIPS; i++) {
		flow_recv(fd, &in, LEN, LEN);
		flow_send(fd, &out, LEN, LEN);
	}
	path_check(fd, out.off, in.off);
	barrier("counted");
}

static void need_roce(void)
{
	const char *type = getenv("AFR_RDMA");

	if (type && !strcmp(type, "siw"))
		skip("iWARP packets have the traffic class of their own TCP connection");
}

static void class_client(void)
{
	need_roce();
	trips_client();
}

static void class_server(void)
{
	need_roce();
	trips_server();
}

static void class6_client(void)
{
	need_roce();
	run.inet6 = true;
	trips_client();
}

static void class6_server(void)
{
	need_roce();
	run.inet6 = true;
	trips_server();
}

const struct row tclass_rows[] = {
	{ "traffic_class", class_client, class_server, ON_RDMA | ONLY_RDMA | QUICK },
	{ "traffic_class6", class6_client, class6_server, ON_RDMA | ONLY_RDMA | NEEDS_V6 | QUICK },
	{ }
};
