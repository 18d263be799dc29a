#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# To be used as CC: clang compiles the module, as a second compiler that checks it, with the
# headers of a kernel that was built by gcc. Of the compiler options that come with that kernel,
# those that clang, or an older clang, does not support are dropped. The objects are not meant to
# be run.
args=()
for arg; do
	case $arg in
	-mrecord-mcount | -fconserve-stack | -mfunction-return=* | \
	-mindirect-branch=* | -mindirect-branch-register | -mindirect-branch-cs-prefix | \
	-mpreferred-stack-boundary=* | -fno-allow-store-data-races | \
	-fplugin=* | -fplugin-arg-* | -mharden-sls=* | -falign-jumps=* | -falign-loops=* | \
	-fmin-function-alignment=* | -fzero-call-used-regs=* | -fsanitize=bounds-strict | \
	-ftrivial-auto-var-init=* | \
	-Wno-alloc-size-larger-than | -Wimplicit-fallthrough=5 | -Wno-maybe-uninitialized)
		;;
	*)	args+=("$arg") ;;
	esac
done
# The headers of 6.12 can name the address space of per-CPU data twice, and clang warns of that.
# -Wno-gnu is an option that the kernel's makefiles pass to clang, but not to gcc.
exec "${CLANG:-clang}" "${args[@]}" -Wno-duplicate-decl-specifier -Wno-gnu
