#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by selftests/lab/run in both guests. Tests smctl and the preload library with the module.
# First a program in each guest opens many connections to itself, and smctl must list them. Then an
# unmodified program transfers bytes over RDMA between the guests; smctl must show this at both
# ends, move the connection off RDMA and back, and drain its link. Last, one end of the program
# runs on TCP. The trace events of the connections are checked, too.
# shellcheck disable=SC2317 # "check" calls functions
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
program=$AFR_SRC/selftests/tools/program.py
port=7000

[ -n "$AFR_MODULE" ] || { skip "smctl" "no afrdma.ko"; exit 4; }
[ -x "$smctl" ] || { skip "smctl" "not built: make -C tools"; exit 4; }

# json WORDS... -- EXPRESSION: is the Python expression true for the list x that smctl WORDS prints?
json() {
	local words=()
	while [ "$1" != -- ]; do words+=("$1"); shift; done
	"$smctl" -j "${words[@]}" 2>"$AFR_OUT/smctl.err" |
		python3 -c 'import json, sys
x = json.load(sys.stdin)
sys.exit(not eval("(" + sys.argv[1] + ")"))' "$2"
}

# start NAME WORDS...: run program.py under smctl run, with its input open until "stop" closes it
start() {
	local name=$1
	shift
	mkfifo "/tmp/$name.in"
	"$smctl" run -- python3 "$program" "$@" <"/tmp/$name.in" >"/tmp/$name.out" 2>&1 &
	program_pid=$!
	exec 5>"/tmp/$name.in"
}
stop() {
	exec 5>&-
	wait "$program_pid"
}
is_ready() { grep -q ready "/tmp/$1.out"; }

# Trace all connections from here on.
trace=/sys/kernel/tracing/instances/tools
mkdir $trace
for event in negotiated upgrade; do echo 1 >$trace/events/afrdma/afrdma_conn_$event/enable; done
traced() { grep -q "afrdma_conn_$1: id=[0-9]* $2" $trace/trace; }

check "info" json info -- 'x[0]["wire_version"] == 1 and len(x[0]["instance"]) == 32'
check "info has the settings" json info -- 'x[0]["settings"]["enabled"] == 1'
check "the device" json dev name "$AFR_DEV" -- 'len(x) == 1 and x[0]["usable"]
	and x[0].get("iwarp", False) == ("'"$AFR_RDMA"'" == "siw")'
check "reasons" json reasons number 1 -- 'x[0]["name"] == "PEER_PLAIN" and len(x[0]["text"]) > 20
	and "smctl run" in x[0]["remedy"]'
check "counters" json stats -- 'len(x) > 30 and [s["id"] for s in x] == list(range(len(x)))'
check "an ordinary user may read" \
	sh -c "setpriv --reuid 65534 --clear-groups $smctl stats >/dev/null"

# Many more connections than fit into one buffer of a dump.
start many idle 127.0.0.1 $port 150
check "many connections" wait_for 60 is_ready many
check "a long dump contains each connection once, in order" json conn sport $port -- \
	'len(x) == 151 and [c["id"] for c in x] == sorted({c["id"] for c in x})'
check "info counts the sockets" json info -- 'x[0]["sockets"] == 301'
check "owner and inode" json conn role listener -- \
	'x[0]["uid"] == 0 and any(__import__("os").path.samefile(f, f"/proc/'$program_pid'/fd/{n}")
	 for n in range(3, 9) for f in [f"/proc/'$program_pid'/fd/{n}"]
	 if __import__("os").readlink(f) == "socket:[%d]" % x[0]["inode"])'
check "in a namespace without interfaces no device is usable" sh -c "unshare -n $smctl -j dev |
	python3 -c 'import json, sys
x = json.load(sys.stdin)
sys.exit(not x or any(d[\"usable\"] or d[\"reason\"] != \"NETNS\" for d in x))'"
check "another namespace shows no connections" sh -c "unshare -n $smctl -j conn | grep -qx '\[\]'"
check "the program with many connections ends" stop

barrier begin
if [ "$AFR_ROLE" = a ]; then
	start pair listen "$AFR_ME" $port "$AFR_SHARED/listens"
else
	check "the peer listens" afr_wait_file "$AFR_SHARED/listens" 60
	start pair connect "$AFR_PEER" $port
fi
check "bytes arrive in both directions" wait_for 60 is_ready pair || cat /tmp/pair.out
barrier arrived

role=client
[ "$AFR_ROLE" = b ] || role=server
check "one connection with this role" json conn role $role -- 'len(x) == 1'
check "framed, on RDMA, no reason" json conn role $role -- \
	'x[0]["mode"] == "framed" and x[0]["tx_path"] == x[0]["rx_path"] == "rdma"
	 and "reason" not in x[0]'
check "every byte is counted" json conn role $role -- \
	'x[0]["tx_bytes_tcp"] + x[0]["tx_bytes_rdma"] == 128 * 65536
	 and x[0]["rx_bytes_tcp"] + x[0]["rx_bytes_rdma"] == 128 * 65536
	 and min(x[0]["tx_bytes_rdma"], x[0]["rx_bytes_rdma"]) > 1 << 20'
# first KEY: print the value of KEY in the first object of the JSON input
first() { python3 -c 'import json, sys; print(json.load(sys.stdin)[0][sys.argv[1]])' "$1"; }
link=$("$smctl" -j conn role $role | first link)
check "its link is up and used" json link id "$link" -- \
	'x[0]["state"] == "up" and x[0]["users"] == 1 and x[0]["tx_bytes"] > 1 << 20'
qpn=$("$smctl" -j link id "$link" | first qpn)
check "rdma res shows the queue pair" sh -c "rdma res show qp | grep -q ' lqpn $qpn '"
put link "$link"
if [ "$(get link)" = "$link" ]; then ok "both ends show the same link"; else not_ok "link id"; fi
check "text" sh -c "$smctl conn path rdma | grep -q 'mode framed state established role $role'"
barrier looked

# The administrator moves the connection, from either end, and drains its link.
id=$("$smctl" -j conn role $role | first id)
# on PATH CONDITION: are both directions of the connection on PATH, and does CONDITION hold?
on() { json conn id "$id" -- "x[0]['tx_path'] == x[0]['rx_path'] == '$1' and $2"; }
another_link() { on rdma "x[0]['link'] != $link"; }
for mover in b a; do
	if [ "$AFR_ROLE" = $mover ]; then
		check "$mover: conn move tcp" "$smctl" conn move "$id" tcp
		check "$mover: it is on TCP, with the reason" wait_for 10 \
			on tcp "x[0]['reason'] == 'OPERATOR'"
	fi
	check "moved off RDMA by $mover: on TCP" wait_for 10 on tcp True
	[ "$AFR_ROLE" = $mover ] ||
		check "moved off RDMA by $mover: the reason is the peer's" wait_for 10 \
		on tcp "(x[0]['reason'], x[0]['reason_peer']) == ('OPERATOR', True)"
	barrier "off by $mover"
	[ "$AFR_ROLE" != $mover ] || check "$mover: conn move rdma" "$smctl" conn move "$id" rdma
	[ "$AFR_ROLE" != b ] || check "b: conn move rdma" "$smctl" conn move "$id" rdma
	check "moved by $mover: on RDMA again" wait_for 20 on rdma True
	barrier "on by $mover"
done
link=$("$smctl" -j conn id "$id" | first link)
echo 1 >$trace/events/afrdma/afrdma_link_down/enable
barrier linked
[ "$AFR_ROLE" = a ] || check "link drain" "$smctl" link drain "$link"
check "drained: on another link" wait_for 20 another_link
check "the trace has the link id of smctl" \
	grep -q "afrdma_link_down: id=$link reason=" $trace/trace
check "only root may move connections" \
	sh -c "! setpriv --reuid 65534 --clear-groups $smctl conn move $id tcp 2>/tmp/no &&
	grep -q CAP_NET_ADMIN /tmp/no"
check "an unknown link id" \
	sh -c "! $smctl link drain 1 2>/tmp/no && grep -q 'no link of this id' /tmp/no"
barrier drained
check "the program ends" stop

# A peer without AF_RDMA: the same program without smctl run, at one end.
barrier plain
if [ "$AFR_ROLE" = a ]; then
	mkfifo /tmp/plain.in
	python3 "$program" listen "$AFR_ME" $((port + 1)) "$AFR_SHARED/plain" \
		</tmp/plain.in >/tmp/plain.out 2>&1 &
	program_pid=$!
	exec 5>/tmp/plain.in
else
	check "the TCP peer listens" afr_wait_file "$AFR_SHARED/plain" 60
	start plain connect "$AFR_PEER" $((port + 1))
fi
check "a TCP peer is served" wait_for 60 is_ready plain
barrier served
if [ "$AFR_ROLE" = b ]; then
	check "fallback: the reason is shown" json conn dport $((port + 1)) -- \
		'x[0]["mode"] == "plain" and x[0]["reason"] == "PEER_PLAIN" and x[0]["reason_text"]
		and x[0]["reason_remedy"]'
	check "fallback: the bytes are counted" json conn dport $((port + 1)) -- \
		'x[0]["tx_bytes_tcp"] == x[0]["rx_bytes_tcp"] == 128 * 65536'
	check "trace: fallback" traced negotiated 'tx=fallback rx=fallback reason=PEER_PLAIN'
	check "trace: the client joins a link" traced upgrade 'step=join reason=NONE'
fi
check "trace: framed" traced negotiated 'tx=framed rx=framed reason=NOT_YET'
check "trace: ATTACH" traced upgrade 'step=attach reason=NONE'
check "trace: attached" traced upgrade 'step=done reason=NONE'
check "trace: link left at this end" traced upgrade 'step=left reason=OPERATOR'
check "trace: link left by the peer" traced upgrade 'step=left reason=peer:OPERATOR'
barrier traced
check "the program with the TCP peer ends" stop
rmdir $trace
barrier end
