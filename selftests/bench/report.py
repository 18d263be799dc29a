# SPDX-License-Identifier: GPL-2.0
"""The tables, bounds and plot of a run."""
from collections import defaultdict
from statistics import median

import ktap
from bounds import BOUNDS, GUARDS
from plot import svg_of

COLUMNS = ["rdma", "smc", "tcp", "tcp-off", "verbs"]
NAMES = {"rdma": "AF_RDMA", "smc": "SMC-R", "tcp": "TCP", "tcp-off": "TCP, off", "verbs": "verbs"}
TITLES = {
    "memory": "Kernel memory of a connection at the client: no byte yet, on TCP, on RDMA",
    "stream": "Streams: one way or both ways, connections, bytes of a write",
    "rtt": "Round trips: alone or beside a stream of 64 KiB writes, bytes",
    "connect": "Connect + 1 B there and back + close: at a time",
    "counts": "Counted on both hosts together: for a message or a trip, and (for a MiB delivered)",
    "redis": "redis-benchmark: pipeline, threads, clients",
    "iperf3": "iperf3: connections",
    "sockperf": "sockperf ping-pong: bytes",
    "growth": "Growth: connections between the two hosts",
}


class Figures:
    """Values by figure and column, in the order of the measurements."""

    def __init__(self, result):
        self.values = defaultdict(list)
        self.notes = defaultdict(set)
        self.rows = defaultdict(dict)       # group: figure: unit
        self.columns = {(one["group"], one["column"]) for one in result["figures"]}
        self.failed = set()
        self.groups = result["only"] or list(TITLES)
        self.points = result["points"]
        for one in result["figures"]:
            if "figure" not in one:
                self.failed.add(f"{one['group']}, {one['column']}: {one['note']}")
                continue
            key = one["figure"], one["column"]
            self.rows[one["group"]][one["figure"]] = one["unit"]
            if one["note"]:
                self.notes[key].add(one["note"])
            if one["value"] is not None:
                self.values[key].append(one["value"])

    def asked_for(self, figure):
        """Was this figure to be measured?"""
        return figure.split()[0] in self.groups and (
            not self.points or any(figure in rows for rows in self.rows.values()))

    def comparable(self, figure, column):
        """Was this figure to be measured in this column?"""
        return self.asked_for(figure) and (figure.split()[0], column) in self.columns

    def median(self, figure, column):
        values = self.values.get((figure, column))
        return median(values) if values else None

    def spread(self, figure, column):
        """Half of the range of the values, relative to the median."""
        values = self.values[figure, column]
        middle = median(values)
        return (max(values) - min(values)) / 2 / middle if middle else 0

    def cell(self, figure, column):
        value = self.median(figure, column)
        if value is None:
            return ", ".join(sorted(self.notes[figure, column])) or "-"
        star = "*" if self.notes[figure, column] else ""
        alone = len(self.values[figure, column]) == 1
        spread = "" if alone else f" ±{self.spread(figure, column):.0%}"
        return f"{short(value)}{spread}{star}"

    def ratio(self, figure, column):
        """AF_RDMA's median divided by that of the column."""
        ours, theirs = self.median(figure, "rdma"), self.median(figure, column)
        return f"{ours / theirs:.2f}" if ours and theirs else "-"


def short(value):
    """The value with four digits, or all digits before the decimal point."""
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def group_table(figures, group):
    yield ""
    yield TITLES[group]
    yield (f"{'':34} {'':7}" + "".join(f"{NAMES[column]:>15}" for column in COLUMNS)
           + f"{'/SMC-R':>9}{'/TCP':>7}{'/verbs':>8}")
    for figure, unit in figures.rows[group].items():
        yield (f"{figure:34} {unit:7}"
               + "".join(f"{figures.cell(figure, column):>15}" for column in COLUMNS)
               + f"{figures.ratio(figure, 'smc'):>9}{figures.ratio(figure, 'tcp'):>7}"
               + f"{figures.ratio(figure, 'verbs'):>8}")


def counts_table(figures, group):
    """A table with a column for each size. A cell is the count for a message and, in parentheses,
    for a MiB delivered."""
    rows = defaultdict(dict)
    for figure in figures.rows[group]:
        _, kind, name, size = figure.split()
        rows[kind, name][int(size)] = figures.median(figure, "rdma")
    sizes = sorted({size for row in rows.values() for size in row})
    yield ""
    yield TITLES[group]
    yield f"{'bytes of a message':24}" + "".join(f"{size:>18}" for size in sizes)
    for (kind, name), row in rows.items():
        per_mib = (1 << 20) / (2 if kind == "rtt" else 1)
        cells = (f"{short(row[size])} ({short(row[size] * per_mib / size)})"
                 if row.get(size) is not None else "-" for size in sizes)
        yield f"{kind + ' ' + name:24}" + "".join(f"{cell:>18}" for cell in cells)


def judged(figures, bounds):
    """Yield bounds whose figures were to be measured, with their values."""
    for bound in bounds:
        if figures.asked_for(bound.figure) and (
                not bound.other or figures.comparable(*bound.other)):
            yield bound, bound.value(figures.median)


def bounds_table(figures):
    lines = ["", "Bounds"]
    for bound, value in judged(figures, BOUNDS):
        shown = "-" if value is None else short(value)
        lines.append(f"{bound.text:46} {shown:>9}  {bound.relation} {bound.limit:<6} "
                     f"{'met' if bound.met(value) else 'MISSED'}")
    return lines if len(lines) > 2 else []


def verdicts(result):
    """Yield a KTAP line for each bound."""
    for bound, value in judged(Figures(result), BOUNDS + GUARDS):
        yield ktap.result(bound.met(value, bound.guard), "-", f"bench: {bound.text}",
                          f"{value} {bound.relation} {bound.guard or bound.limit}")


def done(result):
    """The number of repetitions."""
    return 1 + max((one["rep"] for one in result["figures"]), default=-1)


def text(result):
    figures = Figures(result)
    lines = [f"{result['guest']} ({result['accel']}, {result['smp']} CPU each), Linux "
             f"{result['kernel']}, commit {result['commit']}, {result['date']}:",
             f"medians of {done(result)} repetitions, ± half of their range; "
             f"{result['seconds']} s each; load of the host at the end of each: "
             f"{', '.join(map(str, result.get('load', [])))}",
             result["smc"]]
    for group in TITLES:
        if group in figures.rows:
            table = counts_table if group == "counts" else group_table
            lines.extend(table(figures, group))
    lines.extend(bounds_table(figures))
    if figures.failed:
        lines += ["", "Failed", *sorted(figures.failed)]
    if any(figures.notes.values()):
        lines += ["", "*: void figures are left out of the median"]
        lines += sorted({f"{figure}, {column}: {', '.join(sorted(notes))}"
                         for (figure, column), notes in figures.notes.items() if notes})
    return "\n".join(lines) + "\n"


def svg(result):
    figures = Figures(result)
    return svg_of(figures.median, COLUMNS, NAMES)
