# SPDX-License-Identifier: GPL-2.0
"""Commands and programs in the two guests.

One guest runs the driver; an agent in the other one executes its requests. Requests
and answers are files in a folder that both guests see, since the fault rows disturb the
network between the guests.
"""
import json
import os
import pathlib
import signal
import subprocess
import time

SRC = pathlib.Path(os.environ["AFR_SRC"])
SHARED = pathlib.Path(os.environ["AFR_SHARED"])
ROLE = os.environ["AFR_ROLE"]
OTHER = os.environ["AFR_OTHER"]
ADDRESS = {ROLE: os.environ["AFR_ME"], OTHER: os.environ["AFR_PEER"]}
ADDRESS6 = {ROLE: os.environ["AFR_ME6"], OTHER: os.environ["AFR_PEER6"]}
LOAD = SRC / "build/faults/afr_load"
POLL = 0.01


class RowFailed(Exception):
    """The row has failed; the text of the exception is the reason."""


class Broken(Exception):
    """A command has failed, or the agent does not answer: the row cannot continue."""


def wait(what, seconds, condition):
    """Return the first true value of condition(); after @seconds the row fails."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise RowFailed(f"not within {seconds:.0f} s: {what}")
        time.sleep(5 * POLL)


class Local:
    """Commands and programs in this guest."""

    def __init__(self):
        self.role = ROLE
        self.started = {}

    def sh(self, command, seconds=60):
        """Run shell commands; returns exit status (124: not finished in time) and output."""
        try:
            done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=seconds, encoding="utf-8", errors="replace")
        except subprocess.TimeoutExpired as late:
            output = late.stdout or ""
            if isinstance(output, bytes):
                output = output.decode(errors="replace")
            return 124, f"{output}\nnot finished after {seconds} s"
        return done.returncode, done.stdout

    def start(self, argv):
        """Start a program with a pipe as stdin; returns its number for other calls."""
        number = len(self.started)
        out = f"/tmp/started.{number}"
        with open(out, "wb") as to:
            proc = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=to,
                                    stderr=subprocess.STDOUT, bufsize=0)
        self.started[number] = (proc, out)
        return number

    def tell(self, number, line):
        """Write a line to the stdin of a program."""
        try:
            self.started[number][0].stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            pass        # the program has ended: read() returns the exit status

    def read(self, number, at):
        """Returns the output of a program from offset @at on, and its exit status or None."""
        proc, out = self.started[number]
        rc = proc.poll()
        with open(out, encoding="utf-8", errors="replace") as file:
            file.seek(at)
            return file.read(), rc

    def signal(self, number, what):
        """Send the signal with the name @what to a program, unless it has ended."""
        proc = self.started[number][0]
        if proc.poll() is None:
            proc.send_signal(signal.Signals[what])

    def kill_all(self):
        for proc, _ in self.started.values():
            if proc.poll() is None:
                proc.kill()
            proc.stdin.close()
            proc.wait()
        self.started.clear()


class Remote:
    """The other guest: each method of Local as a request to the agent."""

    def __init__(self):
        self.role = OTHER
        self.number = 0

    def call(self, method, *args, patience=30):
        """Send a request to the agent; returns its answer."""
        self.number += 1
        put(f"ask.{self.number}", [method, *args])
        answer = SHARED / f"answer.{self.number}"
        end = time.monotonic() + patience
        while not answer.exists():
            if time.monotonic() > end:
                raise Broken(f"no answer from the agent to {method} {args}")
            time.sleep(POLL)
        for old in (f"ask.{self.number - 1}", f"answer.{self.number - 1}"):
            (SHARED / old).unlink(missing_ok=True)
        return json.loads(answer.read_text())

    def sh(self, command, seconds=60):
        return self.call("sh", command, seconds, patience=seconds + 30)

    def start(self, argv):
        return self.call("start", [str(word) for word in argv])

    def tell(self, number, line):
        self.call("tell", number, line)

    def read(self, number, at):
        return self.call("read", number, at)

    def signal(self, number, what):
        self.call("signal", number, what)

    def kill_all(self):
        self.call("kill_all")

    def end(self):
        """End the agent."""
        put(f"ask.{self.number + 1}", ["end"])


def put(name, value):
    """Create the file @name in SHARED, with @value as JSON, atomically."""
    part = SHARED / f"tmp.{name}"
    part.write_text(json.dumps(value))
    part.rename(SHARED / name)


def agent():
    """Execute requests of the driver until "end", or until the driver itself has ended.

    After a reboot of this guest, requests that were answered before are skipped.
    """
    local = Local()
    number = max([int(path.suffix[1:]) for path in SHARED.glob("ask.*")], default=1)
    if (SHARED / f"answer.{number}").exists():
        number += 1
    while True:
        ask = SHARED / f"ask.{number}"
        while not ask.exists():
            if (SHARED / f"done.{OTHER}").exists():
                return
            time.sleep(POLL)
        method, *args = json.loads(ask.read_text())
        if method == "end":
            local.kill_all()
            return
        put(f"answer.{number}", getattr(local, method)(*args))
        number += 1


def lab(request, seconds=60):
    """Request something like "kill b" from the lab, see selftests/lab/run."""
    name = f"{os.getpid()}.{time.monotonic_ns()}"
    part = SHARED / f"tmp.lab.{name}"
    part.write_text(request + "\n")
    part.rename(SHARED / f"lab.request.{name}")
    wait(f"the lab's answer to: {request}", seconds, (SHARED / f"lab.done.{name}").exists)


class Load:
    """afr_load in one of the guests."""

    def __init__(self, host, prefix, *args):
        self.host = host
        self.number = host.start([*prefix, str(LOAD), *map(str, args)])
        self.at = 0
        self.rest = ""
        self.state = {}
        self.words = 0          # status and result lines that were read
        self.result = None
        self.rc = None
        self.listening = False

    def look(self):
        """Read and parse new output of afr_load; returns this object."""
        if self.rc is not None:
            return self
        text, rc = self.host.read(self.number, self.at)
        self.at += len(text.encode())
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.line(line)
        if rc is not None and not text:
            self.rc = rc
        return self

    def line(self, line):
        """Parse a line of output."""
        word, *pairs = line.split()
        if word == "FAIL":
            raise RowFailed(f"at {self.host.role}: {line}")
        if word == "listening":
            self.listening = True
        if word in ("status", "result"):
            self.state = {}
            for pair in pairs:
                name, _, value = pair.partition("=")
                self.state[name] = int(value) if value.lstrip("-").isdigit() else value
            self.words += 1
        if word == "result":
            self.result = self.state

    def tell(self, line):
        """Send a command to afr_load; returns the state in its answer, or in its result."""
        before = self.look().words
        self.host.tell(self.number, line)
        wait(f"afr_load at {self.host.role} answers to {line}", 20,
             lambda: self.look().words > before or self.gone())
        return self.state

    def status(self):
        """The state now, or that of the result if afr_load has printed it."""
        return self.tell("status") if self.result is None else self.state

    def gone(self):
        """Has afr_load printed its result? If it ended without a result, the row fails."""
        if self.result is None and self.look().rc is not None and self.result is None:
            raise RowFailed(f"afr_load at {self.host.role} ended with {self.rc}")
        return self.result is not None

    def signal(self, what):
        self.host.signal(self.number, what)
