# SPDX-License-Identifier: GPL-2.0
"""Rows in which a fault is injected and removed under two-way streams.

The streams must either continue, or end with one of the errors of the row within the
time that the row sets. Every byte is checked in either case. All connections must be on RDMA when
the fault is injected.
"""
import os
import time

from hosts import Load, RowFailed, wait

SLOW = 3 if "debug" in os.environ["AFR_KERNEL"] or os.environ["AFR_ACCEL"] == "tcg" else 1
PORT = 7300


class Streams:
    """The load of a row: a client program in guest a, a server program in guest b."""

    def __init__(self, ctx, *, conns=4, port=PORT, blocking=None, words=(), client=(), server=(),
                 prefix=None):
        self.conns = conns
        prefix = prefix or {}
        common = ["--port", port, "--seed", ctx.rng.getrandbits(40), *words]
        if ctx.rng.random() < 0.4 if blocking is None else blocking:
            common.append("--blocking")
        self.server = Load(ctx.hosts["b"], prefix.get("b", ()), "--listen", ctx.address["b"],
                           *common, *server)
        wait("server listens", 20 * SLOW, lambda: self.server.look().listening)
        self.client = Load(ctx.hosts["a"], prefix.get("a", ()), "--connect", ctx.address["b"],
                           "--conns", conns, *common, *client)
        self.both = (self.client, self.server)
        ctx.loads += self.both

    def of(self, role):
        return self.client if role == "a" else self.server

    def on_rdma(self):
        return all(load.status().get("rdma") == self.conns for load in self.both)

    def moving(self):
        """Are all connections open, and have bytes come within the last second on each?"""
        return all(load.status().get("gap_ms", 0) < 1000 * SLOW and load.state["open"] == self.conns
                   for load in self.both)

    def mark(self):
        """Forget all pauses until now: see stall()."""
        for load in self.both:
            load.tell("mark")

    def end(self):
        """End all streams cleanly; as many bytes must have been read as were sent."""
        self.client.tell("end")
        wait("streams end at the client", 60 * SLOW, self.client.gone)
        self.server.tell("end")
        wait("streams end at the server", 60 * SLOW, self.server.gone)
        for load in self.both:
            if load.state["failed"] or load.state["clean"] != self.conns:
                raise RowFailed(f"at {load.host.role}: {load.state}")
        mine, theirs = self.client.state, self.server.state
        if (mine["tx"], mine["rx"]) != (theirs["rx"], theirs["tx"]):
            raise RowFailed(f"bytes lost or repeated: a {mine} b {theirs}")

    def stall(self):
        """The longest pause since mark(), in milliseconds, as last reported."""
        return max(load.state.get("stall_ms", 0) for load in self.both)

    def verified(self):
        return sum(load.state.get("rx", 0) for load in self.both)


def error_names(state):
    return {pair.split(":")[0] for pair in str(state.get("errors", "")).split(",") if pair}


def over(load):
    """Have all connections of @load ended, whether cleanly or by an error?"""
    return load.result is not None or (load.status()["alive"] == 0 and load.state["begun"])


def expect_error(load, row, took=0):
    """Wait until all connections of @load have ended. At least one must have ended with an error.
    All errors must be among those of the row, and come within its time limit, which counts from the
    fault; the fault was injected at most @took ms after mark()."""
    bound = row.within * SLOW + took
    wait(f"an error at {load.host.role}", row.within / 1000 * SLOW + 5, lambda: over(load))
    state = load.state
    if not state["failed"] or not error_names(state) <= row.errors:
        raise RowFailed(f"at {load.host.role}: {state}, expected {sorted(row.errors)}")
    if state["error_ms"] > bound:
        raise RowFailed(f"at {load.host.role}: error after {state['error_ms']} ms, bound {bound}")


def run(ctx, row):
    """Run one row with its fault at one role; the results are stored in ctx."""
    here, there = ctx.at_fault, ctx.not_at_fault
    # RDMA at full rate (0) on a device that drops packets starves TCP for seconds, which a user
    # timeout cannot tell from a peer that does not answer.
    rates = (500, 2000) if "--user-timeout" in row.load else (0, 500, 2000)
    words = ["--rate", ctx.rng.choice(rates), *row.load]
    if row.net:
        ctx.address = {"a": f"{row.net}.1", "b": f"{row.net}.2"}
    for host in ctx.hosts.values():
        ctx.do(host, row.before)
    streams = Streams(ctx, words=words)
    ctx.streams = streams
    wait("on RDMA before the fault", 40 * SLOW, streams.on_rdma)
    moves = [load.state["moves"] for load in streams.both]
    time.sleep(ctx.rng.random())
    begun = time.monotonic()
    streams.mark()
    ctx.do(there, row.other)
    ctx.do(here, row.fault)
    if row.errors:
        took = round((time.monotonic() - begun) * 1000)
        for load in streams.both:
            expect_error(load, row, took)
        ctx.seen(stall=max(load.state["error_ms"] for load in streams.both))
        mine, theirs = streams.client.state, streams.server.state
        if mine["rx"] > theirs["tx"] or theirs["rx"] > mine["tx"]:
            raise RowFailed(f"more was read than sent: a {mine} b {theirs}")
        return
    ctx.watch(row.hold)
    ctx.do(here, row.undo)
    ctx.do(there, row.other_undo)
    wait("streams continue", row.stall * SLOW / 1000 + 2, streams.moving)
    if row.back:
        wait("back on RDMA", row.back * SLOW, streams.on_rdma)
    if row.moves and moves == [load.status()["moves"] for load in streams.both]:
        raise RowFailed("the streams did not leave their link")
    streams.end()
    ctx.seen(stall=streams.stall())
    if streams.stall() > row.stall * SLOW:
        raise RowFailed(f"stalled for {streams.stall()} ms, bound {row.stall * SLOW}")
