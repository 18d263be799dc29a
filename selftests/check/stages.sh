# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The stages of check.sh, which sources this file: a table, and a function for each line of it. A
# function prints KTAP among the output of its commands (stage_deps() prints none); if it prints no
# "not ok" line, its exit status counts. It runs in a process of its own, in the source tree,
# without a terminal.
: "${src:?}" "${lab:?}" "${check:?}" "${logs:?}"	# from check.sh
# shellcheck source=../ktap.sh
. "$src/selftests/ktap.sh"

# Name, maximum duration in seconds on an idle machine (see watch() in check.sh), description; "+"
# and the guest kernel that it needs. Kernels are built in the background once "deps" has passed.
stages() {
	cat <<-'END'
	deps		3600	Debian packages that are missing
	unit		900	proto layer in user space, model, fuzzers; tools; socket tests
	unit-quick	120	the same without fuzzers, and with fewer schedules of the model
	build		1800	7.2 with gcc, W=1 and sparse, and with clang, W=1; the tools
	build-quick	300	6.12 with gcc and W=1, the tools
	lint		600	layers, style, symbols, scripts, documents
	lint-quick	120	layers, scripts, documents
	kernels		2400	guest kernels, built in the background meanwhile
	uml		900	two UML guests: the socket table, quick; fault injection	+uml
	uml-7.2		900	7.2, two CPUs, hosts in one kernel: socket table, quick	+uml-7.2
	uml-7.2-debug	2400	the same with KASAN, lockdep; namespaces	+uml-7.2-debug
	uml-debug	3600	6.12 with KASAN, lockdep, kmemleak; 1,000 connections	+uml-debug
	uml-back	900	roles exchanged; smctl run; a Byzantine peer	+uml
	programs-quick	400	four third-party programs on TCP and on AF_RDMA	+uml
	bench-quick	300	what a message costs, counted in two UML guests	+uml
	faults		600	faults under streams, those that take little time	+uml
	vm-7.2		3600	Debian's 7.2, 2 CPUs: socket table, 1,000 connections	+vm-7.2
	vm-6.12		3600	Debian's 6.12, 2 CPUs: socket table, 1,000 connections	+vm-6.12
	vm-6.1		3600	socket table and smctl on Debian's 6.1, with one CPU	+vm-6.1
	END
}
# "make check" runs "all": on 6.12 (UML), on the newest and the oldest kernel, and with sanitizers
# on the newest. "make check-full" also runs "only_full", and then the parts of parts_in_full().
# shellcheck disable=SC2034 # used by check.sh
all="deps unit build lint kernels uml-7.2-debug uml-back bench-quick faults programs-quick
	vm-7.2 vm-6.1"
# shellcheck disable=SC2034
only_full="uml-7.2 uml-debug vm-6.12"
# shellcheck disable=SC2034
quick="deps unit-quick build-quick lint-quick kernels uml-7.2"

### The functions: stage_NAME, with "_" for "-"

stage_deps() { "$lab/deps.sh"; }

# step COMMAND...: run COMMAND and record a failure; returns 1 if any step so far has failed.
failures=0
step() {
	"$@" || failures=1
	return "$failures"
}

unit_tests() {
	step make -j"$(nproc)" -C selftests/unit all "$@"
	step make -C selftests/unit check "$@"
	step make -s tools
	step selftests/check/install.sh
	step python3 selftests/tools/tools.py
	step python3 selftests/tools/run.py
	step make -s -C selftests/net check
}

stage_unit_quick() { unit_tests SEEDS=5000; }

stage_unit() {
	unit_tests
	# Fuzzers print no KTAP; they pass if they find nothing.
	if make -C selftests/unit fuzz; then
		ktap_result ok - fuzzers
	else
		ktap_result "not ok" - fuzzers
	fi
	return "$failures"
}

# warnings FILE: print the warnings in FILE, except Kbuild's warning that the kernel was built by
# another compiler
warnings() { grep -E 'warning:|WARNING' "$1" | grep -v '^warning: the compiler differs'; }

# verdict NAME COMMAND...: print one KTAP line, and below it the errors or warnings of the command;
# a warning is a failure, too.
verdict() {
	local name=$1 out
	shift
	out=$(mktemp "$logs/tmp.XXXXXX")
	if ! "$@" >"$out" 2>&1; then
		ktap_result "not ok" - "$name"
		grep -E 'error|ERROR|\*\*\*' "$out" | head -n 8 | sed "s|$src/||g;s/^/# /"
	elif warnings "$out" >/dev/null; then
		ktap_result "not ok" - "$name"
		warnings "$out" | head -n 12 | sed "s|$src/||g;s/^/# /"
	else
		ktap_result ok - "$name"
	fi
	rm -f "$out"
}

# The build folder is emptied first, so that every file is compiled and can cause warnings.
module_with() {
	local kernel=$1 name=$2
	shift 2
	rm -rf "$src/build/matrix/$name/$kernel"
	AFRDMA_BUILD=$src/build/matrix/$name "$lab/build-module.sh" "$kernel" W=1 "$@"
}

tools_with() {
	rm -rf "$src/build/matrix/tools-$1"
	make -C tools CC="$1" O="$src/build/matrix/tools-$1"
}

tests_with() {
	rm -rf "$src/build/matrix/net-$1"
	make -C selftests/net CC="$1" O="$src/build/matrix/net-$1"
}

# build_for KERNEL: build the module with clang, and then with gcc, which sparse.sh runs.
build_for() {
	local kernel=$1 name="build: clang W=1 on $1"
	if can_get "$kernel" "$name"; then
		# objtool is off, since it expects the code that the gcc of this kernel emits.
		verdict "$name" module_with "$kernel" clang \
			CC="$check/clang.sh" CONFIG_OBJTOOL= CONFIG_DEBUG_INFO_BTF_MODULES=
		selftests/lint/sparse.sh "$kernel"
	fi
}

stage_build() {
	local cc
	build_for vm-7.2
	for cc in gcc clang; do
		verdict "build: tools with $cc" tools_with "$cc"
		verdict "build: socket tests with $cc" tests_with "$cc"
	done
}

stage_build_quick() {
	verdict "build: gcc W=1 on vm-6.12" module_with vm-6.12 gcc
	verdict "build: tools" make tools
}

stage_lint_quick() {
	step selftests/lint/lint.sh layers ynl shell docs html wire_doc gen_reference gen_support \
		gen_troubleshooting man doc_names internals mutations
	step selftests/check/readme.sh
	step selftests/check/results_test.py
	step selftests/demo/selfcheck.sh
}

# sparse.sh is run in the stage "build" and not here, since it also compiles the module with gcc.
stage_lint() {
	step selftests/lint/lint.sh style symbols circles planted
	step selftests/check/packages.sh
	step selftests/check/watch.sh
	stage_lint_quick
}

# can_get KERNEL NAME: get the kernel. Returns 1, and prints that the test NAME is skipped, if this
# machine cannot; in_guests and build_for then skip.
can_get() {
	local rc=0
	"$lab/kernels.sh" make "$1" || rc=$?
	[ $rc -eq 4 ] || return 0
	ktap_result ok - "$2" "SKIP this machine cannot get the kernel of $1"
	return 1
}

# in_guests GUEST SECONDS SCRIPT...: run SCRIPT in both guests for at most SECONDS. $rdma is the
# type of device, $cpus and $more are further options of lab/run. Returns as step() does.
rdma=rxe
cpus=()
more=()
in_guests() {
	local guest=$1 seconds=$2 rc=0
	shift 2
	can_get "$guest" "$1" || return "$failures"
	# --verbose, since the last line of the log is shown as progress.
	"$lab/run" --guest "$guest" --rdma $rdma --build --verbose --timeout "$seconds" \
		"${cpus[@]}" "${more[@]}" -- "$@" || rc=$?
	# Status 4: the script has skipped its tests and printed why.
	[ $rc -eq 0 ] || [ $rc -eq 4 ] || failures=1
	[ $rc -ne 2 ] || ktap_result "not ok" - "the lab failed to run $1"
	return "$failures"
}

# against_byzantine GUEST SECONDS SCRIPT...: like in_guests, but guest b loads a module with fault
# injection.
against_byzantine() {
	local module
	module=$(AFRDMA_BUILD=$src/build/rogue "$lab/build-module.sh" "$1" \
		CONFIG_AFRDMA_BYZANTINE=y) || { failures=1; return 1; }
	more=(--module-b "$module")
	in_guests "$@"
	more=()
	return "$failures"
}

# Rows that in_vms() runs with their full counts: 1,000 cycles of connect, 64 KiB and
# close (200 on RDMA); 200 connections at once; 800 connections opened by eight threads.
many='cycles.cold,cycles.rdma,many_poll.*,connect_storm.cold'

# Build programs, but not while another stage does so.
build_alone() { flock "$logs/.programs" make -s "$@"; }
programs() { build_alone -C selftests/net && build_alone tools; }
examples() {
	build_alone -C tools/examples O="$src/build/examples" CPPFLAGS="-I$src/include/uapi"
}

stage_uml() {
	programs || return
	in_guests uml 400 selftests/check/one-way.sh quick --no-rogue
	against_byzantine uml 200 selftests/net/forged.sh quick
}

stage_uml_back() {
	programs || return
	in_guests uml 300 selftests/check/one-way.sh \
		full --no-rogue --variants cold --only '*_back' -- \
		full --no-rogue --inet6 --only forbidden_later
	in_guests uml 300 selftests/tools/run.sh
	against_byzantine uml 400 selftests/net/rogue-module.sh --quick
}

# Both hosts are network namespaces of one kernel, whose two CPUs make races possible.
in_one_kernel() {
	programs || return
	cpus=(--smp 2)
	more=(--netns)
	in_guests "$@"
	more=()
	return "$failures"
}

# The only stage of "make check-quick" with guests, so it must test even where 7.2 cannot be had.
stage_uml_7.2() {
	if can_get uml-7.2 "the socket table on 7.2"; then
		in_one_kernel uml-7.2 600 selftests/check/one-way.sh quick
	else
		stage_uml
	fi
}

stage_uml_7.2_debug() {
	in_one_kernel uml-7.2-debug 2400 selftests/check/one-way.sh \
		quick -- full --no-rogue --only cycles.cold
	more=(--guests 1 --env PAIRS=4)
	in_guests uml-7.2-debug 900 selftests/net/netns.sh
}

stage_programs_quick() { selftests/programs/programs.sh quick; }

# Scripts that run with sanitizers.
sanitized='tools/guest net/death net/limits net/memory net/arrival net/pace net/dumps'

stage_uml_debug() {
	local script
	programs || return
	in_guests uml-debug 900 selftests/check/one-way.sh \
		quick -- full --no-rogue --only cycles.cold
	for script in $sanitized; do
		in_guests uml-debug 600 "selftests/$script.sh"
	done
	against_byzantine uml-debug 900 selftests/net/rogue-module.sh --quick
	return "$failures"
}

stage_bench_quick() {
	selftests/bench/run --guest uml --only counts --reps 1 --quick --out build/bench-quick
}

# Each run chooses a new seed, which is in the log.
stage_faults() { selftests/faults/run --quick; }

# VMs with two CPUs, so that threads run concurrently and races can occur. Without rogue, which runs
# with sanitizers, and with two CPUs, in uml-7.2-debug.
in_vms() {
	cpus=(--smp 2)
	programs || return
	in_guests "$1" 1500 selftests/check/one-way.sh \
		quick --no-rogue -- full --no-rogue --only "$many"
	in_guests "$1" 800 selftests/net/death.sh
	return "$failures"
}

stage_vm_7.2() { in_vms vm-7.2; }
stage_vm_6.12() { in_vms vm-6.12; }

# Without rogue: nearly all code of the module that its rows run is the same on 6.1 and on 6.12.
# With tools/guest.sh: it tests the netlink code, which differs between these kernels.
stage_vm_6.1() {
	programs || return
	in_guests vm-6.1 1500 selftests/check/one-way.sh quick --no-rogue
	in_guests vm-6.1 600 selftests/tools/guest.sh
	in_guests vm-6.1 800 selftests/net/death.sh
	return "$failures"
}

# Makes the kernels that the other stages of this run need or, if none needs any, those of all lines
# of stages(). If a kernel is being built in the background, this stage waits for it.
stage_kernels() {
	local kernel rc
	for kernel in ${kernels:-$(stages | sed -n 's/.*+//p' | sort -u)}; do
		rc=0
		"$lab/kernels.sh" make "$kernel" || rc=$?
		case $rc in
		0)	ktap_result ok - "kernel of $kernel" ;;
		4)	ktap_result ok - "kernel of $kernel" "SKIP this machine cannot get it" ;;
		*)	ktap_result "not ok" - "kernel of $kernel" ;;
		esac
	done
}
