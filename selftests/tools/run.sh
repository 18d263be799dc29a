#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by selftests/lab/run in both guests: tests the rules of smctl run and both of its methods,
# preload library and supervisor. The test programs are dynamic, static or in Go; the library
# cannot intercept the calls of the last two kinds. The rules select sockets by port, address and
# program. The counters show how the bytes were carried. Also tests that the sockets of a supervised
# program belong to its user, and are in its network namespace.
# shellcheck disable=SC2317 # "check" calls functions
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
here=$AFR_SRC/selftests/tools

[ -n "$AFR_MODULE" ] || { skip "run" "no afrdma.ko"; exit 4; }
[ -x "$smctl" ] || { skip "run" "not built: make -C tools"; exit 4; }

counter() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }

# counted COMMAND...: run it; if it succeeds, set $framed, $moved and $bytes to the increase of the
# counters
counted() {
	local names=(conn_framed upgrade_done rx_bytes_rdma) before=() after=() name
	for name in "${names[@]}"; do before+=("$(counter "$name")"); done
	"$@" </dev/null >/tmp/counted.out 2>&1 || { cat /tmp/counted.out; return 1; }
	for name in "${names[@]}"; do after+=("$(counter "$name")"); done
	framed=$((after[0] - before[0]))
	moved=$((after[1] - before[1]))
	bytes=$((after[2] - before[2]))
}

# by_rdma COMMAND...: does it succeed, with an upgrade and more than 1 MiB received by RDMA?
# by_tcp COMMAND...: does it succeed, without a framed connection and without bytes by RDMA?
# goes rdma|tcp NAME COMMAND...: print a KTAP line with the result of by_rdma or by_tcp
by_rdma() {
	counted "$@" && ((framed > 0 && moved > 0 && bytes > 1 << 20))
}
by_tcp() {
	counted "$@" && ((framed == 0 && moved == 0 && bytes == 0))
}
goes() {
	local way=$1 name=$2
	shift 2
	if [ "$way" = rdma ]; then
		check "$name: by RDMA" by_rdma "$@"
	else
		check "$name: by TCP" by_tcp "$@"
	fi
	say "$name: $framed framed, $moved moved, $bytes bytes received by RDMA"
}

# Open a FIFO. Programs that read from it end when "release" closes it. They are started with 5>&-,
# since no reader sees end of file while any process has the FIFO open for writing.
hold() {
	[ -p /tmp/hold ] || mkfifo /tmp/hold
	exec 5<>/tmp/hold
}
release() { exec 5>&-; }

# serve NAME PORT PORT -- RUN OPTIONS...: run an echo server on both ports until "release"
pids=()
serve() {
	local name=$1 one=$2 two=$3
	shift 4
	"$smctl" run "$@" -- python3 "$here/program.py" echo "${host:-$AFR_ME}" "$one" "$two" \
		</tmp/hold >"/tmp/$name.out" 2>&1 5>&- &
	pids+=("$!")
	check "$name: listens" wait_for 30 grep -q ready "/tmp/$name.out" || cat "/tmp/$name.out"
}

servers() {
	serve preload 7101 7102 --
	serve rule.preload 7103 7104 -- --use 'tcp listen port 7104'
	serve rule.seccomp 7105 7106 -- --use 'tcp listen port 7106' --via seccomp
	host=$AFR_ME6 serve IPv6 7108 7109 -- --via seccomp
	mkdir /tmp/web
	head -c 1048576 /dev/urandom >/tmp/web/page
	"$smctl" run --via seccomp -- python3 -m http.server --bind "$AFR_ME" --directory /tmp/web \
		7107 >/tmp/http.out 2>&1 5>&- &
	web=$!
	check "http: listens" wait_for 30 curl -sfo /dev/null "http://$AFR_ME:7107/page"
}


servers_end() {
	local pid
	release
	for pid in "${pids[@]}"; do check "a server ends with 0" wait "$pid"; done
	kill -TERM "$web"
	wait "$web"
	check "a signal ends a supervised program, with its status" test $? -eq $((128 + 15))
}

# The command lines of the clients, for a port
static() { echo /tmp/static "$AFR_PEER" "$1" 4194304; }
dynamic() { echo /tmp/dynamic "$AFR_PEER" "$1" 4194304; }
python() { echo python3 "$here/program.py" connect "${host:-$AFR_PEER}" "$1"; }

# client WAY NAME PORT PROGRAM [RUN OPTIONS...]: run PROGRAM under smctl run; its bytes must be
# carried by WAY, rdma or tcp
client() {
	local way=$1 name=$2 port=$3 program=$4 words
	shift 4
	read -r -a words <<<"$($program "$port")"
	goes "$way" "$name" "$smctl" run "$@" -- "${words[@]}"
}

link_is_up() { [ "$("$smctl" -j link state up)" != "[]" ]; }

# Hold a connection that keeps a link up for the programs under test: a short-lived program could
# end before a new link is up.
keep_link() {
	"$smctl" run -- python3 "$here/program.py" connect "$AFR_PEER" 7101 \
		</tmp/hold >/tmp/keep.out 2>&1 5>&- &
	keeper=$!
	check "a link is kept up" wait_for 40 link_is_up
	check "its connection has transferred its bytes" wait_for 40 grep -q ready /tmp/keep.out
}

clients() {
	client rdma "static" 7101 static
	goes rdma "static, an ordinary user's" setpriv --reuid 65534 --clear-groups \
		"$smctl" run -- /tmp/static "$AFR_PEER" 7101 4194304
	client tcp "static, with preload" 7101 static --via preload
	goes rdma "Go" "$smctl" run -- hey -n 24 -c 4 "http://$AFR_PEER:7107/page"
	check "Go: all answers" grep -q '\[200\].24 responses' /tmp/counted.out
	client rdma "dynamic, supervised" 7101 dynamic --via seccomp

	for means in preload seccomp; do
		client rdma "$means: --port, this one" 7101 dynamic --via $means --port 7101
		client tcp "$means: --port, another" 7102 dynamic --via $means --port 7101
		client rdma "$means: a server's rule, this port" 7103 dynamic --via $means
		client tcp "$means: a server's rule, another" 7104 dynamic --via $means
	done
	client tcp "static: --port, another" 7102 static --port 7101
	client rdma "a supervised server's rule, this port" 7105 static
	client tcp "a supervised server's rule, another" 7106 static

	for means in preload seccomp; do
		host=$AFR_PEER6 client rdma "$means: an IPv6 prefix" 7108 python --via $means \
			--use "rdma connect address $AFR_PEER6/64 port 7108" --use tcp
		host=$AFR_PEER6 client tcp "$means: of it, another port" 7109 python --via $means \
			--use "rdma connect address $AFR_PEER6/64 port 7108" --use tcp
	done

	# the first rule ends in a comment, which smctl must ignore
	cat >/tmp/run.conf <<-END
		use tcp program static	# program "dynamic" does not match this rule
		use rdma connect address $AFR_PEER/32 port 7000-7101
		use tcp
	END
	client tcp "a file: by program" 7101 static --rules /tmp/run.conf
	client rdma "a file: by address and port" 7101 dynamic --rules /tmp/run.conf
	client tcp "a file: the last rule" 7102 dynamic --rules /tmp/run.conf
}

# A socket that the supervisor creates belongs to the user of the program. If
# net.afrdma.unprivileged is 0, a program without CAP_NET_RAW gets TCP sockets only.
as_nobody() { "$smctl" run --via seccomp -- setpriv --reuid 65534 --clear-groups "$@"; }
owner_of() { "$smctl" conn sport "$1" role listener 2>/dev/null | grep -o ' uid [0-9]*'; }
nobody_has() { [ "$(owner_of "$1")" = " uid 65534" ]; }
rights() {
	sysctl -qw net.afrdma.unprivileged=0
	as_nobody python3 "$here/program.py" idle "$AFR_ME" 7111 1 \
		</tmp/hold >/tmp/idle.out 2>&1 5>&- &
	pids+=("$!")
	check "a user without permission runs on TCP" wait_for 30 grep -q ready /tmp/idle.out
	check "and gets no AF_RDMA socket from smctl" test -z "$(owner_of 7111)"
	sysctl -qw net.afrdma.unprivileged=1
	as_nobody python3 "$here/program.py" idle "$AFR_ME" 7110 1 </tmp/hold >/dev/null 2>&1 5>&- &
	pids+=("$!")
	check "sockets of a supervised program have its user" wait_for 30 nobody_has 7110
}
cookies='
import socket
a, b = (socket.socket(socket.AF_INET, kind).getsockopt(socket.SOL_SOCKET, 71, 8)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM))
raise SystemExit(a != b)'
namespaces() {
	check "sockets are in the network namespace of the program" \
		"$smctl" run --via seccomp -- unshare -n python3 -c "$cookies"
	check "also in this namespace" "$smctl" run --via seccomp -- python3 -c "$cookies"
}

framed=0 moved=0 bytes=0
check "a static program" cc -O2 -static -o /tmp/static "$here/socket_probe.c"
check "a dynamic program" cc -O2 -o /tmp/dynamic "$here/socket_probe.c"
sysctl -qw net.afrdma.upgrade_bytes=0
hold
[ "$AFR_ROLE" = b ] || servers
barrier listening
if [ "$AFR_ROLE" = b ]; then
	command -v hey >/dev/null || not_ok "Go" "no hey"
	keep_link
	clients
	release
	check "the program that kept the link up ends" wait "$keeper"
else
	rights
	namespaces
fi
barrier answered 250
[ "$AFR_ROLE" = b ] || servers_end
barrier end
