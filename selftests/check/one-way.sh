#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by the lab in both guests: rows of the socket table with the client in a and the server in b,
# then rogue in each guest. The guests are equal, so the other direction would run the same code
# again.
#
#	one-way.sh SUBSET [-- SUBSET]...
#	SUBSET: [quick|full] [--no-rogue] [OPTIONS OF afr_test]
#
# PAGES in the environment sets mem_max, the limit on the pages of all rings. With a high limit each
# ring is as large as on a host with much memory.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"
# shellcheck source=selftests/net/table-lib.sh
. "$AFR_SRC/selftests/net/table-lib.sh"

# part NUMBER SUBSET...: run SUBSET as part NUMBER of this script's run
part() {
	local n=$1
	shift
	set_subset "$@"
	witness_begins
	barrier "table $n begins" 600
	# shellcheck disable=SC2154 # table-lib.sh sets afr_test and subset
	if [ "$AFR_ROLE" = b ]; then
		run_part "server.$n" "$afr_test" --server --port 7000
	else
		run_part "client.$n" "$afr_test" --client "$AFR_PEER" --host6 "$AFR_PEER6" \
			--port 7000 "${subset[@]}"
	fi
	barrier "table $n is over" 3600
	witness_ends "table $n"
	[ "$with_rogue" = no ] || run_rogue
	barrier "rogue $n is over" 3600
}

if [ -n "${PAGES:-}" ]; then
	echo "$PAGES" >/sys/module/afrdma/parameters/mem_max
	echo "$PAGES" >/proc/sys/net/afrdma/mem_max
fi
number=1
words=()
for word in "$@" --; do
	if [ "$word" = -- ]; then
		part $number "${words[@]}"
		number=$((number + 1))
		words=()
	else
		words+=("$word")
	fi
done
exit "$failures"
