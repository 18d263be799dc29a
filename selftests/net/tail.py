#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
The client of tail.sh: the last packet of a message is lost, and no packet follows it.

    tail.py talk HOST PORT COUNT  COUNT round trips with "pace.py serve"; in each, the packet of the
                                  response is lost; the exit status is 1 if the median stall
                                  exceeds BOUND, or the connection leaves its link
"""
import statistics
import subprocess
import sys
import time

from death import info, on_rdma
from pace import BYE, ECHO, connected, ping, warm

# Drops one packet that is a whole write with immediate: BTH opcode 0x0b, RDMA WRITE Only with
# Immediate.
LOSE_ONE = """
add table inet tail
delete table inet tail
table inet tail {
    chain in {
        type filter hook input priority 0;
        udp dport 4791 @th,64,8 0x0b limit rate 1/day burst 1 packets counter drop
    }
}
"""
BOUND = 0.15            # seconds: limit of the median stall; the queue pair's own timeout is 0.54


def nft(*args, **more):
    return subprocess.run(["nft", *args], check=True, text=True, capture_output=True, **more).stdout


def stall(conn, number):
    nft("-f", "-", input=LOSE_ONE)
    begin = time.monotonic()
    ping(conn, number)
    took = time.monotonic() - begin
    if "counter packets 1 " not in nft("list", "chain", "inet", "tail", "in"):
        sys.exit(f"round trip {number}: no packet was dropped")
    return took


def talk(host, port, count):
    conn = connected(host, port, ECHO)
    warm(conn, lambda: ping(conn, 0))
    before = info(conn)
    stalls = [stall(conn, number) for number in range(count)]
    nft("delete", "table", "inet", "tail")
    after = info(conn)
    median = statistics.median(stalls)
    print(f"{count} packets lost: stalls of {median * 1e3:.1f} ms at the median, "
          f"{max(stalls) * 1e3:.1f} ms at most")
    if not on_rdma(conn) or (before["moves"], before["link"]) != (after["moves"], after["link"]):
        sys.exit(f"no longer on the same link: {before}, {after}")
    if after["rx_rdma"] - before["rx_rdma"] != count or after["rx_tcp"] != before["rx_tcp"]:
        sys.exit(f"responses were not carried by RDMA: {before}, {after}")
    if median > BOUND:
        sys.exit(f"expected a median of {BOUND * 1e3:.0f} ms at most")
    conn.close()


if __name__ == "__main__":
    what, *args = sys.argv[1:] or ["help"]
    if what != "talk":
        sys.exit(__doc__)
    try:
        talk(args[0], int(args[1]), int(args[2]))
    finally:
        connected(args[0], int(args[1]), BYE).close()
