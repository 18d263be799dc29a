#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: a connection that was opened while one end had no RDMA device must
# move to RDMA within seconds after the device was added, although attach_retry_ms is a minute.
# AFRDMA_INFO must show that RDMA then carries its bytes. In the last part attach_retry_ms is 5 s:
# when the RDMA port goes down while a link is being connected, the connection must stay on TCP
# for the reason LINK_PORT_DOWN, and move to RDMA after the port is up again.
# shellcheck disable=SC2317 # functions are called by "wait_for" and "check"
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

# arrives WHERE CLIENT SERVER: while guest WHERE has no RDMA device, a connection from a to b
# is on TCP, with reason CLIENT (a number) at a and reason SERVER (a name) at b; it moves to
# RDMA when the device is added again.
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
		check "$where without device: on TCP for reason $client" \
			wait_for 30 test -e "$work/tcp.$where"
	fi
	barrier "on TCP $where"
	[ "$AFR_ROLE" = a ] ||
		check "$where without device: the server reports $server" has_reason "$server"
	barrier "reported $where"
	[ "$AFR_ROLE" != "$where" ] || rdma link add "$AFR_DEV" type "$AFR_RDMA" netdev eth0
	check "$where has its device again: the connection moves to RDMA" wait "$pid"
	[ "$AFR_ROLE" = b ] || sed 's/^/# /' "$work/late.$where"
	barrier "over $where"
}

no_link() { [ "$(smctl -j link)" = "[]" ]; }
is_upgrading() { smctl conn mode framed role client reason UPGRADING >/dev/null 2>&1; }

# port_down REASON: a connection from a to b is about to move to RDMA, but b drops all RoCE packets
# that arrive. While a waits for b's answer to the connect request of a link, a's RDMA port goes
# down. The connection must then be on TCP for REASON (a number), and move to RDMA after the port
# is up again.
port_down() {
	port=$((port + 1))
	check "no link is left" wait_for 20 no_link
	barrier "no link"
	if [ "$AFR_ROLE" = b ]; then
		nft "add table inet arrival
			add chain inet arrival in { type filter hook input priority 0; }
			add rule inet arrival in udp dport 4791 drop
			add rule inet arrival in tcp dport 4791 drop"
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
		check "the port goes down: on TCP for that reason" \
			wait_for 20 test -e "$work/tcp.port"
	fi
	check "the port is up again: the connection moves to RDMA" wait "$pid"
	[ "$AFR_ROLE" = b ] || sed 's/^/# /' "$work/late.port"
}

reason() {
	smctl -j reason name "$1" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["number"])'
}

retry=$(cat /proc/sys/net/afrdma/attach_retry_ms)
echo 60000 >/proc/sys/net/afrdma/attach_retry_ms
barrier begin
arrives b "$(reason PEER_NO_SERVICE)" NO_ROUTE
arrives a "$(reason NO_ROUTE)" CLIENT_BEGINS
echo 5000 >/proc/sys/net/afrdma/attach_retry_ms
linger=$(cat /proc/sys/net/afrdma/link_linger_ms)
echo 0 >/proc/sys/net/afrdma/link_linger_ms
port_down "$(reason LINK_PORT_DOWN)"
barrier end
echo "$linger" >/proc/sys/net/afrdma/link_linger_ms
echo "$retry" >/proc/sys/net/afrdma/attach_retry_ms
rm -rf "$work"
exit 0
