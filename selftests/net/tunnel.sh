#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: RDMA would bypass a tunnel, so a connection leaves RDMA when its
# route leads into a tunnel, and returns to RDMA when the route no longer does. No byte is lost.
# enter4() leads the connection into the tunnel: it adds a route into the tunnel. prepare6() adds a
# route into the tunnel and a more specific one past it; enter6() deletes the specific one.
# leave4() and leave6() lead the connection past the tunnel again: they delete the route into it.
# shellcheck disable=SC2317 # functions are called by "wait_for", or by names such as "enter$v"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

net=$AFR_SRC/selftests/net
work=$(mktemp -d)

listening() { grep -q listening "$work/serve"; }
carries() { grep -q carries "$work/carry"; }
is_there() { [ -e "$work/$1" ]; }

prepare4() { :; }
enter4() { ip route add "$AFR_PEER/32" dev tun0 src "$AFR_ME"; }
leave4() { ip route del "$AFR_PEER/32" dev tun0; }

prepare6() {
	ip -6 route add "$AFR_PEER6/128" dev eth0 src "$AFR_ME6"
	ip -6 route add "$AFR_PEER6/126" dev tun0 src "$AFR_ME6"
}
enter6() { ip -6 route del "$AFR_PEER6/128" dev eth0; }
leave6() { ip -6 route del "$AFR_PEER6/126" dev tun0; }

# through VERSION PEER PORT CARRIER: test a connection by IP version VERSION, from guest a to PORT
# of guest b. PEER is the other guest's address of this IP version. The UDP packets of the tunnel
# go to CARRIER, the other guest's address of the other IP version, so that they are not routed
# into the tunnel themselves.
through() {
	local v=$1 peer=$2 port=$3 carrier server client
	rm -f "$work"/*
	barrier "IPv$v begins"
	python3 "$net/tunnel.py" carry "$4" >"$work/carry" 2>&1 &
	carrier=$!
	check "IPv$v: the tunnel is created" wait_for 20 carries
	ip link set tun0 mtu 1300 up
	"prepare$v"
	barrier "IPv$v: tunnel there"
	if [ "$AFR_ROLE" = b ]; then
		timeout 100 python3 "$net/tunnel.py" serve "$peer" "$port" >"$work/serve" 2>&1 &
		server=$!
		wait_for 20 listening
		barrier "IPv$v: listens"
		barrier "IPv$v: by RDMA"
		"enter$v"
		barrier "IPv$v: in the tunnel" 100
		"leave$v"
		barrier "IPv$v: out of it" 100
		check "IPv$v: the server ended without an error" wait "$server"
		sed 's/^/# /' "$work/serve"
	else
		barrier "IPv$v: listens"
		timeout 100 python3 "$net/tunnel.py" talk "$peer" "$port" "$work/in" "$work/out" \
			>"$work/talk" 2>&1 &
		client=$!
		check "IPv$v: on RDMA" wait_for 30 is_there in
		barrier "IPv$v: by RDMA"
		"enter$v"
		touch "$work/in.done"
		check "IPv$v: routed into a tunnel: leaves RDMA in time" wait_for 30 is_there out
		"leave$v"
		barrier "IPv$v: in the tunnel" 100
		check "IPv$v: routed past the tunnel again: on RDMA" wait "$client"
		sed 's/^/# /' "$work/talk"
		barrier "IPv$v: out of it" 100
	fi
	kill "$carrier"
	wait "$carrier"
}

retry=$(cat /proc/sys/net/afrdma/attach_retry_ms)
echo 500 >/proc/sys/net/afrdma/attach_retry_ms
through 4 "$AFR_PEER" 7420 "$AFR_PEER6"
through 6 "$AFR_PEER6" 7421 "$AFR_PEER"
echo "$retry" >/proc/sys/net/afrdma/attach_retry_ms
barrier end
rm -rf "$work"
exit 0
