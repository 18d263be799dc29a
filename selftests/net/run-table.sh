#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests:
#
#	run-table.sh [quick|full] [--no-rogue] [OPTIONS OF afr_test]
#	run-table.sh [quick|full] --only-rogue [OPTIONS OF rogue]
#
# Runs the table of afr_test from a to b and from b to a, then rogue in each guest. The default is
# "quick": the rows marked QUICK or QUICK_ALL, with smaller amounts, and a few cases of each row of
# rogue. Each result of a row is a KTAP line of the run; the output of the programs is in
# $AFR_OUT/table.*.
set -uo pipefail
. "$AFR_LAB/guest-lib.sh"
. "$AFR_SRC/selftests/net/table-lib.sh"

set_subset "$@"

serve() {
	run_part "server.$1" "$afr_test" --server --port 7000
}

ask() {
	run_part "client.$1" "$afr_test" --client "$AFR_PEER" --host6 "$AFR_PEER6" \
		--port 7000 "${subset[@]}"
}

# direction SERVER CLIENT: run the table between these guests
direction() {
	witness_begins
	barrier "$1$2 begins" 600
	if [ "$AFR_ROLE" = "$1" ]; then serve "from-$2"; else ask "to-$1"; fi
	# In the other guest, afr_test may still be running.
	barrier "$1$2 over" 3600
	witness_ends "$2 to $1"
}

if [ "$with_table" = yes ]; then
	direction b a
	direction a b
fi
[ "$with_rogue" = no ] || run_rogue
barrier "table ends" 3600
exit $failures
