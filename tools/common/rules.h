/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * The rules of smctl run: which TCP sockets become AF_RDMA sockets. The preload library and the
 * supervisor both use them. Nothing here locks or allocates, or is a cancellation point.
 */
#ifndef RUN_RULES_H
#define RUN_RULES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* The environment variable by which smctl passes the rules to the library, one per line. */
#define RULES_VARIABLE	"AFRDMA_RUN_RULES"

enum {
	RULES_MAX	= 128,
	RULES_TEXT	= 8192,
};

enum rule_side { SIDE_ANY, SIDE_LISTEN, SIDE_CONNECT };

struct rule {
	const char	*program;	/* NULL: any */
	const char	*cgroup;	/* NULL: any */
	const char	*ports;		/* the word with the ports, while the rule is parsed */
	enum rule_side	side;
	int		family;
	unsigned int	bits;
	unsigned char	prefix[16];
	uint16_t	first, last;	/* ports */
	bool		rdma;
};

/* A list of rules; empty if all bytes are zero. */
struct rules {
	struct rule	rule[RULES_MAX];
	unsigned int	n;
	bool		who;		/* a rule depends on the program or the cgroup */
	bool		where;		/* a rule depends on listen, connect, address or port */
	char		text[RULES_TEXT];	/* the words to which the rules point */
	unsigned int	used;		/* bytes of @text in use */
	const char	*word;		/* what a message of rules_add() is about, or NULL */
};

/*
 * Adds the rule @line. Returns NULL, or an error message; rules->word is then the word that the
 * message is about, or NULL.
 */
const char *rules_add(struct rules *rules, const char *line);

/*
 * Should socket(@domain, @type, @protocol) of the process @proc ("/proc/self" or /proc/TID) create
 * an AF_RDMA socket? Also true if the answer depends on the connect() or listen() that follows:
 * then rules_apply() decides.
 */
bool rules_want(const struct rules *rules, const char *proc, int domain, int type, int protocol);

/*
 * Applies the rules to the socket @fd before the process @proc connects it to @addr or, if @addr
 * is NULL, calls listen(): denies RDMA on the socket if the first rule that matches is "use tcp".
 * Does nothing if no rule depends on listen, connect, address or port: then rules_want() alone
 * decides.
 */
void rules_apply(const struct rules *rules, const char *proc, int fd,
		 const struct sockaddr *addr, socklen_t len);

#endif /* RUN_RULES_H */
