#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test of watch() in check.sh with stages of a few seconds: which of them it ends, and which status
# it returns. Prints KTAP.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lint/lib.sh"

for function in end_group last_word watch; do
	eval "$(sed -n "/^$function() {/,/^}/p" "$src/selftests/check.sh")"
done
# shellcheck disable=SC2034 # for watch()
patience=2

# stage NAME LIMIT STATUS LINE SCRIPT: run SCRIPT under watch(), as a stage that should take at
# most LIMIT seconds. watch() must return STATUS, and the log of the stage must contain LINE.
stage() {
	local name="watch: $1" limit=$2 want=$3 line=$4 rc=0 log=$tmp/log
	: >"$tmp/wrong"
	setsid bash -c "$5" >"$log" 2>&1 &
	watch $! "$log" "$limit" "$1" >"$tmp/progress" || rc=$?
	[ $rc -eq "$want" ] || echo "status $rc, not $want" >>"$tmp/wrong"
	grep -qx "$line" "$log" || sed 's/^/log: /' "$log" >>"$tmp/wrong"
	judge "$name" "$tmp/wrong"
}

# shellcheck disable=SC2016 # expanded by the shell of the stage
count='for i in $(seq 30); do echo $i; sleep 0.2; done'	# six seconds
stage "a stage with output may exceed its time" 3 0 30 "$count"
stage "a stage without output is ended" 4 124 "check: no output for 2 seconds" \
	"echo begun; sleep 60"
stage "a stage that never ends is ended" 1 124 "check: still running after 4 seconds" \
	"while :; do echo on; sleep 0.2; done"
stage "waiting for the guests of another run does not count" 1 0 ended \
	"echo 'lab: waiting for the guests of another run'; sleep 6; echo ended"
stage "the status of a failed stage is kept" 3 7 no "echo no; exit 7"
finish
