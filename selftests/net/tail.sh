#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: a lost packet that no other packet
# follows is retransmitted before the timeout of the queue pair.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

net=$AFR_SRC/selftests/net
work=$(mktemp -d)
port=7400

listening() { grep -q listening "$work/serve"; }

[ "$AFR_RDMA" = rxe ] || exit 0		# on iWARP, TCP handles lost packets
barrier begin
if [ "$AFR_ROLE" = b ]; then
	timeout 100 python3 "$net/pace.py" serve $port >"$work/serve" 2>&1 &
	server=$!
	wait_for 20 listening
	barrier listens
	check "tail: the server ended without an error" wait "$server"
	sed 's/^/# /' "$work/serve"
	"$AFR_SRC/build/tools/smctl" stats | grep -E 'link_(probe|tail|died)' | sed 's/^/# /'
else
	barrier listens
	check "tail: a lost last packet is retransmitted soon" \
		timeout 90 python3 "$net/tail.py" talk "$AFR_PEER" $port "${1:-50}" \
			>"$work/out" 2>&1
	sed 's/^/# /' "$work/out"
fi
barrier end
rm -rf "$work"
exit 0
