// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* Fields that several objects have. */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <linux/af_rdma_netlink.h>

#include "smctl.h"

/* Space for an IPv6 address, '%' and the name of an interface. */
#define ADDR_MAX	(INET6_ADDRSTRLEN + 1 + IF_NAMESIZE)

static void append_scope(char *text, uint32_t ifindex)
{
	char name[IF_NAMESIZE];
	size_t len = strlen(text);

	if (if_indextoname(ifindex, name))
		snprintf(text + len, ADDR_MAX - len, "%%%s", name);
	else
		snprintf(text + len, ADDR_MAX - len, "%%%" PRIu32, ifindex);
}

/*
 * Prints the address and port in @attr as fields KEY and KEY_port, in text as "ADDRESS:PORT",
 * or "[ADDRESS]:PORT" for IPv6. If @attr is NULL, prints "*" in text and no field.
 */
void field_endpoint(struct print *p, const char *key, const struct nlattr *attr)
{
	const struct nlattr *in[NL_ATTRS];
	char text[ADDR_MAX] = "*", port_key[32];
	const void *addr;
	size_t len;

	if (!attr) {
		print_text(p, "*");
		return;
	}
	nl_nest(attr, in);
	addr = nl_binary(in[AFRDMA_A_ENDPOINT_ADDR], &len);
	if (len == 4)
		inet_ntop(AF_INET, addr, text, sizeof(text));
	else if (len == 16)
		inet_ntop(AF_INET6, addr, text, sizeof(text));
	if (in[AFRDMA_A_ENDPOINT_SCOPE])
		append_scope(text, nl_u32(in[AFRDMA_A_ENDPOINT_SCOPE]));
	print_string(p, key, len == 16 ? "[%s]" : "%s", text);
	snprintf(port_key, sizeof(port_key), "%s_port", key);
	print_u64(p, port_key, ":" U64, nl_u16(in[AFRDMA_A_ENDPOINT_PORT]));
}

/* Prints the name of @value in @names, which ends with NULL; the number if it has no name. */
void field_name(struct print *p, const char *key, const char *format,
		const char *const *names, uint32_t value)
{
	char number[11];
	uint32_t i;

	for (i = 0; i < value && names[i]; i++)
		;
	snprintf(number, sizeof(number), "%" PRIu32, value);
	print_string(p, key, format, names[i] ? names[i] : number);
}

/* Prints at most 32 bytes in hexadecimal. */
void field_hex(struct print *p, const char *key, const char *format, const struct nlattr *attr)
{
	const unsigned char *bytes;
	char text[2 * 32 + 1] = "";
	size_t len, i;

	bytes = nl_binary(attr, &len);
	for (i = 0; i < len && i < (sizeof(text) - 1) / 2; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	print_string(p, key, format, text);
}
