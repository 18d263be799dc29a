#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by selftests/lab/run: runs test suites of other programs, and the kernel's tests of AF_VSOCK,
# as parity.sh describes. Each guest runs a share of the suites, with connections to itself. On TCP,
# AF_RDMA and AF_SMC alike, home.so replaces 127.0.0.1 and ::1 by the addresses of the guest.
# fetch.sh has unpacked the suites, and built those that have to be built; stress-ng is a package.
#
#	suites.sh [--on FAMILIES] [SUITE...]	default: all suites, on all three families
#
# The environment variable SUITES is the folder in which fetch.sh has put the suites.
set -uo pipefail
# shellcheck source=selftests/programs/parity.sh
. "${BASH_SOURCE%/*}/parity.sh"

sources=${SUITES:?the folder of fetch.sh}
home=/tmp/bin/home.so
declare -A share=([a]="socat libuv stress_ng" [b]="redis memcached vsock")
[ "${1:-}" != --on ] || { families=$2; shift 2; }
for suite; do
	[[ " ${share[*]} " == *" $suite "* ]] || { echo "no suite $suite: ${share[*]}" >&2; exit 2; }
done
suites=()
for suite in ${share[$AFR_ROLE]}; do
	[[ $# -gt 0 && " $* " != *" $suite "* ]] || suites+=("$suite")
done

# judge NAME STATUS: write one line of the results
judge() {
	case $2 in
	0)	echo "$1 pass" ;;
	124 | 137) echo "$1 hang" ;;
	*)	echo "$1 fail" ;;
	esac >>"$results"
}

# verdict NAME COMMAND...: run a command and write its result
verdict() {
	local name=$1 rc=0
	shift
	timeout -k 5 60 "$@" </dev/null || rc=$?
	judge "$name" $rc
}

### The suites: each runs in a folder of its own, with "${under[@]}" in front of its programs

needs_redis() { [ -e "$sources/redis/.built" ] && command -v redis-server && command -v tclsh; }
redis_units="unit/type/string unit/type/hash unit/protocol unit/pubsub unit/querybuf
	unit/networking unit/multi unit/quit unit/replybufsize integration/replication-4
	integration/block-repl integration/redis-cli integration/redis-benchmark"
# The name of a test is its unit and its description. A unit is ended after a minute without
# progress, or after five minutes in all. Its remaining tests then have no result; compare.awk
# reports such a test as "not run" if it passes on TCP.
suite_redis() {
	local program unit
	cp -r "$sources/redis/tests" . && mkdir src || return
	for program in server cli benchmark check-rdb check-aof sentinel; do
		ln -s "/usr/bin/redis-$program" "src/redis-$program"
	done
	for unit in $redis_units; do
		timeout -k 5 300 "${under[@]}" tclsh tests/test_helper.tcl --clients 1 \
			--timeout 60 --tags -slow --tags -large-memory --single "$unit" </dev/null |
			tee -a /dev/stderr | awk -v unit="$unit" '
			match($0, /\[(ok|err|exception)\]: ?/) {
				good = $0 ~ /\[ok\]/
				$0 = substr($0, RSTART + RLENGTH)
				sub(/ \([0-9]+ ms\)$/, "")
				sub(/ in tests\/.*/, "")
				gsub(/[ \t]+/, "_")
				if (seen[$0]++)
					$0 = $0 "#" seen[$0]
				print unit "/" $0, good ? "pass" : "fail"
			}' >>"$results"
	done
}

needs_memcached() { [ -e "$sources/memcached/.built" ]; }
# Excluded are tests of memory and disk, which take minutes, the test of UNIX sockets, and tests
# that are always skipped.
memcached_not='^(.*extstore.*|lru.*|slab.*|restart|chunked-items|dyn-maxbytes|evictions
	|item_size_max|unixsocket|ssl_.*|refhang|misbehave|proxy|whitespace|issue_140|issue_260)$'
# suite_memcached() disables UNIX sockets, so that the tests use TCP, and runs up to six files at a
# time, since they mostly sleep. Each file has a result. So has each of its tests, named by its
# number, except in maxconns.
memcached_file() {
	local from=$SECONDS
	timeout -k 5 400 "${under[@]}" perl "t/$1.t" </dev/null >"$1.tap" 2>"$1.err"
	awk -v file="$1" -v status=$? '
		/^(not )?ok [0-9]/ && file != "maxconns" {	# its number of tests varies
			good = $1 == "ok"
			print file "/" (good ? $2 : $3), good ? "pass" : "fail"
		}
		END { print file, status ? "fail" : "pass" }' "$1.tap" >"$1.verdicts"
	echo "$1: $((SECONDS - from)) s, $(tail -n 1 "$1.verdicts")" && grep -v ^profiling: "$1.err"
}
suite_memcached() {
	local file again
	cp -r "$sources/memcached/t" . && sed -i 's/unix-socket/(?!)/' t/lib/MemcachedTest.pm &&
		ln -s "$sources"/memcached/{memcached-debug,timedrun,sizes,doc} .
	for file in $(cd t && printf '%s\n' *.t | sed 's/\.t$//' |
		grep -vE "$(tr -d '\n\t' <<<"$memcached_not")"); do
		while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
		memcached_file "$file" &
	done
	wait
	# A file that fails runs again without others beside it: many tests have time limits.
	mapfile -t again < <(sed -n 's/^\([^/]*\) fail$/\1/p' ./*.verdicts)
	for file in "${again[@]}"; do memcached_file "$file"; done
	cat ./*.verdicts >>"$results"
}

needs_libuv() { [ -e "$sources/libuv1/.built" ]; }
# libuv's tests refuse to run as root, and other users may not read the folders of root: so another
# user runs a copy. The names select tests of TCP, others that use it, and a few that do not, such
# as shutdown_close_pipe.
uv_tests='^(tcp|shutdown|poll_|ipc_.*tcp|callback_stack|connection_fail|delayed_accept
	|multiple_listen|readable_on_eof|not_readable|not_writable|socket_buffer_size$
	|getsockname_tcp|spawn_tcp_server)'
suite_libuv() {
	local test user=(setpriv "--reuid=65534" "--regid=65534" --clear-groups)
	cp "$sources/libuv1/build/uv_run_tests_a" uv && cp -r "$sources/libuv1/test" . || return
	chmod 777 .
	"${user[@]}" ./uv --list | awk '{ print $1 }' >names
	while read -r test; do
		verdict "$test" "${user[@]}" "${under[@]}" ./uv "$test"
	done < <(grep -E "$(tr -d '\n\t' <<<"$uv_tests")" names)
}

needs_stress_ng() { command -v stress-ng; }
# With --verify, stressors that support it compare the received bytes.
suite_stress_ng() {
	local way ng=(stress-ng --verify --temp-path "$PWD" --timeout 20)
	for way in send sendmsg sendmmsg; do
		verdict "sock-$way" "${under[@]}" "${ng[@]}" --sock 2 --sock-domain ipv4 \
			--sock-opts $way --sock-ops 200
	done
	verdict sock-ipv6 "${under[@]}" "${ng[@]}" --sock 2 --sock-domain ipv6 --sock-ops 200
	verdict sock-nodelay "${under[@]}" "${ng[@]}" --sock 1 --sock-nodelay --sock-ops 100
	verdict sock-zerocopy "${under[@]}" "${ng[@]}" --sock 1 --sock-zerocopy --sock-ops 100
	verdict sockmany "${under[@]}" "${ng[@]}" --sockmany 1 --sockmany-ops 100
	verdict sockabuse "${under[@]}" "${ng[@]}" --sockabuse 1 --sockabuse-ops 60
	verdict epoll "${under[@]}" "${ng[@]}" --epoll 1 --epoll-domain ipv4 --epoll-ops 200
}

needs_vsock() { [ -e "$sources/vsock/.built" ]; }
# vsock.so must be the first library in LD_PRELOAD, but smctl run puts its own library there. So an
# inner shell puts vsock.so in front of it, and then starts the program.
vsock_end() {
	local mode=$1 program=$2
	shift 2
	# shellcheck disable=SC2016 # expanded by the shell that is started
	timeout -k 5 60 "${under[@]}" sh -c 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"' \
		/tmp/bin/vsock.so "./$program" --mode="$mode" --peer-cid=1 --peer-port="$port" \
		--control-host=127.0.0.1 --control-port="$((port + 2))" "$@" </dev/null
}
# vsock_pair PROGRAM WORD...: run PROGRAM as server and as client; return the worse status. Each
# pair has new ports, since connections of the previous pair may be in TIME_WAIT.
vsock_pair() {
	local client=0 server=0
	port=$((port + 3))
	: >server.out		# or grep would find the output of the previous pair
	vsock_end server "$@" >server.out 2>&1 &
	wait_for 20 grep -q listening server.out
	vsock_end client "$@" >client.out 2>&1 || client=$?
	wait $! || server=$?
	grep -v 'skipped$' server.out client.out
	return $((client > server ? client : server))
}
# For each test of SOCK_STREAM, a pair of vsock_test runs that test alone. For io_uring, one pair of
# vsock_uring_test runs all tests, whose results are read from the output of both ends.
suite_vsock() {
	local number name skip status=0 port=20000
	cp "$sources"/vsock/vsock_*test . && ./vsock_test --list | grep '^[0-9]' >names
	while IFS=$'\t' read -r number name; do
		mapfile -t skip < <(awk -v own="$number" '$1 != own { print "--skip=" $1 }' names)
		vsock_pair vsock_test "${skip[@]}"
		judge "${name// /_}" $?
	done < <(grep SOCK_STREAM names)
	[ -e vsock_uring_test ] || return 0
	vsock_pair vsock_uring_test || status=$?
	while read -r name number; do
		judge "$name" $((number == 2 ? 0 : status))
	done < <(awk 'sub(/^[0-9]+ - /, "") {
			good = sub(/\.\.\.ok$/, "")
			sub(/\.\.\..*/, "")
			gsub(/ /, "_")
			said[$0] += good
		}
		END { for (name in said) print name, said[name] }' server.out client.out)
}

needs_socat() { [ -e "$sources/socat/.built" ] && command -v socat; }
# Keywords and names that select tests of the suite, most of them of TCP and of protocols on it.
# The keyword "listen" also selects tests of UNIX sockets and UDP, and "openssl" tests of DTLS. For
# TLS the suite would search for a prime number of 2048 bits, which takes minutes: suite_socat()
# provides a known one. socat_run() writes the output of the suite to a file: a pipe to awk would
# stay open as long as processes run that a test has left behind.
socat_tests="tcp tcp4 tcp6 openssl socks proxy listen TCP4NOFORK TOTALTIMEOUT
	SOCKET_CONNECT_TCP4 SOCKET_LISTEN HOSTNAMEOVFL FDLEAK PROXY_ADDR_OVFL"
# socat 1.7.4.4 calls exit() within exit() if its child is ended by a signal, and frees its TLS
# context twice. It may then spin for ever and ignore the SIGTERM of the suite.
end_spinning() {
	while sleep 5; do
		ps -eo pid=,etimes=,comm= | awk '$2 > 60 && $3 == "socat" { print $1 }' |
			xargs -r kill -KILL
	done
}
socat_run() {
	local spinning
	end_spinning &
	spinning=$!
	# shellcheck disable=SC2086 # a list of words
	SOCAT=socat TERM=dumb timeout -k 5 900 "${under[@]}" ./test.sh -t "$1" $2 \
		</dev/null >>"$results.out"
	kill $spinning
	awk '/^test +[0-9]+ / && /OK$|FAILED|NO RESULT/ {
		sub(/:$/, "", $3)
		verdict[$3] = /OK$/ ? "pass" : "fail"
	}
	END { for (name in verdict) print name, verdict[name] }' "$results.out" >"$results"
}
# On every family, the failed tests run a second time with a longer timeout: a test may fail only
# because of its timing.
suite_socat() {
	local failed
	cp "$sources"/socat/*.sh . || return
	openssl genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out testcert.dh
	socat_run 0.5 "$socat_tests"
	failed=$(awk '$2 == "fail" { print $1 }' "$results" | xargs)
	[ -z "$failed" ] || socat_run 2 "$failed"
}

parity_begin
for suite in "${suites[@]}"; do
	if "needs_$suite" >/dev/null; then
		parity "$suite"
	else
		skip "$suite" "its suite or programs are not installed"
	fi
done
parity_end
