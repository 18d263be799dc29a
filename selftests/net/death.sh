#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: loss of the device, path or host that a
# connection uses. The stream continues on TCP, and no byte is lost or repeated, when the RDMA
# device of either end is deleted, when RDMA packets are dropped but those of the stream's TCP
# connection are not, and when smctl drains the links or moves the connection. When the peer's host
# becomes unreachable, the connection fails within a bounded time. The module cannot be unloaded
# while a socket is open.
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

# verdict NAME PID FILE: wait for process PID, whose output is in FILE, and report it as test NAME;
# if it failed, the last line of FILE says why
verdict() {
	if wait "$2"; then ok "$1"; else not_ok "$1" "$(tail -n 1 "$3")"; fi
	sed 's/^/# /' "$3"
}

delete_device() { rdma link del "$AFR_DEV"; }
new_device() { rdma link add "$AFR_DEV" type "$AFR_RDMA" netdev eth0; }
# Drops RDMA packets, but no packets of the TCP connections of the tests. iWARP is carried by TCP,
# on ports that the tests do not use.
block_rdma() {
	local what='udp dport 4791'
	[ "$AFR_RDMA" != siw ] || what='tcp dport != 7100-7199 tcp sport != 7100-7199'
	nft "add table inet death; add chain inet death in { type filter hook input priority 0; }
		add rule inet death in $what drop"
}
unblock_rdma() { nft 'delete table inet death'; }

ids() {
	smctl -j "$@" |
		python3 -c 'import json, sys; print(*[x["id"] for x in json.load(sys.stdin)])'
}
drain_links() { for id in $(ids link); do smctl link drain "$id"; done; }
move_to_tcp() { for id in $(ids conn path rdma); do smctl conn move "$id" tcp; done; }

ended() { ! kill -0 "$1" 2>/dev/null; }

# show_stall PID: if the process does not end within 40 s, print the state of connections, links,
# TCP and the interface, to show which of them stalls
show_stall() {
	wait_for 40 ended "$1" && return
	smctl conn
	smctl link
	ss -tine
	ip -s link show eth0
	grep -i virtio /proc/interrupts
}

# stream_survives WHAT GUEST FAULT UNDO PORT: while a stream from a to b is on RDMA, GUEST
# calls FAULT, and UNDO after the end of the stream.
stream_survives() {
	local what=$1 guest=$2 fault=$3 undo=$4 port=$5
	if [ "$AFR_ROLE" = b ]; then
		serve "$port"
		barrier "listens $port"
		barrier "on RDMA $port"
		[ "$guest" != b ] || "$fault"
		barrier "fault $port"
		show_stall "$server" >"$work/stall"
		verdict "$what: the server ended without an error" "$server" "$work/serve.$port"
	else
		barrier "listens $port"
		timeout 120 python3 "$death" stream "$AFR_PEER" "$port" "$mib" "$work/mark" \
			>"$work/stream" 2>&1 &
		local client=$!
		wait_for 60 test -e "$work/mark"
		barrier "on RDMA $port"
		[ "$guest" != a ] || "$fault"
		barrier "fault $port"
		touch "$work/mark.done"
		show_stall "$client" >"$work/stall"
		verdict "$what: every byte came back once" "$client" "$work/stream"
		rm -f "$work/mark" "$work/mark.done"
	fi
	sed 's/^/# /' "$work/stall"
	barrier "streamed $port"
	[ "$AFR_ROLE" != "$guest" ] || check "$what: undone" "$undo"
	barrier "device $port"
}

resumed() { smctl stats name resume_tx | grep -qE 'resume_tx +[1-9]'; }
smctl() { "$AFR_SRC/build/tools/smctl" "$@"; }

# b becomes unreachable: keepalive declares the link dead, guest a sends RESUME on TCP, and as b
# does not acknowledge it, TCP_USER_TIMEOUT ends the connection.
host_dies() {
	local port=7102
	if [ "$AFR_ROLE" = b ]; then
		serve $port
		barrier "listens $port"
		barrier "ready $port"
		cut_network
		barrier "down $port"
		# a arrives at this barrier only after its connection has failed: wait longer
		barrier "gave up $port" 180
		kill "$server"
		wait "$server"
		mend_network
		wait_for 30 ping -c 1 -W 1 -q "$AFR_PEER" >/dev/null
	else
		barrier "listens $port"
		mkfifo "$work/go"
		timeout 150 python3 "$death" orphaned "$AFR_PEER" $port 100 \
			<"$work/go" >"$work/orphaned" 2>&1 &
		local client=$!
		exec 5>"$work/go"
		wait_for 40 grep -q ready "$work/orphaned"
		barrier "ready $port"
		barrier "down $port"
		echo >&5
		verdict "peer's host unreachable: an error in time" "$client" "$work/orphaned"
		exec 5>&-
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
	check "rmmod is refused while a socket is open" refused
	exec 6>&-
	wait "$holder"
}

barrier begin
module_stays
stream_survives "device of a deleted" a delete_device new_device 7100
stream_survives "device of b deleted" b delete_device new_device 7101
stream_survives "links drained" a drain_links true 7104
stream_survives "connection moved to TCP" b move_to_tcp true 7105
sysctl -qw net.afrdma.link_timeout_ms=2000
stream_survives "RDMA blocked" b block_rdma unblock_rdma 7103
[ "$AFR_ROLE" = b ] || check "a direction was resumed on TCP" resumed
host_dies
barrier end 240
rm -rf "$work"
