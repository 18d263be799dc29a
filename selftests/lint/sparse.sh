#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# sparse (byte order, address spaces, contexts) and gcc with W=1 must not warn about the module.
#
#   sparse.sh [KERNEL...]	names as in selftests/lab/kernels.sh; default: the newest kernel and
#				the oldest one
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

lab=$src/selftests/lab
[ $# -gt 0 ] || set -- vm-7.2 vm-6.1
for kernel; do
	name="sparse: C=2 W=1 on $kernel"
	if ! command -v sparse >/dev/null; then
		skip "$name" "no sparse"
		continue
	fi
	if ! "$lab/kernels.sh" dir "$kernel" >/dev/null 2>&1; then
		skip "$name" "no headers of $kernel"
		continue
	fi
	# The build folder is emptied first, so that every file is compiled and checked.
	rm -rf "$src/build/sparse/$kernel"
	if ! AFRDMA_BUILD=$src/build/sparse "$lab/build-module.sh" "$kernel" \
		W=1 C=2 CF=-D__CHECK_ENDIAN__ >"$tmp/log" 2>&1; then
		grep -E 'error' "$tmp/log" >"$tmp/wrong" || tail -n 20 "$tmp/log" >"$tmp/wrong"
		not_ok "$name" "$tmp/wrong"
		continue
	fi
	# Keep only warnings about files of the module, and cut the build folder off their paths.
	grep -E "$src/build/sparse/$kernel/[^ ]*:[0-9]+:[0-9]+: " "$tmp/log" |
		sed "s|$src/build/sparse/$kernel/||" >"$tmp/wrong" || true
	judge "$name" "$tmp/wrong"
done
finish
