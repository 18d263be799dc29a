#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: opens $COUNT connections (a multiple of 250, default 4,000) and
# moves them to RDMA; then, three times, resets half of the remaining ones all at once. The cleanup
# of these must not delay the others. Each guest needs a megabyte of memory for every two
# connections (run --mem).
# shellcheck disable=SC2317 # functions are called by "wait_for"
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"

mass=$AFR_SRC/selftests/net/mass.py
work=$(mktemp -d)
port=7430

listening() { grep -q listening "$work/serve"; }

barrier begin
ulimit -n 100000
echo 1000000 | tee /sys/module/afrdma/parameters/mem_max >/proc/sys/net/afrdma/mem_max
echo 16384 | tee /proc/sys/net/afrdma/sndbuf >/proc/sys/net/afrdma/rcvbuf
echo 1 >/proc/sys/net/afrdma/upgrade_msgs
if [ "$AFR_ROLE" = b ]; then
	timeout 400 python3 "$mass" serve $port >"$work/serve" 2>&1 &
	server=$!
	wait_for 20 listening
	barrier listens
	barrier reset 400
	check "a mass of resets: the server saw every connection end" wait "$server"
	sed 's/^/# /' "$work/serve"
else
	barrier listens
	if timeout 400 python3 "$mass" ask "$AFR_PEER" $port "${COUNT:-4000}" \
		>"$work/ask" 2>&1; then
		ok "a mass of resets: the other connections answer"
	else
		not_ok "a mass of resets: the other connections answer" "$(tail -n 1 "$work/ask")"
	fi
	sed 's/^/# /' "$work/ask"
	barrier reset
fi
barrier end
rm -rf "$work"
exit 0
