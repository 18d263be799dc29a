// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The generic netlink family "afrdma". Its messages are specified in
 * Documentation/netlink/specs/afrdma.yaml, from which the uapi header is generated.
 *
 * The get commands need no privilege and have no request attributes; conn-move and link-drain need
 * CAP_NET_ADMIN in the initial user namespace. Requests are limited to the caller's network
 * namespace. The dump of devices lists those that the namespace sees: all devices of the host, or
 * in the exclusive mode of RDMA namespaces its own. The dump of reasons is the same everywhere.
 *
 * A dump fills one skb per call. The place where it has stopped is kept in cb->ctx: an id or a
 * position. If objects are created, destroyed or reordered between two calls, a dump by position
 * may miss some or show some twice. The dump of connections, by id, shows exactly once each
 * connection that exists throughout.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netlink.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <uapi/linux/af_rdma.h>
#include <uapi/linux/af_rdma_netlink.h>

#include "compat.h"
#include "conn.h"
#include "conn_info.h"
#include "device.h"
#include "group.h"
#include "link.h"
#include "move.h"
#include "netlink.h"
#include "netns.h"
#include "proto/reason.h"
#include "proto/wire.h"

static struct genl_family afr_genl_family;
static unsigned int socket_family;

/* One call of a dump. */
struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	u8 cmd;
	u64 position;		/* of the visited entry, in a dump by position */
};

/* State of a dump between its calls, in cb->ctx. */
struct dump_cursor {
	u64 next;		/* first id or position not shown yet */
};

static_assert(sizeof(struct dump_cursor) <= sizeof_field(struct netlink_callback, ctx));

static struct dump_cursor *cursor(struct netlink_callback *cb)
{
	return (struct dump_cursor *)cb->ctx;
}

static struct net *dump_net(const struct netlink_callback *cb)
{
	return sock_net(cb->skb->sk);
}

/*
 * Adds a message filled by @put. Returns -EMSGSIZE if the skb is full: then the next call of the
 * dump starts with @entry.
 */
static int dump_add(struct dump *dump, int (*put)(const struct dump *dump, const void *entry),
		    const void *entry)
{
	struct netlink_callback *cb = dump->cb;
	void *head;

	head = genlmsg_put(dump->skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   &afr_genl_family, NLM_F_MULTI, dump->cmd);
	if (!head)
		return -EMSGSIZE;
	if (put(dump, entry)) {
		genlmsg_cancel(dump->skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(dump->skb, head);
	return 0;
}

/* Adds an entry that is identified by its position, unless an earlier call has added it. */
static int dump_add_next(struct dump *dump,
			 int (*put)(const struct dump *dump, const void *entry),
			 const void *entry)
{
	struct dump_cursor *cur = cursor(dump->cb);
	int err;

	if (dump->position++ < cur->next)
		return 0;
	err = dump_add(dump, put, entry);
	if (!err)
		cur->next++;
	return err;
}

/* Returns the result of a dump callback: the length of the skb (0 ends the dump), or -errno. */
static int dump_result(const struct dump *dump, int err)
{
	if (err && !(err == -EMSGSIZE && dump->skb->len))
		return err;
	return dump->skb->len;
}

/* Adds a number, unless it is 0. */
static int put_u32_set(struct sk_buff *skb, int attr, u32 value)
{
	return value ? nla_put_u32(skb, attr, value) : 0;
}

static int put_flag(struct sk_buff *skb, int attr, bool value)
{
	return value ? nla_put_flag(skb, attr) : 0;
}

static int put_inet(struct sk_buff *skb, const struct sockaddr_in *in)
{
	return nla_put_in_addr(skb, AFRDMA_A_ENDPOINT_ADDR, in->sin_addr.s_addr) ||
	       nla_put_u16(skb, AFRDMA_A_ENDPOINT_PORT, ntohs(in->sin_port));
}

static int put_inet6(struct sk_buff *skb, const struct sockaddr_in6 *in6)
{
	return nla_put_in6_addr(skb, AFRDMA_A_ENDPOINT_ADDR, &in6->sin6_addr) ||
	       nla_put_u16(skb, AFRDMA_A_ENDPOINT_PORT, ntohs(in6->sin6_port)) ||
	       put_u32_set(skb, AFRDMA_A_ENDPOINT_SCOPE, in6->sin6_scope_id);
}

static bool is_set(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET)
		return in->sin_port || in->sin_addr.s_addr;
	return addr->ss_family == AF_INET6 &&
	       (in6->sin6_port || !ipv6_addr_any(&in6->sin6_addr));
}

/* Adds an address, if it is set. */
static int put_endpoint(struct sk_buff *skb, int attr, const struct sockaddr_storage *addr)
{
	struct nlattr *nest;
	int err;

	if (!is_set(addr))
		return 0;
	nest = nla_nest_start(skb, attr);
	if (!nest)
		return -EMSGSIZE;
	if (addr->ss_family == AF_INET)
		err = put_inet(skb, (const struct sockaddr_in *)addr);
	else
		err = put_inet6(skb, (const struct sockaddr_in6 *)addr);
	if (!err)
		nla_nest_end(skb, nest);
	return err;
}

/* conn-get */

static int put_conn_who(struct sk_buff *skb, const struct afr_conn_info *info, uid_t uid)
{
	return nla_put_uint(skb, AFRDMA_A_CONN_ID, info->id) ||
	       put_endpoint(skb, AFRDMA_A_CONN_LOCAL, &info->local) ||
	       put_endpoint(skb, AFRDMA_A_CONN_PEER, &info->remote) ||
	       nla_put_u32(skb, AFRDMA_A_CONN_UID, uid) ||
	       (info->inode && nla_put_uint(skb, AFRDMA_A_CONN_INODE, info->inode)) ||
	       put_flag(skb, AFRDMA_A_CONN_SERVER, info->server) ||
	       put_flag(skb, AFRDMA_A_CONN_ORPHAN, info->orphan);
}

static int put_conn_state(struct sk_buff *skb, const struct afr_conn_info *info)
{
	return nla_put_u32(skb, AFRDMA_A_CONN_MODE, info->mode) ||
	       nla_put_u32(skb, AFRDMA_A_CONN_TCP_STATE, info->tcp_state) ||
	       nla_put_u32(skb, AFRDMA_A_CONN_TX_PATH, info->tx_path) ||
	       nla_put_u32(skb, AFRDMA_A_CONN_RX_PATH, info->rx_path) ||
	       put_u32_set(skb, AFRDMA_A_CONN_REASON, info->reason) ||
	       put_flag(skb, AFRDMA_A_CONN_REASON_PEER, info->reason_peer) ||
	       put_u32_set(skb, AFRDMA_A_CONN_ABORT_REASON, info->abort_reason) ||
	       (info->link && nla_put_uint(skb, AFRDMA_A_CONN_LINK, info->link)) ||
	       nla_put_u32(skb, AFRDMA_A_CONN_EPOCH, info->epoch) ||
	       nla_put_uint(skb, AFRDMA_A_CONN_MOVES, info->moves);
}

static int put_conn_bytes(struct sk_buff *skb, const struct afr_conn_info *info)
{
	return nla_put_uint(skb, AFRDMA_A_CONN_TX_BYTES_TCP, info->tx_bytes[AFRDMA_PATH_TCP]) ||
	       nla_put_uint(skb, AFRDMA_A_CONN_TX_BYTES_RDMA, info->tx_bytes[AFRDMA_PATH_RDMA]) ||
	       nla_put_uint(skb, AFRDMA_A_CONN_RX_BYTES_TCP, info->rx_bytes[AFRDMA_PATH_TCP]) ||
	       nla_put_uint(skb, AFRDMA_A_CONN_RX_BYTES_RDMA, info->rx_bytes[AFRDMA_PATH_RDMA]) ||
	       nla_put_uint(skb, AFRDMA_A_CONN_UNSENT, info->unsent) ||
	       nla_put_uint(skb, AFRDMA_A_CONN_UNREAD, info->unread) ||
	       nla_put_u32(skb, AFRDMA_A_CONN_TX_RING, info->tx_ring) ||
	       nla_put_u32(skb, AFRDMA_A_CONN_RX_RING, info->rx_ring);
}

static int put_conn(const struct dump *dump, const void *entry)
{
	struct user_namespace *reader = sk_user_ns(NETLINK_CB(dump->cb->skb).sk);
	const struct afr_conn_info *info = entry;
	uid_t uid;

	uid = from_kuid_munged(reader, make_kuid(&init_user_ns, info->uid));
	return put_conn_who(dump->skb, info, uid) ||
	       put_conn_state(dump->skb, info) ||
	       put_conn_bytes(dump->skb, info);
}

static int visit_conn(const struct afr_conn_info *info, void *arg)
{
	struct dump *dump = arg;
	int err;

	err = dump_add(dump, put_conn, info);
	if (!err)
		cursor(dump->cb)->next = info->id + 1;
	return err;
}

static int conn_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump = { .skb = skb, .cb = cb, .cmd = AFRDMA_CMD_CONN_GET };

	return dump_result(&dump, afr_conn_info_for_each(afr_net(dump_net(cb)), cursor(cb)->next,
							 visit_conn, &dump));
}

/* link-get */

static_assert((int)AFR_LINK_CONNECTING == (int)AFRDMA_LINK_STATE_CONNECTING &&
	      (int)AFR_LINK_UP == (int)AFRDMA_LINK_STATE_UP &&
	      (int)AFR_LINK_DYING == (int)AFRDMA_LINK_STATE_DYING &&
	      (int)AFR_LINK_DEAD == (int)AFRDMA_LINK_STATE_DEAD, "the values of both enums");

struct link_entry {
	struct afr_link_info info;
	const struct afr_peer *peer;
};

static int put_link_who(struct sk_buff *skb, const struct link_entry *link)
{
	const struct afr_link_info *info = &link->info;

	return nla_put_uint(skb, AFRDMA_A_LINK_ID, info->id) ||
	       nla_put_string(skb, AFRDMA_A_LINK_DEVICE, info->device) ||
	       nla_put_u32(skb, AFRDMA_A_LINK_PORT, info->port_num) ||
	       put_endpoint(skb, AFRDMA_A_LINK_LOCAL, &info->local) ||
	       put_endpoint(skb, AFRDMA_A_LINK_PEER, &info->remote) ||
	       nla_put(skb, AFRDMA_A_LINK_INSTANCE, sizeof(link->peer->instance),
		       link->peer->instance) ||
	       put_flag(skb, AFRDMA_A_LINK_ACTIVE, info->active);
}

static int put_link(const struct dump *dump, const void *entry)
{
	const struct link_entry *link = entry;
	const struct afr_link_info *info = &link->info;
	struct sk_buff *skb = dump->skb;

	return put_link_who(skb, link) ||
	       nla_put_u32(skb, AFRDMA_A_LINK_STATE, info->state) ||
	       put_u32_set(skb, AFRDMA_A_LINK_REASON, afr_reason_number(info->reason)) ||
	       put_flag(skb, AFRDMA_A_LINK_REASON_PEER, info->reason & AFR_REASON_PEER) ||
	       nla_put_u32(skb, AFRDMA_A_LINK_QPN, info->qpn) ||
	       nla_put_u32(skb, AFRDMA_A_LINK_PEER_QPN, info->peer_qpn) ||
	       nla_put_u32(skb, AFRDMA_A_LINK_MTU, info->mtu) ||
	       nla_put_u32(skb, AFRDMA_A_LINK_USERS, info->users) ||
	       nla_put_u32(skb, AFRDMA_A_LINK_CREDITS, info->credits) ||
	       nla_put_uint(skb, AFRDMA_A_LINK_TX_BYTES, info->tx_bytes) ||
	       nla_put_uint(skb, AFRDMA_A_LINK_RX_BYTES, info->rx_bytes) ||
	       nla_put_uint(skb, AFRDMA_A_LINK_TX_WRITES, info->tx_writes) ||
	       nla_put_uint(skb, AFRDMA_A_LINK_RX_WRITES, info->rx_writes) ||
	       put_u32_set(skb, AFRDMA_A_LINK_TCLASS, info->tclass);
}

static int visit_link(struct afr_link *link, const struct afr_peer *peer, void *arg)
{
	struct link_entry entry = { .peer = peer };

	afr_link_info(link, &entry.info);
	return dump_add_next(arg, put_link, &entry);
}

static int link_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump = { .skb = skb, .cb = cb, .cmd = AFRDMA_CMD_LINK_GET };

	return dump_result(&dump, afr_group_for_each_link(afr_net(dump_net(cb)), visit_link,
							  &dump));
}

/* dev-get */

static int put_dev(const struct dump *dump, const void *entry)
{
	const struct afr_device_info *info = entry;
	struct sk_buff *skb = dump->skb;

	return nla_put_string(skb, AFRDMA_A_DEV_NAME, info->name) ||
	       put_flag(skb, AFRDMA_A_DEV_IWARP, info->iwarp) ||
	       put_flag(skb, AFRDMA_A_DEV_USABLE, info->usable) ||
	       put_u32_set(skb, AFRDMA_A_DEV_REASON, info->reason) ||
	       nla_put_u32(skb, AFRDMA_A_DEV_RING_MAX, info->ring_max) ||
	       nla_put_u32(skb, AFRDMA_A_DEV_MAX_QP_WR, info->max_qp_wr) ||
	       nla_put_u32(skb, AFRDMA_A_DEV_MAX_CQE, info->max_cqe) ||
	       /* the number of links in all namespaces: only the initial one may see it */
	       (net_eq(dump_net(dump->cb), &init_net) &&
		nla_put_u32(skb, AFRDMA_A_DEV_LINKS, info->links));
}

static int visit_dev(const struct afr_device_info *info, void *arg)
{
	return dump_add_next(arg, put_dev, info);
}

static int dev_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump = { .skb = skb, .cb = cb, .cmd = AFRDMA_CMD_DEV_GET };

	return dump_result(&dump, afr_device_for_each(dump_net(cb), visit_dev, &dump));
}

/* stats-get */

struct stat_entry {
	enum afr_stat stat;
	u64 value;
};

static int put_stat(const struct dump *dump, const void *entry)
{
	const struct stat_entry *one = entry;
	struct sk_buff *skb = dump->skb;

	return nla_put_u32(skb, AFRDMA_A_STAT_ID, one->stat) ||
	       nla_put_string(skb, AFRDMA_A_STAT_NAME, afr_netns_counter_name(one->stat)) ||
	       nla_put_uint(skb, AFRDMA_A_STAT_VALUE, one->value) ||
	       nla_put_string(skb, AFRDMA_A_STAT_TEXT, afr_netns_counter_text(one->stat));
}

static int stats_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump = { .skb = skb, .cb = cb, .cmd = AFRDMA_CMD_STATS_GET };
	struct afr_stats stats;
	unsigned int stat;
	int err = 0;

	afr_netns_counters(dump_net(cb), &stats);
	for (stat = 0; stat < AFR_STAT_COUNT && !err; stat++)
		err = dump_add_next(&dump, put_stat, &(struct stat_entry){
			.stat = stat, .value = stats.count[stat] });
	return dump_result(&dump, err);
}

/* reason-get */

static const u16 afr_reason_numbers[] = {
#define AFR_REASON(number, name, sentence, remedy) number,
	AFR_REASONS
#undef AFR_REASON
};

static int put_reason(const struct dump *dump, const void *entry)
{
	struct sk_buff *skb = dump->skb;
	u16 number = *(const u16 *)entry;
	const char *remedy = afr_reason_remedy(number);

	return nla_put_u32(skb, AFRDMA_A_REASON_NUMBER, number) ||
	       nla_put_string(skb, AFRDMA_A_REASON_NAME, afr_reason_name(number)) ||
	       nla_put_string(skb, AFRDMA_A_REASON_TEXT, afr_reason_text(number)) ||
	       (*remedy && nla_put_string(skb, AFRDMA_A_REASON_REMEDY, remedy));
}

static int reason_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump = { .skb = skb, .cb = cb, .cmd = AFRDMA_CMD_REASON_GET };
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(afr_reason_numbers) && !err; i++)
		err = dump_add_next(&dump, put_reason, &afr_reason_numbers[i]);
	return dump_result(&dump, err);
}

/* info-get */

static int put_info(struct sk_buff *skb, const struct afr_net *an)
{
	return nla_put_u32(skb, AFRDMA_A_INFO_WIRE_VERSION, AFR_WIRE_VERSION) ||
	       nla_put(skb, AFRDMA_A_INFO_INSTANCE, sizeof(an->instance), an->instance) ||
	       nla_put_u32(skb, AFRDMA_A_INFO_FAMILY, socket_family) ||
	       nla_put_u32(skb, AFRDMA_A_INFO_SOCKETS, atomic_read(&an->sockets)) ||
	       nla_put_uint(skb, AFRDMA_A_INFO_RING_PAGES, atomic_long_read(&an->ring_pages));
}

static int info_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply;
	void *head;

	reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply)
		return -ENOMEM;
	head = genlmsg_put_reply(reply, info, &afr_genl_family, 0, AFRDMA_CMD_INFO_GET);
	if (!head || put_info(reply, afr_net(genl_info_net(info)))) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, head);
	return genlmsg_reply(reply, info);
}

/* conn-move, link-drain */

/* Returns the id in @attr, an integer of 32 or 64 bits. */
static u64 get_id(const struct nlattr *attr)
{
	return nla_len(attr) >= (int)sizeof(u64) ? nla_get_u64(attr) : nla_get_u32(attr);
}

/* Is attribute @attr present? If not, the extended ack names it. */
static bool has_attr(struct genl_info *info, int attr)
{
	return !GENL_REQ_ATTR_CHECK(info, attr);
}

static int conn_move(struct sk_buff *request, struct genl_info *info)
{
	struct afr_conn *conn;
	u32 to;
	int err;

	if (!has_attr(info, AFRDMA_A_CONN_ID) || !has_attr(info, AFRDMA_A_CONN_TO))
		return -EINVAL;
	to = nla_get_u32(info->attrs[AFRDMA_A_CONN_TO]);
	conn = afr_conn_find(afr_net(genl_info_net(info)), get_id(info->attrs[AFRDMA_A_CONN_ID]));
	if (!conn) {
		NL_SET_ERR_MSG(info->extack, "there is no connection of this id");
		return -ENOENT;
	}
	err = afr_move_keep_tcp(conn, to == AFRDMA_PATH_TCP);
	afr_conn_put(conn);
	if (err)
		NL_SET_ERR_MSG(info->extack, "the connection is not framed: it is TCP for ever");
	return err;
}

struct drain {
	u64 id;
	unsigned int count;	/* ends found: a link within this host has two, with the same id */
};

static int drain_link(struct afr_link *link, const struct afr_peer *peer, void *arg)
{
	struct drain *drain = arg;

	if (afr_link_id(link) != drain->id)
		return 0;
	afr_link_fail(link, AFR_REASON_LINK_OPERATOR);
	drain->count++;
	return 0;
}

static int link_drain(struct sk_buff *request, struct genl_info *info)
{
	struct drain drain = {};

	if (!has_attr(info, AFRDMA_A_LINK_ID))
		return -EINVAL;
	drain.id = get_id(info->attrs[AFRDMA_A_LINK_ID]);
	afr_group_for_each_link(afr_net(genl_info_net(info)), drain_link, &drain);
	if (drain.count)
		return 0;
	NL_SET_ERR_MSG(info->extack, "there is no link of this id");
	return -ENOENT;
}

static const struct nla_policy conn_move_policy[] = {
	[AFRDMA_A_CONN_ID]	= NLA_POLICY_MIN_LEN(sizeof(u32)),
	[AFRDMA_A_CONN_TO]	= NLA_POLICY_RANGE(NLA_U32, AFRDMA_PATH_TCP, AFRDMA_PATH_RDMA),
};

static const struct nla_policy link_drain_policy[] = {
	[AFRDMA_A_LINK_ID]	= NLA_POLICY_MIN_LEN(sizeof(u32)),
};

static const struct genl_ops afr_genl_ops[] = {
	{ .cmd = AFRDMA_CMD_CONN_GET,	.dumpit = conn_get },
	{ .cmd = AFRDMA_CMD_LINK_GET,	.dumpit = link_get },
	{ .cmd = AFRDMA_CMD_DEV_GET,	.dumpit = dev_get },
	{ .cmd = AFRDMA_CMD_STATS_GET,	.dumpit = stats_get },
	{ .cmd = AFRDMA_CMD_REASON_GET,	.dumpit = reason_get },
	{ .cmd = AFRDMA_CMD_INFO_GET,	.doit = info_get },
	{ .cmd = AFRDMA_CMD_CONN_MOVE,	.doit = conn_move,	.flags = GENL_ADMIN_PERM,
	  .policy = conn_move_policy,	.maxattr = ARRAY_SIZE(conn_move_policy) - 1 },
	{ .cmd = AFRDMA_CMD_LINK_DRAIN,	.doit = link_drain,	.flags = GENL_ADMIN_PERM,
	  .policy = link_drain_policy,	.maxattr = ARRAY_SIZE(link_drain_policy) - 1 },
};

static_assert(ARRAY_SIZE(afr_genl_ops) == AFRDMA_CMD_MAX);

static struct genl_family afr_genl_family __ro_after_init = {
	.name		= AFRDMA_FAMILY_NAME,
	.version	= AFRDMA_FAMILY_VERSION,
	.netnsok	= true,
	.module		= THIS_MODULE,
	.ops		= afr_genl_ops,
	.n_ops		= ARRAY_SIZE(afr_genl_ops),
	.resv_start_op	= 1,	/* a new family: strict validation for all commands */
};

/**
 * afr_netlink_init() - register the netlink family
 * @family: the address family number of the sockets
 *
 * Context: Module load, after the initialization of everything that is shown.
 * Return: 0 or a negative error.
 */
int __init afr_netlink_init(unsigned int family)
{
	socket_family = family;
	return genl_register_family(&afr_genl_family);
}

/**
 * afr_netlink_exit() - unregister the netlink family
 *
 * Context: Module exit, before anything that is shown is destroyed.
 */
void afr_netlink_exit(void)
{
	genl_unregister_family(&afr_genl_family);
}
