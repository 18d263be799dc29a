#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What happens in the guests of "make demo" (run.sh boots them).  Host b serves,
# host a asks, and tells the story in a file that run.sh prints as it grows.
# Every claim is checked by this script before it is printed.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
name=$(basename "$DEMO_FILE")
url=http://$AFR_PEER:8000
share=99		# per cent of the file's bytes that must go by RDMA

tell() { printf '%s\n' "$*" >>"$AFR_SHARED/story"; }
tell_file() { sed 's/^/      /' "$1" >>"$AFR_SHARED/story"; }
# The story ends here, with what there is to see; what was started, too.
die() {
	tell "   FAILED on host $AFR_ROLE: $*"
	not_ok "demo" "$*"
	"$smctl" conn
	"$smctl" stats | awk '$2 != 0'
	# shellcheck disable=SC2046 # words
	kill $(jobs -p) 2>/dev/null
	wait
	exit 1
}

stat_of() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }
# bytes NAME: what one of the packet filter's counters has seen.
bytes() {
	nft list counter inet demo "$1" | awk '/packets/ { print $4 }'
}
packets() { rdma statistic show link rxe0/1 | grep -o "$1 [0-9]*" | cut -d ' ' -f 2; }
listens() { ss -Htln "sport = :$1" | grep -q .; }
has_conn() { "$smctl" conn "$@" >/dev/null 2>&1; }
percent() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", 100 * a / b }'; }
at_least() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { exit !(b > 0 && 100 * a / b >= p) }'; }
mega() { awk -v n="$1" 'BEGIN { printf "%.1f", n / 1e6 }'; }

# What this host's counters say, a line each.
counters() {
	local name
	for name in tx_bytes_rdma tx_bytes_tcp rx_bytes_rdma rx_bytes_tcp; do
		echo "$name=$(stat_of $name)"
	done
	echo "udp_out=$(bytes udp_out) tcp_out=$(bytes tcp_out) packets=$(packets sent_pkts)"
}
# since BEFORE NAME: how far a counter has come.
since() {
	local now
	now=$(counters | tr ' ' '\n' | sed -n "s/^$2=//p")
	echo $((now - $(tr ' ' '\n' <<<"$1" | sed -n "s/^$2=//p")))
}

# The packet filter is a witness that neither AF_RDMA nor rxe can talk to.
witness() {
	nft -f - <<-END || die "nft does not work here"
	table inet demo {
		counter udp_out { }
		counter tcp_out { }
		chain out {
			type filter hook output priority 0
			ip daddr $AFR_PEER udp dport 4791 counter name udp_out
			ip daddr $AFR_PEER meta l4proto tcp counter name tcp_out
		}
	}
	END
}

### Host b

host_b() {
	local web iperf before n
	mkdir /tmp/www
	cp "$DEMO_FILE" "$AFR_SRC/COPYING" /tmp/www/ || die "no room for $name"
	(cd /tmp/www && sha256sum "$name" COPYING) >"$AFR_SHARED/sums" || die "sha256sum"
	cd /tmp/www || die "no /tmp/www"
	"$smctl" run -- python3 -u -m http.server 8000 --bind "$AFR_ME" >"$AFR_OUT/http" 2>&1 &
	web=$!
	"$smctl" run -- iperf3 -s >"$AFR_OUT/iperf3" 2>&1 &
	iperf=$!
	wait_for 60 listens 8000 || die "the web server does not listen"
	wait_for 60 listens 5201 || die "iperf3 does not listen"
	barrier served

	# iperf3 runs, a looks.
	barrier iperf3 300 || die "a had no luck with iperf3"

	# The file.
	before=$(counters)
	barrier fetch
	barrier fetched 600 || die "a did not get the file"
	put file "$(for n in tx_bytes_rdma tx_bytes_tcp udp_out tcp_out packets; do
			since "$before" "$n"; done | xargs)"

	# A client that is plain TCP; its connection is open now.
	barrier plain 120 || die "a did not come with plain TCP"
	wait_for 20 has_conn mode plain || die "no plain connection"
	"$smctl" conn mode plain >"$AFR_SHARED/plain"
	grep -q 'reason CLIENT_PLAIN' "$AFR_SHARED/plain" ||
		die "the plain connection does not give CLIENT_PLAIN as its reason"
	barrier looked
	barrier end 120
	kill $web $iperf
	wait
}

### Host a

# Show what is there while a connection is open; the QP must be the link's.
look() {
	local qpn
	"$smctl" conn path rdma >"$AFR_OUT/conn" 2>&1 || return 1
	"$smctl" link >"$AFR_OUT/link" || return 1
	rdma res show qp link rxe0 >"$AFR_OUT/qp"
	qpn=$("$smctl" -j link | grep -o '"qpn": *[0-9]*' | grep -o '[0-9]*$' | head -n 1)
	[ -n "$qpn" ] || die "smctl link names no queue pair"
	grep "lqpn $qpn " "$AFR_OUT/qp" >"$AFR_OUT/our_qp" ||
		die "rdma res show qp does not know queue pair $qpn"
}

fetch() {
	local pid next=10 start=$SECONDS looked=no
	"$smctl" run -- curl -sS -o /tmp/got -w '%{size_header} %{size_download} %{speed_download} %{time_total}' \
		"$url/$name" >"$AFR_OUT/curl" 2>&1 &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		if [ $looked = no ] && look; then looked=yes; fi
		if ((SECONDS - start >= next)); then
			next=$((next + 10))
			tell "      $((SECONDS - start)) s: $(mega "$(stat -c %s /tmp/got 2>/dev/null || echo 0)") MB have arrived"
		fi
		sleep 0.3
	done
	wait $pid || die "curl: $(cat "$AFR_OUT/curl")"
	[ $looked = yes ] || die "no connection was seen on path rdma"
}

run_iperf3() {
	local before rdma tcp
	tell "3. iperf3, unmodified on both ends, under \"smctl run\""
	before=$(counters)
	timeout 120 "$smctl" run -- iperf3 -c "$AFR_PEER" -t 5 >"$AFR_OUT/iperf3" 2>&1 ||
		die "iperf3: $(tail -n 2 "$AFR_OUT/iperf3" | xargs)"
	rdma=$(since "$before" tx_bytes_rdma)
	tcp=$(since "$before" tx_bytes_tcp)
	grep -E 'sender|receiver' "$AFR_OUT/iperf3" >"$AFR_OUT/figures"
	tell_file "$AFR_OUT/figures"
	tell "   $rdma bytes by RDMA, $tcp by TCP (until there was a link)"
	[ "$AFR_ACCEL" = kvm ] ||
		tell "   this is $AFR_ACCEL on $(uname -r): compare the figure with nothing but itself"
	# It is timed: on a slow machine what goes by TCP at first weighs more.
	at_least "$rdma" $((rdma + tcp)) 90 || die "iperf3 ran on TCP"
	ok "iperf3"
}

the_file() {
	local before size header got speed took tx_rdma tx_tcp udp tcp packets rx_rdma rx_tcp
	size=$(stat -c %s "$DEMO_FILE")
	tell "4. $name ($(mega "$size") MB): python3 -m http.server on b, curl on a, both unmodified," \
	     "under \"smctl run\""
	before=$(counters)
	barrier fetch
	fetch
	rx_rdma=$(since "$before" rx_bytes_rdma)
	rx_tcp=$(since "$before" rx_bytes_tcp)
	barrier fetched
	read -r tx_rdma tx_tcp udp tcp packets < <(get file)
	read -r header got speed took <"$AFR_OUT/curl"
	tell "   it took $took s: $(mega "$speed") MB/s"
	[ "$(sha256sum </tmp/got | cut -d ' ' -f 1)" = "$(sed -n "s/ .*$name\$//p" "$AFR_SHARED/sums")" ] ||
		die "the checksums differ"
	tell "   sha256 on a and on b: equal"
	tell "   while it ran, on a: smctl conn path rdma; smctl link; rdma res show qp"
	tell_file "$AFR_OUT/conn"
	tell_file "$AFR_OUT/link"
	tell_file "$AFR_OUT/our_qp"

	tell "5. Which way did the bytes go?"
	tell "   AF_RDMA on b, sent:      $tx_rdma by RDMA, $tx_tcp by TCP"
	tell "   AF_RDMA on a, received:  $rx_rdma by RDMA, $rx_tcp by TCP"
	tell "   curl, received:          $got of the file, $header of HTTP header"
	tell "   rxe on b, sent:          $packets packets"
	tell "   packet filter on b, out: $udp bytes in UDP 4791 (RoCEv2), $tcp in TCP"
	[ "$got" -eq "$size" ] || die "curl got $got of $size bytes"
	[ "$tx_rdma $tx_tcp" = "$rx_rdma $rx_tcp" ] ||
		die "a and b do not count the same"
	[ $((rx_rdma + rx_tcp)) -eq $((got + header)) ] ||
		die "the counters do not add up to what curl received"
	at_least "$tx_rdma" $((tx_rdma + tx_tcp)) $share ||
		die "only $(percent "$tx_rdma" $((tx_rdma + tx_tcp))) % went by RDMA"
	at_least "$udp" "$size" $share || die "UDP 4791 carried less than the file"
	at_least $((size - tcp)) "$size" $share || die "TCP carried $tcp bytes"
	at_least $((packets * 4096)) "$size" $share || die "rxe sent too few packets"
	file_share=$(percent "$tx_rdma" $((tx_rdma + tx_tcp)))
	tell "   the sums are equal; $file_share % by RDMA"
	ok "file"
}

plain_client() {
	local pid
	tell "6. A client that is plain TCP (curl without smctl) and the same AF_RDMA server"
	curl -sS --limit-rate 1M -o /dev/null "$url/$name" &
	pid=$!
	barrier plain
	barrier looked || die "b did not look"
	kill $pid
	wait $pid 2>/dev/null
	tell "   on b: smctl conn mode plain"
	tell_file "$AFR_SHARED/plain"
	timeout 60 curl -sS -o /tmp/copying "$url/COPYING" || die "the plain client was not served"
	[ "$(sha256sum </tmp/copying | cut -d ' ' -f 1)" = "$(sed -n 's/ .*COPYING$//p' "$AFR_SHARED/sums")" ] ||
		die "the plain client got something else"
	tell "   it was served, and the checksum is right"
	ok "plain"
}

host_a() {
	tell "   Linux $(uname -r), $AFR_ACCEL, $AFR_SMP CPU each; rxe (Soft-RoCE) over $AFR_MTU byte frames;" \
	     "up after $(cut -d. -f1 /proc/uptime) s"
	barrier served || die "b does not serve"
	run_iperf3
	barrier iperf3
	the_file
	plain_client
	tell "   smctl stats on a, what is not 0:"
	"$smctl" stats | awk '$2 != 0' >"$AFR_OUT/stats"
	tell_file "$AFR_OUT/stats"
	cat >"$AFR_SHARED/proven" <<-END
	$file_share % of $(stat -c %s "$DEMO_FILE") bytes went by RDMA between programs that know only TCP (curl, python3), the checksums are equal; iperf3 ran by RDMA; a plain TCP client got what it asked for from the same server. Linux $(uname -r), $AFR_ACCEL.
	END
	barrier end
}

[ -n "$AFR_MODULE" ] || die "no afrdma.ko"
witness
"host_$AFR_ROLE"
