#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by the lab in both hosts of one kernel with KCSAN (run --guest kcsan-7.2 --netns --smp 2): the
# socket table, quick. KCSAN reports data races of the module in the kernel log, which fails the
# run. It watches only one access in some thousands, so a run that finds none proves something only
# with many watchpoints.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

failures=0
"$AFR_SRC/selftests/check/one-way.sh" quick --no-rogue || failures=1
if [ "$AFR_ROLE" = a ]; then
	set_up=$(sed -n 's/^setup_watchpoints: //p' /sys/kernel/debug/kcsan)
	say "KCSAN: ${set_up:-no} watchpoints"
	check "KCSAN set at least 20,000 watchpoints" test "${set_up:-0}" -ge 20000 || failures=1
fi
exit $failures
