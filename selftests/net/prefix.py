#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
For limits.sh: groups_max and a host that uses several addresses of one /64.

    prefix.py serve PORT        echo, over IPv6 and IPv4
    prefix.py ask HOST6 HOST4 PORT REASON ADDRESS...
                                connect to HOST6 from each ADDRESS: the connection from the last
                                ADDRESS must stay on TCP for REASON, and all others must move to
                                RDMA; a connection to HOST4 must move to RDMA, too
"""
import ctypes
import os
import socket
import sys
import threading
import time

from death import AF_RDMA, SOL_AFRDMA, info, libc, on_rdma

AFRDMA_RDMA, ALWAYS = 2, 2
SECONDS = 20


def new_socket(inet6):
    fd = libc.socket(AF_RDMA, socket.SOCK_STREAM, int(inet6))
    if fd < 0:
        sys.exit("socket(AF_RDMA): " + os.strerror(ctypes.get_errno()))
    return socket.socket(socket.AF_INET6 if inet6 else socket.AF_INET, socket.SOCK_STREAM, 0,
                         fileno=fd)


def echo(conn):
    with conn:
        while data := conn.recv(1 << 16):
            conn.sendall(data)


def serve(port):
    listener = new_socket(True)
    listener.bind(("::", port))
    listener.listen(8)
    print("listening", flush=True)
    threads = []
    while True:
        conn = listener.accept()[0]
        if conn.recv(1) == b"q":
            break
        threads.append(threading.Thread(target=echo, args=(conn,)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def connected(inet6, host, port, source=None, part=b"e"):
    conn = new_socket(inet6)
    if source:
        conn.bind((source, 0))
    conn.setsockopt(SOL_AFRDMA, AFRDMA_RDMA, ALWAYS)
    conn.connect((host, port))
    conn.sendall(part)
    return conn


def until(conn, wanted, name):
    end = time.monotonic() + SECONDS
    while not wanted():
        if time.monotonic() > end:
            sys.exit(f"{name}: {info(conn)}")
        conn.sendall(b"x")
        conn.recv(1)
        time.sleep(0.02)


def ask(host6, host4, port, reason, *addresses):
    conns = []
    for address in addresses[:-1]:
        conns.append(connected(True, host6, port, address))
        until(conns[-1], lambda: on_rdma(conns[-1]), f"{address} is not on RDMA")
    conns.append(connected(True, host6, port, addresses[-1]))
    until(conns[-1], lambda: info(conns[-1])["reason"] == reason,
          f"{addresses[-1]} is not refused")
    conns.append(connected(False, host4, port))
    until(conns[-1], lambda: on_rdma(conns[-1]), "IPv4 is not on RDMA")
    for conn in conns:
        conn.close()
    connected(True, host6, port, part=b"q").close()


if __name__ == "__main__":
    what, *args = sys.argv[1:] or ["help"]
    if what == "serve" and len(args) == 1:
        serve(int(args[0]))
    elif what == "ask" and len(args) > 5:
        ask(args[0], args[1], int(args[2]), int(args[3]), *args[4:])
    else:
        sys.exit(__doc__)
