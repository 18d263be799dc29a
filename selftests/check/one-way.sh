#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: the socket table from a to b only, then rogue, if
# it is wanted.  Half of run-table.sh, where guests are slow; the same words.
#
#	one-way.sh [quick|full] [--no-rogue] [OPTIONS OF afr_test]
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"
# shellcheck source=selftests/net/table-lib.sh
. "$AFR_SRC/selftests/net/table-lib.sh"

set_subset "$@"
barrier "table begins" 600
# shellcheck disable=SC2154 # table-lib.sh sets them
if [ "$AFR_ROLE" = b ]; then
	run_part server "$afr_test" --server --port 7000
else
	run_part client "$afr_test" --client "$AFR_PEER" --host6 "$AFR_PEER6" --port 7000 \
		"${subset[@]}"
fi
barrier "table over" 3600
[ "$with_rogue" = no ] || run_rogue
barrier "table ends" 3600
exit "$failures"
