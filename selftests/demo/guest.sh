#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The part of "make demo" that runs in the guests, started by run.sh. Host b runs the servers, host
# a the clients. Host a writes a report into a file, to which host b adds only its own failure;
# run.sh prints the file as it grows. Host a reports figures as they were measured, and success
# only after its checks.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
name=$(basename "$DEMO_FILE")
url=http://$AFR_PEER:8000
share=99		# percentage of the file that must be carried by RDMA

report() { printf '%s\n' "$*" >>"$AFR_SHARED/story"; }
report_file() { sed 's/^/      /' "$1" >>"$AFR_SHARED/story"; }
# Report a failure, print the state of the module, end all jobs, and exit.
die() {
	report "   FAILED on host $AFR_ROLE: $*"
	not_ok "demo" "$*"
	"$smctl" conn
	"$smctl" stats | awk '$2 != 0'
	# shellcheck disable=SC2046 # words
	kill $(jobs -p) 2>/dev/null
	wait
	exit 1
}

stat_of() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }
# bytes NAME: the value of a counter of the packet filter
bytes() {
	nft list counter inet demo "$1" | awk '/packets/ { print $4 }'
}
# packets NAME: the value of a counter of the device
packets() { rdma statistic show link "$AFR_DEV/1" | grep -o "$1 [0-9]*" | cut -d ' ' -f 2; }
listens() { ss -Htln "sport = :$1" | grep -q .; }
has_conn() { "$smctl" conn "$@" >/dev/null 2>&1; }
percent() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", 100 * a / b }'; }
# at_least A B P: is A at least P percent of B?
at_least() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { exit !(b > 0 && 100 * a / b >= p) }'; }
mega() { awk -v n="$1" 'BEGIN { printf "%.1f", n / 1e6 }'; }

# The counters of this host, as NAME=VALUE.
counters() {
	local name
	for name in tx_bytes_rdma tx_bytes_tcp rx_bytes_rdma rx_bytes_tcp; do
		echo "$name=$(stat_of $name)"
	done
	echo "udp_out=$(bytes udp_out) tcp_out=$(bytes tcp_out) packets=$(packets sent_pkts)"
}
# since BEFORE NAME: print by how much counter NAME has increased since counters() printed BEFORE
since() {
	local now
	now=$(counters | tr ' ' '\n' | sed -n "s/^$2=//p")
	echo $((now - $(tr ' ' '\n' <<<"$1" | sed -n "s/^$2=//p")))
}

# The packet filter counts bytes independently of AF_RDMA and rxe.
count_packets() {
	nft -f - <<-END || die "nft does not work"
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
	cp "$DEMO_FILE" "$AFR_SRC/COPYING" /tmp/www/ || die "no space for $name"
	(cd /tmp/www && sha256sum "$name" COPYING) >"$AFR_SHARED/sums" || die "sha256sum failed"
	cd /tmp/www || die "no /tmp/www"
	"$smctl" run -- python3 -u -m http.server 8000 --bind "$AFR_ME" >"$AFR_OUT/http" 2>&1 &
	web=$!
	"$smctl" run -- iperf3 -s >"$AFR_OUT/iperf3" 2>&1 &
	iperf=$!
	wait_for 60 listens 8000 || die "the web server does not listen"
	wait_for 60 listens 5201 || die "iperf3 does not listen"
	barrier served

	# Host a runs iperf3 and checks the result.
	barrier iperf3 300 || die "iperf3 failed on a"

	# Host a fetches the file.
	before=$(counters)
	barrier fetch
	barrier fetched 600 || die "a did not receive the file"
	put file "$(for n in tx_bytes_rdma tx_bytes_tcp udp_out tcp_out packets; do
			since "$before" "$n"; done | xargs)"

	# A TCP client connects; smctl shows the connection as "plain".
	barrier plain 120 || die "the TCP client on a failed"
	wait_for 20 has_conn mode plain || die "no connection with mode plain"
	"$smctl" conn mode plain >"$AFR_SHARED/plain"
	grep -q 'reason CLIENT_PLAIN' "$AFR_SHARED/plain" ||
		die "the connection of the TCP client does not have the reason CLIENT_PLAIN"
	barrier looked
	barrier end 120
	kill $web $iperf
	wait
}

### Host a

# If a connection is on RDMA, save the state of connections, links and queue pairs; else return 1.
# The RDMA core must list the queue pair of the link.
save_state() {
	local qpn
	"$smctl" conn path rdma >"$AFR_OUT/conn" 2>&1 || return 1
	"$smctl" link >"$AFR_OUT/link" || return 1
	rdma res show qp link "$AFR_DEV" >"$AFR_OUT/qp"
	qpn=$("$smctl" -j link | grep -o '"qpn": *[0-9]*' | grep -o '[0-9]*$' | head -n 1)
	[ -n "$qpn" ] || die "smctl link shows no queue pair"
	grep "lqpn $qpn " "$AFR_OUT/qp" >"$AFR_OUT/our_qp" ||
		die "rdma res show qp does not show queue pair $qpn"
}

fetch() {
	local pid next=10 start=$SECONDS saved=no size
	local format='%{size_header} %{size_download} %{speed_download} %{time_total}'
	"$smctl" run -- curl -sS -o /tmp/got -w "$format" "$url/$name" >"$AFR_OUT/curl" 2>&1 &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		if [ $saved = no ] && save_state; then saved=yes; fi
		if ((SECONDS - start >= next)); then
			next=$((next + 10))
			size=$(stat -c %s /tmp/got 2>/dev/null || echo 0)
			report "      $((SECONDS - start)) s: $(mega "$size") MB received"
		fi
		sleep 0.3
	done
	wait $pid || die "curl: $(cat "$AFR_OUT/curl")"
	[ $saved = yes ] || die "no connection was on path rdma"
}

run_iperf3() {
	local before rdma tcp
	report "3. iperf3, unmodified at both ends, under \"smctl run\""
	before=$(counters)
	timeout 120 "$smctl" run -- iperf3 -c "$AFR_PEER" -t 5 >"$AFR_OUT/iperf3" 2>&1 ||
		die "iperf3: $(tail -n 2 "$AFR_OUT/iperf3" | xargs)"
	rdma=$(since "$before" tx_bytes_rdma)
	tcp=$(since "$before" tx_bytes_tcp)
	grep -E 'sender|receiver' "$AFR_OUT/iperf3" >"$AFR_OUT/figures"
	report_file "$AFR_OUT/figures"
	report "   $rdma bytes by RDMA, $tcp by TCP (before a link was up)"
	[ "$AFR_ACCEL" = kvm ] ||
		report "   in a guest with $AFR_ACCEL the absolute figures are meaningless"
	# 90 percent suffice here: iperf3 runs for a fixed time, so on a slow machine the first
	# bytes, which TCP carries, are a larger share.
	at_least "$rdma" $((rdma + tcp)) 90 || die "iperf3 ran on TCP"
	ok "iperf3"
}

the_file() {
	local before size header got speed took tx_rdma tx_tcp udp tcp packets rx_rdma rx_tcp
	size=$(stat -c %s "$DEMO_FILE")
	report "4. $name ($(mega "$size") MB): python3 -m http.server on b, curl on a," \
	       "both unmodified, under \"smctl run\""
	before=$(counters)
	barrier fetch
	fetch
	rx_rdma=$(since "$before" rx_bytes_rdma)
	rx_tcp=$(since "$before" rx_bytes_tcp)
	barrier fetched
	read -r tx_rdma tx_tcp udp tcp packets < <(get file)
	read -r header got speed took <"$AFR_OUT/curl"
	report "   it took $took s: $(mega "$speed") MB/s"
	[ "$(sha256sum </tmp/got | cut -d ' ' -f 1)" = \
	  "$(sed -n "s/ .*$name\$//p" "$AFR_SHARED/sums")" ] || die "the checksums differ"
	report "   sha256 on a and on b: equal"
	report "   on a, during the transfer: smctl conn path rdma; smctl link; rdma res show qp"
	report_file "$AFR_OUT/conn"
	report_file "$AFR_OUT/link"
	report_file "$AFR_OUT/our_qp"

	report "5. Which path carried the bytes?"
	report "   AF_RDMA on b, sent:      $tx_rdma by RDMA, $tx_tcp by TCP"
	report "   AF_RDMA on a, received:  $rx_rdma by RDMA, $rx_tcp by TCP"
	report "   curl, received:          $got of the file, $header of HTTP header"
	report "   rxe on b, sent:          $packets packets"
	report "   packet filter on b, out: $udp bytes in UDP 4791 (RoCEv2), $tcp in TCP"
	[ "$got" -eq "$size" ] || die "curl received $got of $size bytes"
	[ "$tx_rdma $tx_tcp" = "$rx_rdma $rx_tcp" ] ||
		die "the counters of a and b differ"
	[ $((rx_rdma + rx_tcp)) -eq $((got + header)) ] ||
		die "the counters do not add up to what curl received"
	at_least "$tx_rdma" $((tx_rdma + tx_tcp)) $share ||
		die "only $(percent "$tx_rdma" $((tx_rdma + tx_tcp))) % was carried by RDMA"
	at_least "$udp" "$size" $share || die "UDP 4791 carried less than the file"
	at_least $((size - tcp)) "$size" $share || die "TCP carried $tcp bytes"
	at_least $((packets * 4096)) "$size" $share || die "rxe sent too few packets"
	file_share=$(percent "$tx_rdma" $((tx_rdma + tx_tcp)))
	report "   the sums are equal; $file_share % by RDMA"
	ok "file"
}

tcp_client() {
	local pid
	report "6. A TCP client (curl without smctl) with the same AF_RDMA server"
	curl -sS --limit-rate 1M -o /dev/null "$url/$name" &
	pid=$!
	barrier plain
	barrier looked || die "b did not check the connection"
	kill $pid
	wait $pid 2>/dev/null
	report "   on b: smctl conn mode plain"
	report_file "$AFR_SHARED/plain"
	timeout 60 curl -sS -o /tmp/copying "$url/COPYING" || die "the TCP client was not served"
	[ "$(sha256sum </tmp/copying | cut -d ' ' -f 1)" = \
	  "$(sed -n 's/ .*COPYING$//p' "$AFR_SHARED/sums")" ] ||
		die "the TCP client received a different file"
	report "   it was served, and the checksum is right"
	ok "plain"
}

host_a() {
	report "   Linux $(uname -r), $AFR_ACCEL, $AFR_SMP CPU each; rxe (Soft-RoCE)," \
	       "MTU $AFR_MTU; booted in $(cut -d. -f1 /proc/uptime) s"
	barrier served || die "b does not serve"
	run_iperf3
	barrier iperf3
	the_file
	tcp_client
	report "   smctl stats on a, counters that are not 0:"
	"$smctl" stats | awk '$2 != 0' >"$AFR_OUT/stats"
	report_file "$AFR_OUT/stats"
	echo "$file_share % of $(stat -c %s "$DEMO_FILE") bytes went by RDMA between unmodified" \
		"TCP programs (curl, python3), the checksums are equal; iperf3 ran on RDMA; a TCP" \
		"client was served by the same server. Linux $(uname -r), $AFR_ACCEL." \
		>"$AFR_SHARED/proven"
	barrier end
}

[ -n "$AFR_MODULE" ] || die "no afrdma.ko"
count_packets
"host_$AFR_ROLE"
