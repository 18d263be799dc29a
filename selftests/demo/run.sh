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
	--file)
		file=$(readlink -e "$2") || { echo "no file $2" >&2; exit 2; }
		shift 2 ;;
	*)		sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
	esac
done

say() { printf '%s\n' "$@"; }
mega() { awk -v n="$1" 'BEGIN { printf "%d MB", n / 1e6 + 0.9 }'; }

# fail WHAT: with its cause, from what was logged since it began, and where to read on.
begun=0 run=
fail() {
	local cause
	cause=$(tail -n "+$((begun + 1))" "$log" | awk -f "$here/cause.awk" - ${run:+"$run/shared/story"})
	say "" "The end of $log:"
	tail -n 30 "$log" | sed 's/^/  | /'
	say "DEMO FAILED: $1: $cause" "All that was said is in $log"
	[ -z "$run" ] || say "and $run/a/console, $run/b/console (the guests' kernels)"
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

# A sign of life: what is being done now, and for how long.
sign() { printf '      %3d s: %s\n' $((SECONDS - $1)) "$2"; }
last_word() { tail -c 2000 "$1" 2>/dev/null | tr -d '\r' | grep . | tail -n 1 | cut -c "1-$2"; }

# step WHAT COMMAND...: with its output in the log, and a sign of life.
step() {
	local what=$1 pid start=$SECONDS next=10
	shift
	begun=$(wc -l <"$log")
	printf '    %s ...\n' "$what"
	"$@" >>"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		if ((SECONDS - start >= next)); then
			next=$((next + 10))
			sign $start "$(last_word "$log" 66)"
		fi
		sleep 0.2
	done
	wait "$pid" || fail "$what"
}

# What there is to download, before it begins.
plan() {
	local packages bytes kernels
	"$lab/deps.sh" --plan >"$src/build/demo.plan" || return
	"$lab/kernels.sh" need "$guest" >"$src/build/demo.kernels" || return
	read -r packages bytes <"$src/build/demo.plan"
	kernels=$(awk '{ n += $2 } END { print n + 0 }' "$src/build/demo.kernels")
	{
		[ -z "${packages:-}" ] || say \
			"    $packages Debian packages will be installed: $(mega "$bytes") to download." \
			"    None is a kernel; what this machine boots stays as it is."
		[ "$kernels" = 0 ] || say \
			"    For the guests, not installed: $(mega "$kernels") into ${AFRDMA_CACHE:-~/.cache/afrdma}" \
			"    ($(cut -d ' ' -f 1 "$src/build/demo.kernels" | xargs | sed 's/ /, /g'))."
		if [ -z "${packages:-}" ] && [ "$kernels" = 0 ]; then
			say "    Nothing has to be downloaded."
		fi
		say "    The demo itself takes 3 to 5 minutes on two processors without KVM, 1 to 2 with it."
	} >"$src/build/demo.says"
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
step "what is missing here" plan
cat "$src/build/demo.says"
step "packages that are missing" "$lab/deps.sh"
step "smctl and the preload library" make tools
step "the guests' kernel ($guest)" "$lab/kernels.sh" make "$guest"
step "afrdma.ko for it" "$lab/build-module.sh" "$guest"
[ -n "$file" ] || file=$(a_real_file) || { say "DEMO FAILED: no file of 50 MB here: use --file"; exit 1; }

say "2. Two guests"
begun=$(wc -l <"$log")
"$lab/run" --guest "$guest" --timeout $seconds --env DEMO_FILE="$file" -- \
	"$here/guest.sh" >>"$log" 2>&1 </dev/null &
runner=$!
# Its folder has its process number in the name.
start=$SECONDS told=0 quiet=$SECONDS
find_run() {
	[ -z "$run" ] || return 0
	run=$(compgen -G "$src/build/lab/$guest-*-$runner") && : >>"$run/shared/story"
}
# What the guests have told since; or if it is long ago, the last words of their consoles.
tell_on() {
	local size
	size=$(stat -c %s "$run/shared/story")
	if ((size > told)); then
		tail -c +$((told + 1)) "$run/shared/story" | head -c $((size - told))
		told=$size
		quiet=$SECONDS
	fi
}
busy_with() {
	local role
	for role in a b; do
		printf '%s: %s  ' $role "$(last_word "$run/$role/console" 300 |
			sed 's/^\[[^]]*\] *//' | cut -c 1-44)"
	done
}
while kill -0 "$runner" 2>/dev/null; do
	if find_run; then tell_on; fi
	if ((SECONDS - quiet >= 10)); then
		quiet=$SECONDS
		if [ -s "$run/a/console" ]; then sign $start "$(busy_with)"; else sign $start "$(last_word "$log" 66)"; fi
	fi
	sleep 0.3
done
if find_run; then tell_on; fi
wait "$runner"
rc=$?
runner=
[ $rc -eq 0 ] || fail "in the guests"
proven=$(cat "$run/shared/proven" 2>/dev/null) || fail "the guests ended without a verdict"
say "7. Both guests gave everything back: sockets, queue pairs, memory regions; afrdma was" \
    "   unloaded; nothing in their kernel logs."
say "" "PROVEN: $proven"
