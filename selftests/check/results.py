#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Results of the stages and parts of check.sh, and the commits that they belong to.

    results.py add NAME COMMIT PASSED FAILED SKIPPED SECONDS LOG    add a result
    results.py holds NAME       exit status 0 if NAME passed last, with a result valid for this tree
    results.py status NAME...   print a table; exit status 1 if a last result is a failure
    results.py keep NAME...     write the last results into the tree, for readers of a clone

A result belongs to a commit. It is "dirty", and never valid, if tracked files were modified, or if
another commit was checked out while the stage or part ran. Except for lint, a result is also valid
for a later commit that differs only in comments of C and Python files and of shell scripts, in
durations and periods in the table of parts.sh, and in files that only other stages and parts, or
none, use (PRIVATE). Most documents are among these files.

Results are lines of ~/.cache/afrdma/check-results.tsv (AFRDMA_CACHE), which all trees on this
machine share and "make clean" does not delete. Results in the file that "keep" writes count as
older than those.
"""
import ast
import calendar
import functools
import os
import pathlib
import re
import subprocess
import sys
import time

SRC = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = pathlib.Path(os.environ.get("AFRDMA_CACHE") or pathlib.Path.home() / ".cache/afrdma")
FILE = CACHE / "check-results.tsv"
KEPT = SRC / "Documentation/test-results.tsv"
FIELDS = ("date", "name", "commit", "dirty", "passed", "failed", "skipped", "seconds", "guests",
          "kernel", "seed")
# PRIVATE: the files and folders that only some stages and parts depend on. The pattern of each is
# a regular expression that matches the beginnings of the names of these stages and parts, after
# "-" and "_" in the names were replaced by blanks. The pattern "-" matches no name. No pattern
# matches lint, which reads all files: see of_this_tree(). If a path is inside another path of the
# table, a stage or part depends on it only if the patterns of both paths match.
# GUESTS matches the stages and parts that run selftests/net in guests, RUN those that run
# "smctl run".
GUESTS = ("siw|uml|vm|table|quick|rings|paths|wireshark|kcsan|netns|numa|containers|byzantine|"
          "forged|rogue|sanitized|scripts|mutations")
SCRIPTS = "siw|paths|wireshark|uml back|uml debug|vm|sanitized|scripts|mutations"
BYZANTINE = "uml|byzantine|forged|mutations"
RUN = f"unit|build|programs|suite|bench|demo|containers|{SCRIPTS}"
PRIVATE = {
    ".ci": "-",
    "Documentation": "unit",
    "Documentation/perf-notebook.rst": "-",
    "Documentation/perf-notes.rst": "-",
    "Documentation/test-results.tsv": "-",
    "README.md": "-",
    "SECURITY.md": "-",
    "selftests/check/README.rst": "-",
    "selftests/check/install.sh": "unit",
    "selftests/check/kcsan.sh": "kcsan",
    "selftests/check/kernel_table.py": "-",
    "selftests/check/packages.sh": "-",
    "selftests/check/readme.sh": "-",
    "selftests/check/results.py": "-",
    "selftests/check/results_test.py": "-",
    "selftests/check/watch.sh": "-",
    "selftests/lint": "build|unit|mutations",
    "selftests/unit": "unit|fuzz|oracle|mutations",
    "selftests/net": f"unit|build|oracle|faults|storms|{GUESTS}",
    "selftests/net/README.rst": "-",
    "selftests/net/oracle.sh": "unit|oracle",
    "selftests/net/netns.py": "uml 7.2|netns",
    "selftests/net/netns.sh": "uml 7.2|netns",
    "selftests/net/numa.py": "numa",
    "selftests/net/numa.sh": "numa",
    "selftests/net/arrival.sh": SCRIPTS,
    "selftests/net/death.py": f"{SCRIPTS}|faults|storms|uml 7.2|netns|numa",
    "selftests/net/death.sh": SCRIPTS,
    "selftests/net/dumps.sh": SCRIPTS,
    "selftests/net/hole.py": SCRIPTS,
    "selftests/net/hole.sh": SCRIPTS,
    "selftests/net/limits.sh": SCRIPTS,
    "selftests/net/loopback.sh": SCRIPTS,
    "selftests/net/mass.py": SCRIPTS,
    "selftests/net/mass.sh": SCRIPTS,
    "selftests/net/memory.py": SCRIPTS,
    "selftests/net/memory.sh": SCRIPTS,
    "selftests/net/pace.py": SCRIPTS,
    "selftests/net/pace.sh": SCRIPTS,
    "selftests/net/prefix.py": SCRIPTS,
    "selftests/net/stream.c": f"unit|build|oracle|table|quick|rings|kcsan|uml|{SCRIPTS}",
    "selftests/net/tail.py": SCRIPTS,
    "selftests/net/tail.sh": SCRIPTS,
    "selftests/net/tunnel.py": SCRIPTS,
    "selftests/net/tunnel.sh": SCRIPTS,
    "selftests/net/forged.sh": BYZANTINE,
    "selftests/net/rogue-module.py": BYZANTINE,
    "selftests/net/rogue-module.sh": BYZANTINE,
    "selftests/net/rogue_rows.py": BYZANTINE,
    "selftests/net/rogue_stream.py": BYZANTINE,
    "selftests/faults": "faults|storms",
    "selftests/programs": "programs|suite|bench",
    "selftests/mutations": "mutations",
    "selftests/mutations.py": "mutations",
    "selftests/bench": "bench",
    "selftests/demo": "demo",
    "selftests/tools": f"unit|{SCRIPTS}",
    "tools/preload": RUN,
    "tools/smctl/run.c": RUN,
    "tools/smctl/run.h": RUN,
    "tools/smctl/run_filter.c": RUN,
    "tools/smctl/run_kind.c": RUN,
    "tools/smctl/run_notify.c": RUN,
    "tools/smctl/run_rules.c": RUN,
    "tools/smctl/run_supervise.c": RUN,
    "tools/examples": "unit|paths",
    "tools/wireshark": "wireshark",
}
PARTS = "selftests/check/parts.sh"
# Columns 3 and 4 of the table in PARTS say how long a part usually takes, and at which commits CI
# runs it; not what it tests.
SCHEDULE = re.compile(r"^(\t[\w.,-]+\t+\d+)\t+\d+\t+(?:\d+|-)\t", re.M)


def git(*words):
    """The output of git; "" if it fails, for example outside a clone."""
    done = subprocess.run(["git", "-C", SRC, *words], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() if done.returncode == 0 else ""


def succeeds(*words):
    return subprocess.run(["git", "-C", SRC, *words], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def head():
    return git("rev-parse", "HEAD") or "-"


def is_dirty(commit):
    return commit != head() or bool(git("status", "--porcelain", "--untracked-files=no"))


# --- adding ---------------------------------------------------------------

def all_of(pattern, text):
    """The distinct matches, separated by commas, or "-"."""
    return ",".join(dict.fromkeys(re.findall(pattern, text, re.M))) or "-"


def about(log):
    """The guests with their accelerators, the kernels and the first four seeds in a log. Without
    guests, the kernel is that of this machine."""
    text = pathlib.Path(log).read_text(errors="replace")
    guests = all_of(r"^lab: (\S+ \(\w+\)), \d+ (?:guests|namespaces)", text)
    guests = guests.replace(" (", "/").replace(")", "")
    kernels = all_of(r"Linux version (\S+)", text)
    seeds = all_of(r"\bseed (\d+)", text).split(",")
    return [guests, os.uname().release if guests == "-" else kernels, ",".join(seeds[:4])]


def add(name, commit, passed, failed, skipped, seconds, log):
    commit = commit or "-"
    line = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), name, commit,
            "dirty" if is_dirty(commit) else "clean", passed, failed, skipped, seconds, *about(log)]
    CACHE.mkdir(parents=True, exist_ok=True)
    # One write per line: checks of other trees append to the same file.
    with open(FILE, "a", encoding="utf-8") as file:
        file.write("\t".join(line) + "\n")


# --- reading --------------------------------------------------------------

def last_results():
    """The last result of each name. A result of a commit outside this history does not replace one
    of a commit inside. If both are inside or both outside, a result of a dirty tree does not
    replace one of a clean tree."""
    last, ago = {}, functools.cache(commits_ago)

    def weight(one):
        return (ago(one["commit"]) != "elsewhere", one["dirty"] == "clean")

    for path in (KEPT, FILE):
        for line in path.read_text().splitlines() if path.exists() else ():
            fields = line.split("\t")
            if line.startswith("#") or len(fields) != len(FIELDS):
                continue
            one = dict(zip(FIELDS, fields))
            old = last.get(one["name"])
            if not old or weight(one) >= weight(old):
                last[one["name"]] = one
    return last


def language(path, text):
    """"c", "python" or "sh"; None if the file is something else."""
    by_name = {".c": "c", ".h": "c", ".py": "python", ".sh": "sh"}.get(pathlib.Path(path).suffix)
    found = re.match(r"#!.*\b(python|sh|bash)[0-9]*$", text.split("\n", 1)[0])
    return by_name or (found and found[1].replace("bash", "sh"))


def without_comments(lang, text):
    """The text of a C or Python file or shell script, reduced to what is compiled or executed.
    Docstrings count as comments, except that of a module that may print it."""
    if lang == "python":
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) or \
               isinstance(node, ast.Module) and "__doc__" not in text:
                if ast.get_docstring(node, clean=False) is not None:
                    node.body[0] = ast.Pass()
        return ast.dump(tree)
    words = ["bash", "--pretty-print", "/dev/stdin"] if lang == "sh" else \
            ["gcc", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c", "-"]
    done = subprocess.run(words, input=text, check=True, text=True, capture_output=True)
    if lang == "sh":
        return done.stdout
    return re.findall(r'''"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s"']+''', done.stdout)


@functools.cache
def same_code(path, commit):
    """Has the file in HEAD the same mode as in the commit and, but for comments, the same text?"""
    old, new = (git("show", f"{rev}:{path}") for rev in (commit, "HEAD"))
    modes = [git("ls-tree", rev, path).split()[:1] for rev in (commit, "HEAD")]
    if modes[0] != modes[1]:
        return False
    if path == PARTS:
        old, new = (SCHEDULE.sub(r"\1\t", text) for text in (old, new))
    lang = language(path, old)
    if not lang or lang != language(path, new):
        return False
    try:
        return without_comments(lang, old) == without_comments(lang, new)
    except (SyntaxError, subprocess.CalledProcessError):
        return False


def of_this_tree(one):
    """Is the result valid for the commit that is checked out?"""
    if one["dirty"] == "dirty" or git("status", "--porcelain", "--untracked-files=no"):
        return False
    if one["name"].startswith("lint"):      # reads all files
        return one["commit"] == head()
    if not git("rev-parse", "--verify", "--quiet", one["commit"] + "^{commit}"):
        return False
    others = [f":(exclude){path}" for path, names in PRIVATE.items()
              if not re.match(rf"({names})\b", re.sub("[-_]", " ", one["name"]))]
    words = ("diff", "--name-only", "--no-renames", one["commit"], "HEAD", "--", ".", *others)
    changed = git(*words)
    if not changed and not succeeds(*words):
        return False
    return all(same_code(path, one["commit"]) for path in changed.split("\n") if path)


def verdict(one):
    """A result with nothing but skipped tests is neither a pass nor a failure."""
    if one["failed"] != "0":
        return "FAILED"
    return "passed" if one["passed"] != "0" else "skipped"


def holds(name):
    one = last_results().get(name)
    return bool(one) and verdict(one) == "passed" and of_this_tree(one)


def commits_ago(commit):
    if not succeeds("merge-base", "--is-ancestor", commit, "HEAD"):
        return "elsewhere"
    return git("rev-list", "--count", f"{commit}..HEAD")


def age(date):
    seconds = time.time() - calendar.timegm(time.strptime(date, "%Y-%m-%dT%H:%M:%SZ"))
    for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}"
    return f"{max(seconds, 0):.0f} s"


def line_of(name, one, ago):
    if not one:
        return f"{name:<26} never"
    counts = f"{one['passed']}/{one['failed']}/{one['skipped']}"
    dirty = "+" if one["dirty"] == "dirty" else ""
    return (f"{name:<26} {verdict(one):<7} {counts:>12}  {one['commit'][:9] + dirty:<10} {ago:>9} "
            f"{age(one['date']):>7} {one['seconds']:>5}  {one['guests']}  {one['kernel']}"
            + (f"  seed {one['seed']}" if one["seed"] != "-" else ""))


def status(names):
    last = last_results()
    ago = {commit: commits_ago(commit) for commit in {one["commit"] for one in last.values()}}
    print(f"{'':<26} {'':<7} {'pass/fail/skip':>12}  {'commit':<8} {'commits ago':>9} {'age':>5} "
          f"{'s':>4}  guests  kernel")
    for name in names:
        one = last.get(name)
        print(line_of(name, one, ago[one["commit"]] if one else ""))
    seen = [last[name] for name in names if name in last]
    failed = [one["name"] for one in seen if one["failed"] != "0"]
    here = sum(of_this_tree(one) for one in seen)
    print(f"{len(names)} in all, {here} valid for this commit, {len(names) - len(seen)} never run, "
          f"{len(failed)} failed{': ' if failed else ''}{' '.join(failed)}")
    print("+: tracked files were modified")
    return not failed


def worth_keeping(one):
    """Is the result clean, and valid or at most ten commits old?"""
    ago = commits_ago(one["commit"])
    return one["dirty"] == "clean" and (of_this_tree(one) or (ago.isdigit() and int(ago) <= 10))


def keep(names):
    last = last_results()
    lines = ["# What selftests/check/results.py status shows in a fresh clone; by its \"keep\".",
             "# " + "\t".join(FIELDS)]
    lines += ["\t".join(last[name].values()) for name in names
              if name in last and worth_keeping(last[name])]
    KEPT.write_text("\n".join(lines) + "\n")
    return True


def main():
    what, *words = sys.argv[1:] or ["help"]
    if what == "add" and len(words) == 7:
        return add(*words)
    if what == "holds" and len(words) == 1:
        return 0 if holds(*words) else 1
    if what in ("status", "keep"):
        return 0 if {"status": status, "keep": keep}[what](words) else 1
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
