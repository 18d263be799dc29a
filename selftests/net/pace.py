#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Both ends of pace.sh: pacing, crowded links, several links, default ring sizes.

    pace.py serve PORT            serve each connection as its first byte says: echo, sink, or exit
    pace.py talk HOST PORT SMCTL  bulk data is paced while other connections send
                                  latency-sensitive messages, and only then
    pace.py crowd HOST PORT SMCTL connections can join and leave a link that carries far more
                                  streams than it has receives
    pace.py spread HOST PORT SMCTL a second link is created when the first has too many users
    pace.py ring BYTES            the rings of a new socket have BYTES bytes
    pace.py many COUNT            the rings of a new socket are smaller while COUNT connections
                                  are open, but not while COUNT threads only wait in accept()
The exit status is 1 if the stated behaviour is not observed; the last line of the output says why.
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
ROUNDS, BEGIN = 4, 20000        # BEGIN: bytes, more than LATENCY_MAX and PACE_MIN
PACING = pathlib.Path("/proc/sys/net/afrdma/pacing")
QUIET = 0.5             # seconds, far more than PACE_TIME and BULK_HOLDOFF
STREAMS = 56            # connections, too few for a second link, see "spread"
CROWD = 64              # connections on a link of 16 receives; the next one requests a second link
# crowd(): connections join and leave the link one after another: at least LEAVERS of them, and for
# at least TOGETHER seconds in all. That is longer than detach_timeout_ms, after which a connection
# closes the link if the peer's device has not acknowledged its DETACH.
LEAVERS, TOGETHER = 6, 7.0
ECHO, SINK, BYE = b"e", b"d", b"q"


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


def sink(conn):
    """Receive a size and that many bytes, answer with their hash; repeat until end of stream."""
    with conn:
        while size := conn.recv(8, socket.MSG_WAITALL):
            left, digest = int.from_bytes(size, "big"), hashlib.sha256()
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
            ends.append(pool.submit({ECHO: echo, SINK: sink}[part], conn))
        for end in ends:
            end.result()


def connected(host, port, part):
    conn = rdma_socket()
    conn.connect((host, port))
    conn.sendall(part)
    return conn


@functools.cache
def data_of(size):
    data = random.Random(size).randbytes(size)
    return data, hashlib.sha256(data).digest()


def send_size(conn, size):
    conn.sendall(size.to_bytes(8, "big"))


def send_data(conn, size, begin=0):
    data, digest = data_of(size)
    conn.sendall(data[begin:])
    if receive(conn, 32) != digest:
        raise ValueError("the peer received other bytes than were sent")


def transfer(conn, size):
    send_size(conn, size)
    send_data(conn, size)


def ping(conn, number):
    byte = bytes([number % 256])
    conn.sendall(byte)
    if receive(conn, 1) != byte:
        sys.exit("the echo is wrong")


def warm(conn, once):
    """Call once() until both directions are on RDMA."""
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
    """A connection can leave a link on which it seldom gets a receive credit."""
    names = ("link_died", "resume_rx", "resume_tx")
    before = [counter(smctl, name) for name in names]
    waits = counter(smctl, "link_no_credit")
    streams = [connected(host, port, SINK) for _ in range(STREAMS)]
    for conn in streams:
        warm(conn, lambda conn=conn: transfer(conn, 1 << 17))
    over, left = False, 0

    def stream(conn):
        while not over:
            transfer(conn, 1 << 20)

    with ThreadPoolExecutor(STREAMS) as pool:
        running = [pool.submit(stream, conn) for conn in streams]
        end = time.monotonic() + TOGETHER
        try:
            while left < LEAVERS or time.monotonic() < end:
                conn = connected(host, port, ECHO)
                warm(conn, lambda conn=conn: ping(conn, 0))
                conn.close()
                left += 1
        finally:
            over = True
        for future in running:
            future.result()
    waits = counter(smctl, "link_no_credit") - waits
    print(f"{left} joined and left beside {STREAMS} streams that waited {waits} times")
    if not waits:
        sys.exit("no connection waited for receive credits or send slots")
    if not all(map(on_rdma, streams)):
        sys.exit("not all streams are still on RDMA")
    for name, was in zip(names, before):
        if counter(smctl, name) != was:
            sys.exit(f"{name}: the counter has changed")
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
    # The first connection above CROWD requests a second link; later ones use it once it is up.
    more(conns, CROWD // 2 + 2)
    end = time.monotonic() + 20
    while len(links()) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    more(conns, 2)
    many = links()
    print(f"{CROWD // 2} connections on {few}, {len(conns)} on {many}")
    if len(few) != 1 or len(many) != 2 or not all(many) or sum(many) != len(conns):
        sys.exit(f"expected one link, and then two that carry connections: {few}, {many}")
    for conn in conns:
        conn.close()


def talk(host, port, smctl):
    def paced():
        return counter(smctl, "link_paced")

    def expect(what, before, moves):
        count = paced() - before
        print(f"{what}: bulk was held back {count} times")
        if (count > 0) != moves:
            sys.exit(f"{what}: expected that bulk is {'' if moves else 'not '}held back")

    asks, *streams = conns = [connected(host, port, part) for part in (ECHO, SINK, SINK)]
    bulk = streams[0]
    warm(asks, lambda: ping(asks, 0))
    for conn in streams:
        warm(conn, lambda conn=conn: transfer(conn, 1 << 17))

    time.sleep(QUIET)
    before = paced()
    transfer(bulk, ALONE)
    expect("bulk alone", before, False)

    time.sleep(QUIET)
    before = paced()
    # transfer() sends the size as a short message, then the data, which is bulk. The first such
    # message is latency-sensitive; a later one only if its connection has posted no bulk for
    # BULK_HOLDOFF. None of them holds back the bulk of its own connection.
    for i in range(BODIES):
        transfer(bulk, (1 << 20) + i)
    expect("sizes and data of one connection", before, False)

    time.sleep(QUIET)
    before = paced()
    send_size(streams[1], ALONE)    # latency-sensitive: paces the other stream for PACE_TIME
    transfer(bulk, ALONE)
    expect("bulk after the size of another stream", before, True)
    send_data(streams[1], ALONE)

    before = paced()
    # A size is latency-sensitive and paces the other stream, but only until its own stream posts
    # bulk. The first BEGIN bytes of each stream are bulk; after them, neither paces the other.
    for _ in range(ROUNDS):
        time.sleep(QUIET)
        for conn in streams:
            send_size(conn, ALONE)
        for conn in streams:
            conn.sendall(data_of(ALONE)[0][:BEGIN])
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda conn: send_data(conn, ALONE, BEGIN), streams))
    expect("streams that begin together", before, False)

    def beside(switch):
        """Exchange pings beside bulk, and call @switch with their number after each."""
        pings = 0
        with ThreadPoolExecutor() as pool:
            stream = pool.submit(transfer, bulk, BESIDE)
            while not stream.done():
                ping(asks, pings)
                pings += 1
                switch(pings)
            stream.result()
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
            sys.exit("no longer on RDMA")
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
    """Open connections make new rings smaller: what counts is the size of their rings, even if few
    pages of these are allocated."""
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
        sys.exit(f"rings before, while all threads wait, beside the connections and after: "
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
