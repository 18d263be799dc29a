#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests, one of which is a Byzantine peer: its module has fault injection
# (run --module-b).
#
#	forged.sh [quick|full] [SEED]
#
# First, each host runs rogue, which makes malformed handshakes with victims on the same host: with
# servers on host a, with clients on host b. Then the Byzantine peer sends forged cursors and
# immediates to the host with the unmodified module. "full" makes 10,000 handshakes for each role
# and at least 100,000 injections; "quick", the default, makes fewer and takes half a minute.
# Counters of both hosts must confirm these numbers. Both hosts must release all resources
# afterwards.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"
# shellcheck source=selftests/lab/ledger.sh
. "$AFR_LAB/ledger.sh"
# shellcheck source=selftests/net/table-lib.sh
. "$AFR_SRC/selftests/net/table-lib.sh"

set_subset full
case ${1:-quick} in
full)	cases=10000 injections=100000 rows=(--only 'imm_*,flood_*') ;;
*)	cases=100 injections=2000 rows=(--only 'flood_cursor_after_3_count_2000,imm_any*') ;;
esac
seed=${2:-$((RANDOM + 1))}
module=$AFR_SRC/selftests/net/rogue-module.py
timeout=/proc/sys/net/afrdma/orphan_timeout_ms

counters() { "$AFR_SRC/build/tools/smctl" -j stat | python3 -c '
import json, sys
for one in json.load(sys.stdin):
    print(one["name"], one["value"])'; }

# counted NAME: increase of a counter between the files "before" and "after"
counted() {
	awk -v name="$1" '$1 == name { n = $2 - n } END { print n }' \
		"$AFR_OUT/before" "$AFR_OUT/after"
}

# at_least NAME LEAST SEEN: the number SEEN must not be below LEAST
at_least() {
	if [ "$3" -ge "$2" ]; then ok "$1: $3"; else not_ok "$1" "$3, not $2"; fi
}

# handshakes ROLE SOCKETS: run rogue in ROLE; a victim creates SOCKETS sockets in each case
handshakes() {
	counters >"$AFR_OUT/before"
	run_part "handshakes.$1" "$rogue" --host "$AFR_ME" "${slow_rogue[@]}" --seed "$seed" \
		--only spoiled_handshake --role "$1" --cases "$cases"
	counters >"$AFR_OUT/after"
	at_least "sockets with a malformed handshake, rogue as $1" $((cases * $2)) \
		"$(counted sock_created)"
	for name in conn_plain conn_framed peer_violation option_bad; do
		at_least "of these, rogue as $1, $name" $((cases / 50)) "$(counted $name)"
	done
}

say "seed $seed"
ledger_dir=$(mktemp -d)
ledger_take test
modprobe -q tun 2>/dev/null
before=$(cat $timeout)
echo 1000 >$timeout
# Both hosts run rogue at the same time. The Byzantine module injects nothing yet.
if [ "$AFR_ROLE" = a ]; then handshakes client 2; else handshakes server 1; fi
echo "$before" >$timeout
barrier handshakes 7200

export PYTHONDONTWRITEBYTECODE=1
if [ -e /sys/module/afrdma/parameters/rogue ]; then
	put byzantine yes
	python3 "$module" || failures=1
elif [ "$(get byzantine 30)" = yes ]; then
	python3 "$module" "${rows[@]}" --seed "$seed" --injections $injections || failures=1
else
	skip "forged cursors and immediates" "no guest has fault injection: run --module-b"
fi
ledger_compare test
barrier end 7200
exit $failures
