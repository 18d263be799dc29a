#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# oracle.sh [BUILD [OPTIONS OF afr_test]]
#
# Runs all rows that have the variant tcp, or those that OPTIONS select, between two processes in a
# network namespace of their own. This checks the tests, not the module: a row that fails on TCP
# expects too much. The client's KTAP goes to stdout, the server's to BUILD/oracle.server.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build/net}" && pwd) || exit 2
shift || true

if [ -z "${AFR_ORACLE_INSIDE:-}" ]; then
	AFR_ORACLE_INSIDE=1 exec nice unshare --user --map-root-user --net \
		"$0" "$build" "$@"
fi

ip link set lo up
ip addr add fe80::1/64 dev lo nodad
"$build/afr_test" --server --port 7000 >"$build/oracle.server" 2>&1 &
server=$!
"$build/afr_test" --client 127.0.0.1 --port 7000 --family tcp "$@"
client_rc=$?
wait $server
server_rc=$?
[ $server_rc = 0 ] || echo "# server ended with $server_rc: see $build/oracle.server"
[ $client_rc = 0 ] && [ $server_rc = 0 ]
