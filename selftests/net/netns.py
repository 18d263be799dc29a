#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""For netns.sh: pairs of network namespaces of one kernel, with connections on RDMA between them.

    netns.py storm PAIRS    create PAIRS pairs of namespaces; delete the namespaces of each pair and
                            close its connections, which are on RDMA, in random order
    netns.py kind KIND      move bytes by RDMA between namespaces with interfaces of this kind
    netns.py leave          move the interface of a namespace away and back under a stream on RDMA

The kernel must be 7.2 or newer, whose rxe can be used in every namespace.
"""
import contextlib
import ctypes
import os
import random
import socket
import subprocess
import sys
import threading
import time

from death import info, on_rdma, rdma_socket

PORT = 7500
SECONDS = 30
CONNS = 3           # per pair
AT_ONCE = 5         # pairs that exist at the same time
WORD = bytes(range(256)) * 16
CLONE_NEWNET = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


longest = 0         # the longest time that add_namespace() has taken, in seconds


def run(*lines):
    for line in lines:
        subprocess.run(line.split(), check=True)


def add_namespace(name):
    """Create namespace @name; retry while that fails. In shared mode, ib_core adds each RDMA device
    to each new namespace. This fails (ENODEV) while an rxe device has lost its interface and is
    not yet unregistered, since such a device cannot be queried."""
    global longest      # pylint: disable=global-statement
    begin = time.monotonic()
    while (done := subprocess.run(["ip", "netns", "add", name], check=False, text=True,
                                  stderr=subprocess.PIPE)).returncode:
        if time.monotonic() > begin + SECONDS:
            sys.exit(f"cannot create namespace {name}: {done.stderr.strip()}")
        time.sleep(0.01)
    longest = max(longest, time.monotonic() - begin)


@contextlib.contextmanager
def inside(name):
    """In this context, the thread is in namespace @name."""
    old = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    new = os.open(f"/run/netns/{name}", os.O_RDONLY)
    enter(new)
    os.close(new)
    try:
        yield
    finally:
        enter(old)
        os.close(old)


def enter(fd):
    if libc.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Pair:
    """Two namespaces, each with an rxe device on its interface: an end of a veth pair, or a macvlan
    or ipvlan interface whose parent is such an end. A parent has no rxe device: that device would
    also have the GIDs of the macvlan or ipvlan interface, and rdma_cm might choose it. Each of the
    two interfaces has its own parent, as on two hosts: ipvlan interfaces of one parent have the
    same MAC address, so rxe takes packets between them for loopback."""

    def __init__(self, number, kind="veth"):
        self.number = number
        self.names = [f"s{number}", f"c{number}"]
        self.address = "10.5.0.1"
        if kind == "veth":
            run(f"ip link add vs{number} type veth peer name vc{number}")
        else:
            mode = {"macvlan": "bridge", "ipvlan": "l2"}[kind]
            run("ip link add parent_s type veth peer name parent_c",
                *(line for end in "sc" for line in (
                    f"ip link set parent_{end} up",
                    f"ip link add v{end}{number} link parent_{end} type {kind} mode {mode}")))
        for end, name in zip("sc", self.names):
            add_namespace(name)
            run(f"ip link set v{end}{number} netns {name} name eth0",
                f"ip -n {name} addr add 10.5.0.{1 + (end == 'c')}/24 dev eth0",
                f"ip -n {name} link set lo up",
                f"ip -n {name} link set eth0 up",
                f"ip netns exec {name} rdma link add rx{end}{number} type rxe netdev eth0",
                f"ip netns exec {name} sysctl -qw net.afrdma.upgrade_msgs=1")
        with inside(self.names[0]):
            self.listener = rdma_socket()
            self.listener.bind(("", PORT))
            self.listener.listen(64)
        self.conns = []
        self.accepted = []

    def connect(self):
        with inside(self.names[1]):
            conn = rdma_socket()
            conn.connect((self.address, PORT))
        self.conns.append(conn)
        self.accepted.append(self.listener.accept()[0])

    def exchange(self):
        for here, there in zip(self.conns, self.accepted):
            for one, other in ((here, there), (there, here)):
                one.sendall(WORD)
                if other.recv(len(WORD), socket.MSG_WAITALL) != WORD:
                    sys.exit(f"pair {self.number}: wrong bytes")

    def all_on_rdma(self):
        return all(map(on_rdma, self.conns + self.accepted))

    def move_to_rdma(self):
        end = time.monotonic() + SECONDS
        while not self.all_on_rdma():
            if time.monotonic() > end:
                sys.exit(f"pair {self.number} is not on RDMA: "
                         f"{[info(conn) for conn in self.conns]}")
            self.exchange()

    def delete(self, rng):
        """Delete the namespaces, with their devices, and close the sockets, in random order."""
        steps = [lambda name=name: run(f"ip netns del {name}") for name in self.names]
        steps += [conn.close for conn in [self.listener, *self.conns, *self.accepted]]
        if rng.random() < 0.3:      # under traffic that nobody reads
            for conn in self.conns:
                conn.setblocking(False)
                try:
                    conn.send(WORD * 64)
                except BlockingIOError:
                    pass
        rng.shuffle(steps)
        for step in steps:
            step()


def storm(pairs):
    rng = random.Random(pairs)
    alive = []
    for number in range(pairs):
        pair = Pair(number)
        for _ in range(CONNS):
            pair.connect()
        pair.move_to_rdma()
        alive.append(pair)
        if len(alive) >= AT_ONCE:
            alive.pop(rng.randrange(len(alive))).delete(rng)
        if number % 50 == 49:
            print(f"{number + 1} pairs", flush=True)
    for pair in alive:
        pair.delete(rng)
    print(f"{pairs} pairs of namespaces, {pairs * CONNS} connections on RDMA; a namespace could "
          f"not be created for up to {longest:.1f} s")


def of_kind(kind):
    pair = Pair(0, kind)
    pair.connect()
    pair.move_to_rdma()
    before = info(pair.conns[0])["tx_rdma"]
    for _ in range(100):
        pair.exchange()
    sent = info(pair.conns[0])["tx_rdma"] - before
    # Close the connections first: once "ip link del" has cut their network, they could stay until a
    # timeout.
    for sock in [*pair.conns, *pair.accepted]:
        sock.close()
    time.sleep(1)
    pair.delete(random.Random(0))
    if kind != "veth":
        run("ip link del parent_s")
    if sent != 100 * len(WORD):
        sys.exit(f"{sent} of {100 * len(WORD)} bytes by RDMA")


def leave():
    """Move the client's interface to another namespace and back, which removes its rxe device, and
    add a new rxe device. The connection must return to TCP, then to RDMA, and lose no byte."""
    pair = Pair(0)
    pair.connect()
    pair.move_to_rdma()
    got = bytearray()

    def read():
        while data := pair.accepted[0].recv(1 << 16):
            got.extend(data)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    sent = 0
    moved = done = False
    begin = time.monotonic()
    while not done:
        pair.conns[0].sendall(WORD)
        sent += 1
        if not moved and time.monotonic() > begin + 1:
            run("ip netns add other",
                "ip -n c0 link set eth0 netns other",
                "ip -n other link set eth0 netns c0",
                "ip -n c0 addr add 10.5.0.2/24 dev eth0",
                "ip -n c0 link set eth0 up",
                "ip netns exec c0 rdma link add rxc0b type rxe netdev eth0")
            moved = True
        now = info(pair.conns[0])
        done = moved and on_rdma(pair.conns[0]) and now["moves"] >= 3
        if time.monotonic() > begin + SECONDS:
            sys.exit(f"not on RDMA again: {now}")
        time.sleep(0.001)
    pair.conns[0].shutdown(socket.SHUT_WR)
    reader.join(SECONDS)
    if got != WORD * sent:
        sys.exit(f"received {len(got)} of {len(WORD) * sent} bytes, or others")
    print(f"{len(WORD) * sent} bytes, {info(pair.conns[0])}")
    pair.delete(random.Random(0))
    run("ip netns del other")


if __name__ == "__main__":
    if sys.argv[1] == "storm":
        storm(int(sys.argv[2]))
    elif sys.argv[1] == "kind":
        of_kind(sys.argv[2])
    else:
        leave()
