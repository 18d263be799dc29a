#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# clang as CC for the headers of a kernel that gcc has built: their config
# names options that only gcc has.  They are dropped or replaced here, so that
# a second compiler reads the sources; what comes out is not meant to be run.
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
# Per-CPU data of kernels since 6.10 is in an address space, which clang before
# 17 takes for given twice.
exec "${CLANG:-clang}" "${args[@]}" -Wno-duplicate-decl-specifier -Wno-gnu
