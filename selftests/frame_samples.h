/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/*
 * One valid frame of each type, by type; there is no type 0. For each layout, SAMPLE_ has a valid
 * body, whose fields are different and not 0 as far as the parser allows, and OFFSETS_ lists the
 * fields that are offsets, at most two. A new layout needs both macros: otherwise the tests do not
 * compile.
 */
#ifndef AFR_TEST_FRAME_SAMPLES_H
#define AFR_TEST_FRAME_SAMPLES_H

#include "../net/afrdma/proto/frame.h"
#include "../net/afrdma/proto/reason.h"

#define SAMPLE_offset	.offset = 77
#define SAMPLE_attach	.attach = { .epoch = 2, .link = 0x1234, .addr = 0x7f0000000000,		\
				    .rkey = 0x5678, .ring = 256 * 1024, .span = 512 * 1024,	\
				    .channel = 4, .flags = AFR_ATTACH_ACTIVE, .consumed = 78 }
#define SAMPLE_move	.move = { .epoch = 1, .start = 79 }
#define SAMPLE_resume	.resume = { .epoch = 1, .reason = 50, .received = 81, .consumed = 80 }
#define SAMPLE_error	.reason = AFR_REASON_FRAME_BAD
#define SAMPLE_service	.port = 4321

#define OFFSETS_offset(f)	&(f)->offset
#define OFFSETS_attach(f)	&(f)->attach.consumed
#define OFFSETS_move(f)		&(f)->move.start
#define OFFSETS_resume(f)	&(f)->resume.received, &(f)->resume.consumed
#define OFFSETS_error(f)	NULL
#define OFFSETS_service(f)	NULL

static const struct afr_frame frame_samples[AFR_FRAME_NEXT] = {
#define AFR_FRAME(number, name, layout, meaning)				\
	[number] = { .type = number, SAMPLE_##layout,				\
		     .length = number == AFR_FRAME_DATA ? 10 : 0 },
	AFR_FRAMES
#undef AFR_FRAME
};

#endif /* AFR_TEST_FRAME_SAMPLES_H */
