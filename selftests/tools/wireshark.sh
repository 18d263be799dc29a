#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by the lab (selftests/lab/run) in both guests. Tests tools/wireshark/afrdma.lua. Guest a
# captures its packets, while guest b makes three connections that negotiate, exchange bytes on TCP,
# move to RDMA, leave it, return and end, and a fourth one to a TCP program. What tshark shows of
# this capture must agree with the counters of both modules. Guest b has tshark read a capture with
# malformed frames, which wireshark_made.py makes.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

tools=$AFR_SRC/selftests/tools
smctl=$AFR_SRC/build/tools/smctl
net=/proc/sys/net/afrdma
work=$(mktemp -d)
port=7500

command -v tshark tcpdump >/dev/null || { skip wireshark "no tshark or no tcpdump"; exit 4; }
[ "$AFR_RDMA" = rxe ] || { skip wireshark "iWARP is not decoded"; exit 4; }

listening() { grep -q listening "$work/serve"; }
captures() { grep -q "listening on" "$work/tcpdump"; }
no_conn() { [ "$("$smctl" -j conn | grep -c '"role": *"client"\|"role": *"server"')" = 0 ]; }

# Rings so small that windows close, and of different sizes, since these determine the units of
# cursors; a keepalive so short that SERVICE is sent.
ring=65536
[ "$AFR_ROLE" = a ] || ring=131072
echo $ring | tee $net/sndbuf >$net/rcvbuf
echo 200 >$net/keepalive_ms

if [ "$AFR_ROLE" = a ]; then
	tcpdump -i eth0 -Z root -s 0 -B 65536 -U -w "$AFR_OUT/wireshark.pcap" 2>"$work/tcpdump" &
	capture=$!
	mkfifo "$work/in"
	python3 "$tools/wireshark.py" serve $port $((port + 1)) \
		<"$work/in" >"$work/serve" 2>&1 &
	server=$!
	exec 5>"$work/in"
	check "it captures and listens" wait_for 20 captures && wait_for 20 listening
	barrier listens
	barrier talked 200
	exec 5>&-
	check "the server ended without an error" wait "$server" || sed 's/^/# /' "$work/serve"
	check "its connections are over" wait_for 30 no_conn
	barrier over
	sleep 1			# until the last packets are in the capture
	kill -INT "$capture"
	wait "$capture"
	sed 's/^/# /' "$work/tcpdump"
	check "no packet is missing in the capture" grep -q "^0 packets dropped" "$work/tcpdump"
	"$smctl" -j stats >"$AFR_SHARED/stats.a"
	barrier counted
	timeout 150 python3 "$tools/wireshark.py" check "$AFR_OUT/wireshark.pcap" \
		"$AFR_SHARED/counters" "$AFR_SHARED/stats.a" "$AFR_SHARED/stats.b" \
		>"$work/check" 2>&1
else
	barrier listens
	check_within 150 "connections" python3 "$tools/wireshark.py" talk "$AFR_PEER" "$AFR_PEER6" \
		$port $((port + 1)) "$smctl" "$AFR_SHARED/counters"
	barrier talked 200
	check "its connections are over" wait_for 30 no_conn
	barrier over
	"$smctl" -j stats >"$AFR_SHARED/stats.b"
	barrier counted
	timeout 150 python3 "$tools/wireshark_made.py" >"$work/check" 2>&1
fi
check "tshark: all was compared" [ $? = 0 ]
sed -n 's/^\(\(not \)*ok\) [0-9]* /\1 - /p' "$work/check" | tee -a "$AFR_OUT/ktap"
grep -v "ok [0-9]* \|^KTAP\|^1\.\." "$work/check" | sed 's/^\(# \)*/# /'
barrier end 200
rm -rf "$work"
exit 0
