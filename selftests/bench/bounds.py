# SPDX-License-Identifier: GPL-2.0
"""Bounds of the results: ratios and differences of medians of one run, and counted costs."""
from dataclasses import dataclass

BULK = "stream one 1 65536"
TRIP, TRIP_4K, TRIP_P99 = "rtt alone 1 median", "rtt alone 4096 median", "rtt alone 1 p99"
SMALL, CONNECT, GET = "stream one 1 64", "connect 1 rate", "redis GET 1 1 16"
R, S, T, V = "rdma", "smc", "tcp", "verbs"
PER_MIB = (1 << 20) / 65536         # messages of 64 KiB
PER_QUARTER = PER_MIB / 4           # messages of 64 KiB in a quarter of a ring of 1 MiB


@dataclass
class Bound:
    """The bound of a figure of AF_RDMA, of its ratio to another figure, or of the difference of the
    two figures."""
    text: str
    figure: str
    other: tuple
    relation: str
    limit: float
    difference: bool = False
    scale: float = 1
    guard: float = None     # the bound of --quick, if it differs

    def value(self, median):
        """The value, or None if this run has not measured it."""
        value = median(self.figure, R)
        other = median(*self.other) if self.other else 1
        if value is None or other is None or not (other or self.difference):
            return None
        return value - other if self.difference else value * self.scale / other

    def met(self, value, limit=None):
        limit = self.limit if limit is None else limit
        return value is not None and (value >= limit if self.relation == ">=" else value <= limit)


# A message may cost one write. A measurement begins with a request, which is one more write: hence
# 1.01, or 1.02 where 64 messages are counted. Some counts depend on timing: when a ring is almost
# full, a write carries only a part of a message; and a reader may report its cursor more often.
# --quick has wider bounds (guard) for these counts.
BOUNDS = [
    Bound("1 bulk, to verbs", BULK, (BULK, V), ">=", 0.95),
    Bound("1 bulk, to SMC-R", BULK, (BULK, S), ">=", 1.3),
    Bound("1 bulk of 16 connections, to 1", "stream one 16 65536", (BULK, R), ">=", 0.95),
    Bound("2 round trip of 1 B, to verbs", TRIP, (TRIP, V), "<=", 1.15),
    Bound("2 round trip of 4 KiB, to verbs", TRIP_4K, (TRIP_4K, V), "<=", 1.15),
    Bound("2 round trip of 1 B, to SMC-R", TRIP, (TRIP, S), "<=", 0.75),
    Bound("2 round trip of 4 KiB, to SMC-R", TRIP_4K, (TRIP_4K, S), "<=", 0.75),
    Bound("2 p99 of 1 B beside a stream, to alone", "rtt beside 1 p99", (TRIP_P99, R), "<=", 3),
    Bound("3 stream of 64 B, to SMC-R", SMALL, (SMALL, S), ">=", 1.5),
    Bound("3 stream of 64 B, to TCP", SMALL, (SMALL, T), ">=", 2.5),
    Bound("4 connect + 1 B + close, to TCP", CONNECT, (CONNECT, T), ">=", 0.9),
    Bound("4 connect + 1 B + close, to SMC-R", CONNECT, (CONNECT, S), ">=", 8),
    Bound("5 writes for 64 B, stream", "counts stream writes 64", None, "<=", 1.01),
    Bound("5 writes for 1 KiB, round trip", "counts rtt writes 1024", None, "<=", 1.01),
    Bound("5 writes for 16 KiB, stream", "counts stream writes 16384", None, "<=", 1.01,
          guard=1.1),
    Bound("5 writes for 64 KiB, stream", "counts stream writes 65536", None, "<=", 1.01,
          guard=1.1),
    Bound("5 writes for 64 KiB, round trip", "counts rtt writes 65536", None, "<=", 1.01),
    Bound("5 writes for 256 KiB, stream", "counts stream writes 262144", None, "<=", 1.02,
          guard=1.1),
    Bound("5 writes for 256 KiB, round trip", "counts rtt writes 262144", None, "<=", 1.02),
    Bound("5 credit-only writes for a MiB of bulk", "counts stream credits 65536", None, "<=", 8,
          scale=PER_MIB, guard=12),
    Bound("5 signals for a quarter ring of bulk", "counts stream signals 65536", None, "<=", 1,
          scale=PER_QUARTER),
    Bound("6 memory of an idle connection, less TCP's", "memory idle", ("memory idle", T), "<=",
          8192, difference=True),
    Bound("6 queue pairs of 1,000 connections, less 10", "growth 1000 queue pairs",
          ("growth 10 queue pairs", R), "<=", 0, difference=True),
    Bound("7 redis GET of 16 clients, to SMC-R", GET, (GET, S), ">=", 1.5),
]

# Further bounds of --quick on counted costs. They are not targets of the benchmark.
GUARDS = [
    Bound("posts for 64 KiB, stream", "counts stream posts 65536", None, "<=", 2),
    Bound("completions for 64 KiB, stream", "counts stream completions 65536", None, "<=", 2),
    Bound("callbacks for 64 KiB, stream", "counts stream callbacks 65536", None, "<=", 2),
    Bound("frames for 64 KiB, stream", "counts stream frames 65536", None, "<=", 0.5),
    Bound("wakes for 64 KiB, stream", "counts stream wakes 65536", None, "<=", 1.5),
    Bound("copied for a byte, stream", "counts stream copied 65536", None, "<=", 2.001,
          scale=1 / 65536),
    Bound("writes for 64 B that wait for each other", "counts stream writes 64", None, "<=", 0.25),
    Bound("posts for 1 KiB, round trip", "counts rtt posts 1024", None, "<=", 2.1),
    Bound("completions for 1 KiB, round trip", "counts rtt completions 1024", None, "<=", 2.2),
    Bound("frames for 1 KiB, round trip", "counts rtt frames 1024", None, "<=", 0.01),
    Bound("wakes for 1 KiB, round trip", "counts rtt wakes 1024", None, "<=", 2.1),
]
