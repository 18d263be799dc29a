// SPDX-License-Identifier: GPL-2.0
/*
 * What a program or its administrator can do to the TCP socket under an AF_RDMA socket: options at
 * any time, calls that stall in user memory, ICMP errors, the error queue, BPF, policies that deny
 * RDMA. Framed connections must survive it, and no program may see a frame.
 */
#define _GNU_SOURCE
#include <time.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/userfaultfd.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "proto/reason.h"
#include "support.h"
#include "test.h"

#define LEN	1000

/* ---- every option, before and after the TCP handshake ---- */

enum rule { PASS, STORE, LATE, SHARE, REFUSE, CORE, OWN };

static const struct option {
	const char *name;
	int level, option;
	enum rule rule;
} options[] = {
#define AFR_OPTION(level, name, rule, ...) { #name, level, name, rule },
	AFR_SUPPORT_OPTIONS
#undef AFR_OPTION
};

#define TX_STAMPS	(SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |	\
			 SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_ACK)

/* Values for options whose usual test values would break a TCP connection, too. */
static const struct {
	int level, option;
	int values[3];
} harmless[] = {
	{ SOL_SOCKET, SO_MAX_PACING_RATE, { INT32_MAX, INT32_MAX, INT32_MAX } },
	{ SOL_SOCKET, SO_BINDTOIFINDEX, { 0, 0, 0 } },
	{ SOL_SOCKET, SO_TIMESTAMPING_OLD, { TX_STAMPS, 0, TX_STAMPS } },
	{ SOL_SOCKET, SO_TIMESTAMPING_NEW, { TX_STAMPS, 0, TX_STAMPS } },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, { 60000, 0, 60000 } },
	{ IPPROTO_TCP, TCP_KEEPIDLE, { 100, 200, 100 } },
	{ IPPROTO_IP, IP_UNICAST_IF, { 0, 0, 0 } },
	{ IPPROTO_IP, IP_TTL, { 1, 3, 64 } },
	{ IPPROTO_IPV6, IPV6_UNICAST_IF, { 0, 0, 0 } },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS, { 1, 3, 64 } },
};

static int value_of(const struct option *o, int round)
{
	static const int usual[] = { 0, 1, 3 };

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (harmless[i].level == o->level && harmless[i].option == o->option)
			return harmless[i].values[round];
	return usual[round];
}

static void set_option(int fd, const struct option *o, int round)
{
	int value = value_of(o, round);

	/* some options do not take an int: a refusal is fine, a broken connection is not */
	setsockopt(fd, o->level, o->option, &value, sizeof(value));
}

static int open_with(const struct option *o, int round)
{
	int fd = new_socket(SOCK_CLOEXEC), listener;
	union addr addr;
	socklen_t len;

	set_option(fd, o, round);
	if (!run.server) {
		len = addr_server(&addr, server_port());
		SYS(connect(fd, &addr.sa, len));
		return fd;
	}
	listener = fd;
	len = addr_any(&addr, 0);
	SYS(bind(listener, &addr.sa, len));
	SYS(listen(listener, 8));
	control_send_number("PORT", local_port(listener));
	fd = SYS(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	SYS(close(listener));
	return fd;
}

static void both_ways(int fd, struct flow *out, struct flow *in)
{
	char byte;

	flow_send(fd, out, LEN, LEN);
	flow_recv(fd, in, LEN, LEN);
	/* a timestamp of the TCP socket would come with the packet, which holds frames */
	if (speaks_rdma())
		SYS_ERRNO(recv(fd, &byte, 1, MSG_ERRQUEUE | MSG_DONTWAIT), EAGAIN);
}

static void hazard(const struct option *o, int round)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd;

	at(__FILE__, __LINE__, o->name);
	fd = open_with(o, round);
	if (run.variant == VAR_RDMA)
		path_warm_up(fd);
	both_ways(fd, &out, &in);
	for (int i = 0; i < 3; i++)
		set_option(fd, o, i);
	both_ways(fd, &out, &in);
	path_check(fd, out.off, in.off);
	SYS(close(fd));
}

static void hazards(bool inet6)
{
	run.inet6 = inet6;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if ((options[i].level == IPPROTO_IPV6) != inet6 || options[i].rule == REFUSE)
			continue;
		/* would hold back the last bytes of the warm-up; row more_held tests it */
		if (run.variant == VAR_RDMA && options[i].level == IPPROTO_TCP &&
		    options[i].option == TCP_CORK)
			continue;
		for (int round = 0; round < 3; round++)
			hazard(&options[i], round);
	}
}

static void option_hazards(void)
{
	hazards(false);
}

static void option_hazards6(void)
{
	hazards(true);
}

/*
 * An option without a row in support.h is unknown, one with rule REFUSE is refused, whatever TCP
 * would do with it, by setsockopt() and by getsockopt().
 */
static void option_unlisted(void)
{
	static const struct {
		int level, option, number;
	} unlisted[] = {
		{ IPPROTO_IP, IP_PKTINFO, ENOPROTOOPT },
		{ IPPROTO_IP, IP_OPTIONS, EOPNOTSUPP },
		{ IPPROTO_IP, IP_MULTICAST_TTL, ENOPROTOOPT },
		{ IPPROTO_IP, 64, ENOPROTOOPT },	/* IPT_SO_SET_REPLACE, IPT_SO_GET_INFO */
		{ IPPROTO_IPV6, IPV6_2292PKTOPTIONS, ENOPROTOOPT },
		{ IPPROTO_IPV6, IPV6_HOPOPTS, ENOPROTOOPT },
		{ IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, EOPNOTSUPP },
		{ IPPROTO_TCP, 9999, ENOPROTOOPT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(unlisted); i++) {
		int fd = new_socket_of(speaks_rdma(), unlisted[i].level == IPPROTO_IPV6, 0);
		char room[64] = "";
		socklen_t len = sizeof(room);

		SYS_ERRNO(setsockopt(fd, unlisted[i].level, unlisted[i].option, room, 4),
			  unlisted[i].number);
		SYS_ERRNO(getsockopt(fd, unlisted[i].level, unlisted[i].option, room, &len),
			  unlisted[i].number);
		SYS(close(fd));
	}
}

/* ---- the AF_RDMA socket and the TCP socket share a socket filter ---- */

static void attach_accept_all(int fd)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
	struct sock_fprog prog = { 1, &all };

	SYS(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
}

static int filter_length(int fd)
{
	struct sock_filter room[4];
	socklen_t len = ARRAY_SIZE(room);	/* in instructions */

	SYS(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, room, &len));
	return len;
}

static void filter_shared(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int none = 0, fd = open_conn();

	WANT_EQ(filter_length(fd), 0);
	attach_accept_all(fd);
	WANT_EQ(filter_length(fd), 1);
	if (!old_kernel())	/* which does not report filters to the module */
		EVENTUALLY(path_info(fd).tx_path == AFRDMA_PATH_TCP);
	flow_send(fd, &out, LEN, LEN);
	flow_recv(fd, &in, LEN, LEN);
	SYS(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)));
	WANT_EQ(filter_length(fd), 0);
	SYS_ERRNO(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), ENOENT);
	attach_accept_all(fd);
	barrier("filtered");
}

/* The errno of attaching a filter by @option, 0 if it succeeds. */
static int attach_errno(int fd, int option)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = { 1, &all };

	return setsockopt(fd, SOL_SOCKET, option, &prog, sizeof(prog)) ? errno : 0;
}

static int locked_errno(bool rdma, int option)
{
	int fd = new_socket_of(rdma, false, 0), err;

	set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	set_int(fd, SOL_SOCKET, SO_LOCK_FILTER, 1);
	err = attach_errno(fd, option);
	SYS(close(fd));
	return err;
}

static int unprivileged_errno(bool rdma)
{
	int fd = new_socket_of(rdma, false, 0), err;

	err = attach_errno(fd, SO_ATTACH_FILTER);
	SYS(close(fd));
	return err;
}

/* Attaching to a locked socket, or without privileges, fails as it does on TCP. */
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

/* ---- recv() concurrent with connect(), and TCP Fast Open ---- */

static ssize_t first_byte(int fd, char *byte)
{
	ssize_t got;

	do
		got = recv(fd, byte, 1, 0);
	while (got < 0 && errno == ENOTCONN);
	return got;
}

static void *reads_early(void *arg)
{
	int *fd = arg;
	char byte = 0;

	WANT_EQ(first_byte(*fd, &byte), 1);
	WANT_EQ(byte, 'x');
	return NULL;
}

/* A recv() that begins before the connection exists returns what the peer's program has sent. */
static void reads_beside(void)
{
	union addr addr;
	socklen_t len = addr_server(&addr, server_port());

	for (size_t i = 0; i < amount(500, 60); i++) {
		int fd = new_socket(0);
		pthread_t thread = thread_start(reads_early, &fd);

		SYS(connect(fd, &addr.sa, len));
		pthread_join(thread, NULL);
		if (speaks_rdma() && run.variant == VAR_COLD)
			WANT_EQ(path_info(fd).mode, AFRDMA_MODE_FRAMED);
		want_eof(fd);
		SYS(close(fd));
	}
}

static void is_read_early(void)
{
	int listener = open_listener(8);

	for (size_t i = 0; i < amount(500, 60); i++) {
		int fd = accept_conn(listener);

		WANT_EQ(SYS(send(fd, "x", 1, MSG_NOSIGNAL)), 1);
		SYS(close(fd));
	}
}

/* TCP Fast Open connects without an offer of AF_RDMA, and calls block as they do on TCP. */
static void fast_client(void)
{
	int port = server_port(), fd = new_socket(0);
	union addr addr;
	socklen_t len = addr_server(&addr, port);
	char byte;

	WANT_EQ(sendto(fd, "hello", 5, MSG_NOSIGNAL, &addr.sa, len), -1);
	WANT_EQ(errno, EPIPE);
	WANT_EQ(recv(fd, &byte, 1, 0), -1);
	WANT_EQ(errno, ENOTCONN);
	WANT_EQ(SYS(sendto(fd, "hello", 5, MSG_FASTOPEN | MSG_NOSIGNAL, &addr.sa, len)), 5);
	if (speaks_rdma())
		WANT_EQ(path_info(fd).mode, AFRDMA_MODE_PLAIN);
	WANT_EQ(SYS(recv(fd, &byte, 1, 0)), 1);
	WANT_EQ(byte, 'x');
	want_eof(fd);
}

static void fast_server(void)
{
	int listener = open_listener(1), fd = accept_conn(listener);
	char got[5];

	WANT_EQ(SYS(recv(fd, got, sizeof(got), MSG_WAITALL)), 5);
	WANT(!memcmp(got, "hello", 5));
	poll(NULL, 0, 100);	/* so that the client waits */
	WANT_EQ(SYS(send(fd, "x", 1, MSG_NOSIGNAL)), 1);
	SYS(close(fd));
}

/* ---- dumps concurrent with close() ---- */

#define CLOSES	amount(400, 40)

/*
 * A dump holds a reference on each connection for a moment. If it drops the last one, the dump must
 * not linger.
 */
static void dump_for_ever(volatile unsigned long *dumps)
{
	for (;;) {
		at(__FILE__, __LINE__, "dump of all connections");
		WANT(conns_count() >= 0);
		++*dumps;
	}
}

static void *close_it(void *arg)
{
	SYS(close(*(int *)arg));
	return NULL;
}

static void dumped_client(void)
{
	volatile unsigned long *dumps = mmap(NULL, 4 * KIB, PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static const char bytes[64 * KIB];
	union addr addr;
	socklen_t len = addr_server(&addr, server_port());
	pid_t pid = fork_row();

	if (!pid)
		dump_for_ever(dumps);
	for (size_t i = 0; i < CLOSES; i++) {
		int fd = new_socket(0);
		pthread_t thread;
		unsigned long was;

		set_int(fd, SOL_AFRDMA, AFRDMA_RDMA, AFRDMA_RDMA_NEVER);
		SYS(connect(fd, &addr.sa, len));
		while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			;
		set_linger(fd, 60);
		thread = thread_start(close_it, &fd);
		poll(NULL, 0, 5);
		was = *dumps;
		EVENTUALLY(*dumps > was + 1);
		barrier("closed");
		pthread_join(thread, NULL);
	}
	SYS(kill(pid, SIGKILL));
	SYS(waitpid(pid, NULL, 0));
}

static void dumped_server(void)
{
	int listener = open_listener(1);

	for (size_t i = 0; i < CLOSES; i++) {
		int fd = accept_conn(listener);

		barrier("closed");
		SYS(close(fd));
	}
}

/* ---- ICMP errors ---- */

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

static void run_command(const char *format, int port)
{
	char line[256];

	snprintf(line, sizeof(line), format, port);
	WANT_EQ(system(line), 0);
}

/*
 * With IP_RECVERR, TCP reports an ICMP error and keeps the connection. The error must not disturb
 * framed directions.
 */
static void recverr_server(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int listener = open_listener(1), port = local_port(listener);
	int fd = SYS(accept(listener, NULL, NULL));

	flow_recv(fd, &in, LEN, LEN);
	run_command("nft 'table inet recverr { chain in { type filter hook input priority 0; "
		    "tcp dport %d reject with icmp port-unreachable; }; }'", port);
	barrier("rejects");
	barrier("rejected");
	run_command("nft delete table inet recverr", 0);
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
	long before;

	set_int(fd, IPPROTO_IP, IP_RECVERR, 1);
	SYS(connect(fd, &addr.sa, len));
	WANT_EQ(get_int(fd, IPPROTO_IP, IP_RECVERR), 1);
	flow_send(fd, &out, LEN, LEN);
	barrier("rejects");
	before = icmp_unreachables();
	flow_send(fd, &out, LEN, LEN);
	EVENTUALLY(icmp_unreachables() > before);
	barrier("rejected");
	flow_recv(fd, &in, LEN, LEN);
	path_check(fd, 2 * LEN, LEN);
}

/* ---- calls that stall in user memory ---- */

/* Memory whose page faults are never served. */
static void *stalled_memory(size_t *size)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	void *memory;

	if (fd < 0)
		skip("userfaultfd: %s", strerror(errno));
	*size = 16 * 4096;
	memory = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	WANT(memory != MAP_FAILED);
	SYS(ioctl(fd, UFFDIO_API, &api));
	reg.range.start = (unsigned long)memory;
	reg.range.len = *size;
	SYS(ioctl(fd, UFFDIO_REGISTER, &reg));
	return memory;
}

static struct {
	int fd;
	char *memory;
	int started, entered;
} stall;

#define STALLED_LEN	256	/* bytes: enough for every option, so that its value is read */

static void stall_start(void *(*body)(void *), const void *arg)
{
	stall.started++;
	thread_start(body, (void *)arg);
}

/* Waits until all threads are about to make their calls, and 200 ms more for the calls to stall. */
static void stall_await(void)
{
	EVENTUALLY(__atomic_load_n(&stall.entered, __ATOMIC_SEQ_CST) == stall.started);
	poll(NULL, 0, 200);
}

static void *stall_option(void *arg)
{
	const struct option *o = arg;

	__atomic_add_fetch(&stall.entered, 1, __ATOMIC_SEQ_CST);
	setsockopt(stall.fd, o->level, o->option, stall.memory, STALLED_LEN);
	return NULL;
}

static void *stall_filter(void *arg)
{
	struct sock_fprog prog = { 1, (struct sock_filter *)stall.memory };

	(void)arg;
	__atomic_add_fetch(&stall.entered, 1, __ATOMIC_SEQ_CST);
	setsockopt(stall.fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
	return NULL;
}

static void *stall_reuseport(void *arg)
{
	struct sock_fprog prog = { 1, (struct sock_filter *)stall.memory };

	(void)arg;
	__atomic_add_fetch(&stall.entered, 1, __ATOMIC_SEQ_CST);
	setsockopt(stall.fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog));
	return NULL;
}

static void *stall_get(void *arg)
{
	const struct option *o = arg;
	socklen_t len = STALLED_LEN;

	__atomic_add_fetch(&stall.entered, 1, __ATOMIC_SEQ_CST);
	getsockopt(stall.fd, o->level, o->option, stall.memory, &len);
	return NULL;
}

static uint64_t received(int fd)
{
	struct afrdma_info info = path_info(fd);

	return info.rx_bytes_tcp + info.rx_bytes_rdma;
}

/*
 * A filter is copied from user memory with the AF_RDMA socket locked. What does not need a call of
 * the program must go on, such as receiving.
 */
static void stalled_filter(int fd, struct flow *out)
{
	uint64_t before = speaks_rdma() ? received(fd) : 0;

	if (run.server) {
		stall_start(stall_filter, NULL);
		stall_await();
	}
	barrier("filter stalled");
	if (!run.server)
		flow_send(fd, out, LEN, LEN);
	else if (speaks_rdma())
		EVENTUALLY(received(fd) == before + LEN);
	barrier("received");
}

/*
 * Calls that stall in user memory, each in a thread that never ends. The connection must go on: the
 * connection worker must not wait for them.
 */
static void stalled_calls(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = open_conn();
	size_t size;

	stall.memory = stalled_memory(&size);
	stall.fd = fd;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].level == IPPROTO_IPV6 || options[i].rule == REFUSE)
			continue;
		/* old kernels copy these themselves, with the AF_RDMA socket locked */
		if (options[i].level == SOL_SOCKET && old_kernel())
			continue;
		stall_start(stall_option, &options[i]);
		stall_start(stall_get, &options[i]);
	}
	if (!old_kernel())
		stall_start(stall_reuseport, NULL);
	stall_await();
	barrier("stalled");
	for (int i = 0; i < 20; i++) {
		flow_send(fd, &out, LEN, LEN);
		flow_recv(fd, &in, LEN, LEN);
	}
	path_check(fd, out.off, in.off);
	/* AFRDMA_INFO does not wait either */
	WANT_EQ(path_info(fd).mode, AFRDMA_MODE_FRAMED);
	stalled_filter(fd, &out);
	_exit(0);	/* ends the threads in their page faults */
}

/* ---- a sockmap ---- */

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

static int load(unsigned int type, const struct bpf_insn *insns, size_t count)
{
	static char log[4096];
	union bpf_attr attr = {
		.prog_type = type, .insns = (unsigned long)insns, .insn_cnt = count,
		.license = (unsigned long)"GPL", .log_buf = (unsigned long)log,
		.log_size = sizeof(log), .log_level = 1,
	};
	int fd = bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		fail("BPF program: %s: %s", strerror(errno), log);
	return fd;
}

/* Adds every incoming connection to the map, before accept() returns it. */
static int load_taker(int map)
{
	const struct bpf_insn taker[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_6,
		     offsetof(struct bpf_sock_ops, op), 0),
		INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 8,
		     BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB),
		INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, -4),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_sock_map_update),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return load(BPF_PROG_TYPE_SOCK_OPS, taker, ARRAY_SIZE(taker));
}

static int load_pass(void)
{
	const struct bpf_insn pass[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return load(BPF_PROG_TYPE_SK_SKB, pass, ARRAY_SIZE(pass));
}

static void attach(int target, int prog, unsigned int type)
{
	union bpf_attr attr = {
		.target_fd = target, .attach_bpf_fd = prog, .attach_type = type,
	};

	SYS(bpf(BPF_PROG_ATTACH, &attr));
}

static int make_sockmap(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 8, .max_entries = 1,
	};
	int map = bpf(BPF_MAP_CREATE, &attr);

	if (map < 0)
		skip("no sockmap: %s", strerror(errno));
	return map;
}

static bool map_has_socket(int map)
{
	uint64_t cookie;
	uint32_t key = 0;
	union bpf_attr attr = {
		.map_fd = map, .key = (unsigned long)&key, .value = (unsigned long)&cookie,
	};

	return !bpf(BPF_MAP_LOOKUP_ELEM, &attr);
}

static int own_cgroup(void)
{
	char path[64], line[128];
	int fd;

	mkdir("/run/afr-cgroup", 0700);
	if (mount("none", "/run/afr-cgroup", "cgroup2", 0, NULL) && errno != EBUSY)
		skip("no cgroup2: %s", strerror(errno));
	snprintf(path, sizeof(path), "/run/afr-cgroup/row-%d", getpid());
	SYS(mkdir(path, 0700));
	snprintf(line, sizeof(line), "echo %d >%s/cgroup.procs", getpid(), path);
	WANT_EQ(system(line), 0);
	fd = SYS(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return fd;
}

static void sockmap_server(void)
{
	int map = make_sockmap(), cgroup = own_cgroup(), listener, fd;
	struct flow out = flow_out(0), in = flow_in(0);

	attach(map, load_pass(), BPF_SK_SKB_STREAM_VERDICT);
	attach(cgroup, load_taker(map), BPF_CGROUP_SOCK_OPS);
	listener = open_listener(1);
	fd = SYS(accept(listener, NULL, NULL));
	flow_recv(fd, &in, LEN, LEN);
	flow_send(fd, &out, LEN, LEN);
	/* the map may hold the connection of a TCP client, but not one that is framed */
	WANT_EQ(map_has_socket(map), !speaks_rdma() || run.variant == VAR_FROM_TCP);
	path_check(fd, LEN, LEN);
}

static void sockmap_client(void)
{
	struct flow out = flow_out(0), in = flow_in(0);
	int fd = connect_port(server_port());

	flow_send(fd, &out, LEN, LEN);
	flow_recv(fd, &in, LEN, LEN);
	path_check(fd, LEN, LEN);
}

/* ---- policies that deny RDMA while a stream is carried by it ---- */

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
};

static const struct change changes[] = {
	{ "an IPsec policy", block_on, block_off, AFR_REASON_XFRM_POLICY },
	{ "enabled=0", enabled_off, enabled_on, AFR_REASON_FAMILY_OFF },
	{ "upgrade=0", upgrade_off, upgrade_on, AFR_REASON_UPGRADE_OFF },
	{ "AFRDMA_RDMA_NEVER", rdma_never, rdma_auto, AFR_REASON_SOCKET_OPTION },
	{ "a socket filter", filter_on, filter_off, AFR_REASON_SOCKET_FILTER },
};

static volatile bool stream_ends;

static void *stream(void *arg)
{
	struct flow *out = arg;

	while (!stream_ends)
		flow_send(change_fd, out, 20 * LEN, 20 * LEN);
	return NULL;
}

static void change_once(const struct change *c)
{
	struct afrdma_info info;
	uint64_t by_rdma;
	double begin;
	bool reported;

	EVENTUALLY(path_info(change_fd).tx_path == AFRDMA_PATH_RDMA);
	by_rdma = path_info(change_fd).tx_bytes_rdma;
	EVENTUALLY(path_info(change_fd).tx_bytes_rdma > by_rdma);	/* the stream flows */
	c->on();
	begin = now();	/* after the change: an emulated "ip" may take seconds */
	do {
		info = path_info(change_fd);
		reported = info.reason == c->reason;
		if (now() - begin > LEAVE_SECONDS)
			fail("%s: after %d s still on RDMA, or with reason %u (%s)", c->name,
			     LEAVE_SECONDS, info.reason, reason_name(info.reason));
	} while (info.tx_path == AFRDMA_PATH_RDMA || !reported);
	by_rdma = path_info(change_fd).tx_bytes_rdma;
	poll(NULL, 0, 100);
	info = path_info(change_fd);
	if (info.tx_bytes_rdma != by_rdma)
		fail("%s: bytes are still carried by RDMA", c->name);
	c->off();
}

/* IPsec policies do not apply to what a host sends to itself, which uses lo. */
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
		    !(changes[i].on == block_on && to_itself(change_fd)))
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

/* ---- sockets in namespaces of unprivileged users ---- */

/*
 * The errno of socket() in a new user and network namespace, 0 if it succeeds. Any user may create
 * these and has all capabilities in them.
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

static void namespaces_client(void)
{
	WANT_EQ(socket_in_namespace(), 0);
	path_set_sysctl("unprivileged", 0);
	WANT_EQ(socket_in_namespace(), EPERM);
	path_set_sysctl("unprivileged", 1);
	barrier("restored");
}

/* The client may be on the same host, and then sets the sysctl of both ends. */
static void namespaces_server(void)
{
	barrier("restored");
}

/* ---- SO_SNDBUF and SO_RCVBUF ---- */

static void buffers_told(void)
{
	int fd = open_conn(), set = new_socket(0);

	WANT_EQ(get_int(fd, SOL_SOCKET, SO_SNDBUF), 2 * path_info(fd).tx_ring);
	WANT_EQ(get_int(fd, SOL_SOCKET, SO_RCVBUF), 2 * path_info(fd).rx_ring);
	set_int(set, SOL_SOCKET, SO_SNDBUF, 40000);
	WANT_EQ(get_int(set, SOL_SOCKET, SO_SNDBUF), 80000);
	path_exchange(fd, LEN);
}

/* ---- the state in TCP_INFO during a half-close ---- */

static int state_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	SYS(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	return info.tcpi_state;
}

static void state_client(void)
{
	int fd = open_conn();

	WANT_EQ(state_of(fd), TCP_ESTABLISHED);
	barrier("open");
	SYS(shutdown(fd, SHUT_WR));
	EVENTUALLY(state_of(fd) == TCP_FIN_WAIT2);
	barrier("half closed");
	want_eof(fd);
}

static void state_server(void)
{
	int fd = open_conn();

	WANT_EQ(state_of(fd), TCP_ESTABLISHED);
	barrier("open");
	EVENTUALLY(state_of(fd) == TCP_CLOSE_WAIT);
	barrier("half closed");
	SYS(shutdown(fd, SHUT_WR));
}

const struct row seam_rows[] = {
	{ "option_hazards", option_hazards, option_hazards, ON_RDMA | ON_COLD | QUICK_ALL },
	{ "option_hazards6", option_hazards6, option_hazards6, ON_COLD | NEEDS_V6 | QUICK },
	{ "option_unlisted", option_unlisted, option_unlisted,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "filter_shared", filter_shared, filter_shared,
	  ON_RDMA | ON_COLD | ONLY_RDMA | QUICK_ALL },
	{ "filter_rights", filter_rights, filter_rights, ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "read_beside_connect", reads_beside, is_read_early, ON_COLD | ON_PLAIN | QUICK_ALL },
	{ "fastopen", fast_client, fast_server, ON_COLD | ON_PLAIN | QUICK | UNFRAMED },
	{ "dumped_linger", dumped_client, dumped_server,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "recverr", recverr_client, recverr_server, ON_COLD | ONLY_RDMA | QUICK },
	{ "stalled_calls", stalled_calls, stalled_calls,
	  ON_RDMA | ON_COLD | ONLY_RDMA | QUICK_ALL },
	{ "sockmap", sockmap_client, sockmap_server, ON_COLD | ON_PLAIN | ONLY_RDMA | QUICK_ALL },
	{ "forbidden_later", changes_client, changes_server, ON_RDMA | ONLY_RDMA | QUICK },
	{ "namespaces", namespaces_client, namespaces_server,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "buffers_told", buffers_told, buffers_told, ON_RDMA | ON_COLD | ONLY_RDMA | QUICK },
	{ "tcp_state", state_client, state_server, ON_ALL | QUICK_ALL },
	{ }
};
