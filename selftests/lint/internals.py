#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare afrdma-internals.rst with the code. Prints KTAP.

- call lists: each function is in the file that the list names, and is called by the function above
  it, unless a line in brackets explains how it is reached
- rule labels (PM3, B10, I7 ...): afrdma-internals.rst defines every label that a comment or a
  document uses
- upcalls: the section "Upcalls" names each struct with function pointers, each pointer to a
  function, each array of such pointers, each function with an argument that points to a function,
  each function that an assignment stores in a member, and the function of each work item and timer.
  The row of a struct of the module names all its function pointers; the names in the first column
  are in the code
- names: functions that are not static or are in a header begin with afr_ and the name of their
  file, or of the header that declares them

With an argument, a copy of net/afrdma is checked instead: planted.py plants faults in it.
"""

import pathlib
import re
import sys

import csource
import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "net/afrdma"
DOCUMENT = ROOT / "Documentation/networking/afrdma-internals.rst"
COMMENTED = ("include/**/*.h", "selftests/**/*.[ch]", "selftests/**/*.py", "selftests/**/*.sh",
             "selftests/**/*.rst", "selftests/mutations/*.mutation", "tools/**/*.[ch]",
             "Documentation/**/*.rst", "Documentation/man/*", "README.md", "SECURITY.md")
# Functions that convert between objects need not be named after their file.
SHORT_NAMES = {"afr_net", "afr_sk", "afr_tcp"}
UNCHECKED = {"compat.h"}


class Code:
    """All functions of the module: their files, and the words in their bodies."""

    def __init__(self):
        self.texts = {path.relative_to(SOURCES).as_posix(): path.read_text()
                      for path in sorted(SOURCES.rglob("*.[ch]"))
                      if not path.name.endswith(".mod.c")}
        self.functions = {}     # (file name, function): words of its body
        self.public = []        # (file, function)
        self.declared = {}      # function: stem of the header that declares it
        for file, text in self.texts.items():
            if file.endswith(".h"):
                for name in re.findall(r"^(?!static)\w[\w \*]*?\b(afr_\w+)\(",
                                       csource.quiet(text), re.M):
                    self.declared[name] = pathlib.PurePath(file).stem
                for name, body in re.findall(r"#define (afr_\w+)\([^)]*\)((?:.*\\\n)*.*)", text):
                    self.functions[pathlib.PurePath(file).name, name] = \
                        set(re.findall(r"\w+", body))
            for function in csource.functions(text):
                name = pathlib.PurePath(file).name
                words = set(re.findall(r"\w+", " ".join(function.body)))
                self.functions.setdefault((name, function.name), set()).update(words)
                if not function.static or file.endswith(".h"):
                    self.public.append((name, function.name))


def section(text, title, underline):
    """The text from a heading to the next one with the same underline."""
    pattern = rf"^{re.escape(title)}\n{underline}+\n(.*?)(?=^[^\n]+\n{underline}{{3,}}\n|\Z)"
    found = re.search(pattern, text, re.M | re.S)
    return found[1] if found else ""


def call_lists(text):
    """Yield the lines of the literal blocks as (number, indentation, text); (number, None, "")
    where a block begins."""
    start = text.index("\nCall lists\n===")
    end = re.search(r"^[^\n]+\n={3,}\n", text[start + 20:], re.M)
    first = text.count("\n", 0, start) + 1
    block = False
    for number, line in enumerate(text[start:start + 20 + (end.start() if end else len(text))]
                                  .split("\n"), first):
        if line.strip() == "::":
            block = True
            yield number, None, ""
        elif block and line and not line.startswith(" "):
            block = False
        elif block and line.strip():
            yield number, len(line) - len(line.lstrip()), line.strip()


def check_calls(code, text):
    # Entries (n, words) for lines above. An entry applies to lines that are indented by n or more;
    # of the entries that apply to a line, the last one counts. For a line with a function, n is
    # its indentation + 1, and words are those of the function's body: the name of a function that
    # is indented further must be among them. For a line in brackets, n is its indentation, and
    # words is None: it explains how the functions below it are reached, also those at its own
    # indentation.
    above = []
    for number, indent, line in call_lists(text):
        if indent is None:
            above = []
            continue
        found = re.match(r"(\w+)\(\)\s+([\w.]+\.[ch])\s", line)
        if not found:
            if line.startswith("["):
                above = [entry for entry in above if entry[0] < indent] + [(indent, None)]
            continue
        name, file = found.groups()
        # A line in brackets explains how the functions that follow at its indentation are called.
        parents = [entry for entry in above if entry[0] <= indent]
        beside = [entry for entry in parents if entry[0] == indent]
        outer = [entry for entry in parents if entry[0] < indent]
        words = code.functions.get((file, name))
        if words is None:
            yield f"{DOCUMENT.name}:{number}: {file} has no {name}()"
        elif outer and not any(entry[1] is None for entry in beside) and \
                outer[-1][1] is not None and name not in outer[-1][1]:
            yield f"{DOCUMENT.name}:{number}: {name}() is not called by the function above it"
        above = outer + [entry for entry in beside if entry[1] is None] + [(indent + 1, words)]


def labels_in(text):
    yield from re.findall(r"\b(?:PA|PM|PC|PE)\d+\b", text)
    for group in re.findall(r"\(([^()\n]*)\)", text):
        words = re.split(r"[\s,;]+|\band\b", group)
        yield from (word for word in words if re.fullmatch(r"[BTROEI]\d{1,2}", word))


def check_labels(text):
    defined = set(re.findall(r"^((?:PA|PM|PC|PE|[BTROE])\d+) ", section(text, "Rules", "="), re.M))
    defined |= set(re.findall(r"^   \* - (I\d+)$", text, re.M))
    paths = [path for pattern in COMMENTED for path in sorted(ROOT.glob(pattern))]
    for path in sorted(SOURCES.rglob("*.[ch]")) + paths:
        if not path.name.endswith(".mod.c"):
            for label in sorted(set(labels_in(path.read_text())) - defined):
                yield f"{path}: {label} is not defined in {DOCUMENT.name}"


def pointer_structs(code):
    """Return {struct: (file, names of its members that point to functions)}."""
    found = {}
    for file, text in code.texts.items():
        for struct in re.finditer(r"struct (\w+) \{\n(.*?)\n\}", csource.quiet(text), re.S):
            members = re.findall(r"\(\*(\w+)\)\(", struct[2])
            if members:
                found[struct[1]] = file, members
    return found


def routes(code):
    """Yield (file, name) of each way by which code is called other than by name. Structs with
    function pointers are not included: see pointer_structs()."""
    functions = {name for _, name in code.functions}
    for file, text in code.texts.items():
        quiet = csource.quiet(text)
        for one in re.findall(r"^static [\w \t*]+?\(\*(?:const )?(\w+)(?:\[\w*\])?\)\(", quiet, re.M):
            yield file, one
        for kind in ("INIT_WORK", "timer_setup", "INIT_DELAYED_WORK"):
            for one in re.findall(rf"\b{kind}\([^,]+, (\w+)", quiet):
                yield file, one
        for one in re.findall(r"^[a-z][\w \t*]*?\b(\w+)\([^;{}]*?\(\*\w+\)\([^;{}]*\)\n\{", quiet,
                              re.M):
            yield file, one
        for one in re.findall(r"(?:->|\.)\w+ = (\w+);", quiet):
            variable = re.search(rf"\b(?:bool|int|long|size_t|u8|u16|u32|u64) \*?{one}\b(?!\()", quiet)
            if one in functions and not variable:
                yield file, one


def check_routes(code, text):
    upcalls = section(text, "Upcalls", "-")
    structs = pointer_structs(code)
    for file, name in [*routes(code), *((file, name) for name, (file, _) in structs.items())]:
        if not re.search(rf"\b{name}\b", upcalls):
            yield f"{file}: {name} is not in the section Upcalls of {DOCUMENT.name}"
    everything = "\n".join(code.texts.values())
    for row in re.findall(r"^   \* - (.*?)(?=^   \* - |^\S|\Z)", upcalls, re.M | re.S):
        first = re.split(r"^     - ", row, flags=re.M)[0]
        for name in re.findall(r"^``struct (\w+)``", first):
            if name not in structs and f"struct {name} {{" in everything:
                yield f"{DOCUMENT.name}: Upcalls: struct {name} has no function pointers"
            for member in structs.get(name, ("", ()))[1]:
                if not re.search(rf"\b{member}\b", row):
                    yield f"{DOCUMENT.name}: Upcalls: {member} of struct {name} is missing"
        for word in re.findall(r"\w+", " ".join(re.findall(r"``([^`]*)``", first))):
            if not re.search(rf"\b{word}\b", everything):
                yield f"{DOCUMENT.name}: Upcalls: {word} is not in the code"


def check_names(code):
    for file, name in code.public:
        stem = pathlib.PurePath(file).stem
        homes = {stem, code.declared.get(name, stem)}
        if file not in UNCHECKED | {"trace.h"} and name not in SHORT_NAMES and \
                not any(re.match(rf"afr_{home}(_|$)", name) for home in homes):
            yield f"{file}: {name}() does not begin with afr_{stem}_"


def main():
    code, text = Code(), DOCUMENT.read_text()
    checks = (("call lists agree with the code", check_calls(code, text)),
              ("each rule label is defined", check_labels(text)),
              ("all upcalls are listed", check_routes(code, text)),
              ("functions are named after their file", check_names(code)))
    return ktap.results([(f"internals: {title}", wrong) for title, wrong in checks])


sys.exit(main())
