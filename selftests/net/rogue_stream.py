# SPDX-License-Identifier: GPL-2.0
"""Connections of rogue-module.py: sockets, streams whose bytes identify them, bystanders.

The victim connection is the one on which the injection happens. Bystanders are other connections
of the unmodified host, which are checked for effects of the injection.

The upper three bits of a byte are the tag of its direction, the lower five depend on its
offset. So bytes at a wrong offset can be distinguished from bytes of another direction.
"""
import ctypes
import os
import random
import socket
import struct
import threading
import time

AF_RDMA = int(os.environ.get("AFR_FAMILY", "27"))
SOL_AFRDMA, AFRDMA_INFO = 427, 1
PATH_RDMA = 1
CHUNK = 32768
# A round: one end sends this many bytes, the other end answers with as many. Bystanders transfer
# all data in rounds, the victim connection only the data of its warm-up.
ROUND = 4096
# Period of each stream in bytes. It is odd and a ring's size a power of two, so each lap of a ring
# has other bytes than the laps before.
PATTERN = 1 << 20 | 1
# Tags: victim connection (V); bystanders to the Byzantine host over RDMA (S) and over TCP (T), and
# within the unmodified host (L). The unmodified end sends OUT; in L, where both ends are
# unmodified, the end that connects sends it. T_ANY is for both directions.
V_OUT, V_IN, S_OUT, S_IN, L_OUT, L_IN, T_ANY = range(1, 8)

libc = ctypes.CDLL(None, use_errno=True)
_low = random.Random(1).randbytes(PATTERN).translate(bytes(i & 31 for i in range(256)))
_cycle = {tag: _low.translate(bytes((i & 31) | tag << 5 for i in range(256))) * 2
          for tag in range(1, 8)}


def stream_bytes(tag, offset, length):
    at = offset % PATTERN
    return _cycle[tag][at:at + length]


def foreign_bytes(data, tag):
    """The bytes of @data without the tag of this direction: those of other directions, and 1 to 31,
    which have no tag. 0 is not counted: it may be memory that was never written."""
    own = bytes(range(tag << 5, (tag + 1) << 5)) + b"\0"
    return data.translate(None, own)


def new_socket(rdma):
    if not rdma:
        return socket.socket()
    fd = libc.socket(AF_RDMA, socket.SOCK_STREAM, 0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "socket(AF_RDMA)")
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=fd)
    # An injected URGENT must not take a byte out of the stream.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    return sock


def new_listener(rdma, port=0):
    sock = new_socket(rdma)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("", port))
    sock.listen(16)
    return sock


def on_rdma(sock):
    info = struct.unpack("=4I6Q2I", sock.getsockopt(SOL_AFRDMA, AFRDMA_INFO, 72))
    return info[1] == PATH_RDMA and info[2] == PATH_RDMA


class Wrong(Exception):
    """Bytes differ from those sent; @foreign: some of them belong to another direction."""

    def __init__(self, text, foreign):
        super().__init__(text)
        self.foreign = foreign


def check_bytes(data, tag, offset):
    if data == stream_bytes(tag, offset, len(data)):
        return
    foreign = foreign_bytes(data, tag)
    if foreign:
        raise Wrong(f"{len(foreign)} foreign bytes within {len(data)} at {offset}: "
                    f"{foreign[:16].hex()}", True)
    raise Wrong(f"bytes at the wrong offset within {len(data)} at {offset}", False)


def recv_exactly(sock, length, end):
    data = bytearray()
    while len(data) < length:
        try:
            part = sock.recv(length - len(data))
        except TimeoutError:
            if time.monotonic() > end:
                raise
            continue
        if not part:
            raise EOFError("end of stream")
        data += part
    return bytes(data)


def peek(sock, end):
    """Wait for a byte without consuming it."""
    while True:
        try:
            return sock.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            if time.monotonic() > end:
                raise


def send_all(sock, data, end):
    view = memoryview(data)
    while view:
        try:
            view = view[sock.send(view):]
        except TimeoutError:
            if time.monotonic() > end:
                raise


class Exchange:
    """Transfers size bytes in both directions at once, then shuts down; see outcome(). It has
    stalled if no byte was sent or received for @limit seconds, or after ten times that time. On a
    busy machine bytes come slowly, but they come."""

    def __init__(self, sock, out_tag, in_tag, offset, size, limit, pace):
        self.sock, self.out_tag, self.in_tag = sock, out_tag, in_tag
        self.offset, self.size, self.pace = offset, size, pace
        self.limit, self.last = limit, time.monotonic()
        self.end = self.last + 10 * limit
        self.got = self.sent = 0
        self.eof = self.stalled = False
        self.error = self.wrong = None
        sock.settimeout(0.2)
        sender = threading.Thread(target=self.send)
        sender.start()
        self.receive()
        sender.join()

    def over(self):
        return self.error or time.monotonic() > min(self.last + self.limit, self.end)

    def send(self):
        try:
            while self.sent < self.size and not self.over():
                part = stream_bytes(self.out_tag, self.offset + self.sent,
                                    min(CHUNK, self.size - self.sent))
                try:
                    self.sent += self.sock.send(part)
                except TimeoutError:
                    continue
                self.last = time.monotonic()
                # Leave bytes for the injection: it may need a link, and an attach takes a moment.
                if self.pace and self.sent < self.size // 2:
                    time.sleep(self.pace)
            if self.sent == self.size:
                self.sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.error = self.error or error

    def receive(self):
        try:
            while not self.over():
                try:
                    data = self.sock.recv(65536)
                except TimeoutError:
                    continue
                if not data:
                    self.eof = True
                    return
                self.check(data)
                self.got += len(data)
                self.last = time.monotonic()
            self.stalled = not self.error
        except OSError as error:
            self.error = self.error or error

    def check(self, data):
        """Remember the first error, or the first one with foreign bytes, if there is one."""
        try:
            check_bytes(data, self.in_tag, self.offset + self.got)
        except Wrong as wrong:
            if wrong.foreign or not self.wrong:
                self.wrong = self.wrong if self.wrong and self.wrong.foreign else wrong

    def outcome(self):
        """One word. "short": early end of the stream; "bent": wrong bytes, but none foreign."""
        if self.wrong and self.wrong.foreign:
            return "foreign"
        if self.error:
            return "error"
        if self.stalled or self.sent < self.size:
            return "stall"
        if self.wrong:
            return "bent"
        return "whole" if self.got == self.size else "short"

    def __str__(self):
        return (f"{self.outcome()}: sent {self.sent}, got {self.got} of {self.size}"
                + (f", {self.error}" if self.error else "")
                + (f", {self.wrong}" if self.wrong else ""))


def warm_up_echo(sock, out_tag, in_tag, end):
    """Answer the rounds of warm_up(), up to the one that the other end marks as the last."""
    last = False
    while not last:
        data = recv_exactly(sock, ROUND, end)
        last = data[0] & 1
        send_all(sock, bytes([out_tag << 5]) * ROUND, end)


def warm_up(sock, out_tag, in_tag, ready, end):
    """Exchange rounds until both ends are on RDMA; ready() queries the other end."""
    last = False
    while not last:
        if time.monotonic() > end:
            raise TimeoutError("never on RDMA")
        last = on_rdma(sock) and ready()
        send_all(sock, bytes([out_tag << 5 | last]) + bytes([out_tag << 5]) * (ROUND - 1), end)
        data = recv_exactly(sock, ROUND, end)
        if foreign_bytes(data, in_tag):
            raise Wrong("foreign bytes in the warm-up", True)


# --- bystanders -----------------------------------------------------------

def echo_server(listener, out_tag):
    """Answer each round on each connection until it ends."""
    def serve(sock):
        offset = 0
        try:
            while True:
                recv_exactly(sock, ROUND, time.monotonic() + 3600)
                sock.sendall(stream_bytes(out_tag, offset, ROUND))
                offset += ROUND
        except (OSError, EOFError):
            sock.close()

    def accept():
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.settimeout(None)
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


class Bystander:
    """A connection that transfers data all the time, beside the victim connection."""

    def __init__(self, name, rdma, address, out_tag, in_tag, pause=0.02):
        self.name, self.rdma, self.address = name, rdma, address
        self.out_tag, self.in_tag, self.pause = out_tag, in_tag, pause
        self.wrong = None
        self.sock = None
        self.open()

    def open(self):
        self.rounds, self.error, self.stop = 0, None, False
        self.sock = new_socket(self.rdma)
        self.sock.settimeout(10)
        self.sock.connect(self.address)
        self.sock.settimeout(0.5)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        end = time.monotonic() + 3600
        try:
            while not self.stop:
                offset = self.rounds * ROUND
                send_all(self.sock, stream_bytes(self.out_tag, offset, ROUND), end)
                data = self.receive()
                if data is None:
                    return
                check_bytes(data, self.in_tag, offset)
                self.rounds += 1
                time.sleep(self.pause)
        except (OSError, EOFError, Wrong) as error:
            self.error = error
            if isinstance(error, Wrong) and error.foreign:
                self.wrong = error

    def receive(self):
        data = b""
        while len(data) < ROUND:
            try:
                part = self.sock.recv(ROUND - len(data))
            except TimeoutError:
                if self.stop:
                    return None
                continue
            if not part:
                raise EOFError("end of stream")
            data += part
        return data

    def check(self, seconds):
        """Wait for two more rounds. Returns None, or what is wrong."""
        goal, end = self.rounds + 2, time.monotonic() + seconds
        while self.rounds < goal and not self.error:
            if time.monotonic() > end:
                return f"bystander {self.name} stalls after {self.rounds} rounds"
            time.sleep(0.01)
        return f"bystander {self.name}: {self.error!r}" if self.error else None

    def on_rdma(self):
        try:
            return on_rdma(self.sock)
        except OSError:
            return False

    def close(self):
        self.stop = True
        self.thread.join(5)
        self.sock.close()

    def reopen(self):
        self.close()
        self.open()
