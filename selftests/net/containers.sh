#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests, or with --netns: the recipe for containers in afrdma.rst. A container
# in guest b serves a file, and a container in guest a fetches it, by RDMA. The only program in both
# containers is a static busybox, which knows nothing of AF_RDMA.
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
image=$(mktemp -d)
bytes=60000000		# the first 2 MB or so go by TCP, until a link is up

if ! command -v systemd-nspawn >/dev/null; then
	skip "containers" "no systemd-nspawn: install systemd-container"
	exit 4
fi

stat_of() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }
# What the device has sent: a witness that does not depend on the module.
packets() { rdma statistic show link "$AFR_DEV/1" | grep -o 'sent_pkts [0-9]*' | cut -d ' ' -f 2; }
listens() { ss -Htln "sport = :$1" | grep -q .; }

mkdir -p "$image"/{bin,usr,etc,proc,sys,dev,run,tmp,www}
cp "$AFR_SHARED/../busybox" "$image/bin/busybox"
for name in sh httpd wget sha256sum; do
	ln -s busybox "$image/bin/$name"
done
head -c $bytes /dev/urandom >"$image/www/file"

# the recipe
in_container=("$smctl" run --via seccomp -- systemd-nspawn --quiet --register=no --keep-unit
	      --kill-signal=KILL --directory="$image")

if [ "$AFR_ROLE" = b ]; then
	before=$(packets)
	put sum "$(sha256sum <"$image/www/file")"
	"${in_container[@]}" httpd -f -p 8000 -h /www >"$AFR_OUT/httpd" 2>&1 &
	server=$!
	check "a container listens" wait_for 60 listens 8000
	barrier serves
	barrier fetched 300
	check "the server has sent the file by RDMA" \
		test "$(stat_of tx_bytes_rdma)" -gt $((bytes * 9 / 10))
	check "the RDMA device has sent as many packets as that takes" \
		test $(($(packets) - before)) -gt $((bytes * 9 / 10 / 4096))
	kill $server
	wait
	sed 's/^/# /' "$AFR_OUT/httpd"
else
	barrier serves
	# shellcheck disable=SC2016 # the shell in the container expands $1
	"${in_container[@]}" sh -c 'wget -q -O /tmp/got "$1" && sha256sum </tmp/got' - \
		"http://$AFR_PEER:8000/file" >"$AFR_OUT/wget" 2>&1
	sed 's/^/# /' "$AFR_OUT/wget"
	check "another container receives the file" grep -q "$(get sum)" "$AFR_OUT/wget"
	check "by RDMA" test "$(stat_of rx_bytes_rdma)" -gt $((bytes * 9 / 10))
	barrier fetched
fi
exit 0
