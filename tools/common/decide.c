// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Decides by the rules whether a program's socket uses RDMA. The first rule that matches decides;
 * if no rule matches, the decision is RDMA.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/af_rdma.h>

#include "family.h"
#include "rules.h"

/*
 * The properties of a process that rules match. The struct is small, because it is put on the
 * stack, and signal handlers and some threads have little stack.
 */
struct who {
	char	program[NAME_MAX + 1];
	char	cgroup[1024];
};

/* The address that a rule is compared with: for connect the peer's, for listen the socket's own. */
struct where {
	enum rule_side		side;
	int			family;
	const unsigned char	*address;
	uint16_t		port;
};

static void path_of(char path[static 64], const char *proc, const char *file)
{
	stpcpy(stpcpy(path, proc), file);
}

/* Finds the name of the process's executable file. */
static void look_program(struct who *who, const char *proc)
{
	static const char deleted[] = " (deleted)";	/* the kernel appends it */
	const size_t suffix = sizeof(deleted) - 1;
	char *link = who->cgroup, *name, path[64];
	ssize_t len;

	path_of(path, proc, "/exe");
	len = syscall(SYS_readlinkat, AT_FDCWD, path, link, sizeof(who->cgroup) - 1);
	if (len <= 0 || len == sizeof(who->cgroup) - 1)
		return;
	link[len] = '\0';
	if ((size_t)len > suffix && !strcmp(link + len - suffix, deleted))
		link[len - suffix] = '\0';
	name = strrchr(link, '/');
	if (name && strlen(name + 1) < sizeof(who->program))
		strcpy(who->program, name + 1);
}

/*
 * Reads lines from @fd into @text, which has @size bytes, until one begins with "0::". @text is
 * then the rest of that line; "" if there is no such line, or a line is too long.
 */
static void read_unified(int fd, char *text, size_t size)
{
	size_t kept = 0;	/* bytes at @text of a line whose end has not been read yet */
	ssize_t got;
	char *line, *end;

	while ((got = syscall(SYS_read, fd, text + kept, size - 1 - kept)) > 0) {
		text[kept + got] = '\0';
		for (line = text; (end = strchr(line, '\n')); line = end + 1) {
			if (strncmp(line, "0::", 3))
				continue;
			*end = '\0';
			memmove(text, line + 3, end + 1 - (line + 3));
			return;
		}
		kept = strlen(line);
		memmove(text, line, kept + 1);
	}
	*text = '\0';
}

/* Finds the cgroup of the process in the unified hierarchy. */
static void look_cgroup(struct who *who, const char *proc)
{
	char path[64];
	int fd;

	path_of(path, proc, "/cgroup");
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	read_unified(fd, who->cgroup, sizeof(who->cgroup));
	syscall(SYS_close, fd);
}

/* Finds the properties of process @proc, if any rule depends on them. */
static void look_who(struct who *who, const struct rules *rules, const char *proc)
{
	who->program[0] = '\0';
	who->cgroup[0] = '\0';
	if (!rules->who)
		return;
	look_program(who, proc);
	who->cgroup[0] = '\0';		/* look_program() has used it as a buffer for a path */
	look_cgroup(who, proc);
}

/* Is @cgroup @top itself, or a cgroup below it? */
static bool in_cgroup(const char *cgroup, const char *top)
{
	size_t len = strlen(top);

	while (len && top[len - 1] == '/')
		len--;
	return *cgroup && !strncmp(cgroup, top, len) && (!cgroup[len] || cgroup[len] == '/');
}

static bool match_who(const struct rule *rule, const struct who *who)
{
	return (!rule->program || !strcmp(rule->program, who->program)) &&
	       (!rule->cgroup || in_cgroup(who->cgroup, rule->cgroup));
}

static bool in_prefix(const unsigned char *address, const struct rule *rule)
{
	unsigned int bytes = rule->bits / 8, rest = rule->bits % 8;

	if (memcmp(address, rule->prefix, bytes))
		return false;
	return !rest || !((address[bytes] ^ rule->prefix[bytes]) >> (8 - rest));
}

static bool match_where(const struct rule *rule, const struct where *where)
{
	if (rule->side != SIDE_ANY && rule->side != where->side)
		return false;
	if (rule->last && (where->port < rule->first || where->port > rule->last))
		return false;
	return !rule->family ||
	       (rule->family == where->family && in_prefix(where->address, rule));
}

/* Does the rule depend on connect, listen, address or port? */
static bool asks_where(const struct rule *rule)
{
	return rule->side != SIDE_ANY || rule->family || rule->last;
}

/* Is the decision RDMA, or may it become RDMA once the address is known? */
static bool may_rdma(const struct rules *rules, const struct who *who)
{
	const struct rule *rule;

	for (rule = rules->rule; rule < rules->rule + rules->n; rule++) {
		if (!match_who(rule, who))
			continue;
		if (rule->rdma || !asks_where(rule))
			return rule->rdma;
	}
	return true;
}

/* Is the decision of the rules RDMA, now that the address is known? */
static bool says_rdma(const struct rules *rules, const struct who *who, const struct where *where)
{
	const struct rule *rule;

	for (rule = rules->rule; rule < rules->rule + rules->n; rule++)
		if (match_who(rule, who) && match_where(rule, where))
			return rule->rdma;
	return true;
}

bool rules_want(const struct rules *rules, const char *proc, int domain, int type, int protocol)
{
	struct who who;

	if ((domain != AF_INET && domain != AF_INET6) ||
	    (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM ||
	    (protocol != 0 && protocol != IPPROTO_TCP))
		return false;
	if (!rules->n)
		return true;
	look_who(&who, rules, proc);
	return may_rdma(rules, &who);
}

/*
 * Stores @addr in @where, an IPv4-mapped address as IPv4. Returns false if @addr is neither IPv4
 * nor IPv6, or @len is too small.
 */
static bool look_where(struct where *where, const struct sockaddr *addr, socklen_t len)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;

	if (len >= sizeof(*in) && addr->sa_family == AF_INET) {
		where->family = AF_INET;
		where->address = (const void *)&in->sin_addr;
		where->port = ntohs(in->sin_port);
		return true;
	}
	/* as Linux does, accepts the struct of RFC 2133, which ends before sin6_scope_id */
	if (len < offsetof(struct sockaddr_in6, sin6_scope_id) || addr->sa_family != AF_INET6)
		return false;
	where->family = AF_INET6;
	where->address = (const void *)&in6->sin6_addr;
	where->port = ntohs(in6->sin6_port);
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		where->family = AF_INET;
		where->address += 12;
	}
	return true;
}

/* Does the work of rules_apply(), which has checked that rules->where is set. May change errno. */
static void apply(const struct rules *rules, const char *proc, int fd,
		  const struct sockaddr *addr, socklen_t len)
{
	struct where where = { .side = addr ? SIDE_CONNECT : SIDE_LISTEN };
	struct sockaddr_storage own;
	int never = AFRDMA_RDMA_NEVER;
	struct who who;

	if (!addr) {
		len = sizeof(own);
		addr = (const void *)&own;
		if (getsockname(fd, (void *)&own, &len))
			return;
	}
	if (!look_where(&where, addr, len))
		return;
	look_who(&who, rules, proc);
	/*
	 * Errors are ignored: the socket may be of another family, or the module may lack the
	 * option.
	 */
	if (!says_rdma(rules, &who, &where))
		syscall(SYS_setsockopt, fd, SOL_AFRDMA, AFRDMA_RDMA, &never, sizeof(never));
}

void rules_apply(const struct rules *rules, const char *proc, int fd,
		 const struct sockaddr *addr, socklen_t len)
{
	int saved = errno;

	if (rules->where)
		apply(rules, proc, fd, addr, len);
	errno = saved;
}
