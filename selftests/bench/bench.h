/* SPDX-License-Identifier: GPL-2.0 */
/* One program at both ends: what client and server of it share. */
#ifndef AFR_BENCH_H
#define AFR_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/af_rdma.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define READ_SIZE	(256 << 10)

/* What a connection is for: its first byte, or bytes. A client may say WARM before. */
enum op {
	OP_ONE,		/* a byte, which comes back: connect + 1 B + close */
	OP_WARM,	/* the request comes back */
	OP_STREAM,	/* messages of size bytes until the end; with back in both directions */
	OP_ECHO,	/* messages of size bytes, each comes back */
	OP_OFFLOADS,	/* segmentation offloads of eth0: size says on or off; comes back */
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

/* util.c; what fails ends the program, or when it serves, the thread */
extern bool serving;
double now(void);
void *memory(size_t size);
int new_socket(const struct family *family);
void set_int(int fd, int level, int name, int value);
void send_all(int fd, const void *from, size_t len);
/* False at the end of the stream, if that comes before the first byte. */
bool recv_all(int fd, void *to, size_t len);
/* Read until the end; the number of bytes. */
uint64_t recv_to_end(int fd);
/* Write messages of @size until *@stop or, unless it is 0, @most of them; then end the stream. */
uint64_t send_messages(int fd, size_t size, uint64_t most, const volatile bool *stop);
void set_offloads(bool on);
struct afrdma_info rdma_info(int fd);
void sample_add(struct sample *s, double value);
double percentile(struct sample *s, double which);

int serve(void);

#endif /* AFR_BENCH_H */
