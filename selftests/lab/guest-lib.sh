# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For test scripts that "run" starts in the guests:
#
#	. "$AFR_LAB/guest-lib.sh"
#
# barrier NAME [SECONDS]	both guests meet; false when the other one has ended
# wait_for SECONDS CMD...	true as soon as CMD is; false when time is over
# say WORDS			a line on the console
# ok NAME, not_ok NAME WHY, skip NAME WHY
#				one KTAP line each; any not_ok fails the run
# check NAME CMD...		ok if CMD succeeds, else not_ok
# put KEY VALUE, get KEY [SECONDS]
#				pass a small value to the other guest
#
# Where a failure matters, give "set -euo pipefail" too.  A NAME is used once
# in a script: barriers and keys are files in a folder both guests see.

say() { echo "# $AFR_ROLE: $*"; }

afr_ktap() {
	echo "$*"
	echo "$*" >>"$AFR_OUT/ktap"
}

ok() { afr_ktap "ok - $1"; }
not_ok() { afr_ktap "not ok - $1 # ${2:-}"; }
skip() { afr_ktap "ok - $1 # SKIP $2"; }

check() {
	local name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name" "failed with $?: $*"; return 1; fi
}

wait_for() {
	local end=$((SECONDS + $1 + 1))
	shift
	until "$@"; do
		((SECONDS < end)) || { say "gave up waiting for: $*"; return 1; }
		sleep 0.1
	done
}

# True when FILE is there; ends the waiting when the other guest has ended.
afr_there() {
	[ ! -e "$1" ] || return 0
	[ ! -e "$AFR_SHARED/done.$AFR_OTHER" ] && return 1
	# It may have been there and gone on to its end between the two looks.
	[ -e "$1" ] && return 0
	afr_other_ended=yes
}

afr_wait_file() {
	afr_other_ended=no
	wait_for "$2" afr_there "$1" || return 1
	[ $afr_other_ended = no ] || { say "the other guest has ended"; return 1; }
}

barrier() {
	[ "$AFR_GUESTS" = 2 ] || return 0
	: >"$AFR_SHARED/barrier.$1.$AFR_ROLE"
	afr_wait_file "$AFR_SHARED/barrier.$1.$AFR_OTHER" "${2:-120}" ||
		{ say "nobody at barrier $1"; return 1; }
}

put() {
	printf '%s\n' "$2" >"$AFR_SHARED/tmp.$1.$AFR_ROLE"
	mv "$AFR_SHARED/tmp.$1.$AFR_ROLE" "$AFR_SHARED/key.$1.$AFR_ROLE"
}

get() {
	afr_wait_file "$AFR_SHARED/key.$1.$AFR_OTHER" "${2:-120}" >&2 || return 1
	cat "$AFR_SHARED/key.$1.$AFR_OTHER"
}

# From here on this host is gone, as far as the network can tell, and back again.
# Not by "ip link set eth0 down": QEMU then takes no more frames from the link, and
# the other guest's, which cannot get rid of its own, stands still until it does.
cut_network() {
	tc qdisc add dev eth0 clsact &&
		tc filter add dev eth0 ingress matchall action drop &&
		tc filter add dev eth0 egress matchall action drop
}
mend_network() { tc qdisc del dev eth0 clsact; }
