#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: smctl asks for connections and links, over and over,
# while connections are made, moved and ended in every way.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"
# shellcheck source=selftests/net/table-lib.sh
. "$AFR_SRC/selftests/net/table-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
rows='random_ends.cold,close_hard_in_flight*,close_at_once.cold,cycles.rdma'

dump() {
	local n=0
	while [ ! -e /tmp/enough ]; do
		"$smctl" -j conn >/dev/null && "$smctl" -j link >/dev/null && n=$((n + 1))
	done
	echo $n >/tmp/dumps
}

set_subset quick --no-rogue --only "$rows"
dump &
dumper=$!
barrier "dumps begin" 600
# shellcheck disable=SC2154 # table-lib.sh sets them
if [ "$AFR_ROLE" = b ]; then
	run_part server "$afr_test" --server --port 7000
else
	run_part client "$afr_test" --client "$AFR_PEER" --host6 "$AFR_PEER6" \
		--port 7000 "${subset[@]}"
fi
barrier "dumps end" 3600
: >/tmp/enough
wait $dumper
check "dumps while connections come and go: $(cat /tmp/dumps)" [ "$(cat /tmp/dumps)" -ge 3 ]
exit "$failures"
