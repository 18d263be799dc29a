# SPDX-License-Identifier: GPL-2.0
"""The groups of measurements: points, columns and function of each.

A measurement returns figures (name, value, unit) and a note about what is wrong with them, or "".
"""
from dataclasses import dataclass
from itertools import product
from typing import Callable

import costs
import programs
import verbs
from lab import PACKET, way

KIB, MIB = 1 << 10, 1 << 20
STREAM_SIZES = [64, KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB]
TRIP_SIZES = [1, 64, KIB, 4 * KIB, 16 * KIB, 64 * KIB, MIB]
SOCKETS = ["rdma", "smc", "tcp", "tcp-off"]


@dataclass
class Group:
    columns: list
    measure: Callable
    points: list


def stream(lab, column, both, conns, size):
    name = f"stream {'both' if both else 'one'} {conns} {size}"
    if column == "verbs" and conns > 1:
        return [], ""
    if column == "verbs":
        return [(name, verbs.bandwidth(lab, size, both), "MB/s")], ""
    answer = lab.bench("stream", column, f"--size={size}", f"--conns={conns}",
                       f"--seconds={lab.seconds}", *(["--both"] if both else []))
    rate = answer["bytes"] / answer["seconds"] / 1e6
    return [(name, rate, "MB/s")], way(column, answer, answer["bytes"])


def rtt(lab, column, size, beside):
    name = f"rtt {'beside' if beside else 'alone'} {size}"
    if column == "verbs" and beside:
        return [], ""
    if column == "verbs":
        median, p99 = verbs.round_trip(lab, size)
        return [(f"{name} median", median, "us"), (f"{name} p99", p99, "us")], ""
    answer = lab.bench("rtt", column, f"--size={size}", f"--seconds={lab.seconds}",
                       *(["--beside"] if beside else []))
    return ([(f"{name} median", answer["median"], "us"), (f"{name} p99", answer["p99"], "us")],
            way(column, answer, 2 * max(size, PACKET) * answer["trips"]))


def connect(lab, column, conns):
    seconds = 2 * lab.seconds
    answer = lab.bench("connect", column, f"--conns={conns}", f"--seconds={seconds}")
    # AF_RDMA is not checked: these short connections stay on TCP, as intended
    sent = 2 * PACKET * answer["per_second"] * seconds
    note = way(column, answer, sent) if column == "smc" else ""
    return [(f"connect {conns} rate", answer["per_second"], "/s"),
            (f"connect {conns} first byte", answer["median"], "us")], note


def points(**ranges):
    """All combinations of the values: a dict of arguments for each."""
    return [dict(zip(ranges, values)) for values in product(*ranges.values())]


# Memory comes first, since SMC keeps buffers of closed connections for later ones.
GROUPS = {
    "memory": Group(["rdma", "smc", "tcp"], costs.memory, points(state=list(costs.STATES))),
    "stream": Group([*SOCKETS, "verbs"], stream,
                    points(both=[False, True], conns=[1, 4, 16, 64], size=STREAM_SIZES)),
    "rtt": Group([*SOCKETS, "verbs"], rtt, points(beside=[False, True], size=TRIP_SIZES)),
    "connect": Group(SOCKETS, connect, points(conns=[1, 16])),
    "counts": Group(["rdma"], costs.counts,
                    points(kind=["stream", "rtt"], size=STREAM_SIZES)),
    "redis": Group(SOCKETS, programs.redis,
                   points(pipeline=[1, 16], threads=[1, 4], clients=[1, 4, 8, 16, 32])),
    "iperf3": Group(SOCKETS, programs.iperf3, points(conns=[1, 4])),
    "sockperf": Group(SOCKETS, programs.sockperf, points(size=[14, KIB])),
    "growth": Group(SOCKETS, costs.growth, points(conns=[1, 10, 100, 1000])),
}
