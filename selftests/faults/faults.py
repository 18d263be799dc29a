#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run fault rows; selftests/faults/run starts this in both guests.

    faults.py DRIVER SEED ROW@ROLE...

DRIVER is the guest that runs the rows, a or b; the other one runs an agent. The
fault of a row is injected at ROLE. For each row the driver writes one line of
JSON to $AFR_OUT/results when it begins and one when it has ended, and prints
one KTAP line.
"""
import json
import os
import pathlib
import random
import sys
import time
import traceback

import hosts
import ktap
import rows
import special
import stream
from hosts import ADDRESS, ADDRESS6, OTHER, ROLE, SRC, Broken, Local, Remote, RowFailed

OUT = pathlib.Path(os.environ["AFR_OUT"])
MTU = os.environ["AFR_MTU"]

# RESTORE undoes what a row may have left behind in the network, in devices, in settings of the
# module and in the sysctls of SYSCTLS. Each sysctl outside net.afrdma that a row sets must be in
# SYSCTLS. RESTORE also removes verbfault.ko and the cgroup of rows, and brings CPU 1 online.
# RESTORED checks the network and rxe0.
SYSCTLS = ("net/ipv4/tcp_syncookies fs/file-max "
           "net/ipv4/conf/eth0/arp_ignore net/ipv4/conf/all/arp_ignore")
RESTORE = """
set +e
nft flush ruleset
tc qdisc del dev eth0 root 2>/dev/null
ip link del mv0 2>/dev/null
rdma link del siw0 2>/dev/null
rmmod verbfault 2>/dev/null
ip xfrm policy flush
ip xfrm state flush
rmdir /sys/fs/cgroup/faults 2>/dev/null
ip link set eth0 mtu {mtu}
ip link set eth0 up
ip addr replace {me}/24 dev eth0
{address6}
rdma res show qp | grep 'rxe0.*type GSI.*state ERR' && rdma link del rxe0
rdma link show rxe0/1 >/dev/null 2>&1 || rdma link add rxe0 type rxe netdev eth0
cat /run/afr/settings | while read -r name value; do
	echo "$value" >/proc/sys/net/afrdma/$name
done 2>/dev/null
while read -r name value; do echo "$value" >/proc/sys/$name; done </run/afr/sysctls
[ ! -e /sys/devices/system/cpu/cpu1/online ] || echo 1 >/sys/devices/system/cpu/cpu1/online
:
"""
RESTORED = """
for i in 1 2 3 4 5 6 7 8 9 10; do
	ping -c 1 -W 1 -q {peer} >/dev/null && break
done || { echo "no answer from {peer}"; ip addr; exit 1; }
rdma link show rxe0/1 | grep 'state ACTIVE'
"""
# SETTINGS sets link_timeout_ms, saves the module's settings and the values of SYSCTLS for RESTORE,
# and enables trace events. It does this once for each boot of a guest.
SETTINGS = """
[ ! -e /run/afr/sysctls ] || exit 0
cd /proc/sys/net/afrdma
echo {link_timeout} >link_timeout_ms || :
for name in *; do echo "$name $(cat $name)"; done >/run/afr/settings
cd /sys/kernel/tracing/events
for event in conn_abort link_down conn_move conn_upgrade; do
	echo 1 >afrdma/afrdma_$event/enable || :
done
echo 1 >tcp/tcp_send_reset/enable || :
echo 1 >tcp/tcp_receive_reset/enable || :
for name in {sysctls}; do echo "$name $(cat /proc/sys/$name)"; done >/run/afr/sysctls
"""

# Checks the part of the kernel log that is new since the last call.
NEW_SPLATS = """
cd /run/afr
dmesg >log.new
tail -n +$(($(cat log.lines 2>/dev/null || echo 0) + 1)) log.new >log.part
wc -l <log.new >log.lines
"$AFR_LAB/splat-scan.sh" log.part
"""


class Context:
    """The guests, addresses, random numbers and streams that a row uses, and its results."""

    def __init__(self, both, role, rng, name):
        self.hosts = both
        self.at_fault = both[role]
        self.not_at_fault = both["a" if role == "b" else "b"]
        self.rng = rng
        self.address = dict(ADDRESS)
        self.loads = []
        self.streams = None
        self.stall = None
        self.bytes = 0
        self.note = ""
        self.log_path = OUT / f"log.{name}"

    def seen(self, stall=None, note="", verified=0):
        """Record a stall and a note, if given, and how many more bytes were verified."""
        self.stall = stall if stall is not None else self.stall
        self.note = note or self.note
        self.bytes += verified

    def log(self, text):
        """Write to the log file of this row."""
        with open(self.log_path, "a", encoding="utf-8") as file:
            file.write(f"{time.monotonic():.2f} {text}\n")

    def watch(self, seconds):
        """Sleep, and log the state of the streams meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.5))
            for load in self.streams.both:
                self.log(f"{load.host.role} {load.status()}")

    def log_state(self):
        """Log connections, links, counters and the end of the trace of both guests."""
        for host in self.hosts.values():
            self.log(f"{host.role}\n" + host.sh(
                f"S={SRC}/build/tools/smctl; $S conn; $S link; $S stats; ss -ti;"
                "rdma res show qp; cd /sys/kernel/tracing;"
                "for id in $(grep -oP 'conn_abort: \\Kid=\\d+ ' trace | tail -n 5); do"
                " grep \"$id \" trace; done; grep _reset: trace | tail -n 10; tail -n 60 trace")[1])

    @staticmethod
    def words(host):
        """The values of {me}, {peer} and other words in commands for @host."""
        peer = OTHER if host.role == ROLE else ROLE
        return {"number": "12"["ab".index(host.role)], "other": "21"["ab".index(host.role)],
                "me": ADDRESS[host.role], "peer": ADDRESS[peer], "mtu": MTU,
                "address6": f"ip addr replace {ADDRESS6[host.role]}/64 dev eth0 nodad",
                "verbfault": SRC / "build/faults" / os.environ["AFR_KERNEL"] / "verbfault.ko",
                "smctl": SRC / "build/tools/smctl", "link_timeout": rows.LINK_TIMEOUT_MS,
                "sysctls": SYSCTLS}

    def do(self, host, command, seconds=60):
        """Run commands of a row, which must succeed; returns their output."""
        if not command:
            return ""
        for name, value in self.words(host).items():
            command = command.replace("{%s}" % name, str(value))
        self.log(f"{host.role}: {command}")
        rc, out = host.sh("set -e\n" + command, seconds)
        if rc:
            raise Broken(f"at {host.role}: {command!r} ended with {rc}: {out}")
        return out

    def kernel_reports(self):
        """For each guest whose kernel has reported bugs since the last call, a line with the
        headline of the first report."""
        found = []
        for host in self.hosts.values():
            rc, out = host.sh(NEW_SPLATS)
            if rc:
                found.append(f"kernel log of {host.role}: {out.splitlines()[0]}")
        return found

    def restore(self):
        """Run SETTINGS, RESTORE and RESTORED in both guests; does not end programs."""
        for command in SETTINGS, RESTORE, RESTORED:
            for host in self.hosts.values():
                self.do(host, command)


def write(line):
    with open(OUT / "results", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def report(line):
    print(line, flush=True)
    with open(OUT / "ktap", "a", encoding="utf-8") as file:
        file.write(line + "\n")


def one(both, row, role, seed):
    """Run a row; returns whether the guests can be used for other rows."""
    what = f"{row.name} {row.what}, at {role}"
    ctx = Context(both, role, random.Random(f"{seed} {row.name} {role}"),
                  f"{row.name}.{role}")
    line = {"row": row.name, "what": row.what, "role": role, "seed": seed}
    write({**line, "outcome": "begun"})
    start = time.monotonic()
    usable = True
    try:
        (getattr(special, row.how) if row.how else stream.run)(ctx, row)
        outcome = "pass"
    except RowFailed as why:
        outcome = "FAIL"
        ctx.note = str(why)
    except Broken as why:
        outcome = "FAIL"
        ctx.note = f"cannot go on: {why}"
    if ctx.streams:
        ctx.seen(verified=ctx.streams.verified())
    if outcome == "FAIL":
        ctx.log_state()
        ctx.note += "".join(f"; afr_load at {load.host.role}: {load.state}"
                            for load in ctx.loads[-4:])
    try:
        for host in both.values():
            host.kill_all()
        ctx.restore()
    except (Broken, RowFailed) as why:
        usable = False
        ctx.note += f"; the guests cannot be restored: {why}"
        outcome = "FAIL"
    if reports := ctx.kernel_reports():
        ctx.note = "; ".join([*reports, *([ctx.note] if ctx.note else [])])
        outcome = "FAIL"
    write({**line, "outcome": outcome, "stall": ctx.stall, "bytes": ctx.bytes,
           "note": ctx.note, "seconds": round(time.monotonic() - start, 1)})
    good = outcome == "pass"
    report(ktap.result(good, "-", what, "" if good else f"seed {seed}: {ctx.note}"))
    return usable


def drive(seed, wanted):
    """Run rows until the guests cannot be used for more; returns whether that has happened."""
    both = {ROLE: Local(), OTHER: Remote()}
    write({"guest": os.environ["AFR_KERNEL"], "kernel": os.uname().release,
           "accel": os.environ["AFR_ACCEL"]})
    table = {row.name: row for row in rows.ROWS}
    begin = Context(both, "a", random.Random(0), "begin")
    begin.restore()
    usable = True
    for word in wanted:
        name, _, role = word.partition("@")
        if usable:
            usable = one(both, table[name], role, seed)
    both[OTHER].end()
    return not usable


def main():
    driver, seed, *wanted = sys.argv[1:]
    if ROLE != driver:
        return hosts.agent()
    try:
        return drive(int(seed), wanted)
    except Exception:
        traceback.print_exc()
        raise


if __name__ == "__main__":
    sys.exit(main())
