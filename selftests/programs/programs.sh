#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# "make programs": run test suites and programs, mostly third-party ones, on TCP, on AF_SMC and on
# AF_RDMA in the same guests, and print tables of the results.
#
#	programs.sh				everything; installs and downloads what is missing
#	programs.sh python|suites|rows [WORD...]	one part: all or some modules, suites, rows
#	programs.sh quick			rows of four programs, on TCP and AF_RDMA
#	programs.sh --guest NAME ...		another guest than "uml"
#
# Fails if a test of a suite passes on TCP but not on AF_RDMA, or if a row (a program of rows.sh
# that runs between the two guests) fails on TCP or on AF_RDMA, unless a *.differences file lists
# that. Also fails if too few tests of a suite pass on TCP.

# shellcheck disable=SC2119,SC2120 # python, suites and rows may have no arguments
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
src=$(cd "$here/../.." && pwd)
failed=0
cd "$src" || exit 2

# in_guests SECONDS SCRIPT...: run SCRIPT in the guests; set $folder to the folder of the results,
# and $failed to 1 unless SCRIPT passes or is skipped (status 4)
in_guests() {
	local seconds=$1 rc=0 log
	shift
	log=$(mktemp)
	selftests/lab/run --guest "$guest" --mem 1200 --build --verbose --timeout "$seconds" \
		--env "SUITES=$("$here/fetch.sh" where)" -- "$@" | tee "$log" || rc=$?
	folder=$(sed -n 's/^lab: .* s, \(.*\)$/\1/p' "$log" | tail -n 1)
	rm -f "$log"
	[ $rc -eq 0 ] || [ $rc -eq 4 ] || failed=1
}

# show FILE...: keep files of the last run, to be printed at the end
show() {
	local file
	for file; do
		[ ! -s "$folder/$file" ] || { echo; cat "$folder/$file"; } >>"$tables"
	done
}

build() { make -s tools && make -s -C selftests/programs; }

# Columns: the suite; tests that pass on TCP; how many of these pass on AF_RDMA and on AF_SMC (of
# all tests, if the suite did not run on TCP); framed connections, and MiB received by RDMA, while
# the suite ran on AF_RDMA; RDMA packets received while it ran on AF_SMC.
parity() {
	in_guests "$@"
	printf '\n%-10s %7s %7s %7s %10s %8s %11s\n' suite TCP AF_RDMA AF_SMC framed MiB \
		SMC-packets >>"$tables"
	cat "$folder"/{a,b}/parity >>"$tables"
}
python() { parity 1800 selftests/programs/python.sh "$@"; }
suites() { parity 3600 selftests/programs/suites.sh "$@"; }
rows() {
	in_guests 2400 selftests/programs/run.sh "$@"
	show b/table b/tables
}

tables=$(mktemp)
trap 'rm -f "$tables"' EXIT
guest=uml
[ "${1:-}" != --guest ] || { guest=$2; shift 2; }
part=${1:-all}
[ $# -eq 0 ] || shift
case $part in
all)
	"$here/fetch.sh" packages || exit 1
	"$here/fetch.sh" sources
	build || exit 1
	python
	suites
	rows ;;
python | suites | rows)
	build || exit 1
	"$part" "$@" ;;
quick)
	few=(memcached nginx rsync rpc)
	"$here/fetch.sh" packages "${few[@]}" || exit 1
	build || exit 1
	rows --on "tcp rdma" "${few[@]}" ;;
*)
	sed -n '3,/^$/{/^$/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
	exit 2 ;;
esac
cat "$tables"
exit $failed
