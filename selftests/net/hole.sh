#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: the path MTU of the TCP connection limits the
# packets of a link. If the path loses large packets, the next link uses small ones; if the path
# loses these, too, no new link is tried for a while. Also tests idle links that the peer
# disconnects, the loss of connect requests, and devices that do not answer, see hole.py.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

net=$AFR_SRC/selftests/net
smctl=$AFR_SRC/build/tools/smctl
work=$(mktemp -d)
port=7500

listening() { grep -q listening "$work/serve.$port"; }
no_link() { [ "$("$smctl" -j link)" = "[]" ]; }

# lose BYTES: drop incoming RDMA packets that are longer
lose() {
	nft "add table inet hole; add chain inet hole in { type filter hook input priority 0; }
		add rule inet hole in udp dport 4791 meta length > $1 counter drop"
}
no_loss() { nft 'delete table inet hole'; }

# Accepts one RDMA packet and drops those that follow; removes this filter after it has dropped a
# connect request, which has MAD attribute 0x10, 36 bytes behind the UDP header.
first_only() {
	nft 'add table inet hole; add chain inet hole in { type filter hook input priority 0; }
		add rule inet hole in udp dport 4791 limit rate 1/hour burst 1 packets accept
		add rule inet hole in udp dport 4791 @th,352,16 0x10 counter drop
		add rule inet hole in udp dport 4791 drop'
	wait_for 60 was_lost
	local rc=$?
	no_loss
	return $rc
}
was_lost() { nft list table inet hole | grep 'counter packets' | grep -qv 'packets 0 '; }

# part NAME WHAT [MTU]: wait until neither guest has a link, then run "hole.py WHAT" in guest a
# against a server in guest b
part() {
	local name=$1
	shift
	port=$((port + 1))
	wait_for 20 no_link
	barrier "none $port"
	if [ "$AFR_ROLE" = b ]; then
		timeout 100 python3 "$net/pace.py" serve $port >"$work/serve.$port" 2>&1 &
		server=$!
		wait_for 20 listening
		barrier "listens $port"
		check "$name: the server ended without an error" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		barrier "listens $port"
		what=$1
		shift
		check "$name" timeout 90 python3 "$net/hole.py" "$what" "$AFR_PEER" $port \
			"$smctl" "$@" >"$work/out" 2>&1
		sed 's/^/# /' "$work/out"
	fi
	barrier "over $port"
}

[ "$AFR_RDMA" = rxe ] || exit 0		# on iWARP, TCP handles lost packets
mtu=$(cat /sys/class/net/eth0/mtu)
barrier begin
echo 0 >/proc/sys/net/afrdma/link_linger_ms
[ "$AFR_ROLE" = b ] || echo 10000 >/proc/sys/net/afrdma/link_linger_ms
part "idle links that the peer disconnects are replaced" brief
echo 0 >/proc/sys/net/afrdma/link_linger_ms
[ "$AFR_ROLE" = b ] || ip route replace "$AFR_PEER/32" dev eth0 mtu 1500
[ "$AFR_ROLE" = b ] || echo 4000 >/proc/sys/net/afrdma/link_timeout_ms
for buf in snd rcv; do cp /proc/sys/net/afrdma/${buf}buf "$work"; done
echo 16384 | tee /proc/sys/net/afrdma/{snd,rcv}buf >/dev/null
part "hundreds of connections that wait for a silent device do not delay TCP" crowd
for buf in snd rcv; do cat "$work/${buf}buf" >/proc/sys/net/afrdma/${buf}buf; done
if [ "$AFR_ROLE" = b ]; then
	first_only &
	filter=$!
fi
part "repeated connect requests create one link" again
[ "$AFR_ROLE" = a ] || check "the second request was dropped" wait "$filter"
part "route with a small MTU: small packets" route 1024
[ "$AFR_ROLE" = b ] || ip route del "$AFR_PEER/32"
if [ "$mtu" -gt 5000 ]; then
	part "route with a large MTU: large packets" route 4096
	[ "$AFR_ROLE" = a ] || lose 1500
	part "large packets are lost: on RDMA with small ones" large
	[ "$AFR_ROLE" = a ] || no_loss
fi
barrier large
[ "$AFR_ROLE" = a ] || lose 400
part "all but the smallest packets are lost: on TCP for LINK_SHORT" small
[ "$AFR_ROLE" = a ] || no_loss
barrier end
rm -rf "$work"
exit 0
