#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: every limit of net.afrdma, one at
# a time as low as it goes. A connection over it works all the same, by TCP, and says
# which limit it was; the counter of refusals moves.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

death=$AFR_SRC/selftests/net/death.py
work=$(mktemp -d)
port=7200

smctl() { "$AFR_SRC/build/tools/smctl" "$@"; }
no_link() { [ "$(smctl -j link)" = "[]" ]; }
listening() { grep -q listening "$work/serve.$port"; }
reason() { smctl -j reason name "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["number"])'; }
counted() { smctl -j stats name "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["value"])'; }
limit() { echo "/proc/sys/net/afrdma/$1"; }

serve() {
	timeout 60 python3 "$death" serve $port >"$work/serve.$port" 2>&1 &
	server=$!
	wait_for 20 listening
}

# refused NAME VALUE WHERE REASON COUNTER [peer]: with limit NAME at VALUE in guest WHERE,
# a connection from a to b stays on TCP for REASON, as a sees it, which b may have told.
refused() {
	local name=$1 value=$2 where=$3 why=$4 counter=$5 whose=${6:-own} old before
	port=$((port + 1))
	old=$(cat "$(limit "$name")")
	before=$(counted "$counter")
	[ "$AFR_ROLE" != "$where" ] || echo "$value" >"$(limit "$name")"
	if [ "$AFR_ROLE" = b ]; then
		serve
		barrier "listens $port"
		check "$name: the server has seen it all" wait "$server"
	else
		barrier "listens $port"
		check "$name at $where: TCP, $why" timeout 60 python3 "$death" limited "$AFR_PEER" $port \
			"$(reason "$why")" "$whose" >"$work/out" 2>&1
		sed 's/^/# /' "$work/out"
	fi
	barrier "over $port"
	if [ "$AFR_ROLE" = "$where" ]; then
		echo "$old" >"$(limit "$name")"
		check "$name: counted" test "$(counted "$counter")" -gt "$before"
	fi
	barrier "restored $port"
}

more_than() { [ "$(counted "$1")" -gt "$2" ]; }

# With no room for orphans, closing on unsent bytes is a reset.
no_orphans() {
	local before
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		timeout 60 python3 "$death" deaf $port >"$work/serve.$port" 2>&1 &
		server=$!
		wait_for 20 listening
		barrier "listens $port"
		barrier "closed $port"
		check "orphans_max: the peer sees a reset" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		before=$(counted over_limit)
		barrier "listens $port"
		echo 0 >/proc/sys/net/afrdma/orphans_max
		check "orphans_max: closed" timeout 60 python3 "$death" stuffed "$AFR_PEER" $port
		barrier "closed $port"
		check "orphans_max: counted" wait_for 5 more_than over_limit "$before"
		echo 8192 >/proc/sys/net/afrdma/orphans_max
	fi
}

# A namespace that was just made has no orphans either, if the machine has no room for them.
no_orphans_anywhere() {
	local most=/sys/module/afrdma/parameters/orphans_max old
	if [ "$AFR_ROLE" = a ]; then
		old=$(cat $most)
		check "orphans_max of the machine: as TCP's, by memory" test "${old:-0}" -gt 255
		echo 0 >$most
		check "orphans_max of the machine: a reset in a new namespace" \
			unshare --net bash -c "ip link set lo up
				timeout 60 python3 $death deaf 7299 >$work/deaf 2>&1 & server=\$!
				until grep -q listening $work/deaf; do sleep 0.1; done
				timeout 60 python3 $death stuffed 127.0.0.1 7299 && wait \$server"
		sed 's/^/# /' "$work/deaf"
		echo "$old" >$most
	fi
	barrier "no orphans anywhere"
}

# Closed, delivered, and the peer keeps its end open: none of these has the place of another.
kept_open() {
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		timeout 60 python3 "$death" keep $port 16 >"$work/serve.$port" 2>&1 &
		server=$!
		wait_for 20 listening
		barrier "listens $port"
		check "orphans_max: those that have delivered all do not count" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		barrier "listens $port"
		echo 6 >/proc/sys/net/afrdma/orphans_max
		check "orphans_max: left" timeout 60 python3 "$death" leave "$AFR_PEER" $port 16
	fi
	barrier "over $port"
	[ "$AFR_ROLE" = b ] || echo 8192 >/proc/sys/net/afrdma/orphans_max
}

# No more pages than each ring has whatever the limits say.
no_pages() {
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		serve
		barrier "listens $port"
		check "mem_max 0: the server has seen it all" wait "$server"
	else
		barrier "listens $port"
		check "mem_max 0: EAGAIN, then all goes on" timeout 60 python3 "$death" starved \
			"$AFR_PEER" $port >"$work/out" 2>&1
		sed 's/^/# /' "$work/out"
	fi
	barrier "over $port"
}

# Bytes of the peer wait in TCP for a page while we send, and do not read. No attempt at RDMA
# makes the worker look at them by chance.
unread() {
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		timeout 60 python3 "$death" flood $port "$1" >"$work/serve.$port" 2>&1 &
		server=$!
		wait_for 20 listening
		barrier "listens $port"
		check "mem_max 0, unread bytes: the peer could $1" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		barrier "listens $port"
		echo 0 >/proc/sys/net/afrdma/upgrade
		check "mem_max 0, unread bytes: send() ends when $2" timeout 60 python3 "$death" \
			unread "$AFR_PEER" $port "$1" >"$work/out" 2>&1
		echo 1 >/proc/sys/net/afrdma/upgrade
		sed 's/^/# /' "$work/out"
	fi
	barrier "over $port"
}

# One host has all of a /64: its addresses together get what they leave free of groups_max.
prefix() {
	local linger
	linger=$(cat "$(limit link_linger_ms)")
	echo 300 >"$(limit link_linger_ms)"
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		wait_for 20 no_link
		echo 3 >/proc/sys/net/afrdma/groups_max
		timeout 60 python3 "$AFR_SRC/selftests/net/prefix.py" serve $port \
			>"$work/serve.$port" 2>&1 &
		server=$!
		wait_for 20 listening
		barrier "listens $port"
		check "groups_max and a /64: the server has seen it all" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
		echo 1024 >/proc/sys/net/afrdma/groups_max
	else
		for i in 1 2 3; do ip addr add "fd77::a$i/64" dev eth0 nodad; done
		barrier "listens $port"
		check "groups_max and a /64: two of its addresses, and IPv4" timeout 60 python3 \
			"$AFR_SRC/selftests/net/prefix.py" ask "$AFR_PEER6" "$AFR_PEER" $port \
			"$(reason GROUP_LIMIT)" fd77::a1 fd77::a2 fd77::a3 >"$work/out" 2>&1
		sed 's/^/# /' "$work/out"
	fi
	wait_for 30 no_link
	barrier "over $port"
	[ "$AFR_ROLE" = b ] || for i in 1 2 3; do ip addr del "fd77::a$i/64" dev eth0; done
	echo "$linger" >"$(limit link_linger_ms)"
}

barrier begin
refused groups_max 0 a GROUP_LIMIT over_limit
refused attaches_max 0 a ATTACH_LIMIT over_limit
refused link_requests_max 0 b CONNECT_FAILED over_limit
refused groups_max 0 b GROUP_LIMIT over_limit peer
refused attaches_max 0 b ATTACH_LIMIT over_limit peer	# the first that leaves a link behind
refused mem_max 120 a RING_LIMIT ring_no_memory
prefix
no_pages
unread reset "the peer resets"
unread read "there are pages, and the peer reads"
no_orphans
no_orphans_anywhere
kept_open
barrier end
rm -rf "$work"
exit 0
