#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by the lab (selftests/lab/run) in both guests. Tests that:
# - bulk data is paced while other connections on its link send latency-sensitive messages, and
#   only then;
# - connections can leave a link that many others use;
# - a link is closed when no connection uses it any more;
# - a peer gets more links when there are many connections to it;
# - the default ring size depends on sndbuf, rcvbuf, mem_max and the rings of open connections.
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

# part NAME SECONDS ARGS...: run pace.py
part() { check_within "$2" "$1" python3 "$pace" "${@:3}"; }

listening() { grep -q listening "$work/serve"; }
no_link() { [ "$("$smctl" -j link)" = "[]" ]; }

# rings PAGES BYTES: with mem_max PAGES, each ring of a new socket has BYTES bytes
rings() {
	echo "$1" >"$module"
	echo "$1" >"$space"
	check "rings with mem_max $1: $2 bytes" python3 "$pace" ring "$2"
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
check "rings: smaller beside many connections" timeout 60 python3 "$pace" many 40
echo 100000 >"$space"
check "rings: the namespace's limit applies" python3 "$pace" ring 524288
# Rings on RDMA may have three quarters of these pages. The full sizes of all existing rings are
# subtracted from this part, and a new ring gets at most 1/512 of the rest: just enough for 512 KiB
# while hardly any other ring exists.
echo 88000 >"$space"
check "rings: smaller when much is promised" timeout 60 python3 "$pace" many 4
# 60000 pages are enough for all connections that follow, although these have only one peer, and a
# peer gets at most half of the memory that rings on RDMA may have.
echo 60000 | tee "$module" >"$space"
barrier "rings seen"
# From here on, connections share one link while they are few, and a link is closed as soon as its
# last connection leaves it.
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
	check "pacing: the server ended without an error" wait "$server"
	sed 's/^/# /' "$work/serve"
else
	barrier listens
	part "pacing: beside short messages, and only then" 120 talk "$AFR_PEER" $port "$smctl"
	check "the idle link is removed" wait_for 20 no_link
	barrier paced
	echo 16 >/proc/sys/net/afrdma/link_depth
	barrier narrow
	part "many connections: more links" 120 spread "$AFR_PEER" $port "$smctl"
	check "the idle links are removed" wait_for 20 no_link
	part "a crowded link: connections can leave it" 120 crowd "$AFR_PEER" $port "$smctl"
fi
barrier end
rm -rf "$work"
exit 0
