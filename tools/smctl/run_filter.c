// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* The seccomp filter of a supervised program: which system calls are reported to smctl. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run.h"
#include "smctl.h"

#if defined(__x86_64__)
#define ARCHITECTURE	AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE	AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE	AUDIT_ARCH_RISCV64
#elif defined(__s390x__)
#define ARCHITECTURE	AUDIT_ARCH_S390X
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE	AUDIT_ARCH_PPC64LE
#else
#define ARCHITECTURE	0	/* matches no call: all sockets stay TCP sockets */
#endif

/* Indices into the filter below. */
enum { SOCKET = 7, OPTION = 16, ALLOW = 21, NOTIFY = 22 };

/* The offset of the lower 32 bits of argument @n. Of an int, the kernel uses only these bits. */
#define ARGUMENT(n)	(offsetof(struct seccomp_data, args[n]) + \
			 (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define LOAD(offset)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define GO(here, value, yes, no) \
	[here] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (yes) - (here) - 1, (no) - (here) - 1)

static int install(const struct sock_fprog *program)
{
	/*
	 * The Go runtime often signals its threads. Once smctl has received a call, only a fatal
	 * signal may interrupt that call; otherwise the thread would repeat it after each signal.
	 */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER |
		       SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
}

/*
 * Installs the filter in the calling process, which then starts the program. @where: some rule
 * depends on listen, connect, address or port, so connect() and listen() are reported as well.
 * Returns the descriptor that reports the calls, or -1 with errno.
 */
int filter_install(bool where)
{
	const unsigned char action = where ? NOTIFY : ALLOW;
	struct sock_filter filter[] = {
		[0] = LOAD(offsetof(struct seccomp_data, arch)),
		GO(1, ARCHITECTURE, 2, ALLOW),
		[2] = LOAD(offsetof(struct seccomp_data, nr)),
		GO(3, SYS_socket, SOCKET, 4),
		GO(4, SYS_getsockopt, OPTION, 5),
		GO(5, SYS_connect, action, 6),
		GO(6, SYS_listen, action, ALLOW),
		[SOCKET] = LOAD(ARGUMENT(0)),
		GO(8, AF_INET, 10, 9),
		GO(9, AF_INET6, 10, ALLOW),
		[10] = LOAD(ARGUMENT(1)),
		[11] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(SOCK_NONBLOCK | SOCK_CLOEXEC)),
		GO(12, SOCK_STREAM, 13, ALLOW),
		[13] = LOAD(ARGUMENT(2)),
		GO(14, 0, NOTIFY, 15),
		GO(15, IPPROTO_TCP, NOTIFY, ALLOW),
		[OPTION] = LOAD(ARGUMENT(1)),
		GO(17, SOL_SOCKET, 18, ALLOW),
		[18] = LOAD(ARGUMENT(2)),
		GO(19, SO_DOMAIN, NOTIFY, 20),
		GO(20, SO_PROTOCOL, NOTIFY, ALLOW),
		[ALLOW] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		[NOTIFY] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };
	int listener = install(&program);

	/*
	 * Without CAP_SYS_ADMIN, install() needs no_new_privs. But no_new_privs keeps
	 * set-user-ID programs from gaining privileges, so set it only if install() has failed.
	 */
	if (listener < 0 && errno == EACCES && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		listener = install(&program);
	return listener;
}
