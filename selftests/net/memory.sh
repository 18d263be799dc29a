#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab (selftests/lab/run), in both guests: a user or peer that fills ring memory does
# not stop others. When unread data of one user fills the memory, other users' streams continue
# on TCP, and both ends report the reason. No single peer or user gets all the memory that pinned
# rings may use. Connections that have left RDMA, or have ended, hold no pages.
# shellcheck disable=SC2317 # functions are called by "wait_for"
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
	mkfifo "$work/$name.fifo"
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

# User 1 fills b's ring memory with bytes that its server does not read; the streams of user 2
# continue.
unread() {
	if [ "$AFR_ROLE" = b ]; then
		echo 2000 >"$mem_max"
		begin deaf deaf 7300 1 50
		wait_for 20 printed deaf listening
		timeout 120 python3 "$memory" echo 7301 2 "$(reason RING_LIMIT)" 2 \
			>"$work/echo" 2>&1 &
		local server=$!
		wait_for 20 printed echo listening
		barrier "unread: listens"
		barrier "unread: full" 240
		check "unread: ring memory is full" more_than pages 1999
		barrier "unread: streamed"
		check "unread: the server reports RING_LIMIT" wait "$server"
		sed 's/^/# /' "$work/echo"
		end deaf
		check "unread: all pages are freed" wait_for 10 none pages
		echo "$before" >"$mem_max"
	else
		barrier "unread: listens"
		begin stuff stuff "$AFR_PEER" 7300 1 50
		check "unread: all buffers are full" is_ready stuff
		barrier "unread: full" 240
		for i in 1 2; do
			check "unread: stream $i of another user, on TCP for RING_LIMIT" \
				timeout 60 python3 "$memory" stream "$AFR_PEER" 7301 2 \
				"$(reason RING_LIMIT)" >"$work/stream" 2>&1
			sed 's/^/# /' "$work/stream"
		done
		barrier "unread: streamed"
		end stuff
		check "unread: all pages are freed" wait_for 20 none pages
	fi
	barrier "unread: over"
}

# hold NAME ADDRESS PORT COUNT RDMA REASON: at a, open COUNT connections from ADDRESS to b. The
# number RDMA says how many of them must be on RDMA; the others must be on TCP for REASON.
hold() {
	begin "$1" hold "$AFR_PEER" "$3" 3 "$2" "$4" "$5" "$(reason "$6")"
	check "shares: $1: $5 of $4 on RDMA, the others on TCP for $6" is_ready "$1"
}

# RDMA may use 3072 pages of b, and each connection takes 128 of them. The first address gets half
# of the pages, the second one half of the remaining pages. The third one gets less than half of
# what then remains, since user 1 reaches the limit of a user, four fifths of the pages. Another
# user still gets memory.
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

barrier begin
# Only b's limits are tested, so a gets enough memory for all connections.
if [ "$AFR_ROLE" = a ]; then
	echo 1000000 >$mem_max
	echo 1000000 >/sys/module/afrdma/parameters/mem_max
fi
[ $# -gt 0 ] || set -- unread shares left
for part; do "$part"; done
barrier end
rm -rf "$work"
exit 0
