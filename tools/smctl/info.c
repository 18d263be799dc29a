// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/* smctl info: facts about the module and this network namespace, and the settings (sysctls). */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/af_rdma_netlink.h>

#include "smctl.h"

#define SETTINGS	"/proc/sys/net/afrdma"

static void show_setting(struct print *p, int dir, const char *name)
{
	char text[64];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return;
	text[len] = '\0';
	print_text(p, "    ");
	print_text(p, name);
	print_u64(p, name, " " U64 "\n", strtoull(text, NULL, 10));
}

static int no_dots(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void show_settings(struct print *p)
{
	struct dirent **entries;
	int dir, n, i;

	dir = open(SETTINGS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n = scandir(SETTINGS, &entries, no_dots, alphasort);
	if (dir < 0 || n < 0) {
		print_text(p, "no settings: is /proc mounted?\n");
		return;
	}
	print_text(p, "settings (sysctl net.afrdma):\n");
	print_nest_begin(p, "settings");
	for (i = 0; i < n; i++) {
		show_setting(p, dir, entries[i]->d_name);
		free(entries[i]);
	}
	print_nest_end(p);
	free(entries);
	close(dir);
}

void info_show(const struct nlattr *const *attr, void *arg)
{
	struct print *p = ((struct smctl *)arg)->print;

	print_begin(p);
	print_u64(p, "family", "family " U64, nl_u32(attr[AFRDMA_A_INFO_FAMILY]));
	print_u64(p, "wire_version", " wire_version " U64,
		  nl_u32(attr[AFRDMA_A_INFO_WIRE_VERSION]));
	print_u64(p, "sockets", " sockets " U64, nl_u32(attr[AFRDMA_A_INFO_SOCKETS]));
	print_u64(p, "ring_pages", " ring_pages " U64, nl_u64(attr[AFRDMA_A_INFO_RING_PAGES]));
	field_hex(p, "instance", " instance %s\n", attr[AFRDMA_A_INFO_INSTANCE]);
	show_settings(p);
	print_end(p);
}
