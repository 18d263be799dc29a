#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check that each file of the module uses only files named before it in LAYERS.

    layers.py [DIR]     DIR is net/afrdma by default

DIR/LAYERS has one line per layer, "name: files"; a bare name stands for its .h and .c files. Prints
KTAP; errors follow as "# file:line: ...".

Includes are checked, and every mention of a function or variable that another file defines. A
function is mentioned where it is called, or where its address is taken for a later call. Calls in
the other direction go through tables of function pointers that the later file registers.
"""

import os
import pathlib
import re
import sys

import csource
import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RDMA_LAYERS = ("verbs", "groups")


def read_layers(path):
    """The position of each file, counted from 0, its layer, and errors."""
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
                # After "x.h", a bare "x" stands for x.c.
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
            yield f"{name}:{line}: includes {what}, which comes later in LAYERS"


def check_uses(name, wanted, place):
    """Yield an error for each later file that this file uses. @wanted: its uses of other files, as
    {other: (line, word)}."""
    for other, (line, word) in sorted(wanted.items()):
        if place[other] > place[name]:
            yield f"{name}:{line}: uses {word} of {other}, which stands below it"


def check_names(name, text):
    """Functions and variables that other files can use begin with "afr"."""
    for line, word in csource.definitions(text):
        if not re.match(r"_*afr", word):
            yield f"{name}:{line}: {word} has no prefix afr_"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "net/afrdma"
    place, layer, wrong_list = read_layers(folder / "LAYERS")
    texts = {}
    for path in sorted(folder.rglob("*.[ch]")):
        name = str(path.relative_to(folder))
        if name.endswith(".mod.c"):
            continue
        if name not in place:
            wrong_list.append(f"{name}:1: not in LAYERS")
            continue
        texts[name] = path.read_text()

    owner, wanted = csource.uses(texts)
    includes, uses, names = [], [], []
    for name, text in texts.items():
        includes += check_includes(name, text, place, layer)
        uses += check_uses(name, wanted[name], place)
        if name.endswith(".c"):
            names += check_names(name, text)

    checks = ((f"layers: {len(texts)} files are listed", wrong_list),
              ("layers: includes go up, <rdma/*> stays in its layers", includes),
              (f"layers: uses of {len(owner)} functions and variables go up", uses),
              ("layers: functions and variables of other files have the prefix", names))
    return ktap.results(checks)


sys.exit(main())
