#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: a user or peer that fills ring memory does not
# stop others. When unread data of one user fills the memory of connections on TCP, other users
# still get RDMA; and when there is no memory for RDMA, their streams continue on TCP, and both ends
# report the reason. No single peer or user gets all the memory that pinned rings may use, not even
# by leaving RDMA with unread bytes. Idle connections that have left RDMA, and connections that have
# ended, hold no pages.
# shellcheck disable=SC2317 # functions are called by "wait_for", "check" and "$part"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

memory=$AFR_SRC/selftests/net/memory.py
trap '' PIPE	# end() writes to processes that may have failed
work=$(mktemp -d)
mem_max=/proc/sys/net/afrdma/mem_max
before=$(cat "$mem_max")
declare -A pid fd

smctl() { "$AFR_SRC/build/tools/smctl" "$@"; }
json() { python3 -c "import json, sys; x = json.load(sys.stdin); print($1)"; }
reason() { smctl -j reason name "$1" | json 'x[0]["number"] if x else 0'; }
counted() { smctl -j stats name "$1" | json 'x[0]["value"]'; }
pages() { smctl -j info | json 'x[0]["ring_pages"]'; }
on_rdma() { smctl -j conn path rdma | json 'len(x)'; }
printed() { grep -q "$2" "$work/$1"; }
more_than() { [ "$("$1")" -gt "$2" ]; }
fewer_on_rdma() { [ "$(on_rdma)" -lt "$1" ]; }
none() { [ "$("$1")" -eq 0 ]; }
# because REASON: the number of connections of this guest that are on TCP for REASON
because() { smctl -j conn | json "sum(c.get('reason') == '$1' for c in x)"; }

# begin NAME ARGS...: start memory.py with ARGS; it runs until "end NAME"
begin() {
	local name=$1 hold
	shift
	[ -p "$work/$name.fifo" ] || mkfifo "$work/$name.fifo"	# exists if NAME was used before
	timeout 240 python3 "$memory" "$@" <"$work/$name.fifo" >"$work/$name" 2>&1 &
	pid[$name]=$!
	exec {hold}>"$work/$name.fifo"
	fd[$name]=$hold
}
end() {
	local hold=${fd[$1]}
	echo >&"$hold"
	exec {hold}>&-
	wait "${pid[$1]}"
	sed 's/^/# /' "$work/$1"
}
# ready NAME: has the process printed "ready", or has it ended, so that it never will?
ready() { printed "$1" ready || ! kill -0 "${pid[$1]}" 2>/dev/null; }
is_ready() { wait_for 60 ready "$1"; printed "$1" ready; }

# echo_at PORT REASON COUNT: at b, start a server of user 2 for COUNT calls of
# "stream_to PORT REASON" at a
echo_at() {
	timeout 120 python3 "$memory" echo "$1" 2 "$(reason "$2")" "$3" >"$work/echo.$1" 2>&1 &
	server=$!
	wait_for 20 printed "echo.$1" listening
}
echoed() {
	check "unread: the server reports $2" wait "$server"
	sed 's/^/# /' "$work/echo.$1"
}
stream_to() {
	check "unread: a stream of another user, $3" timeout 60 python3 "$memory" stream \
		"$AFR_PEER" "$1" 2 "$(reason "$2")" >"$work/stream" 2>&1
	sed 's/^/# /' "$work/stream"
}

# User 1 fills the quarter of b's ring memory that is for connections on TCP, with bytes that its
# server does not read. A connection that user 2 then opens still gets RDMA. Then mem_max of b is
# lowered, so that the pages left for RDMA do not suffice for one connection: the next connections
# of user 2 stay on TCP, and carry their streams there.
unread() {
	local server
	if [ "$AFR_ROLE" = b ]; then
		echo 2000 >"$mem_max"
		begin noread noread 7300 1 50
		wait_for 20 printed noread listening
		echo_at 7301 NONE 1
		barrier "unread: listens"
		barrier "unread: full" 240
		check "unread: the memory for TCP is full" more_than pages 499
		check "unread: no connection of user 1 is on RDMA" none on_rdma
		barrier "unread: checked"
		barrier "unread: on RDMA"
		echoed 7301 NONE
		echo 160 >"$mem_max"
		echo_at 7302 RING_LIMIT 2
		barrier "unread: no memory"
		barrier "unread: streamed"
		echoed 7302 RING_LIMIT
		end noread
		check "unread: all pages are freed" wait_for 10 none pages
		echo "$before" >"$mem_max"
	else
		barrier "unread: listens"
		begin stuff stuff "$AFR_PEER" 7300 1 50
		check "unread: all buffers are full" is_ready stuff
		barrier "unread: full" 240
		barrier "unread: checked"
		stream_to 7301 NONE "on RDMA"
		barrier "unread: on RDMA"
		barrier "unread: no memory"
		for i in 1 2; do stream_to 7302 RING_LIMIT "on TCP for RING_LIMIT, $i"; done
		barrier "unread: streamed"
		end stuff
		check "unread: all pages are freed" wait_for 20 none pages
	fi
	barrier "unread: over"
}

# hold NAME ADDRESS PORT COUNT RDMA REASON [BYTES]: at a, open COUNT connections from ADDRESS to b,
# and send BYTES bytes on each. The number RDMA says how many of them must be on RDMA; the others
# must be on TCP for REASON.
hold() {
	begin "$1" hold "$AFR_PEER" "$3" 3 "$2" "$4" "$5" "$(reason "$6")" "${7:-0}"
	check "$1: $5 of $4 on RDMA, the others on TCP for $6" is_ready "$1"
}

# RDMA may use 3072 pages of b, and each connection takes 128 of them. Guest a connects from three
# addresses, each of which is a peer to b. The first peer gets half of the pages, and the second
# peer gets half of the rest. The third peer gets less than half of what then remains: all three
# connect to the server of user 1, and a user gets at most four fifths of the pages. The server of
# user 2 still gets memory.
shares() {
	local over
	if [ "$AFR_ROLE" = b ]; then
		echo 4096 >"$mem_max"
		over=$(counted over_limit)
		begin user1 keep 7310 1
		begin user2 keep 7311 2
		wait_for 20 printed user1 listening && wait_for 20 printed user2 listening
		barrier "shares: listens"
		barrier "shares: held" 240
		check "shares: the server reports PEER_SHARE" test "$(because PEER_SHARE)" -eq 6
		check "shares: the server reports USER_SHARE" test "$(because USER_SHARE)" -eq 3
		check "shares: counted" test "$(counted over_limit)" -ge $((over + 9))
		barrier "shares: seen"
		barrier "shares: over" 240
		end user1
		end user2
		check "shares: all pages are freed" wait_for 10 none pages
		echo "$before" >"$mem_max"
	else
		ip addr add 10.77.0.101/24 dev eth0
		ip addr add 10.77.0.102/24 dev eth0
		barrier "shares: listens"
		hold first "$AFR_ME" 7310 16 12 PEER_SHARE
		hold second 10.77.0.101 7310 8 6 PEER_SHARE
		hold third 10.77.0.102 7310 4 1 USER_SHARE
		hold other_user 10.77.0.102 7311 1 1 NONE
		barrier "shares: held" 240
		barrier "shares: seen"
		end first
		wait_for 10 fewer_on_rdma 12
		hold again "$AFR_ME" 7310 4 4 NONE
		end second; end third; end other_user; end again
		barrier "shares: over" 240
		ip addr del 10.77.0.101/24 dev eth0
		ip addr del 10.77.0.102/24 dev eth0
	fi
	barrier "shares: end"
}

# Idle connections that have left RDMA hold no pages.
left() {
	if [ "$AFR_ROLE" = b ]; then
		begin user1 keep 7320 1
		wait_for 20 printed user1 listening
		barrier "left: listens"
		barrier "left: moved"
		check "left: no page is held" wait_for 10 none pages
		barrier "left: seen"
		end user1
	else
		barrier "left: listens"
		hold idle "$AFR_ME" 7320 4 4 NONE
		check "left: the rings have pages" more_than pages 511
		for id in $(smctl -j conn path rdma | json '*[c["id"] for c in x], sep=" "'); do
			smctl conn move "$id" tcp
		done
		check "left: no page is held" wait_for 10 none pages
		barrier "left: moved"
		barrier "left: seen"
		end idle
	fi
	barrier "left: over"
}

# A connection that leaves RDMA with unread bytes keeps the pages of these bytes. Until the bytes
# are read, the pages count towards the share of the peer, so a peer cannot get more memory in this
# way. RDMA may use 3072 pages of b, and a single peer may have half of them: 12 connections of 128
# pages each. While 12 connections that have left RDMA keep 25 pages each, the peer can have only 9
# connections on RDMA.
unread_left() {
	if [ "$AFR_ROLE" = b ]; then
		echo 4096 >"$mem_max"
		begin user1 keep 7330 1
		wait_for 20 printed user1 listening
		barrier "unread_left: listens"
		barrier "unread_left: moved" 240
		check "unread_left: all have left RDMA" wait_for 10 none on_rdma
		check "unread_left: unread bytes" more_than pages 299
		barrier "unread_left: left"
		barrier "unread_left: limited" 240
		echo read >&"${fd[user1]}"
		check "unread_left: no page is held" wait_for 10 none pages
		barrier "unread_left: read"
		barrier "unread_left: end"
		end user1
		check "unread_left: all pages are freed" wait_for 10 none pages
		echo "$before" >"$mem_max"
	else
		barrier "unread_left: listens"
		hold movers "$AFR_ME" 7330 12 12 NONE 100000
		for id in $(smctl -j conn path rdma | json '*[c["id"] for c in x], sep=" "'); do
			smctl conn move "$id" tcp
		done
		barrier "unread_left: moved" 240
		barrier "unread_left: left"
		hold more "$AFR_ME" 7330 12 9 PEER_SHARE
		end more
		barrier "unread_left: limited" 240
		barrier "unread_left: read"
		check "unread_left: no page is held" wait_for 10 none pages
		hold granted "$AFR_ME" 7330 12 12 NONE
		end movers; end granted
		barrier "unread_left: end"
	fi
	barrier "unread_left: over"
}

barrier begin
# Only b's limits are tested, so a gets enough memory for all connections.
if [ "$AFR_ROLE" = a ]; then
	echo 1000000 >$mem_max
	echo 1000000 >/sys/module/afrdma/parameters/mem_max
fi
[ $# -gt 0 ] || set -- unread shares left unread_left
for part; do "$part"; done
barrier end
rm -rf "$work"
exit 0
