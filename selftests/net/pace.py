#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
For pace.sh: bulk leaves room for short messages, and for who leaves, and for nothing else.

    pace.py serve PORT            what a client's first byte says: echo, drink; the end
    pace.py talk HOST PORT SMCTL  the other end, which counts; exit status 1 and a
                                  sentence if it is not so
    pace.py crowd HOST PORT SMCTL connections come and go beside far more streams than one
                                  link has receives for
    pace.py spread HOST PORT SMCTL more connections than a link is for have another one
    pace.py ring BYTES            rings of a new socket have so many bytes
    pace.py many COUNT            they have fewer while so many connections are open, and not
                                  while so many threads wait for one
"""
import functools
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
BEGINS, BEGIN = 4, 20000    # rounds; more than a prompt message has, and one write when paced
PACING = pathlib.Path("/proc/sys/net/afrdma/pacing")
QUIET = 0.5             # far more than bulk leaves room for behind a short message
STREAMS = 56            # fewer than a second link is made for, see "spread"
CROWD = 64              # so many on a link of 16 receives, and the next one has another link
LEAVERS, TOGETHER = 6, 7.0      # connections, seconds at least: more than detach_timeout_ms
ECHO, DRINK, BYE = b"e", b"d", b"q"


def receive(conn, size):
    data = bytearray()
    while len(data) < size:
        part = conn.recv(min(CHUNK, size - len(data)))
        if not part:
            raise EOFError(f"the end after {len(data)} of {size} bytes")
        data += part
    return bytes(data)


def echo(conn):
    with conn:
        while data := conn.recv(CHUNK):
            conn.sendall(data)


def drink(conn):
    """A length, so many bytes; the answer is their hash."""
    with conn:
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
    listener.listen(STREAMS)
    print("listening", flush=True)
    ends = []
    with ThreadPoolExecutor(CROWD + LEAVERS) as pool:
        while True:
            conn, _ = listener.accept()
            part = conn.recv(1)
            if part == BYE:
                break
            ends.append(pool.submit({ECHO: echo, DRINK: drink}[part], conn))
        for end in ends:
            end.result()


def connected(host, port, part):
    conn = rdma_socket()
    conn.connect((host, port))
    conn.sendall(part)
    return conn


@functools.cache
def drink_of(size):
    data = random.Random(size).randbytes(size)
    return data, hashlib.sha256(data).digest()


def head(conn, size):
    conn.sendall(size.to_bytes(8, "big"))


def body(conn, size, begin=0):
    data, digest = drink_of(size)
    conn.sendall(data[begin:])
    if receive(conn, 32) != digest:
        raise ValueError("the peer has other bytes than were sent")


def drunk(conn, size):
    head(conn, size)
    body(conn, size)


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


def counter(smctl, name):
    out = subprocess.run([smctl, "-j", "stats", "name", name], check=True, capture_output=True)
    return json.loads(out.stdout)[0]["value"]


def crowd(host, port, smctl):
    """Whose turn at the link comes seldom can still leave it."""
    names = ("link_died", "resume_rx", "resume_tx")
    before = [counter(smctl, name) for name in names]
    waits = counter(smctl, "link_no_credit")
    streams = [connected(host, port, DRINK) for _ in range(STREAMS)]
    for conn in streams:
        warm(conn, lambda conn=conn: drunk(conn, 1 << 17))
    over, left = False, 0

    def stream(conn):
        while not over:
            drunk(conn, 1 << 20)

    with ThreadPoolExecutor(STREAMS) as pool:
        pours = [pool.submit(stream, conn) for conn in streams]
        end = time.monotonic() + TOGETHER
        try:
            while left < LEAVERS or time.monotonic() < end:
                conn = connected(host, port, ECHO)
                warm(conn, lambda conn=conn: ping(conn, 0))
                conn.close()
                left += 1
        finally:
            over = True
        for pour in pours:
            pour.result()
    waits = counter(smctl, "link_no_credit") - waits
    print(f"{left} came and went beside {STREAMS} streams that waited {waits} times")
    if not waits:
        sys.exit("nobody waited for the link")
    if not all(map(on_rdma, streams)):
        sys.exit("not all streams are on RDMA any more")
    for name, was in zip(names, before):
        if counter(smctl, name) != was:
            sys.exit(f"{name}: expected none")
    for conn in streams:
        conn.close()


def spread(host, port, smctl):
    """The number of links follows the number of connections."""
    def links():
        out = subprocess.run([smctl, "-j", "link"], check=True, capture_output=True)
        return [link["users"] for link in json.loads(out.stdout) if link["state"] == "up"]

    def more(conns, count):
        for _ in range(count):
            conns.append(connected(host, port, ECHO))
            warm(conns[-1], lambda: ping(conns[-1], 0))

    conns = []
    more(conns, CROWD // 2)
    few = links()
    more(conns, CROWD // 2 + 2)     # the last but one is too much, and the last one goes there
    end = time.monotonic() + 20
    while len(links()) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    more(conns, 2)
    many = links()
    print(f"{CROWD // 2} connections on {few}, {len(conns)} on {many}")
    if len(few) != 1 or len(many) != 2 or not all(many) or sum(many) != len(conns):
        sys.exit(f"expected one link, and then two that are used: {few}, {many}")
    for conn in conns:
        conn.close()


def talk(host, port, smctl):
    def paced():
        return counter(smctl, "link_paced")

    def expect(what, before, moves):
        count = paced() - before
        print(f"{what}: held back {count} times")
        if (count > 0) != moves:
            sys.exit(f"{what}: expected {'some' if moves else 'none'}")

    asks, *pours = conns = [connected(host, port, part) for part in (ECHO, DRINK, DRINK)]
    bulk = pours[0]
    warm(asks, lambda: ping(asks, 0))
    for pour in pours:
        warm(pour, lambda pour=pour: drunk(pour, 1 << 17))

    time.sleep(QUIET)
    before = paced()
    drunk(bulk, ALONE)
    expect("bulk alone", before, False)

    time.sleep(QUIET)
    before = paced()
    for i in range(BODIES):     # a head is short and prompt, and nobody's but its body's
        drunk(bulk, (1 << 20) + i)
    expect("heads and bodies of one connection", before, False)

    time.sleep(QUIET)
    before = paced()
    head(pours[1], ALONE)       # prompt, as far as anybody knows
    drunk(bulk, ALONE)
    expect("bulk behind the head of another stream", before, True)
    body(pours[1], ALONE)

    before = paced()
    for _ in range(BEGINS):     # both heads are prompt; then it shows that both are bulk's
        time.sleep(QUIET)
        for pour in pours:
            head(pour, ALONE)
        for pour in pours:
            pour.sendall(drink_of(ALONE)[0][:BEGIN])
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda pour: body(pour, ALONE, BEGIN), pours))
    expect("streams that begin together", before, False)

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
    with ThreadPoolExecutor(count) as pool:
        accepts = [pool.submit(listener.accept) for _ in range(count)]
        time.sleep(QUIET)
        waiting = rings()
        for _ in accepts:
            conn = rdma_socket()
            conn.connect(("127.0.0.1", listener.getsockname()[1]))
            conn.sendall(b"x")
            ends.append(conn)
        for accept in accepts:
            there, _ = accept.result()
            there.recv(1)
            ends.append(there)
    beside = rings()
    for end in ends:
        end.close()
    end = time.monotonic() + 20
    while (after := rings()) != before and time.monotonic() < end:
        time.sleep(0.1)
    if waiting != before or beside >= before or after != before:
        sys.exit(f"rings before, while all wait, beside and after: "
                 f"{before}, {waiting}, {beside}, {after}")


if __name__ == "__main__":
    what, *args = sys.argv[1:] or ["help"]
    if what == "serve":
        serve(int(args[0]))
    elif what == "talk":
        talk(args[0], int(args[1]), args[2])
    elif what == "crowd":
        try:
            crowd(args[0], int(args[1]), args[2])
        finally:
            connected(args[0], int(args[1]), BYE).close()
    elif what == "spread":
        spread(args[0], int(args[1]), args[2])
    elif what == "ring":
        ring(int(args[0]))
    elif what == "many":
        many(int(args[0]))
    else:
        sys.exit(__doc__)
