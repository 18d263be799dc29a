#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each bug of selftests/mutations/ still fits the code that it is for. KTAP.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
patches=(selftests/mutations/*.patch)
echo "KTAP version 1"
echo 1..1
wrong=0
for patch in "${patches[@]}"; do
	git apply --check "$patch" 2>&1 | sed 's/^/# /'
	[ "${PIPESTATUS[0]}" -eq 0 ] || wrong=1
done
if [ $wrong -eq 0 ]; then
	echo "ok 1 patches: all ${#patches[@]} apply"
else
	echo "not ok 1 patches: see above"
fi
exit $wrong
