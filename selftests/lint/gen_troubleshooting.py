#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Generate Documentation/networking/afrdma-troubleshooting.rst from the list of reasons.

    gen_troubleshooting.py            check that the file is up to date: KTAP
    gen_troubleshooting.py --write    write it

Sentence and remedy come from reason.h. NOTES adds at which end a reason is set and what to look at;
the generator fails if a reason has no note.
"""

import pathlib
import re
import sys
import textwrap

import gen_reference
import ktap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOC = ROOT / "Documentation/networking/afrdma-troubleshooting.rst"
COLUMNS = 98

OWN = "the end whose setting or socket it is; the other end shows it with peer:"
FINDS = "the end that finds it; if that is the server, the client shows it with peer:"
LINK = "both ends of the link, each with what it has seen; connections of the link show it"
ABORTS = "the end that aborts; the peer shows RESET or PEER_ERROR"
OPTIONS = "syn_option and synack_option of smctl stats at both ends; " \
          "tcpdump 'tcp[tcpflags] & tcp-syn != 0' -v at both ends for the option"
DEVICE = "smctl dev, rdma link, ip route get PEER"
PATH = "smctl link, smctl dev at the peer, the firewall (nft list ruleset) at both ends"
MEMORY = "ring_pages and mem_max of smctl info, ring_no_memory of smctl stats, free"
ABORT = "peer_violation of smctl stats, smctl --version and the module's version at both ends"
WIRE = "smctl link at both ends, the counters of the device (rdma statistic show), link_died of " \
       "smctl stats"

# NAME: (where it is set, what to look at). An empty string leaves out the line.
NOTES = {
    "PEER_PLAIN": ("the client", OPTIONS),
    "OPTION_ECHOED": ("the client", OPTIONS),
    "OPTION_BAD": ("the client for the SYN-ACK, the server for the SYN", OPTIONS),
    "OPTION_NO_ROOM": ("the client for its SYN, the server for its SYN-ACK",
                       "ss -ti for the options of the connection, net.ipv4.tcp_ecn"),
    "OPTION_DROPPED": ("the client for SYNs, the server for SYN-ACKs", OPTIONS),
    "CLIENT_PLAIN": ("the server", OPTIONS + "; TcpExtSyncookiesSent of nstat"),
    "NO_HELLO": ("the server", OPTIONS),
    "HELLO_TIMEOUT": ("the server", "rtt of ss -ti at the server"),
    "FAMILY_OFF": ("the end whose setting it is", "smctl info, also in the initial namespace"),
    "NO_NETFILTER": ("the end that connects or listens", "the kernel log, nft list ruleset"),
    "MIGRATION": ("the server", "sysctl net.ipv4.tcp_migrate_req, bpftool prog"),
    "SOCKET_OPTION": (OWN, "/etc/afrdma/run.conf, the options of smctl run"),
    "CALL_RUNNING": ("the end that connects or listens", ""),
    "SHUT_BEFORE": ("the end that connects or listens", ""),
    "NOT_YET": ("the client", "tx_bytes_tcp and rx_bytes_tcp of smctl conn, upgrade_bytes and "
                "upgrade_msgs of smctl info"),
    "UPGRADE_OFF": (OWN, "smctl info"),
    "PEER_NO_SERVICE": ("the client", "smctl dev and rdma link at the server"),
    "NO_ROUTE": ("the client; a server shows it if it had no usable device for any connection",
                 DEVICE),
    "CONNECT_FAILED": ("the client", "link_refused of smctl stats at the peer, the kernel log"),
    "CONNECT_TIMEOUT": ("the client", PATH + "; with Soft-RoCE, rdma res show qp for a queue pair "
                        "of type GSI in state ERR: it receives nothing until the device is deleted "
                        "and added again"),
    "NO_MEMORY": (FINDS, MEMORY + "; memory.max of the cgroup; rdma resource show"),
    "MR_FAILED": (FINDS, "ring_max of smctl dev, tx_ring and rx_ring of smctl conn"),
    "DMA_SYNC": (FINDS, "the kernel log for swiotlb"),
    "XFRM_POLICY": (FINDS, "ip xfrm policy"),
    "SOCKET_FILTER": (OWN, ""),
    "NO_SLOT": ("the client", "users of smctl link"),
    "RING_LIMIT": (FINDS, MEMORY),
    "UNKNOWN_LINK": ("the server; the client shows it with peer:", WIRE),
    "ATTACH_TIMEOUT": ("the client", "rtt of ss -ti, the load of the server"),
    "LINK_BUSY": ("the client", WIRE),
    "NETNS": ("the end whose namespace it is", "smctl dev in the namespace, rdma system"),
    "CLOSING": ("the end that closes; the other end shows it with peer:",
                "state of smctl conn"),
    "HALF_FRAMED": ("both ends", "reason HELLO_TIMEOUT at the server"),
    "DEVICE_LACKS": ("the end of the device", "smctl dev"),
    "OPERATOR": (OWN, "smctl conn at both ends: without peer:, it is this end"),
    "ATTACH_LIMIT": (FINDS, "attaches_max of smctl info"),
    "GROUP_LIMIT": (FINDS, "smctl link, groups_max of smctl info"),
    "PEER_SHARE": (FINDS, MEMORY + "; smctl conn peer ADDRESS"),
    "USER_SHARE": (FINDS, MEMORY + "; smctl conn uid UID"),
    "LINK_LIMIT": (FINDS, "smctl link"),
    "UPGRADING": ("the client", "smctl link: is it connecting?"),
    "CLIENT_BEGINS": ("the server", "smctl conn at the client"),
    "TUNNEL": (FINDS, "ip route get PEER, ip -d link"),
    "LINK_COMPLETION": (LINK, WIRE + "; the status: echo 'module afrdma +p' "
                        ">/sys/kernel/debug/dynamic_debug/control"),
    "LINK_DISCONNECTED": (LINK, "smctl conn and smctl link at the other end"),
    "LINK_DEVICE_REMOVED": ("the end of the device; the other end shows LINK_DISCONNECTED",
                            DEVICE),
    "LINK_QP_EVENT": (LINK, "the kernel log"),
    "LINK_PORT_DOWN": ("the end of the port", "ip link, rdma link"),
    "LINK_ADDR_CHANGE": ("the end of the address", "ip address, ip route get PEER"),
    "LINK_PEER_RESUME": ("the end that was left", "smctl conn at the other end"),
    "LINK_DETACH_TIMEOUT": (LINK, "detach_late of smctl stats, the load of the other end"),
    "LINK_IDLE": (LINK, ""),
    "LINK_SHUTDOWN": (LINK, ""),
    "LINK_PROTOCOL": ("the end that finds it", ABORT),
    "LINK_OPERATOR": ("the end of the command; the other end shows LINK_DISCONNECTED", ""),
    "LINK_SILENT": (LINK, PATH),
    "LINK_UNACKED": ("the end that sent", WIRE + "; ping -M do -s SIZE PEER, while TCP and UDP "
                     "port 4791 may be treated differently"),
    "LINK_SHORT": ("the client", WIRE + "; ping -M do -s SIZE PEER"),
    "SYN_TAKEN": ("the server", ""),
    "RESET": ("the end that received it", "the log of the peer's program, the firewall"),
    "TCP_ERROR": ("the end that finds it", "ping PEER, ss -ti"),
    "TCP_EOF": ("the end that received it", "the log of the peer's program"),
    "CLOSED_UNREAD": (ABORTS, ""),
    "LINGER_ZERO": (ABORTS, ""),
    "ORPHAN_DATA": (ABORTS, ""),
    "ORPHAN_TIMEOUT": (ABORTS, "smctl conn orphan true"),
    "PEER_ERROR": ("the end that received the frame", "the tracepoint afrdma_conn_abort at the "
                   "peer, " + ABORT),
    "ORPHAN_LIMIT": (ABORTS, "smctl conn orphan true"),
    "HELLO_CUT": (ABORTS, "rtt of ss -ti"),
}

HEAD = """\
.. SPDX-License-Identifier: GPL-2.0
.. Made by selftests/lint/gen_troubleshooting.py from the sources: do not edit.

========================
AF_RDMA: troubleshooting
========================

One entry for each reason that ``smctl conn``, ``smctl link`` and ``smctl dev`` show: what it
means, at which end it is set, what to look at, and the remedy, which smctl shows as well.
Symptoms without a reason are in afrdma.rst, section "Troubleshooting".

To begin:

1. ``smctl conn`` at the end where you are, then at the other one. The client starts the move to
   RDMA, so its reason tells more. ``peer:`` before a sentence means that the other end has sent
   the reason: sentence and remedy are about that end.
2. Find the name of the reason below.
3. Apply the remedy. A reason of the first group stays for the life of a connection: only new
   connections can use RDMA. One of the second group goes away by itself: the client tries
   again, at first after ``attach_retry_ms``.

.. contents::
   :local:
   :depth: 2
"""


def entry(number, name, words, remedy):
    if words.startswith("protocol violation"):
        where, look = NOTES.get(name, (ABORTS, ABORT))
    else:
        where, look = NOTES[name]
    lines = [("Meaning", gen_reference.sentence(words)), ("Set at", where + "."),
             ("Look at", look + "." if look else ""),
             ("Remedy", gen_reference.sentence(remedy) if remedy else "None: there is nothing to "
              "do.")]
    title = f"{name} ({number})"
    text = f"\n{title}\n{'-' * len(title)}\n\n"
    for term, line in lines:
        if line:
            text += textwrap.fill(f":{term}: {line}".replace("*", r"\*"), COLUMNS,
                                  subsequent_indent="   ", break_on_hyphens=False,
                                  break_long_words=False) + "\n"
    return text


def generate():
    text = HEAD
    body = gen_reference.read("proto/reason.h").split("#define AFR_REASONS", 1)[1]
    for number, name, words, remedy, group in gen_reference.REASON.findall(
            body.split("#ifndef", 1)[0]):
        if group:
            title = group[0].upper() + group[1:]
            text += f"\n{title}\n{'=' * len(title)}\n"
        elif number != "0":
            text += entry(number, name, words, remedy)
    return text


def known():
    return dict((name, words) for _, name, words, _, _ in gen_reference.REASON.findall(
        gen_reference.read("proto/reason.h")) if name)


def check_notes(_):
    for name, words in known().items():
        if name != "NONE" and name not in NOTES and not words.startswith("protocol violation"):
            yield f"reason {name} has no note: add it to NOTES"
    for name in sorted(set(NOTES) - set(known())):
        yield f"NOTES: there is no reason {name}"


def check_counters(text):
    """Names with "_" in the notes are counters, settings, or fields of smctl."""
    tools = "".join(path.read_text() for path in sorted((ROOT / "tools/smctl").glob("*.c")))
    names = {name.lower() for name, _ in gen_reference.STAT.findall(gen_reference.read("netns.h"))}
    names |= set(re.findall(r"SETTING_\w+\((\w+)", gen_reference.read("sysctl.c")))
    names |= set(re.findall(r'"(\w+)"', tools)) | {"tcp_ecn", "tcp_migrate_req", "dynamic_debug"}
    names |= {"afrdma_conn_abort"} if "conn_abort" in gen_reference.read("trace.h") else set()
    for line in re.findall(r"^:Look at: (.*(?:\n   .*)*)", text, re.M):
        for word in re.findall(r"\b[a-z]+_\w+", line):
            if word not in names:
                yield f"{word} does not exist"


def check_same(text):
    there = DOC.read_text() if DOC.exists() else ""
    if there != text:
        yield f"{DOC.name} is out of date: run selftests/lint/gen_troubleshooting.py --write"


CHECKS = [
    ("each reason has a note", check_notes),
    ("counters, settings and fields in the notes exist", check_counters),
    ("afrdma-troubleshooting.rst is up to date", check_same),
]


def main():
    missing = list(check_notes(""))
    text = "" if missing else generate()
    if sys.argv[1:] == ["--write"] and text:
        DOC.write_text(text)
    return ktap.run(CHECKS, text)


if __name__ == "__main__":
    sys.exit(main())
