#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run test modules of Python's test suite, and write the result of each test.

    python_suite.py RESULTS SECONDS MODULE...

RESULTS gets "NAME begins", then "NAME pass", "NAME fail", "NAME skip" or "NAME hang". The output of
the tests and tracebacks go to standard output. "hang" means that the process of the test was killed
because the test took longer than SECONDS, or that the test ended its process. A new process then
continues with the next test.
"""
import os
import signal
import subprocess
import sys
import time
import unittest


def flat(suite):
    """Yield the tests of a suite and of the suites in it."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def name_of(test):
    """The name of a test in RESULTS."""
    return test.id().removeprefix("test.").replace(" ", "_")


class Lines(unittest.TextTestResult):
    """Writes a line when a test begins, and one when it has ended."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.verdict = None

    def write(self, word, test):
        log.write(f"{name_of(test)} {word}\n")

    def startTest(self, test):
        super().startTest(test)
        self.verdict = "pass"
        self.write("begins", test)

    def stopTest(self, test):
        self.write(self.verdict, test)
        super().stopTest(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.verdict = "skip"

    def addError(self, test, err):
        super().addError(test, err)
        # After an error of setUpClass, tearDownModule or the like, unittest does not call
        # stopTest(), so the result is written here.
        if not hasattr(test, "_testMethodName"):
            self.write("fail", test)
        self.verdict = "fail"

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.verdict = "fail"

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.verdict = "fail"

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.verdict = "fail"


def prepare(module):
    """Set up what Python's own test runner sets up. Tests may not use the network outside this
    machine."""
    from test import support
    support.use_resources = ["cpu", "walltime", "largefile"]
    # The tests of socketserver require the resource "network", but only use this machine.
    if module.endswith("test_socketserver"):
        support.use_resources.append("network")
    support.verbose = 0


def run_module(module, known):
    """Run the tests of a module that have no result yet. This process runs no other module."""
    prepare(module)
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    todo = unittest.TestSuite(t for t in flat(suite) if name_of(t) not in known)
    unittest.TextTestRunner(resultclass=Lines, verbosity=2, stream=sys.stdout).run(todo)


def read_lines(path):
    """The results so far, and the test that has begun but not ended."""
    results, begun = {}, None
    with open(path) as lines:
        for line in lines:
            name, _, word = line.rstrip("\n").rpartition(" ")
            if word == "begins":
                begun = name
            else:
                results[name] = word
                begun = None
    return results, begun


def watch(child, path, seconds):
    """Wait for the child; kill it if it has written nothing to @path for @seconds."""
    size, since = -1, 0
    while child.poll() is None:
        if os.stat(path).st_size != size:
            size, since = os.stat(path).st_size, time.monotonic()
        try:
            child.wait(1)
        except subprocess.TimeoutExpired:
            if time.monotonic() - since > seconds:
                os.killpg(child.pid, signal.SIGABRT)    # faulthandler prints where it hangs
                time.sleep(1)
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def supervise(path, seconds, module):
    """Run processes until one has reached the end of the module, or has added no result."""
    known = None
    while True:
        before = known
        child = subprocess.Popen([sys.executable, "-X", "faulthandler", __file__, "--module",
                                  path, module], start_new_session=True)
        watch(child, path, seconds)
        known, begun = read_lines(path)
        if begun:
            with open(path, "a") as lines:
                lines.write(f"{begun} hang\n")
        elif child.returncode == 0 or known == before:
            return


def main():
    global log
    if sys.argv[1] == "--module":
        _, _, path, module = sys.argv
        known, _ = read_lines(path)
        log = open(path, "a", buffering=1)
        run_module(module, known)
        log.close()
        # Threads that a failed test has left behind must not keep this process alive.
        sys.stdout.flush()
        os._exit(0)
    _, path, seconds, *modules = sys.argv
    open(path, "w").close()
    for module in modules:
        supervise(path, int(seconds), "test." + module)


if __name__ == "__main__":
    main()
