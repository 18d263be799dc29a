#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
For pace.sh: bulk leaves room for short messages, and for nothing else.

    pace.py serve PORT            two connections: an echo, and one that drinks
    pace.py talk HOST PORT SMCTL  the other end, which counts; exit status 1 and a
                                  sentence if it is not so
    pace.py ring BYTES            rings of a new socket have so many bytes
    pace.py many COUNT            they have fewer while so many connections are open
"""
import hashlib
import json
import pathlib
import random
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from death import SOL_AFRDMA, on_rdma, rdma_socket

AFRDMA_SNDRING, AFRDMA_RCVRING = 3, 4
CHUNK = 1 << 16
ALONE, BESIDE = 8 << 20, 16 << 20
BODIES = 8
PACING = pathlib.Path("/proc/sys/net/afrdma/pacing")
QUIET = 0.5             # far more than bulk leaves room for behind a short message


def receive(conn, size):
    data = bytearray()
    while len(data) < size:
        part = conn.recv(min(CHUNK, size - len(data)))
        if not part:
            raise EOFError(f"the end after {len(data)} of {size} bytes")
        data += part
    return bytes(data)


def echo(conn):
    while data := conn.recv(CHUNK):
        conn.sendall(data)


def drink(conn):
    """A length, so many bytes; the answer is their hash."""
    while head := conn.recv(8, socket.MSG_WAITALL):
        left, digest = int.from_bytes(head, "big"), hashlib.sha256()
        while left:
            data = conn.recv(min(CHUNK, left))
            if not data:
                raise EOFError(f"{left} bytes are missing")
            digest.update(data)
            left -= len(data)
        conn.sendall(digest.digest())


def serve(port):
    listener = rdma_socket()
    listener.bind(("", port))
    listener.listen(2)
    print("listening", flush=True)
    with ThreadPoolExecutor() as pool:
        ends = [pool.submit(what, listener.accept()[0]) for what in (echo, drink)]
        for end in ends:
            end.result()


def drunk(conn, size):
    data = random.Random(size).randbytes(size)
    conn.sendall(size.to_bytes(8, "big"))
    conn.sendall(data)
    if receive(conn, 32) != hashlib.sha256(data).digest():
        raise ValueError("the peer has other bytes than were sent")


def ping(conn, number):
    byte = bytes([number % 256])
    conn.sendall(byte)
    if receive(conn, 1) != byte:
        sys.exit("the echo is wrong")


def warm(conn, once):
    """Until both directions are on RDMA."""
    end = time.monotonic() + 30
    while not on_rdma(conn):
        if time.monotonic() > end:
            sys.exit("not on RDMA")
        once()
        time.sleep(0.01)


def talk(host, port, smctl):
    def paced():
        out = subprocess.run([smctl, "-j", "stats", "name", "link_paced"], check=True,
                             capture_output=True)
        return json.loads(out.stdout)[0]["value"]

    def expect(what, before, moves):
        count = paced() - before
        print(f"{what}: held back {count} times")
        if (count > 0) != moves:
            sys.exit(f"{what}: expected {'some' if moves else 'none'}")

    conns = [rdma_socket(), rdma_socket()]
    for conn in conns:
        conn.connect((host, port))
    asks, bulk = conns
    warm(asks, lambda: ping(asks, 0))
    warm(bulk, lambda: drunk(bulk, 1 << 17))

    time.sleep(QUIET)
    before = paced()
    drunk(bulk, ALONE)
    expect("bulk alone", before, False)

    time.sleep(QUIET)
    before = paced()
    for i in range(BODIES):     # a head is short and prompt, and nobody's but its body's
        drunk(bulk, (1 << 20) + i)
    expect("heads and bodies of one connection", before, False)

    def beside(switch):
        pings = 0
        with ThreadPoolExecutor() as pool:
            drunkard = pool.submit(drunk, bulk, BESIDE)
            while not drunkard.done():
                ping(asks, pings)
                pings += 1
                switch(pings)
            drunkard.result()
        print(f"{pings} round trips beside {BESIDE >> 20} MiB")

    before = paced()
    beside(lambda pings: None)
    expect("bulk beside round trips", before, True)
    beside(lambda pings: PACING.write_text(str(pings // 4 % 2)))
    PACING.write_text("0")
    before = paced()
    beside(lambda pings: None)
    expect("the same with pacing 0", before, False)
    PACING.write_text("1")
    for conn in conns:
        if not on_rdma(conn):
            sys.exit("not on RDMA any more")
        conn.shutdown(socket.SHUT_WR)
        conn.close()


def rings():
    with rdma_socket() as sock:
        return [sock.getsockopt(SOL_AFRDMA, name) for name in (AFRDMA_SNDRING, AFRDMA_RCVRING)]


def ring(size):
    got = rings()
    if got != [size, size]:
        sys.exit(f"rings of {got} bytes, expected {size}")


def many(count):
    """Rings of connections that are open count as if they were whole."""
    before = rings()
    listener = rdma_socket()
    listener.bind(("", 0))
    listener.listen(count)
    ends = []
    for _ in range(count):
        conn = rdma_socket()
        conn.connect(("127.0.0.1", listener.getsockname()[1]))
        conn.sendall(b"x")
        there, _ = listener.accept()
        there.recv(1)
        ends += [conn, there]
    beside = rings()
    for end in ends:
        end.close()
    end = time.monotonic() + 20
    while (after := rings()) != before and time.monotonic() < end:
        time.sleep(0.1)
    if beside >= before or after != before:
        sys.exit(f"rings before, beside and after: {before}, {beside}, {after}")


if __name__ == "__main__":
    what, *args = sys.argv[1:] or ["help"]
    if what == "serve":
        serve(int(args[0]))
    elif what == "talk":
        talk(args[0], int(args[1]), args[2])
    elif what == "ring":
        ring(int(args[0]))
    elif what == "many":
        many(int(args[0]))
    else:
        sys.exit(__doc__)
