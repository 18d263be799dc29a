# SPDX-License-Identifier: GPL-2.0
"""What the figures are to reach: ratios of medians of one run, and counted costs."""

BULK = "stream one 1 65536"
R, S, T, V = "rdma", "smc", "tcp", "verbs"

# what it is: a figure of a column, over another one (or none), compared with a bound
BOUNDS = [
    ("1 bulk, to verbs", (BULK, R), (BULK, V), ">=", 0.95),
    ("1 bulk, to SMC-R", (BULK, R), (BULK, S), ">=", 1.3),
    ("1 bulk of 16 connections, to 1", ("stream one 16 65536", R), (BULK, R), ">=", 0.95),
    ("2 round trip of 1 B, to verbs", ("rtt alone 1 median", R), ("rtt alone 1 median", V),
     "<=", 1.15),
    ("2 round trip of 4 KiB, to verbs", ("rtt alone 4096 median", R),
     ("rtt alone 4096 median", V), "<=", 1.15),
    ("2 round trip of 1 B, to SMC-R", ("rtt alone 1 median", R), ("rtt alone 1 median", S),
     "<=", 0.75),
    ("2 round trip of 4 KiB, to SMC-R", ("rtt alone 4096 median", R),
     ("rtt alone 4096 median", S), "<=", 0.75),
    ("2 p99 of 1 B beside a stream, to alone", ("rtt beside 1 p99", R), ("rtt alone 1 p99", R),
     "<=", 3),
    ("3 stream of 64 B, to SMC-R", ("stream one 1 64", R), ("stream one 1 64", S), ">=", 1.5),
    ("3 stream of 64 B, to TCP", ("stream one 1 64", R), ("stream one 1 64", T), ">=", 2.5),
    ("4 connect + 1 B + close, to TCP", ("connect 1 rate", R), ("connect 1 rate", T), ">=", 0.9),
    ("4 connect + 1 B + close, to SMC-R", ("connect 1 rate", R), ("connect 1 rate", S), ">=", 8),
]


def judge(bound, median):
    """(value, whether it is met); None for a value that this run does not have."""
    _, over, under, relation, limit = bound
    value = median(*over)
    base = median(*under) if under else 1
    if value is None or not base:
        return None, None
    value /= base
    return value, value >= limit if relation == ">=" else value <= limit
