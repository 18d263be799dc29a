#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run by selftests/lab/run: measure between the two guests.

    guest.py OPTIONS            one JSON object, from "run" in this folder

Guest a executes the requests of b; b measures, and writes a line of JSON for each figure into
$AFR_OUT/figures.
"""
import json
import os
import subprocess
import sys
import time

import costs
import groups
from lab import Lab, Failed
from peer import serve


def one(lab, group, column, point):
    """The figures of one cell, or a note with the reason of a failure."""
    try:
        figures, note = group.measure(lab, column, **point)
    except (Failed, subprocess.TimeoutExpired, ValueError, KeyError, OSError) as error:
        return [{"note": "failed: " + " ".join(str(error).split())[:160]}]
    if note.startswith("void: "):
        figures = [(name, None, unit) for name, _, unit in figures]
    return [{"figure": name, "value": value, "unit": unit, "note": note}
            for name, value, unit in figures]


def measure(lab, options):
    """Measure one repetition."""
    with open(os.path.join(os.environ["AFR_OUT"], "figures"), "w", buffering=1) as out:
        for name in options["only"] or list(groups.GROUPS):
            repeat(lab, name, options["rep"], out)


def wanted(point, options):
    """Does the point have the values that were selected?"""
    return all(str(point[name]) in values.split(",")
               for name, values in options["points"].items() if name in point)


def repeat(lab, name, rep, out):
    """Measure all cells of a group once, the columns of a point one after the other."""
    group, failed, begin = groups.GROUPS[name], [], time.monotonic()
    columns = [column for column in group.columns if lab.has(column)]
    for point in group.points:
        if not wanted(point, lab.options):
            continue
        shift = rep % max(len(columns), 1)
        for column in columns[shift:] + columns[:shift]:
            for figure in one(lab, group, column, point):
                figure.update(group=name, column=column, rep=rep)
                out.write(json.dumps(figure) + "\n")
                if figure["note"]:
                    failed.append(f"{column} {point}: {figure['note']}")
    print(f"# repetition {rep + 1}: {name}: {time.monotonic() - begin:.0f} s"
          + "".join(f"\n#   {line}" for line in sorted(set(failed))), flush=True)


def main():
    options = json.loads(sys.argv[1])
    lab = Lab(options)
    try:
        if os.environ["AFR_ROLE"] == "a":
            serve(trace=costs.trace, callbacks=costs.callbacks)
        else:
            lab.join()
            lab.describe()
            measure(lab, options)
            lab.leave()
    finally:
        lab.clean_up()


if __name__ == "__main__":
    main()
