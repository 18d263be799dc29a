#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Generate Documentation/networking/afrdma-reference.rst from the sources.

    gen_reference.py            check that the file is up to date: KTAP
    gen_reference.py --write    write it

Reasons come from reason.h and counters from netns.h. Of each setting, name, bounds and description
(the comment above it) come from sysctl.c, and the default from netns.c.
"""

import pathlib
import re
import sys
import textwrap

import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "net/afrdma"
DOC = ROOT / "Documentation/networking/afrdma-reference.rst"

# A row of the list of reasons (number, name, sentence, remedy), or the comment above a group.
REASON = re.compile(r'AFR_REASON\((\d+), (\w+), "([^"]*)", \\\s*"([^"]*)"\)|/\* (.*?) \*/ \\')
STAT = re.compile(r'AFR_STAT\((\w+), "([^"]*)"\)')
SETTING = re.compile(r"/\*((?:[^*]|\*(?!/))*)\*/\s*SETTING_(\w+)\((\w+)(?:, ([^,)]+), ([^)]+))?\)")
DEFAULT = re.compile(r"^\t\.(\w+)\s*= (\d+),$|^\tan->set\.(\w+) = (.*);$", re.M)

HEAD = """\
.. SPDX-License-Identifier: GPL-2.0
.. Made by selftests/lint/gen_reference.py from the sources: do not edit.

====================================
AF_RDMA: reasons, counters, settings
====================================
"""

REASONS = """
Reasons
=======

Why a connection is not on RDMA, and why a link or a connection has ended. ``smctl conn``
and ``smctl link`` show name, number, sentence and remedy, the tracepoints the name; numbers
are also sent to the peer. ``smctl reasons`` prints this list. Where smctl prints ``peer:``
before a sentence, the peer has sent the reason, and the sentence is about the peer's end.
"""

COUNTERS = """
Counters
========

Per network namespace, counted since the module was loaded or the namespace was created.
``smctl stats`` shows them.
"""

SETTINGS = """
Settings
========

Sysctls ``net.afrdma.*``, per network namespace. A change applies to what begins after it,
unless the text says otherwise.
"""


def read(name):
    return (SOURCES / name).read_text()


def item(term, text):
    """An entry of a definition list."""
    return term + "\n" + textwrap.fill(text, 88, initial_indent="   ", subsequent_indent="   ",
                                       break_on_hyphens=False) + "\n"


def sentence(text):
    """The text on one line, with a capital letter and a full stop."""
    text = re.sub(r"\s*\n\s*\*?\s*", " ", text).strip()
    return text[0].upper() + text[1:] + ("" if text[-1] in ".?" else ".")


def reasons():
    text = REASONS
    body = read("proto/reason.h").split("#define AFR_REASONS", 1)[1].split("#ifndef", 1)[0]
    for number, name, words, remedy, group in REASON.findall(body):
        if group:
            title = group[0].upper() + group[1:]
            text += f"\n{title}\n{'-' * len(title)}\n"
        else:
            text += "\n" + item(f"{number} ``{name}``",
                                sentence(words) + (f" Remedy: {remedy}." if remedy else ""))
    return text


def counters():
    text = COUNTERS
    for name, words in STAT.findall(read("netns.h")):
        text += "\n" + item(f"``{name.lower()}``", sentence(words))
    return text


def number(word):
    """A bound: if @word is a known constant, its value in digits or words, else @word."""
    found = re.search(rf"#define {word}\s+\(?(\d+)u?(?: << (\d+)\))?", read("proto/wire.h"))
    if found:
        return str(int(found[1]) << int(found[2] or 0))
    return {"DAY_MS": "a day", "HOUR_MS": "an hour", "INT_MAX": str(2**31 - 1)}.get(word, word)


def bounds(kind, low, high):
    if kind != "INT":
        return "pages"
    return f"{low} or {high}" if (low, high) == ("0", "1") else f"{number(low)} to {number(high)}"


def settings():
    text = SETTINGS
    defaults = {a or c: b or f"``{d}``" for a, b, c, d in DEFAULT.findall(read("netns.c"))}
    table = read("sysctl.c").split("afr_settings_table[] = {", 1)[1].split("\n};", 1)[0]
    for comment, kind, name, low, high in SETTING.findall(table):
        term = f"``{name}`` ({bounds(kind, low, high)}; default {defaults[name]})"
        text += "\n" + item(term, sentence(comment))
    return text


def generate():
    return HEAD + reasons() + counters() + settings()


def check_complete(text):
    """Every row must be in @text. The rows are found without the patterns that generate it."""
    for name in ("proto/reason.h", "netns.h"):
        macro = {"proto/reason.h": "AFR_REASON(", "netns.h": "AFR_STAT("}[name]
        lines = [line for line in read(name).split("\n") if line.startswith("\t" + macro)]
        for line in lines:
            word = re.search(r"([A-Z][A-Z0-9_]+),", line.split("(", 1)[1])[1]
            if f"``{word}``" not in text and f"``{word.lower()}``" not in text:
                yield f"{name}: {word} is missing"
    rows = re.findall(r"^\tSETTING_\w+\((\w+)", read("sysctl.c"), re.M)
    for name in rows:
        if f"``{name}``" not in text:
            yield f"sysctl.c: {name} is missing: it needs a comment above it"


def check_same(text):
    there = DOC.read_text() if DOC.exists() else ""
    if there != text:
        yield f"{DOC.name} is out of date: run selftests/lint/gen_reference.py --write"


CHECKS = [
    ("every reason, counter and setting is in the reference", check_complete),
    ("afrdma-reference.rst is up to date", check_same),
]


def main():
    text = generate()
    if sys.argv[1:] == ["--write"]:
        DOC.write_text(text)
    return ktap.run(CHECKS, text)


if __name__ == "__main__":
    sys.exit(main())
