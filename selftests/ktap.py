# SPDX-License-Identifier: GPL-2.0
"""Writes KTAP, for the test programs in Python. They find this module by a link in their folder, or
add a folder that contains it to sys.path."""


def begin(count):
    """Print the version line and the plan."""
    print(f"KTAP version 1\n1..{count}", flush=True)


def result(good, number, name, note=""):
    """Return the line with the result of a test; @number is "-" if the test has no number."""
    return f"{'ok' if good else 'not ok'} {number} {name}" + (f" # {note}" if note else "")


def run(checks, *args):
    """Run the checks. Each is a name and a function of @args that yields errors, which are printed
    below its result. Returns 1 if any check has found an error, else 0."""
    failed = False
    begin(len(checks))
    for number, (name, check) in enumerate(checks, 1):
        wrong = list(check(*args))
        failed |= bool(wrong)
        print(result(not wrong, number, name))
        for line in wrong:
            print(f"# {line}")
    return int(failed)


def results(checks):
    """Print the results of checks that were made. Each is a name and a list of errors. Returns 1 if
    any has errors, else 0."""
    return run([(name, lambda wrong=wrong: wrong) for name, wrong in checks])
