#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Both ends of mass.sh: many connections are reset at once, the others continue.

    mass.py serve PORT             echo on all connections until all have ended
    mass.py ask HOST PORT COUNT    move COUNT connections to RDMA; reset half of the remaining
                                   connections, three times; each time the connections that are
                                   not reset must answer within SECONDS
"""
import random
import selectors
import socket
import struct
import sys
import time

from death import on_rdma, rdma_socket

SECONDS = 20
AT_ONCE = 250       # connections opened before their echoes are checked
WORD = bytes(range(250)) * 4
HARD = struct.pack("ii", 1, 0)      # SO_LINGER with which close() sends RST


def serve(port):
    listener = rdma_socket()
    listener.bind(("", port))
    listener.listen(4096)
    print("listening", flush=True)
    ends = selectors.EpollSelector()
    ends.register(listener, selectors.EVENT_READ)
    count = 0
    while not count or len(ends.get_map()) > 1:
        for key, _ in ends.select():
            conn = key.fileobj
            if conn is listener:
                conn = listener.accept()[0]
                ends.register(conn, selectors.EVENT_READ)
                count += 1
                continue
            try:
                data = conn.recv(1 << 16)
                conn.sendall(data)
            except OSError:
                data = b""
            if not data:
                ends.unregister(conn)
                conn.close()
    print(f"{count} connections have ended")


def ask(conns, what):
    """Send WORD on each connection; returns the seconds until all echoes had come and matched."""
    waiting = selectors.EpollSelector()
    got = dict.fromkeys(conns, b"")
    begin = time.monotonic()
    for conn in conns:
        conn.sendall(WORD)
        waiting.register(conn, selectors.EVENT_READ)
    while waiting.get_map() and time.monotonic() < begin + SECONDS:
        for key, _ in waiting.select(1):
            conn = key.fileobj
            got[conn] += conn.recv(len(WORD) - len(got[conn])) or b"end of stream"
            if len(got[conn]) >= len(WORD):
                waiting.unregister(conn)
    wrong = sum(answer != WORD for answer in got.values())
    if wrong:
        sys.exit(f"{what}: no answer or a wrong one from {wrong} of {len(conns)} in {SECONDS} s")
    return time.monotonic() - begin


def connected(host, port):
    conn = rdma_socket()
    conn.connect((host, port))
    return conn


def reset(conns):
    for conn in conns:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HARD)
        conn.close()


def client(host, port, count):
    conns = []
    while len(conns) < count:
        some = [connected(host, port) for _ in range(AT_ONCE)]
        ask(some, f"new ones after {len(conns)}")
        conns += some
    end = time.monotonic() + SECONDS
    while not all(map(on_rdma, conns)):
        if time.monotonic() > end:
            sys.exit(f"only {sum(map(on_rdma, conns))} of {count} are on RDMA")
        ask(conns, "all")
    rng = random.Random(port)
    for _ in range(3):
        rng.shuffle(conns)
        half = len(conns) // 2
        reset(conns[:half])
        conns = conns[half:]
        took = ask(conns, f"after {half} resets")
        print(f"{half} were reset, then {len(conns)} answered within {took:.1f} s")
    if not all(map(on_rdma, conns)):
        sys.exit(f"only {sum(map(on_rdma, conns))} of {len(conns)} are still on RDMA")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "serve":
        serve(int(words[1]))
    else:
        client(words[1], int(words[2]), int(words[3]))
