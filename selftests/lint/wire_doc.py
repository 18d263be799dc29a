#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Generate the tables and byte diagrams of afrdma-wire.rst from wire.h and frame.h.

    wire_doc.py             check that they are up to date, KTAP
    wire_doc.py --write     write them into the document

A line in the document marks the place of each of them:

    .. wire: struct afr_wire_frame
    .. wire: enum afr_frame_type
    .. wire: constants AFR_OPT_KIND AFR_OPT_LEN

The text between such a line and a line ".. wire: end" is generated: sizes and offsets are computed,
meanings are taken from the comments of the headers and from the list of frame types. Every
definition of the headers must be in the document.

The tables of tools/wireshark/afrdma.lua must have the same structures, frames and reasons.
"""

import pathlib
import re
import sys

import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODULE = ROOT / "net/afrdma"
HEADERS = [MODULE / "proto/wire.h", MODULE / "proto/frame.h"]
REASONS = ROOT / "net/afrdma/proto/reason.h"
DOC = ROOT / "Documentation/networking/afrdma-wire.rst"
LUA = ROOT / "tools/wireshark/afrdma.lua"
IWARP = "afr_wire_note"         # the structure that the dissector does not decode

SIZES = {"u8": 1, "__be16": 2, "__be32": 4, "__be64": 8}
NAMES = {1: "u8", 2: "be16", 4: "be32", 8: "be64"}
ROW = 4                 # bytes in a row of a diagram

STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\} __packed;\n"
                    r"static_assert\(sizeof\(struct \1\) == (\w+),", re.M | re.S)
FIELD = re.compile(r"^\t(\w+)\s+(\w+)(?:\[(\w+)\])?;(?:\s*/\* (.*?) \*/)?$", re.M | re.S)
ENUM = re.compile(r"^enum (\w+) \{\n(.*?)^\};", re.M | re.S)
ENTRY = re.compile(r"^\t(\w+)\s*= (\w+),(?:\s*/\* (.*?) \*/)?$", re.M | re.S)
FRAME = re.compile(r'^\tAFR_FRAME\((\d+), (\w+), (\w+), "(.*?)"\)', re.M)
DEFINE = re.compile(r"^#define (AFR_\w+)[ \t]+(\S.*?)(?:[ \t]*/\* (.*?) \*/)?$", re.M)
# Names in the headers that are not part of the wire format.
INTERNAL = {"AFR_FRAMES", "AFR_FRAME_HEAD_MAX", "afr_frame"}
BLOCK = re.compile(r"^\.\. wire: (struct|enum|constants) ([\w ]+)\n(.*?)^\.\. wire: end$",
                   re.M | re.S)


class Field:
    def __init__(self, kind, name, offset, count, text):
        self.name = name
        self.offset = offset
        self.size = SIZES[kind] * count
        self.type = NAMES[SIZES[kind]] if count == 1 else f"u8[{count}]"
        self.text = text


class Header:
    """The definitions of the headers, and errors found in them."""

    def __init__(self, text):
        self.constants = {name: (value, words(comment))
                          for name, value, comment in DEFINE.findall(text)
                          if name not in INTERNAL}
        self.enums = {name: [(entry, int(value, 0), words(comment))
                             for entry, value, comment in ENTRY.findall(body)]
                      for name, body in ENUM.findall(text)}
        self.frames = FRAME.findall(text)
        self.enums["afr_frame_type"] = [(f"AFR_FRAME_{name}", int(number), meaning)
                                        for number, name, _, meaning in self.frames]
        self.structs = {}
        self.wrong = []
        if len(self.frames) != len(re.findall(r"^\tAFR_FRAME\(", text, re.M)):
            self.wrong.append("a row of AFR_FRAMES has an unknown format")
        if [int(row[0]) for row in self.frames] != list(range(1, len(self.frames) + 1)):
            self.wrong.append("AFR_FRAMES: the numbers are not 1, 2, 3 and so on")
        for name, body, size in STRUCT.findall(text):
            self.structs[name] = self.fields(name, body, self.number(size))
        declared = set(re.findall(r"^struct (\w+) \{", text, re.M)) - INTERNAL
        self.wrong += [f"struct {name}: not packed, or its size is not asserted"
                       for name in sorted(declared - set(self.structs))]

    def number(self, word):
        return int(self.constants[word][0] if word in self.constants else word, 0)

    def fields(self, name, body, size):
        found, offset = [], 0
        for kind, field, count, text in FIELD.findall(body):
            one = Field(kind, field, offset, self.number(count) if count else 1, words(text))
            offset += one.size
            found.append(one)
        if offset != size:
            self.wrong.append(f"struct {name}: fields have {offset} bytes, the assertion {size}")
        if len(found) != len([line for line in body.split("\n") if ";" in line]):
            self.wrong.append(f"struct {name}: a field has an unknown format")
        return found


def words(text):
    """The text of a comment, joined into one line."""
    return re.sub(r"\s*\n\s*\*?\s*", " ", text).strip()


def table(head, rows):
    """A simple table of reStructuredText; empty cells are filled."""
    # "_*", as in "AFR_OPT_*", can be markup in reStructuredText: escape both characters.
    rows = [[cell.replace("_*", r"\_\*") or "\\" for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]

    def line(cells):
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
    rule = line(["=" * width for width in widths])
    return "\n".join([rule, line(head), rule] + [line(row) for row in rows] + [rule])


def owner(fields, position):
    """The field that a byte belongs to, or None beyond the end."""
    for field in fields:
        if field.offset <= position < field.offset + field.size:
            return field
    return None


def label_of(field, row):
    """The name of the field in its middle row; in its other rows "... NAME" if the field does not
    begin at the start of a row."""
    first, last = field.offset // ROW, (field.offset + field.size - 1) // ROW
    if (first + last) // 2 == row:
        return field.name
    return f"... {field.name}" if field.offset % ROW else ""


def diagram_row(fields, row):
    text, column = "|", 0
    while column < ROW:
        field = owner(fields, row * ROW + column)
        width = 1
        while column + width < ROW and owner(fields, row * ROW + column + width) is field:
            width += 1
        label = label_of(field, row) if field else ""
        text += label.center(16 * width - 1) + "|"
        column += width
    return text


def diagram_rule(fields, row):
    """The line above a row: open where a field continues."""
    text = "+"
    for column in range(ROW):
        position = row * ROW + column
        above, below = owner(fields, position - ROW), owner(fields, position)
        goes_on = row and above is below and below is not None
        text += (" " * 15 if goes_on else "-+" * 7 + "-")
        text += "+" if not goes_on or column == ROW - 1 or \
            owner(fields, position + 1) is not below else " "
    return text


def diagram(fields):
    size = fields[-1].offset + fields[-1].size
    rows = (size + ROW - 1) // ROW
    tens = "".join(f"{bit // 10 if bit % 10 == 0 else ' '} " for bit in range(32))
    ones = "".join(f"{bit % 10} " for bit in range(32))
    lines = [" " + tens.rstrip(), " " + ones.rstrip()]
    for row in range(rows):
        lines += [diagram_rule(fields, row), diagram_row(fields, row)]
    lines.append(diagram_rule(fields, 0))
    return "::\n\n" + "\n".join(f"  {line}".rstrip() for line in lines)


def show_struct(header, name):
    fields = header.structs[name]
    size = fields[-1].offset + fields[-1].size
    rows = [[str(f.offset), str(f.size), f.name, f.type, f.text] for f in fields]
    return (diagram(fields) + "\n\n" +
            table(["Offset", "Size", "Field", "Type", "Meaning"], rows) +
            f"\n\n``struct {name}``, {size} bytes.")


def show_enum(header, name):
    if name == "afr_frame_type":
        return table(["Value", "Name", "Layout", "Meaning"],
                     [[number, f"AFR_FRAME_{frame}", layout, meaning]
                      for number, frame, layout, meaning in header.frames])
    rows = [[str(value), entry, text] for entry, value, text in header.enums[name]]
    return table(["Value", "Name", "Meaning"], rows)


def show_constants(header, names):
    rows = [[name, "``" + header.constants[name][0] + "``", header.constants[name][1]]
            for name in names.split()]
    return table(["Name", "Value", "Meaning"], rows)


def render(header, kind, what):
    show = {"struct": show_struct, "enum": show_enum, "constants": show_constants}
    return "\n" + show[kind](header, what) + "\n\n"


def fill(header, document):
    def block(match):
        kind, what = match.group(1), match.group(2)
        return f".. wire: {kind} {what}\n{render(header, kind, what)}.. wire: end"
    return BLOCK.sub(block, document)


# Checks: each yields the errors that it finds.

def check_header(header, _):
    yield from header.wrong


def check_same(header, document):
    for kind, what, there in BLOCK.findall(document):
        try:
            want = render(header, kind, what)
        except KeyError as missing:
            yield f"{kind} {what}: {missing} is not in the headers"
            continue
        if there != want:
            for a, b in zip((there + "\n" * 99).split("\n"), want.split("\n")):
                if a != b:
                    yield f"{kind} {what}: '{a.strip()}' instead of '{b.strip()}'"
                    break


def check_complete(header, document):
    blocks = BLOCK.findall(document)
    there = {word for kind, what, _ in blocks for word in what.split()}
    every = {**header.structs, **header.enums, **header.constants}
    for name in every:
        if name not in there:
            yield f"{name} is in the headers, but not in the document"


def check_frames(header, document):
    """Every frame must have a section in the document, and the rows that afrdma-contributing.rst
    demands under "A frame type"."""
    receive, send = ((MODULE / f"frame_{way}.c").read_text() for way in ("rx", "tx"))
    pending = (DOC.parent / "afrdma-internals.rst").read_text()
    for _, name, _, _ in header.frames:
        if not re.search(rf"^{name}\n-+$", document, re.M):
            yield f"frame {name} has no section"
        if f"[AFR_FRAME_{name}]" not in receive:
            yield f"frame {name} has no row in handlers of frame_rx.c"
        if name == "DATA":      # is not a pending frame: build_data() builds it
            continue
        if f"{{ AFR_FRAME_{name}, " not in send:
            yield f"frame {name} has no row in kinds of frame_tx.c"
        if not re.search(rf"^``AFR_FRAME_{name}``", pending, re.M):
            yield f'frame {name} has no row in the table "Pending frames" of afrdma-internals.rst'


def check_names(header, document):
    """Names in capitals in the text must exist."""
    reasons = set(re.findall(r"AFR_REASON\(\d+, (\w+),", REASONS.read_text()))
    frames = {entry.removeprefix("AFR_FRAME_") for entries in header.enums.values()
              for entry, _, _ in entries}
    known = reasons | frames | set(header.constants) | {"HELLO"}
    for name in sorted(set(re.findall(r"``([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)``", document))):
        if name not in known:
            yield f"``{name}`` is not a reason, a frame or a constant"


def differences(what, there, want):
    for key in sorted(set(there) | set(want), key=str):
        if there.get(key) != want.get(key):
            yield f"{what} {key}: {there.get(key)} instead of {want.get(key)}"


def check_dissector(header, _):
    text = LUA.read_text()
    structs = {name: re.findall(r'^\t\t\{"(\w+)", (\d+),', rows, re.M)
               for name, rows in re.findall(r"^\t(\w+) = \{\n(.*?)^\t\},", text, re.M | re.S)}
    want = {name.removeprefix("afr_wire_"): [(f.name, str(f.size)) for f in fields]
            for name, fields in header.structs.items() if name != IWARP}
    yield from differences("structure", structs, want)
    frames = re.findall(r'^\t\[(\d+)\] = \{"(\w+)", "(\w+)"\},', text, re.M)
    yield from differences("frame", {number: rest for number, *rest in frames},
                           {number: [name, layout] for number, name, layout, _ in header.frames})
    block = re.search(r"\[\[\n(.*?)\]\]", text, re.S).group(1)
    yield from differences("reason", dict(re.findall(r"(\d+) (\w+)", block)),
                           dict(re.findall(r"AFR_REASON\((\d+), (\w+),", REASONS.read_text())))


CHECKS = [
    ("structures of wire.h and frame.h are packed, and their sizes asserted", check_header),
    ("tables and diagrams of the document are up to date", check_same),
    ("everything in wire.h and frame.h is in the document", check_complete),
    ("every frame has a section, a handler, and who builds it", check_frames),
    ("names in the document exist", check_names),
    ("the dissector for Wireshark has the same tables", check_dissector),
]


def main():
    header = Header("".join(path.read_text() for path in HEADERS))
    if sys.argv[1:] == ["--write"]:
        DOC.write_text(fill(header, DOC.read_text()))
    document = DOC.read_text()
    return ktap.run(CHECKS, header, document)


if __name__ == "__main__":
    sys.exit(main())
