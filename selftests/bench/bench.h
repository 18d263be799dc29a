/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* Shared by client and server of afr_bench, which are one program. */
#ifndef AFR_BENCH_H
#define AFR_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/af_rdma.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define READ_SIZE	(256 << 10)

/*
 * The operation that a client requests. OP_ONE is sent as a single byte, all others as a struct
 * request. A client may send OP_WARM requests before another operation.
 */
enum op {
	OP_ONE,		/* the byte is sent back; the client then closes the connection */
	OP_WARM,	/* the request is sent back */
	OP_STREAM,	/* messages of size bytes until the end; if back is set, both ways */
	OP_ECHO,	/* messages of size bytes, each sent back */
	/* turn TSO, GSO and GRO of eth0 on, or off if size is 0; the request is sent back */
	OP_OFFLOADS,
};

struct request {
	uint8_t op;
	uint8_t back;
	uint16_t unused;
	uint32_t size;
};

struct family {
	const char *name;
	int domain;
	uint16_t port;
};

extern const struct family families[3];

struct sample {
	double *at;
	size_t n, room;
};

/*
 * util.c. A failure ends the program; but if the server loses a connection, only the calling
 * thread ends.
 */
extern bool serving;
double now(void);
void *memory(size_t size);
int new_socket(const struct family *family);
void set_int(int fd, int level, int name, int value);
void send_all(int fd, const void *from, size_t len);
/* Returns false if the stream ends before the first byte. */
bool recv_all(int fd, void *to, size_t len);
/* Reads until the end of the stream; returns the number of bytes. */
uint64_t recv_to_end(int fd);
/*
 * Writes messages of @size until *@stop is true, at most @most of them if that is not 0, and ends
 * the stream. Returns the number of bytes.
 */
uint64_t send_messages(int fd, size_t size, uint64_t most, const volatile bool *stop);
void set_offloads(bool on);
struct afrdma_info rdma_info(int fd);
void sample_add(struct sample *s, double value);
double percentile(struct sample *s, double which);

int serve(void);

#endif /* AFR_BENCH_H */
