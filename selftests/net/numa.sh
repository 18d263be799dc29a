#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in one VM with two NUMA nodes (run --guest vm-7.2 --guests 1 --smp 2 --numa 2): the
# rings of a connection are in the memory of the node on which its program runs, even if the kernel
# threads that allocate their pages run on the other node.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

check "there are two nodes" test -d /sys/devices/system/node/node1 || exit 1
echo 1 >/proc/sys/net/afrdma/upgrade_msgs
for cpu in 0 1; do
	# a mask of CPUs: that of the other node
	echo $((2 - cpu)) >/sys/devices/virtual/workqueue/cpumask
	check_within 120 "rings are on the node of CPU $cpu" \
		python3 "$AFR_SRC/selftests/net/numa.py" "$AFR_ME" $cpu
done
exit 0
