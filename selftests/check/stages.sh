# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The stages of check.sh, which sources this: a table, and a function for each
# line of it.  A function prints KTAP among whatever else its commands print;
# it runs in a process of its own, in the source tree, without a terminal.
: "${src:?}" "${lab:?}" "${check:?}" "${logs:?}"	# from check.sh

# name, seconds it takes at most where nothing else runs (see watch), what it is; "+" marks which guest kernel it needs,
# all of which are made in the background from the beginning.
stages() {
	cat <<-'END'
	deps		3600	Debian packages that are missing
	unit		900	the pure layer in user space: tests, model, fuzzers; tools; the socket tests over TCP
	unit-quick	120	the same without fuzzers, with a shorter model
	build		1800	{6.12, 6.1} x {gcc with W=1 and sparse, clang with W=1}; the tools with both
	build-quick	300	6.12 with gcc and W=1, the tools
	lint		600	layers, style, symbols, scripts, documents
	lint-quick	120	layers, scripts, documents
	kernels		2400	guest kernels: built while the above ran
	uml		900	two User-Mode Linux guests: the socket table, quick; a module that lies	+uml
	uml-debug	3600	the same with KASAN, lockdep and kmemleak; 1,000 connections in a row	+uml-debug
	siw		600	the socket table, quick, and devices that die, over iWARP	+uml
	uml-back	800	rows that quick leaves out: the server has the client's part; rings of 1 MiB; smctl run; tools/examples	+uml
	programs-quick	400	four programs between two guests, as on TCP and by RDMA	+uml
	bench-quick	300	what a message costs, counted in two UML guests	+uml
	faults		600	faults under streams, those that take little time	+uml
	vm-6.12		3600	two VMs with 2 CPUs, Debian's 6.12: table, 1,000 in a row, 200 at once	+vm-6.12
	vm-6.1		3600	the table and smctl on Debian's 6.1, with one CPU	+vm-6.1
	END
}
# shellcheck disable=SC2034 # for check.sh
all="deps unit build lint kernels uml-debug siw uml-back bench-quick faults programs-quick vm-6.12 vm-6.1"
# shellcheck disable=SC2034
quick="deps unit-quick build-quick lint-quick kernels uml"

### The functions: stage_NAME, with "_" for "-"

stage_deps() { "$lab/deps.sh"; }

# step COMMAND...: go on after a failure, but remember it.
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
	step make -s -C selftests/net all
	step selftests/net/oracle.sh build/net --quick
}

stage_unit_quick() { unit_tests SEEDS=5000; }

stage_unit() {
	unit_tests
	# No findings is what fuzzers are to have, and no KTAP is what they print.
	if make -C selftests/unit fuzz; then
		echo "ok - fuzzers"
	else
		echo "not ok - fuzzers"
	fi
	return "$failures"
}

# verdict NAME COMMAND...: one KTAP line; what it printed below, if it failed or
# if it warned.
verdict() {
	local name=$1 out
	shift
	out=$(mktemp "$logs/tmp.XXXXXX")
	if ! "$@" >"$out" 2>&1; then
		echo "not ok - $name"
		grep -E 'error|ERROR|\*\*\*' "$out" | head -n 8 | sed "s|$src/||g;s/^/# /"
	elif grep -qE 'warning:|WARNING' "$out"; then
		echo "not ok - $name"
		grep -E 'warning:|WARNING' "$out" | head -n 12 | sed "s|$src/||g;s/^/# /"
	else
		echo "ok - $name"
	fi
	rm -f "$out"
}

# Compilers warn about what they compile: an emptied folder makes that all.
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

stage_build() {
	local kernel cc
	for kernel in vm-6.12 vm-6.1; do
		# clang: its objects are of no use to objtool, which looks for
		# what this kernel's gcc was told to emit.
		verdict "build: clang W=1 on $kernel" module_with "$kernel" clang \
			CC="$check/clang.sh" CONFIG_OBJTOOL= CONFIG_DEBUG_INFO_BTF_MODULES=
	done
	for cc in gcc clang; do
		verdict "build: tools with $cc" tools_with "$cc"
		verdict "build: socket tests with $cc" tests_with "$cc"
	done
	selftests/lint/sparse.sh
}

stage_build_quick() {
	verdict "build: gcc W=1 on vm-6.12" module_with vm-6.12 gcc
	verdict "build: tools" make tools
}

stage_lint_quick() {
	step selftests/lint/lint.sh layers ynl shell docs wire_doc gen_reference gen_support doc_names internals mutations
	step selftests/check/readme.sh
	step selftests/demo/selfcheck.sh
}

# Without sparse: that is a build.
stage_lint() {
	step selftests/lint/lint.sh style symbols
	step selftests/check/packages.sh
	step selftests/check/watch.sh
	stage_lint_quick
}

# in_guests GUEST SECONDS SCRIPT...; $rdma is the kind of device, $cpus and $more are words for
# the lab
rdma=rxe
cpus=()
more=()
in_guests() {
	local guest=$1 seconds=$2 rc=0
	shift 2
	# Verbose: the end of the log is what is shown of a stage that is at work.
	"$lab/run" --guest "$guest" --rdma $rdma --build --verbose --timeout "$seconds" \
		"${cpus[@]}" "${more[@]}" -- "$@" || rc=$?
	# 4 is a script that could not do its work here, and has said so.
	[ $rc -eq 0 ] || [ $rc -eq 4 ] || failures=1
	[ $rc -ne 2 ] || echo "not ok - the lab for $1"
	return "$failures"
}

# The same, and guest b has the module that lies.
against_liar() {
	local liar
	liar=$(AFRDMA_BUILD=$src/build/rogue "$lab/build-module.sh" "$1" CONFIG_AFRDMA_BYZANTINE=y) ||
		{ failures=1; return 1; }
	more=(--module-b "$liar")
	in_guests "$@"
	more=()
	return "$failures"
}

# Rows of the table in full: 1,000 times connect, 64 KiB, close; 200 at once.
many='cycles.cold,cycles.rdma,many_poll.*,connect_storm.cold'

programs() { make -s -C selftests/net && make -s tools; }
examples() { make -s -C tools/examples O="$src/build/examples" CPPFLAGS="-I$src/include/uapi"; }

stage_uml() {
	programs || return
	in_guests uml 400 selftests/check/one-way.sh quick --no-rogue
	against_liar uml 200 selftests/net/forged.sh quick
}

stage_uml_back() {
	programs || return
	in_guests uml 300 selftests/check/one-way.sh full --no-rogue --variants cold --only '*_back'
	in_guests uml 300 selftests/tools/run.sh
	examples && in_guests uml 200 selftests/tools/examples.sh
	in_guests uml 200 selftests/net/tunnel.sh
	in_guests uml 200 selftests/net/tail.sh
	in_guests uml 300 selftests/net/hole.sh
	more=(--mem 2000 --env PAGES=1000000)
	in_guests uml 300 selftests/check/one-way.sh quick --no-rogue --variants rdma,cold
	return "$failures"
}

# siw is in no kernel of Debian's.
stage_siw() {
	rdma=siw
	programs || return
	in_guests uml 400 selftests/check/one-way.sh quick --no-rogue
	in_guests uml 300 selftests/net/death.sh
	in_guests uml 400 selftests/net/pace.sh
	return "$failures"
}

stage_programs_quick() { selftests/programs/programs.sh quick; }

stage_uml_debug() {
	programs || return
	in_guests uml-debug 900 selftests/check/one-way.sh \
		quick -- full --no-rogue --only cycles.cold
	in_guests uml-debug 600 selftests/tools/guest.sh
	in_guests uml-debug 400 selftests/net/death.sh
	in_guests uml-debug 300 selftests/net/limits.sh
	in_guests uml-debug 300 selftests/net/memory.sh
	in_guests uml-debug 200 selftests/net/arrival.sh
	in_guests uml-debug 400 selftests/net/pace.sh
	in_guests uml-debug 200 selftests/net/dumps.sh
	against_liar uml-debug 900 selftests/net/rogue-module.sh --quick
	return "$failures"
}

stage_bench_quick() {
	selftests/bench/run --guest uml --only counts --reps 1 --quick --out build/bench-quick
}

# With a seed of its own each time: the log has it.
stage_faults() { selftests/faults/run --quick; }

# Two CPUs: what races does so for real.
stage_vm_6.12() {
	cpus=(--smp 2)
	programs || return
	in_guests vm-6.12 1500 selftests/check/one-way.sh \
		quick -- full --no-rogue --only "$many"
	in_guests vm-6.12 800 selftests/net/death.sh
	in_guests vm-6.12 400 selftests/net/pace.sh
	return "$failures"
}

# What a peer can do, and pacing, hang on nothing that is different in 6.1; netlink does.
stage_vm_6.1() {
	programs || return
	in_guests vm-6.1 1500 selftests/check/one-way.sh quick --no-rogue
	in_guests vm-6.1 600 selftests/tools/guest.sh
	in_guests vm-6.1 800 selftests/net/death.sh
	return "$failures"
}

# Made in the background; this waits for the rest of it.
stage_kernels() {
	local kernel
	for kernel in ${kernels:?}; do
		if "$lab/kernels.sh" make "$kernel"; then
			echo "ok - kernel of $kernel"
		else
			echo "not ok - kernel of $kernel"
		fi
	done
}
