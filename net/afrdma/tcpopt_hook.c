// SPDX-License-Identifier: GPL-2.0
/* The netfilter hooks that carry the TCP option, per network namespace. */
#include <linux/init.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>

#include "netns.h"
#include "tcpopt.h"

static const struct nf_hook_ops hook_ops[] = {
	{
		.hook		= afr_tcpopt_out,
		.pf		= NFPROTO_IPV4,
		.hooknum	= NF_INET_LOCAL_OUT,
		.priority	= NF_IP_PRI_FIRST,
	},
	{
		.hook		= afr_tcpopt_out,
		.pf		= NFPROTO_IPV6,
		.hooknum	= NF_INET_LOCAL_OUT,
		.priority	= NF_IP6_PRI_FIRST,
	},
};

/**
 * afr_tcpopt_use() - make sure that the hooks of a namespace are there
 * @net: the namespace of a socket
 *
 * Registering is slow and takes a lock of all namespaces, so it is done once, by
 * the first socket, and undone at the end of the namespace.
 *
 * Context: Process, may sleep.
 * Return: 0 or a negative error: everything in @net is plain.
 */
int afr_tcpopt_use(struct net *net)
{
	struct afr_net *an = afr_net(net);
	int err = 0;

	if (READ_ONCE(an->hooks))
		return 0;
	mutex_lock(&an->lock);
	if (!an->hooks)
		err = nf_register_net_hooks(net, hook_ops, ARRAY_SIZE(hook_ops));
	if (!err)
		WRITE_ONCE(an->hooks, true);
	mutex_unlock(&an->lock);
	return err;
}

static void __net_exit tcpopt_leave(struct net *net)
{
	struct afr_net *an = afr_net(net);

	if (an->hooks)
		nf_unregister_net_hooks(net, hook_ops, ARRAY_SIZE(hook_ops));
	an->hooks = false;
}

static struct pernet_operations afr_tcpopt_ops = {
	.exit = tcpopt_leave,
};

/**
 * afr_tcpopt_init() - be told when a namespace ends
 *
 * Context: Module load, after afr_netns_init().
 * Return: 0 or a negative error.
 */
int __init afr_tcpopt_init(void)
{
	return register_pernet_subsys(&afr_tcpopt_ops);
}

/**
 * afr_tcpopt_exit() - unregister all hooks
 *
 * Context: Module exit. All sockets of the family are gone, so no table points
 * here; packets may still be on their way through the hooks.
 */
void afr_tcpopt_exit(void)
{
	unregister_pernet_subsys(&afr_tcpopt_ops);
	synchronize_net();
}
