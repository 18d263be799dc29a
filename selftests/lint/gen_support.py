#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Generate Documentation/networking/afrdma-support.rst from net/afrdma/support.h.

    gen_support.py            check that the file is up to date, that every row names a test that
                              "make check" runs, and that afrdma(7) names every option, flag and
                              ioctl: KTAP
    gen_support.py --write    write it
"""

import pathlib
import re
import sys
import textwrap

import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "net/afrdma/support.h"
DOC = ROOT / "Documentation/networking/afrdma-support.rst"
MAN = ROOT / "Documentation/man/afrdma.7"
TESTS = ROOT / "selftests/net"

RULES = ("PASS", "STORE", "LATE", "SHARE", "REFUSE", "CORE", "FAMILY")
CELLS = ("rdma", "framed", "fallback")
CELL_WORDS = 5
ITEM = re.compile(r'/\* (?P<group>[^*]*) \*/|AFR_(?P<kind>\w+)\((?P<row>(?:"[^"]*"|[^")])*)\)')
FIELD = re.compile(r'"([^"]*)"|(\w+)')
TEST = re.compile(r'\{ "(\w+)",([^}]*)\}')
TWO_TESTS = re.compile(r'BOTH\("(\w+)",([^)]*)\)')

HEAD = """\
.. SPDX-License-Identifier: GPL-2.0
.. Made by selftests/lint/gen_support.py from net/afrdma/support.h: do not edit.

==========================
AF_RDMA: what is supported
==========================

A connection is *on RDMA*, *framed* and still on TCP, or has fallen back to TCP (*fallback*),
for example because the peer is a TCP program. "Yes" means: as with TCP. *Test* is the row of
selftests/net that shows it; it passes with TCP sockets, too, and ``make check`` runs it.
``option_table`` compares the results of setting and reading an option with those of a TCP
socket, but not the effect of the option.
"""

PARTS = {
    "OPTION": ("Socket options", """
The rule says what setting an option does. PASS: it is set on the TCP socket, and at level
SOL_SOCKET on both sockets. STORE: the AF_RDMA socket stores it, and unless the connection is
framed it is set on the TCP socket, too. LATE: the AF_RDMA socket stores it, and it is set on the
TCP socket when the connection has fallen back to TCP. SHARE: both sockets use the same object.
REFUSE: EOPNOTSUPP, for getsockopt() as well except at SOL_SOCKET. CORE: the AF_RDMA socket has
it, as a TCP socket would. FAMILY: getsockopt() returns a value of this family. Options not in
this table are CORE at SOL_SOCKET, and unknown (ENOPROTOOPT) at other levels.
"""),
    "AFRDMA": ("Options of level SOL_AFRDMA", ""),
    "FLAG": ("Message flags", ""),
    "IOCTL": ("Ioctls", ""),
    "CALL": ("Calls", ""),
}


class Row:
    def __init__(self, kind, group, fields):
        self.kind, self.group = kind, group
        self.level, self.rule = None, None
        if kind == "OPTION":
            self.level, self.name, self.rule, *fields = fields
        else:
            self.name, *fields = fields
        *self.cells, self.test, self.note = fields

    def literal(self):
        return self.name if self.kind == "CALL" else f"``{self.name}``"


def rows():
    body = SOURCE.read_text().split("#define AFR_SUPPORT_H", 1)[1]
    group = ""
    for found in ITEM.finditer(body.replace("\\\n", "\n")):
        if found["group"]:
            group = found["group"]
        elif not found["kind"].startswith("SUPPORT"):
            fields = [a or b for a, b in FIELD.findall(found["row"])]
            yield Row(found["kind"], group, fields)


def table(head, lines):
    widths = [max(len(cell) for cell in column) for column in zip(head, *lines)]
    rule = "  ".join("=" * width for width in widths)
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in [head] + lines]
    return "\n".join([rule, text[0], rule] + text[1:] + [rule]) + "\n"


def notes(part):
    text = ""
    for row in part:
        if row.note:
            text += "\n" + textwrap.fill(f"- {row.literal()}: {row.note}", 94,
                                         subsequent_indent="  ", break_on_hyphens=False)
    return text + "\n" if text else ""


def section(title, mark, part):
    lines = [[row.literal()] + ([row.rule] if row.rule else []) + row.cells +
             [f"``{row.test}``"] for row in part]
    head = ["Name"] + (["Rule"] if part[0].rule else []) + \
        ["On RDMA", "Framed, on TCP", "Fallback", "Test"]
    return f"\n{title}\n{mark * len(title)}\n\n" + table(head, lines) + notes(part)


def generate():
    text, there = HEAD, list(rows())
    for kind, (title, intro) in PARTS.items():
        part = [row for row in there if row.kind == kind]
        if kind != "OPTION":
            text += section(title, "=", part)
            continue
        text += f"\n{title}\n{'=' * len(title)}\n{intro}"
        for group in dict.fromkeys(row.group for row in part):
            name = group[0].upper() + group[1:]
            text += section(name, "-", [row for row in part if row.group == group])
    return text


# Checks: each yields the errors that it finds.

def check_rows(_):
    # Count the rows without the pattern of rows(), which may fail to match some of them.
    count = len(re.findall(r"^\tAFR_", SOURCE.read_text(), re.M))
    there = list(rows())
    if count != len(there):
        yield f"{SOURCE.name}: only {len(there)} of {count} rows match the pattern"
    names = [row.name for row in there]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{SOURCE.name}: {name} has two rows"
    for row in there:
        if row.kind == "OPTION" and row.rule not in RULES:
            yield f"{SOURCE.name}: {row.name}: {row.rule} is not a rule"
        for cell in row.cells:
            if not 1 <= len(cell.split()) <= CELL_WORDS:
                yield f"{SOURCE.name}: {row.name}: \"{cell}\" is not one to five words"
        if len(row.cells) != len(CELLS):
            yield f"{SOURCE.name}: {row.name}: {len(row.cells)} cells"


def known_tests():
    """Each row of selftests/net, and whether it is marked QUICK or QUICK_ALL, so that "make check"
    runs it. Of the two rows that BOTH defines, only the first can have these marks."""
    text = "\n".join(path.read_text() for path in sorted(TESTS.glob("*.c")))
    known = {name + "_back": False for name, _ in TWO_TESTS.findall(text)}
    for name, rest in TEST.findall(text) + TWO_TESTS.findall(text):
        known[name] = known.get(name, False) or "QUICK" in rest
    return known


def check_tests(_):
    known = known_tests()
    for row in rows():
        if row.test not in known:
            yield f"{SOURCE.name}: {row.name}: selftests/net has no row {row.test}"
        elif not known[row.test]:
            yield f"{SOURCE.name}: {row.name}: row {row.test} of selftests/net is not QUICK"


def check_man(_):
    text = MAN.read_text().replace("\\-", "-")
    for row in rows():
        # For pairs such as SO_RCVTIMEO_OLD and SO_RCVTIMEO_NEW, programs write SO_RCVTIMEO, and
        # <asm/socket.h> selects one of them.
        name = re.sub(r"_(OLD|NEW)$", "", row.name)
        if row.kind != "CALL" and not re.search(rf"\b{name}\b", text):
            yield f"{MAN.name}: {name} is not named"


def check_same(text):
    there = DOC.read_text() if DOC.exists() else ""
    if there != text:
        yield f"{DOC.name} is out of date: run selftests/lint/gen_support.py --write"


CHECKS = [
    ("the rows of support.h are complete", check_rows),
    ("each row names a test that make check runs", check_tests),
    ("afrdma(7) names every option, flag and ioctl", check_man),
    ("afrdma-support.rst is up to date", check_same),
]


def main():
    text = generate()
    if sys.argv[1:] == ["--write"]:
        DOC.write_text(text)
    return ktap.run(CHECKS, text)


if __name__ == "__main__":
    sys.exit(main())
