#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Sizes of functions and files, and a kernel-doc for each function others call.

    functions.py FILE...

Prints KTAP. The sizes are those that readable code falls into; a file or
function beyond them wants to be two.
"""

import pathlib
import re
import sys

import csource

FUNCTION_MAX = 100
FILE_MAX = 600


def documented(lines, function):
    """Is there a kernel-doc above the function, and with Return?"""
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
        return "does not say what it returns (Return:)"
    return None


def main():
    long_files, long_functions, silent = [], [], []
    for name in sys.argv[1:]:
        text = pathlib.Path(name).read_text()
        lines = text.split("\n")
        if len(lines) - 1 > FILE_MAX:
            long_files.append(f"{name}:{FILE_MAX + 1}: {len(lines) - 1} lines")
        for function in csource.functions(text):
            size = function.last - function.first + 1
            if size > FUNCTION_MAX:
                long_functions.append(f"{name}:{function.first}: {function.name} "
                                      f"has {size} lines")
            if function.static or not name.endswith(".c"):
                continue
            missing = documented(lines, function)
            if missing:
                silent.append(f"{name}:{function.head}: {function.name} {missing}")

    checks = ((f"style: no function has more than {FUNCTION_MAX} lines", long_functions),
              (f"style: no file has more than {FILE_MAX} lines", long_files),
              ("style: functions that others call have a kernel-doc", silent))
    print("KTAP version 1")
    print(f"1..{len(checks)}")
    for number, (title, wrong) in enumerate(checks, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} {title}")
        for line in wrong:
            print(f"# {line}")
    return any(wrong for _, wrong in checks)


sys.exit(main())
