#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One end of the connections that death.sh breaks.

    death.py serve PORT          one connection: echo it all, tell its sum
    death.py stream HOST PORT MIB MARK
                                 send and check the echo; make the file MARK when a third is through
    death.py orphaned HOST PORT SECONDS
                                 send until the peer's host is given up: ETIMEDOUT within SECONDS
    death.py limited HOST PORT REASON
                                 an echo of 1 MiB is right, all by TCP, for the reason of this number
    death.py deaf PORT           accept, read nothing until the peer has closed: a reset is right
    death.py stuffed HOST PORT   fill all buffers of a peer that does not read, and close
    death.py hold                keep one socket open until stdin ends
"""
import ctypes
import errno
import hashlib
import os
import random
import select
import socket
import struct
import sys
import threading
import time

AF_RDMA = int(os.environ.get("AFR_FAMILY", "27"))
SOL_AFRDMA, AFRDMA_INFO = 427, 1
PATH_RDMA = 1
libc = ctypes.CDLL(None, use_errno=True)


def rdma_socket():
    fd = libc.socket(AF_RDMA, socket.SOCK_STREAM, 0)
    if fd < 0:
        sys.exit("socket(AF_RDMA): " + os.strerror(ctypes.get_errno()))
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=fd)


def info(sock):
    words = struct.unpack("=4I6Q2I", sock.getsockopt(SOL_AFRDMA, AFRDMA_INFO, 72))
    return dict(zip(("mode tx_path rx_path reason tx_tcp tx_rdma rx_tcp rx_rdma "
                     "moves link tx_ring rx_ring").split(), words))


def on_rdma(sock):
    now = info(sock)
    return now["tx_path"] == PATH_RDMA and now["rx_path"] == PATH_RDMA


def serve(port):
    listener = rdma_socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen(1)
    print("listening", flush=True)
    conn, _ = listener.accept()
    try:
        while data := conn.recv(1 << 16):
            conn.sendall(data)
    except OSError as err:
        sys.exit(f"server: {err}")
    print(info(conn))


def stream(host, port, mib, mark):
    conn = rdma_socket()
    conn.connect((host, port))
    data = random.Random(port).randbytes(mib << 20)
    got = hashlib.sha256()
    count = 0

    def reader():
        nonlocal count
        while part := conn.recv(1 << 16):
            got.update(part)
            count += len(part)

    thread = threading.Thread(target=reader)
    thread.start()
    marked = False
    for at in range(0, len(data), 1 << 15):
        conn.sendall(data[at:at + (1 << 15)])
        if not marked and at > len(data) // 3 and on_rdma(conn):
            marked = True
            with open(mark, "w", encoding="ascii"):
                pass
    conn.shutdown(socket.SHUT_WR)
    thread.join(60)
    print(info(conn))
    if not marked:
        sys.exit("the stream never was on RDMA: nothing was proved")
    if count != len(data) or got.digest() != hashlib.sha256(data).digest():
        sys.exit(f"sent {len(data)} bytes, {count} came back, sums "
                 f"{'equal' if got.digest() == hashlib.sha256(data).digest() else 'differ'}")


def orphaned(host, port, seconds):
    conn = rdma_socket()
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 3000)
    conn.connect((host, port))
    conn.settimeout(seconds)
    end = time.monotonic() + 20
    while not on_rdma(conn):
        if time.monotonic() > end:
            sys.exit(f"never on RDMA: {info(conn)}")
        conn.sendall(bytes(4096))
        conn.recv(4096, socket.MSG_WAITALL)
    print("ready", flush=True)
    sys.stdin.readline()        # the peer's host is gone now
    start = time.monotonic()
    try:
        while True:
            conn.sendall(bytes(1 << 16))
    except OSError as err:
        took = time.monotonic() - start
        print(f"{err} after {took:.1f} s: {info(conn)}")
        if err.errno not in (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ECONNRESET):
            sys.exit(f"not an error of a dead host: {err!r}")


def limited(host, port, reason):
    conn = rdma_socket()
    conn.connect((host, port))
    data = random.Random(port).randbytes(1 << 16)
    for _ in range(16):
        conn.sendall(data)
        if conn.recv(len(data), socket.MSG_WAITALL) != data:
            sys.exit("the echo is wrong")
    now = info(conn)
    print(now)
    if now["tx_rdma"] or now["rx_rdma"] or now["reason"] != reason:
        sys.exit(f"expected TCP for reason {reason}")


def deaf(port):
    listener = rdma_socket()
    listener.bind(("", port))
    listener.listen(1)
    print("listening", flush=True)
    conn, _ = listener.accept()
    poll = select.poll()
    poll.register(conn, 0)      # errors only
    if not poll.poll(20000):
        sys.exit("nothing happened")
    try:
        while conn.recv(1 << 16):
            pass
    except ConnectionResetError:
        print("reset")
        return
    sys.exit("the stream had an end")


def stuffed(host, port):
    conn = rdma_socket()
    conn.connect((host, port))
    conn.setblocking(False)
    try:
        while True:
            conn.send(bytes(1 << 16))
    except BlockingIOError:
        pass


def hold():
    with rdma_socket():
        print("open", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    what, *args = sys.argv[1:] or ["help"]
    if what == "serve":
        serve(int(args[0]))
    elif what == "stream":
        stream(args[0], int(args[1]), int(args[2]), args[3])
    elif what == "orphaned":
        orphaned(args[0], int(args[1]), float(args[2]))
    elif what == "limited":
        limited(args[0], int(args[1]), int(args[2]))
    elif what == "deaf":
        deaf(int(args[0]))
    elif what == "stuffed":
        stuffed(args[0], int(args[1]))
    elif what == "hold":
        hold()
    else:
        sys.exit(__doc__)
