#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# For selftests/lab/run: Python's own tests of sockets, TLS, HTTP and asyncio on TCP,
# then under "smctl run". What passes on TCP has to pass on AF_RDMA; what does not, and
# why, is in python.differences. Each guest has its share of the modules and talks to
# itself: "localhost" is its own address, since a link needs a device that can RDMA.
# What a test sends to a literal 127.0.0.1 stays on the tcp path; the few that bind to
# the one and connect to the other fail on both families.
#
#	python.sh [MODULE...]		these, in both guests
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
here=$AFR_SRC/selftests/programs
python=/usr/bin/python3		# Debian's: its suite is a package
declare -A share=(
	[a]="test_socket test_selectors test_poll test_epoll test_socketserver
		test_httplib test_ftplib test_smtplib"
	[b]="test_ssl test_asyncio.test_streams test_asyncio.test_sock_lowlevel
		test_asyncio.test_server test_asyncio.test_sendfile test_asyncio.test_ssl
		test_asyncio.test_buffered_proto test_asyncio.test_selector_events
		test_asyncio.test_events"
)

[ -n "$AFR_MODULE" ] || { skip "python" "no afrdma.ko"; exit 4; }
[ -x "$smctl" ] || { skip "python" "not built: make -C tools"; exit 4; }
read -r -d '' -a modules <<<"${*:-${share[$AFR_ROLE]}}"

# suite FAMILY COMMAND...: one line for each test, in $AFR_OUT/python.FAMILY
suite() {
	local family=$1 from=$SECONDS
	shift
	cd /tmp || return
	"$@" "$python" "$here/python_suite.py" "$AFR_OUT/python.$family" 40 \
		"${modules[@]}" >"$AFR_OUT/python.$family.log" 2>&1
	say "$family: $((SECONDS - from)) s, $(counts "$AFR_OUT/python.$family")"
}

counts() {
	awk '$2 != "begins" { n[$2]++ } END { for (word in n) printf "%d %s ", n[word], word }' "$1"
}

counter() { "$smctl" stats | awk -v name="$1" '$1 == name { print $2 }'; }

# Each module has tests that pass on TCP, or the suite is not what we think it is.
all_modules_ran() {
	local module
	for module in "${modules[@]}"; do
		grep -q "^test\.$module\..* pass\$" "$AFR_OUT/python.tcp" || return 1
	done
}

# went_up NAME BEFORE: AF_RDMA was used, or all of this proves nothing.
went_up() {
	local now
	now=$(counter "$1")
	if [ "$now" -gt "$2" ]; then ok "$1: $2 to $now"; else not_ok "$1" "still $now"; fi
}

echo "$AFR_ME localhost" >/tmp/hosts
mount --bind /tmp/hosts /etc/hosts || exit 1
sysctl -qw net.afrdma.upgrade_bytes=0
suite tcp env
check "all modules run" all_modules_ran
before=()
used=(conn_framed upgrade_done rx_bytes_rdma)
for name in "${used[@]}"; do before+=("$(counter "$name")"); done
suite rdma "$smctl" run --
for i in "${!used[@]}"; do went_up "${used[i]}" "${before[i]}"; done

awk -v listed="$here/python.differences" -v prefix="test." -f "$here/compare.awk" \
	"$AFR_OUT/python.tcp" "$AFR_OUT/python.rdma" >"$AFR_OUT/python.delta"
cat "$AFR_OUT/python.delta"
check "no difference that is not listed" sh -c \
	"[ -s '$AFR_OUT/python.delta' ] && ! grep -v '^#' '$AFR_OUT/python.delta'"
barrier end 1200
