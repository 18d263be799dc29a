#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# For the lab, in both guests: smctl dumps connections and links, over and over, while
# connections are opened, moved and closed in many ways.
set -uo pipefail
# shellcheck source=selftests/lab/guest-lib.sh
. "$AFR_LAB/guest-lib.sh"
# shellcheck source=selftests/net/table-lib.sh
. "$AFR_SRC/selftests/net/table-lib.sh"

smctl=$AFR_SRC/build/tools/smctl
rows='random_ends.cold,close_hard_in_flight*,close_at_once.cold,cycles.rdma'

# Dumps until /tmp/enough exists. Writes four numbers to /tmp/dumps: how many dumps were made, and
# how many connections, connections on RDMA, and links they listed in total. If a dump is wrong,
# writes the error instead.
dump() {
	python3 -c '
import json, os, subprocess, sys
def ask(what):
    out = subprocess.run([sys.argv[1], "-j", what], check=True, stdout=subprocess.PIPE).stdout
    ids = [one["id"] for one in json.loads(out)]
    if len(ids) != len(set(ids)):
        sys.exit(print(f"smctl {what}: an id occurs twice"))
    return json.loads(out)
seen = [0, 0, 0, 0]
while not os.path.exists("/tmp/enough"):
    conns, links = ask("conn"), ask("link")
    rdma = [one for one in conns if one.get("rx_path") == "rdma"]
    for i, more in enumerate((1, len(conns), len(rdma), len(links))):
        seen[i] += more
print(*seen)' "$smctl" >/tmp/dumps 2>&1
}

set_subset quick --no-rogue --only "$rows"
dump &
dumper=$!
barrier "dumps begin" 600
# shellcheck disable=SC2154 # table-lib.sh sets afr_test and subset
if [ "$AFR_ROLE" = b ]; then
	run_part server "$afr_test" --server --port 7000
else
	run_part client "$afr_test" --client "$AFR_PEER" --host6 "$AFR_PEER6" \
		--port 7000 "${subset[@]}"
fi
barrier "dumps end" 3600
: >/tmp/enough
wait $dumper
read -r dumps conns moved links <<<"$(tail -n 1 /tmp/dumps)"
# Row cycles.rdma moves each of its connections to RDMA, so some dump must have shown one there.
# shellcheck disable=SC2317 # "check" calls it
dumps_complete() { [[ $dumps =~ ^[0-9]+$ ]] && ((dumps >= 3 && conns && moved && links)); }
found="$conns connections, $moved on RDMA, $links links"
check "$dumps dumps while connections come and go: $found" dumps_complete || cat /tmp/dumps
exit "$failures"
