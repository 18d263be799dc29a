// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Operations by which a program or administrator affects or reads the TCP socket under an AF_RDMA
 * socket: options at any time, recv() during connect(), TCP Fast Open, dumps, calls that stall in
 * user memory, BPF. Framed connections must survive them, and no program may see a frame.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/userfaultfd.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "proto/reason.h"
#include "support.h"
#include "test.h"

#define LEN	1000

/* ---- options, before and after the TCP handshake ---- */

enum rule { PASS, STORE, LATE, SHARE, REFUSE, CORE, FAMILY };

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

/* What value_of() returns for these options, as 0, 1 or 3 would break even TCP, or test little. */
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

/* Returns the value to which option @o is set in round 0, 1 or 2. */
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

	/* may fail, as some options take no int or refuse a value; the connection must survive */
	setsockopt(fd, o->level, o->option, &value, sizeof(value));
}

/* Like open_conn(), but without a warm-up, and with option @o set before connect() or listen(). */
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
	/* recv() must not return packets that TCP has time-stamped: they would hold frames */
	if (speaks_rdma())
		SYS_ERRNO(recv(fd, &byte, 1, MSG_ERRQUEUE | MSG_DONTWAIT), EAGAIN);
}

/* One connection, on which option @o is set before the handshake and between bytes. */
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
		/*
		 * TCP_CORK would hold back the last bytes of the warm-up, and path_check() would
		 * count them as bytes of the row. Row more_held tests TCP_CORK.
		 */
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
 * setsockopt() and getsockopt() report an IP, IPv6 or TCP option without a row in support.h as
 * unknown, and refuse an option with rule REFUSE, whatever TCP would do with it.
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

/* A recv() that begins during connect() returns what the peer's program sends. */
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

/* Other end of reads_beside(): sends a byte on each connection and closes it. */
static void is_read_early(void)
{
	int listener = open_listener(8);

	for (size_t i = 0; i < amount(500, 60); i++) {
		int fd = accept_conn(listener);

		WANT_EQ(SYS(send(fd, "x", 1, MSG_NOSIGNAL)), 1);
		SYS(close(fd));
	}
}

/* TCP Fast Open connects without an offer of AF_RDMA, and recv() then blocks as on TCP. */
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
	poll(NULL, 0, 100);	/* time for the client's recv() to block */
	WANT_EQ(SYS(send(fd, "x", 1, MSG_NOSIGNAL)), 1);
	SYS(close(fd));
}

/* ---- dumps concurrent with close() ---- */

#define CLOSES	amount(400, 40)

/*
 * Dumps all connections repeatedly. A dump holds a reference on each connection for a moment. If
 * it is the last reference, the dump frees the connection, but must not wait for the linger time.
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

/* Closes sockets with unsent bytes and a linger time while a child process dumps connections. */
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

#define STALLED_LEN	256	/* bytes; a shorter option value might be refused unread */

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
 * At the server, SO_ATTACH_FILTER stalls with the AF_RDMA socket locked. Meanwhile the module must
 * still receive bytes into the receive ring, as this needs no call of the program.
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
 * Starts setsockopt() and getsockopt() calls, each in a thread of its own. Those that access the
 * memory passed to them stall and never return. The connection must keep working: neither the
 * connection worker nor send() and recv() may wait for the stalled calls.
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
		/* old kernels do not pass these options to afr_sockopt_set() */
		if (options[i].level == SOL_SOCKET && old_kernel())
			continue;
		stall_start(stall_option, &options[i]);
		stall_start(stall_get, &options[i]);
	}
	/* old kernels copy this filter with the AF_RDMA socket locked: flow_send() would wait */
	if (!old_kernel())
		stall_start(stall_reuseport, NULL);
	stall_await();
	barrier("stalled");
	for (int i = 0; i < 20; i++) {
		flow_send(fd, &out, LEN, LEN);
		flow_recv(fd, &in, LEN, LEN);
	}
	path_check(fd, out.off, in.off);
	/* getsockopt(AFRDMA_INFO) does not wait for the stalled calls either */
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

/* Loads a BPF program of type @type, and returns its descriptor. */
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

/* Loads a program that tries to add each connection to the map before accept() returns it. */
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

/* Loads the verdict program of the map, which passes all bytes on to the socket. */
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

/* Moves this process to a new cgroup, and returns a descriptor of it. */
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

/*
 * A BPF program tries to add each incoming connection to a sockmap. This must fail if the
 * connection is going to be framed, because the sockmap would read its frames.
 */
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
	/* the map must hold a connection without frames, but not a framed one */
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

/* ---- SO_SNDBUF and SO_RCVBUF ---- */

/*
 * On a framed connection, SO_SNDBUF and SO_RCVBUF return twice the size of their ring, unless the
 * program has set them. An option that was set returns twice the value set, as with TCP.
 */
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
	int fd = open_conn(), state;

	WANT_EQ(state_of(fd), TCP_ESTABLISHED);
	barrier("open");
	EVENTUALLY(state_of(fd) == TCP_CLOSE_WAIT);
	barrier("half closed");
	SYS(shutdown(fd, SHUT_WR));
	state = state_of(fd);
	WANT(state == TCP_LAST_ACK || state == TCP_CLOSE);
}

const struct row tcp_socket_rows[] = {
	{ "option_hazards", option_hazards, option_hazards, ON_RDMA | ON_COLD | QUICK_ALL },
	{ "option_hazards6", option_hazards6, option_hazards6, ON_COLD | NEEDS_V6 | QUICK },
	{ "option_unlisted", option_unlisted, option_unlisted,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "read_beside_connect", reads_beside, is_read_early, ON_COLD | ON_PLAIN | QUICK_ALL },
	{ "fastopen", fast_client, fast_server, ON_COLD | ON_PLAIN | QUICK | UNFRAMED },
	{ "dumped_linger", dumped_client, dumped_server,
	  ON_COLD | ONLY_RDMA | QUICK | UNFRAMED },
	{ "stalled_calls", stalled_calls, stalled_calls,
	  ON_RDMA | ON_COLD | ONLY_RDMA | QUICK_ALL },
	{ "sockmap", sockmap_client, sockmap_server, ON_COLD | ON_PLAIN | ONLY_RDMA | QUICK_ALL },
	{ "buffers_told", buffers_told, buffers_told, ON_RDMA | ON_COLD | ONLY_RDMA | QUICK },
	{ "tcp_state", state_client, state_server, ON_ALL | QUICK_ALL },
	{ }
};
