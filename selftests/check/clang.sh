#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For use as CC: compiles the module with clang, for its warnings, against the headers of a kernel
# that was built by gcc. Drops the options of that kernel's makefiles that clang 19, or an older
# version named by CLANG, does not support. The objects are not meant to be run. clang 19 is the
# newest of Debian 12; the headers of 7.2 need at least 17.
args=()
for arg; do
	case $arg in
	-mrecord-mcount | -fconserve-stack | -mfunction-return=* | \
	-mindirect-branch=* | -mindirect-branch-register | -mindirect-branch-cs-prefix | \
	-mpreferred-stack-boundary=* | -fno-allow-store-data-races | \
	-fplugin=* | -fplugin-arg-* | -mharden-sls=* | -falign-jumps=* | -falign-loops=* | \
	-fmin-function-alignment=* | -fzero-call-used-regs=* | -fsanitize=bounds-strict | \
	-ftrivial-auto-var-init=* | -mstack-protector-guard-symbol=* | \
	-Wno-alloc-size-larger-than | -Wimplicit-fallthrough=5 | -Wno-maybe-uninitialized)
		;;
	*)	args+=("$arg") ;;
	esac
done
# -Wno-duplicate-decl-specifier: the headers of 6.12 can name the address space of per-CPU data
# twice. The kernel's makefiles add the other three options only if the kernel was built by clang.
exec "${CLANG:-clang-19}" "${args[@]}" -Wno-duplicate-decl-specifier -Wno-gnu \
	-Wno-microsoft-anon-tag -Wno-enum-enum-conversion
