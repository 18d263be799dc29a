/* SPDX-License-Identifier: GPL-2.0 */
/* Copyright (C) 2026 AF_RDMA maintainers */
/* One valid frame of each type, by type. A layout needs a sample here to compile. */
#ifndef AFR_TEST_FRAME_SAMPLES_H
#define AFR_TEST_FRAME_SAMPLES_H

#include "../../net/afrdma/proto/frame.h"
#include "../../net/afrdma/proto/reason.h"

#define SAMPLE_offset	.offset = 0
#define SAMPLE_attach	.attach = { .epoch = 1, .link = 0x1234, .addr = 0x7f0000000000,		\
				    .rkey = 0x1234, .ring = 256 * 1024, .span = 256 * 1024,	\
				    .flags = AFR_ATTACH_ACTIVE }
#define SAMPLE_move	.move = { .epoch = 1 }
#define SAMPLE_resume	.resume = { .epoch = 1 }
#define SAMPLE_error	.reason = AFR_REASON_FRAME_BAD
#define SAMPLE_service	.port = 1

static const struct afr_frame frame_samples[AFR_FRAME_NEXT] = {
#define AFR_FRAME(number, name, layout, meaning)				\
	[number] = { .type = number, SAMPLE_##layout,				\
		     .length = number == AFR_FRAME_DATA ? 10 : 0 },
	AFR_FRAMES
#undef AFR_FRAME
};

#endif /* AFR_TEST_FRAME_SAMPLES_H */
