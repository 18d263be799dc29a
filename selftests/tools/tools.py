#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of smctl and the preload library without the module. Prints KTAP.

smctl is built a second time, with sanitizers, and with fake_kernel.c in place of netlink, so that
its output can be checked. guest.sh tests smctl with the module, in guests.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import ktap

HERE = pathlib.Path(__file__).resolve().parent
SRC = HERE.parent.parent
SMCTL = SRC / "build/tools/smctl"
PRELOAD = SRC / "build/tools/libafrdma-preload.so"
WRAPPED = ["nl_open", "nl_close", "nl_get"]
OBJECTS = ["conn", "link", "dev", "stats", "reasons", "info"]
LOADED = os.path.exists("/sys/module/afrdma")


class Skip(Exception):
    """This machine cannot run the case."""


def run(*command, **keys):
    env = dict(os.environ, **keys.pop("env", {}))
    return subprocess.run([str(word) for word in command], text=True, env=env,
                          capture_output=True, timeout=60, check=False, **keys)


def build_fake(folder):
    fake = folder / "smctl"
    flags = ["-g", "-fsanitize=address,undefined", "-D_GNU_SOURCE",
             '-DLIBDIR="/nonexistent"', f"-I{SRC}/include/uapi", f"-I{SRC}/tools/smctl",
             "-Wl," + ",".join(f"--wrap={name}" for name in WRAPPED)]
    sources = [path for part in ("smctl", "common")
               for path in sorted((SRC / "tools" / part).glob("*.c"))] + [HERE / "fake_kernel.c"]
    built = run(os.environ.get("CC", "cc"), *flags, "-o", fake, *sources, "-lmnl", "-ljson-c")
    assert built.returncode == 0, built.stderr
    return fake


def rows(fake, *words):
    done = run(fake, "-j", *words)
    assert done.returncode == 0 and not done.stderr, done
    return json.loads(done.stdout)


def fails(done, status, sentence):
    assert done.returncode == status, done
    assert sentence in done.stderr, done
    assert not done.stdout, done


# Cases: functions whose argument is smctl with the fake kernel. The docstring is the name.

def text_has_keys_of_json(fake):
    """text output contains every value of JSON output, and the keys of smctl conn"""
    for name in OBJECTS:
        text = run(fake, name).stdout
        for row in rows(fake, name):
            for key, value in row.items():
                if isinstance(value, (bool, dict)) or (name, key) == ("stats", "id"):
                    continue
                assert str(value) in text, (name, key, value)
    words = set(run(fake, "conn").stdout.replace("\n", " ").split())
    for key in ["mode", "state", "role", "tx_path", "rx_path", "tx_bytes_rdma", "unsent",
                "unread", "tx_ring", "link", "moves", "uid", "inode", "reason", "abort"]:
        assert key in words, key


def pretty_is_the_same(fake):
    """-p and -j print the same; options may follow the object"""
    for name in OBJECTS:
        assert json.loads(run(fake, "-p", name).stdout) == rows(fake, name), name
        assert json.loads(run(fake, name, "show", "-j").stdout) == rows(fake, name), name


def numbers_are_whole(fake):
    """64-bit numbers are printed completely"""
    assert rows(fake, "stats")[0]["value"] == 2**64 - 1
    assert rows(fake, "conn")[0]["link"] == 0xfedcba9876543210


def addresses(fake):
    """addresses: IPv4, link-local IPv6 with its interface, none"""
    first, second, third = rows(fake, "conn")
    assert first["peer"].startswith("fe80::2%") and first["peer_port"] == 40000, first
    assert (second["peer"], second["peer_port"]) == ("192.0.2.2", 80), second
    assert "peer" not in third and third["role"] == "listener", third


def reasons_by_name(fake):
    """a reason has name, number, sentence and remedy; unknown numbers are accepted"""
    conn = rows(fake, "conn", "id", "2")[0]
    assert (conn["reason"], conn["reason_number"]) == ("PEER_PLAIN", 1), conn
    assert conn["reason_text"] == 'the "peer" is plain', conn
    assert conn["reason_remedy"] == "start it with smctl run", conn
    assert rows(fake, "reasons")[0]["remedy"] == "start it with smctl run"
    assert (conn["abort"], conn["abort_number"]) == ("UNKNOWN", 999), conn
    assert conn["abort_remedy"] == "", conn
    text = run(fake, "conn", "id", "2").stdout
    assert text.count("\n    remedy: start it with smctl run\n") == 1, text
    assert text.count("remedy") == 1, text


def reasons_of_the_peer(fake):
    """a reason sent by the peer is marked"""
    assert rows(fake, "conn", "id", "2")[0]["reason_peer"] is False
    assert rows(fake, "link")[0]["reason_peer"] is True
    assert re.search(r"^    reason PEER_PLAIN \(1\): peer: the", run(fake, "link").stdout, re.M)
    assert re.search(r"^    reason PEER_PLAIN \(1\): the", run(fake, "conn").stdout, re.M)
    assert re.search(r"^    remedy at the peer: start it", run(fake, "link").stdout, re.M)


def filters(fake):
    """filters: one, several, either direction, ports, flags"""
    def ids(*words):
        return [row["id"] for row in rows(fake, "conn", *words)]
    assert ids("mode", "framed") == [1]
    assert ids("path", "wait") == [1] and ids("path", "tcp") == [2, 3]
    assert ids("path", "tcp", "state", "close-wait") == [2]
    assert ids("sport", "5201") == [1] and ids("dport", "80") == [2]
    assert ids("orphan", "true") == [2]


def nothing_matches(fake):
    """filters without a match: a message and status 1"""
    fails(run(fake, "conn", "dport", "99"), 1, "nothing matches")
    fails(run(fake, "conn", "no_such", "1"), 1, "no such field")
    assert json.loads(run(fake, "-j", "conn", "dport", "99").stdout) == []


def kernel_errors(fake):
    """errors of the kernel: a message and status 2"""
    fails(run(fake, "link", env={"FAKE_ERROR": "12"}), 2, "Cannot allocate memory")
    fails(run(fake, "link", env={"FAKE_ERROR": "95"}), 2, "older than smctl")


def output_errors(fake):
    """a full disk is an error"""
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([fake, "conn"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and b"cannot write" in done.stderr, done


def not_loaded(_):
    """without the module smctl prints how to load it"""
    if LOADED:
        raise Skip("afrdma is loaded")
    for name in OBJECTS:
        fails(run(SMCTL, name), 2, "afrdma is not loaded: run modprobe afrdma")


def wrong_usage(_):
    """wrong usage: a message, status 1"""
    fails(run(SMCTL), 1, "no object given")
    fails(run(SMCTL, "bogus"), 1, "no such object: bogus")
    fails(run(SMCTL, "-x", "conn"), 1, "no such option: x")
    fails(run(SMCTL, "--bogus", "conn"), 1, "no such option: --bogus")
    fails(run(SMCTL, "conn", "mode"), 1, "no value for the field mode")
    fails(run(SMCTL, "run"), 1, "no program given")
    fails(run(SMCTL, "run", "--preload", "/no/such", "true"), 1, "no /no/such")


def help_is_output(_):
    """help is printed to standard output, status 0"""
    for words in (["help"], ["-h"], ["conn", "-h"], ["--help"], ["link", "--help"]):
        done = run(SMCTL, *words)
        assert done.returncode == 0 and done.stdout.startswith("Usage: smctl"), done
        assert all(re.search(rf"^  {name.rstrip('s')}", done.stdout, re.M) for name in OBJECTS)


def version_is_output(_):
    """--version prints to standard output, status 0"""
    done = run(SMCTL, "--version")
    assert done.returncode == 0 and done.stdout.startswith("smctl ") and not done.stderr, done


def run_status(_):
    """run: status and arguments of the program; other preload libraries are kept"""
    assert run(SMCTL, "run", "--", "sh", "-c", "exit 42").returncode == 42
    assert run(SMCTL, "run", "--", "/no/such").returncode == 127
    assert run(SMCTL, "run", "--", "/").returncode == 126
    assert run(SMCTL, "run", "echo", "-n", "--", "-j").stdout == "-- -j"
    assert run(SMCTL, "run", "printenv", "LD_PRELOAD").stdout.strip() == str(PRELOAD)
    done = run(SMCTL, "run", "printenv", "LD_PRELOAD", env={"LD_PRELOAD": "libm.so.6"})
    assert done.stdout.strip() == f"{PRELOAD}:libm.so.6", done


PROBE = """
import socket
for family in socket.AF_INET, socket.AF_INET6:
    for protocol in 0, socket.IPPROTO_TCP:
        for flags in 0, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC:
            s = socket.socket(family, socket.SOCK_STREAM | flags, protocol)
            assert s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == family
            assert s.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
            assert s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
            again = socket.socket(fileno=s.detach())
            assert (again.family, again.proto) == (family, socket.IPPROTO_TCP)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert u.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_UDP
assert socket.socket(socket.AF_UNIX).getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == 1
try:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM, 1)
    raise SystemExit("a TCP socket for ICMP")
except OSError as error:
    assert error.errno == 93, error
"""


def preload_answers(_):
    """preload: SO_DOMAIN and SO_PROTOCOL are those of TCP; other sockets do not change"""
    done = run(sys.executable, "-c", PROBE, env={"LD_PRELOAD": str(PRELOAD)})
    assert done.returncode == 0 and not done.stderr, done


def preload_debug(_):
    """preload: one line if AFRDMA_PRELOAD_DEBUG is set, otherwise none"""
    if LOADED:
        raise Skip("afrdma is loaded")
    loud = {"LD_PRELOAD": str(PRELOAD), "AFRDMA_PRELOAD_DEBUG": "1"}
    assert run(sys.executable, "-c", PROBE, env=loud).stderr.count("plain TCP") == 1


def preload_serves(_):
    """preload: a web server and its client work without AF_RDMA"""
    client = next((name for name in ("curl", "wget") if shutil.which(name)), None)
    if not client:
        raise Skip("neither curl nor wget")
    options = ["-s"] if client == "curl" else ["-q", "-O", "-"]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "page").write_text("bytes " * 100000, encoding="ascii")
        with subprocess.Popen([str(SMCTL), "run", "--", sys.executable, "-u", "-m", "http.server",
                               "--bind", "127.0.0.1", "--directory", folder, "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as server:
            try:
                port = re.search(r"port (\d+)", server.stdout.readline())[1]
                got = run(SMCTL, "run", "--", client, *options, f"http://127.0.0.1:{port}/page")
            finally:
                server.kill()
    assert got.stdout == "bytes " * 100000, got.stdout[:100]


def preload_exports(_):
    """preload: exports only the functions that it replaces"""
    symbols = run("nm", "-D", "--defined-only", PRELOAD).stdout.split("\n")
    names = {line.split()[-1] for line in symbols if line.strip()}
    assert names == {"socket", "getsockopt", "connect", "listen"}, names


def installs(_):
    """make install: uses DESTDIR and PREFIX, and smctl expects its library there"""
    with tempfile.TemporaryDirectory() as folder:
        done = run("make", "-s", "-C", SRC / "tools", "install", f"O={folder}/build",
                   f"DESTDIR={folder}/root", "PREFIX=/usr")
        assert done.returncode == 0, done.stderr
        files = {str(path.relative_to(f"{folder}/root"))
                 for path in pathlib.Path(f"{folder}/root").rglob("*") if path.is_file()}
        assert files == {"usr/sbin/smctl", "usr/lib/libafrdma-preload.so",
                         "usr/include/linux/af_rdma.h", "usr/include/linux/af_rdma_netlink.h",
                         "usr/share/man/man7/afrdma.7",
                         } | {f"usr/share/man/man8/{path.name}"
                              for path in (SRC / "Documentation/man").glob("smctl*.8")}, files
        done = run(f"{folder}/root/usr/sbin/smctl", "run", "true")
        there = os.path.exists("/usr/lib/libafrdma-preload.so")     # smctl ignores DESTDIR
        assert done.returncode == 0 if there else \
            "no /usr/lib/libafrdma-preload.so" in done.stderr, done


def clang_compiles(_):
    """clang compiles both without warnings"""
    if not shutil.which("clang"):
        raise Skip("no clang")
    with tempfile.TemporaryDirectory() as folder:
        done = run("make", "-s", "-C", SRC / "tools", f"O={folder}", "CC=clang")
        assert done.returncode == 0 and not done.stderr, done.stderr


CASES = [text_has_keys_of_json, pretty_is_the_same, numbers_are_whole, addresses,
         reasons_by_name, reasons_of_the_peer, filters, nothing_matches, kernel_errors,
         output_errors, not_loaded, wrong_usage, help_is_output, version_is_output, run_status,
         preload_answers, preload_debug, preload_serves, preload_exports, installs, clang_compiles]


def main(cases, build):
    """Run the cases with the result of @build; the docstring of a case is its name."""
    made = run("make", "-s", "-C", SRC / "tools")
    if made.returncode:
        sys.exit(f"Bail out! the tools do not build:\n{made.stderr}")
    bad = 0
    ktap.begin(len(cases))
    with tempfile.TemporaryDirectory() as folder:
        built = build(pathlib.Path(folder))
        for number, case in enumerate(cases, 1):
            note, wrong = "", None
            try:
                case(built)
            except Skip as why:
                note = f"SKIP {why}"
            except Exception as error:  # pylint: disable=broad-exception-caught
                bad += 1
                wrong = f"# {type(error).__name__}: {error}".replace("\\n", "\n# ")
            print(ktap.result(not wrong, number, case.__doc__, note), flush=True)
            if wrong:
                print(wrong, flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(CASES, build_fake))
