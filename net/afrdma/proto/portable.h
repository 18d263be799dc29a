/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * All that the files in proto/ may use from outside: fixed-size types, byte order, errno, memcmp()
 * and the like. These files are compiled into the module, into test programs such as rogue and,
 * with ASan and UBSan, into unit tests and fuzzers. No code in proto/ may lock, allocate or sleep.
 */
#ifndef AFR_PROTO_PORTABLE_H
#define AFR_PROTO_PORTABLE_H

#ifdef __KERNEL__
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>
#else
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#ifndef U64_MAX
#define U64_MAX UINT64_MAX
#endif
#ifndef U32_MAX
#define U32_MAX UINT32_MAX
#endif
#ifndef static_assert
#define static_assert _Static_assert
#endif
#ifndef __packed
#define __packed __attribute__((packed))
#endif
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define array_index_nospec(index, size) (index)

static inline __be16 cpu_to_be16(u16 v) { return htobe16(v); }
static inline __be32 cpu_to_be32(u32 v) { return htobe32(v); }
static inline __be64 cpu_to_be64(u64 v) { return htobe64(v); }
static inline u16 be16_to_cpu(__be16 v) { return be16toh(v); }
static inline u32 be32_to_cpu(__be32 v) { return be32toh(v); }
static inline u64 be64_to_cpu(__be64 v) { return be64toh(v); }
#endif

/*
 * Asserts an invariant of this host's own state, in debug builds only. selftests/unit/model.h
 * defines its own AFR_CHECK: the model has wrong rules that break invariants on purpose, and a
 * broken invariant must end one run of the model, not the whole program.
 */
#ifndef AFR_CHECK
#ifndef AFR_DEBUG_CHECKS
#define AFR_CHECK(ok)	((void)0)
#elif defined(__KERNEL__)
#define AFR_CHECK(ok)	WARN_ON_ONCE(!(ok))
#else
#define AFR_CHECK(ok)	assert(ok)
#endif
#endif

#endif /* AFR_PROTO_PORTABLE_H */
