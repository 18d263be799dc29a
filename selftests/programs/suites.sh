#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# For selftests/lab/run: test suites of other programs on TCP, then on AF_RDMA. What passes
# on TCP has to pass on AF_RDMA; what does not, and why, is in suites.differences. Each guest
# has its share and talks to itself; where a suite says 127.0.0.1, home.so says the address
# of the guest, on both families. fetch.sh has unpacked and built the suites.
#
#	suites.sh [SUITE...]		these, in both guests; SUITES is where they are
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

here=$AFR_SRC/selftests/programs
built=$AFR_SRC/build/programs
smctl=/tmp/bin/smctl
sources=${SUITES:?the folder that fetch.sh has filled}
declare -A share=([a]="redis" [b]="libuv memcached stress_ng")
read -r -d '' -a suites <<<"${*:-${share[$AFR_ROLE]}}"

[ -n "$AFR_MODULE" ] || { skip "suites" "no afrdma.ko"; exit 4; }
[ -x "$built/home.so" ] || { skip "suites" "not built: make -C selftests/programs"; exit 4; }

# verdict NAME COMMAND...: one line of the results
verdict() {
	local name=$1 rc=0
	shift
	timeout -k 5 60 "$@" </dev/null || rc=$?
	case $rc in
	0)	echo "$name pass" ;;
	124 | 137) echo "$name hang" ;;
	*)	echo "$name fail" ;;
	esac >>"$results"
}

### The suites: each runs in a folder of its own, with "${under[@]}" before its programs

needs_redis() { [ -e "$sources/redis/.built" ] && command -v redis-server tclsh; }
redis_units="unit/type/string unit/type/hash unit/protocol unit/pubsub unit/querybuf
	unit/networking unit/multi unit/quit unit/replybufsize integration/replication-4
	integration/block-repl integration/redis-cli integration/redis-benchmark"
# A test is told by its unit and what it says; a unit that stands still for a minute fails.
suite_redis() {
	local program unit
	cp -r "$sources/redis/tests" . && mkdir src || return
	for program in server cli benchmark check-rdb check-aof sentinel; do
		ln -s "/usr/bin/redis-$program" "src/redis-$program"
	done
	for unit in $redis_units; do
		timeout -k 5 300 "${under[@]}" tclsh tests/test_helper.tcl --clients 1 --timeout 60 \
			--tags -slow --tags -large-memory --single "$unit" </dev/null |
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
# Those that are about connections and what is said on them, not about its memory.
memcached_tests="00-startup 64bit ascii-auth binary-get bogus-commands cas conn-limits flags
	getandtouch incrdecr issue_104 issue_108 issue_14 issue_152 issue_163 issue_29 issue_42
	issue_50 line-lengths metaget multiversioning noreply quit stats stats-conns
	stats-detail strtol-testing touch watcher"
suite_memcached() {
	local file
	cp -r "$sources/memcached/t" . && ln -s "$sources"/memcached/{memcached-debug,timedrun,sizes} .
	for file in $memcached_tests; do
		timeout -k 5 60 "${under[@]}" perl "t/$file.t" </dev/null | tee -a /dev/stderr |
			awk -v file="$file" '
			/^(not )?ok [0-9]/ {
				good = $1 == "ok"
				print file "/" (good ? $2 : $3), good ? "pass" : "fail"
			}' >>"$results"
	done
}

needs_libuv() { [ -e "$sources/libuv1/.built" ]; }
# It refuses to run as root, and others may not look into root's folders. Of its tests those
# of TCP, and those of other names that use it.
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
# --verify where a stressor has it: what is received is compared.
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

### One suite on both families

counter() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }

counts() {
	awk '{ n[$2]++ } END { for (word in n) printf "%d %s ", n[word], word }' "$1"
}

on() {
	local suite=$1 family=$2 from=$SECONDS
	results=$AFR_OUT/$suite.$family
	: >"$results"
	mkdir -p "/tmp/work/$suite.$family" && cd "/tmp/work/$suite.$family" || return
	"suite_$suite" >>"$AFR_OUT/$suite.$family.log" 2>&1
	cd / && rm -rf "/tmp/work/$suite.$family"
	say "$suite on $family: $((SECONDS - from)) s, $(counts "$results")"
}

parity() {
	local suite=$1 name delta=$AFR_OUT/$1.delta
	local -A before
	"needs_$suite" >/dev/null || { skip "$suite" "its suite or programs are not here"; return; }
	home=("HOME_V4=$AFR_ME" "HOME_V6=$AFR_ME6" "LD_PRELOAD=/tmp/bin/home.so")
	under=(env "${home[@]}")
	on "$suite" tcp
	for name in conn_framed upgrade_done rx_bytes_rdma; do before[$name]=$(counter $name); done
	under=(env "${home[@]}" "$smctl" run --)
	on "$suite" rdma
	for name in "${!before[@]}"; do
		check "$suite: $name was ${before[$name]}, is $(counter "$name")" \
			test "$(counter "$name")" -gt "${before[$name]}"
	done
	grep "^$suite/" "$here/suites.differences" | sed "s|^$suite/||" >/tmp/listed
	awk -v listed=/tmp/listed -f "$here/compare.awk" "$AFR_OUT/$suite.tcp" \
		"$AFR_OUT/$suite.rdma" >"$delta"
	cat "$delta"
	check "$suite: tests that pass on TCP" grep -q ' pass$' "$AFR_OUT/$suite.tcp"
	check "$suite: no difference that is not listed" sh -c "! grep -v '^#' '$delta'"
	tail -n 1 "$delta" | sed "s/^#/$suite:/" >>"$AFR_OUT/suites"
}

mkdir /tmp/bin && cp "$AFR_SRC"/build/tools/{smctl,libafrdma-preload.so} "$built/home.so" /tmp/bin
sysctl -qw net.afrdma.upgrade_bytes=0
for suite in "${suites[@]}"; do parity "$suite"; done
barrier end 1200
