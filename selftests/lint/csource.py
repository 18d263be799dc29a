# SPDX-License-Identifier: GPL-2.0
"""A look at C in kernel style: enough for layers.py and functions.py.

It relies on what checkpatch demands anyway: a function's braces stand alone in
the first column.
"""

import re

# One of: comment, string, character. Replaced by blanks, so that lines stay.
NOISE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                   re.S)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", re.M)


def quiet(text):
    """The text without comments and strings, line for line."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    return NOISE.sub(blank, text)


def includes(text):
    """(line, "<" or '"', name) of every include."""
    kept = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                  flags=re.S)
    for match in INCLUDE.finditer(kept):
        yield kept.count("\n", 0, match.start(2)) + 1, match.group(1), match.group(2)


class Function:
    def __init__(self, name, static, void, head, first, last, body):
        self.name = name        # of the function
        self.static = static
        self.void = void        # returns nothing
        self.head = head        # line where its declaration begins
        self.first = first      # line of "{"
        self.last = last        # line of "}"
        self.body = body        # its lines, without comments and strings


def functions(text):
    """Every function that is defined in the text."""
    lines = quiet(text).split("\n")
    start = 0
    while start < len(lines):
        if lines[start].rstrip() != "{":
            start += 1
            continue
        head = start
        while head and lines[head - 1].strip() and \
                not re.match(r"[#}{]|.*;\s*$|.*\\$", lines[head - 1]):
            head -= 1
        end = start
        while end < len(lines) - 1 and not lines[end].startswith("}"):
            end += 1
        declaration = " ".join(lines[head:start])
        name = re.search(r"(\w+)\s*\(", declaration)
        if name and "=" not in declaration:
            before = declaration[:name.start()]
            yield Function(name.group(1), bool(re.search(r"\bstatic\b", before)),
                           bool(re.search(r"\bvoid\s+(__\w+\s+)*$", before)),
                           head + 1, start + 1, end + 1, lines[start:end + 1])
        start = end + 1
