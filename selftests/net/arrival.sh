#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: a connection that began without an RDMA device at one
# end moves to RDMA within seconds of the device's coming, whatever the back-off of
# the client is, which is a minute here. The bytes are counted.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

death=$AFR_SRC/selftests/net/death.py
work=$(mktemp -d)
port=7400

smctl() { "$AFR_SRC/build/tools/smctl" "$@"; }
listening() { grep -q listening "$work/serve.$port"; }
has_reason() { smctl conn mode framed role server reason "$1" >/dev/null 2>&1; }
no_device() { ! rdma link show "$AFR_DEV/1" >/dev/null 2>&1; }

# arrives WHERE CLIENT SERVER: without a device in guest WHERE a connection from a to b is
# on TCP, for reasons CLIENT and SERVER; it is on RDMA when the device is there again.
arrives() {
	local where=$1 client=$2 server=$3
	port=$((port + 1))
	if [ "$AFR_ROLE" = "$where" ]; then
		rdma link delete "$AFR_DEV"
		check "$where: no device" wait_for 20 no_device
	fi
	barrier "without $where"
	if [ "$AFR_ROLE" = b ]; then
		timeout 60 python3 "$death" serve $port >"$work/serve.$port" 2>&1 &
		pid=$!
		wait_for 20 listening
		barrier "listens $where"
	else
		barrier "listens $where"
		timeout 60 python3 "$death" late "$AFR_PEER" $port "$client" "$work/tcp.$where" \
			>"$work/late.$where" 2>&1 &
		pid=$!
		check "$where without device: on TCP, $client" \
			wait_for 30 test -e "$work/tcp.$where"
	fi
	barrier "on TCP $where"
	[ "$AFR_ROLE" = a ] || check "$where without device: the server says $server" has_reason "$server"
	barrier "told $where"
	[ "$AFR_ROLE" != "$where" ] || rdma link add "$AFR_DEV" type "$AFR_RDMA" netdev eth0
	check "$where has a device: the connection moves to RDMA" wait "$pid"
	[ "$AFR_ROLE" = b ] || sed 's/^/# /' "$work/late.$where"
	barrier "over $where"
}

reason() { smctl -j reason name "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["number"])'; }

retry=$(cat /proc/sys/net/afrdma/attach_retry_ms)
echo 60000 >/proc/sys/net/afrdma/attach_retry_ms
barrier begin
arrives b "$(reason PEER_NO_SERVICE)" NO_ROUTE
arrives a "$(reason NO_ROUTE)" CLIENT_BEGINS
barrier end
echo "$retry" >/proc/sys/net/afrdma/attach_retry_ms
rm -rf "$work"
exit 0
