#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Check that in each of these folders no two C files use each other, directly or through others.
# Prints KTAP.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
exec selftests/lint/circles.py net/afrdma tools/common tools/smctl tools/preload tools/examples \
	selftests/net selftests/unit selftests/faults selftests/bench selftests/programs
