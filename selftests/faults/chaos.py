# SPDX-License-Identifier: GPL-2.0
"""Row X4: faults of many kinds at the same time, at both guests, chosen by the seed.

Two programs are never killed, and their streams are verified to the last byte. Meanwhile other
programs are killed and started again. Only connections of killed programs may be reset, and
after all faults are undone, bytes must be carried by RDMA again.
"""
import json
import os
import time

from hosts import SRC, RowFailed, wait
from rows import (GONE, LINK_ADD, LINK_DEL, NO_DROP, NO_NETEM, arrivals, set_to)
from stream import PORT, SLOW, Streams, error_names, over

SMCTL = SRC / "build/tools/smctl"
NETEM = "tc qdisc add dev eth0 root netem {} limit 100000"

# name: (resource, commands that inject the fault, commands that undo it, maximum of its random
# duration in seconds, which begin() multiplies by SLOW). In one guest, only one fault per resource
# is active at a time.
FAULTS = {
    "loss": ("queue", NETEM.format("loss 3%"), NO_NETEM, 4),
    "delay": ("queue", NETEM.format("delay 30ms 10ms"), NO_NETEM, 4),
    "reorder": ("queue", NETEM.format("delay 10ms reorder 25% 50%"), NO_NETEM, 4),
    "duplicate": ("queue", NETEM.format("duplicate 5%"), NO_NETEM, 4),
    "UDP 4791 blocked": ("filter", arrivals("udp dport 4791 drop"), NO_DROP, 8),
    "TCP blocked": ("filter", arrivals("meta l4proto tcp drop"), NO_DROP, 2),
    "device deleted": ("device", LINK_DEL, LINK_ADD, 3),
    "interface down": ("interface", "ip link set eth0 down",
                       "ip link set eth0 up; {address6}", 2),
    "no ring memory": ("mem_max", set_to("mem_max", 200), set_to("mem_max", 1000000), 5),
    "no upgrades": ("upgrade", set_to("upgrade", 0), set_to("upgrade", 1), 3),
}


class Faults:
    """The active faults, and how often each fault, action and kill has occurred."""

    def __init__(self, ctx):
        self.ctx = ctx
        self.active = {}        # (guest, resource) -> (name, undo, until)
        self.count = {}
        self.most = 0

    def record(self, name):
        self.count[name] = self.count.get(name, 0) + 1

    def begin(self, host, name):
        """Inject a fault for a random time, unless one with the same resource is active."""
        resource, fault, undo, longest = FAULTS[name]
        if (host.role, resource) in self.active:
            return
        self.ctx.do(host, fault)
        self.record(name)
        until = time.monotonic() + longest * self.ctx.rng.random() * SLOW
        self.active[host.role, resource] = (name, undo, until)
        self.most = max(self.most, len(self.active))

    def end(self, all_of_them=False):
        """Undo faults whose time is over, or all."""
        for key, (_, undo, until) in list(self.active.items()):
            if all_of_them or time.monotonic() > until:
                self.ctx.do(self.ctx.hosts[key[0]], undo)
                del self.active[key]

    def __str__(self):
        return ", ".join(f"{count} {name}" for name, count in sorted(self.count.items()))


def ids(ctx, host, what):
    """The ids in a dump of connections or links; none may occur twice."""
    found = [one["id"] for one in json.loads(ctx.do(host, f"{SMCTL} -j {what}"))]
    if len(found) != len(set(found)):
        raise RowFailed(f"smctl {what} at {host.role}: an id occurs twice")
    return found


def dump(ctx, host):
    """Dump connections and links, and check their ids."""
    ids(ctx, host, "conn")
    ids(ctx, host, "link")


def drain(ctx, host):
    """Drain all links."""
    for link in ids(ctx, host, "link"):
        ctx.do(host, f"{SMCTL} link drain {link} || :")     # the link may have ended meanwhile


def move(ctx, host):
    """Move up to three connections to TCP and back to RDMA."""
    for conn in ids(ctx, host, "conn")[:3]:
        for where in "tcp", "rdma":
            ctx.do(host, f"{SMCTL} conn move {conn} {where} || :")


def rmmod(ctx, host):
    """rmmod must be refused, since there are connections."""
    ctx.do(host, "! rmmod afrdma 2>/dev/null")


# Actions without a duration, which need no undo.
ACTS = {"dumps": dump, "links drained": drain, "connections moved": move, "rmmod refused": rmmod}


class Victims:
    """Streams between two programs. step() kills one of the two, and ended() checks the errors at
    the other."""

    def __init__(self, ctx, faults):
        self.ctx, self.faults, self.port = ctx, faults, PORT + 1
        self.streams, self.killed = None, None
        self.start()

    def start(self):
        self.port += 1
        # Another port each time: the former server may have been killed just now, and still listen.
        self.streams = Streams(self.ctx, port=self.port, conns=3, words=["--rate", 200])
        self.killed = None

    def step(self):
        """If neither program was killed yet, kill one. Otherwise start two new ones if ended()."""
        if self.killed is None:
            self.killed = self.ctx.rng.choice("ab")
            self.streams.of(self.killed).signal("SIGKILL")
            self.faults.record(f"killed at {self.killed}")
        elif self.ended():
            self.start()

    def ended(self):
        """Have the survivor's streams ended, or has none begun? If so, check their errors and kill
        the survivor."""
        other = self.streams.of("b" if self.killed == "a" else "a")
        if not over(other) and other.state["begun"]:
            return False
        if not error_names(other.state) <= GONE | {"ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"}:
            raise RowFailed(f"the peer of a killed program: {other.state}")
        other.signal("SIGKILL")
        return True


def by_rdma(ctx):
    """The counters rx_bytes_rdma of both guests."""
    return [int(ctx.do(host, f"{SMCTL} stats | awk '$1 == \"rx_bytes_rdma\" {{ print $2 }}'"))
            for host in ctx.hosts.values()]


def chaos(ctx, row):
    """Inject faults for CHAOS_SECONDS or row.cycles seconds; then the streams must recover."""
    seconds = int(os.environ.get("CHAOS_SECONDS") or row.cycles)
    ctx.streams = streams = Streams(ctx, conns=row.conns, words=["--rate", 500])
    wait("on RDMA before the faults", 40 * SLOW, streams.on_rdma)
    faults = Faults(ctx)
    victims = Victims(ctx, faults)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        host = ctx.hosts[ctx.rng.choice("ab")]
        name = ctx.rng.choice([*FAULTS, *ACTS, "kill"])
        if name in FAULTS:
            faults.begin(host, name)
        elif name in ACTS:
            ACTS[name](ctx, host)
            faults.record(name)
        else:
            victims.step()
        time.sleep(ctx.rng.random() * 0.5)
        faults.end()
        for load in streams.both:
            ctx.log(f"{load.host.role} {load.status()}")
            if load.state["open"] != row.conns:
                raise RowFailed(f"{faults}: connections ended, though no program of theirs was "
                                f"killed: {load.state}")
    faults.end(all_of_them=True)
    ctx.seen(note=f"{seconds} s: {faults}; up to {faults.most} at once")
    wait("streams continue", 60 * SLOW, streams.moving)
    wait("back on RDMA", 90 * SLOW, streams.on_rdma)
    before = by_rdma(ctx)
    wait("bytes arrive by RDMA again", 20 * SLOW,
         lambda: all(now > then + (1 << 16) for now, then in zip(by_rdma(ctx), before)))
    streams.end()
    missing = [name for name in [*FAULTS, *ACTS] if name not in faults.count]
    if faults.most < 3 or missing and seconds >= row.cycles:
        raise RowFailed(f"too little was injected: at most {faults.most} at once, never {missing}")
