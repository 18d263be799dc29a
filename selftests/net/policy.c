// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Socket filters, ICMP errors, policies that deny RDMA, sockets in unprivileged namespaces. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/sockios.h>
#include <sys/wait.h>

#include "proto/reason.h"
#include "test.h"

#define LEN	1000

/* ---- the AF_RDMA socket and the TCP socket share a socket filter ---- */

/* Attaches a socket filter that accepts every packet. */
static void attach_accept_all(int fd)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
	struct sock_fprog prog = { 1, &all };

	SYS(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
}

/* Number of instructions of the socket's filter; 0 if there is none. */
static int filter_length(int fd)
{
	struct sock_filter room[4];
	socklen_t len = ARRAY_SIZE(room);	/* in instructions */

	SYS(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, room, &len));
	return len;
}

/* A socket filter moves the connection to TCP. The filter can be read, and detached once. */
static void filter_shared(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int none = 0, fd = open_conn();

	WANT_EQ(filter_length(fd), 0);
	attach_accept_all(fd);
	WANT_EQ(filter_length(fd), 1);
	if (!old_kernel())	/* old kernels do not report filters to the module */
		EVENTUALLY(path_info(fd).tx_path == AFRDMA_PATH_TCP);
	flow_send(fd, &out, LEN, LEN);
	flow_recv(fd, &in, LEN, LEN);
	SYS(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)));
	WANT_EQ(filter_length(fd), 0);
	SYS_ERRNO(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), ENOENT);
	attach_accept_all(fd);
	barrier("filtered");
}

/* Attaches a filter by @option; returns the errno, or 0 on success. */
static int attach_errno(int fd, int option)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = { 1, &all };

	return setsockopt(fd, SOL_SOCKET, option, &prog, sizeof(prog)) ? errno : 0;
}

/* Sets SO_LOCK_FILTER on a new socket, then attaches a filter by @option; returns the errno. */
static int locked_errno(bool rdma, int option)
{
	int fd = new_socket_of(rdma, false, 0), err;

	set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	set_int(fd, SOL_SOCKET, SO_LOCK_FILTER, 1);
	err = attach_errno(fd, option);
	SYS(close(fd));
	return err;
}

/* The errno of attaching a filter to a new socket, or 0 on success. */
static int unprivileged_errno(bool rdma)
{
	int fd = new_socket_of(rdma, false, 0), err;

	err = attach_errno(fd, SO_ATTACH_FILTER);
	SYS(close(fd));
	return err;
}

/*
 * After SO_LOCK_FILTER, no filter can be attached. When an unprivileged user attaches a filter to
 * a new AF_RDMA socket, the result is the same as on a TCP socket.
 */
static void filter_rights(void)
{
	pid_t pid;

	if (old_kernel())
		skip("this kernel handles SO_REUSEPORT and filters on the AF_RDMA socket alone");
	WANT_EQ(locked_errno(true, SO_ATTACH_FILTER), EPERM);
	WANT_EQ(locked_errno(false, SO_ATTACH_REUSEPORT_CBPF), EPERM);
	WANT_EQ(locked_errno(true, SO_ATTACH_REUSEPORT_CBPF), EPERM);
	pid = fork_row();
	if (!pid) {
		SYS(setresgid(65534, 65534, 65534));
		SYS(setresuid(65534, 65534, 65534));
		WANT_EQ(unprivileged_errno(true), unprivileged_errno(false));
		_exit(0);
	}
	join_row(pid);
}

/* ---- ICMP errors ---- */

/* Number of the ICMP messages "destination unreachable" that this host has received. */
static long icmp_unreachables(void)
{
	FILE *file = fopen("/proc/net/snmp", "r");
	char line[1024];
	long value = -1;

	WANT(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Icmp: %*d %*d %*d %ld", &value) == 1)
			break;
	fclose(file);
	WANT(value >= 0);
	return value;
}

/* Runs a shell command; @port is the argument of @format, if that has one. */
static void run_command(const char *format, int port)
{
	char line[256];

	snprintf(line, sizeof(line), format, port);
	WANT_EQ(system(line), 0);
}

/*
 * Answers the selected packets with an ICMP error instead of receiving them, until the peer, which
 * calls send_rejected(), has received such an error. @match, a format whose argument is @port, is
 * the nft expression that selects the packets.
 */
static void reject_for_a_while(const char *match, int port)
{
	char format[256];

	snprintf(format, sizeof(format), "nft 'table inet recverr { chain in { type filter hook input "
		 "priority 0; %s reject with icmp port-unreachable; }; }'", match);
	run_command(format, port);
	barrier("rejects");
	barrier("rejected");
	run_command("nft delete table inet recverr", 0);
}

/* Sends LEN bytes, and waits until the other end has answered with an ICMP error. */
static void send_rejected(int fd, struct flow *out)
{
	long before;

	barrier("rejects");
	before = icmp_unreachables();
	flow_send(fd, out, LEN, LEN);
	EVENTUALLY(icmp_unreachables() > before);
	barrier("rejected");
}

/*
 * The client sets IP_RECVERR. With this option, a TCP socket reports an ICMP error to the program
 * and keeps its connection. On a framed connection no call may fail because of the error.
 */
static void recverr_server(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int listener = open_listener(1), port = local_port(listener);
	int fd = SYS(accept(listener, NULL, NULL));

	flow_recv(fd, &in, LEN, LEN);
	reject_for_a_while("tcp dport %d", port);
	flow_recv(fd, &in, LEN, LEN);
	flow_send(fd, &out, LEN, LEN);
	path_check(fd, LEN, 2 * LEN);
}

static void recverr_client(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	union addr addr;
	socklen_t len = addr_server(&addr, server_port());
	int fd = new_socket(0);

	set_int(fd, IPPROTO_IP, IP_RECVERR, 1);
	SYS(connect(fd, &addr.sa, len));
	WANT_EQ(get_int(fd, IPPROTO_IP, IP_RECVERR), 1);
	flow_send(fd, &out, LEN, LEN);
	send_rejected(fd, &out);
	flow_recv(fd, &in, LEN, LEN);
	path_check(fd, 2 * LEN, LEN);
}

/*
 * Before the socket listens, fall_back_once() makes it set IP_RECVERR on its TCP socket. The TCP
 * sockets of accepted connections must not inherit the option.
 */
static void recverr_listener(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = new_socket(0);

	set_int(fd, IPPROTO_IP, IP_RECVERR, 1);
	fall_back_once(fd);
	SYS(listen(fd, 1));
	control_send_number("PORT", local_port(fd));
	fd = SYS(accept(fd, NULL, NULL));
	flow_recv(fd, &in, LEN, LEN);
	send_rejected(fd, &out);
	flow_recv(fd, &in, LEN, LEN);
	path_check(fd, LEN, 2 * LEN);
}

static void recverr_listener_client(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int port = server_port(), fd = connect_port(port);

	flow_send(fd, &out, LEN, LEN);
	reject_for_a_while("tcp sport %d", port);
	flow_recv(fd, &in, LEN, LEN);
	flow_send(fd, &out, LEN, LEN);
	path_check(fd, 2 * LEN, LEN);
}

/* ---- policies that deny RDMA while RDMA carries a stream ---- */

#define LEAVE_SECONDS	2	/* the documented limit is one second; guests are slow */

static int change_fd, change_port;

static void block_on(void)
{
	run_command("for v in -4 -6; do ip $v xfrm policy add dir out proto tcp dport %d "
		    "action block || exit 1; done", change_port);
}

static void block_off(void)
{
	run_command("ip xfrm policy flush", 0);
}

/*
 * For each IP version, adds IPsec policies that block the stream, and one of higher priority that
 * exempts it from them. The kernel refuses a second policy with the same selector, so those that
 * block also select by the source address: two prefixes that together cover all addresses.
 */
static void except_on(void)
{
	run_command("for v in -4 -6; do ip $v xfrm policy add dir out proto tcp dport %d "
		    "action allow priority 1 || exit 1; done", change_port);
	run_command("for src in 0.0.0.0/1 128.0.0.0/1 ::/1 8000::/1; do ip xfrm policy add dir out src $src "
		    "proto tcp dport %d action block priority 2 || exit 1; done", change_port);
}

static void except_off(void)
{
	run_command("ip xfrm policy deleteall dir out priority 1", 0);
}

static void enabled_off(void) { path_set_sysctl("enabled", 0); }
static void enabled_on(void) { path_set_sysctl("enabled", 1); }
static void upgrade_off(void) { path_set_sysctl("upgrade", 0); }
static void upgrade_on(void) { path_set_sysctl("upgrade", 1); }

static void rdma_never(void)
{
	set_int(change_fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
}

static void rdma_auto(void)
{
	set_int(change_fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_AUTO);
}

static void filter_on(void)
{
	attach_accept_all(change_fd);
}

static void filter_off(void)
{
	int none = 0;

	SYS(setsockopt(change_fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)));
}

struct change {
	const char *name;
	void (*on)(void), (*off)(void);
	unsigned int reason;
	void (*before)(void);		/* or NULL */
};

static const struct change changes[] = {
	{ "an IPsec policy", block_on, block_off, AFR_REASON_XFRM_POLICY, NULL },
	{ "an exception removed", except_off, block_off, AFR_REASON_XFRM_POLICY, except_on },
	{ "enabled=0", enabled_off, enabled_on, AFR_REASON_FAMILY_OFF, NULL },
	{ "upgrade=0", upgrade_off, upgrade_on, AFR_REASON_UPGRADE_OFF, NULL },
	{ "AFRDMA_RDMA_NEVER", rdma_never, rdma_auto, AFR_REASON_SOCKET_OPTION, NULL },
	{ "a socket filter", filter_on, filter_off, AFR_REASON_SOCKET_FILTER, NULL },
};

static volatile bool stream_ends;

/* Thread: sends until stream_ends is set. */
static void *stream(void *arg)
{
	struct flow *out = arg;

	while (!stream_ends)
		flow_send(change_fd, out, 20 * LEN, 20 * LEN);
	return NULL;
}

/* Denies RDMA by @c while bytes flow: the direction must leave RDMA in time, with c->reason. */
static void change_once(const struct change *c)
{
	struct afrdma_info info;
	uint64_t by_rdma;
	double begin;
	bool reported;

	if (c->before)
		c->before();
	EVENTUALLY(path_info(change_fd).tx_path == AFRDMA_PATH_RDMA);
	by_rdma = path_info(change_fd).tx_bytes_rdma;
	EVENTUALLY(path_info(change_fd).tx_bytes_rdma > by_rdma);	/* the stream flows */
	c->on();
	begin = now();	/* not before c->on(): "ip" may take seconds on an emulated guest */
	do {
		info = path_info(change_fd);
		reported = info.reason == c->reason;
		if (now() - begin > LEAVE_SECONDS)
			fail("%s: after %d s still on RDMA, or with reason %u (%s)", c->name,
			     LEAVE_SECONDS, info.reason, afr_reason_name(info.reason));
	} while (info.tx_path == AFRDMA_PATH_RDMA || !reported);
	by_rdma = path_info(change_fd).tx_bytes_rdma;
	poll(NULL, 0, 100);
	info = path_info(change_fd);
	if (info.tx_bytes_rdma != by_rdma)
		fail("%s: bytes are still carried by RDMA", c->name);
	c->off();
}

/*
 * Are both ends on this host? Their packets then use lo, to which IPv4 applies no IPsec policies.
 * changes_client() then skips the changes by IPsec policy, even with IPv6, which does apply them.
 */
static bool to_itself(int fd)
{
	union addr own, peer;
	socklen_t len = sizeof(own), peer_len = sizeof(peer);

	SYS(getsockname(fd, &own.sa, &len));
	SYS(getpeername(fd, &peer.sa, &peer_len));
	if (own.sa.sa_family == AF_INET6)
		return !memcmp(&own.in6.sin6_addr, &peer.in6.sin6_addr, sizeof(own.in6.sin6_addr));
	return own.in.sin_addr.s_addr == peer.in.sin_addr.s_addr;
}

/* Each change makes the stream leave RDMA; when it is undone, the stream returns. */
static void changes_client(void)
{
	long retry = path_sysctl("attach_retry_ms");
	struct flow out = flow_out(0);
	pthread_t sender;

	path_set_sysctl("attach_retry_ms", 20);
	change_port = server_port();
	change_fd = connect_conn(change_port);
	sender = thread_start(stream, &out);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		if (!(changes[i].on == filter_on && old_kernel()) &&
		    !(changes[i].off == block_off && to_itself(change_fd)))
			change_once(&changes[i]);
	EVENTUALLY(path_info(change_fd).tx_path == AFRDMA_PATH_RDMA);
	stream_ends = true;
	WANT(!pthread_join(sender, NULL));
	SYS(shutdown(change_fd, SHUT_WR));
	want_eof(change_fd);
	path_set_sysctl("attach_retry_ms", retry);
}

static void changes_server(void)
{
	struct flow in = flow_in(0);
	int listener = open_listener(1), fd = accept_conn(listener);

	flow_recv_to_eof(fd, &in);
	SYS(close(fd));
}

/* ---- a connection that leaves RDMA while both ends have ended their streams ---- */

#define OTHERS	4

/*
 * When this end leaves the link, the peer has sent FINACK and FIN, but still holds its last bytes,
 * because the receive ring of this end is full. These bytes must soon arrive by TCP, and the link
 * must stay up for other connections.
 */
static void leave_half_closed(void)
{
	struct flow in = flow_in(0);
	int port = server_port(), other[OTHERS], fd = new_socket(0);
	uint64_t link[OTHERS];
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	double begin;

	for (int i = 0; i < OTHERS; i++) {	/* one of them probably shares the link of fd */
		other[i] = connect_conn(port);
		link[i] = path_info(other[i]).link;
	}
	set_int(fd, SOL_SOCKET, SO_RCVBUF, 16384);
	SYS(connect(fd, &addr.sa, len));
	path_warm_up(fd);
	SYS(shutdown(fd, SHUT_WR));
	barrier("no window");
	set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
	begin = now();
	flow_recv_to_eof(fd, &in);
	if (now() - begin > 3)	/* detach_timeout_ms is 5000 */
		fail("the last bytes took %.1f s", now() - begin);
	barrier("read");
	for (int i = 0; i < OTHERS; i++)
		WANT_EQ(path_info(other[i]).link, link[i]);
}

static void leave_half_closed_server(void)
{
	struct flow out = flow_out(0);
	int listener = open_listener(OTHERS + 1), other[OTHERS], fd;

	for (int i = 0; i < OTHERS; i++)
		other[i] = accept_conn(listener);
	fd = SYS(accept(listener, NULL, NULL));
	path_warm_up(fd);
	want_eof(fd);
	flow_fill_up(fd, &out);
	WANT(ask_int(fd, SIOCOUTQNSD) > 0);
	SYS(shutdown(fd, SHUT_WR));
	barrier("no window");
	barrier("read");
	for (int i = 0; i < OTHERS; i++)
		SYS(close(other[i]));
}

/* ---- sockets in namespaces of unprivileged users ---- */

/*
 * Creates a user namespace and a network namespace as an unprivileged user, who gets all
 * capabilities in them. Returns the errno of socket() there, or 0 on success. Skips the row
 * if the kernel refuses the namespaces.
 */
static int socket_in_namespace(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
		    unshare(CLONE_NEWUSER | CLONE_NEWNET))
			_exit(100);
		_exit(socket(AF_RDMA, SOCK_STREAM, 0) < 0 ? errno : 0);
	}
	WANT(pid > 0);
	SYS(waitpid(pid, &status, 0));
	WANT(WIFEXITED(status));
	if (WEXITSTATUS(status) == 100)
		skip("no user namespaces");
	return WEXITSTATUS(status);
}

/*
 * Any user may create sockets in such a namespace, unless the sysctl unprivileged of the initial
 * network namespace is 0.
 */
static void namespaces_client(void)
{
	const char *netns = getenv("AFR_NETNS");	/* from selftests/lab/run */

	if (netns && !strcmp(netns, "yes"))
		skip("only the initial network namespace can forbid it");
	WANT_EQ(socket_in_namespace(), 0);
	path_set_sysctl("unprivileged", 0);
	WANT_EQ(socket_in_namespace(), EPERM);
	path_set_sysctl("unprivileged", 1);
	barrier("restored");
}

/* Leaves the sysctl to the client, which may be on the same host and then sets it for both ends. */
static void namespaces_server(void)
{
	barrier("restored");
}

const struct row policy_rows[] = {
	{ "filter_shared", filter_shared, filter_shared,
	  ON_RDMA | ON_COLD | ONLY_RDMA | QUICK_ALL },
	{ "filter_rights", filter_rights, filter_rights, ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "recverr", recverr_client, recverr_server, ON_COLD | ONLY_RDMA | QUICK },
	{ "recverr_listener", recverr_listener_client, recverr_listener,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "leave_half_closed", leave_half_closed, leave_half_closed_server,
	  ON_RDMA | ONLY_RDMA | QUICK },
	{ "forbidden_later", changes_client, changes_server, ON_RDMA | ONLY_RDMA | QUICK },
	{ "namespaces", namespaces_client, namespaces_server,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ }
};
