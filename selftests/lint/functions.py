#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check the sizes of functions, and that the module's functions have a kernel-doc.

    functions.py FILE...

Prints KTAP. Each function may have FUNCTION_MAX lines at most; MEDIAN_MAX and P90_MAX limit the
median and the 90th percentile over all functions. Functions that are too long should be split.
Non-static functions in .c files of net/afrdma must have a kernel-doc.
"""

import pathlib
import re
import sys

import csource
import ktap

FUNCTION_MAX = 100
MEDIAN_MAX, P90_MAX = 10, 24     # lines between the braces of the functions


def documented(lines, function):
    """None if the function has a kernel-doc, with Return unless it is void; else what is wrong."""
    end = function.head - 1
    while end and not lines[end - 1].strip():
        end -= 1
    if not end or lines[end - 1].strip() != "*/":
        return "has no kernel-doc"
    start = end
    while start and not lines[start - 1].startswith("/*"):
        start -= 1
    text = "\n".join(lines[start - 1:end])
    if not re.match(r"/\*\*\n \* " + function.name + r"\(\)", text):
        return "has no kernel-doc"
    if not function.void and not re.search(r"Returns?:", text):
        return "has no Return: in its kernel-doc"
    return None


def main():
    long_functions, undocumented = [], []
    bodies = []
    for name in sys.argv[1:]:
        text = pathlib.Path(name).read_text()
        lines = text.split("\n")
        for function in csource.functions(text):
            size = function.last - function.first + 1
            bodies.append(size - 2)
            if size > FUNCTION_MAX:
                long_functions.append(f"{name}:{function.first}: {function.name} "
                                      f"has {size} lines")
            if function.static or not re.search(r"net/afrdma/.*\.c$", name):
                continue
            missing = documented(lines, function)
            if missing:
                undocumented.append(f"{name}:{function.head}: {function.name} {missing}")

    bodies = sorted(bodies) or [0]
    median, p90 = bodies[len(bodies) // 2], bodies[len(bodies) * 9 // 10]
    shape = [] if median <= MEDIAN_MAX and p90 <= P90_MAX else [f"median {median}, p90 {p90}"]
    checks = ((f"style: no function has more than {FUNCTION_MAX} lines", long_functions),
              (f"style: lines of functions, median {MEDIAN_MAX}, 90th percentile {P90_MAX} at most",
               shape),
              ("style: non-static functions have a kernel-doc", undocumented))
    return ktap.results(checks)


sys.exit(main())
