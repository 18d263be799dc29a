#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: limits of net.afrdma, and the module parameter
# orphans_max, are set low, one at a time. A connection that exceeds one must work on TCP, or be
# reset if the limit is orphans_max; connections within the limits must not suffer. Some tests also
# check the reason, or that a counter of refusals increases.
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
first() { python3 -c "import json, sys; print(json.load(sys.stdin)[0]['$1'])"; }
reason() { smctl -j reason name "$1" | first number; }
counted() { smctl -j stats name "$1" | first value; }
limit() { echo "/proc/sys/net/afrdma/$1"; }

# start_server COMMAND [WORD...]: only b calls it; runs "death.py COMMAND $port WORD..." in the
# background. When the program listens, enters the barrier "listens $port", where a waits.
start_server() {
	timeout 120 python3 "$death" "$1" $port "${@:2}" >"$work/serve.$port" 2>&1 &
	server=$!
	wait_for 20 listening
	barrier "listens $port"
}

# refused NAME VALUE WHERE REASON COUNTER [peer]: with limit NAME set to VALUE in guest WHERE,
# a connection from a to b stays on TCP. At a its reason must be REASON, found by a or, with
# "peer", reported by b. COUNTER must increase at WHERE.
refused() {
	local name=$1 value=$2 where=$3 why=$4 counter=$5 whose=${6:-own} old before
	port=$((port + 1))
	old=$(cat "$(limit "$name")")
	before=$(counted "$counter")
	[ "$AFR_ROLE" != "$where" ] || echo "$value" >"$(limit "$name")"
	if [ "$AFR_ROLE" = b ]; then
		start_server serve
		check "$name: the server ended without an error" wait "$server"
	else
		barrier "listens $port"
		check "$name at $where: on TCP for $why" timeout 60 python3 "$death" limited \
			"$AFR_PEER" $port "$(reason "$why")" "$whose" >"$work/out" 2>&1
		sed 's/^/# /' "$work/out"
	fi
	barrier "over $port"
	if [ "$AFR_ROLE" = "$where" ]; then
		echo "$old" >"$(limit "$name")"
		check "$name: counted" test "$(counted "$counter")" -gt "$before"
	fi
	barrier "restored $port"
}

orphans() { [ "$(smctl -j conn orphan true | grep -o '"id"' | wc -l)" -eq "$1" ]; }
more_than() { [ "$(counted "$1")" -gt "$2" ]; }

# With orphans_max 0, close() with undelivered bytes resets the connection.
no_orphans() {
	local before
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		start_server noread
		barrier "closed $port"
		check "orphans_max: the peer sees a reset" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		before=$(counted over_limit)
		barrier "listens $port"
		echo 0 >/proc/sys/net/afrdma/orphans_max
		check "orphans_max: the client has closed" timeout 60 python3 "$death" stuffed \
			"$AFR_PEER" $port
		barrier "closed $port"
		check "orphans_max: counted" wait_for 5 more_than over_limit "$before"
		echo 8192 >/proc/sys/net/afrdma/orphans_max
	fi
}

# The module parameter orphans_max limits the orphans of all namespaces of the machine together,
# those of a new namespace included.
no_orphans_anywhere() {
	local most=/sys/module/afrdma/parameters/orphans_max old
	if [ "$AFR_ROLE" = a ]; then
		old=$(cat $most)
		check "orphans_max of the machine: scales with memory" test "${old:-0}" -gt 255
		echo 0 >$most
		check "orphans_max of the machine: a reset in a new namespace" \
			unshare --net bash -c "ip link set lo up
				timeout 60 python3 $death noread 7299 >$work/noread 2>&1 & server=\$!
				until grep -q listening $work/noread; do sleep 0.1; done
				timeout 60 python3 $death stuffed 127.0.0.1 7299 && wait \$server"
		sed 's/^/# /' "$work/noread"
		echo "$old" >$most
	fi
	barrier "no orphans anywhere"
}

# orphans_max limits closed connections that still deliver bytes. Closed connections that have
# delivered all bytes do not count among these, even while the peer keeps its ends open: a second
# limit of the same size holds for them, and those beyond it are reset.
kept_open() {
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		start_server keep 16
		check "orphans_max: connections that have delivered all do not count" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		barrier "listens $port"
		echo 6 >/proc/sys/net/afrdma/orphans_max
		check "orphans_max: the client has closed all" timeout 60 python3 "$death" leave \
			"$AFR_PEER" $port 16
	fi
	barrier "over $port"
	[ "$AFR_ROLE" = b ] || echo 8192 >/proc/sys/net/afrdma/orphans_max
}

# User 1 closes 30 connections to $port. The server never accepts them, so no FINACK comes. All
# users together may have orphans_max orphans, here 10, and the orphans of one user may be at most
# four times as many as the places that are still free. So 8 connections stay as orphans (2 places
# are free, and 8 is 4 * 2), and the other 22 are reset. Then user 2 sends one byte on a connection
# to $port + 1 and closes it. The server accepts this connection only after it was closed, and must
# still receive the byte.
dropped() {
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		start_server lazy "$work/accept"
		barrier "dropped $port"
		touch "$work/accept"
		check "orphans_max: the connection of another user is delivered" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		barrier "listens $port"
		wait_for 20 orphans 0
		echo 10 >/proc/sys/net/afrdma/orphans_max
		check "orphans_max: user 1 has closed" timeout 60 python3 "$death" drop \
			"$AFR_PEER" $port 30 1
		check "orphans_max: user 1 has a share" wait_for 10 orphans 8
		check "orphans_max: user 2 has closed" timeout 60 python3 "$death" drop \
			"$AFR_PEER" $((port + 1)) 1 2
		check "orphans_max: user 2 has one" wait_for 10 orphans 9
		barrier "dropped $port"
		check "orphans_max: all have ended" wait_for 20 orphans 0
		echo 8192 >/proc/sys/net/afrdma/orphans_max
	fi
	port=$((port + 1))
	barrier "over $port"
}

# With mem_max 0 each ring gets only its first few pages, which mem_max never refuses.
no_pages() {
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		start_server serve
		check "mem_max 0: the server ended without an error" wait "$server"
	else
		barrier "listens $port"
		check "mem_max 0: EAGAIN, then the stream continues" timeout 60 python3 "$death" \
			starved "$AFR_PEER" $port >"$work/out" 2>&1
		sed 's/^/# /' "$work/out"
	fi
	barrier "over $port"
}

# unread reset|read WHEN: with mem_max 0, guest a sends without reading until send() blocks.
# Meanwhile bytes from b wait in a's TCP socket, as a's receive ring gets no more pages. Then b
# resets the connection ("reset"), and send() must fail; or b reads and mem_max of a is restored
# ("read"), and send() must return soon. The name of the test ends in "send() returns when WHEN".
# Upgrades are off: an attempt would run the connection worker, and could hide that nothing else
# does.
unread() {
	port=$((port + 1))
	if [ "$AFR_ROLE" = b ]; then
		start_server flood "$1"
		check "mem_max 0, unread bytes: the peer ended with $1" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
	else
		barrier "listens $port"
		echo 0 >/proc/sys/net/afrdma/upgrade
		check "mem_max 0, unread bytes: send() returns when $2" timeout 60 python3 \
			"$death" unread "$AFR_PEER" $port "$1" >"$work/out" 2>&1
		echo 1 >/proc/sys/net/afrdma/upgrade
		sed 's/^/# /' "$work/out"
	fi
	barrier "over $port"
}

# A host may use every address of a /64. So a /64 that has link groups gets another one only if it
# has fewer groups than can still be created before groups_max is reached. With groups_max 3 it gets
# two, and the third is left for IPv4.
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
		check "groups_max and a /64: the server ended without an error" wait "$server"
		sed 's/^/# /' "$work/serve.$port"
		echo 1024 >/proc/sys/net/afrdma/groups_max
	else
		for i in 1 2 3; do ip addr add "fd77::a$i/64" dev eth0 nodad; done
		barrier "listens $port"
		check "groups_max and a /64: two addresses and IPv4 on RDMA" timeout 60 python3 \
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
# This test creates the first link. A connection that can use an existing link needs neither a new
# group nor a link request, so groups_max 0 and link_requests_max 0 are tested before it.
refused attaches_max 0 b ATTACH_LIMIT over_limit peer
refused mem_max 120 a RING_LIMIT ring_no_memory
prefix
no_pages
unread reset "the peer resets"
unread read "there are pages and the peer reads"
no_orphans
no_orphans_anywhere
kept_open
dropped
barrier end
rm -rf "$work"
exit 0
