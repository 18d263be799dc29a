// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a supervised program, heard of by seccomp. What is not answered goes on
 * as if nobody had listened: then its socket is a TCP socket.
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

/* Who called, and what. */
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

/* A word of /proc/TID/status, the @n'th of its line, counted from 0. */
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

static bool same_namespace(const struct call *call, const char *name)
{
	char own[32], other[64];
	struct stat a, b;

	snprintf(own, sizeof(own), "/proc/self/ns/%s", name);
	snprintf(other, sizeof(other), "%s/ns/%s", call->proc, name);
	return !stat(own, &a) && !stat(other, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static bool read_caller(struct call *call)
{
	uint64_t process, uid, gid;
	char path[64], text[4096];
	ssize_t len = -1;
	int fd;

	snprintf(call->proc, sizeof(call->proc), "/proc/%u", call->notif->pid);
	snprintf(path, sizeof(path), "%s/status", call->proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
	if (!status_word(text, "\nTgid:", 0, 10, &process) ||
	    !status_word(text, "\nUid:", 3, 10, &uid) ||
	    !status_word(text, "\nGid:", 3, 10, &gid) ||
	    !status_word(text, "\nCapEff:", 0, 16, &call->caps))
		return false;
	call->process = process;
	call->uid = uid;
	call->gid = gid;
	return true;
}

/* Still the caller: its number has not become another's. */
static bool still_calls(const struct call *call)
{
	return !ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->notif->id);
}

static struct __user_cap_header_struct cap_head = { .version = _LINUX_CAPABILITY_VERSION_3 };

/* With no more rights than the caller's: these socket() looks at. False: it cannot be. */
static bool become(const struct call *call, const struct __user_cap_data_struct own[2])
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

static int socket_as(const struct call *call, int family, int type, int protocol)
{
	struct __user_cap_data_struct own[2];
	int fd = -1;

	if (syscall(SYS_capget, &cap_head, own))
		return -1;
	if (become(call, own))
		fd = socket(family, type, protocol);
	setfsuid(geteuid());
	setfsgid(getegid());
	syscall(SYS_capset, &cap_head, own);
	return fd;
}

/* One line, for who asked. */
static void say_once(void)
{
	static bool said;

	if (!said && getenv("AFRDMA_PRELOAD_DEBUG"))
		fputs("smctl: no AF_RDMA here, sockets are plain TCP\n", stderr);
	said = true;
}

static bool answer_socket(const struct call *call)
{
	const __u64 *args = call->notif->data.args;
	struct seccomp_notif_addfd add = {
		.id		= call->notif->id,
		.flags		= SECCOMP_ADDFD_FLAG_SEND,
		.newfd_flags	= args[1] & SOCK_CLOEXEC ? O_CLOEXEC : 0,
	};
	int family, fd = -1, ret;

	/* The socket will be of this namespace; rights are compared in that of users. */
	if (!rules_want(call->rules, call->proc, args[0], args[1], args[2]) ||
	    !same_namespace(call, "net") || !same_namespace(call, "user") || !still_calls(call))
		return false;
	family = family_number();
	if (family >= 0)
		fd = socket_as(call, family, args[1] | SOCK_CLOEXEC, family_protocol(args[0]));
	if (fd < 0) {
		say_once();
		return false;
	}
	add.srcfd = fd;
	ret = ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	close(fd);
	return ret >= 0;
}

/* The caller's descriptor @fd, here. Threads have it from their process. */
static int take_fd(const struct call *call, int fd)
{
	int process = syscall(SYS_pidfd_open, call->process, 0), taken;

	if (process < 0)
		return -1;
	taken = syscall(SYS_pidfd_getfd, process, fd, 0);
	close(process);
	if (taken >= 0 && !still_calls(call)) {
		close(taken);
		return -1;
	}
	return taken;
}

/* The caller's memory: not process_vm_readv(), which a kernel may be built without. */
static int open_memory(const struct call *call)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/mem", call->proc);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !still_calls(call)) {
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

/* The call is the program's own; before it the rules have their say. */
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
	bool	(*answer)(const struct call *call);	/* false: it goes on by itself */
} answers[] = {
	{ SYS_socket,		answer_socket },
	{ SYS_getsockopt,	answer_option },
	{ SYS_connect,		before_connect },
	{ SYS_listen,		before_listen },
};

static bool answer(const struct call *call)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(answers); i++)
		if (answers[i].nr == call->notif->data.nr)
			return answers[i].answer(call);
	return false;
}

void notify_answer(int listener, const struct rules *rules)
{
	union {
		struct seccomp_notif	notif;
		char			room[1024];	/* a newer kernel may say more */
	} heard = { .room = "" };
	struct seccomp_notif_resp response = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct call call = { .notif = &heard.notif, .rules = rules, .listener = listener };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &heard))
		return;
	if (read_caller(&call) && still_calls(&call) && answer(&call))
		return;
	response.id = heard.notif.id;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}
