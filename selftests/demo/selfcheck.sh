#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test of cause.awk: logs of failed demos, and the causes that it must find in them. Prints KTAP.
set -uo pipefail
# shellcheck source=selftests/lint/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lint/lib.sh"
cd "$src" || exit 1

# Harmless lines. The logs of guests below begin with them.
noise='lab: vm-6.12 (tcg), 2 guests, with afrdma.ko
---- a: end of the console ----
[   12.104512] afrdma: loading out-of-tree module taints kernel.
[   12.104611] afrdma: module verification failed: signature and/or required key missing - tainting kernel
[   13.000000] 9pnet: error: harmless'

# names CAUSE NAME LOG [STORY]: with LOG as the log of a demo and STORY as the report of the
# guests, cause.awk must print CAUSE. The KTAP line contains NAME.
names() {
	local want=$1 name="demo: cause of a failure: $2" got
	printf '%s\n' "$3" >"$tmp/log"
	printf '%s\n' "${4:-}" >"$tmp/story"
	got=$(awk -f selftests/demo/cause.awk "$tmp/log" "$tmp/story")
	: >"$tmp/wrong"
	[ "$got" = "$want" ] || printf '%s\ninstead of: %s\n' "$got" "$want" >"$tmp/wrong"
	judge "$name" "$tmp/wrong"
}

names "host b: Kernel panic - not syncing: Oops" "a panic, not its effect on the other guest" \
	"$noise
lab: a failed: not ok - demo # b did not check the connection
lab: b failed: Kernel panic - not syncing: Oops
lab: FAIL vm-6.12 guest.sh: 3 ok, 1 not ok, 0 skipped, 70.1 s, build/lab/x" \
	"   FAILED on host a: b did not check the connection"
names "host a: no verdict within 900 seconds; its kernel was not asked" "a timeout" "$noise
lab: a failed: no verdict within 900 seconds; its kernel was not asked
lab: b failed: killed: the other guest has died"
names "host b: the web server does not listen" "the first failure of two" "$noise
a: not ok - demo # b does not serve
b: not ok - demo # the web server does not listen
lab: a failed: not ok - demo # b does not serve
lab: b failed: not ok - demo # the web server does not listen" \
	"3. iperf3
   FAILED on host b: the web server does not listen
   FAILED on host a: b does not serve"
names "host a: ledger: kernel log # WARNING: CPU: 0 PID: 9 at net/x" "a test of the lab" "$noise
a: ok - file
a: not ok - ledger: kernel log # WARNING: CPU: 0 PID: 9 at net/x
lab: a failed: not ok - ledger: kernel log # WARNING: CPU: 0 PID: 9 at net/x"
names "E: Unable to locate package hey" "a package" "deps: missing: curl hey
Reading package lists...
E: Unable to locate package hey
deps: apt-get could not install: curl hey"
names "net/afrdma/sockopt.c:7:1: error: unknown type name 'x'" "a compiler" \
	"make: Entering directory 'build'
  CC [M]  net/afrdma/own.o
net/afrdma/sockopt.c:7:1: error: unknown type name 'x'
make[1]: *** [Makefile:1: net/afrdma/own.o] Error 1
build-module: the build produced no afrdma.ko"
names "kernels: apt does not know linux-image-6.12-amd64" "a kernel" \
	"kernels: unpack x (log: y)
kernels: unpack x: done in 0 s
kernels: apt does not know linux-image-6.12-amd64"
finish
