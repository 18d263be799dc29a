// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Registers the netfilter hooks of a network namespace on first use, and unregisters them. */
#include <linux/init.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>

#include "handshake.h"
#include "handshake_hook.h"
#include "netns.h"

static const struct nf_hook_ops hook_ops[] = {
	{
		.hook		= afr_handshake_out,
		.pf		= NFPROTO_IPV4,
		.hooknum	= NF_INET_LOCAL_OUT,
		.priority	= NF_IP_PRI_FIRST,
	},
	{
		.hook		= afr_handshake_out,
		.pf		= NFPROTO_IPV6,
		.hooknum	= NF_INET_LOCAL_OUT,
		.priority	= NF_IP6_PRI_FIRST,
	},
};

/**
 * afr_handshake_hook_use() - register the hooks of a namespace, if not yet done
 * @net: the namespace of a socket
 *
 * Registering is slow and takes a lock shared by all namespaces. Therefore only a socket that
 * connects or listens registers the hooks, and only if neither AFRDMA_RDMA_NEVER nor the sysctl
 * net.afrdma.enabled forbids it to negotiate AF_RDMA. The hooks are removed when the namespace ends
 * or the module is unloaded.
 *
 * Context: Process, may sleep.
 * Return: 0, or a negative error: the connections of the calling socket fall back to TCP.
 */
int afr_handshake_hook_use(struct net *net)
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

static void __net_exit hook_net_exit(struct net *net)
{
	struct afr_net *an = afr_net(net);

	if (an->hooks)
		nf_unregister_net_hooks(net, hook_ops, ARRAY_SIZE(hook_ops));
	an->hooks = false;
}

static struct pernet_operations afr_handshake_ops = {
	.exit = hook_net_exit,
};

/**
 * afr_handshake_hook_init() - register the pernet operations that remove the hooks
 *
 * Context: Module load, after afr_netns_init().
 * Return: 0 or a negative error.
 */
int __init afr_handshake_hook_init(void)
{
	return register_pernet_subsys(&afr_handshake_ops);
}

/**
 * afr_handshake_hook_exit() - unregister the hooks of all namespaces
 *
 * Context: Module exit, or a module load that fails. There is no socket of the family, so no
 * socket uses a copy of icsk_af_ops; packets may still be passing through the hooks.
 */
void afr_handshake_hook_exit(void)
{
	unregister_pernet_subsys(&afr_handshake_ops);
	synchronize_net();
}
