#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the tests. The machine needs only Debian and make.
#
#   check.sh [STAGE...]		stages or parts by name, or one of these lists:
#   check.sh all		the stages of "make check"; the default
#   check.sh quick		about three minutes, once everything is built
#   check.sh full		the stages and parts without a valid pass, and deps, lint and kernels
#   check.sh rotate		the parts that CI runs for this commit
#   check.sh list		print the names
#   check.sh status		print the last result of each
#   check.sh slots		print for which commits "rotate" runs which part
#   check.sh keep		write the last results into Documentation/test-results.tsv
#
# With JOBS=N in the environment, up to N stages run at once, as their guests are idle most of the
# time. But no guest is started before "kernels" has ended, and benchmarks run alone at the end.
#
# Each stage writes build/check/STAGE.log; the KTAP lines in it are counted. A stage that fails
# without a "not ok" line counts as one failure. The last line that check.sh prints is
#	N passed, N failed[, N skipped]
# and the exit status is 0 only if nothing failed.
set -uo pipefail
unset MAKEFLAGS MFLAGS MAKELEVEL	# set by make -j; a jobserver warning would be a failure

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

### Running stages

say() { echo "check: $*"; }

# all_of_them prints the table of stages and parts, names prints only their names. The others print
# something about the stage or part $1: field prints column $2 of its line in the table, what_is its
# description, kernel_of the kernels that its guests need.
all_of_them() { stages; parts_as_stages; }
names() { all_of_them | awk '{ print $1 }'; }
field() { all_of_them | awk -v name="$1" -v n="$2" '$1 == name { print $n }'; }
what_is() {
	all_of_them | awk -v name="$1" '$1 == name {
		sub(/^[^ \t]+[ \t]+[0-9]+[ \t]+/, "")
		sub(/[ \t]*\+.*/, "")
		print
	}'
}
kernel_of() { all_of_them | sed -n "s/^$1[[:space:]].*+\(.*\)/\1/p"; }

# Each stage has its own process group, and so has the build of kernels in the background. When
# this script ends, it ends the groups that are left.
groups=()
workers=()
kernel_build=	# its process, or empty
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
	[ ${#workers[@]} -eq 0 ] ||
		{ kill -TERM "${workers[@]}" 2>/dev/null; wait "${workers[@]}"; }
	for group in "${groups[@]}"; do end_group "$group"; done
	[[ -z $kernel_build || " $(jobs -pr | tr '\n' ' ')" != *" $kernel_build "* ]] ||
		end_group "$kernel_build"
	rm -f "$logs"/tmp.* "$skips"
}

passed=0
failed=0
skipped=0
jobs=${JOBS:-1}
export AFRDMA_PAIRS=${AFRDMA_PAIRS:-$jobs}	# pairs of guests that the lab runs at once
resume=		# if set, stages and parts that have passed are skipped, see holds() in results.py
# Never skipped: deps and kernels prepare this machine, and lint reads all files, so any commit may
# change its result.
always="deps lint kernels"
counted=()
skips=$logs/tmp.skips

# The last line of a log, shortened.
last_word() {
	tail -n 1 "$1" 2>/dev/null | tr -d '\r' | tr '\t' ' ' | cut -c 1-56
}

# Wait for process $1, the leader of the process group of stage $4. The log of the stage is $2. On
# an idle machine the stage takes at most $3 seconds. On a loaded machine it is slower, but makes
# progress. So watch() ends the group only if the log has not grown for a third of $3 (but at least
# $patience), or if the stage has run for four times $3. Waiting for the guests of another run does
# not count. Returns the status of the stage, or 124 if watch() has ended it.
patience=300		# seconds without output that are always allowed
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
		((SECONDS - grown <= still)) || why="no output for $still seconds"
		((SECONDS - start <= limit)) || why="still running after $limit seconds"
		if [ -n "$why" ]; then
			echo "check: $why" >>"$log"
			end_group "$pid"
			return 124
		fi
		if ((SECONDS - start >= next)); then
			next=$((next + every))
			printf '  %-12s %4d s  %s\n' "$name" $((SECONDS - start)) \
				"$(last_word "$log")"
		fi
		sleep 0.2
	done
	wait "$pid"
}

# Count the results in the log of stage $1, which ended with status $2, and print its failures.
count() {
	local name=$1 rc=$2 log=$logs/$1.log line p=0 f=0 s=0
	while IFS= read -r line; do
		case $line in
		"pass "*)	p=${line#pass } ;;
		"fail "*)	f=$((f + 1)); printf '    not ok %s\n' "${line#fail }" ;;
		"skip "*)
			s=$((s + 1))
			printf '%s: %s\n' "$name" "${line#skip }" >>"$skips" ;;
		"#"*)		printf '      %s\n' "$line" ;;
		esac
	done < <(awk -f "$check/count.awk" "$log")
	if [ "$rc" -eq 4 ] && [ $f -eq 0 ]; then
		[ $s -gt 0 ] || {
			s=1
			printf '%s: # SKIP %s\n' "$name" "$(last_word "$log")" >>"$skips"
		}
	elif [ "$rc" -eq 124 ] || { [ "$rc" -ne 0 ] && [ $f -eq 0 ]; }; then
		f=$((f + 1))
		printf '    not ok %s: exit status %s; the end of its log:\n' "$name" "$rc"
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
	if [ -n "$resume" ] && [[ " $always " != *" $name "* ]] &&
	   "$check/results.py" holds "$name"; then
		printf '%-14s has already passed on this tree\n' "$name"
		return
	fi
	commit=$(git rev-parse HEAD 2>/dev/null)
	printf '%-14s %s\n' "$name" "$(what_is "$name")"
	kernels=$kernels setsid "$self" --stage "$name" >"$log" 2>&1 </dev/null 8>&- &
	group=$!
	groups+=("$group")
	watch "$group" "$log" "$(field "$name" 2)" "$name" || rc=$?
	end_group "$group"
	unset 'groups[-1]'	# its number may soon be that of another process group
	count "$name" "$rc"
	"$check/results.py" add "$name" "$commit" "${counted[@]}" $((SECONDS - start)) "$log"
	printf '%-14s %s, %d s  (build/check/%s.log)\n' "${done_by:+$name}" "$stage_result" \
		$((SECONDS - start)) "$name"
}

# Building kernels takes minutes, so it begins in the background as soon as "deps" has passed.
start_kernels() {
	[ -n "$kernels" ] || return 0
	# shellcheck disable=SC2086 # a list of words
	setsid nice -n 10 "$lab/kernels.sh" make $kernels >"$logs/kernels-build.log" 2>&1 \
		</dev/null 8>&- &
	kernel_build=$!
}

# Run stages one after the other. Stop if "deps" fails.
run_here() {
	local stage before
	for stage; do
		before=$failed
		run_stage "$stage"
		if [ "$stage" = deps ]; then
			[ "$failed" -eq "$before" ] || return 1
			start_kernels
		fi
	done
}

# One of several worker processes: take stages from the list in tmp.todo until it is empty. The
# parent adds up the totals.
done_by=	# number of the worker; empty if stages run one after the other
work_off() {
	local stage
	done_by=$1 passed=0 failed=0 skipped=0 groups=()
	trap 'for group in "${groups[@]}"; do end_group "$group"; done' EXIT
	trap 'exit 143' INT TERM HUP
	while stage=$(flock "$logs/tmp.lock" \
			sed -i -e '1{w /dev/stdout' -e 'd}' "$logs/tmp.todo") &&
	      [ -n "$stage" ]; do
		run_stage "$stage"
	done
	echo "$passed $failed $skipped" >"$logs/tmp.total.$done_by"
}

run_at_once() {
	local job p f s
	[ $# -gt 0 ] || return 0
	rm -f "$logs"/tmp.total.*
	printf '%s\n' "$@" >"$logs/tmp.todo"
	for ((job = 1; job <= jobs; job++)); do
		work_off "$job" 8>&- &
		workers+=("$!")
	done
	wait "${workers[@]}"
	workers=()	# their numbers may soon be those of other processes
	for ((job = 1; job <= jobs; job++)); do
		# if there is no total, the worker has died
		read -r p f s <"$logs/tmp.total.$job" || { failed=$((failed + 1)); continue; }
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	done
}

# With several jobs, "deps" and "kernels" run alone, after all stages before them in the list. So
# the stages between the two, of which "unit" builds the programs that the guests run, are over
# before a stage with guests begins. The other stages run several at a time, except that bench-quick
# and the parts bench_* run last, one by one.
run_all() {
	local stage at_once=() alone=()
	if ((jobs < 2)); then
		run_here "$@"
		return
	fi
	for stage; do
		case $stage in
		deps | kernels)
			run_at_once "${at_once[@]}"
			at_once=()
			run_here "$stage" || return ;;
		bench[-_]*)	alone+=("$stage") ;;
		*)		at_once+=("$stage") ;;
		esac
	done
	run_at_once "${at_once[@]}"
	run_here "${alone[@]}"
}

expand_names() {
	local word
	for word; do
		case $word in
		all)	echo "$all" ;;
		quick)	echo "$quick" ;;
		rotate)	rotated ;;
		full)	echo "$all $only_full"; parts_in_full ;;
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
	flock -n 8 || { say "waiting for another check.sh in this tree"; flock 8; }
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

# Bash reads a script while it runs it. Every branch ends in exit, so that bash does not read on
# here in a file that was edited meanwhile.
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
