#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test of tools/wireshark/afrdma.lua with a capture that is made here, without a module.

    wireshark_made.py            make the capture, have tshark read it, compare: KTAP

It has what a capture of two correct hosts cannot have: malformed frames and options, frames that
are cut at every byte, captures that begin late, directions that fall back.
"""
import csv
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "selftests"))
import ktap  # noqa: E402  pylint: disable=wrong-import-position

LUA = ROOT / "tools/wireshark/afrdma.lua"
CLIENT, SERVER = bytes([10, 77, 0, 2]), bytes([10, 77, 0, 1])
NONCE = 0x12345678
ANSWER = (NONCE * 0x6b43a9b5 + 0x1d2f3b59) % 2**32
SYN, ACK, SYN_ACK = 2, 16, 18
RKEY, CHANNEL = 0x5678, 4
NAMES = ("DATA CREDIT ATTACH ATTACHED BLOCKED MOVE RESUME FIN FINACK URGENT ERROR URGENTACK "
         "SERVICE").split()


def option(nonce, flags=0, version=1, size=12):
    return struct.pack("!BBIBBI", 254, size, 0xaf4d41d7, version, flags, nonce)[:size]


def proof(nonce, from_server):
    mix, low = nonce << 1 | from_server, 2**64 - 1
    mix = (mix + 0x5a3c96e17b2d48f1) * 0xd6e8a7153f94c26b & low
    mix ^= mix >> 31
    mix = mix * 0x8cb92f4d7a61e305 & low
    return mix ^ mix >> 29


def hello(from_server, nonce=NONCE, length=64, ring=65536):
    return (b"\xf7AFRDMA\x01" + struct.pack("!QHHI", proof(nonce, from_server), length, 1, 16) +
            b"i" * 16 + b"s" * 16 + struct.pack("!IHH", ring, 4321, 0) + b"+" * (length - 64))


def frame(kind, body, flags=0, reserved=0, length=None):
    length = len(body) if length is None else length
    return struct.pack("!BBHI", kind, flags, reserved, length) + body


def offset(value=77):
    return struct.pack("!Q", value)


def attach(epoch=2, reason=0, ring=1 << 18, channel=CHANNEL, flags=1, span=1 << 19, addr=1 << 40):
    return struct.pack("!IIQQIIHHIQ", epoch, reason, 0x1234, addr, RKEY, ring, channel, flags, span,
                       78)


EVERY = [frame(1, offset() + b"bytes"), frame(2, offset()), frame(3, attach()),
         frame(4, attach(reason=33)), frame(5, offset()), frame(6, struct.pack("!IIQ", 1, 0, 79)),
         frame(7, struct.pack("!IIQQ", 1, 50, 81, 80)), frame(8, offset()), frame(9, offset()),
         frame(10, offset()), frame(11, struct.pack("!I", 91)), frame(12, offset()),
         frame(13, struct.pack("!HH", 4321, 0), flags=1), frame(200, b"new", flags=1)]
ALL = b"".join(EVERY)
TYPES = list(range(1, 14)) + [200]

# A frame, and words of the complaint about it.
MALFORMED = [
    (frame(1, offset()), "DATA with a body of 8 bytes"),
    (frame(2, offset() + b"x"), "CREDIT with a body of 9 bytes"),
    (frame(6, b""), "MOVE with a body of 0 bytes"),
    (frame(2, offset(), length=65545), "impossible length of a frame: 65553 bytes"),
    (frame(2, offset(), flags=2), "flags is unknown flag"),
    (frame(2, offset(), reserved=1), "reserved is not 0"),
    (frame(2, offset((1 << 62) + 1)), "offset is above 2^62"),
    (frame(200, b"new"), "unknown type, and not optional"),
    (frame(3, attach(epoch=0)), "epoch is 0"),
    (frame(3, attach(reason=33)), "ATTACH with a reason"),
    (frame(3, attach(ring=65537)), "ring is no power of two"),
    (frame(3, attach(channel=0xfff0)), "channel is above 0xffef"),
    (frame(3, attach(flags=2)), "flags is unknown flag"),
    (frame(4, attach(span=1 << 20)), "span is neither one nor two rings"),
    (frame(4, attach(addr=2**64 - 1)), "addr wraps"),
    (frame(6, struct.pack("!IIQ", 1, 1, 79)), "reserved is not 0"),
    (frame(13, bytes(4), flags=1), "port is 0"),
    (hello(False, length=63), "impossible length of HELLO: 63 bytes"),
    (hello(False, length=513), "impossible length of HELLO: 513 bytes"),
    (hello(False, ring=65537), "ring is no power of two"),
]


class Capture:
    """A capture file with packets of IPv4."""

    def __init__(self, path):
        self.file = open(path, "wb")  # pylint: disable=consider-using-with
        self.file.write(struct.pack("=IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
        self.count = 0

    def packet(self, protocol, source, target, data, cut=None):
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), 0, 0, 64, protocol, 0)
        data = head + source + target + data
        kept = data[:cut]
        self.count += 1
        self.file.write(struct.pack("=IIII", self.count // 1000, self.count % 1000 * 1000,
                                    len(kept), len(data)) + kept)

    def write_imm(self, target, pair, rkey, imm):
        """A RoCE write with an immediate and 4 bytes."""
        self.roce(target, 11, pair, struct.pack("!QII", 1 << 40, rkey, 4) +
                  struct.pack("!I", imm) + b"data")

    def roce(self, target, opcode, pair, data):
        udp = struct.pack("!BBHII", opcode, 0, 0xffff, pair, self.count) + data + bytes(4)
        udp = struct.pack("!HHHH", 50000, 4791, 8 + len(udp), 0) + udp
        self.packet(17, SERVER if target == CLIENT else CLIENT, target, udp)

    def request(self, target, pair, private):
        """A connect request, of which only what the dissector uses is set."""
        mad = struct.pack("!BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 1, 0x10, 0, 0)
        body = struct.pack("!IIHHHHQIII", 1, 0, 0, 0, 0x0106, 4321, 0, 0, 0, pair << 8)
        body += bytes(140 - len(body))
        ip_cm = struct.pack("!BBH16s16s", 0, 0x40, 0, CLIENT.rjust(16, b"\0"),
                            SERVER.rjust(16, b"\0"))
        self.roce(target, 100, 1, struct.pack("!II", 0x80010000, 1) + mad + body + ip_cm +
                  private.ljust(56, b"\0"))


class Connection:
    """A TCP connection of a capture."""

    def __init__(self, capture, port):
        self.capture, self.port = capture, port
        self.next = {True: 1000, False: 5000}

    def segment(self, from_server, flags, data=b"", options=b"", cut=None):
        ports = (self.port, 40000) if from_server else (40000, self.port)
        options += bytes(-len(options) % 4)
        ack = self.next[not from_server] if flags & ACK else 0
        tcp = struct.pack("!HHIIBBHHH", *ports, self.next[from_server], ack,
                          (20 + len(options)) << 2, flags, 65535, 0, 0) + options + data
        ends = (SERVER, CLIENT) if from_server else (CLIENT, SERVER)
        self.capture.packet(6, *ends, tcp, cut)
        self.next[from_server] += len(data) + (flags & SYN != 0)

    def shake(self, offer=option(NONCE), answer=option(ANSWER, 1)):
        self.segment(False, SYN, options=offer)
        self.segment(True, SYN_ACK, options=answer)
        return self

    def send(self, from_server, data, size=60000, cut=None):
        for at in range(0, len(data), size):
            self.segment(from_server, ACK, data[at:at + size], cut=cut)
        return self


# The cases. Each has a name, a function that makes its connection, and the expected types of frames
# ("H" is HELLO), words of complaints, and words of a line in the info column.

def late(c):
    c.send(False, hello(False) + ALL).send(True, hello(True) + ALL)


def half(c):
    c.shake().send(True, b"SSH-2.0-").send(False, hello(False) + EVERY[0])


def bare(c):
    c.send(False, hello(False) + EVERY[1], cut=-4)


CASES = [
    ("every frame, in one segment",
     lambda c: c.shake().send(False, hello(False) + ALL), ["H"] + TYPES, [], "SERVICE, type 200]"),
    ("every frame, a segment for each byte",
     lambda c: c.shake().send(True, hello(True) + ALL, 1), ["H"] + TYPES, [], "[URGENTACK]"),
    ("a HELLO with more bytes than are known",
     lambda c: c.shake().send(False, hello(False, length=512) + ALL), ["H"] + TYPES, [], "HELLO"),
    ("a capture that begins with HELLO", late, ["H"] + TYPES + ["H"] + TYPES, [], "HELLO"),
    ("the largest DATA frame",
     lambda c: c.shake().send(False, hello(False) + frame(1, offset() + bytes(65536)), 1400),
     ["H", 1], [], "DATA 65536 bytes at 77"),
    ("fallback: no answer", lambda c: c.shake(answer=b"").send(False, b"GET / HTTP/1.0\r\n\r\n"),
     [], [], "plain TCP, no answer in the SYN-ACK"),
    ("fallback: no HELLO", lambda c: c.shake().send(False, b"GET / HTTP/1.0\r\n\r\n"),
     [], [], "plain TCP, no HELLO"),
    ("fallback: the proof of another connection",
     lambda c: c.shake().send(False, hello(False, NONCE + 1)), [], [], "plain TCP, no HELLO"),
    ("one-way", half, ["H", 1], [], "plain TCP, no HELLO"),
    ("an echoed option", lambda c: c.shake(answer=option(NONCE)).send(False, b"x"),
     [], [], "plain TCP, the option is echoed"),
    ("a wrong answer", lambda c: c.shake(answer=option(ANSWER + 1, 1)).send(False, b"x"),
     [], ["nonce is no answer"], "plain TCP, a wrong answer"),
    ("an option of another length",
     lambda c: c.shake(offer=option(NONCE, size=11)).send(False, b"x"),
     [], ["option of 11 bytes"], ""),
    ("an option that occurs twice", lambda c: c.shake(offer=2 * option(NONCE), answer=b""),
     [], ["option occurs twice"], ""),
    ("an option of another version", lambda c: c.shake(offer=option(NONCE, version=2), answer=b""),
     [], ["version is another version"], ""),
    ("an option of another experiment",
     lambda c: c.shake(offer=struct.pack("!BBI", 254, 6, 0xe2d4c3d9), answer=b"").send(False, b"x"),
     [], [], ""),
    ("a capture that is cut in a frame", bare, ["H"], [], "cut]"),
] + [
    ("malformed: " + words, lambda c, data=data: c.shake().send(False, hello(False) + data),
     None, [words], "") for data, words in MALFORMED
]


def tshark(path, *fields):
    """The fields of all packets, as rows of lists of values."""
    words = ["tshark", "-X", f"lua_script:{LUA}", "-r", path, "-T", "fields", "-E", "occurrence=a",
             "-E", "aggregator=|"]
    for field in fields:
        words += ["-e", field]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode or "Lua" in done.stderr:
        sys.exit(f"tshark: {done.stderr}")
    rows = csv.reader(done.stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [dict(zip(fields, [value.split("|") if value else [] for value in row]))
            for row in rows]


def judge(rows, case):
    """The errors of a case, whose packets are @rows."""
    _, _, types, complaints, words = case
    found, said, infos, lua = [], [], [], []
    for row in rows:
        found += ["H"] * len(row["afrdma.hello.length"])
        found += [int(kind) for kind in row["afrdma.frame.type"]]
        said += [text for text in row["_ws.expert.message"] if text.startswith("AF_RDMA: ")]
        infos += ["|".join(row["_ws.col.Info"])]
        lua += row["_ws.lua.error"]
    if lua:
        yield f"Lua error: {lua}"
    if types is not None and found != types:
        yield f"frames {found} instead of {types}"
    if len(said) != len(complaints) or any(want not in one for want, one in zip(complaints, said)):
        yield f"complaints {said} instead of {complaints}"
    if not any(words in info for info in infos):
        yield f"no '{words}' in {infos}"


def judge_writes(rows, stream):
    """The immediates of RoCE writes: the first one on a queue pair of no known link, the last one
    on one whose link is known from its connect request only."""
    kinds = ["write", "write", "DETACH", "CREDITS", "ASK", "reserved", "write"]
    want = [[], [stream], [stream], [], [], [], [stream]]
    request = [row for row in rows if row["afrdma.cm_req.link"]]
    if [row["afrdma.cm_req.link"] for row in request] != [[str(0x1234)]]:
        yield f"connect requests {request}"
    rows = [row for row in rows if row not in request]
    got = [row["afrdma.stream"] for row in rows]
    if got != want:
        yield f"streams {got} instead of {want}"
    for kind, row in zip(kinds[1:], rows[1:]):
        if f"[{kind}" not in row["_ws.col.Info"][0]:
            yield f"no {kind} in {row['_ws.col.Info']}"
    if rows[0]["afrdma.imm.channel"] != ["7"] or rows[0]["afrdma.imm.cursor"] != ["9"]:
        yield f"raw parts: {rows[0]}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "made.pcap")
        capture = Capture(path)
        for number, case in enumerate(CASES):
            case[1](Connection(capture, 80 if number == 0 else 7000 + number))
        capture.write_imm(CLIENT, 17, 0x1111, 7 << 16 | 9)
        for imm in CHANNEL << 16 | 9, 0xfffe0000 | CHANNEL, 0xffff0001, 0xfffd0001, 0xfff80000:
            capture.write_imm(CLIENT, 18, RKEY, imm)
        capture.request(SERVER, 19, struct.pack("!IBBH16s16sQ", 0xaf4d41d8, 1, 0, 256, b"i" * 16,
                                                b"s" * 16, 0x1234))
        capture.write_imm(CLIENT, 19, 0, CHANNEL << 16 | 9)
        capture.file.close()
        rows = tshark(path, "tcp.stream", "afrdma.hello.length", "afrdma.frame.type",
                      "_ws.expert.message", "_ws.lua.error", "_ws.col.Info", "afrdma.stream",
                      "afrdma.imm.channel", "afrdma.imm.cursor", "afrdma.cm_req.link")
    results = []
    for number, case in enumerate(CASES):
        mine = [row for row in rows if row["tcp.stream"] == [str(number)]]
        results.append((case[0], list(judge(mine, case))))
    writes = [row for row in rows if not row["tcp.stream"]]
    # the last connection that has offered this key
    last = max(i for i, case in enumerate(CASES) if case[2] and 3 in case[2])
    results.append(("immediates", list(judge_writes(writes, str(last)))))
    return ktap.results(results)


if __name__ == "__main__":
    sys.exit(main())
