/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which TCP sockets become AF_RDMA sockets: what smctl run's two means, the
 * preload library and the supervisor, both ask. Nothing here locks or
 * allocates, or is a cancellation point.
 */
#ifndef RUN_RULES_H
#define RUN_RULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* From smctl to the library: the rules, a line each. */
#define RULES_VARIABLE	"AFRDMA_RUN_RULES"

enum {
	RULES_MAX	= 128,
	RULES_TEXT	= 8192,
};

enum rule_side { SIDE_ANY, SIDE_LISTEN, SIDE_CONNECT };

struct rule {
	const char	*program;	/* NULL: any */
	const char	*cgroup;	/* NULL: any */
	const char	*ports;		/* while it is read */
	enum rule_side	side;
	int		family;
	unsigned int	bits;
	unsigned char	prefix[16];
	uint16_t	first, last;	/* ports */
	bool		rdma;
};

/* All zero is none. */
struct rules {
	struct rule	rule[RULES_MAX];
	unsigned int	n;
	bool		who;		/* some ask for the program or the cgroup */
	bool		where;		/* some ask for what only an address tells */
	char		text[RULES_TEXT];
	unsigned int	used;		/* of text */
	const char	*word;		/* that was wrong */
};

/* One more rule. NULL, or what is wrong; rules->word is the word, if it is one. */
const char *rules_add(struct rules *rules, const char *line);

/*
 * Is socket(@domain, @type, @protocol) of the process @proc ("/proc/self") a TCP
 * socket that is to become AF_RDMA? Also where a rule may yet say so.
 */
bool rules_want(const struct rules *rules, const char *proc, int domain, int type, int protocol);

/*
 * Before the process @proc connects @fd to @addr, or listens (then @addr is NULL):
 * where a rule says tcp, the socket is kept from RDMA.
 */
void rules_apply(const struct rules *rules, const char *proc, int fd,
		 const struct sockaddr *addr, socklen_t len);

#endif /* RUN_RULES_H */
