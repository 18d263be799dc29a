#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test of results.py: for which later commits does a result hold, and what does it say of the
guests? Prints KTAP."""
import os
import pathlib
import subprocess
import sys
import tempfile

SRC = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SRC / "selftests"))
import ktap  # pylint: disable=wrong-import-position

# Name, file, what is replaced there, replacement, stage, whether its result holds afterwards
CASES = (
    ("a document", "README.md", "AF_RDMA", "AF_RDMA, ", "uml", True),
    ("a comment in C", "net/afrdma/move.c", "/*\n", "/* changed */\n/*\n", "uml", True),
    ("code in C", "net/afrdma/move.c", "return;", "return; return;", "uml", False),
    ("a string in C", "net/afrdma/proto/reason.c", '"UNKNOWN"', '"/* */"', "uml", False),
    ("blanks in a string in C", "net/afrdma/proto/reason.c", '"', '"  ', "uml", False),
    ("a comment in Python", "selftests/net/pace.py", "\nimport", "\n# new\nimport", "uml-debug",
     True),
    ("a docstring", "selftests/lab/machines.py", '"""Guests', '"""New guests', "uml", True),
    ("code in Python", "selftests/net/pace.py", "time.sleep(QUIET)", "time.sleep(QUIET + 0)", "uml-debug", False),
    ("a comment in a script", "selftests/net/pace.sh", "\n\n", "\n# new\n\n", "uml-debug", True),
    ("code in a script", "selftests/net/pace.sh", "set -uo", "set -ue -o", "uml-debug", False),
    ("a # that begins no comment", "selftests/lab/guest-lib.sh", "# $", "# new $", "uml", False),
    ("a script without a suffix", "selftests/lab/run", "    # Not in", "    # not in", "uml", True),
    ("code of other stages", "selftests/faults/load.c", "return", "return 0; return", "uml", True),
    ("a header of several programs", "selftests/frame_samples.h", "FRAME_BAD", "HELLO_BAD", "rogue",
     False),
    ("rows of the socket table", "selftests/net/stream.c", "return", "return 0; return",
     "rogue_uml", True),
    ("rows of the socket table, and a stage that runs them", "selftests/net/stream.c", "return",
     "return 0; return", "table_uml_1of2", False),
    ("a period in the table of parts", "selftests/check/parts.sh", "\t10\tuml\t",
     "\t20\tuml\t", "uml", True),
    ("a guest in the table of parts", "selftests/check/parts.sh", "\tuml\t", "\tuml-debug\t",
     "uml", False),
    ("code of its own", "selftests/faults/load.c", "return", "return 0; return", "faults", False),
)


def in_clone(clone, env, *words):
    return subprocess.run(words, cwd=clone, env=env, check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def holds_after(clone, env, path, old, new, stage):
    """Does a result hold after a change of the file? Returns a text if the test itself fails."""
    commit = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-qam",
              "x")
    in_clone(clone, env, "git", "reset", "-q", "--hard", "origin/HEAD")
    in_clone(clone, env, "cp", SRC / "selftests/check/results.py", "selftests/check")
    in_clone(clone, env, *commit)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, env=env, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    results = "selftests/check/results.py"
    if not in_clone(clone, env, results, "add", stage, head, "1", "0", "0", "1", "README.md") or \
       not in_clone(clone, env, results, "holds", stage):
        return "the result does not hold for its own commit"
    text = (clone / path).read_text()
    if old not in text:
        return f"{path} does not contain {old!r}"
    (clone / path).write_text(text.replace(old, new, 1))
    if not in_clone(clone, env, *commit):
        return "git commit failed"
    return in_clone(clone, env, results, "holds", stage)


# Lines of a log, and what the result says: guests, kernel, seed
LOGS = (
    ("two guests", "lab: uml (uml), 2 guests, with x.ko\na| Linux version 6.12.117 x\nseed 7\n",
     ["uml/uml", "6.12.117", "7"]),
    ("two namespaces of a guest", "lab: uml-7.2 (uml), 2 namespaces, with x.ko\n"
     "a| Linux version 7.2.13 x\n", ["uml-7.2/uml", "7.2.13", "-"]),
    ("no guests", "seed 7\nseed 8\n", ["-", os.uname().release, "7,8"]),
)


def said_of(clone, env, text):
    """The last fields of the result of a stage with this log."""
    log = clone / "log"
    log.write_text(text)
    in_clone(clone, env, SRC / "selftests/check/results.py", "add", "x", "HEAD", "1", "0", "0", "1",
             log)
    return (clone.parent / "check-results.tsv").read_text().split("\n")[-2].split("\t")[-3:]


def main():
    results = []
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder) / "clone"
        env = dict(os.environ, AFRDMA_CACHE=folder)
        subprocess.run(["git", "clone", "-q", "--shared", SRC, clone], check=True)
        for name, *case, expected in CASES:
            got = holds_after(clone, env, *case)
            results.append((f"results.py: {name}",
                            [] if got == expected else [f"got {got}, expected {expected}"]))
        for name, text, expected in LOGS:
            got = said_of(clone, env, text)
            results.append((f"results.py: {name}",
                            [] if got == expected else [f"got {got}, expected {expected}"]))
    return ktap.results(results)


if __name__ == "__main__":
    sys.exit(main())
