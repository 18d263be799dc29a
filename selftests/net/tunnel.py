#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""For tunnel.sh: a tunnel between two hosts, and a connection that is routed into it.

    tunnel.py carry HOST         create the device tun0, and carry its packets to HOST over UDP;
                                 HOST is a numeric address
    tunnel.py serve HOST PORT    death.py serve, for clients that use the IP version of HOST
    tunnel.py talk HOST PORT IN OUT
                                 exchange messages; create the file IN when the connection is on
                                 RDMA; when IN.done exists, the route leads into the tunnel, so
                                 the connection must leave RDMA within LEAVES seconds; then create
                                 the file OUT, and wait until the connection is on RDMA again

With IPv6, rxe sends the packets of a link into the tunnel as well, although the link is bound to
another device, and these packets are lost. So after the creation of IN, no messages are exchanged
until the connection has begun to leave its link, and LEAVES limits only the time until then. Once
the link is lost, the connection continues on TCP.
"""
import errno
import fcntl
import pathlib
import select
import socket
import struct
import sys
import time

from death import info, on_rdma, rdma_socket, serve
from pace import ping

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
UDP_PORT = 7790
LEAVES = 2.0            # seconds; the module checks routes twice a second
TUNNEL = 49             # AFR_REASON_TUNNEL


def family_of(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def carry(host):
    with open("/dev/net/tun", "r+b", buffering=0) as tun, \
            socket.socket(family_of(host), socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN | IFF_NO_PI))
        sock.bind(("", UDP_PORT))
        print("carries", flush=True)
        while True:
            for ready in select.select([tun, sock], [], [])[0]:
                try:
                    if ready is tun:
                        sock.sendto(tun.read(65535), (host, UDP_PORT))
                    else:
                        tun.write(sock.recv(65535))
                except OSError as err:  # EIO: tun0 is down, so the packet is lost
                    if err.errno not in (errno.EIO, errno.ECONNREFUSED):
                        raise


def talk_until(conn, seconds, wanted, what):
    """Ping-pong until @wanted() is true, and ten times more; returns the seconds that it took."""
    begin = time.monotonic()
    number = 0
    while not wanted():
        if time.monotonic() - begin > seconds:
            sys.exit(f"not {what} within {seconds} s: {info(conn)}")
        ping(conn, number)
        number += 1
    for number in range(10):
        ping(conn, number)
    return time.monotonic() - begin


def wait_until(seconds, wanted, conn):
    """Wait without sending anything; returns the seconds that it took."""
    begin = time.monotonic()
    while not wanted():
        if time.monotonic() - begin > seconds:
            sys.exit(f"not within {seconds} s: {info(conn)}")
        time.sleep(0.01)
    return time.monotonic() - begin


def off_rdma(conn):
    now = info(conn)
    return not now["tx_path"] and not now["rx_path"]


def talk(host, port, inside, outside):
    conn = rdma_socket(family_of(host))
    conn.connect((host, int(port)))
    talk_until(conn, 20, lambda: on_rdma(conn), "on RDMA")
    pathlib.Path(inside).touch()
    in_tunnel = pathlib.Path(inside + ".done").exists
    if family_of(host) == socket.AF_INET6:
        wait_until(20, in_tunnel, conn)
        took = wait_until(LEAVES, lambda: not info(conn)["link"], conn)
        talk_until(conn, 20, lambda: off_rdma(conn), "on TCP")
    else:
        talk_until(conn, 20, in_tunnel, "in the tunnel")
        took = talk_until(conn, LEAVES, lambda: off_rdma(conn), "on TCP")
        if info(conn)["reason"] != TUNNEL:
            sys.exit(f"on TCP for another reason: {info(conn)}")
    by_rdma = info(conn)["tx_rdma"]
    end = time.monotonic() + 2
    talk_until(conn, 4, lambda: time.monotonic() > end, "through the tunnel")
    if info(conn)["tx_rdma"] != by_rdma:
        sys.exit("bytes were carried by RDMA, outside the tunnel")
    pathlib.Path(outside).touch()
    back = talk_until(conn, 40, lambda: on_rdma(conn), "on RDMA again")
    print(f"on TCP {took:.2f} s after the route came, on RDMA {back:.2f} s after it was deleted")


if __name__ == "__main__":
    calls = {"carry": carry, "talk": talk,
             "serve": lambda host, port: serve(int(port), family_of(host))}
    calls[sys.argv[1]](*sys.argv[2:])
