#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
The client of hole.sh: links over paths that lose large RDMA packets, or all RDMA packets.

    hole.py route HOST PORT SMCTL MTU   the packets of links have MTU bytes
    hole.py brief HOST PORT SMCTL       idle links that the peer disconnects are replaced
    hole.py large HOST PORT SMCTL       packets above 1500 bytes are lost: the stream stalls once
                                        and returns to RDMA with smaller packets
    hole.py crowd HOST PORT SMCTL       while hundreds of connections wait for a peer whose device
                                        does not answer, a stream on TCP is not delayed
    hole.py again HOST PORT SMCTL       the reply to the first connect request of a link is lost,
                                        and so is the second request; the third request creates a
                                        link, and it is the only one
    hole.py small HOST PORT SMCTL       packets above 400 bytes are lost: the stream stays on TCP
                                        for reason LINK_SHORT, and no new link is tried for a while
The exit status is 1 if the connection or link behaves differently; the last line of the output
says how. The other end is "pace.py serve PORT".
"""
import contextlib
import json
import pathlib
import subprocess
import sys
import time

from death import SOL_AFRDMA, info, on_rdma
from pace import BYE, ECHO, SINK, connected, counter, send_data, send_size, transfer, warm

AFRDMA_RDMA, NEVER, ALWAYS = 2, 1, 2
LINK_SHORT = 64
# This file in sysfs contains how many work items the kernel's workqueue "writeback" executes at
# the same time at most. This limit is the default, 256 or more, and the workqueues of net/afrdma
# have the same limit. In "crowd", more connections than that wait for the silent device.
MAX_ACTIVE = pathlib.Path("/sys/devices/virtual/workqueue/writeback/max_active")
SILENT = """add table inet hole; add chain inet hole in { type filter hook input priority 0; }
            add rule inet hole in udp dport 4791 counter drop"""
MIB = 1 << 20
PAUSE = 0.5             # seconds: a MiB that takes longer counts as a stall
# Seconds: limit of the sum of all stalls in "large". A queue pair fails after about four seconds
# without an acknowledgment.
STALLS = 7
BRIEF = 4               # connections, each with a link of its own
PATIENCE = 30           # seconds until an expected state must be reached
# Seconds for which "small" checks that a stream on TCP hardly stalls; "crowd" checks this for two
# seconds less.
CALM = 5


def links(smctl):
    out = subprocess.run([smctl, "-j", "link"], check=True, capture_output=True).stdout
    return [link for link in json.loads(out) if link["state"] == "up"]


def stream(conn, seconds, over=lambda: False):
    """Transfer data for @seconds, or until over(); returns the seconds for which it stalled."""
    stalled, moved, end = 0, 0, time.monotonic() + seconds
    while time.monotonic() < end and not over():
        begin = time.monotonic()
        transfer(conn, MIB)
        took = time.monotonic() - begin
        stalled += took if took > PAUSE else 0
        moved += 1
    print(f"{moved} MiB, stalled for {stalled:.1f} s: {info(conn)}")
    return stalled


def route(conn, smctl, mtu):
    warm(conn, lambda: transfer(conn, 1 << 15))
    mtus = [link["mtu"] for link in links(smctl)]
    if not mtus or set(mtus) != {mtu}:
        sys.exit(f"the packets of links have {mtus} bytes, expected {mtu}")


def brief(conn, smctl):
    created = counter(smctl, "link_created")
    for _ in range(BRIEF):
        end = time.monotonic() + PATIENCE
        while links(smctl):
            if time.monotonic() > end:
                sys.exit("an idle link is not removed")
            time.sleep(0.05)
        with connected(conn.getpeername()[0], conn.getpeername()[1], SINK) as other:
            warm(other, lambda: transfer(other, 1 << 15) if info(other)["reason"] != LINK_SHORT
                 else sys.exit("LINK_SHORT, though only idle links were disconnected"))
    if counter(smctl, "link_created") - created < BRIEF:
        sys.exit("not every connection had a link of its own")


def large(conn, smctl):
    stalled = stream(conn, PATIENCE, lambda: on_rdma(conn) and info(conn)["tx_rdma"] > 16 * MIB)
    mtus = [link["mtu"] for link in links(smctl)]
    if not on_rdma(conn) or mtus != [1024]:
        sys.exit(f"expected RDMA with packets of 1024 bytes, links have {mtus}")
    if stalled > STALLS:
        sys.exit("stalled for too long")


def set_rdma(sock, value):
    sock.setsockopt(SOL_AFRDMA, AFRDMA_RDMA, value)


def again(conn, smctl):
    created, lost = counter(smctl, "link_created"), counter(smctl, "link_died")
    subprocess.run(["nft", SILENT], check=True)
    try:
        set_rdma(conn, ALWAYS)
        # Connect requests are sent at 0, 1.5 and 3 s. This guest drops the reply to the first one,
        # the peer drops the second one (first_only() of hole.sh), and the third one is answered.
        time.sleep(2.2)
    finally:
        subprocess.run(["nft", "delete table inet hole"], check=True)
    warm(conn, lambda: transfer(conn, 1 << 15))
    stream(conn, 1)
    created = counter(smctl, "link_created") - created
    lost = counter(smctl, "link_died") - lost
    if created != 1 or lost:
        sys.exit(f"{created} links were created and {lost} lost, expected one and none")


def crowd(conn, smctl):
    set_rdma(conn, NEVER)
    transfer(conn, MIB)
    address = conn.getpeername()
    crowded = int(MAX_ACTIVE.read_text()) + 44      # connections that try to upgrade
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(connected(*address, SINK))
        callers = [stack.enter_context(connected(*address, ECHO)) for _ in range(crowded)]
        set_rdma(first, ALWAYS)
        warm(first, lambda: transfer(first, 1 << 15))
        tries = counter(smctl, "upgrade_tried")
        subprocess.run(["nft", SILENT], check=True)
        try:
            send_size(first, MIB)               # posts a write that is not acknowledged
            for caller in callers:
                set_rdma(caller, ALWAYS)
            set_rdma(conn, ALWAYS)
            stalled = stream(conn, CALM - 2)
        finally:
            subprocess.run(["nft", "delete table inet hole"], check=True)
        tries = counter(smctl, "upgrade_tried") - tries
        send_data(first, MIB)
        print(f"{tries} connections tried to upgrade")
        if tries < crowded or stalled > 1:
            sys.exit("too few tried, or the stream on TCP stalled as well")


def small(conn, smctl):
    stream(conn, PATIENCE, lambda: info(conn)["reason"] == LINK_SHORT)
    if info(conn)["reason"] != LINK_SHORT:
        sys.exit("expected LINK_SHORT")
    created = counter(smctl, "link_created")
    if stream(conn, CALM) > 4 * PAUSE or counter(smctl, "link_created") != created:
        sys.exit("expected TCP without stalls, and no new link for now")


if __name__ == "__main__":
    what, *args = sys.argv[1:] or ["help"]
    parts = {"route": route, "brief": brief, "large": large, "small": small,
             "again": again, "crowd": crowd}
    if what not in parts:
        sys.exit(__doc__)
    host, port, smctl, *more = args
    try:
        with connected(host, int(port), SINK) as conn:
            parts[what](conn, smctl, *map(int, more))
    finally:
        connected(host, int(port), BYE).close()
