#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by selftests/lab/run in both guests: runs the programs of tools/examples between the two. Each
# program prints how many bytes it has sent and received by RDMA. While only one client runs, the
# module in its guest must count the same number of bytes sent by RDMA.
# shellcheck disable=SC2317 # "check" calls functions
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
bin=$AFR_SRC/build/examples
blocks=200
bytes=$((blocks * 65536))

[ -n "$AFR_MODULE" ] || { skip "examples" "no afrdma.ko"; exit 4; }
[ -x "$bin/client" ] || { skip "examples" "not built: see stage_uml_back"; exit 4; }

counter() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }
listens() { ss -Htln "sport = :$1" | grep -q .; }

# all_bytes FILE: does it contain one line of report() (tools/examples/example.h), which says that
# both directions are complete, that RDMA has carried more than half of each, and that the reason
# is 0?
all_bytes() {
	local bytes_by='by RDMA \([0-9]*\), by TCP \([0-9]*\);'
	sed -n "s/.*sent $bytes_by received $bytes_by reason 0\$/\1 \2 \3 \4/p" "$1" |
		awk -v bytes=$bytes '
		$1 + $2 == bytes && $3 + $4 == bytes && $1 > bytes / 2 && $3 > bytes / 2 { good++ }
		END { exit good != 1 || NR != 1 }'
}

# counted FILE: has the module counted as many bytes sent by RDMA as the program prints?
counted() {
	local rdma
	rdma=$(($(counter tx_bytes_rdma) - before))
	[ $rdma -gt $((bytes / 2)) ] && grep -q "sent by RDMA $rdma," "$1"
}

# serve PROGRAM PORT: run a server until the client has ended
serve() {
	"$bin/$1" "$2" >"/tmp/$1.$2" 2>&1 &
	check "$1 $2: listens" wait_for 30 listens "$2"
	barrier "$2 listens"
	barrier "$2 served"
	check "$1 $2: all bytes, by RDMA" wait_for 20 all_bytes "/tmp/$1.$2" || cat "/tmp/$1.$2"
	kill $!
	wait $! 2>/dev/null
}

# ask PROGRAM ADDRESS PORT: run a client, and check the byte counts that it prints
ask() {
	local before
	barrier "$3 listens"
	before=$(counter tx_bytes_rdma)
	check "$1 $3: ends with 0" timeout 60 "$bin/$1" "$2" "$3" $blocks >"/tmp/$1.$3" ||
		cat "/tmp/$1.$3"
	check "$1 $3: all bytes, by RDMA" all_bytes "/tmp/$1.$3" || cat "/tmp/$1.$3"
	check "$1 $3: the module counts the same" wait_for 10 counted "/tmp/$1.$3"
	barrier "$3 served"
}

# until_linked PID: stop the server PID most of the time, so that no client ends before its
# connection is attached to a link; return when 30 connections are attached, or after a minute.
until_linked() {
	local before end=$((SECONDS + 60))
	before=$(counter upgrade_done)
	barrier many
	while [ $(($(counter upgrade_done) - before)) -lt 30 ] && [ $SECONDS -lt $end ] &&
	      kill -STOP "$1"; do
		sleep 0.1
		kill -CONT "$1"
		sleep 0.02
	done
	kill -CONT "$1"
}

# Run 30 clients at once; the server serves all of them in one thread.
many() {
	local pids=() pid
	for _ in $(seq 30); do
		timeout 100 "$bin/client" "$AFR_PEER" 7205 100 >>/tmp/many &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || return; done
	[ "$(grep -c 'sent by RDMA [1-9]' /tmp/many)" -eq 30 ]
}

if [ "$AFR_ROLE" = b ]; then
	serve server 7201
	serve dual_server 7202
	check "dual_server prints an IPv4 client as a mapped address" \
		grep -q "^from ::ffff:$AFR_PEER: " \
		/tmp/dual_server.7202
	serve dual_server 7203
	serve epoll_server 7204
	sysctl -qw net.afrdma.upgrade_bytes=0
	"$bin/epoll_server" 7205 >/tmp/many 2>&1 &
	check "many: listens" wait_for 30 listens 7205
	until_linked $!
	barrier "many served" 150
	thirty() { [ "$(wc -l </tmp/many)" -eq 30 ]; }
	check "many: 30 ends" wait_for 20 thirty
	kill $!
	wait $! 2>/dev/null
else
	ask client "$AFR_PEER" 7201
	ask dual_client "$AFR_PEER" 7202
	ask dual_client "$AFR_PEER6" 7203
	ask client "$AFR_PEER" 7204
	sysctl -qw net.afrdma.upgrade_bytes=0
	barrier many
	check "many: 30 clients, each by RDMA" many || cat /tmp/many
	barrier "many served" 150
fi
barrier end
