#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: a connection that began without an RDMA device at one
# end moves to RDMA within seconds of the device's coming, whatever the back-off of
# the client is, which is a minute here. The bytes are counted. And a port that goes
# down while a link is made is named as the reason.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

death=$AFR_SRC/selftests/net/death.py
work=$(mktemp -d)
port=7400

smctl() { "$AFR_SRC/build/tools/smctl" "$@"; }
listening() { grep -q listening "$work/serve.$port"; }
serve() {
	timeout 60 python3 "$death" serve $port >"$work/serve.$port" 2>&1 &
	pid=$!
	wait_for 20 listening
}
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
		serve
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

no_link() { [ "$(smctl -j link)" = "[]" ]; }
is_upgrading() { smctl conn mode framed role client reason UPGRADING >/dev/null 2>&1; }

# The peer does not answer by RDMA, and while a waits for it a's port goes down.
port_goes() {
	port=$((port + 1))
	check "no link is left" wait_for 20 no_link
	barrier "no link"
	if [ "$AFR_ROLE" = b ]; then
		nft "add table inet arrival; add chain inet arrival in { type filter hook input priority 0; }
			add rule inet arrival in udp dport 4791 drop; add rule inet arrival in tcp dport 4791 drop"
		serve
		barrier "listens port"
		barrier "no port"
		nft 'delete table inet arrival'
		barrier "answers"
	else
		barrier "listens port"
		timeout 60 python3 "$death" late "$AFR_PEER" $port "$1" "$work/tcp.port" \
			>"$work/late.port" 2>&1 &
		pid=$!
		wait_for 20 is_upgrading
		ip link set eth0 down
		sleep 0.5
		barrier "no port"
		barrier "answers"
		ip link set eth0 up
		check "the port goes down: on TCP, and it is the reason" \
			wait_for 20 test -e "$work/tcp.port"
	fi
	check "the port is up: the connection moves to RDMA" wait "$pid"
	[ "$AFR_ROLE" = b ] || sed 's/^/# /' "$work/late.port"
}

reason() { smctl -j reason name "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["number"])'; }

retry=$(cat /proc/sys/net/afrdma/attach_retry_ms)
echo 60000 >/proc/sys/net/afrdma/attach_retry_ms
barrier begin
arrives b "$(reason PEER_NO_SERVICE)" NO_ROUTE
arrives a "$(reason NO_ROUTE)" CLIENT_BEGINS
echo 5000 >/proc/sys/net/afrdma/attach_retry_ms
linger=$(cat /proc/sys/net/afrdma/link_linger_ms)
echo 0 >/proc/sys/net/afrdma/link_linger_ms
port_goes "$(reason LINK_PORT_DOWN)"
barrier end
echo "$linger" >/proc/sys/net/afrdma/link_linger_ms
echo "$retry" >/proc/sys/net/afrdma/attach_retry_ms
rm -rf "$work"
exit 0
