// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Handles the system calls of supervised programs that seccomp reports. A call that is not answered
 * here is continued by the kernel: a socket() then creates a TCP socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../common/family.h"
#include "run.h"
#include "smctl.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* A reported call, and the credentials of its caller. */
struct call {
	const struct seccomp_notif	*notif;
	const struct rules		*rules;
	int				listener;
	char				proc[32];	/* /proc/TID */
	pid_t				process;
	uid_t				uid;
	gid_t				gid;
	uint64_t			caps;
};

/* Reads the @n-th number, counted from 0, of line @key in @text, which is /proc/TID/status. */
static bool status_word(const char *text, const char *key, int n, int base, uint64_t *value)
{
	const char *line = strstr(text, key);
	char *end;

	if (!line)
		return false;
	for (end = (char *)line + strlen(key); n >= 0; n--)
		*value = strtoull(end, &end, base);
	return true;
}

/* Are the caller and smctl in the same namespace of type @name? */
static bool same_namespace(const struct call *call, const char *name)
{
	char own[32], other[64];
	struct stat a, b;

	snprintf(own, sizeof(own), "/proc/self/ns/%s", name);
	snprintf(other, sizeof(other), "%s/ns/%s", call->proc, name);
	return !stat(own, &a) && !stat(other, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* Reads process id, file system uid and gid, and capabilities of the caller from /proc. */
static bool read_caller(struct call *call)
{
	uint64_t process, uid, gid;
	char path[64], *text = NULL;
	size_t size = 0;
	FILE *file;
	bool read;

	snprintf(call->proc, sizeof(call->proc), "/proc/%u", call->notif->pid);
	snprintf(path, sizeof(path), "%s/status", call->proc);
	file = fopen(path, "re");
	/* read the whole file, since the capabilities follow a line of up to 65,536 groups */
	read = file && getdelim(&text, &size, '\0', file) > 0 &&
	       status_word(text, "\nTgid:", 0, 10, &process) &&
	       status_word(text, "\nUid:", 3, 10, &uid) &&
	       status_word(text, "\nGid:", 3, 10, &gid) &&
	       status_word(text, "\nCapEff:", 0, 16, &call->caps);
	if (file)
		fclose(file);
	free(text);
	if (!read)
		return false;
	call->process = process;
	call->uid = uid;
	call->gid = gid;
	return true;
}

/* Is the call still pending? If not, another process may have the TID of the caller by now. */
static bool is_pending(const struct call *call)
{
	return !ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->notif->id);
}

static struct __user_cap_header_struct cap_head = { .version = _LINUX_CAPABILITY_VERSION_3 };

/*
 * Takes over the file system uid and gid of the caller, so that they own the socket, and drops the
 * capabilities that the caller lacks, since socket() checks capabilities. Returns false if that is
 * not possible.
 */
static bool take_credentials(const struct call *call,
			     const struct __user_cap_data_struct own[2])
{
	struct __user_cap_data_struct less[2] = { own[0], own[1] };

	setfsgid(call->gid);
	setfsuid(call->uid);
	if (setfsgid(-1) != (int)call->gid || setfsuid(-1) != (int)call->uid)
		return false;
	less[0].effective &= call->caps;
	less[1].effective &= call->caps >> 32;
	return !syscall(SYS_capset, &cap_head, less);
}

/* Creates a socket with the credentials of the caller. */
static int socket_as(const struct call *call, int family, int type, int protocol)
{
	struct __user_cap_data_struct own[2];
	int fd = -1;

	if (syscall(SYS_capget, &cap_head, own))
		return -1;
	if (take_credentials(call, own))
		fd = socket(family, type, protocol);
	setfsuid(geteuid());
	setfsgid(getegid());
	syscall(SYS_capset, &cap_head, own);
	return fd;
}

/* Prints a message if AFRDMA_PRELOAD_DEBUG is set, but only the first time. */
static void report_tcp_once(void)
{
	static bool done;

	if (!done && getenv("AFRDMA_PRELOAD_DEBUG"))
		fputs("smctl: AF_RDMA is not available, sockets are plain TCP\n", stderr);
	done = true;
}

/*
 * socket(): creates an AF_RDMA socket for the caller, if the rules select RDMA or may still select
 * it at connect() or listen().
 */
static bool answer_socket(const struct call *call)
{
	const __u64 *args = call->notif->data.args;
	struct seccomp_notif_addfd add = {
		.id		= call->notif->id,
		.flags		= SECCOMP_ADDFD_FLAG_SEND,
		.newfd_flags	= args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0,
	};
	int family, fd = -1, ret;

	/*
	 * smctl creates the socket in its own network namespace, and a capability that the caller
	 * has in another user namespace could count in that of smctl. So the caller must be in the
	 * network namespace and the user namespace of smctl.
	 */
	if (!rules_want(call->rules, call->proc, args[0], args[1], args[2]) ||
	    !same_namespace(call, "net") || !same_namespace(call, "user") || !is_pending(call))
		return false;
	family = family_number();
	if (family >= 0)
		fd = socket_as(call, family, args[1] | SOCK_CLOEXEC, family_protocol(args[0]));
	if (fd < 0) {
		report_tcp_once();
		return false;
	}
	add.srcfd = fd;
	ret = ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	close(fd);
	return ret >= 0;
}

/*
 * Duplicates the descriptor @fd of the caller by a pidfd of the calling thread. Before Linux 6.9
 * only the first thread of a process can have a pidfd. On such kernels @fd is taken from the first
 * thread instead, whose descriptors nearly all threads share; this fails if that thread has ended.
 * Returns -1 on failure.
 */
static int take_fd(const struct call *call, int fd)
{
	int process = syscall(SYS_pidfd_open, call->notif->pid, PIDFD_THREAD), taken;

	if (process < 0)
		process = syscall(SYS_pidfd_open, call->process, 0);
	if (process < 0)
		return -1;
	taken = syscall(SYS_pidfd_getfd, process, fd, 0);
	close(process);
	if (taken >= 0 && !is_pending(call)) {
		close(taken);
		return -1;
	}
	return taken;
}

/* Opens the memory of the caller in /proc, since a kernel may lack process_vm_readv(). */
static int open_memory(const struct call *call)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/mem", call->proc);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !is_pending(call)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool copy_in(int memory, void *to, uint64_t from, size_t len)
{
	return pread(memory, to, len, from) == (ssize_t)len;
}

static bool copy_out(int memory, uint64_t to, const void *from, size_t len)
{
	return pwrite(memory, from, len, to) == (ssize_t)len;
}

/* Writes the result of getsockopt() to the memory of the caller. */
static bool write_answer(const struct call *call, int answer)
{
	const __u64 *args = call->notif->data.args;
	int memory = open_memory(call);
	socklen_t len;
	bool ok;

	if (memory < 0)
		return false;
	ok = copy_in(memory, &len, args[4], sizeof(len)) && len <= INT32_MAX;
	if (ok && len > sizeof(answer))
		len = sizeof(answer);
	ok = ok && copy_out(memory, args[3], &answer, len) &&
	     copy_out(memory, args[4], &len, sizeof(len));
	close(memory);
	return ok;
}

/* getsockopt(): answers SO_DOMAIN and SO_PROTOCOL of an AF_RDMA socket as for a TCP socket. */
static bool answer_option(const struct call *call)
{
	const __u64 *args = call->notif->data.args;
	struct seccomp_notif_resp response = { .id = call->notif->id };
	int fd = take_fd(call, args[0]), answer;
	bool ours;

	ours = fd >= 0 && family_tcp_answer(fd, args[2], &answer);
	if (fd >= 0)
		close(fd);
	return ours && write_answer(call, answer) &&
	       !ioctl(call->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

/* connect(): applies the rules to the socket; then the kernel continues the call. */
static bool before_connect(const struct call *call)
{
	const __u64 *args = call->notif->data.args;
	struct sockaddr_storage addr;
	socklen_t len = args[2];
	int memory = open_memory(call), fd;
	bool known;

	known = memory >= 0 && len <= sizeof(addr) && copy_in(memory, &addr, args[1], len);
	if (memory >= 0)
		close(memory);
	fd = known ? take_fd(call, args[0]) : -1;
	if (fd < 0)
		return false;
	rules_apply(call->rules, call->proc, fd, (const void *)&addr, len);
	close(fd);
	return false;
}

/* listen(): applies the rules to the socket; then the kernel continues the call. */
static bool before_listen(const struct call *call)
{
	int fd = take_fd(call, call->notif->data.args[0]);

	if (fd < 0)
		return false;
	rules_apply(call->rules, call->proc, fd, NULL, 0);
	close(fd);
	return false;
}

static const struct {
	int	nr;
	bool	(*answer)(const struct call *call);	/* false: the kernel continues the call */
} answers[] = {
	{ SYS_socket,		answer_socket },
	{ SYS_getsockopt,	answer_option },
	{ SYS_connect,		before_connect },
	{ SYS_listen,		before_listen },
};

/* Answers a call; returns false if the kernel has to continue it. */
static bool answer(const struct call *call)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(answers); i++)
		if (answers[i].nr == call->notif->data.nr)
			return answers[i].answer(call);
	return false;
}

/* Receives one reported call from @listener, and answers it or lets the kernel continue it. */
void notify_answer(int listener, const struct rules *rules)
{
	union {
		struct seccomp_notif	notif;
		char			room[1024];	/* notif may be larger in a newer kernel */
	} report = { .room = "" };
	struct seccomp_notif_resp response = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct call call = { .notif = &report.notif, .rules = rules, .listener = listener };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &report))
		return;
	if (read_caller(&call) && is_pending(&call) && answer(&call))
		return;
	response.id = report.notif.id;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}
