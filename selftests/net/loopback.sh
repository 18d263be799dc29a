#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in each guest on its own: runs the socket table over connections from an address of
# the guest to the same address, and then rogue.
#
#	loopback.sh [quick|full] [--no-rogue] [OPTIONS OF afr_test]
#	loopback.sh [quick|full] --only-rogue [OPTIONS OF rogue]
set -uo pipefail
. "$AFR_LAB/guest-lib.sh"
. "$AFR_SRC/selftests/net/table-lib.sh"

own_table() {
	"$afr_test" --server --port 7000 >"$AFR_OUT/table.own-server" 2>&1 &
	run_part own-client "$afr_test" --client "$AFR_ME" --host6 "$AFR_ME6" --port 7000 \
		"${subset[@]}"
	check "server of own-client" wait $! || failures=1
}

set_subset "$@"
[ "$with_table" = no ] || own_table
[ "$with_rogue" = no ] || run_rogue
exit $failures
