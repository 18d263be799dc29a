#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""One end of the connections of death.sh, limits.sh, arrival.sh and tunnel.sh.

    death.py serve PORT          accept one connection, echo all bytes, print its AFRDMA_INFO
    death.py stream HOST PORT MIB MARK
                                 send and check the echo; create the file MARK when the
                                 connection is on RDMA; once the file MARK.done exists, send MIB
                                 MiB more and end
    death.py orphaned HOST PORT SECONDS
                                 print "ready" when on RDMA; after a line on stdin, send until the
                                 connection fails because the peer's host is unreachable; no call
                                 may block for more than SECONDS
    death.py limited HOST PORT REASON peer|own
                                 check an echo of 1 MiB; TCP must carry all of it, and the reason
                                 must be number REASON, reported by the peer or found by this end
    death.py late HOST PORT REASON MARK
                                 create the file MARK when the connection is on TCP for reason
                                 number REASON; the connection must then move to RDMA within 20 s,
                                 and RDMA must carry all later bytes
    death.py starved HOST PORT   with mem_max 0, send until EAGAIN; sending must continue when a
                                 thread reads the echo
    death.py flood PORT reset|read
                                 accept a connection and send until EAGAIN; then reset the
                                 connection, or read it to its end
    death.py unread HOST PORT reset|read
                                 with mem_max 0, connect to "flood" and send without reading until
                                 send() blocks; this send() must fail when "flood" resets the
                                 connection, or return soon after mem_max is restored
    death.py noread PORT          accept a connection and read nothing until poll() reports an
                                 error; recv() must then fail with ECONNRESET
    death.py stuffed HOST PORT   send until EAGAIN to a peer that does not read, and close
    death.py keep PORT COUNT     read COUNT connections to their ends, one by one, and close none
    death.py leave HOST PORT COUNT
                                 open COUNT connections, one by one, send on each and close it
    death.py lazy PORT MARK      listen on PORT and PORT + 1, and accept nothing until the file MARK
                                 exists; then accept one connection on PORT + 1, which must be
                                 framed and end after one byte
    death.py drop HOST PORT COUNT UID
                                 as user UID, open COUNT connections, one by one, send a byte on
                                 each and close it, whether or not the peer has accepted it
    death.py hold                keep one socket open until the end of stdin
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
PROTO_INET6 = 1         # AFRDMA_PROTO_INET6
SOL_AFRDMA, AFRDMA_INFO = 427, 1
FRAMED = 4              # AFRDMA_MODE_FRAMED
PATH_RDMA = 1
CHUNK = 1 << 15
LEFT = 100000                   # bytes that "leave" sends on each connection
PAGES = 8                       # seconds after which "unread HOST PORT read" restores mem_max
libc = ctypes.CDLL(None, use_errno=True)


def rdma_socket(family=socket.AF_INET):
    protocol = PROTO_INET6 if family == socket.AF_INET6 else 0
    fd = libc.socket(AF_RDMA, socket.SOCK_STREAM, protocol)
    if fd < 0:
        sys.exit("socket(AF_RDMA): " + os.strerror(ctypes.get_errno()))
    return socket.socket(family, socket.SOCK_STREAM, 0, fileno=fd)


def info(sock):
    words = struct.unpack("=4I6Q4I", sock.getsockopt(SOL_AFRDMA, AFRDMA_INFO, 80))
    return dict(zip(("mode tx_path rx_path reason tx_tcp tx_rdma rx_tcp rx_rdma "
                     "moves link tx_ring rx_ring reason_peer server").split(), words))


def on_rdma(sock):
    now = info(sock)
    return now["tx_path"] == PATH_RDMA and now["rx_path"] == PATH_RDMA


def serve(port, family=socket.AF_INET):
    listener = rdma_socket(family)
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
    """Read the echo, and compare it with the bytes of random.Random(@seed)."""

    def __init__(self, conn, seed):
        super().__init__(daemon=True)
        self.conn, self.source = conn, random.Random(seed)
        self.count, self.wrong = 0, None
        self.start()

    def run(self):
        try:
            while part := self.conn.recv(CHUNK, socket.MSG_WAITALL):
                if not self.wrong and part != self.source.randbytes(CHUNK):
                    self.wrong = f"the echo differs within {len(part)} bytes at {self.count}"
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
        sys.exit(f"not finished within 60 s: never on RDMA, or {mark}.done was not created")
    if info(conn)["moves"] < 2:
        sys.exit("the stream never left RDMA: the fault had no effect")


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
    sys.stdin.readline()        # until death.sh has made the peer's host unreachable
    start = time.monotonic()
    try:
        while True:
            conn.sendall(bytes(1 << 16))
    except OSError as err:
        took = time.monotonic() - start
        print(f"{err} after {took:.1f} s: {info(conn)}")
        if err.errno not in (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ECONNRESET):
            sys.exit(f"not an error that an unreachable host causes: {err!r}")


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
    """Ping until @true() returns true, for 20 seconds at most."""
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
        sys.exit("it has been on RDMA")
    pathlib.Path(mark).touch()
    until(conn, source, lambda: on_rdma(conn))
    before = info(conn)
    ping(conn, source, 32)
    print(now := info(conn))
    if (now["tx_tcp"], now["rx_tcp"]) != (before["tx_tcp"], before["rx_tcp"]):
        sys.exit("bytes were carried by TCP")
    if now["tx_rdma"] - before["tx_rdma"] != 32 * CHUNK:
        sys.exit("AFRDMA_INFO counts too few bytes on RDMA")


def starved(host, port):
    """With mem_max 0, both directions stall, poll() does not spin, and reading ends the stall."""
    limit = pathlib.Path("/proc/sys/net/afrdma/mem_max")
    before = limit.read_text()
    conn = rdma_socket()
    conn.connect((host, port))
    limit.write_text("0")
    try:
        source = random.Random(port)
        stalled, left = fill(conn, source)
        sent = stalled + len(left) + 32 * CHUNK
        echo = Echo(conn, port)
        conn.sendall(left)
        for _ in range(32):
            conn.sendall(source.randbytes(CHUNK))
        conn.shutdown(socket.SHUT_WR)
        echo.join(30)
    finally:
        limit.write_text(before)
    print(f"stalled at {stalled} of {sent} bytes: {info(conn)}")
    if echo.wrong:
        sys.exit(echo.wrong)
    if echo.is_alive() or echo.count != sent:
        sys.exit(f"sent {sent} bytes, {echo.count} came back")
    if info(conn)["tx_rdma"]:
        sys.exit("on RDMA without memory")


def fill(conn, source):
    """Send until the socket is not writable for a second.

    Returns the number of bytes sent and the unsent rest of the last chunk.
    """
    poll = select.poll()
    poll.register(conn, select.POLLOUT)
    sent, spurious, left = 0, 0, b""
    conn.setblocking(False)
    while True:
        left = left or source.randbytes(CHUNK)
        try:
            part = conn.send(left)
            sent, spurious, left = sent + part, 0, left[part:]
            continue
        except BlockingIOError:
            spurious += 1
        if spurious > 20:
            sys.exit(f"POLLOUT {spurious} times in a row, each time followed by EAGAIN")
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
    time.sleep(3)               # meanwhile the peer fills the buffers of the other direction
    print(f"{sent} bytes sent, then {then}")
    if then == "reset":
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn.close()
        return
    while conn.recv(1 << 16):
        pass


def unread(host, port, then):
    """Send while bytes from "flood" wait in the TCP socket, as the receive ring gets no page."""
    limit = pathlib.Path("/proc/sys/net/afrdma/mem_max")
    before = limit.read_text()
    limit.write_text("0")
    try:
        conn = rdma_socket()
        conn.connect((host, port))
        sent, left = fill(conn, random.Random(port))
        print(f"{sent} bytes sent: {info(conn)}")
        conn.settimeout(20)
        begin = time.monotonic()
        # Restore mem_max after PAGES seconds. By then the peer has read the bytes of fill(), but
        # its CREDIT is behind DATA for which this end's receive ring gets no page. A window probe
        # of the peer's TCP could run the connection worker, but none is due soon. So send()
        # returns in time only if the worker by itself tries again to get a page.
        if then == "read":
            threading.Timer(PAGES, limit.write_text, [before]).start()
        conn.sendall(left + bytes(1 << 20))
        if then == "reset":
            sys.exit("no reset")
        took = time.monotonic() - begin - PAGES
        print(f"send() returned {took:.1f} s after there were pages")
        if took > 3:
            sys.exit("that is too late: something else has woken it")
    except TimeoutError:
        sys.exit(f"send() still blocks: {info(conn)}")
    except ConnectionResetError:
        if then == "read":
            raise
        return
    finally:
        limit.write_text(before)
    conn.shutdown(socket.SHUT_WR)
    while conn.recv(1 << 16):
        pass


def noread(port):
    listener = rdma_socket()
    listener.bind(("", port))
    listener.listen(1)
    print("listening", flush=True)
    conn, _ = listener.accept()
    poll = select.poll()
    poll.register(conn, 0)      # errors only
    if not poll.poll(20000):
        sys.exit("no error within 20 s")
    try:
        while conn.recv(1 << 16):
            pass
    except ConnectionResetError:
        print("reset")
        return
    sys.exit("end of stream, expected a reset")


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
    print(f"{count} connections delivered all bytes")


def leave(host, port, count):
    for _ in range(count):
        with rdma_socket() as conn:
            conn.connect((host, port))
            # The byte shows that "keep" has accepted this connection, which it does only after it
            # has read the previous one to its end.
            conn.recv(1)
            conn.sendall(bytes(LEFT))
        time.sleep(0.2)         # until "keep" has sent FINACK, which may wait to be piggybacked


def lazy(port, mark):
    listeners = [rdma_socket(), rdma_socket()]
    for number, listener in enumerate(listeners):
        listener.bind(("", port + number))
        listener.listen(100)
    print("listening", flush=True)
    while not mark.exists():
        time.sleep(0.1)
    try:
        conn, _ = listeners[1].accept()
        got = conn.recv(1 << 16) + conn.recv(1 << 16)
    except OSError as err:
        sys.exit(f"the connection has ended with an error: {err}")
    print(f"received {got}, {info(conn)}")
    if got != b"!" or info(conn)["mode"] != FRAMED:
        sys.exit("expected one byte and the end of a framed connection")


def drop(host, port, count, uid):
    os.setuid(uid)
    for _ in range(count):
        with rdma_socket() as conn:
            conn.connect((host, port))
            conn.sendall(b"!")


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
    elif what == "noread":
        noread(int(args[0]))
    elif what == "stuffed":
        stuffed(args[0], int(args[1]))
    elif what == "lazy":
        lazy(int(args[0]), pathlib.Path(args[1]))
    elif what == "drop":
        drop(args[0], int(args[1]), int(args[2]), int(args[3]))
    elif what == "hold":
        hold()
    else:
        sys.exit(__doc__)
