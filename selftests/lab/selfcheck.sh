#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Self-test of "run": cases that must pass or skip, and cases that must fail for a given reason.
#
#   selfcheck.sh GUEST [CASE...]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
# shellcheck source=../ktap.sh
. "$here/../ktap.sh"
guest=${1:?usage: selfcheck.sh GUEST [CASE...]}
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0

# case | exit code of "run" | text in its output
cases() {
	cat <<-'END'
	pass|0|PASS
	skip|4|SKIP
	exit|1|b failed: the script exited with 3
	not_ok|1|not ok - on purpose
	alone|1|a failed: the script exited with 1
	hang|1|b failed: no verdict within
	panic|1|b failed: Kernel panic
	log|1|not ok - ledger: kernel log # WARNING: CPU: 0 PID: 1 at lab/selfcheck
	module:trace|1|not ok - ledger: created is destroyed # afrdma_conn id=2 never destroyed
	module:slab|1|slab:afrdma_conn was 0, is 1
	module:pd|1|rdma:rxe0.pd was
	module:reference|1|not ok - ledger: rmmod afrdma
	module:warn|1|not ok - ledger: kernel log # WARNING: CPU
	END
	[[ $guest = *-debug ]] || return 0
	cat <<-'END'
	module:memory|1|not ok - ledger: kmemleak
	module:kasan|1|BUG: KASAN: slab-out-of-bounds
	module:lockdep|1|possible circular locking dependency
	module:sleep|1|BUG: sleeping function called from invalid context
	END
}

ko=$(AFRDMA_SRC=$here/selfcheck AFRDMA_BUILD=$top/build/selfcheck \
	"$here/build-module.sh" "$guest" 2>"$log") || { cat "$log"; exit 1; }

while IFS='|' read -r name want text; do
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	options=(--guest "$guest" --module "$ko")
	case $guest-$name in
	uml*-hang)	options+=(--timeout 20) ;;
	vm*-hang)	options+=(--timeout 60) ;;
	esac
	rc=0
	"$here/run" "${options[@]}" -- "$here/selfcheck/case.sh" "$name" >"$log" 2>&1 </dev/null ||
		rc=$?
	if [ $rc -eq "$want" ] && grep -qF -- "$text" "$log"; then
		ktap_result ok - "$guest $name"
		passed=$((passed + 1))
	else
		ktap_result "not ok" - "$guest $name" "exit code $rc (not $want), or without '$text'"
		sed 's/^/    /' "$log"
		failed=$((failed + 1))
	fi
done < <(cases)
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
