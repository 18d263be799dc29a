#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Check that a kernel exports every kernel symbol that afrdma.ko uses. The headers of a kernel can
# declare a symbol that the kernel does not export, and a stable update can withdraw an export.
#
#   symbols.sh			for vm-6.1 and vm-7.2 of selftests/lab
#   symbols.sh KO SYMVERS	a module and the Module.symvers of its kernel
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# missing KO SYMVERS: print the undefined symbols of KO that SYMVERS does not export.
missing() {
	nm -u "$1" | awk '{ print $NF }' | sort -u >"$tmp/undefined"
	cut -f 2 "$2" | sort -u >"$tmp/exported"
	comm -23 "$tmp/undefined" "$tmp/exported" >"$tmp/unknown"
	grep -vx '_GLOBAL_OFFSET_TABLE_' "$tmp/unknown" || [ $? -eq 1 ]
}

if [ $# -eq 2 ]; then
	missing "$1" "$2" >"$tmp/missing"
	judge "symbols: $(basename "$1")" "$tmp/missing"
	finish
	exit
fi

lab=$src/selftests/lab
for kernel in vm-6.1 vm-7.2; do
	name="symbols: $kernel exports all symbols that the module uses"
	if ! kdir=$("$lab/kernels.sh" dir "$kernel" 2>"$tmp/log"); then
		skip "$name" "no headers of $kernel"
		continue
	fi
	# If a symbol is missing, modpost fails and names it.
	if ! ko=$("$lab/build-module.sh" "$kernel" 2>"$tmp/log"); then
		grep -E 'error|ERROR|undefined' "$tmp/log" >"$tmp/missing" ||
			tail -n 20 "$tmp/log" >"$tmp/missing"
		not_ok "$name" "$tmp/missing"
		continue
	fi
	missing "$ko" "$kdir/Module.symvers" >"$tmp/missing"
	judge "$name" "$tmp/missing"
done
finish
