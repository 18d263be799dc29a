#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Small programs for fault rows that afr_load cannot serve.

    small.py churn PORT SECONDS SEED        listen, close in the middle of handshakes, repeat
    small.py knock HOST PORT SECONDS SEED   connect to "churn"; each attempt must end in time
    small.py echo PORT                      echo the bytes of one client after the other
    small.py served HOST PORT N [framed]    be N clients of "echo", one after the other
    small.py flood HOST PORT SECONDS plain|option
                                            send SYNs from unused addresses
    small.py open HOST PORT ROLE SEED TIME  simultaneous open: both ends connect at TIME
    small.py namespace SEED COMMAND...      kill programs with sockets in namespaces that COMMAND
                                            creates; the namespaces must end

The last line of the output is the result. The exit status is 0 if the result
is as expected.
"""
import errno
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "net"))
from death import info, rdma_socket     # noqa: E402

LOAD = pathlib.Path(os.environ.get("AFR_SRC", ".")) / "build/faults/afr_load"
MODES = ("none", "undecided", "plain", "half", "framed")
IN_TIME = 15            # seconds that a call may take


def listening(port, backlog):
    sock = rdma_socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("", port))
    sock.listen(backlog)
    return sock


def churn(port, seconds, seed):
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    count = accepted = 0
    while time.monotonic() < end:
        sock = listening(port, rng.choice((1, 4, 128)))
        sock.settimeout(0.001)
        stay = time.monotonic() + rng.random() * rng.choice((0.002, 0.02, 0.1))
        while time.monotonic() < stay:
            try:
                conn, _ = sock.accept()
            except OSError:
                continue
            accepted += 1
            with conn:
                if rng.random() < 0.5:
                    conn.sendall(b"x")
        sock.close()
        count += 1
    print(f"{count} listeners, {accepted} accepted")


def one_knock(host, port, rng):
    """Connect, send, and read to the end; returns "end", an error, or the call that hung."""
    with rdma_socket() as sock:
        sock.settimeout(IN_TIME)
        phase = "connect"
        try:
            sock.connect((host, port))
            phase = "send"
            # A client that sent nothing could wait in recv() for ever, with TCP as well: a server
            # whose accept queue was full may have dropped this connection without a reset.
            sock.sendall(bytes(rng.choice((1, 3000, 20000))))
            phase = "recv"
            while sock.recv(100):
                pass
            return "end"
        except TimeoutError:
            return f"hang in {phase} {info(sock)}"
        except OSError as err:
            return errno.errorcode[err.errno]


def knock(host, port, seconds, seed):
    seen = {}
    lock = threading.Lock()
    end = time.monotonic() + seconds

    def knocker(number):
        rng = random.Random(seed + number)
        while time.monotonic() < end:
            what = one_knock(host, port, rng)
            with lock:
                seen[what] = seen.get(what, 0) + 1

    threads = [threading.Thread(target=knocker, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(" ".join(f"{what} {count}" for what, count in sorted(seen.items())))
    wrong = set(seen) - {"end", "ECONNREFUSED", "ECONNRESET", "EPIPE"}
    if wrong or len(seen) < 2:
        sys.exit(f"unexpected results: {seen}")


def echo(port):
    sock = listening(port, 128)
    print("listens", flush=True)
    while True:
        conn, _ = sock.accept()
        with conn:
            while data := conn.recv(1 << 16):
                conn.sendall(data)


def served(host, port, count, framed=False):
    worst = 0
    modes = set()
    for number in range(count):
        data = random.Random(number).randbytes(8000)
        start = time.monotonic()
        with rdma_socket() as sock:
            sock.settimeout(IN_TIME)
            sock.connect((host, port))
            sock.sendall(data)
            got = b""
            while len(got) < len(data) and (part := sock.recv(len(data) - len(got))):
                got += part
            modes.add(MODES[info(sock)["mode"]])
        worst = max(worst, time.monotonic() - start)
        if got != data:
            sys.exit(f"client {number}: the echo is wrong")
    print(f"{count} served, {' '.join(sorted(modes))}, slowest {worst * 1000:.0f} ms")
    if framed and modes != {"framed"}:
        sys.exit(f"not framed: {modes}")


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def syn(source, target, port, rng, with_option):
    """A TCP SYN segment, without IP header."""
    option = b"\x02\x04\x05\xb4"        # MSS 1460
    if with_option:     # AF_RDMA option of a client, version 1, see proto/wire.h
        option += struct.pack("!BBIBBI", 254, 12, 0xaf4d41d7, 1, 0, rng.getrandbits(32))
    head = struct.pack("!HHIIBBHHH", rng.randrange(1024, 65536), port, rng.getrandbits(32), 0,
                       (20 + len(option)) // 4 << 4, 2, 65535, 0, 0) + option
    pseudo = socket.inet_aton(source) + socket.inet_aton(target) + struct.pack("!HH", 6, len(head))
    return head[:16] + struct.pack("!H", checksum(pseudo + head)) + head[18:]


def flood(host, port, seconds, kind):
    rng = random.Random(port)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    net = host.rsplit(".", 1)[0]
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        for _ in range(5):
            source = f"{net}.{rng.randrange(50, 250)}"
            segment = syn(source, host, port, rng, kind == "option")
            header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0,
                                 socket.inet_aton(source), socket.inet_aton(host))
            raw.sendto(header + segment, (host, 0))
            count += 1
        time.sleep(0.01)
    print(f"{count} SYNs")


def receive(sock, size):
    got = b""
    while len(got) < size and (part := sock.recv(1 << 16)):
        got += part
    return got


def both_open(host, port, role, seed, at):
    """Simultaneous open, and then a stream in each direction, one after the other.

    When both ends send at once after a simultaneous open, TCP itself stalls (seen on 6.12).
    """
    streams = {r: random.Random(f"{seed} {r}").randbytes(1 << 18) for r in "ab"}
    mine, theirs = streams.pop(role), streams.popitem()[1]
    with rdma_socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", port))
        sock.settimeout(IN_TIME)
        time.sleep(max(0, at - time.time()))
        sock.connect((host, port))
        if role == "a":
            sock.sendall(mine)
        got = receive(sock, len(theirs))
        if role == "b":
            sock.sendall(mine)
        print(f"{MODES[info(sock)['mode']]}, {len(got)} bytes")
        if got != theirs:
            sys.exit("the bytes received differ from those sent")
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)


def namespaces():
    """The number of network namespaces, including those whose cleanup is pending."""
    cache = pathlib.Path("/sys/kernel/slab/net_namespace/shrink")
    if cache.exists():
        cache.write_text("1")
    for line in pathlib.Path("/proc/slabinfo").read_text().splitlines():
        if line.startswith("net_namespace "):
            return int(line.split()[1])
    sys.exit("no slab of network namespaces")


def namespace(seed, *command):
    rng = random.Random(seed)
    # After a namespace has ended, the kernel frees it only when another one ends. So end one here:
    # then this count and the later ones all include one that is not yet freed.
    subprocess.run(["unshare", "-n", "true"], check=True)
    time.sleep(1)
    before = namespaces()
    for _ in range(8):
        # "sleep" keeps the stdin of afr_load open.
        script = (f"ip link set lo up; sleep 100 | {LOAD} --listen 127.0.0.1 --port 7000 &"
                  f"sleep 0.3; sleep 100 | {LOAD} --connect 127.0.0.1 --port 7000 --conns 10")
        with subprocess.Popen([*command, "bash", "-c", script], start_new_session=True,
                              stdout=subprocess.DEVNULL) as inside:
            # All programs must have started: a signal during fork() crashes User-Mode Linux.
            time.sleep(1 + rng.random() * 2)
            os.killpg(inside.pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while namespaces() > before:
        if time.monotonic() > end:
            sys.exit(f"{namespaces() - before} of 8 namespaces did not end")
        time.sleep(1)
        # if several have ended at once, they are freed only when another one ends
        subprocess.run(["unshare", "-n", "true"], check=True)
    print("8 namespaces of each kind ended")


def main():
    what, *args = sys.argv[1:] or ["help"]
    if what == "churn":
        churn(int(args[0]), float(args[1]), int(args[2]))
    elif what == "knock":
        knock(args[0], int(args[1]), float(args[2]), int(args[3]))
    elif what == "echo":
        echo(int(args[0]))
    elif what == "served":
        served(args[0], int(args[1]), int(args[2]), args[3:] == ["framed"])
    elif what == "flood":
        flood(args[0], int(args[1]), float(args[2]), args[3])
    elif what == "open":
        both_open(args[0], int(args[1]), args[2], int(args[3]), float(args[4]))
    elif what == "namespace":
        namespace(int(args[0]), *args[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
