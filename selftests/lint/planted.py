#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test of layers.py, circles.py and internals.py: they must detect faults in the code.

    planted.py

Each of the faults below is planted in a copy of a folder; the check must then fail and report that
fault. Without a fault the check must pass. Prints KTAP.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import ktap

LINT = pathlib.Path(__file__).resolve().parent
SRC = LINT.parent.parent
LABEL = "PM" "99"       # in two parts: internals.py also searches this file for labels
FUNCTION = "static void planted(struct afr_conn *conn)\n{{\n\t{}\n}}\n"

# For each fault: description, check, folder, {file: text to append, or text and its replacement},
# and a part of the error that the check must print.
FAULTS = (
    ("a call of a file that stands below", "layers", "net/afrdma",
     {"link.c": FUNCTION.format("afr_conn_schedule(conn);")}, "uses afr_conn_schedule of conn.c"),
    ("a pointer that is set at run time", "layers", "net/afrdma",
     {"link.c": FUNCTION.format("conn->fn = afr_move_run;")}, "uses afr_move_run of move.c"),
    ("a macro in a header", "layers", "net/afrdma",
     {"channel.h": "#define PLANTED(conn) \\\n\tafr_conn_schedule(conn)\n"},
     "channel.h:"),
    ("a table", "layers", "net/afrdma",
     {"link.c": "static void (*const planted[])(struct afr_conn *) = {\n\tafr_move_run,\n};\n"},
     "uses afr_move_run of move.c"),
    ("a variable", "layers", "net/afrdma",
     {"move.c": "unsigned int afr_planted;\n", "link.c": FUNCTION.format("afr_planted++;")},
     "uses afr_planted of move.c"),
    ("a function without the prefix", "layers", "net/afrdma",
     {"move.c": "void planted(void)\n{\n}\n", "link.c": FUNCTION.format("planted();")},
     "planted has no prefix"),
    ("an include of a header that stands below", "layers", "net/afrdma",
     {"channel.h": '#include "conn.h"\n'}, "includes conn.h"),
    ("a file that LAYERS does not name", "layers", "net/afrdma", {"planted.h": "\n"},
     "planted.h:1: not in LAYERS"),
    ("two files that use each other", "circles", "tools/smctl",
     {"print.c": "void planted_print(void)\n{\n\tplanted_nl();\n}\n",
      "nl.c": "void planted_nl(void)\n{\n\tplanted_print();\n}\n"}, "planted_print of print.c"),
    ("two files, one of which uses the other by a macro", "circles", "tools/smctl",
     {"print.h": "void planted_print(void);\n#define PLANTED() planted_print()\n",
      "print.c": "void planted_print(void)\n{\n\tplanted_nl();\n}\n",
      "nl.c": "void planted_nl(void)\n{\n\tPLANTED();\n}\n"}, "planted_print of print.c"),
    ("two headers that include each other", "circles", "tools/smctl",
     {"print.h": '#include "nl.h"\n', "nl.h": '#include "print.h"\n'}, '"print.h" of print.h'),
    ("a call list names a function that is gone", "internals", "net/afrdma",
     {"sock.c": ("lock_client(", "lock_planted(")}, "sock.c has no lock_client()"),
    ("a call list names a call that is gone", "internals", "net/afrdma",
     {"sock.c": ("\tlock_client(", "\tplanted_lock(")},
     "lock_client() is not called by the function above it"),
    ("a rule label without a definition", "internals", "net/afrdma",
     {"link.c": f"/* as in {LABEL} */\n"}, f"{LABEL} is not defined"),
    ("a struct with a function pointer", "internals", "net/afrdma",
     {"link.h": "struct afr_planted {\n\tvoid (*run)(void);\n};\n"}, "afr_planted is not in"),
    ("an array of function pointers", "internals", "net/afrdma",
     {"link.c": "static int (*const planted[])(void) = { };\n"}, "planted is not in"),
    ("an argument that points to a function", "internals", "net/afrdma",
     {"link.c": "static void planted(void (*run)(void))\n{\n}\n"}, "planted is not in"),
    ("a function that is stored in a member", "internals", "net/afrdma",
     {"link.c": FUNCTION.format("conn->fn = planted;")}, "planted is not in"),
    ("the same, of a function that returns a number", "internals", "net/afrdma",
     {"link.c": FUNCTION.format("conn->fn = planted;").replace("void", "int")},
     "planted is not in"),
    ("a pointer to a function that returns a pointer", "internals", "net/afrdma",
     {"link.c": "static struct sock *(*planted)(struct sock *sk);\n"}, "planted is not in"),
    ("a member that the document does not name", "internals", "net/afrdma",
     {"device.h": ("\tvoid (*lost)(", "\tvoid (*planted)(void);\n\tvoid (*lost)(")},
     "planted of struct afr_device_ops is missing"),
    ("an upcall that is gone", "internals", "net/afrdma",
     {"arrival.c": ("arrival_came", "arrival_went")}, "arrival_came is not in the code"),
    ("a function that is not named after its file", "internals", "net/afrdma",
     {"link.c": "void afr_planted(void)\n{\n}\n"}, "afr_planted() does not begin with afr_link_"),
)


def run(check, folder):
    done = subprocess.run([sys.executable, LINT / f"{check}.py", folder], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def planted(check, folder, texts):
    """The exit status and output of the check for a copy of the folder with the changes @texts."""
    with tempfile.TemporaryDirectory() as work:
        copy = pathlib.Path(work) / "copy"
        shutil.copytree(SRC / folder, copy, ignore=shutil.ignore_patterns("*.o", "*.cmd", "*.ko"))
        for name, text in texts.items():
            old = (copy / name).read_text() if (copy / name).exists() else ""
            new = old + text if isinstance(text, str) else old.replace(*text)
            assert new != old, f"{name} has no {text[0]}"
            (copy / name).write_text(new)
        return run(check, copy)


def unnoticed(check, folder, texts, part):
    """The output of the check if it is wrong, otherwise []. With a fault (@part is not empty), the
    check must fail and print @part; without a fault, it must pass."""
    status, text = planted(check, folder, texts)
    good = part in text and "Traceback" not in text and (status == 1 if part else not status)
    return [] if good else text.splitlines() or ["no output"]


def main():
    checks = []
    clean = (("nothing", check, folder, {}, "") for check, folder in
             (("layers", "net/afrdma"), ("circles", "tools/smctl"),
              ("internals", "net/afrdma")))
    for what, *fault in (*clean, *FAULTS):
        checks.append((f"planted: {fault[0]} of {fault[1]}: {what}",
                       lambda fault=fault: unnoticed(*fault)))
    return ktap.run(checks)


sys.exit(main())
