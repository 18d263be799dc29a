# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The stages of check.sh, which sources this: a table, and a function for each
# line of it.  A function prints KTAP among whatever else its commands print;
# it runs in a process of its own, in the source tree, without a terminal.
: "${src:?}" "${lab:?}" "${check:?}" "${logs:?}"	# from check.sh

# name, seconds it may take, what it is.  In the order they run in; "+" marks
# what needs the guest kernels behind it, which are made meanwhile.
stages() {
	cat <<-'END'
	deps		1200	Debian packages that are missing
	unit		600	the pure layer in user space, its model, the tools
	build		900	{6.12, 6.1} x {gcc with sparse, clang}, the tools with both
	build-quick	300	6.12 with gcc, the tools
	lint		300	layers, style, symbols, scripts
	lint-quick	120	layers, scripts
	kernels		2400	guest kernels: built while the above ran
	uml		600	two guests, User-Mode Linux		+uml
	uml-debug	1500	two guests with KASAN, lockdep, kmemleak	+uml-debug
	vm-6.12		900	two VMs, Debian's 6.12			+vm-6.12
	vm-6.1		900	two VMs, Debian's 6.1			+vm-6.1
	END
}
# shellcheck disable=SC2034 # for check.sh
all="deps unit build lint kernels uml-debug vm-6.12 vm-6.1"
# shellcheck disable=SC2034
quick="deps unit build-quick lint-quick kernels uml"

### The functions: stage_NAME, with "_" for "-"

stage_deps() { "$lab/deps.sh"; }

stage_unit() {
	local failed=0
	if [ -e selftests/unit/Makefile ]; then
		make -C selftests/unit -j"$(nproc)" all &&
			make -C selftests/unit check || failed=1
	fi
	make -s tools && python3 selftests/tools/tools.py || failed=1
	return "$failed"
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

stage_lint() { selftests/lint/lint.sh shell ynl; }

stage_lint_quick() { selftests/lint/lint.sh shell; }

# in_guests GUEST [OPTION OF run...] -- SCRIPT...
in_guests() {
	local guest=$1
	shift
	"$lab/run" --guest "$guest" --build "$@"
}

guests_quick() {
	make -s tools || return
	in_guests "$1" -- selftests/tools/guest.sh
}

stage_uml() { guests_quick uml; }
stage_uml_debug() { guests_quick uml-debug; }
stage_vm_6.12() { guests_quick vm-6.12; }
stage_vm_6.1() { guests_quick vm-6.1; }

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
