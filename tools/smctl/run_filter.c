// SPDX-License-Identifier: GPL-2.0
/* The seccomp filter of a supervised program: which of its calls smctl hears of. */
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
#define ARCHITECTURE	0	/* calls of no machine are heard of: all is TCP */
#endif

/* Places in the filter below. */
enum { SOCKET = 7, OPTION = 16, ALLOW = 21, NOTIFY = 22 };

/* The kernel looks at the lower half of an int. */
#define ARGUMENT(n)	(offsetof(struct seccomp_data, args[n]) + \
			 (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define LOAD(offset)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)
#define GO(here, value, yes, no) \
	[here] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (yes) - (here) - 1, (no) - (here) - 1)

static int install(const struct sock_fprog *program)
{
	/* Go interrupts its threads all the time: a call that is heard of is not given up. */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER |
		       SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, program);
}

int filter_install(bool where)
{
	const unsigned char place = where ? NOTIFY : ALLOW;
	struct sock_filter filter[] = {
		[0] = LOAD(offsetof(struct seccomp_data, arch)),
		GO(1, ARCHITECTURE, 2, ALLOW),
		[2] = LOAD(offsetof(struct seccomp_data, nr)),
		GO(3, SYS_socket, SOCKET, 4),
		GO(4, SYS_getsockopt, OPTION, 5),
		GO(5, SYS_connect, place, 6),
		GO(6, SYS_listen, place, ALLOW),
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

	/* Who has no CAP_SYS_ADMIN gives up set-user-ID programs for it. */
	if (listener < 0 && errno == EACCES && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		listener = install(&program);
	return listener;
}
