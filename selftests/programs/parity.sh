# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# Used by suites.sh and python.sh: runs the same tests on TCP, on AF_RDMA and on AF_SMC, within one
# guest. A test that passes on TCP must pass on AF_RDMA; exceptions are in suites.differences, with
# reasons. Failures on AF_SMC are reported, but do not fail the run.
#
#	--on "tcp rdma"		only these families; without tcp nothing is compared
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

here=$AFR_SRC/selftests/programs
built=$AFR_SRC/build/programs
smctl=/tmp/bin/smctl
families="tcp rdma smc"
home=			# suites.sh sets this to the path of home.so

counter() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }

# Packets that the RDMA device has received, including those that it sent to itself.
packets() { cat "/sys/class/infiniband/$AFR_DEV/ports/1/hw_counters/rcvd_pkts"; }

# counts RESULTS: print how many tests have passed, failed and so on
counts() {
	awk '$2 != "begins" { n[$2]++ } END { for (word in n) printf "%d %s ", n[word], word }' "$1"
}

# Set up this guest. Exits with 4 (skip) if the module or home.so is missing.
parity_begin() {
	[ -n "$AFR_MODULE" ] || { skip "parity" "no afrdma.ko"; exit 4; }
	[ -x "$built/home.so" ] || { skip "parity" "not built: make tools programs"; exit 4; }
	mkdir /tmp/bin && cp "$AFR_SRC"/build/tools/{smctl,libafrdma-preload.so} \
		"$built"/{home,smc,vsock}.so /tmp/bin
	sysctl -qw net.afrdma.upgrade_bytes=0
	case $families in *smc*) python3 "$here/smc_eid.py" >"$AFR_OUT/smc_eid.log" 2>&1 ;; esac
}

# If AF_SMC is among the families, remove the RDMA device and add it again: otherwise SMC would
# keep its queue pairs for another ten minutes, and the ledger (lab/ledger.sh) would report them.
# Then wait for the other guest.
parity_end() {
	case $families in *smc*)
		rdma link del "$AFR_DEV" && rdma link add "$AFR_DEV" type "$AFR_RDMA" netdev eth0 ;;
	esac
	barrier end 2400
}

# under FAMILY: set the array "under" to the words that run a program on FAMILY
under() {
	local preload=$home
	[ "$1" != smc ] || preload+=" /tmp/bin/smc.so"
	under=(env "HOME_V4=$AFR_ME" "HOME_V6=$AFR_ME6" "LD_PRELOAD=$preload")
	[ "$1" != rdma ] || under+=("$smctl" run --)
}

# Every half minute, print how many tests have ended, unless nothing was written to the results or
# their log since the last time. Without this output, a run that takes minutes would look stalled.
show_progress() {
	local before='' now
	while sleep 30; do
		now=$(wc -c "$results" "$results.log")
		[ "$now" = "$before" ] || say "$1: $(counts "$results")"
		before=$now
	done
}

# on SUITE FAMILY: run the tests of SUITE on FAMILY, in an empty folder
on() {
	local suite=$1 family=$2 from=$SECONDS progress
	results=$AFR_OUT/$suite.$family
	: >"$results"
	under "$family"
	mkdir -p "/tmp/work/$suite.$family" && cd "/tmp/work/$suite.$family" || return
	show_progress "$suite on $family" &
	progress=$!
	# A "wait" of the suite must not wait for show_progress, so the suite runs in a subshell.
	("suite_$suite") >>"$results.log" 2>&1
	kill "$progress"
	cd / && rm -rf "/tmp/work/$suite.$family"
	say "$suite on $family: $((SECONDS - from)) s, $(counts "$results")"
}

# difference SUITE FAMILY LISTED: write to SUITE.FAMILY.delta which tests pass on TCP but not on
# FAMILY, as comments if the file LISTED names them; which tests pass although they "always" fail
# according to LISTED; and a summary
difference() {
	awk -v suite="$1" -v listed="$3" -f "$here/compare.awk" "$AFR_OUT/$1.tcp" \
		"$AFR_OUT/$1.$2" >"$AFR_OUT/$1.$2.delta"
}

# went_up SUITE NAME BEFORE: check that counter NAME is above BEFORE, which shows that AF_RDMA was
# used
went_up() {
	local now
	now=$(counter "$2")
	if [ "$now" -gt "$3" ]; then ok "$1: $2: $3 to $now"; else not_ok "$1: $2" "still $now"; fi
}

# At least so many tests of a suite must pass on TCP, so that the comparison means something. For
# the suite "python", python.sh checks that each module has tests that pass.
declare -A least=([redis]=250 [libuv]=70 [memcached]=20000 [stress_ng]=8 [socat]=80 [vsock]=12)

enough_pass() { [ "$(grep -c ' pass$' "$AFR_OUT/$1.tcp")" -ge "${least[$1]:-1}" ]; }

on_tcp() {
	on "$1" tcp
	check "$1: tests that pass on TCP" enough_pass "$1"
}

# no_difference DELTA: does the file DELTA contain only comments, and is the summary one of them? If
# compare.awk has failed, the summary is missing.
no_difference() { grep -q '^# [0-9]* of ' "$1" && ! grep -v '^#' "$1"; }

on_rdma() {
	local suite=$1 name before=() used=(rx_bytes_rdma conn_framed upgrade_done)
	for name in "${used[@]}"; do before+=("$(counter "$name")"); done
	on "$suite" rdma
	"$smctl" stats >"$results.stats"
	for name in "${!used[@]}"; do went_up "$suite" "${used[name]}" "${before[name]}"; done
	values[mib]=$((($(counter rx_bytes_rdma) - before[0]) >> 20))
	values[framed]=$(($(counter conn_framed) - before[1]))
	[ -e "$AFR_OUT/$suite.tcp" ] || return 0
	difference "$suite" rdma "$here/suites.differences"
	cat "$AFR_OUT/$suite.rdma.delta"
	check "$suite: no difference that is not listed" \
		no_difference "$AFR_OUT/$suite.rdma.delta"
}

on_smc() {
	local before
	before=$(packets)
	on "$1" smc
	values[packets]=$(($(packets) - before))
	[ ! -e "$AFR_OUT/$1.tcp" ] || difference "$1" smc /dev/null
}

# passes SUITE FAMILY: print how many tests pass on FAMILY. If the suite ran on TCP first, only
# tests that also pass on TCP are counted.
passes() {
	if [ -e "$AFR_OUT/$1.$2.delta" ]; then
		sed -n 's/^# \([0-9]*\) of .*/\1/p' "$AFR_OUT/$1.$2.delta"
	elif [ -e "$AFR_OUT/$1.$2" ]; then
		grep -c ' pass$' "$AFR_OUT/$1.$2"
	else
		echo -
	fi
}

# parity SUITE: run SUITE on each of $families, and add a line to $AFR_OUT/parity, the table that
# programs.sh prints
parity() {
	local suite=$1 family
	local -A values=()
	for family in tcp rdma smc; do	# TCP first: the others are compared with it
		[[ " $families " != *" $family "* ]] || "on_$family" "$suite"
	done
	printf '%-10s %7s %7s %7s %10s %8s %11s\n' "$suite" "$(passes "$suite" tcp)" \
		"$(passes "$suite" rdma)" "$(passes "$suite" smc)" "${values[framed]:--}" \
		"${values[mib]:--}" "${values[packets]:--}" >>"$AFR_OUT/parity"
}
