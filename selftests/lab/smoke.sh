#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A test of the guests themselves, to be run by "run". It does not need afrdma.ko.
set -uo pipefail
. "$AFR_LAB/guest-lib.sh"

check "programs of the host" python3 -c 'print("hello")'
check "a place to write" dd if=/dev/urandom of="$AFR_OUT/file" bs=64k count=4 status=none
check "tmpfs" touch /tmp/x /run/x /dev/shm/x
[ "$AFR_GUESTS" = 2 ] || exit 0

check "ping IPv4" ping -c 2 -W 5 -q "$AFR_PEER"
check "ping IPv6" ping -c 2 -W 5 -q "$AFR_PEER6"
check "ping of a full frame" ping -c 1 -W 5 -q -M "do" -s $((AFR_MTU - 28)) "$AFR_PEER"

put hello "from $AFR_ROLE"
if [ "$(get hello)" = "from $AFR_OTHER" ]; then ok "put and get"; else not_ok "put and get"; fi
barrier ready

has_qp() { rdma res show qp link "$AFR_DEV" | grep -q "comm $1"; }
port_open() { rdma res show cm_id | grep -q 'state LISTEN'; }

if [ "$AFR_ROLE" = a ]; then
	rping -s -a "$AFR_ME" -C 200 -S 4000 -v >"$AFR_OUT/rping" 2>&1 &
	server=$!
	check "rping listens" wait_for 30 port_open
	barrier listening
	check "rping server" wait $server
else
	barrier listening
	rping -c -a "$AFR_PEER" -C 200 -S 4000 -v >"$AFR_OUT/rping" 2>&1 &
	client=$!
	check "rdma res shows the QP" wait_for 30 has_qp rping
	check "rping client" wait $client
fi
barrier rping

# perftest needs the clock rate of the CPU, which UML does not report.
if [ "$AFR_ACCEL" = uml ]; then
	skip "ib_write_bw" "perftest does not work in UML"
	exit 0
fi
# shellcheck disable=SC2120 # the client passes an argument by "check", unseen by shellcheck
bw() {
	ib_write_bw -d "$AFR_DEV" -x "$(gid4)" -m 4096 -s 65536 -n 200 -F "$@" \
		>"$AFR_OUT/ib_write_bw" 2>&1
}
# Print the index of the GID that is an IPv4-mapped address.
gid4() {
	grep -ln ffff: /sys/class/infiniband/"$AFR_DEV"/ports/1/gids/* | head -n 1 |
		xargs basename
}
tcp_open() { ss -tln | grep -q ":18515 "; }

if [ "$AFR_ROLE" = a ]; then
	bw &
	server=$!
	check "ib_write_bw listens" wait_for 30 tcp_open
	barrier bw
	check "ib_write_bw server" wait $server
else
	barrier bw
	check "ib_write_bw client" bw "$AFR_PEER"
	say "$(tail -n 3 "$AFR_OUT/ib_write_bw")"
fi
