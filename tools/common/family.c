// SPDX-License-Identifier: GPL-2.0
// Copyright (C) 2026 AF_RDMA maintainers
/*
 * The number of the AF_RDMA family on this host, its protocols, and the answers of getsockopt() by
 * which AF_RDMA sockets look like TCP sockets.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/af_rdma.h>

#include "family.h"

#define FAMILY_FILE	"/sys/module/afrdma/parameters/family"

/*
 * Reads the number of the family from the file of the module parameter; -1 if the file cannot be
 * opened. Uses syscall(): open(), read() and close() are cancellation points, but socket() and
 * getsockopt() of the preload library, which call this, must not be.
 */
static int family_from_module(void)
{
	int fd = syscall(SYS_openat, AT_FDCWD, FAMILY_FILE, O_RDONLY | O_CLOEXEC);
	int family = 0;
	char digit;

	if (fd < 0)
		return -1;
	while (syscall(SYS_read, fd, &digit, 1) == 1 && digit >= '0' && digit <= '9')
		family = family * 10 + digit - '0';
	syscall(SYS_close, fd);
	return family;
}

/*
 * If /sys shows that the module is not loaded, returns -1, so that no caller tries to create an
 * AF_RDMA socket: the kernel would start modprobe at each attempt.
 */
int family_number(void)
{
	int family = family_from_module();

	if (family > 0)
		return family;
	if (family < 0 && !access("/sys/module", F_OK) && access("/sys/module/afrdma", F_OK))
		return -1;
	return AF_RDMA;		/* the parameter cannot be read: this is its default */
}

int family_protocol(int domain)
{
	return AFRDMA_PROTOCOL(domain);
}

/* Reads an integer option by syscall(), since the preload library replaces getsockopt(). */
static int own_option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, name, &value, &len))
		return -1;
	return value;
}

bool family_tcp_answer(int fd, int name, int *answer)
{
	int family;

	if (name != SO_DOMAIN && name != SO_PROTOCOL)
		return false;
	family = family_number();
	if (family < 0 || own_option(fd, SO_DOMAIN) != family)
		return false;
	*answer = IPPROTO_TCP;
	if (name == SO_DOMAIN)
		*answer = own_option(fd, SO_PROTOCOL) == AFRDMA_PROTO_INET6 ? AF_INET6 : AF_INET;
	return true;
}
