#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: what a connection lives on
# must be able to die. The device under a stream, at either end: the stream goes
# on, on TCP, and not one byte is lost or repeated. The peer's host: an error
# within a bounded time. And the module does not go while a socket lives.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

death=$AFR_SRC/selftests/net/death.py
mib=${DEATH_MIB:-16}
work=$(mktemp -d)

listening() { grep -q listening "$work/$1"; }

serve() {
	timeout 120 python3 "$death" serve "$1" >"$work/serve.$1" 2>&1 &
	server=$!
	wait_for 20 listening "serve.$1"
}

served() {
	wait "$server"
	local rc=$?
	sed 's/^/# /' "$work/serve.$1"
	return $rc
}

new_device() { rdma link add rxe0 type rxe netdev eth0; }

# The device of guest $1 goes away in the middle of a stream from a to b.
device_dies() {
	local who=$1 port=$2
	if [ "$AFR_ROLE" = b ]; then
		serve "$port"
		barrier "listens $port"
		barrier "half $port"
		[ "$who" != b ] || rdma link del rxe0
		check "device of $who deleted: the server has seen it all" served "$port"
	else
		barrier "listens $port"
		timeout 120 python3 "$death" stream "$AFR_PEER" "$port" "$mib" "$work/half" \
			>"$work/stream" 2>&1 &
		local client=$!
		wait_for 60 test -e "$work/half"
		rm -f "$work/half"
		barrier "half $port"
		[ "$who" != a ] || rdma link del rxe0
		check "device of $who deleted: every byte came back once" wait "$client"
		sed 's/^/# /' "$work/stream"
	fi
	barrier "streamed $port"
	[ "$AFR_ROLE" != "$who" ] || check "$who has a device again" new_device
	barrier "device $port"
}

resumed() { smctl stats name resume_tx | grep -qE 'resume_tx +[1-9]'; }
smctl() { "$AFR_SRC/build/tools/smctl" "$@"; }

# b's host is gone, as far as a can tell. Links have no probe of their own yet: how
# soon their retries end is the device's affair, and emulated rxe takes minutes.
host_dies() {
	local port=7102
	if [ "$AFR_ACCEL" = tcg ]; then
		skip "peer's host gone: an error, in time" "no link probe yet, and emulated rxe retries for minutes"
		return
	fi
	if [ "$AFR_ROLE" = b ]; then
		serve $port
		barrier "listens $port"
		barrier "ready $port"
		ip link set eth0 down
		barrier "down $port"
		# a writes nothing into the shared folder before it has given up
		barrier "gave up $port" 180
		kill "$server"
		wait "$server"
		ip link set eth0 up
		wait_for 30 ping -c 1 -W 1 -q "$AFR_PEER" >/dev/null
	else
		barrier "listens $port"
		mkfifo "$work/go"
		timeout 150 python3 "$death" orphaned "$AFR_PEER" $port 100 <"$work/go" >"$work/orphaned" 2>&1 &
		local client=$!
		exec 5>"$work/go"
		wait_for 40 grep -q ready "$work/orphaned"
		barrier "ready $port"
		barrier "down $port"
		echo >&5
		check "peer's host gone: an error, in time" wait "$client"
		exec 5>&-
		sed 's/^/# /' "$work/orphaned"
		barrier "gave up $port"
	fi
	barrier "host $port"
}

refused() { ! rmmod afrdma 2>/dev/null; }

module_stays() {
	mkfifo "$work/hold"
	python3 "$death" hold <"$work/hold" >"$work/held" &
	local holder=$!
	exec 6>"$work/hold"
	wait_for 20 grep -q open "$work/held"
	check "rmmod is refused while a socket lives" refused
	exec 6>&-
	wait "$holder"
}

barrier begin
module_stays
device_dies a 7100
device_dies b 7101
[ "$AFR_ROLE" = b ] || check "a direction was resumed on TCP" resumed
host_dies
barrier end 240
rm -rf "$work"
