# SPDX-License-Identifier: GPL-2.0
"""The table of fault rows: each fault, its permitted effects on programs, and time limits.

Names are those of the fault matrix, F1 to F40, with a number after the dot where a
fault has several strengths or stages; X1 to X4 are further rows.
"""
import dataclasses

LINK_TIMEOUT_MS = 2000          # net.afrdma.link_timeout_ms of the rows
# Milliseconds within which a silent link must be detected, and its streams continue on TCP.
NOTICED = 2 * LINK_TIMEOUT_MS + 1000
RTO = 1000                      # milliseconds that a lost segment of TCP may add to a pause


@dataclasses.dataclass
class Row:
    """A fault row.

    Commands are for bash; {me}, {peer}, {mtu} and the other words of Context.words() are
    replaced. "fault" is run in the guest at fault, "other" in the other one, shortly before or
    after. With emulation or debugging checks the limits are higher, see SLOW in stream.py.
    """
    name: str
    what: str
    fault: str = ""
    undo: str = ""
    other: str = ""
    other_undo: str = ""
    # stream.run() and each function in special.py use only some of the members below.
    #
    # Seconds between fault and undo. If "errors" is not empty, stream.run() does not undo the
    # fault. If hold is 0, handshake() undoes the fault after the new connections have ended; else
    # hold begins when all of them exist, and no byte of their streams may arrive at the client
    # before undo. dead_host() boots the killed guest at once if hold is 0, else after the streams
    # of the other guest have ended with an error.
    hold: float = 3
    # Longest pause that is allowed, in milliseconds; F20 adds hold to it, F34 twice hold.
    stall: int = NOTICED
    back: float = 40            # seconds in which all streams must return to RDMA
    # Errors with which streams may end. If the set is not empty, stream.run() and dead_host()
    # require that in each guest, unless it was killed, all streams end, at least one of them with
    # an error; other functions do not require an error. If the set is empty, stream.run() requires
    # that the streams continue.
    errors: frozenset = frozenset()
    within: int = 0             # maximum milliseconds from the fault to such an error
    load: tuple = ()            # more options for afr_load
    moves: bool = False         # because of the fault, at least one stream must leave its link
    quick: bool = False         # part of "make check"
    how: str = ""               # function in special.py, for rows that stream.run() cannot run
    guest: str = "uml"          # the kind of guest, unless --guest selects another one
    not_in: tuple = ()          # guests (patterns) that cannot run this: (("vm-*", "why"),)
    roles: str = "ab"           # guests that can be at fault
    conns: int = 4
    before: str = ""            # run in both guests before the load starts
    net: str = ""               # network of the load's addresses, which end in .1 and .2
    cycles: int = 0             # number of connections or link losses; how="chaos": seconds
    modes: tuple = ()           # handshakes: (mode with the fault at a, at b)
    reasons: tuple = ()         # ((client, server) with the fault at a, (client, server) at b)
    prefix: tuple = ()          # in the guest at fault: command that starts afr_load
    faults: tuple = ()          # how="storm": ((fault, undo), ...), chosen at random
    survivor: bool = False      # the fault stops its guest: the driver must run in the other one
    seconds: int = 15           # approximate duration of the row

    def driver(self, role):
        """The guest that runs the driver of this row."""
        return "b" if self.survivor and role == "a" else "a"


def arrivals(rule):
    """An nft command with a rule for incoming packets."""
    return ("nft -f - <<'END'\ntable inet faults {\n\tchain in {\n"
            f"\t\ttype filter hook prerouting priority -300;\n\t\t{rule}\n\t}}\n}}\nEND\n")


NO_DROP = "nft delete table inet faults"
NO_NETEM = "tc qdisc del dev eth0 root"
PARTITION = (arrivals('iifname "eth0" drop')
             + "tc qdisc add dev eth0 root netem loss 100% limit 100000")
TOGETHER = NO_DROP + "\n" + NO_NETEM


def netem(name, what, words, **more):
    """A row with a netem queue, which must never be full.

    When a queue refuses a packet of rxe, the queue pair goes to the error state, which QP 1
    of the port never leaves.
    """
    return Row(name, what, f"tc qdisc add dev eth0 root {words} limit 100000", NO_NETEM, **more)


def both_sides(row):
    """The row with the same fault in the other guest as well."""
    row.other, row.other_undo = row.fault, row.undo
    return row


LINK_DEL = "rdma link del rxe0"
LINK_ADD = "rdma link add rxe0 type rxe netdev eth0"


def set_to(name, value):
    """The command that sets net.afrdma.@name."""
    return f"echo {value} >/proc/sys/net/afrdma/{name}"


def handshake(name, what, fault, undo, modes, reasons, **more):
    """A row in which a fault affects the handshake of new connections.

    A reason of None is not checked. Where there are several, the reason depends on which end
    retransmits its segment first.
    """
    return Row(name, what, fault, undo, hold=more.pop("hold", 0), modes=modes, reasons=reasons,
               how="handshake", **more)


PLAIN = ("plain", "plain")
FRAMED = ("framed", "framed")

# IPsec: both guests have the same keys; policies match only the row's new connections.
ESP = "".join(f"ip xfrm state add src {{{a}}} dst {{{b}}} proto esp spi {spi} mode transport "
              "enc 'cbc(aes)' 0x00112233445566778899aabbccddeeff\n"
              for a, b, spi in (("me", "peer", "0x10{number}"), ("peer", "me", "0x10{other}")))
ESP += "".join(f"ip xfrm policy add dir {way} src {{{a}}} dst {{{b}}} proto tcp {port} 7301 "
               "tmpl proto esp mode transport\n"
               for port in ("sport", "dport")
               for way, a, b in (("out", "me", "peer"), ("in", "peer", "me")))

HANDSHAKES = [
    handshake("F10", "option stripped", arrivals("reset tcp option 254"), NO_DROP, PLAIN,
              (("PEER_PLAIN", "NO_HELLO"), ("PEER_PLAIN", "CLIENT_PLAIN")), quick=True),
    handshake("F11.1", "option mangled", arrivals("tcp option @254,64,32 set 0x12345678"), NO_DROP,
              PLAIN, (("OPTION_BAD", "NO_HELLO"), ("OPTION_BAD", "NO_HELLO"))),
    handshake("F11.2", "version of the option changed",
              arrivals("tcp option @254,48,16 set 0x0900"), NO_DROP, PLAIN,
              (("OPTION_BAD", "NO_HELLO"), ("PEER_PLAIN", "OPTION_BAD"))),
    handshake("F36.1", "segments with the option dropped",
              arrivals("tcp flags syn tcp option 254 exists drop"), NO_DROP, PLAIN,
              (("OPTION_DROPPED|PEER_PLAIN", "NO_HELLO|OPTION_DROPPED|CLIENT_PLAIN"),
               ("OPTION_DROPPED", "CLIENT_PLAIN"))),
    handshake("F36.2", "switched off", set_to("enabled", 0), set_to("enabled", 1), PLAIN,
              (("FAMILY_OFF", "CLIENT_PLAIN"), ("PEER_PLAIN", "FAMILY_OFF"))),
    handshake("F36.3", "the first bytes come late",
              arrivals("tcp flags & psh == psh tcp dport 7301 drop\n"
                       "\t\ttcp flags & psh == psh tcp sport 7301 drop"), NO_DROP,
              ("rdma", "half"), ((None, None), ("HALF_FRAMED", "HALF_FRAMED")), hold=4.5,
              load=("--greet",)),
    handshake("F36.4", "upgrade denied", set_to("upgrade", 0), set_to("upgrade", 1), FRAMED,
              (("UPGRADE_OFF", None), ("UPGRADE_OFF", None))),
    handshake("F36.5", "no device", LINK_DEL, LINK_ADD, FRAMED,
              (("NO_ROUTE", None), ("PEER_NO_SERVICE", None))),
    handshake("F36.6", "UDP 4791 blocked", arrivals("udp dport 4791 drop"), NO_DROP, FRAMED,
              (("CONNECT_TIMEOUT", None), ("CONNECT_TIMEOUT", None)), quick=True),
    both_sides(handshake("F36.7", "an IPsec policy", ESP,
                         "ip xfrm policy flush; ip xfrm state flush", FRAMED,
                         (("XFRM_POLICY", None), ("XFRM_POLICY", None)))),
    handshake("F36.8", "no ring memory for more",
              "cd /proc/sys/net/afrdma; echo $((4 * 128 + 100)) >mem_max",
              "echo 1000000 >/proc/sys/net/afrdma/mem_max", FRAMED,
              (("RING_LIMIT", None), ("RING_LIMIT", None)), conns=1),
    # Nothing waits at the server to be sent, so its send direction stays undecided.
    handshake("F36.9", "the first bytes come late, and the server only receives",
              arrivals("tcp flags & psh == psh tcp dport 7301 drop"), NO_DROP,
              ("rdma", "rdma"), ((None, None), (None, None)), hold=4.5, roles="b"),
]

# rxe0 on eth0 would also have the addresses of mv0 in its GID table, so rdma_cm might choose rxe0
# for these addresses; but rxe delivers a packet to the device of the interface on which the packet
# arrives. So rxe0 is deleted, and eth0 must not answer ARP requests for addresses of mv0.
MV_ADD = ("rdma link del rxe0 2>/dev/null || :\nsysctl -qw net.ipv4.conf.eth0.arp_ignore=1\n"
          "ip link add mv0 address 02:af:01:00:00:0{number} link eth0 type macvlan mode bridge\n"
          "ip addr add 10.78.0.{number}/24 dev mv0; ip link set mv0 up\n"
          "rdma link add rxe1 type rxe netdev mv0")
RESETS = frozenset({"ECONNRESET", "EPIPE", "ECONNABORTED"})
GONE = RESETS | {"ECONNREFUSED", "ENODATA", "ENOTCONN"}
HOGS = """for i in 1 2 3 4 5 6; do timeout 6 sh -c 'while :; do :; done' >/dev/null 2>&1 & done
renice 19 -p $(pgrep kworker) >/dev/null 2>&1 || :"""
SS_KILL = "ss -K state established '( sport = 7300 or dport = 7300 )' | grep -q 7300"
# The links of the previous row have to end before the streams of this row begin: verbfault's
# parameter kill affects only queue pairs that are created after insmod, and verbs that create a
# link can be made to fail only when a new link is created.
VERBS_IN = ("insmod {verbfault}; echo 100 >/proc/sys/net/afrdma/link_linger_ms\n"
            "for i in {1..150}; do [ -n \"$({smctl} link)\" ] || break; sleep 0.1; done")
NO_VERBFAULT = (("vm-*", "verbfault.ko is for User-Mode Linux"),)
LOSS = ("tc qdisc add dev eth0 root netem loss 2% limit 100000", NO_NETEM)
UDP = (arrivals("udp dport 4791 drop"), NO_DROP)
MEMORY = ("bash", "-c", "echo $$ >/sys/fs/cgroup/faults/cgroup.procs; exec \"$@\"", "-")

ROWS = [
    netem("F1.1", "loss 0.1 %", "netem loss 0.1%"),
    netem("F1.2", "loss 1 %", "netem loss 1%", quick=True),
    netem("F1.3", "loss 5 %", "netem loss 5%", stall=NOTICED + 4 * RTO),
    netem("F2", "delay 50 ms, jitter 10 ms", "netem delay 50ms 10ms", stall=NOTICED + RTO),
    netem("F3", "reorder 25 %", "netem delay 10ms reorder 25% 50%", quick=True),
    netem("F4", "duplicate 5 %", "netem duplicate 5%"),
    netem("F5", "corrupt 0.1 %", "netem corrupt 0.1%"),
    netem("F6", "rate 1 Mbit/s", "netem rate 1mbit", load=("--buf", 16384)),
    Row("F7.1", "partition of 2 s", PARTITION, TOGETHER, hold=2, stall=2 * 2000 + RTO + NOTICED,
        quick=True),
    Row("F7.2", "partition of 20 s", PARTITION, TOGETHER, hold=20, stall=2 * 20000 + RTO,
        back=70),
    Row("F7.3", "permanent partition", PARTITION, TOGETHER, errors=frozenset({"ETIMEDOUT"}),
        load=("--user-timeout", 3000), within=NOTICED + 2 * 3000 + RTO, quick=True),
    Row("F8.1", "UDP 4791 blocked at one end, TCP open", arrivals("udp dport 4791 drop"), NO_DROP,
        hold=8, moves=True, quick=True),
    both_sides(Row("F8.2", "UDP 4791 blocked both ways, TCP open", arrivals("udp dport 4791 drop"),
                   NO_DROP, hold=8, moves=True)),
    both_sides(Row("F9", "TCP blocked, UDP 4791 open", arrivals("meta l4proto tcp drop"), NO_DROP,
                   hold=6)),
    Row("F12", "interface down, up", "ip link set eth0 down", "ip link set eth0 up; {address6}",
        hold=2, stall=2 * 2000 + RTO + NOTICED, moves=True, quick=True),
    Row("F13", "MTU lowered, raised", "ip link set eth0 mtu 1000",
        "ip link set eth0 mtu {mtu}; {address6}", hold=3,
        stall=2 * 3000 + RTO + NOTICED, guest="uml-debug",
        not_in=(("uml", "its network driver does not accept an MTU above 1500 again"),)),
    Row("F14", "address removed, added", "ip addr del {me}/24 dev eth0",
        "ip addr add {me}/24 dev eth0", hold=2, stall=2 * 2000 + RTO + NOTICED, moves=True,
        quick=True),
    Row("F15.1", "rdma link del, add", LINK_DEL, LINK_ADD, moves=True, quick=True),
    Row("F15.2", "device deleted, another one exists", "rdma link del {dev}",
        how="another_device", before="rdma link add siw0 type siw netdev eth0", stall=2000,
        # The fault is only at a, the client, whose rdma_cm chooses the device. If b lost its rxe0,
        # a would still send its connect requests to b's rxe0.
        roles="a",
        not_in=(("vm-*", "no siw in Debian's kernels"),
                ("*-debug", "lockdep reports siw's own use of sk_callback_lock"))),
    Row("F16", "interface deleted, created again", "ip link del mv0", MV_ADD, before=MV_ADD,
        net="10.78.0", stall=2 * 3000 + RTO + NOTICED, moves=True),
    Row("F17", "rmmod rdma_rxe", "rmmod rdma_rxe", "modprobe rdma_rxe; " + LINK_ADD,
        guest="vm-6.12", moves=True, not_in=(("uml*", "rxe is built in"),)),
    Row("F18", "rmmod afrdma", how="module_of_ours",
        not_in=(("*-debug", "KASAN there mistakes a module for the one before at its address"),)),
    Row("F19", "SIGKILL of the program in any state", how="killed_program", errors=GONE,
        within=6000, seconds=60),
    Row("F20", "SIGSTOP of the program, SIGCONT", how="stopped_program", hold=60, stall=2000,
        seconds=80),
    Row("F21", "SIGKILL of the peer's host", how="dead_host", hold=1, survivor=True,
        load=("--user-timeout", 3000), errors=frozenset({"ETIMEDOUT"}),
        within=NOTICED + 2 * 3000 + RTO, seconds=40),
    Row("F22", "peer's host rebooted, same addresses", how="dead_host", hold=0, survivor=True,
        errors=RESETS, within=20000, seconds=40),
    Row("F23", "the TCP connection is killed, its peer gets RST", SS_KILL, errors=RESETS,
        within=5000, quick=True),
    Row("F24", "half-closed, then the link is lost", how="half_closed", stall=2000),
    Row("F25", "listener closed in the middle of handshakes", how="listener_churn", seconds=25),
    # With SYN cookies and a full backlog, TCP drops a client's first segment of data, and answers
    # later ones, whose sequence numbers do not match the cookie, with a reset.
    Row("F26", "accept backlog full", "sysctl -qw net.ipv4.tcp_syncookies=0",
        "sysctl -qw net.ipv4.tcp_syncookies=1", how="full_backlog", roles="b", seconds=40),
    Row("F27.1", "no file descriptors: EMFILE", how="no_descriptors",
        prefix=("prlimit", "--nofile=20"), seconds=30),
    Row("F27.2", "no files: ENFILE",
        "sysctl -qw fs.file-max=$(($(cut -f 1 /proc/sys/fs/file-nr) + 12))",
        "sysctl -qw fs.file-max=1000000", how="no_descriptors",
        prefix=("setpriv", "--reuid=65534", "--clear-groups"), seconds=30),
    Row("F28", "memory cgroup too small", how="little_memory", prefix=MEMORY, seconds=40,
        fault="echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/faults; "
        "echo 8M >/sys/fs/cgroup/faults/memory.max", undo="rmdir /sys/fs/cgroup/faults",
        errors=GONE | {"ENOMEM", "ENOBUFS", "ETIMEDOUT"}),
    Row("F29", "every allocation and user copy of every call fails", how="sweep",
        guest="uml-debug", seconds=120, not_in=(("uml", "no fault injection"),
        ("uml-7.2", "no fault injection"), ("vm-*", "no fault injection"))),
    Row("F30", "every call of every verb fails", VERBS_IN, how="failing_verbs", stall=NOTICED,
        seconds=240, not_in=NO_VERBFAULT),
    Row("F31", "no receive is posted: RNR", VERBS_IN, how="no_receives", stall=2 * NOTICED,
        load=("--buf", 16384), not_in=NO_VERBFAULT),
    Row("F32", "queue pair to the error state",
        "echo 1 >/sys/module/verbfault/parameters/kill", before=VERBS_IN, moves=True,
        quick=True, not_in=NO_VERBFAULT),
    Row("F33", "CPU offline, online", "echo 0 >/sys/devices/system/cpu/cpu1/online",
        "echo 1 >/sys/devices/system/cpu/cpu1/online", guest="vm-6.12",
        not_in=(("uml*", "User-Mode Linux cannot take a CPU offline"),)),
    Row("F34", "host stopped, continued", how="frozen_host", hold=5, survivor=True),
    Row("F35", "namespaces end with open sockets", how="dead_namespace", seconds=60,
        not_in=(("*-debug", "UML panics in flush_tlb_mm() when a fork is killed"),)),
    *HANDSHAKES,
    Row("F37", "flood of SYNs, with the AF_RDMA option and without", how="flood", seconds=40),
    Row("F38", "both ends connect to each other", how="both_connect", roles="a"),
    Row("F39", "10,000 connections while devices are deleted", how="storm", cycles=10000,
        faults=((LINK_DEL, LINK_ADD),), seconds=120),
    Row("F40", "work queues starved", HOGS, "renice 0 -p $(pgrep kworker) >/dev/null 2>&1 || :",
        hold=6, stall=8000),
    Row("X1", "the only link killed 100 times", how="link_kills", cycles=100, stall=2000,
        before=set_to("attach_retry_ms", 1), seconds=300),
    # A single peer gets half of the memory for pinned rings, which by default is too little for so
    # many connections.
    Row("X2", "1,000 connections at once", how="many_at_once", conns=1000, roles="a",
        before=set_to("mem_max", 1000000), seconds=60),
    Row("X3", "20,000 connections under faults of many kinds", how="storm", cycles=20000,
        errors=frozenset({"ENETUNREACH"}),
        faults=((LINK_DEL, LINK_ADD), LOSS, UDP, ("ip link set eth0 down",
                "ip link set eth0 up; {address6}")), seconds=240),
    # for how="chaos", cycles is a number of seconds
    Row("X4", "faults of many kinds at the same time", how="chaos", roles="a", conns=6, cycles=240,
        seconds=360),
]
