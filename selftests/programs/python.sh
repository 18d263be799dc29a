#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Run by selftests/lab/run: Python's tests of sockets, polling, TLS, asyncio, HTTP, FTP and SMTP,
# see parity.sh. Each guest runs a share of the modules, with connections to itself. The name
# "localhost" stands for the address of eth0, which has the RDMA device that a link needs.
# Connections to a literal 127.0.0.1 stay on TCP; the few tests that bind to one of the two
# addresses and connect to the other fail on all families.
#
#	python.sh [--on FAMILIES] [MODULE...]	only these modules, in both guests
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

# Use Debian's Python, since its test suite is a Debian package.
suite_python() {
	"${under[@]}" /usr/bin/python3 "$here/python_suite.py" "$results" 40 "${modules[@]}"
}

# Does each module have a test that passes on the first of $families? Otherwise the suite did not
# run as expected.
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
