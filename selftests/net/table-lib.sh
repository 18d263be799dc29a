# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # used by the scripts that source this
#
# For scripts that run the table of afr_test, or rogue. Besides functions, defines:
#	afr_test, rogue		paths of the programs, which are built on the host
#	slow_table, slow_rogue	options for their time limits, which depend on this guest's kernel
#	failures		0; run_part sets it to 1 if its program fails
# The function set_subset sets:
#	subset, rogue_subset	options for afr_test and for rogue: slow_table or slow_rogue, and
#				the options that set_subset's arguments ask for
#	with_table, with_rogue	yes or no: whether to run the table, and rogue

build="$AFR_SRC/build/net"
afr_test="$build/afr_test" rogue="$build/rogue"
failures=0

[ -x "$afr_test" ] || {
	not_ok "programs" "missing: make -C selftests/net on the host first"
	exit 1
}

# Time limits of the rows; kernels with debugging checks are slow, and get more time.
case $AFR_KERNEL in
*debug*) slow_table=(--timeout 90 --limit 1800) slow_rogue=(--patience 20) ;;
*) slow_table=(--timeout 40) slow_rogue=(--patience 5) ;;
esac

set_subset() {
	local quick=(--quick)

	with_table=yes with_rogue=yes
	case ${1:-} in
	quick) shift ;;
	full) quick=(); shift ;;
	esac
	case ${1:-} in
	--no-rogue) with_rogue=no; shift ;;
	--only-rogue) with_table=no; shift ;;
	esac
	subset=("${slow_table[@]}" "${quick[@]}" "$@")
	rogue_subset=("${slow_rogue[@]}" "${quick[@]}")
	[ $with_table = yes ] || rogue_subset+=("$@")
}

# The module's counters must not be the only proof of RDMA. So nftables counts the bytes of RoCE
# that enter and leave this guest, and rxe counts its packets; both counts must account for the
# bytes that the module counts as received and sent by RDMA. nftables does not see packets that rxe
# sends to its own host. There are no such packets if client and server of the table run in
# different guests, since the few connections that rows open within a guest stay on TCP.
# loopback.sh, whose connections within a guest do move to RDMA, does not call these functions.
witness_read() {
	"$AFR_SRC/build/tools/smctl" stats | awk '$1 ~ /^[rt]x_bytes_rdma$/ { print $1, $2 }'
	nft list table inet witness |
		awk '$1 == "counter" { name = $2 } $1 == "packets" { print name, $4 }'
	rdma statistic show link "$AFR_DEV/1" | grep -oE '(sent|rcvd)_pkts [0-9]+'
}

witness_begins() {
	[ "$AFR_RDMA" = rxe ] && [ -n "$AFR_MODULE" ] || return 0
	nft -f - <<-'END' || { not_ok "witness" "nft does not work here"; return; }
	table inet witness {
		counter in { }
		counter out { }
		chain input {
			type filter hook input priority 0; udp dport 4791 counter name in;
		}
		chain output {
			type filter hook output priority 0; udp dport 4791 counter name out;
		}
	}
	END
	witness_read >/tmp/witness.before
}

# witness_ends NAME: compare the counters with those at witness_begins
witness_ends() {
	[ -e /tmp/witness.before ] || return 0
	witness_read >/tmp/witness.after
	nft delete table inet witness
	witness_judge "$1" "$(awk 'NR == FNR { old[$1] = $2; next }
		{ printf "%s=%.0f\n", $1, $2 - old[$1] }' \
		/tmp/witness.before /tmp/witness.after | xargs)"
	rm /tmp/witness.*
}

# witness_judge NAME "COUNTER=INCREASE ...": check that the increases account for the bytes that the
# module counts. A packet of rxe carries 4096 bytes at most.
witness_judge() {
	local rx_bytes_rdma=0 tx_bytes_rdma=0 in=0 out=0 sent_pkts=0 rcvd_pkts=0 word
	for word in $2; do local "${word?}"; done
	if ((in >= rx_bytes_rdma && out >= tx_bytes_rdma && rcvd_pkts * 4096 >= rx_bytes_rdma &&
		sent_pkts * 4096 >= tx_bytes_rdma)); then
		ok "$1: RoCE packets account for the bytes of RDMA"
		say "$1: $2"
	else
		not_ok "$1: RoCE packets account for the bytes of RDMA" "$2"
	fi
}

# forward PART: pass on the KTAP of a program, with PART before each test name
forward() {
	local part=$1 line last=""

	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$AFR_OUT/table.$part"
		case $line in
		"ok "*" # SKIP "*)
			line=${line#ok * }
			skip "$part ${line%% *}" "${line#* # SKIP }"
			;;
		"ok "*) ok "$part ${line#ok * }" ;;
		"not ok "*) last=${line#not ok * } ;;
		"# $last: "*)
			[ -z "$last" ] || not_ok "$part $last" "${line#"# $last: "}"
			last=""
			;;
		"# seed "*) say "$part: ${line#"# "}" ;;
		"Bail out!"*) not_ok "$part" "$line" ;;
		esac
	done
}

# run_part NAME PROGRAM ARGUMENTS...: run a program that prints KTAP, and pass on its results
run_part() {
	local part=$1

	shift
	"$@" 2>&1 | forward "$part"
	# The program may have failed without printing "not ok".
	if [ "${PIPESTATUS[0]}" != 0 ]; then
		not_ok "$part" "ended with an error"
		failures=1
	fi
}

run_rogue() {
	local orphans=/proc/sys/net/afrdma/orphan_timeout_ms
	modprobe -q tun 2>/dev/null
	# Rows of rogue that send no FINACK leave orphans. End each after 5 s without progress. The
	# setting is not restored, because an orphan that has made progress within its 5 s restarts
	# its timer with the current value.
	[ ! -e $orphans ] || echo 5000 >$orphans
	run_part rogue "$rogue" --host "$AFR_ME" "${rogue_subset[@]}"
	run_part rogue6 "$rogue" --host "$AFR_ME" --inet6 "${rogue_subset[@]}"
}
