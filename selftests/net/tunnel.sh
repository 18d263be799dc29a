#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: RDMA would bypass a tunnel, so a connection leaves RDMA when
# its route leads into a tunnel, and returns when the route is deleted. No byte is lost.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

net=$AFR_SRC/selftests/net
work=$(mktemp -d)
port=7420

listening() { grep -q listening "$work/serve"; }
carries() { grep -q carries "$work/carry"; }
is_there() { [ -e "$work/$1" ]; }

# The connection uses IPv4 and the tunnel IPv6, so the tunnel is not routed into itself.
barrier begin
retry=$(cat /proc/sys/net/afrdma/attach_retry_ms)
echo 500 >/proc/sys/net/afrdma/attach_retry_ms
python3 "$net/tunnel.py" carry "$AFR_PEER6" >"$work/carry" 2>&1 &
carrier=$!
check "the tunnel is created" wait_for 20 carries
ip link set tun0 mtu 1300 up
barrier "tunnel there"
if [ "$AFR_ROLE" = b ]; then
	timeout 100 python3 "$net/death.py" serve $port >"$work/serve" 2>&1 &
	server=$!
	wait_for 20 listening
	barrier listens
	barrier "by RDMA"
	ip route add "$AFR_PEER/32" dev tun0 src "$AFR_ME"
	barrier "in the tunnel" 100
	ip route del "$AFR_PEER/32" dev tun0
	barrier "out of it" 100
	check "the server ended without an error" wait "$server"
	sed 's/^/# /' "$work/serve"
else
	barrier listens
	timeout 100 python3 "$net/tunnel.py" talk "$AFR_PEER" $port "$work/in" "$work/out" \
		>"$work/talk" 2>&1 &
	client=$!
	check "on RDMA" wait_for 30 is_there in
	barrier "by RDMA"
	ip route add "$AFR_PEER/32" dev tun0 src "$AFR_ME"
	touch "$work/in.done"
	check "routed into a tunnel: on TCP for that reason" wait_for 30 is_there out
	ip route del "$AFR_PEER/32" dev tun0
	barrier "in the tunnel" 100
	check "routed past the tunnel again: on RDMA" wait "$client"
	sed 's/^/# /' "$work/talk"
	barrier "out of it" 100
fi
kill "$carrier"
wait "$carrier"
echo "$retry" >/proc/sys/net/afrdma/attach_retry_ms
barrier end
rm -rf "$work"
exit 0
