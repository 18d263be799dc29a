// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Counters and connections of this network namespace, read by netlink as smctl does. */
#define _GNU_SOURCE
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <linux/af_rdma_netlink.h>

#include "test.h"

#define ANSWER_SIZE	(32 * KIB)

struct request {
	struct nlmsghdr head;
	struct genlmsghdr genl;
	struct nlattr attr;
	char name[sizeof(AFRDMA_FAMILY_NAME)];
};

/* The first attribute of @type in @len bytes, or NULL. */
static const void *attr_find(const char *from, int len, int type)
{
	while (len >= NLA_HDRLEN) {
		const struct nlattr *attr = (const void *)from;
		int room = NLA_ALIGN(attr->nla_len);

		if ((attr->nla_type & NLA_TYPE_MASK) == type)
			return attr;
		from += room;
		len -= room;
	}
	return NULL;
}

static const void *attr_of(const struct nlmsghdr *head, int type)
{
	return attr_find((const char *)head + NLMSG_HDRLEN + GENL_HDRLEN,
			 head->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, type);
}

/* The value of an attribute of up to eight bytes; 0 if it is absent. */
static uint64_t attr_value(const struct nlattr *attr)
{
	uint64_t value = 0;

	if (attr)
		memcpy(&value, (const char *)attr + NLA_HDRLEN, attr->nla_len - NLA_HDRLEN);
	return value;
}

/* Sends a request, and calls @each for each message of the answer; false on an error. */
static bool ask(int fd, const struct request *request,
		void (*each)(const struct nlmsghdr *head, void *arg), void *arg)
{
	bool more = request->head.nlmsg_flags & NLM_F_DUMP;
	static char answer[ANSWER_SIZE] __attribute__((aligned(4)));

	if (send(fd, request, request->head.nlmsg_len, 0) < 0)
		return false;
	do {
		int len = recv(fd, answer, sizeof(answer), 0);
		const struct nlmsghdr *head = (const void *)answer;

		if (len < 0)
			return false;
		for (; NLMSG_OK(head, (unsigned int)len); head = NLMSG_NEXT(head, len)) {
			if (head->nlmsg_type == NLMSG_ERROR)
				return false;
			if (head->nlmsg_type == NLMSG_DONE)
				more = false;
			else
				each(head, arg);
		}
	} while (more);
	return true;
}

static void take_family(const struct nlmsghdr *head, void *arg)
{
	*(uint16_t *)arg = attr_value(attr_of(head, CTRL_ATTR_FAMILY_ID));
}

static void take_stat(const struct nlmsghdr *head, void *arg)
{
	uint64_t *values = arg, stat = attr_value(attr_of(head, AFRDMA_A_STAT_ID));

	if (stat < STAT_COUNT)
		values[stat] = attr_value(attr_of(head, AFRDMA_A_STAT_VALUE));
}

/* The id of the module's netlink family; 0 on an error, or without the module. */
static uint16_t family(int fd)
{
	struct request request = {
		.head = { .nlmsg_len = sizeof(request), .nlmsg_type = GENL_ID_CTRL,
			  .nlmsg_flags = NLM_F_REQUEST },
		.genl = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
		.attr = { .nla_len = NLA_HDRLEN + sizeof(request.name),
			  .nla_type = CTRL_ATTR_FAMILY_NAME },
		.name = AFRDMA_FAMILY_NAME,
	};
	uint16_t id = 0;

	return ask(fd, &request, take_family, &id) ? id : 0;
}

/* Calls @each for each message of the dump @command; false on an error. */
static bool dump(unsigned char command, void (*each)(const struct nlmsghdr *head, void *arg),
		 void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	struct request request = {
		.head = { .nlmsg_len = NLMSG_HDRLEN + GENL_HDRLEN,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.genl = { .cmd = command, .version = AFRDMA_FAMILY_VERSION },
	};
	bool done;

	request.head.nlmsg_type = fd < 0 ? 0 : family(fd);
	done = request.head.nlmsg_type && ask(fd, &request, each, arg);
	close(fd);
	return done;
}

/* Reads all counters into @values; without the module, returns false and sets all to zero. */
bool stats_read(uint64_t *values)
{
	memset(values, 0, STAT_COUNT * sizeof(*values));
	return dump(AFRDMA_CMD_STATS_GET, take_stat, values);
}

static void count_one(const struct nlmsghdr *head, void *arg)
{
	(void)head;
	++*(int *)arg;
}

/* The number of connections in a dump; -1 on an error. */
int conns_count(void)
{
	int count = 0;

	return dump(AFRDMA_CMD_CONN_GET, count_one, &count) ? count : -1;
}
