# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions for test scripts that "run" starts in the guests:
#
#	. "$AFR_LAB/guest-lib.sh"
#
# barrier NAME [SECONDS]	wait until the other guest is here, too; false if its script ends
#				without having been here, or after SECONDS
# wait_for SECONDS CMD...	true as soon as CMD succeeds; false after SECONDS
# say WORDS			print a line on the console
# ok NAME, not_ok NAME WHY, skip NAME WHY
#				print one KTAP line; any not_ok fails the run
# check NAME CMD...		ok if CMD succeeds, else not_ok
# check_within SECONDS NAME CMD...
#				the same for a program that is ended after SECONDS; its output is
#				printed as comments, the last line is the reason of not_ok
# put KEY VALUE, get KEY [SECONDS]
#				pass a small value to the other guest; wait for its value, print it
# cut_network, mend_network	drop all packets of this guest; stop dropping them
#
# Scripts that must stop at a failure use "set -euo pipefail". A script needs a new NAME for each
# barrier and a new KEY for each value: barriers and values are files in a folder that both guests
# share, and the files stay there. Without SECONDS, barrier and get wait two minutes.

say() { echo "# $AFR_ROLE: $*"; }

# shellcheck source=../ktap.sh
. "$AFR_SRC/selftests/ktap.sh"
afr_ktap() {
	ktap_result "$@"
	ktap_result "$@" >>"$AFR_OUT/ktap"
}

ok() { afr_ktap ok - "$1"; }
not_ok() { afr_ktap "not ok" - "$1" "${2:-}"; }
skip() { afr_ktap ok - "$1" "SKIP $2"; }

check() {
	local name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name" "failed with $?: $*"; return 1; fi
}

check_within() {
	local seconds=$1 name=$2 out rc=0
	shift 2
	out=$(timeout "$seconds" "$@" 2>&1) || rc=$?
	case $rc in
	0)	ok "$name" ;;
	124)	not_ok "$name" "not over after $seconds s" ;;
	*)	not_ok "$name" "${out##*$'\n'}" ;;
	esac
	printf '%s\n' "$out" | sed 's/^/# /'
	return $rc
}

wait_for() {
	local end=$((SECONDS + $1 + 1))
	shift
	until "$@"; do
		((SECONDS < end)) || { say "timeout waiting for: $*"; return 1; }
		sleep 0.1
	done
}

# afr_exists FILE: true if FILE exists, or if the script of the other guest has ended without
# creating it.
afr_exists() {
	[ ! -e "$1" ] || return 0
	[ ! -e "$AFR_SHARED/done.$AFR_OTHER" ] && return 1
	# The script may have created FILE and ended between the two checks.
	[ -e "$1" ] && return 0
	afr_other_ended=yes
}

# afr_wait_file FILE SECONDS: wait until the script of the other guest has created FILE; false if
# that script ends without creating it, or after SECONDS.
afr_wait_file() {
	afr_other_ended=no
	wait_for "$2" afr_exists "$1" || return 1
	[ $afr_other_ended = no ] || { say "the other guest has ended"; return 1; }
}

barrier() {
	[ "$AFR_GUESTS" = 2 ] || return 0
	: >"$AFR_SHARED/barrier.$1.$AFR_ROLE"
	afr_wait_file "$AFR_SHARED/barrier.$1.$AFR_OTHER" "${2:-120}" ||
		{ say "no peer at barrier $1"; return 1; }
}

put() {
	printf '%s\n' "$2" >"$AFR_SHARED/tmp.$1.$AFR_ROLE"
	mv "$AFR_SHARED/tmp.$1.$AFR_ROLE" "$AFR_SHARED/key.$1.$AFR_ROLE"
}

get() {
	afr_wait_file "$AFR_SHARED/key.$1.$AFR_OTHER" "${2:-120}" >&2 || return 1
	cat "$AFR_SHARED/key.$1.$AFR_OTHER"
}

# Drop all packets, so that this guest is unreachable. "ip link set eth0 down" cannot be used in a
# VM: the QEMU of this guest would read no more frames, and the QEMU of the other guest would block
# in sending.
cut_network() {
	tc qdisc add dev eth0 clsact &&
		tc filter add dev eth0 ingress matchall action drop &&
		tc filter add dev eth0 egress matchall action drop
}
mend_network() { tc qdisc del dev eth0 clsact; }
