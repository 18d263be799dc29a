#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check that the names in afrdma.rst and afrdma-internals.rst exist, and that lists are complete.

    doc_names.py            check, KTAP

Names are looked up in the code of the module, without comments, and in the text of the tools;
settings are those that gen_reference.py finds.
"""

import pathlib
import re
import sys

import csource
import gen_reference
import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "net/afrdma"
FOLDER = ROOT / "Documentation/networking"
USERS, ENGINEERS = "afrdma.rst", "afrdma-internals.rst"
COLUMNS = 100

# Names in the documents are looked up in these sources: the module, the uapi and the tools.
# Sources.__init__() adds the words of a few other files.
CODE = ["net/afrdma/**/*.[ch]", "include/uapi/linux/*.h", "tools/*/*.c"]
# System calls, which the module implements under other names.
CALLS = {"accept", "bind", "close", "connect", "getsockopt", "listen", "poll", "recv", "send",
         "setsockopt", "shutdown", "socket"}
ENUMS = ["afr_mode", "afr_where", "afr_attach_state", "afr_link_state"]


def words(text):
    return set(re.findall(r"\w+", text))


class Sources:
    def __init__(self):
        files = [path for pattern in CODE for path in sorted(ROOT.glob(pattern))]
        raw = {path: path.read_text() for path in files}
        self.code = "\n".join(csource.quiet(text) for text in raw.values())
        self.words = words(self.code) | words(gen_reference.read("proto/reason.h"))
        # Keys, formats and arguments of smctl are strings, which csource.quiet() removes.
        self.words |= {word for path, text in raw.items() if "tools" in path.parts
                       for word in words(text)}
        self.words |= {word for name in ("Makefile", "Kconfig")
                       for word in words((SOURCES / name).read_text())}
        # The names of injections are in the rows of the fault injection tests.
        self.words |= words((ROOT / "selftests/net/rogue_rows.py").read_text())
        # Names of workqueues, slab caches and other objects are strings in the module.
        self.words |= {word for text in raw.values() for word in re.findall(r'"(afr\w+)"', text)}
        self.files = {path.name for path in ROOT.rglob("*")
                      if not {"build", ".git"} & set(path.relative_to(ROOT).parts)}
        self.counters = {name.lower() for name, _ in
                         gen_reference.STAT.findall(gen_reference.read("netns.h"))}
        table = gen_reference.read("sysctl.c").split("afr_settings_table[] = {", 1)[1]
        self.settings = {name: (kind, low, high) for _, kind, name, low, high in
                         gen_reference.SETTING.findall(table.split("\n};", 1)[0])}


# Checks: each yields the errors that it finds.

def check_functions(sources, docs):
    for name, text in docs.items():
        for word in sorted(set(re.findall(r"\bafr_\w+", text))):
            if word not in sources.words:
                yield f"{name}: {word} does not exist"
    # Look up the names with "()" of afrdma-internals.rst, but not of afrdma.rst, which also names
    # functions of programs and of libc.
    for word in sorted(set(re.findall(r"\b(\w+)\(\)", docs[ENGINEERS]))):
        if word not in sources.words and word not in CALLS:
            yield f"{ENGINEERS}: nothing defines or calls {word}()"


def check_files(sources, docs):
    for name, text in docs.items():
        pattern = r"(?<![\w/<])\w[\w./-]*\.(?:[ch]|py|sh|rst|yaml|mutation)\b"
        for path in sorted(set(re.findall(pattern, text))):
            if not (ROOT / path).exists() and ("/" in path or path not in sources.files):
                yield f"{name}: {path} does not exist"
    for path in sorted(SOURCES.glob("*.c")):
        if path.name not in docs[ENGINEERS] and not (SOURCES / (path.stem + ".h")).exists() and \
                not path.name.endswith(".mod.c"):
            yield f"{ENGINEERS}: {path.name} is not named"


def check_settings(sources, docs):
    for name, text in docs.items():
        for word in sorted(set(re.findall(r"net\.afrdma\.(\w+)", text))):
            if word not in sources.settings:
                yield f"{name}: sysctl net.afrdma.{word} does not exist"
    table = docs[USERS].split("\n.. settings\n", 1)[-1].split("\n.. settings end\n", 1)[0]
    cells = [re.split(r"\s{2,}", line) for line in table.split("\n") if line.startswith("``")]
    rows = {row[0].strip("`"): row[2:] for row in cells}
    defaults = {a or c: b or f"``{d}``" for a, b, c, d in
                gen_reference.DEFAULT.findall(gen_reference.read("netns.c"))}
    for setting, bounds in sources.settings.items():
        want = [defaults[setting], gen_reference.bounds(*bounds)]
        if rows.get(setting) != want:
            yield f"{USERS}: the row of {setting} is {rows.get(setting)}, not {want}"
    for name in sorted(set(rows) - set(sources.settings)):
        yield f"{USERS}: sysctl {name} does not exist"


def check_names(sources, docs):
    """Look up words in literals that look like names: counters, reasons, flags, fields."""
    known = sources.words | sources.counters | set(sources.settings)
    for name, text in docs.items():
        for literal in sorted(set(re.findall(r"``([^`\n]+)``", text))):
            for word in re.findall(r"(?<![\w./-])[A-Za-z][A-Za-z0-9]*_\w+", literal):
                if word not in known:
                    yield f"{name}: ``{literal}``: {word} does not exist"
            if re.fullmatch(r"[A-Z]{4,}", literal) and literal not in known:
                yield f"{name}: ``{literal}`` does not exist"


def check_complete(sources, docs):
    for enum in ENUMS:
        found = re.search(rf"enum {enum} \{{(.*?)\}}", sources.code, re.S)
        for entry in re.findall(r"\bAFR_\w+", found[1] if found else ""):
            if f"``{entry}``" not in docs[ENGINEERS]:
                yield f"{ENGINEERS}: {entry} of enum {enum} is missing"
        if not found:
            yield f"enum {enum} does not exist"


def check_counted(sources, _):
    """Each counter of netns.h is counted somewhere in the module."""
    for name in sorted(sources.counters):
        if f"AFR_STAT_{name.upper()}" not in sources.words:
            yield f"counter {name}: no code counts AFR_STAT_{name.upper()}"


def check_columns(*_):
    """All documents but those with generated tables."""
    for path in sorted((ROOT / "Documentation/networking").glob("*.rst")):
        if path.name in ("afrdma-support.rst", "afrdma-wire.rst"):
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line) > COLUMNS:
                yield f"{path.name}:{number}: {len(line)} columns"


CHECKS = [
    ("functions in the documents exist", check_functions),
    ("files in the documents exist, and all sources are named", check_files),
    ("settings exist, and are listed with default and bounds", check_settings),
    ("counters, reasons and other names exist", check_names),
    ("all states are described", check_complete),
    ("each counter is counted", check_counted),
    (f"lines have at most {COLUMNS} columns", check_columns),
]


def main():
    sources = Sources()
    docs = {name: (FOLDER / name).read_text() for name in (USERS, ENGINEERS)}
    return ktap.run(CHECKS, sources, docs)


if __name__ == "__main__":
    sys.exit(main())
