#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# check.sh ends a stage that stands still, and lets one that goes on take its time: its
# watch(), with stages of a few seconds. KTAP.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lint/lib.sh"

for function in end_group last_word watch; do
	eval "$(sed -n "/^$function() {/,/^}/p" "$src/selftests/check.sh")"
done
# shellcheck disable=SC2034 # for watch()
patience=2

# stage NAME LIMIT STATUS SAYS SCRIPT: what watch() makes of it, and writes into its log
stage() {
	local name="watch: $1" limit=$2 want=$3 says=$4 rc=0 log=$tmp/log
	: >"$tmp/wrong"
	setsid bash -c "$5" >"$log" 2>&1 &
	watch $! "$log" "$limit" "$1" >"$tmp/told" || rc=$?
	[ $rc -eq "$want" ] || echo "status $rc, not $want" >>"$tmp/wrong"
	grep -qx "$says" "$log" || sed 's/^/it says: /' "$log" >>"$tmp/wrong"
	judge "$name" "$tmp/wrong"
}

# shellcheck disable=SC2016 # for another shell
count='for i in $(seq 30); do echo $i; sleep 0.2; done'	# six seconds
stage "one that goes on may take longer than it should" 3 0 30 "$count"
stage "one that stands still is ended" 4 124 "check: nothing was said for 2 seconds" "echo begun; sleep 60"
stage "one that goes on without end is ended" 1 124 "check: no end after 4 seconds" \
	"while :; do echo on; sleep 0.2; done"
stage "who waits for others' guests stands still for no fault of its own" 1 0 ended \
	"echo 'lab: waiting for the guests of another run'; sleep 6; echo ended"
stage "one that fails keeps its status" 3 7 no "echo no; exit 7"
finish
