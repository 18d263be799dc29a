// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* A socket connected to itself, link-local addresses, binding to an interface, getaddrinfo(). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include "test.h"

#define LEN	10000

/* ---- a socket connected to itself ---- */

/* A simultaneous open with a single socket, which then receives what it sends. */
static void connect_self(void)
{
	struct flow out = flow_out(0), in = out;
	int fd = new_socket(0);
	union addr addr;
	socklen_t len = addr_loopback(&addr, 0);

	SYS(bind(fd, &addr.sa, len));
	len = addr_loopback(&addr, local_port(fd));
	SYS(connect(fd, &addr.sa, len));
	for (int i = 0; i < 5; i++) {
		flow_send(fd, &out, LEN, LEN);
		flow_recv(fd, &in, LEN, LEN);
	}
	if (speaks_rdma())
		WANT_EQ(path_info(fd).mode, AFRDMA_MODE_PLAIN);
	SYS(shutdown(fd, SHUT_WR));
	want_eof(fd);
	SYS_ERRNO(connect(fd, &addr.sa, len), EISCONN);
}

/* ---- link-local addresses ---- */

/* Index and name of this host's interface that has the address of the control connection. */
static unsigned int control_interface(char *name)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	struct ifaddrs *all, *one;
	unsigned int index = 0;

	SYS(getsockname(run.control, (struct sockaddr *)&own, &len));
	SYS(getifaddrs(&all));
	for (one = all; one; one = one->ifa_next) {
		struct sockaddr_in *addr = (struct sockaddr_in *)one->ifa_addr;

		if (!addr || addr->sin_family != AF_INET ||
		    addr->sin_addr.s_addr != own.sin_addr.s_addr)
			continue;
		snprintf(name, IF_NAMESIZE, "%s", one->ifa_name);
		index = if_nametoindex(name);
	}
	freeifaddrs(all);
	WANT(index);
	return index;
}

/* Stores the link-local address of interface @name in @to; false if there is none. */
static bool link_local_of(const char *name, struct sockaddr_in6 *to)
{
	struct ifaddrs *all, *one;
	bool found = false;

	SYS(getifaddrs(&all));
	for (one = all; one; one = one->ifa_next) {
		struct sockaddr_in6 *addr = (struct sockaddr_in6 *)one->ifa_addr;

		if (!addr || addr->sin6_family != AF_INET6 || strcmp(name, one->ifa_name) ||
		    !IN6_IS_ADDR_LINKLOCAL(&addr->sin6_addr))
			continue;
		*to = *addr;
		found = true;
	}
	freeifaddrs(all);
	return found;
}

static void link_local_server(void)
{
	int fd = new_socket_of(speaks_rdma(), true, 0);
	char name[IF_NAMESIZE], text[INET6_ADDRSTRLEN];
	struct sockaddr_in6 addr;
	socklen_t len = sizeof(addr);

	control_interface(name);
	if (!link_local_of(name, &addr))
		skip("%s has no link-local address", name);
	SYS(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	SYS(listen(fd, 1));
	inet_ntop(AF_INET6, &addr.sin6_addr, text, sizeof(text));
	SYS(getsockname(fd, (struct sockaddr *)&addr, &len));
	control_send_number("PORT", ntohs(addr.sin6_port));
	control_writef("%s", text);
	path_exchange(SYS(accept(fd, NULL, NULL)), LEN);
}

/*
 * connect() to a link-local address fails without sin6_scope_id and succeeds with it. Then
 * getpeername() and getsockname() return the same sin6_scope_id.
 */
static void link_local_client(void)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6 }, own;
	int fd = new_socket_of(speaks_rdma(), true, 0);
	char name[IF_NAMESIZE], text[100];
	socklen_t len = sizeof(own);

	addr.sin6_port = htons(server_port());
	control_readline(text, sizeof(text));
	WANT_EQ(inet_pton(AF_INET6, text, &addr.sin6_addr), 1);
	SYS_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), EINVAL);
	addr.sin6_scope_id = control_interface(name);
	SYS(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	SYS(getpeername(fd, (struct sockaddr *)&own, &len));
	WANT_EQ(own.sin6_scope_id, addr.sin6_scope_id);
	SYS(getsockname(fd, (struct sockaddr *)&own, &len));
	WANT_EQ(own.sin6_scope_id, addr.sin6_scope_id);
	path_exchange(fd, LEN);
}

/* ---- bound to an interface ---- */

/* Binds to the interface towards the server, and connects. An unknown interface name is refused. */
static void bind_device(void)
{
	int fd = new_socket(0), other = new_socket(0);
	char name[IF_NAMESIZE], got[IF_NAMESIZE] = "";
	unsigned int index = control_interface(name);
	socklen_t len = sizeof(got);
	union addr addr;

	SYS_ERRNO(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "afr-nobody", 10), ENODEV);
	SYS(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)));
	SYS(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, got, &len));
	WANT(!strcmp(name, got));
	set_int(other, SOL_SOCKET, SO_BINDTOIFINDEX, index);
	WANT_EQ(get_int(other, SOL_SOCKET, SO_BINDTOIFINDEX), index);
	len = addr_server(&addr, server_port());
	SYS(connect(fd, &addr.sa, len));
	path_exchange(fd, LEN);
}

static void bind_device_server(void)
{
	path_exchange(SYS(accept(open_listener(2), NULL, NULL)), LEN);
}

/* ---- what getaddrinfo() returns ---- */

/* Calls getaddrinfo() for a numeric address; checks that it sets ai_protocol to IPPROTO_TCP. */
static struct addrinfo *look_up(const char *host, int port)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *ai;
	char service[20];

	snprintf(service, sizeof(service), "%d", port);
	WANT_EQ(getaddrinfo(host, service, &hints, &ai), 0);
	WANT_EQ(ai->ai_protocol, IPPROTO_TCP);
	return ai;
}

static int socket_of(const struct addrinfo *ai, int family, int protocol)
{
	return SYS(socket(speaks_rdma() ? AF_RDMA : family, ai->ai_socktype, protocol));
}

/*
 * getaddrinfo() sets ai_protocol to IPPROTO_TCP for both address families. An AF_RDMA socket
 * created with IPPROTO_TCP is an IPv4 socket: it refuses IPv6 addresses, and can still connect to
 * an IPv4 address afterwards. AFRDMA_PROTOCOL() gives the right protocol for either family.
 */
static void getaddrinfo_client(void)
{
	struct addrinfo *v4 = look_up(run.host, server_port());
	struct addrinfo *v6 = look_up(run.host6, server_port());
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	int fd = socket_of(v6, AF_INET, v6->ai_protocol);

	SYS_ERRNO(bind(fd, (struct sockaddr *)&any, sizeof(any)), EAFNOSUPPORT);
	SYS_ERRNO(connect(fd, v6->ai_addr, v6->ai_addrlen), EAFNOSUPPORT);
	SYS(connect(fd, v4->ai_addr, v4->ai_addrlen));
	path_exchange(fd, LEN);
	fd = socket_of(v6, AF_INET6, speaks_rdma() ? AFRDMA_PROTOCOL(v6->ai_family) : IPPROTO_TCP);
	SYS(connect(fd, v6->ai_addr, v6->ai_addrlen));
	path_exchange(fd, LEN);
	freeaddrinfo(v4);
	freeaddrinfo(v6);
}

static void getaddrinfo_server(void)
{
	int fds[2];

	for (int i = 0; i < 2; i++) {
		union addr addr;
		socklen_t len;

		run.inet6 = i;
		len = addr_any(&addr, 0);
		fds[i] = new_socket(0);
		SYS(bind(fds[i], &addr.sa, len));
		SYS(listen(fds[i], 1));
		control_send_number("PORT", local_port(fds[i]));
	}
	for (int i = 0; i < 2; i++)
		path_exchange(SYS(accept(fds[i], NULL, NULL)), LEN);
}

const struct row address_rows[] = {
	{ "connect_self", connect_self, connect_self, ON_COLD | QUICK | UNFRAMED },
	{ "link_local", link_local_client, link_local_server, ON_ALL | QUICK_ALL },
	{ "bind_device", bind_device, bind_device_server, ON_ALL | QUICK },
	{ "getaddrinfo", getaddrinfo_client, getaddrinfo_server, ON_ALL | NEEDS_V6 | QUICK },
	{ }
};
