#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by the lab (selftests/lab/run) in both guests; runs rogue-module.py. One guest is a Byzantine
# peer: its module has fault injection, so it was built by "make CONFIG_AFRDMA_BYZANTINE=y" and
# passed to the lab by --module-b or --module-a.
#
#	rogue-module.sh [OPTIONS OF rogue-module.py]
set -uo pipefail
. "$AFR_LAB/guest-lib.sh"

rogue=/sys/module/afrdma/parameters/rogue
if [ -e $rogue ]; then
	put byzantine yes
elif [ "$(get byzantine 30)" != yes ]; then
	skip "Byzantine peer" "no guest is one: run --module-b build/rogue/.../afrdma.ko"
	exit 4
fi
rc=0
PYTHONDONTWRITEBYTECODE=1 python3 "$AFR_SRC/selftests/net/rogue-module.py" "$@" || rc=$?
barrier end 3600
exit $rc
