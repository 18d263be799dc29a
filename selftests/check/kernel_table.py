#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Print the table in README.md of what has passed on which kernel.

The kernels are those of selftests/lab/kernels.sh, the results those that
selftests/check/results.py has kept in Documentation/test-results.tsv. If CELLS has a reason for a
cell, the cell refers to that reason below the table by a number. Otherwise CELLS names a stage or
all parts of a kind, and the cell is "not run" if one of them has no result. Else it is the number
of their tests that have failed or, if none has failed, of those that have passed.
"""
import pathlib
import re
import subprocess

SRC = pathlib.Path(__file__).resolve().parent.parent.parent

COLUMNS = ("Build: gcc, clang, W=1, sparse", "Socket table", "Faults", "KASAN, lockdep, kmemleak",
           "Network namespaces")
NO_UML = ("The lab has no debug kernel of this series. The code of the module is the same but for "
          "compat.h.")
RXE_NETNS = ("Soft-RoCE of this kernel serves the initial network namespace only, so there is "
             "nothing to test with. In others, connections stay on TCP, and say why.")
RT = "Debian has no debug flavour of PREEMPT_RT."

# For each kernel, what each column shows: "stage NAME", a kind of parts, or a reason.
CELLS = {
    "6.1": ("build_vm-6.1", "stage vm-6.1", "faults_vm-6.1", (NO_UML,), (RXE_NETNS,)),
    "6.12": ("build_vm-6.12", "table_uml", "stage faults", "stage uml-debug", (RXE_NETNS,)),
    "7.2": ("stage build", "table_uml-7.2", "faults_uml-7.2", "table_uml-7.2-debug",
            "netns_uml-7.2"),
    "7.2-rt": ("build_vm-7.2-rt", "quick_vm-7.2-rt", "faults_vm-7.2-rt", (RT,), "netns_vm-7.2-rt"),
}


def series():
    """The series of the kernels in the lab's table: what follows "vm-"."""
    names = subprocess.run([SRC / "selftests/lab/kernels.sh", "list"], check=True, text=True,
                           capture_output=True).stdout.split()
    return sorted((name[3:] for name in names if name.startswith("vm-")),
                  key=lambda name: [int(n) for n in re.findall(r"\d+", name)] + [len(name)])


def results():
    """The kept results: {name: (passed, failed)}."""
    lines = (SRC / "Documentation/test-results.tsv").read_text().splitlines()
    fields = lines[1].lstrip("# ").split("\t")
    found = {}
    for line in lines[2:]:
        result = dict(zip(fields, line.split("\t")))
        found[result["name"]] = int(result["passed"]), int(result["failed"])
    return found


def parts():
    """The names of all stages and parts, in the order of check.sh."""
    out = subprocess.run([SRC / "selftests/check.sh", "list"], check=True, text=True,
                         capture_output=True).stdout
    return [line.split()[0] for line in out.splitlines() if line.strip()]


def run_by(cell, names):
    """The stage or the parts that @cell of CELLS names."""
    kind, _, stage = cell.partition(" ")
    found = [stage] if stage else [name for name in names
                                   if re.fullmatch(re.escape(kind) + r"(_\d+of\d+)?", name)]
    assert found and set(found) <= set(names), f"no stage or part is named {cell}"
    return found


def main():
    kept, names, notes = results(), parts(), []
    print("| Kernel | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for kernel in series():
        row = []
        for cell in CELLS[kernel]:
            if isinstance(cell, tuple):
                if cell[0] not in notes:
                    notes.append(cell[0])
                row.append(f"[{notes.index(cell[0]) + 1}]")
                continue
            got = [kept.get(name) for name in run_by(cell, names)]
            if None in got:
                row.append("not run")
            elif sum(failed for _, failed in got):
                row.append(f"**{sum(failed for _, failed in got)} failed**")
            else:
                row.append(f"{sum(passed for passed, _ in got):,} passed")
        print(f"| {kernel} | " + " | ".join(row) + " |")
    print()
    for number, note in enumerate(notes, 1):
        print(f"[{number}] {note}\\" if number < len(notes) else f"[{number}] {note}")


if __name__ == "__main__":
    main()
