#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# "make demo": two virtual machines, one link, programs that know nothing of
# AF_RDMA; guest.sh says what they do.  Everything that is needed is installed,
# fetched and built first.  The last line says what was proven, or what failed.
#
#	run.sh [--guest NAME] [--file FILE]
#
# The guest is vm-6.12 by default; the file is one of 50 MB or more that is on
# this machine anyway.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
src=$(cd "$here/../.." && pwd)
lab=$src/selftests/lab
log=$src/build/demo.log
guest=vm-6.12
file=
seconds=900		# for the guests: emulation without KVM is slow

while [ $# -gt 0 ]; do
	case $1 in
	--guest)	guest=$2; shift 2 ;;
	--file)		file=$(readlink -f "$2"); shift 2 ;;
	*)		sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
	esac
done

say() { printf '%s\n' "$@"; }
fail() {
	say "" "The end of $log:"
	tail -n 30 "$log" | sed 's/^/  | /'
	say "DEMO FAILED: $*"
	exit 1
}

runner=
# shellcheck disable=SC2317 # a trap calls it
end_runner() {
	if [ -n "$runner" ]; then kill "$runner" 2>/dev/null && wait "$runner"; fi
}
trap end_runner EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# step WHAT COMMAND...: with its output in the log, and a sign of life.
step() {
	local what=$1 pid start=$SECONDS next=15
	shift
	printf '    %s ...\n' "$what"
	"$@" >>"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		if ((SECONDS - start >= next)); then
			next=$((next + 15))
			printf '      %3d s: %s\n' $((SECONDS - start)) "$(tail -n 1 "$log" | cut -c 1-66)"
		fi
		sleep 0.2
	done
	wait "$pid" || fail "$what"
}

# Something that nobody made for this: the kernel's source, or what comes close.
a_real_file() {
	local path
	for path in /usr/src/linux-source-6.12.tar.xz /usr/lib/llvm-*/lib/libclang-cpp.so.* \
		    /usr/lib/*/libLLVM*.so*; do
		if [ -f "$path" ] && [ "$(stat -c %s "$path")" -ge 50000000 ]; then
			readlink -f "$path"
			return
		fi
	done
	return 1
}

mkdir -p "$src/build"
: >"$log"
cd "$src" || exit 2

say "1. Set-up"
step "packages that are missing" "$lab/deps.sh"
step "smctl and the preload library" make tools
step "the guests' kernel ($guest)" "$lab/kernels.sh" make "$guest"
step "afrdma.ko for it" "$lab/build-module.sh" "$guest"
[ -n "$file" ] || file=$(a_real_file) || fail "no file of 50 MB on this machine: use --file"

say "2. Two guests"
"$lab/run" --guest "$guest" --timeout $seconds --env DEMO_FILE="$file" -- \
	"$here/guest.sh" >>"$log" 2>&1 </dev/null &
runner=$!
# Its folder has its process number in the name.
start=$SECONDS next=15
until story=$(compgen -G "$src/build/lab/$guest-*-$runner/shared"); do
	kill -0 "$runner" 2>/dev/null || fail "the guests did not start"
	if ((SECONDS - start >= next)); then
		next=$((next + 15))
		printf '      %3d s: %s\n' $((SECONDS - start)) "$(tail -n 1 "$log" | cut -c 1-66)"
	fi
	sleep 0.2
done
: >>"$story/story"
tail --pid="$runner" -n +1 -s 0.3 -f "$story/story"
wait "$runner"
rc=$?
runner=
[ $rc -eq 0 ] || fail "$(grep -m 1 -E '^[ab]: not ok' "$log" || grep -m 1 'failed' "$log" || echo "status $rc")"
proven=$(cat "$story/proven" 2>/dev/null) || fail "the guests ended without a verdict"
say "7. Both guests gave everything back: sockets, queue pairs, memory regions; afrdma was" \
    "   unloaded; nothing in their kernel logs."
say "" "PROVEN: $proven"
