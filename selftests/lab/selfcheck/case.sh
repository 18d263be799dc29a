#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# One case of selfcheck.sh, run in both guests; in most cases only guest b misbehaves.
set -uo pipefail
. "$AFR_LAB/guest-lib.sh"

barrier start
case $1 in
pass)	ok "pass" ;;
skip)	exit 4 ;;
exit)	[ "$AFR_ROLE" = a ] || exit 3 ;;
not_ok)	[ "$AFR_ROLE" = a ] || not_ok "on purpose" "exit code 0 all the same" ;;
alone)	[ "$AFR_ROLE" = a ] || exit 0
	# Guest b never arrives here: the barrier must fail when b's script ends, not after 600 s.
	barrier never 600 ;;
hang)	[ "$AFR_ROLE" = a ] || while :; do sleep 1; done ;;
panic)	[ "$AFR_ROLE" = a ] || { sync; echo c >/proc/sysrq-trigger; } ;;
log)	[ "$AFR_ROLE" = a ] || echo "WARNING: CPU: 0 PID: 1 at lab/selfcheck" >/dev/kmsg ;;
module:*)
	[ "$AFR_ROLE" = a ] || echo "${1#module:}" >/sys/module/afrdma/parameters/fault ;;
*)	exit 99 ;;
esac
