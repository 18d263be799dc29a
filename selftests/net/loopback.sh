#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in each guest by itself: the table from the guest's own address
# to that address.
#
#	loopback.sh [quick|full] [--no-rogue] [OPTIONS OF afr_test]
set -uo pipefail
. "$AFR_LAB/guest-lib.sh"
. "$AFR_SRC/selftests/net/table-lib.sh"

set_subset "$@"

"$afr_test" --server --port 7000 >"$AFR_OUT/table.own-server" 2>&1 &
server=$!
run_part own-client "$afr_test" --client "$AFR_ME" --host6 "$AFR_ME6" --port 7000 "${subset[@]}"
check "server of own-client" wait $server || failures=1
[ $with_rogue = no ] || run_rogue
exit $failures
