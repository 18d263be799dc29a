#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
For hole.sh: a path that carries small packets of RDMA, and not the large ones.

    hole.py route HOST PORT SMCTL MTU   links have so large packets
    hole.py brief HOST PORT SMCTL       links that a peer takes down when they are idle come again
    hole.py large HOST PORT SMCTL       packets above 1500 bytes are lost: the stream stands still
                                        once, and goes on by RDMA with smaller ones
    hole.py crowd HOST PORT SMCTL       connections that wait for a peer whose device is silent do
                                        not hold up what another one gets by TCP
    hole.py again HOST PORT SMCTL       the answer to the first request for a link is lost, and so is
                                        the second request: the third makes a link, and it is used
    hole.py small HOST PORT SMCTL       those above 400 are lost, too: it goes on by TCP, for the
                                        reason LINK_SHORT, and links leave it alone
Exit status 1 and a sentence if it is not so. The other end is "pace.py serve PORT".
"""
import contextlib
import json
import subprocess
import sys
import time

from death import SOL_AFRDMA, info, on_rdma
from pace import BYE, DRINK, ECHO, body, connected, counter, drunk, head, warm

AFRDMA_RDMA, NEVER, ALWAYS = 2, 1, 2
LINK_SHORT = 64
CALLERS = 300           # more than a queue has workers
SILENT = """add table inet hole; add chain inet hole in { type filter hook input priority 0; }
            add rule inet hole in udp dport 4791 counter drop"""
MIB = 1 << 20
PAUSE = 0.5             # far more than a MiB takes
STALLS = 7              # seconds; the device gives a queue pair up after four
BRIEF = 4               # connections, and links
SIGHT, CALM = 30, 5     # seconds at most until it shows, and then at least


def links(smctl):
    out = subprocess.run([smctl, "-j", "link"], check=True, capture_output=True).stdout
    return [link for link in json.loads(out) if link["state"] == "up"]


def stream(conn, seconds, over=lambda: False):
    """How long it stood still, and how much it moved."""
    stood, moved, end = 0, 0, time.monotonic() + seconds
    while time.monotonic() < end and not over():
        begin = time.monotonic()
        drunk(conn, MIB)
        took = time.monotonic() - begin
        stood += took if took > PAUSE else 0
        moved += 1
    print(f"{moved} MiB, stood still for {stood:.1f} s: {info(conn)}")
    return stood


def route(conn, smctl, mtu):
    warm(conn, lambda: drunk(conn, 1 << 15))
    mtus = [link["mtu"] for link in links(smctl)]
    if not mtus or set(mtus) != {mtu}:
        sys.exit(f"links have packets of {mtus} bytes, expected {mtu}")


def brief(conn, smctl):
    created = counter(smctl, "link_created")
    for _ in range(BRIEF):
        end = time.monotonic() + SIGHT
        while links(smctl):
            if time.monotonic() > end:
                sys.exit("an idle link does not go")
            time.sleep(0.05)
        with connected(conn.getpeername()[0], conn.getpeername()[1], DRINK) as other:
            warm(other, lambda: drunk(other, 1 << 15) if info(other)["reason"] != LINK_SHORT
                 else sys.exit("an idle link that went was held against the path"))
    if counter(smctl, "link_created") - created < BRIEF:
        sys.exit("there were no links of their own")


def large(conn, smctl):
    stood = stream(conn, SIGHT, lambda: on_rdma(conn) and info(conn)["tx_rdma"] > 16 * MIB)
    mtus = [link["mtu"] for link in links(smctl)]
    if not on_rdma(conn) or mtus != [1024]:
        sys.exit(f"expected RDMA with packets of 1024 bytes, links have {mtus}")
    if stood > STALLS:
        sys.exit("stood still for too long")


def wants(sock, what):
    sock.setsockopt(SOL_AFRDMA, AFRDMA_RDMA, what)


def again(conn, smctl):
    created, lost = counter(smctl, "link_created"), counter(smctl, "link_died")
    subprocess.run(["nft", SILENT], check=True)
    try:
        wants(conn, ALWAYS)
        time.sleep(2.2)         # of 3, when it is asked for the third time
    finally:
        subprocess.run(["nft", "delete table inet hole"], check=True)
    warm(conn, lambda: drunk(conn, 1 << 15))
    stream(conn, 1)
    created = counter(smctl, "link_created") - created
    lost = counter(smctl, "link_died") - lost
    if created != 1 or lost:
        sys.exit(f"{created} links were made, {lost} were lost")


def crowd(conn, smctl):
    wants(conn, NEVER)
    drunk(conn, MIB)
    address = conn.getpeername()
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(connected(*address, DRINK))
        callers = [stack.enter_context(connected(*address, ECHO)) for _ in range(CALLERS)]
        wants(first, ALWAYS)
        warm(first, lambda: drunk(first, 1 << 15))
        tries = counter(smctl, "upgrade_tried")
        subprocess.run(["nft", SILENT], check=True)
        try:
            head(first, MIB)                    # which nobody acknowledges
            for caller in callers:
                wants(caller, ALWAYS)
            wants(conn, ALWAYS)
            stood = stream(conn, CALM - 2)
        finally:
            subprocess.run(["nft", "delete table inet hole"], check=True)
        tries = counter(smctl, "upgrade_tried") - tries
        body(first, MIB)
        print(f"{tries} went for a link")
        if tries < CALLERS or stood > 1:
            sys.exit("what comes by TCP waits, too")


def small(conn, smctl):
    stream(conn, SIGHT, lambda: info(conn)["reason"] == LINK_SHORT)
    if info(conn)["reason"] != LINK_SHORT:
        sys.exit("expected LINK_SHORT")
    created = counter(smctl, "link_created")
    if stream(conn, CALM) > 4 * PAUSE or counter(smctl, "link_created") != created:
        sys.exit("expected TCP, without another link for now")


if __name__ == "__main__":
    what, *args = sys.argv[1:] or ["help"]
    parts = {"route": route, "brief": brief, "large": large, "small": small,
             "again": again, "crowd": crowd}
    if what not in parts:
        sys.exit(__doc__)
    host, port, smctl, *more = args
    try:
        with connected(host, int(port), DRINK) as conn:
            parts[what](conn, smctl, *map(int, more))
    finally:
        connected(host, int(port), BYE).close()
