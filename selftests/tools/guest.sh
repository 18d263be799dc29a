#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# For selftests/lab/run: smctl and the preload library with the module. An
# ordinary program talks over RDMA; smctl must tell so, the same on both ends.
# shellcheck disable=SC2317 # functions are called by "check"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
program=$AFR_SRC/selftests/tools/program.py
port=7000

[ -n "$AFR_MODULE" ] || { skip "smctl" "no afrdma.ko"; exit 4; }
[ -x "$smctl" ] || { skip "smctl" "not built: make -C tools"; exit 4; }

# json FILTER... -- EXPRESSION: is the expression true of the list x?
json() {
	local words=()
	while [ "$1" != -- ]; do words+=("$1"); shift; done
	"$smctl" -j "${words[@]}" 2>"$AFR_OUT/smctl.err" |
		python3 -c 'import json, sys; x = json.load(sys.stdin); sys.exit(not eval("(" + sys.argv[1] + ")"))' "$2"
}

# start NAME WORDS...: program.py under smctl run, its input open until stop.
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

# What the tracepoints print, of everything below.
trace=/sys/kernel/tracing/instances/tools
mkdir $trace
for event in negotiated upgrade; do echo 1 >$trace/events/afrdma/afrdma_conn_$event/enable; done
traced() { grep -q "afrdma_conn_$1: id=[0-9]* $2" $trace/trace; }

check "info" json info -- 'x[0]["wire_version"] == 1 and len(x[0]["instance"]) == 32'
check "info has the settings" json info -- 'x[0]["settings"]["enabled"] == 1'
check "the device" json dev name "$AFR_DEV" -- 'len(x) == 1 and x[0]["usable"]
	and x[0].get("iwarp", False) == ("'"$AFR_RDMA"'" == "siw")'
check "reasons" json reasons number 1 -- 'x[0]["name"] == "PEER_PLAIN" and len(x[0]["text"]) > 20'
check "counters" json stats -- 'len(x) > 30 and [s["id"] for s in x] == list(range(len(x)))'
check "an ordinary user may read" sh -c "setpriv --reuid 65534 --clear-groups $smctl stats >/dev/null"

# Far more connections than one message of a dump holds.
start many idle 127.0.0.1 $port 150
check "many connections" wait_for 60 is_ready many
check "a long dump has each once, in order" json conn sport $port -- \
	'len(x) == 151 and [c["id"] for c in x] == sorted({c["id"] for c in x})'
check "as many as sockets" json info -- 'x[0]["sockets"] == 301'
check "owner and inode" json conn role listener -- \
	'x[0]["uid"] == 0 and any(__import__("os").path.samefile(f, f"/proc/'$program_pid'/fd/{n}")
	 for n in range(3, 9) for f in [f"/proc/'$program_pid'/fd/{n}"]
	 if __import__("os").readlink(f) == "socket:[%d]" % x[0]["inode"])'
check "in another namespace no device is usable" sh -c "unshare -n $smctl -j dev |
	python3 -c 'import json, sys
x = json.load(sys.stdin)
sys.exit(not x or any(d[\"usable\"] or d[\"reason\"] != \"NETNS\" for d in x))'"
check "another namespace sees none" sh -c "unshare -n $smctl -j conn | grep -qx '\[\]'"
check "they end" stop

barrier begin
if [ "$AFR_ROLE" = a ]; then
	start pair listen "$AFR_ME" $port "$AFR_SHARED/listens"
else
	check "the peer listens" afr_wait_file "$AFR_SHARED/listens" 60
	start pair connect "$AFR_PEER" $port
fi
check "bytes arrive both ways" wait_for 60 is_ready pair || cat /tmp/pair.out
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
link=$("$smctl" -j conn role $role | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["link"])')
check "its link is up and used" json link id "$link" -- \
	'x[0]["state"] == "up" and x[0]["users"] == 1 and x[0]["tx_bytes"] > 1 << 20'
qpn=$("$smctl" -j link id "$link" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["qpn"])')
check "rdma res knows the queue pair" sh -c "rdma res show qp | grep -q ' lqpn $qpn '"
put link "$link"
if [ "$(get link)" = "$link" ]; then ok "both ends name the same link"; else not_ok "link id"; fi
check "text" sh -c "$smctl conn path rdma | grep -q 'mode framed state established role $role'"
barrier looked

# An administrator moves the connection, from either end, and takes its link down.
id=$("$smctl" -j conn role $role | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["id"])')
on() { json conn id "$id" -- "x[0]['tx_path'] == x[0]['rx_path'] == '$1' and $2"; }
another_link() { on rdma "x[0]['link'] != $link"; }
for mover in b a; do
	if [ "$AFR_ROLE" = $mover ]; then
		check "$mover: conn move tcp" "$smctl" conn move "$id" tcp
		check "$mover: it is on TCP, and says why" wait_for 10 on tcp "x[0]['reason'] == 'OPERATOR'"
	fi
	check "moved off RDMA by $mover: on TCP" wait_for 10 on tcp True
	[ "$AFR_ROLE" = $mover ] || check "moved off RDMA by $mover: the reason is the peer's" wait_for 10 \
		on tcp "(x[0]['reason'], x[0]['reason_peer']) == ('OPERATOR', True)"
	barrier "off by $mover"
	[ "$AFR_ROLE" != $mover ] || check "$mover: conn move rdma" "$smctl" conn move "$id" rdma
	[ "$AFR_ROLE" != b ] || check "b: conn move rdma" "$smctl" conn move "$id" rdma
	check "moved by $mover: on RDMA again" wait_for 20 on rdma True
	barrier "on by $mover"
done
link=$("$smctl" -j conn id "$id" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["link"])')
echo 1 >$trace/events/afrdma/afrdma_link_down/enable
barrier linked
[ "$AFR_ROLE" = a ] || check "link drain" "$smctl" link drain "$link"
check "drained: on another link" wait_for 20 another_link
check "a trace names the link as smctl does" grep -q "afrdma_link_down: id=$link reason=" $trace/trace
check "only root may" sh -c "! setpriv --reuid 65534 --clear-groups $smctl conn move $id tcp 2>/tmp/no &&
	grep -q CAP_NET_ADMIN /tmp/no"
check "an id that is not there" sh -c "! $smctl link drain 1 2>/tmp/no && grep -q 'no link of this id' /tmp/no"
barrier drained
check "the program ends" stop

# A peer that speaks no AF_RDMA: the same program, unhelped, on one end.
barrier plain
if [ "$AFR_ROLE" = a ]; then
	mkfifo /tmp/plain.in
	python3 "$program" listen "$AFR_ME" $((port + 1)) "$AFR_SHARED/plain" \
		</tmp/plain.in >/tmp/plain.out 2>&1 &
	program_pid=$!
	exec 5>/tmp/plain.in
else
	check "the plain peer listens" afr_wait_file "$AFR_SHARED/plain" 60
	start plain connect "$AFR_PEER" $((port + 1))
fi
check "a plain peer is served" wait_for 60 is_ready plain
barrier served
if [ "$AFR_ROLE" = b ]; then
	check "and the reason is told" json conn dport $((port + 1)) -- \
		'x[0]["mode"] == "plain" and x[0]["reason"] == "PEER_PLAIN" and x[0]["reason_text"]'
	check "and the bytes are counted" json conn dport $((port + 1)) -- \
		'x[0]["tx_bytes_tcp"] == x[0]["rx_bytes_tcp"] == 128 * 65536'
	check "trace: plain" traced negotiated 'tx=raw rx=raw reason=PEER_PLAIN'
	check "trace: the client looks for a link" traced upgrade 'step=join reason=NONE'
fi
check "trace: framed" traced negotiated 'tx=framed rx=framed reason=NOT_YET'
check "trace: ATTACH" traced upgrade 'step=attach reason=NONE'
check "trace: attached" traced upgrade 'step=done reason=NONE'
check "trace: left, by us" traced upgrade 'step=left reason=OPERATOR'
check "trace: left, by the peer" traced upgrade 'step=left reason=peer:OPERATOR'
barrier told
check "that ends too" stop
rmdir $trace
barrier end
