#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One end of the connections that death.sh breaks.

    death.py serve PORT          one connection: echo it all, tell its sum
    death.py stream HOST PORT MIB MARK
                                 send and check the echo; on RDMA make the file MARK, and go on
                                 for MIB after the file MARK.done is there
    death.py orphaned HOST PORT SECONDS
                                 send until the peer's host is given up: ETIMEDOUT within SECONDS
    death.py limited HOST PORT REASON peer|own
                                 an echo of 1 MiB is right, all by TCP, for the reason of this number,
                                 the peer's or our own
    death.py late HOST PORT REASON MARK
                                 on TCP for the reason of this number: make the file MARK; then on RDMA
                                 within 20 s, and all that is sent from then on goes there
    death.py starved HOST PORT   with the least of pages: EAGAIN, or a sleep, until the peer reads
    death.py flood PORT reset|read
                                 send until nothing goes; then reset the connection, or read it
    death.py unread HOST PORT reset|read
                                 with the least of pages, to a flood: send until nothing goes, and
                                 read nothing; hear of the reset, or go on when there are pages
    death.py deaf PORT           accept, read nothing until the peer has closed: a reset is right
    death.py stuffed HOST PORT   fill all buffers of a peer that does not read, and close
    death.py keep PORT COUNT     read so many connections to their ends, and close none
    death.py leave HOST PORT COUNT
                                 send as much on so many, one after the other, and close each
    death.py hold                keep one socket open until stdin ends
"""
import ctypes
import errno
import os
import pathlib
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
CHUNK = 1 << 15
LEFT = 100000
PAGES = 8                       # seconds that a sender sleeps before its ring may grow
libc = ctypes.CDLL(None, use_errno=True)


def rdma_socket():
    fd = libc.socket(AF_RDMA, socket.SOCK_STREAM, 0)
    if fd < 0:
        sys.exit("socket(AF_RDMA): " + os.strerror(ctypes.get_errno()))
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=fd)


def info(sock):
    words = struct.unpack("=4I6Q4I", sock.getsockopt(SOL_AFRDMA, AFRDMA_INFO, 80))
    return dict(zip(("mode tx_path rx_path reason tx_tcp tx_rdma rx_tcp rx_rdma "
                     "moves link tx_ring rx_ring reason_peer server").split(), words))


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


class Echo(threading.Thread):
    """Reads what comes back of the bytes that random.Random(@seed) makes."""

    def __init__(self, conn, seed):
        super().__init__(daemon=True)
        self.conn, self.source = conn, random.Random(seed)
        self.count, self.wrong = 0, None
        self.start()

    def run(self):
        try:
            while part := self.conn.recv(CHUNK, socket.MSG_WAITALL):
                if not self.wrong and part != self.source.randbytes(CHUNK):
                    self.wrong = f"other bytes came back within {len(part)} at {self.count}"
                self.count += len(part)
        except OSError as err:
            self.wrong = self.wrong or f"{err} at {self.count}"


def stream(host, port, mib, mark):
    conn = rdma_socket()
    conn.connect((host, port))
    source = random.Random(port)
    echo = Echo(conn, port)
    sent, more = 0, None
    end = time.monotonic() + 60
    while more != 0 and not echo.wrong and time.monotonic() < end:
        conn.sendall(source.randbytes(CHUNK))
        sent += CHUNK
        if more is not None:
            more -= CHUNK
        elif os.path.exists(mark + ".done"):
            more = mib << 20
        elif on_rdma(conn):
            pathlib.Path(mark).touch()
    conn.shutdown(socket.SHUT_WR)
    echo.join(30)
    print(info(conn))
    if echo.wrong:
        sys.exit(echo.wrong)
    if echo.is_alive() or echo.count != sent:
        sys.exit(f"sent {sent} bytes, {echo.count} came back")
    if more != 0:
        sys.exit("within 60 s never on RDMA, or nobody said that the fault was made")
    if info(conn)["moves"] < 2:
        sys.exit("the stream never left RDMA: nothing was proved")


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


def limited(host, port, reason, whose):
    conn = rdma_socket()
    conn.connect((host, port))
    data = random.Random(port).randbytes(1 << 16)
    for _ in range(16):
        conn.sendall(data)
        if conn.recv(len(data), socket.MSG_WAITALL) != data:
            sys.exit("the echo is wrong")
    now = info(conn)
    print(now)
    if now["tx_rdma"] or now["rx_rdma"] or now["reason"] != reason or \
            now["reason_peer"] != (whose == "peer"):
        sys.exit(f"expected TCP for reason {reason}, {whose}")


def ping(conn, source, count):
    for _ in range(count):
        data = source.randbytes(CHUNK)
        conn.sendall(data)
        if conn.recv(CHUNK, socket.MSG_WAITALL) != data:
            sys.exit("the echo is wrong")


def until(conn, source, true):
    end = time.monotonic() + 20
    while not true():
        if time.monotonic() > end:
            sys.exit(f"not within 20 s: {info(conn)}")
        ping(conn, source, 1)


def late(host, port, reason, mark):
    conn = rdma_socket()
    conn.connect((host, port))
    source = random.Random(port)
    until(conn, source, lambda: info(conn)["reason"] == reason)
    print(before := info(conn))
    if before["tx_rdma"] or before["rx_rdma"]:
        sys.exit("it was on RDMA")
    pathlib.Path(mark).touch()
    until(conn, source, lambda: on_rdma(conn))
    before = info(conn)
    ping(conn, source, 32)
    print(now := info(conn))
    if (now["tx_tcp"], now["rx_tcp"]) != (before["tx_tcp"], before["rx_tcp"]):
        sys.exit("bytes went by TCP")
    if now["tx_rdma"] - before["tx_rdma"] != 32 * CHUNK:
        sys.exit("bytes are missing")


def starved(host, port):
    """With the least of pages: both directions stand still, no poll spins, then all goes on."""
    limit = pathlib.Path("/proc/sys/net/afrdma/mem_max")
    before = limit.read_text()
    conn = rdma_socket()
    conn.connect((host, port))
    limit.write_text("0")
    try:
        source = random.Random(port)
        stood, left = fill(conn, source)
        sent = stood + len(left) + 32 * CHUNK
        echo = Echo(conn, port)
        conn.sendall(left)
        for _ in range(32):
            conn.sendall(source.randbytes(CHUNK))
        conn.shutdown(socket.SHUT_WR)
        echo.join(30)
    finally:
        limit.write_text(before)
    print(f"stood still at {stood} of {sent} bytes: {info(conn)}")
    if echo.wrong:
        sys.exit(echo.wrong)
    if echo.is_alive() or echo.count != sent:
        sys.exit(f"sent {sent} bytes, {echo.count} came back")
    if info(conn)["tx_rdma"]:
        sys.exit("on RDMA without memory")


def fill(conn, source):
    """Send until nothing goes for a second: bytes sent, and the rest of the last chunk."""
    poll = select.poll()
    poll.register(conn, select.POLLOUT)
    sent, vain, left = 0, 0, b""
    conn.setblocking(False)
    while True:
        left = left or source.randbytes(CHUNK)
        try:
            part = conn.send(left)
            sent, vain, left = sent + part, 0, left[part:]
            continue
        except BlockingIOError:
            vain += 1
        if vain > 20:
            sys.exit(f"woken in vain {vain} times")
        if not poll.poll(1000):
            conn.setblocking(True)
            return sent, left


def flood(port, then):
    listener = rdma_socket()
    listener.bind(("", port))
    listener.listen(1)
    print("listening", flush=True)
    conn, _ = listener.accept()
    sent, _ = fill(conn, random.Random(port))
    time.sleep(3)               # the other end is full, too
    print(f"{sent} bytes sent, then {then}")
    if then == "reset":
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn.close()
        return
    while conn.recv(1 << 16):
        pass


def unread(host, port, then):
    """All the while TCP holds bytes of the flood, which have no page."""
    limit = pathlib.Path("/proc/sys/net/afrdma/mem_max")
    before = limit.read_text()
    limit.write_text("0")
    try:
        conn = rdma_socket()
        conn.connect((host, port))
        sent, left = fill(conn, random.Random(port))
        print(f"{sent} bytes went: {info(conn)}")
        conn.settimeout(20)
        begin = time.monotonic()
        if then == "read":      # behind what the peer tells when it has read, and between probes of TCP
            threading.Timer(PAGES, limit.write_text, [before]).start()
        conn.sendall(left + bytes(1 << 20))
        if then == "reset":
            sys.exit("no reset")
        took = time.monotonic() - begin - PAGES
        print(f"all went {took:.1f} s after there were pages")
        if took > 3:
            sys.exit("it went on by chance")
    except TimeoutError:
        sys.exit(f"send() slept on: {info(conn)}")
    except ConnectionResetError:
        if then == "read":
            raise
        return
    finally:
        limit.write_text(before)
    conn.shutdown(socket.SHUT_WR)
    while conn.recv(1 << 16):
        pass


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


def keep(port, count):
    listener = rdma_socket()
    listener.bind(("", port))
    listener.listen(1)
    print("listening", flush=True)
    kept = []
    for number in range(count):
        kept.append(listener.accept()[0])
        kept[-1].sendall(b"!")
        got = 0
        try:
            while data := kept[-1].recv(1 << 16):
                got += len(data)
        except OSError as err:
            sys.exit(f"connection {number} ended after {got} bytes: {err}")
        if got != LEFT:
            sys.exit(f"connection {number} ended after {got} bytes")
    print(f"{count} connections are whole")


def leave(host, port, count):
    for _ in range(count):
        with rdma_socket() as conn:
            conn.connect((host, port))
            conn.recv(1)        # the one before has been read
            conn.sendall(bytes(LEFT))
        time.sleep(0.2)         # that it has come is told with the next words, or a little later


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
    elif what == "keep":
        keep(int(args[0]), int(args[1]))
    elif what == "leave":
        leave(args[0], int(args[1]), int(args[2]))
    elif what == "orphaned":
        orphaned(args[0], int(args[1]), float(args[2]))
    elif what == "limited":
        limited(args[0], int(args[1]), int(args[2]), args[3])
    elif what == "late":
        late(args[0], int(args[1]), int(args[2]), args[3])
    elif what == "starved":
        starved(args[0], int(args[1]))
    elif what == "flood":
        flood(int(args[0]), args[1])
    elif what == "unread":
        unread(args[0], int(args[1]), args[2])
    elif what == "deaf":
        deaf(int(args[0]))
    elif what == "stuffed":
        stuffed(args[0], int(args[1]))
    elif what == "hold":
        hold()
    else:
        sys.exit(__doc__)
