#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""For wireshark.sh: connections to capture, and the comparison of what tshark shows with counters.

    wireshark.py serve PORT PLAIN      echo on AF_RDMA sockets on PORT, on TCP sockets on PLAIN
    wireshark.py talk PEER PEER6 PORT PLAIN SMCTL OUT
                                       make the connections; write their counters to the file OUT
    wireshark.py check CAPTURE COUNTERS STATS_A STATS_B
                                       have tshark read CAPTURE: KTAP. COUNTERS is what talk wrote;
                                       STATS_A and STATS_B are the outputs of "smctl -j stats"
"""
import collections
import json
import pathlib
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "selftests"), str(ROOT / "selftests/net")]
import ktap  # noqa: E402  pylint: disable=wrong-import-position
from death import info, on_rdma, rdma_socket  # noqa: E402  pylint: disable=wrong-import-position
from pace import receive  # noqa: E402  pylint: disable=wrong-import-position
from wireshark_made import NAMES, tshark  # noqa: E402  pylint: disable=wrong-import-position

BULK = 1 << 20
UPGRADE = pathlib.Path("/proc/sys/net/afrdma/upgrade_bytes")
EXPERT_ERROR = str(0x00800000)  # PI_ERROR of Wireshark
# Errors of Wireshark's own dissectors: rxe sends UDP over IPv6 without checksums, and TCP sends a
# segment again when the peer's host was too busy to acknowledge it.
NOT_OURS = ("Illegal checksum value (0)", "New fragment overlaps old data (retransmission?)")
WRITE_FIRST, WRITE_LAST_IMM, WRITE_ONLY_IMM = 6, 9, 11
DETACH = 0xfffe
RING = 1 << 17                  # the largest ring, see wireshark.sh


def echo(conn):
    with conn:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
        while data := conn.recv(1 << 16):
            conn.sendall(data)


def accept(listener, port):
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen(8)
    while True:
        threading.Thread(target=echo, args=[listener.accept()[0]], daemon=True).start()


def serve(port, plain):
    listeners = [(rdma_socket(), port), (rdma_socket(socket.AF_INET6), port),
                 (socket.socket(), plain)]
    listeners[1][0].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    for each in listeners:
        threading.Thread(target=accept, args=each, daemon=True).start()
    time.sleep(1)
    print("listening", flush=True)
    sys.stdin.read()


def exchange(conn, size, wait=0.0):
    """Send @size bytes and read the echo, at the earliest @wait seconds later."""
    sender = threading.Thread(target=conn.sendall, args=[b"x" * size])
    sender.start()
    time.sleep(wait)
    receive(conn, size)
    sender.join()


def exchange_until(conn, wanted):
    end = time.monotonic() + 30
    while not wanted():
        if time.monotonic() > end:
            sys.exit(f"not in time: {info(conn)}")
        exchange(conn, 500)
        time.sleep(0.01)


def urgent(conn):
    conn.send(b"!", socket.MSG_OOB)
    receive(conn, 1)


def end(conn, counters):
    conn.shutdown(socket.SHUT_WR)
    if conn.recv(1):
        sys.exit("more bytes than were sent")
    counters[conn.getsockname()[1]] = info(conn)
    conn.close()


def talk(peer, peer6, port, plain, smctl, out):
    counters = {}

    def connect(host, to, family=socket.AF_INET):
        conn = rdma_socket(family)
        conn.connect((host, to))
        return conn

    def move(conn, path):
        number = json.loads(subprocess.check_output(
            [smctl, "-j", "conn", "sport", str(conn.getsockname()[1])]))[0]["id"]
        subprocess.run([smctl, "conn", "move", str(number), path], check=True)

    UPGRADE.write_text("2000000000")
    first, second = connect(peer, port), connect(peer, port)
    third = connect(peer6, port, socket.AF_INET6)
    exchange(first, BULK, 0.5)
    urgent(first)
    UPGRADE.write_text("1000")
    for conn in first, second, third:
        exchange_until(conn, lambda conn=conn: on_rdma(conn))
    for conn in first, second, third:
        exchange(conn, BULK // 4, 0.1)
    urgent(first)
    move(first, "tcp")
    exchange_until(first, lambda: not any(info(first)[path] for path in ("tx_path", "rx_path")))
    exchange(first, BULK // 8)
    exchange(second, BULK // 8)
    move(first, "rdma")
    exchange_until(first, lambda: on_rdma(first))
    exchange(first, BULK // 8)
    time.sleep(1)               # SERVICE comes every keepalive_ms
    for conn in first, second, third:
        end(conn, counters)
    fallback = connect(peer, plain)
    exchange(fallback, 1000)
    end(fallback, counters)
    pathlib.Path(out).write_text(json.dumps(counters))


def name_of(kind):
    return dict(enumerate(NAMES, 1)).get(int(kind), f"type {kind}")


class Seen:
    """What tshark shows of a capture of the connections of talk()."""

    def __init__(self, capture, counters, stats):
        # "client" and "server": port of the client, and the end of talk() or serve()
        self.counters = {int(port): c for port, c in json.loads(counters.read_text()).items()}
        self.stats = {role: {one["name"]: one["value"] for one in json.loads(path.read_text())}
                      for role, path in stats.items()}
        self.rows = tshark(
            capture, "frame.number", "tcp.stream", "tcp.srcport", "tcp.dstport", "tcp.seq",
            "tcp.len", "tcp.flags.syn", "tcp.flags.ack", "afrdma.option.flags",
            "afrdma.hello.length", "afrdma.frame.type", "afrdma.frame.length", "afrdma.attach.rkey",
            "afrdma.stream", "afrdma.imm.kind", "afrdma.imm.consumed", "afrdma.cm_req.link",
            "afrdma.cm_rep.link", "afrdma.undecoded", "ip.src", "ipv6.src",
            "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn",
            "infiniband.reth.r_key", "infiniband.reth.dmalen", "_ws.lua.error",
            "_ws.expert.severity", "_ws.expert.message", "_ws.col.Info")
        self.tcp = [row for row in self.rows if row["tcp.stream"]]
        self.roce = self.writes_of([row for row in self.rows if row["infiniband.bth.opcode"]])
        self.ports = {}         # client's port by stream
        for row in self.tcp:
            if row["tcp.flags.syn"] == ["1"] and row["tcp.flags.ack"] == ["0"]:
                self.ports[row["tcp.stream"][0]] = int(row["tcp.srcport"][0])
        self.framed = {stream for stream, port in self.ports.items()
                       if self.counters[port]["mode"] == 4}
        self.keys = {}          # stream by rkey, and the end whose ring it is
        for row in self.tcp:
            for rkey in row["afrdma.attach.rkey"]:
                if rkey != "0x00000000":
                    self.keys[rkey] = (row["tcp.stream"][0], self.role(row))

    def role(self, row):
        """The end that has sent a segment."""
        return "b" if self.ports.get(row["tcp.stream"][0]) == int(row["tcp.srcport"][0]) else "a"

    @staticmethod
    def writes_of(rows):
        """The packets of RDMA writes, each once: a device may send a packet again, and a guest may
        receive the packets that it has sent."""
        once = {}
        for row in rows:
            if int(row["infiniband.bth.opcode"][0]) in range(WRITE_FIRST, WRITE_ONLY_IMM + 1):
                once.setdefault((*row["ip.src"], *row["ipv6.src"], *row["infiniband.bth.destqp"],
                                 *row["infiniband.bth.psn"]), row)
        return list(once.values())

    def of_roce(self, row):
        """The end that has sent a RoCE packet."""
        return "b" if row["ip.src"] + row["ipv6.src"] in (["10.77.0.2"], ["fd77::2"]) else "a"

    def frames(self, role, kind=None):
        """Lengths of the frames that an end has sent."""
        return [int(length) for row in self.tcp if self.role(row) == role
                for one, length in zip(row["afrdma.frame.type"], row["afrdma.frame.length"])
                if kind in (None, name_of(one))]


def no_error(seen):
    for row in seen.rows:
        wrong = [text for level, text in zip(row["_ws.expert.severity"], row["_ws.expert.message"])
                 if level == EXPERT_ERROR and text not in NOT_OURS]
        if row["_ws.lua.error"] or wrong or row["afrdma.undecoded"]:
            yield f"packet {row}"


def options(seen):
    for row in seen.tcp:
        if row["tcp.flags.syn"] != ["1"]:
            continue
        answer = row["tcp.flags.ack"] == ["1"]
        framed = row["tcp.stream"][0] in seen.framed
        want = ["1"] if answer and framed else [] if answer else ["0"]
        words = ("answered" if framed else "") if answer else "offered"
        if row["afrdma.option.flags"] != want or words not in row["_ws.col.Info"][0]:
            yield f"packet {row}"
    if len(seen.framed) != 3 or len(seen.ports) != 4:
        yield f"streams {seen.ports}, framed {seen.framed}"


def every_byte(seen):
    sums, ends = collections.Counter(), collections.Counter()
    for row in seen.tcp:
        way = row["tcp.stream"][0], seen.role(row)
        if row["tcp.stream"][0] not in seen.framed:
            if row["afrdma.frame.type"] or row["afrdma.hello.length"]:
                yield f"a frame on plain TCP: {row}"
            continue
        if row["tcp.len"] != ["0"]:
            ends[way] = max(ends[way], int(row["tcp.seq"][0]) + int(row["tcp.len"][0]) - 1)
        sums[way] += sum(8 + int(length) for length in row["afrdma.frame.length"])
        sums[way] += sum(int(length) for length in row["afrdma.hello.length"])
    for way, size in ends.items():
        if sums[way] != size:
            yield f"{way}: {sums[way]} bytes in frames, {size} on TCP"
    if len(ends) != 6 or min(ends.values()) < 64:
        yield f"directions {ends}"


def every_type(seen):
    wanted = set(NAMES) - {"ERROR"}
    got = {name for name in NAMES for role in "ab" if seen.frames(role, name)}
    if got != wanted:
        yield f"types {sorted(got)} instead of {sorted(wanted)}"
    for row in seen.tcp:
        info_column = row["_ws.col.Info"][0]
        if any(name_of(kind) not in info_column for kind in row["afrdma.frame.type"]) or \
                row["afrdma.hello.length"] and "HELLO" not in info_column:
            yield f"a frame is not named: {row}"


def counts(seen):
    for role in "ab":
        data = [length - 8 for length in seen.frames(role, "DATA")]
        hellos = sum(len(row["afrdma.hello.length"]) for row in seen.tcp if seen.role(row) == role)
        mine = [row for row in seen.roce if seen.of_roce(row) == role]
        kinds = collections.Counter(int(kind, 0) for row in mine for kind in row["afrdma.imm.kind"])
        sizes = [int(size) for row in mine for size in row["infiniband.reth.dmalen"]]
        for counter, value in {
                "hello_sent": hellos,
                "frames_sent": len(seen.frames(role)),
                "tx_bytes_tcp": sum(data),
                "tx_writes": kinds[0],
                "tx_credit_writes": kinds[1],
                "tx_announces": kinds[0xffff] + kinds[0xfffd],
                "tx_bytes_rdma": sum(sizes)}.items():
            known = seen.stats[role][counter]
            if value != known:
                yield f"{role}: {counter} is {known}, the capture has {value}"
            elif not value and counter != "tx_announces":
                yield f"{role}: {counter} is 0"
        frames = collections.Counter(name for name in NAMES for _ in seen.frames(role, name))
        print(f"# {role}: frames {dict(frames)}, HELLO {hellos}, writes {dict(kinds)}, "
              f"bytes in DATA {sum(data)}, by RDMA {sum(sizes)}")


def connections(seen):
    """Bytes of each connection: AFRDMA_INFO of the client, and the capture."""
    on_tcp, on_link = collections.Counter(), collections.Counter()
    for row in seen.tcp:
        for kind, length in zip(row["afrdma.frame.type"], row["afrdma.frame.length"]):
            if kind == "1":
                on_tcp[row["tcp.stream"][0], seen.role(row)] += int(length) - 8
    for row in seen.roce:
        if row["infiniband.reth.dmalen"] not in ([], ["0"]):
            stream, owner = seen.keys.get(row["infiniband.reth.r_key"][0], ("none", "none"))
            on_link[stream, "b" if owner == "a" else "a"] += int(row["infiniband.reth.dmalen"][0])
    for stream in seen.framed:
        known = seen.counters[seen.ports[stream]]
        for name, got in (("tx_tcp", on_tcp[stream, "b"]), ("rx_tcp", on_tcp[stream, "a"]),
                          ("tx_rdma", on_link[stream, "b"]), ("rx_rdma", on_link[stream, "a"])):
            if known[name] != got or not got:
                yield f"stream {stream}: {name} is {known[name]}, the capture has {got}"


def assigned(seen):
    """Each write to a channel belongs to a connection: the one that has offered its key."""
    checked, streams, last, keys = 0, collections.Counter(), {}, {}
    for row in seen.roce:
        pair = seen.of_roce(row), row["infiniband.bth.destqp"][0]
        if row["infiniband.reth.r_key"]:        # in the first packet of a write
            with_bytes = row["infiniband.reth.dmalen"] != ["0"]
            keys[pair] = row["infiniband.reth.r_key"][0] if with_bytes else None
        if int(row["infiniband.bth.opcode"][0]) not in (WRITE_LAST_IMM, WRITE_ONLY_IMM):
            continue
        kind = int(row["afrdma.imm.kind"][0], 0) if row["afrdma.imm.kind"] else 2
        if kind not in (0, 1, DETACH):
            continue
        if len(row["afrdma.stream"]) != 1:
            yield f"of no connection: {row}"
            continue
        streams[row["afrdma.stream"][0]] += 1
        if keys[pair]:
            checked += 1
            owner = seen.keys.get(keys[pair], [None])[0]
            if owner != row["afrdma.stream"][0]:
                yield f"of connection {row['afrdma.stream']} instead of {owner}: {row}"
        for cursor in row["afrdma.imm.consumed"]:
            way = row["afrdma.stream"][0], seen.of_roce(row)
            if int(cursor) < last.get(way, 0):
                yield f"cursor below {last[way]}: {row}"
            last[way] = int(cursor)
    print(f"# writes by tcp.stream: {dict(streams)}, {checked} compared by key; "
          f"last cursors {sorted(last.items())}")
    if set(streams) != seen.framed or not checked or len(last) != 6:
        yield f"writes of {streams}, cursors of {last}"
    for (stream, role), cursor in last.items():
        known = seen.counters[seen.ports[stream]]
        total = known["rx_tcp"] + known["rx_rdma"]      # an echo: the same in both directions
        if not total - RING <= cursor <= total:
            yield f"stream {stream}: the last cursor from {role} is {cursor} of {total}"


def links(seen):
    requests = {link for row in seen.rows for link in row["afrdma.cm_req.link"]}
    replies = {link for row in seen.rows for link in row["afrdma.cm_rep.link"]}
    if len(requests) < 2 or requests != replies:
        yield f"links in requests {requests}, in replies {replies}"


def fallback(seen):
    plain = [row for row in seen.tcp if row["tcp.stream"][0] not in seen.framed
             and row["tcp.flags.syn"] == ["0"]]
    for row in plain:
        if "plain TCP" not in row["_ws.col.Info"][0]:
            yield f"packet {row}"
    if not plain:
        yield "no packet"


def check(capture, counters, stats_a, stats_b):
    seen = Seen(capture, pathlib.Path(counters),
                {"a": pathlib.Path(stats_a), "b": pathlib.Path(stats_b)})
    return ktap.results([(name, list(errors(seen))) for name, errors in (
        ("no Lua error, no expert error, nothing undecoded", no_error),
        ("the option in each SYN and SYN-ACK", options),
        ("every byte of each framed direction is in HELLO or a frame", every_byte),
        ("every frame is named, and all types but ERROR occur", every_type),
        ("frames, bytes and writes are as many as the module has counted", counts),
        ("bytes of each connection are those of AFRDMA_INFO", connections),
        ("each write to a channel belongs to its connection", assigned),
        ("the private data of each link", links),
        ("plain TCP is named and left alone", fallback))])


def main():
    what, *words = sys.argv[1:]
    if what == "serve":
        serve(*map(int, words))
    elif what == "talk":
        talk(words[0], words[1], int(words[2]), int(words[3]), *words[4:])
    else:
        sys.exit(check(*words))


if __name__ == "__main__":
    main()
