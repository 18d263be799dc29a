# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The parts of "make check-full" and PARTS=rotate. check.sh sources this file after stages.sh. The
# stages leave out most of the tests in the parts. Each part can be run by itself, and takes at most
# about half an hour, except that each part with storms of faults takes more than an hour.
#
# Each line of the table below is a kind of tests, and each part is one slice of a kind. The name
# of a kind is FUNCTION or FUNCTION_ARGUMENT. The name of a part is that of its kind, with _IofN at
# the end if the kind has several slices. run_part_named() runs a part: it calls part_FUNCTION with
# the argument, if there is one, and the slice I/N. A kind with a single slice has the slice 1/1.
: "${src:?}" "${check:?}"	# from check.sh

# Name, number of slices, seconds of each on two cores without KVM, period of "rotate" (N: the part
# runs at one commit in N; "-": never), guest kernel, description. The most valuable kinds come
# first. A kind whose kernel has to be built has a period only if "make check" needs that kernel
# anyway, because building one takes ten minutes or more. (Of "faults", two rows run on uml-debug
# and two on vm-6.12; the kernel is made when such a row is run.)
kinds_of_parts() {
	cat <<-'END'
	table_uml	2	600	10	uml	all rows of the socket table
	byzantine_uml	4	120	10	uml	injections of a Byzantine peer, both roles
	faults		10	400	20	uml	all faults, at both ends
	forged_uml	1	600	20	uml	10,000 bad handshakes per role, 10^5 cursors
	mutations	6	600	-	uml-debug	does a test find each of these bugs?
	programs	3	420	50	uml	third-party programs: TCP, AF_SMC, AF_RDMA
	rings		1	300	10	uml	socket table, quick, with rings of 1 MiB
	siw		1	400	10	uml	failing devices and pacing, over iWARP
	paths		1	400	10	uml	tunnels, lost packets, paths that lose RDMA
	wireshark	1	120	10	uml	what tshark shows of a capture
	rogue_uml	1	400	50	uml	a hostile peer without RDMA, all rows
	table_vm-6.12	10	400	-	vm-6.12	socket table, two CPUs, Debian's 6.12
	table_vm-6.1	10	400	-	vm-6.1	socket table on Debian's 6.1
	table_uml-debug	10	400	-	uml-debug	socket table, KASAN/lockdep/kmemleak
	byzantine_uml-debug	6	540	-	uml-debug	injections, KASAN/lockdep/kmemleak
	table_uml-7.2	2	500	-	uml-7.2	socket table, two CPUs, two hosts in one 7.2
	sanitized	2	600	10	uml-7.2-debug	failing devices, limits, memory, with KASAN
	table_uml-7.2-debug	4	800	-	uml-7.2-debug	the same with KASAN, lockdep
	table_uml-7.2-debug-4	4	900	-	uml-7.2-debug	the same with four CPUs
	table_vm-7.2-rt	10	400	-	vm-7.2-rt	socket table on PREEMPT_RT, two CPUs
	quick_vm-7.2-rt	1	700	-	vm-7.2-rt	quick rows on PREEMPT_RT, two CPUs
	faults_uml-7.2	1	600	-	uml-7.2	faults that take little time, on 7.2
	faults_vm-7.2-rt	1	900	-	vm-7.2-rt	the same on PREEMPT_RT
	faults_vm-6.1	1	900	-	vm-6.1	the same on 6.1
	kcsan		1	900	-	kcsan-7.2	socket table, quick, with KCSAN
	storms_2	1	4200	-	uml-7.2-debug	an hour of storms of faults, two CPUs
	storms_4	1	4200	-	uml-7.2-debug	the same with four CPUs
	build_vm-6.1	1	150	10	vm-6.1	the module for 6.1: gcc and clang, W=1, sparse
	build_vm-6.12	1	150	50	vm-6.12	the module for 6.12
	build_vm-7.2-rt	1	150	-	vm-7.2-rt	the module for PREEMPT_RT
	containers	1	120	50	vm-7.2	containers in two namespaces of Debian's 7.2
	numa		1	120	50	vm-7.2	rings on the NUMA node of the program
	netns_uml-7.2	1	1200	-	uml-7.2	1,000 namespaces that end with connections
	netns_vm-7.2-rt	1	900	-	vm-7.2-rt	60 such namespaces on PREEMPT_RT
	table_siw	2	400	20	uml	socket table over iWARP
	rogue_uml-debug	1	900	-	uml-debug	a hostile peer, no RDMA; with KASAN
	rogue_vm-6.1	1	900	-	vm-6.1	a hostile peer, no RDMA; on 6.1
	scripts_uml	1	450	50	uml	smctl, failing devices, limits, pacing, ...
	scripts_uml-debug	1	1200	-	uml-debug	the same with KASAN
	scripts_vm-6.12	1	1600	-	vm-6.12	the same in VMs
	scripts_vm-6.1	1	900	-	vm-6.1	the same on 6.1
	suite_python	1	450	50	uml	Python's socket tests, compared with TCP
	suite_redis	1	400	50	uml	test suite of redis
	suite_memcached	1	1350	-	uml	test suite of memcached
	suite_libuv	1	80	50	uml	test suite of libuv
	suite_socat	1	1700	-	uml	test suite of socat
	suite_stress-ng	1	80	50	uml	socket stressors of stress-ng
	suite_vsock	1	60	50	uml	the kernel's AF_VSOCK suite, on TCP
	fuzz_option	1	60	50	-	the TCP option: 35 million executions
	fuzz_hello	1	360	50	-	HELLO: 35 million executions
	fuzz_frame	2	350	50	-	frames: 35 million executions in all
	oracle		2	60	50	-	all rows of the socket table over TCP
	lab		1	300	-	uml	faults that the lab itself must detect
	demo		1	240	-	vm-6.12	make demo
	bench_stream	1	900	-	vm-6.12	benchmark, one repetition: streams
	bench_rtt	1	900	-	vm-6.12	the same: round trips
	bench_connect,counts,memory	1	600	-	vm-6.12	connections, costs, memory
	bench_redis,iperf3,sockperf	1	900	-	vm-6.12	the same: programs
	bench_growth	1	900	-	vm-6.12	the same: up to 1,000 connections
	END
}

# Kinds whose parts "make check-full" leaves out, since other kinds run the same tests with KASAN,
# lockdep and kmemleak.
covered='table_uml rogue_uml scripts_uml'

parts_in_full() {
	parts | cut -f 1 | grep -vE "^(${covered// /|})(_[0-9]+of[0-9]+)?\$"
}

# One line per part: name, seconds, period, kernels, description.
parts() {
	kinds_of_parts | awk -F '\t+' '{
		for (i = 1; i <= $2; i++)
			print $1 ($2 > 1 ? "_" i "of" $2 : "") "\t" $3 "\t" $4 "\t" $5 "\t" $6
	}'
}

# The parts as lines of the table of stages, with their maximum duration.
parts_as_stages() {
	parts | awk -F '\t' '{
		print $1 "\t" 3 * $2 + 300 "\t" $5 ($4 == "-" ? "" : "\t+" $4)
	}'
}

# A part with period P and slot S runs at the commits whose number is S modulo P. Prints a line of
# period, slot, seconds and name for each part with a period. Parts are placed one after the other,
# in order of increasing period and, within a period, of decreasing duration. For each slot that a
# part could get, slots() takes the commits of the slot, and finds the one on which the parts placed
# so far take the most time. The part gets the slot where this time is least.
slots() {
	parts | awk -F '\t' '$3 != "-" { print $3 "\t" $2 "\t" $1 }' | sort -k 1,1n -k 2,2nr -k 3 |
		awk -v all=100 '
		function longest(slot, period,	i, most) {
			for (i = slot; i < all; i += period)
				if (seconds[i] > most)
					most = seconds[i]
			return most + 0
		}
		{
			best = 0
			for (i = 1; i < $1; i++)
				if (longest(i, $1) < longest(best, $1))
					best = i
			for (i = best; i < all; i += $1)
				seconds[i] += $2
			print $1, best, $2, $3
		}'
}

# The number of HEAD in the history; in a shallow clone, a number made from the hash of HEAD.
commit_number() {
	if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ]; then
		git rev-list --count HEAD
	else
		echo $((16#0$(git rev-parse HEAD 2>/dev/null | cut -c 1-7 || true)))
	fi
}

# The names of the parts that PARTS=rotate adds at this commit.
rotated() { slots | awk -v n="$(commit_number)" '$2 == n % $1 { print $4 }'; }

show_slots() {
	slots | sort -n -k 1,1 -k 2,2 | awk -v all=100 '
		{
			printf "one commit in %3d, number %2d: %s (%d s)\n", $1, $2, $4, $3
			sum[$1] += $3
			for (i = $2; i < all; i += $1)
				seconds[i] += $3
		}
		END {
			for (period in sum)
				printf "one commit in %3d: %d s in all\n", period, sum[period]
			least = seconds[0]
			for (i = 0; i < all; i++) {
				mean += seconds[i] / all
				most = seconds[i] > most ? seconds[i] : most
				least = seconds[i] < least ? seconds[i] : least
			}
			printf "a commit: %d s on average, %d to %d s\n", mean, least, most
		}'
}

is_part() { parts | cut -f 1 | grep -qxF -- "$1"; }

run_part_named() {
	local name=$1 slice=1/1 words
	if [[ $name =~ ^(.*)_([0-9]+)of([0-9]+)$ ]]; then
		name=${BASH_REMATCH[1]}
		slice=${BASH_REMATCH[2]}/${BASH_REMATCH[3]}
	fi
	IFS=_ read -r -a words <<<"$name"
	"part_${words[0]}" "${words[@]:1}" "$slice"
}

### The functions

# shellcheck disable=SC2034 # rdma and cpus are read by in_guests()
# on GUEST: set guest and its options; "siw" is uml with a siw device instead of rxe. Guests of
# vm-6.12 and of 7.2 get two CPUs. With User-Mode Linux 7.2, both hosts are namespaces of one guest,
# which gets four CPUs if the name ends in -4.
on() {
	guest=${1%-4}
	case $1 in
	uml-7.2*-4) cpus=(--smp 4) more=(--netns) ;;
	siw)	rdma=siw guest=uml ;;
	vm-6.12 | vm-7.2*) cpus=(--smp 2) ;;
	uml-7.2*) cpus=(--smp 2) more=(--netns) ;;
	esac
}

part_table() {
	on "$1"
	programs || return
	in_guests "$guest" 1700 selftests/check/one-way.sh full --no-rogue --slice "$2"
}

part_quick() {
	on "$1"
	programs || return
	in_guests "$guest" 1700 selftests/check/one-way.sh quick --no-rogue
}

# shellcheck disable=SC2034 # in_guests() reads it
part_rings() {
	programs || return
	more=(--mem 2000 --env PAGES=1000000)
	in_guests uml 500 selftests/check/one-way.sh quick --no-rogue --variants rdma,cold
}

# shellcheck disable=SC2034 # in_guests() reads it
# In UML only: Debian's kernels do not contain siw.
part_siw() {
	rdma=siw
	programs || return
	in_guests uml 300 selftests/net/death.sh
	in_guests uml 400 selftests/net/pace.sh
	return "${failures:?}"
}

part_wireshark() {
	build_alone tools || return
	in_guests uml 300 selftests/tools/wireshark.sh
}

part_paths() {
	programs || return
	in_guests uml 200 selftests/net/tunnel.sh
	in_guests uml 200 selftests/net/tail.sh
	in_guests uml 300 selftests/net/hole.sh
	examples || return
	in_guests uml 200 selftests/tools/examples.sh
	return "${failures:?}"
}

# shellcheck disable=SC2034 # in_guests() reads both
part_kcsan() {
	programs || return
	cpus=(--smp 2) more=(--netns)
	in_guests kcsan-7.2 1500 selftests/check/kcsan.sh
}

# shellcheck disable=SC2034,SC2154 # in_guests() reads cpus; stages.sh sets sanitized
part_sanitized() {
	local scripts i
	read -r -a scripts <<<"$sanitized"
	programs || return
	cpus=(--smp 2)
	for ((i = ${1%/*} - 1; i < ${#scripts[@]}; i += ${1#*/})); do
		in_guests uml-7.2-debug 900 "selftests/${scripts[i]}.sh"
	done
	return "${failures:?}"
}

# shellcheck disable=SC2034 # in_guests() reads both
part_netns() {
	local pairs=30
	[ "$1" != uml-7.2 ] || pairs=500
	programs || return
	cpus=(--smp 2)
	more=(--guests 1 --env "PAIRS=$pairs")
	in_guests "$1" 2400 selftests/net/netns.sh
}

# shellcheck disable=SC2034 # in_guests() reads both
part_containers() {
	build_alone tools || return
	cpus=(--smp 2) more=(--netns)
	in_guests vm-7.2 500 selftests/net/containers.sh
}

# shellcheck disable=SC2034 # in_guests() reads both
part_numa() {
	build_alone tools || return
	cpus=(--smp 2) more=(--guests 1 --numa 2)
	in_guests vm-7.2 500 selftests/net/numa.sh
}

part_build() { build_for "$1"; }

part_rogue() {
	programs || return
	in_guests "$1" 2500 selftests/net/run-table.sh full --only-rogue
}

part_byzantine() {
	programs || return
	against_byzantine "$1" 1700 selftests/net/rogue-module.sh --slice "$2"
}

part_forged() {
	programs || return
	against_byzantine "$1" 1700 selftests/net/forged.sh full
}

# shellcheck disable=SC2034 # in_guests() reads the variable "more"
part_scripts() {
	local script
	on "$1"
	programs || return
	for script in tools/guest net/death net/limits net/pace net/dumps tools/run; do
		in_guests "$guest" 1000 "selftests/$script.sh"
	done
	in_guests "$guest" 300 selftests/lab/smoke.sh
	# loopback.sh has both ends of many connections in one guest, mass.sh 4,000 connections.
	more=(--mem 3000)
	in_guests "$guest" 1000 selftests/net/loopback.sh quick --no-rogue
	in_guests "$guest" 600 selftests/net/mass.sh
	return "${failures:?}"
}

# part_faults [GUEST] SLICE
part_faults() {
	if [ $# -eq 1 ]; then
		selftests/faults/run --slice "$1"
	elif can_get "$1" "faults on $1"; then
		selftests/faults/run --quick --guest "$1"
	fi
}

# part_storms CPUS SLICE: rows that inject faults at random, each time with a new seed, which is in
# the log. The last run begins within the hour.
part_storms() {
	local end=$((SECONDS + 3600)) rc=0
	can_get uml-7.2-debug "storms of faults" || return 0
	while [ "$SECONDS" -lt "$end" ]; do
		selftests/faults/run --guest uml-7.2-debug --smp "$1" --rows F39,X1,X3,X4 || rc=1
	done
	return "$rc"
}

part_mutations() { selftests/mutations.py --slice "$1"; }

part_programs() {
	local rows
	selftests/programs/fetch.sh packages || return 4
	# shellcheck source=selftests/programs/rows.sh
	mapfile -t rows < <(. selftests/programs/rows.sh && rows |
		awk -v i="${1%/*}" -v n="${1#*/}" 'NR % n == i % n { print $1 }')
	selftests/programs/programs.sh rows "${rows[@]}"
}

part_suite() {
	selftests/programs/fetch.sh packages || return 4
	selftests/programs/fetch.sh sources
	case $1 in
	python)	selftests/programs/programs.sh python ;;
	*)	selftests/programs/programs.sh suites "${1//-/_}" ;;
	esac
}

# All slices together make ten short runs with different seeds instead of one long run, so that the
# log shows progress.
part_fuzz() {
	local seed
	for ((seed = 1; seed <= 10; seed++)); do
		((seed % ${2#*/} == ${2%/*} % ${2#*/})) || continue
		verdict "fuzz_$1, seed $seed: 3,500,000 executions" make -C selftests/unit \
			fuzz-long FUZZERS="$1" RUNS=3500000 SEED=$seed
	done
}

part_oracle() {
	build_alone -C selftests/net all || return
	selftests/net/oracle.sh build/net --slice "$1"
}

part_lab() { selftests/lab/selfcheck.sh uml; }

part_demo() { verdict "make demo" selftests/demo/run.sh; }

part_bench() {
	selftests/bench/run --only "$1" --reps 1 --out "build/bench-$1"
}
