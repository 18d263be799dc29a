// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * Implements "smctl reasons". Also prints the reason of a connection, link or device: the kernel
 * sends only its number, and this file adds its name, sentence and remedy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/af_rdma_netlink.h>

#include "smctl.h"

struct reason {
	struct reason	*next;
	uint32_t	number;
	char		*name, *text, *remedy;
};

struct reasons {
	struct reason	*first;
	bool		no_memory;
};

/* Callback of nl_get(): adds a reason to the list @arg. */
static void add(const struct nlattr *const *attr, void *arg)
{
	struct reasons *reasons = arg;
	struct reason *reason = calloc(1, sizeof(*reason));

	if (!reason) {
		reasons->no_memory = true;
		return;
	}
	reason->number = nl_u32(attr[AFRDMA_A_REASON_NUMBER]);
	reason->name = strdup(nl_string(attr[AFRDMA_A_REASON_NAME]));
	reason->text = strdup(nl_string(attr[AFRDMA_A_REASON_TEXT]));
	reason->remedy = strdup(nl_string(attr[AFRDMA_A_REASON_REMEDY]));
	reason->next = reasons->first;
	reasons->first = reason;
	if (!reason->name || !reason->text || !reason->remedy)
		reasons->no_memory = true;
}

/* Loads the list of reasons from the kernel. On failure returns NULL, and *@err is negative. */
struct reasons *reasons_load(struct nl *nl, int *err)
{
	struct reasons *reasons = calloc(1, sizeof(*reasons));

	if (!reasons) {
		*err = -ENOMEM;
		return NULL;
	}
	*err = nl_get(nl, AFRDMA_CMD_REASON_GET, true, add, reasons);
	if (!*err && reasons->no_memory)
		*err = -ENOMEM;
	if (*err) {
		reasons_free(reasons);
		return NULL;
	}
	return reasons;
}

void reasons_free(struct reasons *reasons)
{
	struct reason *reason;

	while (reasons && reasons->first) {
		reason = reasons->first;
		reasons->first = reason->next;
		free(reason->name);
		free(reason->text);
		free(reason->remedy);
		free(reason);
	}
	free(reasons);
}

static const struct reason *find(const struct reasons *reasons, uint32_t number)
{
	static const struct reason unknown = {
		.name = "UNKNOWN", .text = "unknown reason", .remedy = ""
	};
	const struct reason *reason;

	for (reason = reasons->first; reason; reason = reason->next)
		if (reason->number == number)
			return reason;
	return &unknown;
}

/* Prints the name and number of the reason in @attr. Returns the reason, for show_text(). */
static const struct reason *show_name(struct smctl *smctl, const char *key,
				      const struct nlattr *attr)
{
	const struct reason *reason = find(smctl->reasons, nl_u32(attr));
	char number_key[32];

	snprintf(number_key, sizeof(number_key), "%s_number", key);
	print_text(smctl->print, "    ");
	print_text(smctl->print, key);
	print_string(smctl->print, key, " %s", reason->name);
	print_u64(smctl->print, number_key, " (" U64 ")", nl_u32(attr));
	return reason;
}

/* Prints the sentence of a reason as field KEY_text, and its remedy as field KEY_remedy. */
static void show_text(struct smctl *smctl, const char *key, const struct reason *reason, bool peer)
{
	const char *remedy = peer ? "    remedy at the peer: %s\n" : "    remedy: %s\n";
	char text_key[32], remedy_key[32];

	snprintf(text_key, sizeof(text_key), "%s_text", key);
	snprintf(remedy_key, sizeof(remedy_key), "%s_remedy", key);
	print_string(smctl->print, text_key, ": %s\n", reason->text);
	print_string(smctl->print, remedy_key, *reason->remedy ? remedy : NULL, reason->remedy);
}

/*
 * If @attr exists, prints it as a reason: fields KEY (its name), KEY_number, KEY_text and
 * KEY_remedy.
 */
void field_reason(struct smctl *smctl, const char *key, const struct nlattr *attr)
{
	if (attr)
		show_text(smctl, key, show_name(smctl, key, attr), false);
}

/* As field_reason(), with one more field, KEY_peer: true if @attr is a reason sent by the peer. */
void field_reason_and_peer(struct smctl *smctl, const char *key, const struct nlattr *attr,
			   bool peer)
{
	const struct reason *reason;
	char peer_key[32];

	if (!attr)
		return;
	reason = show_name(smctl, key, attr);
	snprintf(peer_key, sizeof(peer_key), "%s_peer", key);
	print_flag(smctl->print, peer_key, ": peer", peer);
	show_text(smctl, key, reason, peer);
}

void reason_show(const struct nlattr *const *attr, void *arg)
{
	const char *remedy = nl_string(attr[AFRDMA_A_REASON_REMEDY]);
	struct print *p = ((struct smctl *)arg)->print;

	print_begin(p);
	print_u64(p, "number", "%3" PRIu64, nl_u32(attr[AFRDMA_A_REASON_NUMBER]));
	print_string(p, "name", " %-20s", nl_string(attr[AFRDMA_A_REASON_NAME]));
	print_string(p, "text", " %s\n", nl_string(attr[AFRDMA_A_REASON_TEXT]));
	print_string(p, "remedy", *remedy ? "    remedy: %s\n" : NULL, remedy);
	print_end(p);
}
