#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test everything that can be tested, on a machine that need not have anything
# but a Debian with make.
#
#   check.sh [STAGE...]		stages by name; or a list of them by its name:
#   check.sh all		all (what "make check" does; the default)
#   check.sh quick		what takes about three minutes once it is warm
#   check.sh list		the names
#
# With JOBS=2 in the environment as many stages run at once: their guests wait more than they
# compute. Benchmarks run alone even then.
#
# Each stage writes build/check/STAGE.log; the KTAP lines in there are counted.
# A stage that fails without a "not ok" is one failure.  The last line is
#	N passed, N failed[, N skipped]
# and the exit status is 0 only if nothing failed.
set -uo pipefail

self=$(readlink -f "${BASH_SOURCE[0]}")
src=$(dirname "$(dirname "$self")")
lab=$src/selftests/lab
check=$src/selftests/check
logs=$src/build/check
cd "$src" || exit 2

# shellcheck source=selftests/check/stages.sh
. "$check/stages.sh"
# shellcheck source=selftests/check/parts.sh
. "$check/parts.sh"

### Running them

say() { echo "check: $*"; }

all_of_them() { stages; parts_as_stages; }
names() { all_of_them | awk '{ print $1 }'; }
field() { all_of_them | awk -v name="$1" -v n="$2" '$1 == name { print $n }'; }
what_is() { all_of_them | awk -v name="$1" '$1 == name { sub(/^[^ \t]+[ \t]+[0-9]+[ \t]+/, ""); sub(/[ \t]*\+.*/, ""); print }'; }
kernel_of() { all_of_them | sed -n "s/^$1[[:space:]].*+\(.*\)/\1/p"; }

# Everything that was started is a process group of its own, which ends with us.
groups=()
workers=()
end_group() {
	kill -TERM -- "-$1" 2>/dev/null || return 0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 -- "-$1" 2>/dev/null || return 0
		sleep 0.5
	done
	kill -KILL -- "-$1" 2>/dev/null || true
}
# shellcheck disable=SC2317 # a trap calls it
clean_up() {
	local group
	[ ${#workers[@]} -eq 0 ] || { kill -TERM "${workers[@]}" 2>/dev/null; wait "${workers[@]}"; }
	for group in "${groups[@]}"; do end_group "$group"; done
	rm -f "$logs"/tmp.* "$skips"
}

passed=0
failed=0
skipped=0
jobs=${JOBS:-1}
export AFRDMA_PAIRS=${AFRDMA_PAIRS:-$jobs}	# of guests at once, for the lab
resume=		# set: what has passed on this commit is not done again
always="deps lint kernels"	# but these: they are quick, and lint reads the documents
counted=()
skips=$logs/tmp.skips

# The last word of a log, short enough for a line.
last_word() {
	tail -n 1 "$1" 2>/dev/null | tr -d '\r' | tr '\t' ' ' | cut -c 1-56
}

# Wait for group $1, whose log is $2 and which takes $3 seconds at most where nothing else
# runs. A loaded machine is slower, but goes on: so it is ended when its log has not grown
# for a third of that time, or when it has taken four times as long. Not counted is waiting
# for guests that somebody else has.
patience=300		# seconds that a log may stand still in any case
watch() {
	local pid=$1 log=$2 limit=$(($3 * 4)) name=$4 start=$SECONDS now=$SECONDS every=60 next
	local still=$(($3 / 3 > patience ? $3 / 3 : patience)) grown=$SECONDS size=0 before why
	[ ! -t 1 ] || every=15
	next=$every
	while kill -0 "$pid" 2>/dev/null; do
		if ((SECONDS > now)); then
			before=$size
			size=$(stat -c %s "$log")
			case $(last_word "$log") in
			"lab: waiting for the guests"*)
				limit=$((limit + SECONDS - now))
				grown=$SECONDS ;;
			esac
			[ "$size" = "$before" ] || grown=$SECONDS
			now=$SECONDS
		fi
		why=
		((SECONDS - grown <= still)) || why="nothing was said for $still seconds"
		((SECONDS - start <= limit)) || why="no end after $limit seconds"
		if [ -n "$why" ]; then
			echo "check: $why" >>"$log"
			end_group "$pid"
			return 124
		fi
		if ((SECONDS - start >= next)); then
			next=$((next + every))
			printf '  %-12s %4d s  %s\n' "$name" $((SECONDS - start)) "$(last_word "$log")"
		fi
		sleep 0.2
	done
	wait "$pid"
}

# Add the log of a stage that ended with status $2 to the totals; show failures.
count() {
	local name=$1 rc=$2 log=$logs/$1.log line p=0 f=0 s=0
	while IFS= read -r line; do
		case $line in
		"pass "*)	p=${line#pass } ;;
		"fail "*)	f=$((f + 1)); printf '    not ok %s\n' "${line#fail }" ;;
		"skip "*)	s=$((s + 1)); printf '%s: %s\n' "$name" "${line#skip }" >>"$skips" ;;
		"#"*)		printf '      %s\n' "$line" ;;
		esac
	done < <(awk -f "$check/count.awk" "$log")
	if [ "$rc" -eq 4 ] && [ $f -eq 0 ]; then
		[ $s -gt 0 ] || { s=1; printf '%s: # SKIP %s\n' "$name" "$(last_word "$log")" >>"$skips"; }
	elif [ "$rc" -eq 124 ] || { [ "$rc" -ne 0 ] && [ $f -eq 0 ]; }; then
		f=$((f + 1))
		printf '    not ok %s: ended with %s; the end of its log:\n' "$name" "$rc"
		tail -n 25 "$log" | sed 's/^/      | /'
	elif [ $((p + f + s)) -eq 0 ]; then
		p=1
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	counted=("$p" "$f" "$s")
	stage_result="$p passed, $f failed"
	[ $s -eq 0 ] || stage_result+=", $s skipped"
}

run_stage() {
	local name=$1 log=$logs/$1.log start=$SECONDS rc=0 group commit
	if [ -n "$resume" ] && [[ " $always " != *" $name "* ]] && "$check/results.py" holds "$name"; then
		printf '%-14s has passed on what is checked out\n' "$name"
		return
	fi
	commit=$(git rev-parse HEAD 2>/dev/null)
	printf '%-14s %s\n' "$name" "$(what_is "$name")"
	kernels=$kernels setsid "$self" --stage "$name" >"$log" 2>&1 </dev/null 8>&- &
	group=$!
	groups+=("$group")
	watch "$group" "$log" "$(field "$name" 2)" "$name" || rc=$?
	count "$name" "$rc"
	"$check/results.py" add "$name" "$commit" "${counted[@]}" $((SECONDS - start)) "$log"
	printf '%-14s %s, %d s  (build/check/%s.log)\n' "${done_by:+$name}" "$stage_result" \
		$((SECONDS - start)) "$name"
}

# Kernels take minutes to build and nothing else of the machine's: begin at once.
start_kernels() {
	[ -n "$kernels" ] || return 0
	# shellcheck disable=SC2086 # a list of words
	setsid nice -n 10 "$lab/kernels.sh" make $kernels >"$logs/kernels-build.log" 2>&1 \
		</dev/null 8>&- &
	groups+=("$!")
}

# One after the other, until one of "deps" fails.
run_here() {
	local stage
	for stage; do
		run_stage "$stage"
		if [ "$stage" = deps ]; then
			[ $failed -eq 0 ] || return 1
			start_kernels
		fi
	done
}

# Of several processes that work off the list in tmp.todo: run what is next, until nothing is.
# Numbers are counted by who started them.
done_by=	# set: by one of several
work_off() {
	local stage
	done_by=$1 passed=0 failed=0 skipped=0 groups=()
	trap 'for group in "${groups[@]}"; do end_group "$group"; done' EXIT
	trap 'exit 143' INT TERM HUP
	while stage=$(flock "$logs/tmp.lock" sed -i -e '1{w /dev/stdout' -e 'd}' "$logs/tmp.todo") &&
	      [ -n "$stage" ]; do
		run_stage "$stage"
	done
	echo "$passed $failed $skipped" >"$logs/tmp.total.$done_by"
}

run_at_once() {
	local job p f s
	printf '%s\n' "$@" >"$logs/tmp.todo"
	for ((job = 1; job <= jobs; job++)); do
		work_off "$job" 8>&- &
		workers+=("$!")
	done
	wait "${workers[@]}"
	for ((job = 1; job <= jobs; job++)); do
		read -r p f s <"$logs/tmp.total.$job" || continue
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	done
}

# What the others need comes first, and what measures time has the machine for itself.
run_all() {
	local stage first=() alone=() others=()
	for stage; do
		case $stage in
		deps | kernels)	first+=("${others[@]}" "$stage") others=() ;;
		bench_*)	alone+=("$stage") ;;
		*)		others+=("$stage") ;;
		esac
	done
	if ((jobs < 2)); then
		run_here "$@"
		return
	fi
	run_here "${first[@]}" || return
	[ ${#others[@]} -eq 0 ] || run_at_once "${others[@]}"
	run_here "${alone[@]}"
}

expand_names() {
	local word
	for word; do
		case $word in
		all)	echo "$all" ;;
		quick)	echo "$quick" ;;
		rotate)	rotated ;;
		full)	echo "$all"; parts_in_full ;;
		*)	[ -n "$(field "$word" 1)" ] || {
				say "no stage '$word'; there are: $(names | xargs)" >&2
				return 2
			}
			echo "$word" ;;
		esac
	done | xargs -n 1 | awk '!seen[$0]++'
}

main() {
	local wanted stage
	wanted=$(expand_names "${@:-all}") || exit 2
	case " $* " in *" full "*) resume=yes ;; esac
	mkdir -p "$logs"
	exec 8>"$logs/.lock"
	flock -n 8 || { say "waiting for another check in this tree"; flock 8; }
	: >"$skips"
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	kernels=$(for stage in $wanted; do kernel_of "$stage"; done | xargs -n 1 |
		awk '!seen[$0]++' | xargs)
	# shellcheck disable=SC2086 # names have no blanks
	run_all $wanted
	if [ -s "$skips" ]; then
		echo "skipped:"
		sort "$skips" | uniq -c | sed 's/^ *1 /  /;s/^ *\([0-9][0-9]*\) /  \1 times /'
	fi
	# shellcheck disable=SC2086 # names have no blanks
	[ -z "$resume" ] || "$check/results.py" status $wanted || failed=$((failed ? failed : 1))
	[ $failed -eq 0 ] || say "logs are in build/check/"
	echo "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
	if [ $skipped -eq 0 ]; then
		echo "$passed passed, $failed failed"
	else
		echo "$passed passed, $failed failed, $skipped skipped"
	fi
	[ $failed -eq 0 ]
}

# Each ends here: this file may be edited while it runs.
case ${1:-} in
--stage)
	if is_part "$2"; then run_part_named "$2"; else "stage_${2//-/_}"; fi
	exit ;;
status | keep)
	# shellcheck disable=SC2046 # names have no blanks
	"$check/results.py" "$1" $(names); exit ;;
slots)
	show_slots; exit ;;
list)
	all_of_them | awk '{
		name = $1
		sub(/^[^ \t]+[ \t]+[0-9]+[ \t]+/, "")
		sub(/[ \t]*\+.*/, "")
		printf "%-26s %s\n", name, $0
	}'; exit ;;
-h | --help | help)
	sed -n '3,/^set -/{/^set -/d;s/^# \{0,1\}//;p}' "$self"; exit ;;
*)
	main "$@"; exit ;;
esac
