#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A TCP program for guest.sh and run.sh: exchanges bytes, then waits until its input ends.

    program.py listen ADDRESS PORT FILE     creates FILE once it listens
    program.py connect ADDRESS PORT
    program.py idle ADDRESS PORT NUMBER     opens NUMBER connections to itself
    program.py echo ADDRESS PORT PORT...    echoes what comes to any of the ports

It prints "ready" when all bytes have arrived ("idle": when all connections are open, "echo": when
it listens), and ends when its input does.
"""

import socket
import sys
import threading

BLOCK = 65536
BLOCKS = 128


def receive(sock, want):
    while want:
        got = len(sock.recv(want))
        assert got, "end of stream"
        want -= got


def check_answers(sock, family):
    """Check that getsockopt() describes a TCP socket, as it must with and without "smctl run"."""
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == family
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP


def listen(address, port):
    family = socket.getaddrinfo(address, port)[0][0]
    return socket.create_server((address, port), family=family, backlog=1024)


def exchange(sock):
    check_answers(sock, sock.family)
    for _ in range(BLOCKS):
        sock.sendall(b"x" * BLOCK)
        receive(sock, BLOCK)


def echo(sock):
    with sock:
        while data := sock.recv(BLOCK):
            sock.sendall(data)


def serve(server):
    while True:
        threading.Thread(target=echo, args=[server.accept()[0]], daemon=True).start()


def main():
    what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    keep = []
    if what == "listen":
        server = listen(address, port)
        with open(sys.argv[4], "w", encoding="ascii"):
            pass
        keep = [server, server.accept()[0]]
        exchange(keep[1])
    elif what == "connect":
        keep = [socket.create_connection((address, port))]
        exchange(keep[0])
    elif what == "echo":
        for each in sys.argv[3:]:
            threading.Thread(target=serve, args=[listen(address, int(each))], daemon=True).start()
    else:
        server = listen(address, port)
        for _ in range(int(sys.argv[4])):
            keep.append(socket.create_connection((address, port)))
            keep.append(server.accept()[0])
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
