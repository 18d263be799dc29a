#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check that each object and command of smctl has a man page, which names all of its fields: KTAP.

Objects are the rows of objects[] in smctl.c, their commands those of actions[] in action.c, and
fields the keys that the file of an object prints. smctl(8) must refer to each page.
"""

import pathlib
import re
import sys

import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools/smctl"
PAGES = ROOT / "Documentation/man"

OBJECT = re.compile(r'^\t\{ "(\w+)", "\w+", \w+_show,', re.M)
ACTION = re.compile(r'^\t\{ "(\w+)", "(\w+)", "smctl ', re.M)
OPTION = re.compile(r'^\t\t\{ "([a-z-]+)",\s+(?:required|no)_argument', re.M)
FIELD = re.compile(r'\b(?:print_(?:u64|string|flag|nest_begin)|field_(?:name|hex))'
                   r'\([^"();]*, "(\w+)"')
ENDPOINT = re.compile(r'\bfield_endpoint\(\w+, "(\w+)"')
REASON = re.compile(r'\bfield_reason(_and_peer)?\(\w+, "(\w+)"')


def source(name):
    return (TOOL / f"{name}.c").read_text()


def page(name):
    path = PAGES / f"smctl-{name}.8"
    return re.sub(r"\\-", "-", path.read_text()) if path.exists() else ""


def fields(name):
    """The fields that the text or JSON of an object can have."""
    text = source(name)
    if name == "reason":        # this file also prints the reasons of other objects
        text = text.split("void reason_show(", 1)[1]
    found = set(FIELD.findall(text))
    for key in ENDPOINT.findall(text):
        found |= {key, f"{key}_port"}
    for peer, key in REASON.findall(text):
        found |= {key, f"{key}_number", f"{key}_text", f"{key}_remedy"}
        found |= {f"{key}_peer"} if peer else set()
    return found


def names_in(text):
    """The words of lines that begin with a request for bold or italic letters."""
    return {word for line in re.findall(r"^\.[BI]\w* (.*)$", text, re.M)
            for word in re.findall(r"\w+", line)}


def check_pages():
    objects = OBJECT.findall(source("smctl"))
    if len(objects) != len(re.findall(r"_CMD_\w+_GET, (?:true|false) \}", source("smctl"))):
        yield "smctl.c: a row of objects[] has an unknown format"
    overview = (PAGES / "smctl.8").read_text().replace("\\-", "-")
    for name in objects + ["run"]:
        if not page(name):
            yield f"smctl-{name}.8 is missing"
        if f"smctl-{name} (8)" not in overview:
            yield f"smctl.8 does not refer to smctl-{name}(8)"


def check_fields():
    for name in OBJECT.findall(source("smctl")):
        found = fields(name)
        if len(found) < 3:
            yield f"{name}.c: only the fields {sorted(found)} were found"
        for key in sorted(found - names_in(page(name))):
            yield f"smctl-{name}.8: field {key} is missing"


def check_commands():
    actions = ACTION.findall(source("action"))
    if not actions:
        yield "action.c: no row of actions[] was found"
    for name, verb in actions:
        if f"smctl {name} {verb}" not in page(name):
            yield f"smctl-{name}.8: smctl {name} {verb} is missing"
    options = OPTION.findall(source("run"))
    if not options:
        yield "run.c: no option was found"
    for option in options:
        if f"--{option}" not in page("run"):
            yield f"smctl-run.8: option --{option} is missing"


CHECKS = [
    ("each object and command of smctl has a man page", check_pages),
    ("the pages name all fields that smctl prints", check_fields),
    ("the pages name all changes, and the options of smctl run", check_commands),
]


if __name__ == "__main__":
    sys.exit(ktap.run(CHECKS))
