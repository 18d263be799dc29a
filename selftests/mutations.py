#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Do the tests bite? Put a bug into the module, and see which test turns red.

    mutations.py [--only PATTERN,...] [--slice I/N] [--list] [--no-baseline]

Each patch in selftests/mutations/ is a bug: a class of CVE of net/smc in our code,
or a check less on what a peer says. Its head tells what it stands for and which rows
have to turn red:

    Rows: lies PATTERN,...      of rogue-module.py, against a module that lies
          table PATTERN,...     of the socket table
          rogue PATTERN,...     of rogue
          SCRIPT                of selftests/net, without the ".sh"

First all these rows pass without any patch. Then each patch alone is built with
every checker there is (uml-debug). Prints KTAP, then a table and the score; not_smc.txt
there says which CVE has no like here, and why. Half a minute for each patch.
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
LAB = SRC / "selftests/lab"
PATCHES = SRC / "selftests/mutations"
LABS = SRC / "build/lab"
WORK = SRC / "build/mutations"      # main() adds the slice: others may run beside it
GUEST = "uml-debug"
TIMEOUT = 150           # seconds: a bug may be one that hangs
# What reports look like, worst first.
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
    path: pathlib.Path
    stands_for: str
    here: str
    rows: str


def read_mutation(path):
    head = dict(re.findall(r"^([\w-]+): (.*)$", path.read_text().split("\n---\n")[0], re.M))
    return Mutation(path.stem, path, head["Stands-for"], head["Here"], head["Rows"])


def call(command, log, **env):
    """Exit code; what it printed is kept."""
    with open(WORK / log, "w", encoding="utf-8") as out:
        return subprocess.run([str(word) for word in command], check=False, stdout=out,
                              stderr=subprocess.STDOUT, env={**os.environ, **env}).returncode


def build(source, where, *words):
    """Path of the module made from @source in @where."""
    log = f"{where}.build"
    if call([LAB / "build-module.sh", GUEST, *words], log, AFRDMA_SRC=str(source),
            AFRDMA_BUILD=str(WORK / where)):
        sys.exit(f"mutations: {where} does not build: see {WORK / log}")
    return WORK / where / GUEST / "net/afrdma/afrdma.ko"


def patched_source(mutation):
    source = WORK / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    shutil.copy2(SRC / "Kbuild", source)
    for part in ("net", "include"):
        shutil.copytree(SRC / part, source / part)
    if call(["patch", "-p1", "--no-backup-if-mismatch", "-d", source, "-i", mutation.path],
            "patch.log"):
        sys.exit(f"mutations: {mutation.name} does not apply: see {WORK}/patch.log")
    return source


def script_of(rows):
    """What the lab is to run for Rows, and whether one guest has to lie."""
    kind, _, what = rows.partition(" ")
    net = SRC / "selftests/net"
    if kind == "lies":
        return [net / "rogue-module.sh", "--only", what, "--seed", 1], True
    if kind == "table":
        return [net / "run-table.sh", "full", "--no-rogue", "--only", what], False
    if kind == "rogue":
        return [net / "run-table.sh", "quick", "--only-rogue", "--only", what,
                "--patience", 4], False
    return [net / f"{kind}.sh", *what.split()], False


def said(lab_pid, older):
    """What both guests of this run of the lab have printed so far. The name of its folder ends
    with its process id; @older: the folders before it, one of which may have the same id."""
    folders = set(LABS.glob(f"*-{lab_pid}")) - older
    return "".join(path.read_text(errors="replace") for name in ("console", "ktap")
                   for folder in folders for path in sorted(folder.glob(f"[ab]/{name}")))


def splat_in(text):
    for name, pattern in SPLATS:
        found = re.search(pattern, text)
        if found:
            return f"{name} ({found[1]})"
    return ""


def lab(rows, module, liar, log, timeout=TIMEOUT):
    """None if all passed; else the report and the row that were first."""
    script, lies = script_of(rows)
    command = [LAB / "run", "--guest", GUEST, "--parallel", "--timeout", timeout,
               "--module-a", module, "--module-b", liar if lies else module, "--", *script]
    older = set(LABS.glob("*"))
    with open(WORK / log, "w", encoding="utf-8") as out:
        run = subprocess.Popen([str(word) for word in command], stdout=out,
                               stderr=subprocess.STDOUT)
        while run.poll() is None:
            time.sleep(0.5)
            text = said(run.pid, older)
            if "not ok" in text or splat_in(text):
                time.sleep(2)       # for the rest of the report
                run.terminate()
                run.wait()
    if run.returncode == 0:
        return None
    return first_red(said(run.pid, older), (WORK / log).read_text(errors="replace"))


def first_red(text, log):
    """What has noticed, and the first test that failed."""
    rows = re.findall(r"not ok - (.*)", text)
    rows = [row for row in rows if "ledger:" not in row] or rows
    died = re.findall(r"lab: .*(?:failed|no end|silent).*", log)
    splat = splat_in(text)
    why = (rows or died or ["" if splat else "the lab: see its log"])[0]
    return splat, why.split(" # ")[0].replace("lab: ", "").strip()[:60]


def baseline(todo, honest, liar):
    """All rows without any patch; a list of what is wrong."""
    kinds = {}
    for one in todo:
        kind, _, what = one.rows.partition(" ")
        kinds.setdefault(kind, []).extend(what.split(",") if what else [])
    for kind, words in kinds.items():
        log = f"whole-{kind}.log"
        rows = f"{kind} {','.join(dict.fromkeys(words))}".strip()
        red = lab(rows, honest, liar, log, 1200)
        if red:
            yield f"{kind}: {' '.join(red)}: see {WORK / log}"


def selected(only):
    found = [read_mutation(path) for path in sorted(PATCHES.glob("*.patch"))]
    return [one for one in found
            if not only or any(fnmatch.fnmatch(one.name, word) for word in only.split(","))]


def make_mutant(one):
    """Its module, out of the way of the next one's."""
    return shutil.copy2(build(patched_source(one), "mutant"), WORK / f"{one.name}.ko")


def try_one(number, one, module, liar):
    """A line of the table: was it noticed, and by what."""
    start = time.monotonic()
    red = lab(one.rows, module, liar, f"{one.name}.log")
    splat, row = red or ("", "not caught")
    print(f"{'ok' if red else 'not ok'} {number} {one.name}: {one.here}")
    red_by = "; ".join(filter(None, (splat, row)))
    print(f"#   {red_by}; {time.monotonic() - start:.0f} s", flush=True)
    return bool(red), (one.name, one.rows, red_by)


def try_all(todo, liar):
    """While one is tried, the next is built."""
    with concurrent.futures.ThreadPoolExecutor(1) as builder:
        modules = [builder.submit(make_mutant, one) for one in todo]
        for number, (one, module) in enumerate(zip(todo, modules), 1):
            yield try_one(number, one, module.result(), liar)


def main():
    global WORK     # pylint: disable=global-statement
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names or patterns")
    parser.add_argument("--slice", default="1/1", help="I/N: every Nth, from the Ith on")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-baseline", action="store_true", help="the rows are known to pass")
    args = parser.parse_args()
    one, of = map(int, args.slice.split("/"))
    todo = selected(args.only)[one - 1::of]
    if args.list:
        print("\n".join(f"{one.name:20} {one.stands_for:26} {one.rows}" for one in todo))
        return 0
    WORK /= args.slice.replace("/", "of")
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run(["make", "-s", "-C", SRC / "selftests/net"], check=True)
    subprocess.run(["make", "-s", "-C", SRC, "tools"], check=True)
    liar = build(SRC, "liar", "CONFIG_AFRDMA_ROGUE=y")
    honest = build(SRC, "honest")
    print(f"KTAP version 1\n1..{len(todo)}", flush=True)
    for why in () if args.no_baseline else baseline(todo, honest, liar):
        print(f"Bail out! without any patch: {why}")
        return 2
    results = list(try_all(todo, liar))
    found = sum(red for red, _ in results)
    print("#\n" + "\n".join("# {:20} {:42} {}".format(*line) for _, line in results))
    print(f"#\n# {found} of {len(todo)} turn a test red; logs are in {WORK.relative_to(SRC)}")
    return 0 if found == len(todo) else 1


if __name__ == "__main__":
    sys.exit(main())
