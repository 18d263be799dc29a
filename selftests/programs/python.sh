#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# For selftests/lab/run: Python's own tests of sockets, TLS, HTTP and asyncio, see parity.sh.
# Each guest has its share of the modules and talks to itself: "localhost" is its own
# address, since a link needs a device that can RDMA.
# What a test sends to a literal 127.0.0.1 stays on the tcp path; the few that bind to
# the one and connect to the other fail on both families.
#
#	python.sh [--on FAMILIES] [MODULE...]	these, in both guests
set -uo pipefail
# shellcheck source=selftests/programs/parity.sh
. "${BASH_SOURCE%/*}/parity.sh"

declare -A share=(
	[a]="test_socket test_selectors test_poll test_epoll test_socketserver
		test_httplib test_ftplib test_smtplib"
	[b]="test_ssl test_asyncio.test_streams test_asyncio.test_sock_lowlevel
		test_asyncio.test_server test_asyncio.test_sendfile test_asyncio.test_ssl
		test_asyncio.test_buffered_proto test_asyncio.test_selector_events
		test_asyncio.test_events"
)
[ "${1:-}" != --on ] || { families=$2; shift 2; }
read -r -d '' -a modules <<<"${*:-${share[$AFR_ROLE]}}"

# Debian's Python: its suite is a package.
suite_python() {
	"${under[@]}" /usr/bin/python3 "$here/python_suite.py" "$results" 40 "${modules[@]}"
}

# Each module has tests that pass, or the suite is not what we think it is.
all_modules_ran() {
	local module
	for module in "${modules[@]}"; do
		grep -q "^$module\..* pass\$" "$AFR_OUT/python.${families%% *}" || return 1
	done
}

parity_begin
echo "$AFR_ME localhost" >/tmp/hosts
mount --bind /tmp/hosts /etc/hosts || exit 1
parity python
check "all modules run" all_modules_ran
parity_end
