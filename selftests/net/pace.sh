#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: bulk leaves room for short messages of
# other connections of its link, and waits for nothing when there are none; who leaves a
# crowded link can; many connections have more links; and rings are as large as there is
# memory for.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

pace=$AFR_SRC/selftests/net/pace.py
smctl=$AFR_SRC/build/tools/smctl
work=$(mktemp -d)
port=7300
module=/sys/module/afrdma/parameters/mem_max
space=/proc/sys/net/afrdma/mem_max

# part NAME SECONDS WORDS...: pace.py, whose last words are the reason of a failure
part() {
	local name=$1 seconds=$2
	shift 2
	if timeout "$seconds" python3 "$pace" "$@" >"$work/out" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "$(tail -n 1 "$work/out")"
	fi
	sed 's/^/# /' "$work/out"
}

listening() { grep -q listening "$work/serve"; }
no_link() { [ "$("$smctl" -j link)" = "[]" ]; }

# rings PAGES BYTES: with so many pages for all rings, those of a new socket have so many bytes.
rings() {
	echo "$1" >"$module"
	echo "$1" >"$space"
	check "rings with $1 pages for all: $2" python3 "$pace" ring "$2"
}

most=$("$smctl" -j dev | python3 -c '
import json, sys
print(min(1 << 20, *(dev["ring_max"] for dev in json.load(sys.stdin))))')
barrier begin
rings 1000 262144
rings 100000 524288
rings 1000000 "$most"
old=$(cat /proc/sys/net/afrdma/sndbuf)
echo 300000 | tee /proc/sys/net/afrdma/sndbuf >/proc/sys/net/afrdma/rcvbuf
check "rings: rounded up" python3 "$pace" ring 524288
echo "$old" | tee /proc/sys/net/afrdma/sndbuf >/proc/sys/net/afrdma/rcvbuf
check "rings: smaller, where connections are many" timeout 60 python3 "$pace" many 40
echo 100000 >"$space"
check "rings: the namespace's limit counts" python3 "$pace" ring 524288
echo 88000 >"$space"	# three quarters are a little more than 512 times 512 KiB
check "rings: smaller, where much is promised" timeout 60 python3 "$pace" many 4
# One peer has all that follows, and may have half of what RDMA may have.
echo 60000 | tee "$module" >"$space"
barrier "rings seen"
# One link: all of it shares a queue pair; and none when it has done its work.
echo 1 >/proc/sys/net/afrdma/links_per_group
echo 0 >/proc/sys/net/afrdma/link_linger_ms
if [ "$AFR_ROLE" = b ]; then
	timeout 280 python3 "$pace" serve $port >"$work/serve" 2>&1 &
	server=$!
	wait_for 20 listening
	barrier listens
	barrier paced 300
	echo 16 >/proc/sys/net/afrdma/link_depth
	barrier narrow
	check "pacing: the server has seen it all" wait "$server"
	sed 's/^/# /' "$work/serve"
else
	barrier listens
	part "pacing: beside short messages, and only then" 120 talk "$AFR_PEER" $port "$smctl"
	check "the link goes" wait_for 20 no_link
	barrier paced
	echo 16 >/proc/sys/net/afrdma/link_depth
	barrier narrow
	part "many connections: more links" 120 spread "$AFR_PEER" $port "$smctl"
	check "these links go" wait_for 20 no_link
	part "a crowded link: who leaves can" 120 crowd "$AFR_PEER" $port "$smctl"
fi
barrier end
rm -rf "$work"
exit 0
