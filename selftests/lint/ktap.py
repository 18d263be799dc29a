# SPDX-License-Identifier: GPL-2.0
"""What lint programs print: a line each check, and below it what is wrong."""


def run(checks, *args):
    """Each check is a name and a function of @args that yields what is wrong. 1 if any did."""
    failed = False
    print(f"KTAP version 1\n1..{len(checks)}")
    for number, (name, check) in enumerate(checks, 1):
        wrong = list(check(*args))
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} {name}")
        for line in wrong:
            print(f"# {line}")
    return int(failed)
