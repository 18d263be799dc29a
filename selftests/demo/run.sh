#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# "make demo": unmodified TCP programs on AF_RDMA between two virtual machines on one Ethernet; see
# guest.sh. "make demo-netns" (--netns) does the same between two network namespaces of one guest,
# for which Soft-RoCE needs kernel 7.2. Everything that is needed is installed, downloaded and built
# first. At the end it prints what was proven ("PROVEN:"), or what failed ("DEMO FAILED:") and where
# the logs are.
#
#	run.sh [--netns] [--guest NAME] [--file FILE]
#
# The default guest is vm-6.12, or uml-7.2 if --netns is given; the default file is one of at least
# 50 MB that exists on this machine.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
src=$(cd "$here/../.." && pwd)
lab=$src/selftests/lab
log=$src/build/demo.log
guest=
hosts="Two guests"
options=()
file=
seconds=900		# limit for the guests: emulation without KVM is slow

while [ $# -gt 0 ]; do
	case $1 in
	--guest)	guest=$2; shift 2 ;;
	--netns)
		hosts="Two network namespaces in one guest" options=(--netns --smp 2)
		guest=${guest:-uml-7.2}
		shift ;;
	--file)
		file=$(readlink -e "$2") || { echo "no such file: $2" >&2; exit 2; }
		case $file in
		/tmp/* | /run/* | /var/tmp/* | /var/log/* | /media/*)
			echo "the guests do not see files of this folder: $file" >&2; exit 2 ;;
		esac
		case ${file##*/} in
		*[!A-Za-z0-9._-]*)
			echo "give the file a name that needs no quoting in a URL: $file" >&2; exit 2 ;;
		esac
		shift 2 ;;
	*)		sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
	esac
done

guest=${guest:-vm-6.12}

say() { printf '%s\n' "$@"; }
mega() { awk -v n="$1" 'BEGIN { printf "%d MB", n / 1e6 + 0.9 }'; }

# fail WHAT: print the end of the log, then that WHAT failed, the cause and where the logs are, and
# exit. The cause is taken from what the last step, or the run of the guests, has written into the
# log, and from the report that the guests have written.
begun=0 run=
fail() {
	local cause
	cause=$(tail -n "+$((begun + 1))" "$log" |
		awk -f "$here/cause.awk" - ${run:+"$run/shared/story"})
	say "" "The end of $log:"
	tail -n 30 "$log" | sed 's/^/  | /'
	say "DEMO FAILED: $1: $cause" "The whole log is $log"
	[ -z "$run" ] || say "and $run/a/console, $run/b/console (the kernels of the guests)"
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

# progress START LINE: print the seconds since START, and LINE
progress() { printf '      %3d s: %s\n' $((SECONDS - $1)) "$2"; }
# last_line FILE WIDTH: print its last line that is not empty, cut to WIDTH
last_line() { tail -c 2000 "$1" 2>/dev/null | tr -d '\r' | grep . | tail -n 1 | cut -c "1-$2"; }

# step WHAT COMMAND...: run a command with its output in the log; print the progress every 10 s
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
			progress $start "$(last_line "$log" 66)"
		fi
		sleep 0.2
	done
	wait "$pid" || fail "$what"
}

# Determine the downloads, and write a description of them.
plan() {
	local packages bytes kernels
	"$lab/deps.sh" --plan >"$src/build/demo.plan" || return
	"$lab/kernels.sh" need "$guest" >"$src/build/demo.kernels" || return
	read -r packages bytes <"$src/build/demo.plan"
	kernels=$(awk '{ n += $2 } END { print n + 0 }' "$src/build/demo.kernels")
	{
		[ -z "${packages:-}" ] || say \
			"    $packages Debian packages will be installed, $(mega "$bytes")." \
			"    None is a kernel; what this machine boots does not change."
		[ "$kernels" = 0 ] || say \
			"    For the guests: $(mega "$kernels") to download, not installed, into" \
			"    ${AFRDMA_CACHE:-~/.cache/afrdma} ($(cut -d ' ' -f 1 \
				"$src/build/demo.kernels" | xargs | sed 's/ /, /g'))."
		if [ -z "${packages:-}" ] && [ "$kernels" = 0 ]; then
			say "    Nothing has to be downloaded."
		fi
		say "    The demo takes 3 to 5 minutes on two processors, or 1 to 2 with KVM."
	} >"$src/build/demo.text"
}

# A large file that exists on this machine: the kernel source, or a library of LLVM.
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
step "determining what is missing" plan
cat "$src/build/demo.text"
step "missing packages" "$lab/deps.sh"
step "smctl and the preload library" make tools
step "the guests' kernel ($guest)" "$lab/kernels.sh" make "$guest"
step "afrdma.ko for it" "$lab/build-module.sh" "$guest"
[ -n "$file" ] || file=$(a_real_file) ||
	{ say "DEMO FAILED: no file of 50 MB found: use --file"; exit 1; }

say "2. $hosts"
begun=$(wc -l <"$log")
"$lab/run" --guest "$guest" "${options[@]}" --timeout $seconds --env DEMO_FILE="$file" -- \
	"$here/guest.sh" >>"$log" 2>&1 </dev/null &
runner=$!
start=$SECONDS shown=0 quiet=$SECONDS
# Find the folder of this run: its name ends with the process id of lab/run, which is $runner.
find_run() {
	[ -z "$run" ] || return 0
	run=$(compgen -G "$src/build/lab/$guest-*-$runner") && : >>"$run/shared/story"
}
# Print what the guests have added to the report.
print_report() {
	local size
	size=$(stat -c %s "$run/shared/story")
	if ((size > shown)); then
		tail -c +$((shown + 1)) "$run/shared/story" | head -c $((size - shown))
		shown=$size
		quiet=$SECONDS
	fi
}
# The last lines of the consoles.
consoles() {
	local role
	for role in a b; do
		printf '%s: %s  ' $role "$(last_line "$run/$role/console" 300 |
			sed 's/^\[[^]]*\] *//' | cut -c 1-44)"
	done
}
while kill -0 "$runner" 2>/dev/null; do
	if find_run; then print_report; fi
	if ((SECONDS - quiet >= 10)); then
		quiet=$SECONDS
		if [ -s "$run/a/console" ]; then
			progress $start "$(consoles)"
		else
			progress $start "$(last_line "$log" 66)"
		fi
	fi
	sleep 0.3
done
if find_run; then print_report; fi
wait "$runner"
rc=$?
runner=
[ $rc -eq 0 ] || fail "in the guests"
proven=$(cat "$run/shared/proven" 2>/dev/null) || fail "the guests ended without a verdict"
say "7. All sockets, queue pairs and memory regions were released; afrdma was unloaded;" \
    "   the kernel logs of the guests contain no reports."
say "" "PROVEN: $proven"
