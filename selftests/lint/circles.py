#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""No two C files of a folder use each other, directly or through others.

    circles.py DIR...

A file uses the headers that it includes, and the .c files that define the functions and variables
that it mentions: in code, in a table, in a macro, or in an inline function of a header. Prints
KTAP, and for each circle what each of its files uses of the next one.
"""

import pathlib
import sys

import csource
import ktap


def graph(folder):
    """{file: {other: word}} for each other file that a file uses: the word is a name that the other
    file defines, or the include."""
    texts = {str(path.relative_to(folder)): path.read_text()
             for path in sorted(folder.rglob("*.[ch]")) if not path.name.endswith(".mod.c")}
    files = {pathlib.PurePath(name).name: name for name in texts}
    _, wanted = csource.uses(texts)
    uses = {}
    for name, text in texts.items():
        uses[name] = {other: word for other, (_, word) in wanted[name].items()}
        for _, kind, what in csource.includes(text):
            other = files.get(pathlib.PurePath(what).name)
            if kind == '"' and other and other != name:
                uses[name].setdefault(other, f'"{what}"')
    return uses


def way(uses, start, goal):
    """The shortest chain of uses from one file to another, or None."""
    before, queue = {start: None}, [start]
    for at in queue:
        for other in sorted(uses[at]):
            if other not in before:
                before[other] = at
                queue.append(other)
    if goal not in before:
        return None
    path = [goal]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]


def circles(uses):
    """The shortest circle through each use that is part of one."""
    seen = set()
    for start in sorted(uses):
        for other in sorted(uses[start]):
            back = way(uses, other, start)
            if back and frozenset(back) not in seen:
                seen.add(frozenset(back))
                yield [start, *back]


def main():
    checks = []
    for name in sys.argv[1:]:
        uses = graph(pathlib.Path(name))
        found = [", ".join(f"{a} uses {uses[a][b]} of {b}" for a, b in zip(circle, circle[1:]))
                 for circle in circles(uses)]
        checks.append((f"circles: {len(uses)} files of {name}", found))
    return ktap.results(checks)


sys.exit(main())
