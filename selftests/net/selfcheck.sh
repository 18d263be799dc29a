#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selfcheck.sh [BUILD]
#
# Checks that afr_test detects corrupted streams, and a client that is gone. fault.so loses,
# repeats or reorders bytes, and so on, in one recv() of the server. The row must fail, and its
# message must say what is wrong; for bytes that belong to another place in a stream, it must name
# that place. Without corruption, the row must pass. KTAP on stdout.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../ktap.sh
. "$here/../ktap.sh"
build=$(cd "${1:-$here/../../build/net}" && pwd) || exit 2

if [ -z "${AFR_SELFCHECK_INSIDE:-}" ]; then
	AFR_SELFCHECK_INSIDE=1 exec nice unshare --user --map-root-user --net "$0" "$build"
fi

ip link set lo up
number=0 rc=0

verdict() {
	number=$((number + 1))
	if grep -q "$2" "$build/selfcheck.out"; then
		ktap_result ok $number "$1"
	else
		rc=1
		ktap_result "not ok" $number "$1"
		grep '^#' "$build/selfcheck.out" | grep -v took
	fi
}

# fault NAME ROW PATTERN: run ROW while fault.so applies the fault NAME ("none": no fault) to one
# recv() of the server; the server's output must match PATTERN
fault() {
	AFR_FAULT=$1 LD_PRELOAD="$build/fault.so" \
		"$build/afr_test" --server --port 7000 >"$build/selfcheck.out" 2>&1 &
	"$build/afr_test" --client 127.0.0.1 --port 7000 --family tcp --quick \
		--seed 7 --only "$2" >/dev/null 2>&1
	wait $!
	verdict "fault $1" "$3"
}

ktap_version
ktap_plan 8
fault none stream_to_server '^ok 1 stream_to_server'
fault lose stream_to_server 'of this stream (+8)'
fault repeat stream_to_server 'of this stream (-64)'
fault reorder stream_to_server 'of this stream (+64)'
fault zero stream_to_server 'they are zero'
fault flip stream_to_server 'wrong at offset'
fault mix many_poll 'of connection [0-9]*, same direction'

# SIGINT ends the client during the row: the row must fail at the server.
"$build/afr_test" --server --port 7000 >"$build/selfcheck.out" 2>&1 &
timeout -s INT 1 "$build/afr_test" --client 127.0.0.1 --port 7000 --family tcp \
	--only silence_then_both >/dev/null 2>&1
wait $!
verdict "client gone" '^not ok 1 silence_then_both'
exit $rc
