#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""For numa.sh: from which NUMA node does the memory of a program's connections come?

    numa.py ADDRESS CPU     on CPU, open connections from ADDRESS to itself and move them to RDMA;
                            most of the memory that this takes must be of the node of CPU
"""
import os
import pathlib
import re
import socket
import sys
import time

from death import info, on_rdma, rdma_socket

NODES = pathlib.Path("/sys/devices/system/node")
PORT = 7520
CONNS = 24
SECONDS = 60
# At least this share of the pages taken must be of the node of CPU. The others may be of any node:
# the kernel takes them for sockets, page tables and caches.
LEAST = 0.9
WORD = bytes(4096)


def node_of(cpu):
    for node in NODES.glob("node[0-9]*"):
        if (node / f"cpu{cpu}").exists():
            return node.name
    return sys.exit(f"no node has CPU {cpu}")


def free_pages():
    """The number of free pages of each node."""
    return {node.name: int(re.search(r"nr_free_pages (\d+)", (node / "vmstat").read_text())[1])
            for node in NODES.glob("node[0-9]*")}


def connect(listener, address):
    """Open a connection and move it to RDMA; return both ends."""
    here = rdma_socket()
    here.connect((address, PORT))
    there = listener.accept()[0]
    end = time.monotonic() + SECONDS
    while not (on_rdma(here) and on_rdma(there)):
        if time.monotonic() > end:
            sys.exit(f"not on RDMA: {info(here)}")
        for one, other in ((here, there), (there, here)):
            one.sendall(WORD)
            other.recv(len(WORD))
        time.sleep(0.01)
    return here, there


def main():
    address, cpu = sys.argv[1], int(sys.argv[2])
    os.sched_setaffinity(0, {cpu})
    listener = rdma_socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, PORT))
    listener.listen(CONNS)
    conns = [connect(listener, address)]        # sets up the link
    before = free_pages()
    while len(conns) <= CONNS:
        conns.append(connect(listener, address))
    after = free_pages()
    taken = {node: before[node] - after[node] for node in before}
    print(f"CPU {cpu} is of {node_of(cpu)}; pages taken: {taken}; "
          f"rings: {info(conns[-1][0])['tx_ring']}, {info(conns[-1][0])['rx_ring']} bytes")
    rings = sum(info(sock)[key] for pair in conns[1:] for sock in pair
                for key in ("tx_ring", "rx_ring")) // os.sysconf("SC_PAGE_SIZE")
    if sum(taken.values()) < rings / 2:
        sys.exit(f"{taken}: less than half of the {rings} pages of the rings")
    if taken[node_of(cpu)] < LEAST * sum(taken.values()):
        sys.exit(f"{taken}: less than {LEAST:.0%} of the pages are of {node_of(cpu)}")


main()
