// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Generic netlink: one socket, and requests to the family "afrdma". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include <linux/af_rdma_netlink.h>

#include "nl.h"

struct nl {
	struct mnl_socket	*sock;
	uint32_t		portid;
	uint32_t		seq;
	uint16_t		family;
};

/* Callback of libmnl's parsers of attributes: stores @attr in the array @arg, indexed by type. */
static int store_attr(const struct nlattr *attr, void *arg)
{
	const struct nlattr **into = arg;

	if (mnl_attr_get_type(attr) < NL_ATTRS)
		into[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

static struct nlmsghdr *request_begin(struct nl *nl, char *buf, uint16_t type, uint16_t flags,
				      uint8_t cmd)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++nl->seq;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = AFRDMA_FAMILY_VERSION;
	return nlh;
}

/*
 * Callback for the last message of an answer. The payload of this message begins with 0 or a
 * negative errno. libmnl's own callback ignores that number at the end of a dump, so a dump that
 * failed halfway would look complete.
 */
static int last_message(const struct nlmsghdr *nlh, void *arg)
{
	int err = 0;

	(void)arg;
	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(err))
		memcpy(&err, mnl_nlmsg_get_payload(nlh), sizeof(err));
	if (err >= 0)
		return MNL_CB_STOP;
	errno = -err;
	return MNL_CB_ERROR;
}

static mnl_cb_t control[] = {
	[NLMSG_ERROR]	= last_message,
	[NLMSG_DONE]	= last_message,
};

/*
 * Passes each message in @buf to @cb, except that last_message() gets the message that ends the
 * answer. Returns a positive number if more messages follow, 0 after the last one, or -1 and sets
 * errno.
 */
static int handle(struct nl *nl, const char *buf, ssize_t len, mnl_cb_t cb, void *arg)
{
	return mnl_cb_run2(buf, len, nl->seq, nl->portid, cb, arg,
			   control, NLMSG_DONE + 1);
}

/* Sends @nlh, and passes every message of the answer but the last to @cb. Returns 0 or -errno. */
static int exchange(struct nl *nl, const struct nlmsghdr *nlh, mnl_cb_t cb, void *arg)
{
	/* large, so that the kernel can put many messages of a dump into one buffer */
	size_t size = MNL_SOCKET_BUFFER_SIZE * 4;
	char *buf = malloc(size);
	ssize_t len;
	int ret = -1;

	if (!buf)
		return -ENOMEM;
	if (mnl_socket_sendto(nl->sock, nlh, nlh->nlmsg_len) >= 0) {
		do {
			len = mnl_socket_recvfrom(nl->sock, buf, size);
			ret = len < 0 ? -1 : handle(nl, buf, len, cb, arg);
		} while (ret > 0);
	}
	free(buf);
	return ret < 0 ? -errno : 0;
}

/* Callback of exchange(): stores the id of the family "afrdma" in the struct nl @arg. */
static int family_found(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr[NL_ATTRS] = { NULL };
	struct nl *nl = arg;

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), store_attr, attr);
	nl->family = nl_u16(attr[CTRL_ATTR_FAMILY_ID]);
	return MNL_CB_OK;
}

static int find_family(struct nl *nl)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh;
	int err;

	nlh = request_begin(nl, buf, GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, AFRDMA_FAMILY_NAME);
	err = exchange(nl, nlh, family_found, nl);
	if (!err && !nl->family)
		return -ENOENT;
	return err;
}

static int connect_kernel(struct nl *nl)
{
	nl->sock = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!nl->sock || mnl_socket_bind(nl->sock, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	nl->portid = mnl_socket_get_portid(nl->sock);
	nl->seq = time(NULL);
	return find_family(nl);
}

/*
 * Opens a socket and looks up the family. Returns 0 or a negative errno; -ENOENT: the module is not
 * loaded.
 */
int nl_open(struct nl **nl)
{
	int err;

	*nl = calloc(1, sizeof(**nl));
	if (!*nl)
		return -ENOMEM;
	err = connect_kernel(*nl);
	if (err) {
		nl_close(*nl);
		*nl = NULL;
	}
	return err;
}

void nl_close(struct nl *nl)
{
	if (nl->sock)
		mnl_socket_close(nl->sock);
	free(nl);
}

struct handler {
	nl_message_fn	*fn;
	void		*arg;
};

/* Callback of exchange(): passes the attributes of a message to the handler @arg. */
static int pass_message(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr[NL_ATTRS] = { NULL };
	const struct handler *handler = arg;

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), store_attr, attr);
	handler->fn(attr, handler->arg);
	return MNL_CB_OK;
}

/*
 * Sends the request @cmd (AFRDMA_CMD_*_GET), and calls @fn with @arg for each object in the
 * answer. @dump must be false for AFRDMA_CMD_INFO_GET, whose answer is one object, and true for
 * the other requests, which are dumps. Returns 0 or a negative errno.
 */
int nl_get(struct nl *nl, uint8_t cmd, bool dump, nl_message_fn *fn, void *arg)
{
	struct handler handler = { .fn = fn, .arg = arg };
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh;

	nlh = request_begin(nl, buf, nl->family, dump ? NLM_F_DUMP : NLM_F_ACK, cmd);
	return exchange(nl, nlh, pass_message, &handler);
}

/* Requests a change: @cmd with the @n attributes of @values. Returns 0 or a negative errno. */
int nl_set(struct nl *nl, uint8_t cmd, const struct nl_value *values, size_t n)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *nlh = request_begin(nl, buf, nl->family, NLM_F_ACK, cmd);

	for (; n; n--, values++) {
		if (values->wide)
			mnl_attr_put_u64(nlh, values->attr, values->value);
		else
			mnl_attr_put_u32(nlh, values->attr, values->value);
	}
	return exchange(nl, nlh, NULL, NULL);
}

static bool has_length(const struct nlattr *attr, size_t len)
{
	return attr && mnl_attr_get_payload_len(attr) >= len;
}

/*
 * If @attr is NULL, the functions below return 0, "" or NULL. A number that is too short
 * is returned as 0, and a string without NUL at its end as "".
 */

uint16_t nl_u16(const struct nlattr *attr)
{
	return has_length(attr, sizeof(uint16_t)) ? mnl_attr_get_u16(attr) : 0;
}

uint32_t nl_u32(const struct nlattr *attr)
{
	return has_length(attr, sizeof(uint32_t)) ? mnl_attr_get_u32(attr) : 0;
}

/* The kernel sends the netlink type "uint" in 8 bytes or, if the value fits, in 4. */
uint64_t nl_u64(const struct nlattr *attr)
{
	return has_length(attr, sizeof(uint64_t)) ? mnl_attr_get_u64(attr) : nl_u32(attr);
}

const char *nl_string(const struct nlattr *attr)
{
	return attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 ?
	       mnl_attr_get_str(attr) : "";
}

const void *nl_binary(const struct nlattr *attr, size_t *len)
{
	*len = attr ? mnl_attr_get_payload_len(attr) : 0;
	return attr ? mnl_attr_get_payload(attr) : NULL;
}

/*
 * Fills @into, which has NL_ATTRS entries, with the attributes that @attr contains, indexed by
 * type. Entries without an attribute become NULL.
 */
void nl_nest(const struct nlattr *attr, const struct nlattr **into)
{
	memset(into, 0, NL_ATTRS * sizeof(*into));
	if (attr)
		mnl_attr_parse_nested(attr, store_attr, into);
}
