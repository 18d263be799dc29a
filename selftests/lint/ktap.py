# SPDX-License-Identifier: GPL-2.0
"""The output of lint programs: one line per check, followed by the errors that it has found."""


def results(checks):
    """Print the results of checks that were made. Each is a name and a list of errors. Returns 1 if
    any has errors, else 0."""
    return run([(name, lambda wrong=wrong: wrong) for name, wrong in checks])


def run(checks, *args):
    """Run the checks. Each is a name and a function of @args that yields errors. Returns 1 if any
    check has found an error, else 0."""
    failed = False
    print(f"KTAP version 1\n1..{len(checks)}")
    for number, (name, check) in enumerate(checks, 1):
        wrong = list(check(*args))
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} {name}")
        for line in wrong:
            print(f"# {line}")
    return int(failed)
