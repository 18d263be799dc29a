#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The module's files form a list, and each uses only what stands above it.

    layers.py [DIR]     DIR is net/afrdma by default

DIR/LAYERS has one line per layer, "name: files"; a bare name stands for its .h
and its .c. Prints KTAP; what is wrong follows as "# file:line: ...".

Checked are includes and every mention of a function that another file defines;
a mention is a call, or a pointer taken, which is a call later. Calls down the
list go through tables of functions that the lower file hands up.
"""

import os
import pathlib
import re
import sys

import csource

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RDMA_LAYERS = ("verbs", "groups")


def read_layers(path):
    """The position of each file, counted from 0, and its layer."""
    place, layer = {}, {}
    missing = []
    lines = enumerate(path.read_text().split("\n"), 1)
    position = 0
    for number, line in lines:
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, files = line.split(":")
        for item in files.split():
            names = [item] if item[-2:] in (".h", ".c") else [item + ".h", item + ".c"]
            there = [n for n in names if (path.parent / n).exists()]
            if not there:
                missing.append(f"{path.name}:{number}: {item} does not exist")
            for one in there:
                # "x.h ... x": the second stands for what is left of x.
                if one in place and one != item:
                    continue
                if one in place:
                    missing.append(f"{path.name}:{number}: {one} is named twice")
                place[one] = position
                layer[one] = name.strip()
            position += 1
    return place, layer, missing


def check_includes(name, text, place, layer):
    for line, kind, what in csource.includes(text):
        if kind == '"':
            what = os.path.normpath(pathlib.PurePath(name).parent / what)
        if kind == "<":
            if what.startswith("rdma/") and layer[name] not in RDMA_LAYERS:
                yield (f"{name}:{line}: <{what}> belongs to the layers "
                       f"{' and '.join(RDMA_LAYERS)}, this is {layer[name]}")
        elif what not in place:
            yield f"{name}:{line}: \"{what}\" is not in LAYERS"
        elif place[what] > place[name]:
            yield f"{name}:{line}: includes {what}, which stands below it"


def stem(name):
    return name.rsplit(".", 1)[0]


def words(line, pattern):
    """What the pattern finds in a line; types may share names with functions."""
    return re.findall(pattern, re.sub(r"\b(struct|enum|union)\s+\w+", "", line))


def below(home, name, place):
    """An inline function of a header may use its own .c."""
    return home and stem(home) != stem(name) and place[home] > place[name]


def check_uses(name, functions, owner, place):
    for function in functions:
        for number, line in enumerate(function.body, function.first):
            for word in words(line, r"\bafr\w+"):
                home = owner.get(word)
                if below(home, name, place):
                    yield (f"{name}:{number}: {function.name} uses {word} of {home}, "
                           "which stands below it")


def check_tables(name, text, functions, owner, place):
    """Outside functions: initialisers. Prototypes have a parenthesis behind the name."""
    lines = csource.quiet(text).split("\n")
    for function in functions:
        for number in range(function.head - 1, function.last):
            lines[number] = ""
    for number, line in enumerate(lines, 1):
        for word in words(line, r"\bafr\w+\b(?!\s*\()"):
            home = owner.get(word)
            if below(home, name, place):
                yield f"{name}:{number}: names {word} of {home}, which stands below it"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "net/afrdma"
    place, layer, wrong_list = read_layers(folder / "LAYERS")
    texts, functions, owner = {}, {}, {}
    for path in sorted(folder.rglob("*.[ch]")):
        name = str(path.relative_to(folder))
        if name.endswith(".mod.c"):
            continue
        if name not in place:
            wrong_list.append(f"{name}:1: not in LAYERS")
            continue
        texts[name] = path.read_text()
        functions[name] = list(csource.functions(texts[name]))
        for function in functions[name]:
            if not function.static and path.suffix == ".c":
                owner[function.name] = name

    includes, uses = [], []
    for name, text in texts.items():
        includes += check_includes(name, text, place, layer)
        uses += check_uses(name, functions[name], owner, place)
        uses += check_tables(name, text, functions[name], owner, place)

    checks = ((f"layers: {len(texts)} files are listed", wrong_list),
              ("layers: includes go up, <rdma/*> stays in its layers", includes),
              (f"layers: uses of {len(owner)} functions go up", uses))
    print("KTAP version 1")
    print(f"1..{len(checks)}")
    for number, (title, wrong) in enumerate(checks, 1):
        print(f"{'not ok' if wrong else 'ok'} {number} {title}")
        for line in wrong:
            print(f"# {line}")
    return any(wrong for _, wrong in checks)


sys.exit(main())
