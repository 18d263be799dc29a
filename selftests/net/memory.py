#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One end of the connections of memory.sh. UID is the user who owns the sockets.

    memory.py noread PORT UID COUNT
                        accept COUNT connections and read nothing until a line comes on stdin
    memory.py stuff HOST PORT UID COUNT
                        fill COUNT connections that use AF_RDMA but stay on TCP, and keep them open
                        until a line comes on stdin
    memory.py echo PORT UID REASON COUNT
                        echo on COUNT connections, one after the other, all but the first with
                        SO_RCVLOWAT; each must have REASON when it ends
    memory.py stream HOST PORT UID REASON
                        check an echo until the connection is on RDMA or AFRDMA_INFO shows a final
                        reason, then an echo of 1 MiB more. If REASON is 0, RDMA must carry bytes in
                        both directions; else TCP must carry all, and the reason must be REASON
    memory.py keep PORT UID
                        accept connections and keep them open until a line comes on stdin; if that
                        is "read", first read what has come on each, and wait for another line
    memory.py hold HOST PORT UID LOCAL COUNT RDMA REASON BYTES
                        open COUNT connections from the address LOCAL; as many as the number RDMA
                        says must be on RDMA, and the others on TCP for REASON; send BYTES bytes on
                        each, and keep them until a line comes on stdin
"""
import contextlib
import os
import random
import select
import socket
import struct
import sys
import threading
import time

from death import SOL_AFRDMA, info, rdma_socket

AFRDMA_RDMA, NEVER, ALWAYS = 2, 1, 2
NOT_YET, UPGRADING = 20, 47
MIB, CHUNK = 1 << 20, 1 << 16


def listen(port, backlog):
    listener = rdma_socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen(backlog)
    print("listening", flush=True)
    return listener


def wait(conns):
    """Wait for a line on stdin, then set SO_LINGER so that close() resets @conns.

    If the line is "read", first read what has come on @conns, and wait for another line.
    After an orderly close() each connection would stay until the peer closes its end.
    """
    print("ready", flush=True)
    while sys.stdin.readline() == "read\n":
        for conn in conns:
            with contextlib.suppress(ConnectionResetError):
                while select.select([conn], [], [], 0)[0] and conn.recv(MIB):
                    pass
    for conn in conns:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def noread(port, count):
    listener = listen(port, count)
    kept = [listener.accept()[0] for _ in range(count)]
    wait(kept)


def stuff(host, port, count):
    """Send on all connections until none of them accepts a byte for a second.

    A connection that is full may accept bytes later, since pages may become free meanwhile.
    """
    conns = []
    for _ in range(count):
        conns.append(rdma_socket())
        conns[-1].connect((host, port))
        conns[-1].setsockopt(SOL_AFRDMA, AFRDMA_RDMA, struct.pack("i", NEVER))
        conns[-1].setblocking(False)
    sent, last = 0, time.monotonic()
    while time.monotonic() - last < 1:
        for conn in conns:
            try:
                sent += conn.send(bytes(CHUNK))
                last = time.monotonic()
            except BlockingIOError:
                pass
        time.sleep(0.01)
    print(f"{sent} bytes on {count} connections")
    wait(conns)


def echo(port, reason, count):
    listener = listen(port, count)
    for number in range(count):
        conn, _ = listener.accept()
        # memory.sh opens a second connection to an echo server only when no memory for rings on
        # TCP is left. The receive ring of that connection gets pages for 16 KiB only: when these
        # pages are full, poll() must report POLLIN, although SO_RCVLOWAT is CHUNK.
        if number:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, CHUNK)
        poll = select.poll()
        poll.register(conn, select.POLLIN)
        while poll.poll(20000) and (data := conn.recv(CHUNK, socket.MSG_WAITALL)):
            conn.sendall(data)
        now = info(conn)
        print(now)
        if now["reason"] != reason:
            sys.exit(f"expected reason {reason} at the server")


def stream(host, port, reason):
    conn = rdma_socket()
    conn.settimeout(10)
    conn.connect((host, port))
    source = random.Random(port)
    left, total, start = MIB, 0, time.monotonic()
    while left > 0:
        data = source.randbytes(CHUNK)
        sender = threading.Thread(target=conn.sendall, args=(data,))
        sender.start()
        back = b""
        while len(back) < len(data):
            part = conn.recv(len(data) - len(back))
            if not part:
                sys.exit("the stream has ended")
            back += part
        sender.join()
        if back != data:
            sys.exit("the echo is wrong")
        total += len(data)
        if info(conn)["reason"] not in (NOT_YET, UPGRADING):
            left -= len(data)
        elif time.monotonic() - start > 30:
            sys.exit("after 30 s there is no reason why it is not on RDMA")
    now = info(conn)
    print(f"{total} bytes each way in {time.monotonic() - start:.2f} s: {now}")
    if now["reason"] != reason:
        sys.exit(f"expected reason {reason}")
    if (bool(now["tx_rdma"]), bool(now["rx_rdma"])) != (not reason, not reason):
        sys.exit("the bytes were on the wrong path")


def keep(port):
    listener = listen(port, 100)
    kept = []

    def accept():
        while True:
            kept.append(listener.accept()[0])
            kept[-1].send(b"!")

    threading.Thread(target=accept, daemon=True).start()
    wait(kept)


def decided(conn):
    now = info(conn)
    return now["link"] or now["reason"] not in (0, NOT_YET, UPGRADING)


def hold(host, port, local, count, rdma, reason, size):
    """Open the connections one by one, so that the quota refuses a known number of them."""
    conns = []
    for number in range(count):
        conn = rdma_socket()
        conn.settimeout(20)
        conn.setsockopt(SOL_AFRDMA, AFRDMA_RDMA, struct.pack("i", ALWAYS))
        conn.bind((local, 0))
        conn.connect((host, port))
        conn.recv(1)
        end = time.monotonic() + 20
        while not decided(conn):
            if time.monotonic() > end:
                sys.exit(f"connection {number}: neither RDMA nor a reason: {info(conn)}")
            time.sleep(0.005)
        conn.sendall(bytes(size))
        conns.append(conn)
    there = [conn for conn in conns if info(conn)["link"]]
    reasons = {info(conn)["reason"] for conn in conns if conn not in there}
    print(f"{len(there)} of {count} on RDMA, the others: {reasons}")
    if len(there) != rdma or reasons - {reason}:
        sys.exit(f"expected {rdma}, the others for reason {reason}")
    wait(conns)


def main():
    what, *args = sys.argv[1:] or ["help"]
    calls = {"noread": noread, "stuff": stuff, "echo": echo, "stream": stream, "keep": keep,
             "hold": hold}
    if what not in calls:
        sys.exit(__doc__)
    remote = what in ("stuff", "stream", "hold")
    uid = args.pop(2 if remote else 1)
    os.setgid(int(uid))
    os.setuid(int(uid))
    calls[what](*[arg if "." in arg else int(arg) for arg in args])


if __name__ == "__main__":
    main()
