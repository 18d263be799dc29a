#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Two guests, one of which is a Byzantine peer: its module has fault injection (net/afrdma/test).

    rogue-module.py [--quick] [--only PATTERN,...] [--slice I/N] [--repeat N] [--seed N]
                     [--injections N]                               in both guests

The guest with the unmodified module runs the rows of rogue_rows.py, each as client, as server
or as both in turn. Three bystander connections run meanwhile: over TCP and over RDMA to the
Byzantine peer, and over RDMA within the guest. The row names the allowed outcomes; on a
bystander, bytes of another connection are never allowed. KTAP on stdout.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

import ktap
import rogue_rows as rows
import rogue_stream as rs

CONTROL, SPEAKS_RDMA, SPEAKS_TCP, LOOP, VICTIM = range(7200, 7205)
PARAMETER = pathlib.Path("/sys/module/afrdma/parameters/rogue")
SYSCTL = pathlib.Path("/proc/sys/net/afrdma")
SMCTL = os.path.join(os.environ.get("AFR_SRC", "."), "build/tools/smctl")
TRACE = pathlib.Path("/sys/kernel/tracing/instances/rogue")
ATTEMPTS = 3            # how often a row runs at most, until its injection happens
SLOW = 4 if "debug" in os.environ.get("AFR_KERNEL", "") else 1
# sysctls of both ends; BYZANTINE_SETTINGS and prepare() replace some values. The timeouts are
# short, so that neither the unmodified end nor the test waits long for the Byzantine peer.
SETTINGS = {"hello_timeout_ms": 1000, "attach_timeout_ms": 1500, "detach_timeout_ms": 1500,
            "orphan_timeout_ms": 2000, "link_linger_ms": 300, "links_per_group": 1,
            "attach_retry_ms": 20, "link_depth": 16, "sndbuf": 1 << 18, "rcvbuf": 1 << 18}
# At the Byzantine end, a DETACH that an injection omits never completes, so the connection that
# had to send it takes the link down after detach_timeout_ms. This must not happen before the next
# row is over, even if that row and the row with the injection both last until the detach timeout of
# the unmodified end.
BYZANTINE_SETTINGS = {"detach_timeout_ms": 100000}


def set_sysctl(name, value):
    (SYSCTL / name).write_text(f"{value}\n")


class Control:
    """Exchanges lines of JSON between the two ends."""

    def __init__(self, sock):
        self.file = sock.makefile("rw")

    def write(self, what):
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    def read(self):
        line = self.file.readline()
        if not line:
            raise EOFError("the other end has closed the control connection")
        return json.loads(line)

    def ask(self, do, **what):
        self.write({"do": do, **what})
        answer = self.read()
        if isinstance(answer, dict) and "failed" in answer:
            raise RuntimeError(f"the Byzantine end: {answer['failed']}")
        return answer


class Trace:
    """The reasons of aborted connections and of links that went down, from tracepoints."""

    EVENTS = {"abort": "afrdma_conn_abort", "down": "afrdma_link_down"}

    def __init__(self):
        TRACE.mkdir(exist_ok=True)
        for event in self.EVENTS.values():
            (TRACE / "events/afrdma" / event / "enable").write_text("1")

    @staticmethod
    def clear():
        (TRACE / "trace").write_text("")

    def reasons(self, kind):
        return re.findall(self.EVENTS[kind] + r": id=\d+ reason=(?:peer:)?(\w+)",
                          (TRACE / "trace").read_text())

    def __str__(self):
        return ", ".join(f"{kind} {' '.join(sorted(set(self.reasons(kind)))) or '-'}"
                         for kind in self.EVENTS)

    def close(self):
        for event in self.EVENTS.values():
            (TRACE / "events/afrdma" / event / "enable").write_text("0")
        TRACE.rmdir()


# --- the Byzantine end, which follows the orders of the other one ---------

class ByzantineEnd:
    def __init__(self, control, peer):
        self.control, self.peer = control, peer
        self.sock = self.thread = None
        self.outcome = "nothing"
        self.trace = Trace()
        rs.echo_server(rs.new_listener(True, SPEAKS_RDMA), rs.S_IN)
        rs.echo_server(rs.new_listener(False, SPEAKS_TCP), rs.T_ANY)

    def serve(self):
        while True:
            order = self.control.read()
            do = order.pop("do")
            if do == "bye":
                self.trace.close()
                return
            try:
                answer = getattr(self, "do_" + do)(**order)
            except OSError as error:
                answer = {"failed": repr(error)}
            self.control.write(answer)

    def do_sysctl(self, name, value):
        set_sysctl(name, value)

    def do_inject(self, text):
        self.trace.clear()
        PARAMETER.write_text(text)

    def do_injections(self):
        """The number of injections made."""
        return int(PARAMETER.read_text().split()[2])

    def do_names(self):
        """The names of all injections."""
        lines = PARAMETER.with_name("rogue_injections").read_text().splitlines()
        return [line.split(":")[0] for line in lines]

    def do_victim(self, serve, warm, size, limit, pace):
        listener = rs.new_listener(True, VICTIM) if serve else None
        self.sock = None
        self.thread = threading.Thread(target=self.victim, daemon=True,
                                       args=(listener, warm, size, limit, pace))
        self.thread.start()

    def victim(self, listener, warm, size, limit, pace):
        """Run this end of the victim connection; any outcome is right here."""
        end = time.monotonic() + limit
        try:
            if listener:
                listener.settimeout(limit)
                sock, _ = listener.accept()
                listener.close()
            else:
                sock = rs.new_socket(True)
                sock.settimeout(limit)
                sock.connect((self.peer, VICTIM))
            self.sock = sock
            sock.settimeout(0.2)
            if warm:
                rs.warm_up_echo(sock, rs.V_IN, rs.V_OUT, end)
            self.outcome = str(rs.Exchange(sock, rs.V_IN, rs.V_OUT, 0, size, limit, pace))
        except (OSError, EOFError) as error:
            self.outcome = repr(error)

    def do_ready(self):
        try:
            return bool(self.sock and rs.on_rdma(self.sock))
        except OSError:
            return False

    def do_end(self):
        self.thread.join(120)
        if self.thread.is_alive():
            return {"failed": "the victim connection does not end"}
        if self.sock:
            self.sock.close()
        return f"{self.outcome}; {self.trace}"


# --- the unmodified end ---------------------------------------------------

def counter(name):
    text = subprocess.run([SMCTL, "-j", "stat", "name", name], check=True,
                          stdout=subprocess.PIPE).stdout
    return json.loads(text)[0]["value"]


def received():
    """The number of packets that the RDMA device has received."""
    port = f"/sys/class/infiniband/{os.environ['AFR_DEV']}/ports/1/hw_counters"
    return int(pathlib.Path(port, "rcvd_pkts").read_text())


class Verdicts:
    def __init__(self):
        self.file = open(os.path.join(os.environ.get("AFR_OUT", "/tmp"), "ktap"), "a",
                         encoding="ascii")
        self.failed = 0

    def line(self, text):
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def verdict(self, name, why, note):
        self.failed += bool(why)
        self.line(ktap.result(not why, "-", name, why and f"{why}; {note}"))
        if not why:
            print(f"# {note}", flush=True)


def missing(wanted, seen):
    """Does a row require one of the reasons @wanted, and is none of them in @seen?"""
    return wanted not in ("", "*") and not set(wanted.split()) & set(seen)


class UnmodifiedEnd:
    def __init__(self, control, me, peer, seed):
        self.control, self.peer, self.seed = control, peer, seed
        self.trace = Trace()
        self.injections = 0
        self.before = {}
        self.packets = 0
        for name, value in SETTINGS.items():
            set_sysctl(name, value)
            # The detach timeout of the Byzantine end must not end the link: see BYZANTINE_SETTINGS.
            control.ask("sysctl", name=name, value=BYZANTINE_SETTINGS.get(name, value))
        rs.echo_server(rs.new_listener(True, LOOP), rs.L_IN)
        self.near = rs.Bystander("in this host", True, (me, LOOP), rs.L_OUT, rs.L_IN)
        self.tcp = rs.Bystander("over TCP", False, (peer, SPEAKS_TCP), rs.T_ANY, rs.T_ANY)
        self.same = rs.Bystander("to the same host", True, (peer, SPEAKS_RDMA),
                                 rs.S_OUT, rs.S_IN)

    def bystanders(self):
        return (self.near, self.tcp, self.same)

    def no_link(self):
        """Is there no link to the other host? The previous row's connections may still use it."""
        text = subprocess.run([SMCTL, "-j", "link"], check=True, stdout=subprocess.PIPE).stdout
        return not any(self.peer in link["peer"] for link in json.loads(text))

    def wait_for(self, what, seconds):
        end = time.monotonic() + seconds * SLOW
        while not what():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def same_on_rdma(self):
        """Is the bystander to the other host on RDMA? If it stays on TCP, replace it first.

        After each lost link a connection waits longer before it tries RDMA again; a new one does
        not wait.
        """
        if self.wait_for(self.same.on_rdma, 1.5):
            return True
        self.same.reopen()
        return self.wait_for(self.same.on_rdma, 10)

    def open_victim(self, role, row, warm):
        """Open the victim connection and, if @warm, wait until it is on RDMA."""
        limit = row.limit * SLOW
        order = {"serve": role == rows.CLIENT, "warm": warm, "size": row.size,
                 "limit": limit + 10 * SLOW, "pace": row.pace}
        end = time.monotonic() + 10 * SLOW
        if role == rows.CLIENT:
            self.control.ask("victim", **order)
            sock = rs.new_socket(True)
            sock.settimeout(10 * SLOW)
            sock.connect((self.peer, VICTIM))
        else:
            with rs.new_listener(True, VICTIM) as listener:
                listener.settimeout(10 * SLOW)
                self.control.ask("victim", **order)
                sock, _ = listener.accept()
        sock.settimeout(0.2)
        if warm:
            rs.warm_up(sock, rs.V_OUT, rs.V_IN, lambda: self.control.ask("ready"), end)
        return sock

    def leave(self, sock, row):
        """
        Close the victim connection with unread bytes during an attach, so that its reset is
        deferred; then the Byzantine end makes the second injection.
        """
        end = time.monotonic() + row.limit * SLOW
        rs.send_all(sock, rs.stream_bytes(rs.V_OUT, 0, 4 * rs.CHUNK), end)
        while not self.control.ask("injections"):
            if time.monotonic() > end:
                return "stall", "no injection before close"
            time.sleep(0.02)
        rs.peek(sock, end)
        sock.close()
        self.control.ask("inject", text=f"{row.then} seed {self.seed} newest")
        made = self.wait_for(lambda: self.control.ask("injections"), row.limit)
        return ("error", "closed") if made else ("stall", f"no {row.then}")

    def exchange(self, sock, row):
        return rs.Exchange(sock, rs.V_OUT, rs.V_IN, 0, row.size, row.limit * SLOW, row.pace)

    def normal_connection(self, role, row):
        """A connection without injections. Returns its outcome."""
        sock = self.open_victim(role, rows.Row("off", "whole", limit=row.limit), True)
        got = self.exchange(sock, rows.Row("off", "whole", limit=row.limit))
        sock.close()
        self.control.ask("end")
        return got.outcome()

    @staticmethod
    def detach_ms(row):
        """The detach timeout of a row, longer on a slow kernel if the row injects more than once.

        The timeout ends a flood, which must have made all its injections by then.
        """
        return row.detach_ms * (SLOW if row.injections > 1 or row.then else 1)

    def prepare(self, role, row):
        """Set up what the row requires. Returns why this failed, or None."""
        set_sysctl("detach_timeout_ms", self.detach_ms(row))
        set_sysctl("attach_retry_ms", row.retry_ms)
        set_sysctl("attach_timeout_ms",
                   SETTINGS["attach_timeout_ms"] * (SLOW if row.then else 1))
        set_sysctl("upgrade", int(not row.tcp))
        self.control.ask("sysctl", name="upgrade", value=int(not row.tcp))
        if row.fresh:
            self.same.close()
            if not self.wait_for(self.no_link, 20):
                return "a link to the same host remains"
        elif not row.tcp and not self.same_on_rdma():
            return "no bystander to the same host moves to RDMA"
        if row.before and self.normal_connection(role, row) != "whole":
            return "a connection without injection was not whole"
        self.trace.clear()
        self.packets = received()
        self.before = {name: counter(name) for name in ("peer_violation", row.counts) if name}
        return None

    def inject(self, role, row):
        """Open the victim connection and inject. Returns the outcome as a word and in detail."""
        try:
            if row.early:
                self.control.ask("inject", text=f"{row.injection} seed {self.seed} new")
            sock = self.open_victim(role, row, not row.early)
            if not row.early:
                self.control.ask("inject", text=f"{row.injection} seed {self.seed} newest")
        except OSError as error:
            return "error", repr(error)
        if row.then:
            return self.leave(sock, row)
        exchange = self.exchange(sock, row)
        sock.close()
        return exchange.outcome(), str(exchange)

    def reasons_come(self, row):
        """Are the reasons and the counter there that the row requires?"""
        return not missing(row.abort, self.trace.reasons("abort")) and \
               not missing(row.down, self.trace.reasons("down")) and \
               not (row.counts and not self.more(row.counts))

    def more(self, name):
        """By how much has a counter risen since prepare()?"""
        return counter(name) - self.before[name]

    def violations(self):
        return sum(reason in rows.VIOLATIONS for reason in self.trace.reasons("abort"))

    def judge(self, row, outcome, text):
        """Returns what is wrong with the outcome, or None."""
        if outcome not in row.ends.split():
            return text
        for kind, wanted in (("abort", row.abort), ("down", row.down)):
            seen = self.trace.reasons(kind)
            if missing(wanted, seen):
                return f"{kind} for {', '.join(sorted(set(seen))) or 'no reason'}, not {wanted}"
            strange = set(seen) - rows.LATE[kind] - (rows.FAULTS[kind] if wanted else set())
            if kind == "down":
                strange -= set(row.may_down.split())
            if wanted in ("", "*") and strange:
                return f"unexpected {kind}: {', '.join(sorted(strange))}"
        if row.abort == "*" and outcome == "error" and not self.trace.reasons("abort"):
            return "the program got an error, but no abort was traced"
        if not self.wait_for(lambda: self.violations() == self.more("peer_violation"), 2):
            return (f"{self.violations()} violations, but {self.more('peer_violation')} "
                    "were counted")
        if row.counts and not self.more(row.counts):
            return f"{row.counts} did not rise"
        if row.stays and (self.trace.reasons("down") or not self.same.on_rdma()):
            return f"the link did not stay: {self.trace}"
        return None

    def judge_bystanders(self, row):
        for one in self.bystanders():
            why = one.check(15 * SLOW)
            if why:
                one.reopen()
            if why and one is self.same and row.hurts and not one.wrong:
                why = one.check(15 * SLOW)
            if why:
                return why
        return None

    def run(self, role, row):
        """Run a row. Returns why it failed, or None, and details."""
        for _ in range(ATTEMPTS):
            why, note, complete = self.attempt(role, row)
            if complete or not row.injections:
                break
            # No injection was made, for example because prepare() failed, or because this row's
            # stream was complete before its connection got a link: that can happen if a connection
            # of the previous row has ended the shared link only after this row began. Run the row
            # again.
        return why, note

    def attempt(self, role, row):
        """
        Run a row once. Returns why it failed, or None; details; and False if it has shown nothing,
        because no injection was made and no byte was wrong.
        """
        why = self.prepare(role, row)
        if why:
            return why, "", False
        outcome, text = self.inject(role, row)
        self.wait_for(lambda: self.reasons_come(row), 3 + self.detach_ms(row) / 1000)
        time.sleep(0.1)
        peer_outcome = self.control.ask("end")
        made = self.control.ask("injections")
        came = received() - self.packets
        self.control.ask("inject", text="off")
        self.injections += made
        why = f"{made} injections, not {row.injections}" if made < row.injections else None
        why = why or self.judge(row, outcome, text)
        note = f"{text}; {made} injections; {self.trace}; the Byzantine end: {peer_outcome}"
        if row.injections > 1 and came < made:
            why = why or f"{came} packets were received, not {made}"
        if row.fresh:
            self.same.open()
        return why or self.judge_bystanders(row), note, made or outcome in ("bent", "foreign")

    def close(self):
        for one in self.bystanders():
            one.close()
        self.trace.close()


def selected(args):
    for row in rows.ROWS:
        if args.only and not any(fnmatch.fnmatch(row.name, one) for one in args.only.split(",")):
            continue
        if args.quick and not row.quick:
            continue
        if row.is_flood and os.environ["AFR_KERNEL"].endswith("-debug"):
            continue        # a row with a smaller flood runs instead
        for role in row.roles:
            yield role, row


def sliced(args):
    """Every Nth of the selected rows, from the Ith on."""
    one, of = map(int, args.slice.split("/"))
    return list(selected(args))[one - 1::of]


def run_unmodified(args):
    verdicts = Verdicts()
    with socket.create_server(("", CONTROL)) as server:
        server.settimeout(120)
        sock, _ = server.accept()
    sock.settimeout(None)
    control = Control(sock)
    end = UnmodifiedEnd(control, os.environ["AFR_ME"], os.environ["AFR_PEER"], args.seed)
    print(f"# seed {args.seed}", flush=True)
    packets = received()
    known = {row.injection.split()[0] for row in rows.ROWS}
    verdicts.verdict("every injection has a row",
                     " ".join(sorted(set(control.ask("names")) ^ known)), "")
    for role, row in sliced(args) * args.repeat:
        start = time.monotonic()
        why, note = end.run(role, row)
        verdicts.verdict(f"{row.name}.{role}", why, f"{note}; {time.monotonic() - start:.1f} s")
    verdicts.verdict(f"injections: {end.injections}",
                     end.injections < args.injections and f"not {args.injections}",
                     f"{received() - packets} packets were received")
    end.close()
    control.write({"do": "bye"})
    return 1 if verdicts.failed else 0


def run_byzantine():
    end = time.monotonic() + 120
    while True:
        try:
            sock = socket.create_connection((os.environ["AFR_PEER"], CONTROL))
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    ByzantineEnd(Control(sock), os.environ["AFR_PEER"]).serve()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--slice", default="1/1", help="I/N: every Nth, from the Ith on")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--injections", type=int, default=1, help="least number of injections")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    args = parser.parse_args()
    return run_byzantine() if PARAMETER.exists() else run_unmodified(args)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)      # does not wait for threads of connections that hang
