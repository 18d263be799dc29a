#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in one guest of kernel 7.2 (run --guest uml-7.2 --guests 1 --smp 2): RDMA between
# network namespaces. $PAIRS pairs of namespaces (default 30) are created and deleted while
# connections between them are on RDMA, and nothing of them stays behind.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

netns=$AFR_SRC/selftests/net/netns.py
smctl=$AFR_SRC/build/tools/smctl

# Prints the number of namespaces in the kernel, including those that only the kernel itself holds.
# First creates and deletes two: the kernel frees the memory of an ended namespace only when another
# one ends after it.
namespaces() {
	for _ in 1 2; do
		ip netns add another
		ip netns del another
		sleep 0.3
	done
	echo 1 >/sys/kernel/slab/net_namespace/shrink
	awk '$1 == "net_namespace" { print $2 }' /proc/slabinfo
}
gone() { [ "$(namespaces)" -le "$before" ]; }

# part NAME SECONDS WORD...: run netns.py WORD...; if it fails, its namespaces are deleted here
part() { check_within "$2" "$1" python3 "$netns" "${@:3}" || ip -all netns delete; }

# smctl_in NAMESPACE WORDS...: the JSON of smctl, on one line
smctl_in() { ip netns exec "$1" "$smctl" -j "${@:2}" | tr -d '\n '; }

# Namespaces that end slowly may still be counted: take the least of several counts.
before=$(for _ in 1 2 3; do namespaces; done | sort -n | head -n 1)
# The interfaces that container runtimes make. UML has no ipvlan.
for kind in veth macvlan ipvlan; do
	if [ $kind = veth ] || ip link add try link eth0 type $kind 2>/dev/null; then
		[ $kind = veth ] || ip link del try
		part "RDMA between namespaces with $kind interfaces" 60 kind $kind
	else
		skip "RDMA between namespaces with $kind interfaces" "this kernel has no $kind"
	fi
done
part "a device leaves its namespace under a stream" 120 leave
part "namespaces end with connections on RDMA" 3000 storm "${PAIRS:-30}"
check "no namespace stays behind" wait_for 200 gone

# Shared mode: a namespace sees all devices, but can use only those with an interface in it.
# While devices are removed, the kernel may fail to create a namespace (ENODEV).
check "a namespace is created" wait_for 30 ip netns add empty
check "a namespace without interfaces sees devices that it cannot use" \
	grep -q '"usable":false.*"reason":"NETNS"' <<<"$(smctl_in empty dev)"
check "it shows no connections and no links" test "$(smctl_in empty conn)$(smctl_in empty link)" = "[][]"

ip netns del empty

# Exclusive mode: a namespace sees only its own devices. The mode can be changed only while there is
# no other namespace.
exclusive() { rdma system set netns exclusive; }
shared() { rdma system set netns shared; }
rdma link del "$AFR_DEV"
check "exclusive mode" wait_for 20 exclusive
rdma link add "$AFR_DEV" type rxe netdev eth0
ip netns add empty
check "exclusive mode: another namespace sees no device" test "$(smctl_in empty dev)" = "[]"
check "exclusive mode: the initial namespace uses its device" \
	grep -q '"usable":true' <<<"$("$smctl" -j dev | tr -d '\n ')"
# A device can move to another namespace only if its driver supports that, and rxe of 7.2 does not.
# With a driver that does, the socket table has to run in two namespaces in the exclusive mode, too.
cannot_move() { [[ $(rdma dev set "$AFR_DEV" netns empty 2>&1) == *"not supported"* ]]; }
check "exclusive mode: the kernel refuses to move an rxe device" cannot_move
ip netns del empty
rdma link del "$AFR_DEV"
check "shared mode again" wait_for 20 shared
rdma link add "$AFR_DEV" type rxe netdev eth0
exit 0
