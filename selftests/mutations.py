#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Mutation tests: puts one bug at a time into a copy of the module; a test has to fail.

    mutations.py [--only PATTERN,...] [--slice I/N] [--list] [--check] [--no-baseline]

Each file in selftests/mutations/ is a bug: the class of a CVE of net/smc, as it would look in this
code, or a value of the peer that is not checked. Its head describes it and names the rows that have
to fail:

    Rows: byzantine PATTERN,... of rogue-module.py, against a Byzantine peer
          table PATTERN,...     of the socket table
          rogue PATTERN,...     of rogue
          SCRIPT                of selftests/net, without the ".sh"
    Repeat: N                   (byzantine only) run them N times: the bug shows only in some orders
                                of events

After "---" follow the changes, by function, as lines of a diff without line numbers:

    in FUNCTION()
    -lines to remove, which must exist once
    +lines that replace them

Indentation, line breaks and comments do not matter. Lines that begin with a blank are context: they
are not changed, but show where to insert.

First, all these rows have to pass without a bug. Then a module with each bug is built and run
with all checkers (uml-debug), half a minute for each. Prints KTAP, then a table and the score.
selftests/mutations/not_smc.txt names the CVE that has no counterpart, and why. --check only
tests whether each bug still fits the code.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

SRC = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SRC / "selftests/lint"))
import csource      # pylint: disable=wrong-import-position
import ktap         # pylint: disable=wrong-import-position

LAB = SRC / "selftests/lab"
BUGS = SRC / "selftests/mutations"
LABS = SRC / "build/lab"
WORK = SRC / "build/mutations"      # main() adds the slice: slices can run at the same time
GUEST = "uml-debug"
TIMEOUT = 150           # seconds: with some bugs the guests hang
# Patterns of reports, the most severe first.
SPLATS = (("KASAN", r"KASAN: ([\w-]+)"), ("oops", r"(Kernel panic|Unable to handle|Oops)"),
          ("lockdep", r"(possible \w+ lock|suspicious RCU|inconsistent lock|bad unlock)"),
          ("sleep", r"(sleeping function|scheduling while)"),
          ("refcount", r"refcount_t: ([\w -]+)"), ("objects", r"ODEBUG: (\w+)"),
          ("list", r"(list_\w+ corruption)"), ("leak", r"not ok - ledger: (kmemleak)"),
          ("assertion", r"WARNING: .* (afr_\w+|[\w.]+)\+0x\w+/.*afrdma"),
          ("warning", r"WARNING: (.*)"))


@dataclass
class Mutation:
    name: str
    stands_for: str
    here: str
    rows: str
    repeat: int
    changes: list           # (function, lines of a diff)


class Misfit(Exception):
    """A bug cannot be applied to the code; the text of the exception is the reason."""


def read_mutation(path):
    text, _, body = path.read_text().partition("\n---\n")
    head = dict(re.findall(r"^([\w-]+): (.*)$", text, re.M))
    parts = re.split(r"^in (\w+)\(\)\n", body, flags=re.M)
    changes = list(zip(parts[1::2], (part.splitlines() for part in parts[2::2])))
    if parts[0] or not changes:
        raise Misfit(f"{path.name}: \"in FUNCTION()\" is missing")
    return Mutation(path.stem, head["Stands-for"], head["Here"], head["Rows"],
                    int(head.get("Repeat", "1")), changes)


def home_of(function, folder):
    """The file of a function, and the indices, from 0, of its first line and of the line behind its
    last one."""
    found = [(path, one.head - 1, one.last) for path in sorted(folder.rglob("*.[ch]"))
             if function in path.read_text() for one in csource.functions(path.read_text())
             if one.name == function]
    if len(found) != 1:
        raise Misfit(f"{function}() is defined {len(found)} times")
    return found[0]


def pattern_of(lines):
    """A pattern for these lines that ignores line breaks, indentation and comments."""
    code = re.sub(r"/\*.*?\*/", " ", "\n".join(lines), flags=re.S)
    tokens = re.findall(r"\w+|[^\w\s]", code)
    return re.compile(r"(?:\s|/\*.*?\*/)*".join(map(re.escape, tokens)), re.S)


def change(function, diff, folder):
    """Make one change in the sources in @folder."""
    path, first, last = home_of(function, folder)
    lines = path.read_text().split("\n")
    text = "\n".join(lines[first:last])
    found = list(pattern_of([line[1:] for line in diff if line[0] in " -"]).finditer(text))
    if len(found) != 1:
        raise Misfit(f"the lines to change exist {len(found)} times in {function}()")
    new = "\n".join(line[1:] for line in diff if line[0] in " +")
    text = text[:found[0].start()] + new + text[found[0].end():]
    path.write_text("\n".join([*lines[:first], text, *lines[last:]]))


def call(command, log, **env):
    """Run a command. Returns its exit status; its output is in @log."""
    with open(WORK / log, "w", encoding="utf-8") as out:
        return subprocess.run([str(word) for word in command], check=False, stdout=out,
                              stderr=subprocess.STDOUT, env={**os.environ, **env}).returncode


def build(source, where, *words):
    """Build the module from @source in @where. Returns its path."""
    log = f"{where}.build"
    if call([LAB / "build-module.sh", GUEST, *words], log, AFRDMA_SRC=str(source),
            AFRDMA_BUILD=str(WORK / where)):
        sys.exit(f"mutations: {where} does not build: see {WORK / log}")
    return WORK / where / GUEST / "net/afrdma/afrdma.ko"


def mutated_source(mutation):
    """A copy of the sources with the bug in it."""
    source = WORK / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    shutil.copy2(SRC / "Kbuild", source)
    for part in ("net", "include"):
        shutil.copytree(SRC / part, source / part)
    for function, diff in mutation.changes:
        change(function, diff, source / "net")
    return source


def script_of(rows, repeat):
    """The command that runs @rows in the lab, and whether one guest has to be a Byzantine peer."""
    kind, _, what = rows.partition(" ")
    net = SRC / "selftests/net"
    if kind == "byzantine":
        return [net / "rogue-module.sh", "--only", what, "--seed", 1,
                "--repeat", repeat], True
    if kind == "table":
        return [net / "run-table.sh", "full", "--no-rogue", "--only", what], False
    if kind == "rogue":
        return [net / "run-table.sh", "quick", "--only-rogue", "--only", what,
                "--patience", 4], False
    return [net / f"{kind}.sh", *what.split()], False


def guest_output(lab_pid, older):
    """The output so far of both guests of the lab run with process id @lab_pid. The name of a run's
    folder ends with its process id. @older: folders of earlier runs, one of which may have had the
    same id."""
    folders = set(LABS.glob(f"*-{lab_pid}")) - older
    return "".join(path.read_text(errors="replace") for name in ("console", "ktap")
                   for folder in folders for path in sorted(folder.glob(f"[ab]/{name}")))


def splat_in(text):
    """The most severe report in @text, or ""."""
    for name, pattern in SPLATS:
        found = re.search(pattern, text)
        if found:
            return f"{name} ({found[1]})"
    return ""


# The result of lab() if the run did not pass, but its output names no cause: no failed test, no
# report in the kernel log, and no guest that failed. Also if the lab could not start.
NO_CAUSE = "", "the lab: see its log"


def lab(rows, module, byzantine, log, timeout=TIMEOUT, repeat=1):
    """Run the rows in the lab. Returns None if all have passed; else the report in the kernel log
    and the first row that failed."""
    script, injects = script_of(rows, repeat)
    command = [LAB / "run", "--guest", GUEST, "--parallel", "--timeout", timeout,
               "--module-a", module, "--module-b", byzantine if injects else module, "--", *script]
    older = set(LABS.glob("*"))
    with open(WORK / log, "w", encoding="utf-8") as out:
        run = subprocess.Popen([str(word) for word in command], stdout=out,
                               stderr=subprocess.STDOUT)
        while run.poll() is None:
            time.sleep(0.5)
            text = guest_output(run.pid, older)
            if "not ok" in text or splat_in(text):
                time.sleep(2)       # for the rest of the report
                run.terminate()
                run.wait()
    if run.returncode == 0:
        return None
    if run.returncode == 2:
        return NO_CAUSE
    return first_failure(guest_output(run.pid, older), (WORK / log).read_text(errors="replace"))




def first_failure(text, log):
    """The report in the kernel log, and the first test that failed."""
    rows = re.findall(r"not ok - (.*)", text)
    rows = [row for row in rows if "ledger:" not in row] or rows
    lab_errors = re.findall(r"lab: .*(?:failed|no end|silent).*", log)
    splat = splat_in(text)
    if not (rows or lab_errors or splat):
        return NO_CAUSE
    why = (rows or lab_errors or [""])[0]
    return splat, why.split(" # ")[0].replace("lab: ", "").strip()[:60]


def baseline(todo, unmodified, byzantine):
    """Run all rows without a bug. Yields the failures."""
    kinds = {}
    for one in todo:
        kind, _, what = one.rows.partition(" ")
        kinds.setdefault(kind, []).extend(what.split(",") if what else [])
    for kind, words in kinds.items():
        log = f"whole-{kind}.log"
        rows = f"{kind} {','.join(dict.fromkeys(words))}".strip()
        failure = lab(rows, unmodified, byzantine, log, 1200)
        if failure:
            yield f"{kind}: {' '.join(failure)}: see {WORK / log}"


def selected(only):
    found = [read_mutation(path) for path in sorted(BUGS.glob("*.mutation"))]
    return [one for one in found
            if not only or any(fnmatch.fnmatch(one.name, word) for word in only.split(","))]


def make_mutant(one):
    """Build the mutant. Returns the path of a copy with a name of its own, since the next mutant is
    built while this one is tested."""
    return shutil.copy2(build(mutated_source(one), "mutant"), WORK / f"{one.name}.ko")


def try_one(number, one, module, byzantine):
    """Returns whether a test failed, and a line of the table."""
    start = time.monotonic()
    failure = lab(one.rows, module, byzantine, f"{one.name}.log", repeat=one.repeat)
    # The run was skipped, the lab failed, or first_failure() found no failure: no test has seen
    # the bug.
    if failure == NO_CAUSE:
        failure = None
    splat, row = failure or ("", "not caught, or the lab failed: see its log")
    print(ktap.result(failure, number, f"{one.name}: {one.here}"))
    failed_by = "; ".join(filter(None, (splat, row)))
    print(f"#   {failed_by}; {time.monotonic() - start:.0f} s", flush=True)
    return bool(failure), (one.name, one.rows, failed_by)


def try_all(todo, byzantine):
    """Test the mutants. While one is tested, the next one is built."""
    with concurrent.futures.ThreadPoolExecutor(1) as builder:
        modules = [builder.submit(make_mutant, one) for one in todo]
        for number, (one, module) in enumerate(zip(todo, modules), 1):
            yield try_one(number, one, module.result(), byzantine)


def misfits(todo):
    """Yield a line for each bug that does not fit the code."""
    for one in todo:
        try:
            mutated_source(one)
        except Misfit as why:
            yield f"{one.name}: {why}"


def main():
    global WORK     # pylint: disable=global-statement
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names or patterns")
    parser.add_argument("--slice", default="1/1", help="I/N: every Nth, from the Ith on")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true", help="only test whether each fits the code")
    parser.add_argument("--no-baseline", action="store_true", help="do not run rows without a bug")
    args = parser.parse_args()
    one, of = map(int, args.slice.split("/"))
    todo = selected(args.only)[one - 1::of]
    if args.list:
        print("\n".join(f"{one.name:20} {one.stands_for:26} {one.rows}" for one in todo))
        return 0
    WORK /= args.slice.replace("/", "of")
    WORK.mkdir(parents=True, exist_ok=True)
    if args.check:
        return ktap.run([(f"mutations: all {len(todo)} fit", misfits)], todo)
    subprocess.run(["make", "-s", "-C", SRC / "selftests/net"], check=True)
    subprocess.run(["make", "-s", "-C", SRC, "tools"], check=True)
    byzantine = build(SRC, "byzantine", "CONFIG_AFRDMA_BYZANTINE=y")
    unmodified = build(SRC, "unmodified")
    ktap.begin(len(todo))
    for why in () if args.no_baseline else baseline(todo, unmodified, byzantine):
        print(f"Bail out! without a bug: {why}")
        return 2
    results = list(try_all(todo, byzantine))
    found = sum(failure for failure, _ in results)
    print("#\n" + "\n".join("# {:20} {:42} {}".format(*line) for _, line in results))
    print(f"#\n# {found} of {len(todo)} make a test fail; logs are in {WORK.relative_to(SRC)}")
    return 0 if found == len(todo) else 1


if __name__ == "__main__":
    sys.exit(main())
