# SPDX-License-Identifier: GPL-2.0
"""Requests of guest b to guest a: run programs, start and end servers."""
import json
import os
import signal
import socket
import subprocess
import time

PORT = 7500
LISTEN_SECONDS = 20


def listens(port):
    """Does a server listen on the port? Listeners of AF_SMC and AF_RDMA have a TCP socket, too."""
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as table:
            for line in table:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def run(argv, timeout=60):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout, check=False)
    return {"rc": done.returncode, "out": done.stdout, "err": done.stderr[-500:]}


def start(argv, port):
    """Start a server, and wait at most LISTEN_SECONDS until it listens."""
    log = open(os.path.join(os.environ["AFR_OUT"], f"server.{port}"), "ab")
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                             start_new_session=True)
    end = time.monotonic() + LISTEN_SECONDS
    while not listens(port) and child.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    children[child.pid] = child
    return {"pid": child.pid, "up": listens(port)}


def stop(pid):
    """End a server and its process group."""
    child = children.pop(pid)
    try:
        os.killpg(pid, signal.SIGTERM)
        child.wait(10)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        os.killpg(pid, signal.SIGKILL)
    child.wait()
    return {}


children = {}


def serve(**more):
    """In guest a: execute requests until b closes the connection, then end all servers. @more:
    further functions."""
    functions = {"run": run, "start": start, "stop": stop, **more}
    with socket.create_server(("", PORT)) as listener:
        conn, _ = listener.accept()
        with conn, conn.makefile("rw") as stream:
            for line in stream:
                what, *words = json.loads(line)
                try:
                    answer = functions[what](*words)
                except subprocess.TimeoutExpired as error:
                    answer = {"rc": 124, "out": "", "err": str(error)}
                print(json.dumps(answer), file=stream, flush=True)
    for pid in list(children):
        stop(pid)


class Peer:
    """In guest b: the connection to guest a."""

    def __init__(self, address):
        end = time.monotonic() + 60
        while True:
            try:
                self.conn = socket.create_connection((address, PORT))
                break
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.stream = self.conn.makefile("rw")

    def ask(self, *words):
        """Send a request; returns the answer."""
        print(json.dumps(words), file=self.stream, flush=True)
        return json.loads(self.stream.readline())

    def close(self):
        self.stream.close()
        self.conn.close()
