# SPDX-License-Identifier: GPL-2.0
"""The functions that run fault rows which stream.run() cannot run; Row.how names them."""
import json
import os
import shlex
import time

from chaos import chaos         # noqa: F401, pylint: disable=unused-import
from hosts import SRC, Broken, RowFailed, lab, wait
from rows import LINK_ADD
from stream import PORT, SLOW, Streams, error_names, expect_error, over

SWEEP = SRC / "build/faults/afr_sweep"
SMALL = SRC / "selftests/faults/small.py"


def streams_on_rdma(ctx, **more):
    """Start the streams of a row, and wait until they are on RDMA."""
    streams = Streams(ctx, words=["--rate", 1000, *more.pop("words", ())], **more)
    ctx.streams = streams
    wait("on RDMA before the fault", 40 * SLOW, streams.on_rdma)
    streams.mark()
    return streams


def still_fine(streams, ctx, bound):
    """End streams, which must be moving; they must not have stalled for longer than @bound ms."""
    wait("streams go on", bound * SLOW / 1000 + 2, streams.moving)
    streams.end()
    ctx.seen(stall=streams.stall())
    if streams.stall() > bound * SLOW:
        raise RowFailed(f"stood still for {streams.stall()} ms, bound {bound * SLOW}")


# --- F10, F11, F36: faults of the handshake ---------------------------------

def reasons(load):
    """The reasons of the open connections of @load."""
    return {name for name in str(load.status()["reasons"]).split(",") if name}


def says(load, reason):
    """Has a connection of @load the reason, or one of several separated by "|"? True if @reason is
    None."""
    return reason is None or bool(reasons(load) & set(reason.split("|")))


def handshake(ctx, row):
    """New connections deliver every byte, in the mode and with the reasons of the row, and older
    ones continue."""
    role = ctx.at_fault.role
    old = streams_on_rdma(ctx)
    ctx.do(ctx.at_fault, row.fault)
    ctx.do(ctx.not_at_fault, row.other)
    new = Streams(ctx, port=PORT + 1, conns=row.conns, words=["--rate", 100, *row.load])
    mode = row.modes["ab".index(role)]
    if row.hold:
        wait("the new connections exist", 30 * SLOW,
             lambda: all(load.status()["begun"] == new.conns for load in new.both))
        time.sleep(row.hold)
        ctx.do(ctx.at_fault, row.undo)
    for load, reason in zip(new.both, row.reasons["ab".index(role)]):
        wait(f"at {load.host.role} new connections are {mode} for {reason}", 30 * SLOW,
             lambda: load.status()[mode] == new.conns and says(load, reason))
    time.sleep(1)
    # hold counts from the last accept(). The client's pause begins when the client has sent its
    # header, which may be up to 1 s later.
    if row.hold and new.client.status()["stall_ms"] < (row.hold - 1) * 1000:
        raise RowFailed("the fault did not delay the first bytes")
    if any(load.status()["rdma"] for load in new.both) != (mode == "rdma"):
        raise RowFailed("on RDMA, or not on RDMA, against what the row forces")
    new.end()
    ctx.seen(verified=new.verified())
    if not row.hold:
        ctx.do(ctx.at_fault, row.undo)
    ctx.do(ctx.not_at_fault, row.other_undo)
    still_fine(old, ctx, row.stall)


# --- F15: devices -----------------------------------------------------------

def another_device(ctx, row):
    """Two devices on one interface: when the one in use is deleted, the streams move to the
    other one; when that one is deleted in its turn, they move back."""
    here = ctx.at_fault
    for host in ctx.hosts.values():
        ctx.do(host, row.before)
    streams = streams_on_rdma(ctx)
    for _ in range(2):
        streams.mark()
        moves = [load.state["moves"] for load in streams.both]
        old = in_use(ctx, here)
        ctx.do(here, row.fault.replace("{dev}", old))
        wait("on RDMA by another device", row.back * SLOW, lambda: streams.on_rdma() and all(
            load.state["moves"] > before for load, before in zip(streams.both, moves)))
        new = in_use(ctx, here)
        if old == new:
            raise RowFailed(f"on {new}, which was deleted")
        ctx.seen(stall=max(ctx.stall or 0, streams.stall()), note=f"{ctx.note} {old} to {new};")
        ctx.do(here, LINK_ADD if old == "rxe0" else row.before)
        # A connection that was attached for 10 s attaches again at once when its link is lost.
        time.sleep(11)
    still_fine(streams, ctx, row.stall)
    for host in ctx.hosts.values():
        ctx.do(host, "rdma link del siw0")


def in_use(ctx, host):
    """The device of the links that carry connections."""
    out = ctx.do(host, f"{SRC}/build/tools/smctl -j link")
    devices = {link["device"] for link in json.loads(out) if link["users"]}
    if len(devices) != 1:
        raise RowFailed(f"links over {sorted(devices)}")
    return devices.pop()


# --- F17, F18: modules ------------------------------------------------------

def module_of_ours(ctx, row):
    """rmmod is refused while there are streams, and succeeds soon after the last close."""
    here = ctx.at_fault
    streams = streams_on_rdma(ctx)
    for _ in range(3):
        if not here.sh("rmmod afrdma")[0]:
            raise RowFailed("rmmod afrdma was not refused")
        time.sleep(ctx.rng.random() / 2)
    streams.end()
    ctx.do(here, "for i in $(seq 300); do rmmod afrdma 2>/dev/null && exit; sleep 0.05; done;"
           "rmmod afrdma")
    ctx.do(here, f"insmod {os.environ['AFR_MODULE']} {os.environ['AFR_MODULE_ARGS']}")
    again = streams_on_rdma(ctx)
    again.end()
    ctx.seen(verified=streams.verified())


# --- F19, F20: the program ---------------------------------------------------

def killed_program(ctx, row):
    """SIGKILL of a program at 25 random moments, from the first SYN to the last FIN."""
    role = ctx.at_fault.role
    worst = 0
    for number in range(25):
        streams = Streams(ctx, port=PORT + number, conns=3)
        time.sleep(ctx.rng.choice((0, 0.05, 0.3, 1)) * ctx.rng.random())
        if ctx.rng.random() < 0.2:
            streams.client.host.tell(streams.client.number, "end")
        victim = streams.of(role)
        other = streams.of("b" if role == "a" else "a")
        other.tell("mark")
        victim.signal("SIGKILL")
        wait(f"the other end of kill {number} ends", row.within * SLOW / 1000 + 3,
             lambda: over(other) or other.state["begun"] == 0)
        if not error_names(other.state) <= row.errors:
            raise RowFailed(f"kill {number}: {other.state}")
        worst = max(worst, other.state["error_ms"])
        ctx.seen(verified=other.state["rx"])
    ctx.seen(stall=worst, note=f"{number + 1} kills")
    if worst > row.within * SLOW:
        raise RowFailed(f"error after {worst} ms")


def stopped_program(ctx, row):
    """SIGSTOP of one program: flow control stops its peer, and no byte is lost."""
    streams = streams_on_rdma(ctx, words=row.load)
    victim = streams.of(ctx.at_fault.role)
    victim.signal("SIGSTOP")
    time.sleep(row.hold)
    victim.signal("SIGCONT")
    wait("still on RDMA", 5 * SLOW, streams.on_rdma)
    still_fine(streams, ctx, row.hold * 1000 + row.stall)


# --- F21, F22, F34: the peer's host -----------------------------------------

def dead_host(ctx, row):
    """Kill a guest, and boot it again at once, or after the peer's program got its error."""
    role = ctx.at_fault.role
    streams = streams_on_rdma(ctx, words=row.load)
    left = streams.of(ctx.not_at_fault.role)
    lab(f"kill {role}")
    left.tell("mark")
    if row.hold == 0:
        lab(f"boot {role}")
    ctx.streams = None          # the bytes of @left are recorded below, not in faults.py
    try:
        expect_error(left, row)
    finally:
        ctx.seen(stall=left.state["error_ms"], verified=left.state["rx"])
        if row.hold:
            lab(f"boot {role}")
    ctx.at_fault.call("sh", "true", patience=60 * SLOW)
    ctx.restore()
    again = streams_on_rdma(ctx, port=PORT + 1)
    again.end()


def frozen_host(ctx, row):
    """Stop and continue a guest: its clock jumps, or lags behind that of the other from then on."""
    streams = streams_on_rdma(ctx, words=row.load)
    lab(f"stop {ctx.at_fault.role}")
    time.sleep(row.hold)
    lab(f"cont {ctx.at_fault.role}")
    wait("streams go on", 10 * SLOW, streams.moving)
    wait("back on RDMA", row.back * SLOW, streams.on_rdma)
    still_fine(streams, ctx, 2 * row.hold * 1000 + row.stall)


# --- F24: half-close ---------------------------------------------------------

def half_closed(ctx, row):
    """One direction is shut down; then the link that carries the other one is lost."""
    first = ctx.at_fault.role
    streams = streams_on_rdma(ctx, words=["--half", *row.load])
    ender, other = streams.of(first), streams.of("b" if first == "a" else "a")
    ender.tell("end")
    wait("the half-close arrives", 10 * SLOW, lambda: other.status()["half_closed"] == 4)
    before = ender.status()["rx"]
    ctx.do(ctx.at_fault, "rdma link del rxe0; rdma link add rxe0 type rxe netdev eth0")
    wait("the other direction goes on", 10 * SLOW,
         lambda: ender.status()["rx"] > before + (1 << 20) or ender.result)
    other.tell("end")
    streams.end()
    ctx.seen(stall=ender.state["stall_ms"])
    if ctx.stall > row.stall * SLOW:
        raise RowFailed(f"stood still for {ctx.stall} ms, bound {row.stall * SLOW}")


# --- F26 to F28: scarce resources --------------------------------------------

def full_backlog(ctx, row):
    """8 connections, a backlog of one, and a server that does not accept for 0.9 s: not long enough
    for TCP to give up any of these handshakes and to reset its client."""
    ctx.do(ctx.at_fault, row.fault)
    streams = Streams(ctx, conns=8, words=["--limit", 50000], server=["--backlog", 1])
    ctx.streams = streams
    streams.server.signal("SIGSTOP")
    time.sleep(0.9)
    streams.server.signal("SIGCONT")
    wait("all are served", 60 * SLOW, streams.client.gone)
    streams.end()
    ctx.do(ctx.at_fault, row.undo)


def no_descriptors(ctx, row):
    """One end may have at most 20 descriptors (EMFILE), or is an ordinary user on a host that
    allows few files (ENFILE): connections wait for a free descriptor or file, and none is lost."""
    old = streams_on_rdma(ctx)
    role = ctx.at_fault.role
    prefix = {role: row.prefix}
    ctx.do(ctx.at_fault, row.fault)
    new = Streams(ctx, port=PORT + 1, conns=40, prefix=prefix, blocking=False,
                  words=["--limit", 30000], client=["--cycles", 400])
    wait("all are served", 60 * SLOW, new.client.gone)
    new.server.tell("end")
    wait("the server ends", 20 * SLOW, new.server.gone)
    for load in new.both:
        if load.state["clean"] < 400:
            raise RowFailed(f"at {load.host.role}: {load.state}")
    if not new.of(role).state["scarce"]:
        raise RowFailed(f"nothing was scarce: {new.of(role).state}")
    ctx.seen(verified=new.verified(), note=f"{new.of(role).state['scarce']} refusals")
    ctx.do(ctx.at_fault, row.undo)
    still_fine(old, ctx, row.stall)


def little_memory(ctx, row):
    """One end is in a memory cgroup that is too small for its rings. Its connections may end with
    an error, and the OOM killer may end its program, but the bytes read are a prefix of the bytes
    sent. Other connections stay on RDMA. A program started when the cgroup has memory again moves
    to RDMA."""
    role = ctx.at_fault.role
    old = streams_on_rdma(ctx)
    ctx.do(ctx.at_fault, row.fault)
    new = Streams(ctx, port=PORT + 1, conns=60, prefix={role: row.prefix},
                  words=["--limit", 1 << 20])
    for load in new.both:
        wait("an end", 60 * SLOW, lambda: load.look().rc is not None or load.result
             or (load is new.server and (new.client.result or new.client.rc is not None)))
    if new.client.rc is None and new.server.rc is None:
        new.server.tell("end")
    for load in new.both:
        if not error_names(load.state) <= row.errors:
            raise RowFailed(f"at {load.host.role}: {load.state}")
    what = ctx.do(ctx.at_fault, "cat /sys/fs/cgroup/faults/memory.events").split()
    events = dict(zip(what[::2], map(int, what[1::2])))
    if not events["max"]:
        raise RowFailed(f"memory was not scarce: {events}")
    mine, theirs = new.client.state, new.server.state
    # If a state is missing, the OOM killer has ended one of the programs, which is allowed.
    if mine and theirs and (mine["rx"] > theirs["tx"] or theirs["rx"] > mine["tx"]):
        raise RowFailed(f"more was read than sent: a {mine} b {theirs}")
    if not old.on_rdma():
        raise RowFailed(f"bystanders left RDMA: {old.client.state} {old.server.state}")
    ctx.do(ctx.at_fault, "echo max >/sys/fs/cgroup/faults/memory.max")
    again = Streams(ctx, port=PORT + 2, prefix={role: row.prefix}, words=["--rate", 1000])
    wait("on RDMA with memory", 40 * SLOW, again.on_rdma)
    again.end()
    ctx.seen(verified=new.verified(), note=f"{events}, errors at a {new.client.state.get('errors')}"
             f", at b {new.server.state.get('errors')}")
    still_fine(old, ctx, row.stall)


# --- F25, F35, F37, F38: small programs --------------------------------------

def small(ctx, host, words, seconds):
    """Run small.py to its end; returns the last line of its output."""
    rc, out = host.sh(f"python3 {SMALL} {words}", seconds)
    if rc:
        raise RowFailed(f"at {host.role}: small.py {words}: {out.strip()}")
    return out.strip().splitlines()[-1]


def listener_churn(ctx, row):
    """Listeners that close in the middle of handshakes: each client is refused, reset or served,
    in time."""
    here, there = ctx.at_fault, ctx.not_at_fault
    old = streams_on_rdma(ctx)
    seed = ctx.rng.getrandbits(30)
    churn = here.start(["python3", str(SMALL), "churn", str(PORT + 1), "8", str(seed)])
    note = small(ctx, there, f"knock {ctx.address[here.role]} {PORT + 1} 6 {seed}", 60 * SLOW)
    wait("the churn ends", 30 * SLOW, lambda: here.read(churn, 0)[1] is not None)
    text, rc = here.read(churn, 0)
    if rc:
        raise RowFailed(text)
    ctx.seen(note=f"{note}; {text.strip()}")
    still_fine(old, ctx, row.stall)


def dead_namespace(ctx, row):
    """Programs with open sockets are killed in network namespaces, which must end, too."""
    old = streams_on_rdma(ctx)
    for words in ("unshare -n", "unshare -Urn"):
        note = small(ctx, ctx.at_fault, f"namespace {ctx.rng.getrandbits(30)} {words}", 120 * SLOW)
    ctx.seen(note=note)
    still_fine(old, ctx, row.stall)


def flood(ctx, row):
    """A flood of SYNs, with the option of AF_RDMA and without: real clients are still served."""
    here, there = ctx.at_fault, ctx.not_at_fault
    old = streams_on_rdma(ctx)
    listener = here.start(["python3", str(SMALL), "echo", str(PORT + 1)])
    # On a slow host, the flood could keep the server from reaching listen().
    wait("the listener is there", 30 * SLOW, lambda: here.read(listener, 0)[0])
    for kind in ("plain", "option"):
        number = there.start(["python3", str(SMALL), "flood", ctx.address[here.role],
                              str(PORT + 1), "6", kind])
        time.sleep(1)
        note = small(ctx, there, f"served {ctx.address[here.role]} {PORT + 1} 10", 60 * SLOW)
        wait("the flood ends", 30 * SLOW, lambda: there.read(number, 0)[1] is not None)
        ctx.seen(note=f"{ctx.note} {kind}: {there.read(number, 0)[0].strip()}, {note};")
    note = small(ctx, there, f"served {ctx.address[here.role]} {PORT + 1} 10 framed", 60 * SLOW)
    here.signal(listener, "SIGKILL")
    still_fine(old, ctx, row.stall)


def both_connect(ctx, row):
    """Simultaneous open: both ends call connect(), and none listens."""
    words = f"open {{peer}} {PORT + 1} {{role}} {ctx.rng.getrandbits(30)}"
    # A delay that is long enough for both SYNs to be in flight at the same time.
    for host in ctx.hosts.values():
        ctx.do(host, "tc qdisc add dev eth0 root netem delay 200ms")
    start = time.time() + 1.5 * SLOW
    numbers = []
    for role, host in ctx.hosts.items():
        peer = ctx.address["b" if role == "a" else "a"]
        numbers.append((host, host.start(["python3", str(SMALL), *words.format(
            peer=peer, role=role).split(), str(start)])))
    for host, number in numbers:
        wait("both ends end", 40 * SLOW, lambda: host.read(number, 0)[1] is not None)
        text, rc = host.read(number, 0)
        if rc:
            raise RowFailed(f"at {host.role}: {text.strip()}")
        ctx.seen(note=f"{host.role}: {text.strip()}", verified=1 << 18)


# --- F29 to F31: failures of the kernel and of verbs -------------------------

INJECT = """
for kind in failslab fail_page_alloc fail_usercopy; do
	cd /sys/kernel/debug/$kind
	echo 0 >verbose
	[ ! -e ignore-gfp-wait ] || echo N >ignore-gfp-wait
	[ ! -e ignore-gfp-highmem ] || echo N >ignore-gfp-highmem
	[ ! -e min-order ] || echo 0 >min-order
done
"""


# rxe's queue pair 1, which carries connection requests, goes to the error state when there is no
# memory for one of its packets, and stays there, since ib_core does not reset it.
REPAIR = ("rdma res show qp | grep -q 'rxe0.*type GSI.*state ERR' || exit 0; rdma link del rxe0; "
          "rdma link add rxe0 type rxe netdev eth0")


def sweep(ctx, row):
    """Each allocation and user copy of each call fails once; then the first 100 allocations of each
    kernel worker fail, in pass n the nth. attach_retry_ms is small, so that most connections get a
    link."""
    points = failed = 0
    address = ctx.address[ctx.at_fault.role]
    seed = ctx.rng.getrandbits(40)
    ctx.do(ctx.at_fault, INJECT)
    ctx.do(ctx.at_fault, "sysctl -qw net.afrdma.attach_retry_ms=10")
    for words in ("", f"--workers 100 --repair {shlex.quote(REPAIR)}",):
        rc, out = ctx.at_fault.sh(f"{SWEEP} --address {address} --seed {seed} {words}", 600)
        ctx.log(out)
        if rc:
            raise RowFailed(out.strip().splitlines()[-1] if out else f"ended with {rc}")
        for line in out.splitlines():
            numbers = [int(word) for word in line.replace(":", " ").split() if word.isdigit()]
            points += numbers[0]
            failed += numbers[-1]
    ctx.do(ctx.at_fault, "sysctl -qw net.afrdma.attach_retry_ms=1000")
    ctx.seen(note=f"{points} points, {failed} of them were seen by the program")


VERBS = ("alloc_pd", "create_cq", "create_qp", "modify_qp", "alloc_mr", "map_mr_sg",
         "post_recv", "post_send")
VERBFAULT = "/sys/module/verbfault/parameters"


def arm(ctx, verb, nth, times=1, swallow=0):
    """Let @times calls of @verb fail, from the @nth call on; see verbfault.c."""
    ctx.do(ctx.at_fault, f"cd {VERBFAULT}; echo 0 >nth; echo {verb} >verb; echo {times} >times;"
           f"echo {swallow} >swallow; echo {nth} >nth")


def disarm(ctx):
    """Disarm verbfault; returns whether the fault was injected."""
    return ctx.do(ctx.at_fault, f"cat {VERBFAULT}/nth; echo 0 >{VERBFAULT}/nth").strip() == "0"


def failing_verbs(ctx, row):
    """Single calls of each of VERBS fail, while connections move to RDMA and while their streams
    are on RDMA. The streams must continue, on TCP until they return to RDMA."""
    ctx.do(ctx.at_fault, row.fault)
    points = 0
    for verb in VERBS:
        for nth in (1, 2, 3, 4, 5, 6, 8, 12, 20, 50, 200):
            arm(ctx, verb, nth)
            streams = Streams(ctx, port=PORT + points, conns=2, words=["--rate", 2000])
            streams.mark()
            wait(f"on RDMA after {verb} {nth}", 40 * SLOW, streams.on_rdma)
            if verb.startswith("post"):
                time.sleep(0.5)
            fired = disarm(ctx)
            wait(f"on RDMA again after {verb} {nth}", 40 * SLOW, streams.on_rdma)
            streams.end()
            ctx.seen(verified=streams.verified(), stall=max(ctx.stall or 0, streams.stall()))
            points += 1
            links_gone(ctx)
            if not fired:
                if nth == 1:
                    raise RowFailed(f"{verb} was not called")
                break
    ctx.seen(note=f"{points} points")
    if ctx.stall > row.stall * SLOW:
        raise RowFailed(f"stood still for {ctx.stall} ms, bound {row.stall * SLOW}")


def links_gone(ctx):
    """Wait until there is no link, so that the next connection creates one."""
    for host in ctx.hosts.values():
        wait("links end", 20 * SLOW,
             lambda: not host.sh(f"{SRC}/build/tools/smctl link")[1].strip())


def no_receives(ctx, row):
    """Receives are announced to the peer but not posted: its sends get RNR NAKs."""
    ctx.do(ctx.at_fault, row.fault)
    streams = streams_on_rdma(ctx, words=row.load)
    moves = streams.client.status()["moves"]
    depth = ctx.do(ctx.at_fault, "cat /proc/sys/net/afrdma/link_depth").strip()
    arm(ctx, "post_recv", 1, times=depth, swallow=1)
    wait("the link dies", row.stall * SLOW / 1000 + 2,
         lambda: streams.client.status()["moves"] > moves)
    disarm(ctx)
    wait("back on RDMA", row.back * SLOW, streams.on_rdma)
    still_fine(streams, ctx, row.stall)


# --- F39, and rows with many connections or many lost links -----------------

def upgrades(ctx):
    """The counter upgrade_done of the client."""
    return int(ctx.do(ctx.hosts["a"], "{smctl} stats name upgrade_done").split()[1])


def storm(ctx, row):
    """Many short connections while faults of the row are injected and removed. A connection may
    fail only in connect(), before any byte is sent, with an error that the row allows."""
    role_host = ctx.at_fault
    cycles = row.cycles
    before = upgrades(ctx)
    storm_of = Streams(ctx, conns=20, blocking=False, words=["--limit", 3000],
                       client=["--cycles", cycles])
    ctx.streams = storm_of
    faults = 0
    end = time.monotonic() + row.seconds * 4 * SLOW
    while storm_of.client.result is None:
        if time.monotonic() > end:
            raise RowFailed(f"no end: {storm_of.client.status()}")
        fault, undo = ctx.rng.choice(row.faults)
        time.sleep(ctx.rng.random())
        ctx.do(role_host, fault)
        time.sleep(ctx.rng.random())
        ctx.do(role_host, undo)
        faults += 1
        storm_of.client.look()
    storm_of.server.tell("end")
    wait("the server ends", 30 * SLOW, storm_of.server.gone)
    client, server = storm_of.client.state, storm_of.server.state
    if client["clean"] + client["failed"] != cycles or client["clean"] < cycles / 2 or \
            not error_names(client) <= row.errors:
        raise RowFailed(f"at a: {client}")
    if server["failed"] or server["clean"] != client["clean"]:
        raise RowFailed(f"at b: {server}")
    moved = upgrades(ctx) - before
    if not moved:
        raise RowFailed("nothing of it went by RDMA")
    ctx.seen(note=f"{client['clean']} connections, {moved} of them came to a link, {client['failed']} that could not connect, "
             f"{faults} faults")


def many_at_once(ctx, row):
    """Connections that are all open at the same time, with data on all of them."""
    for host in ctx.hosts.values():
        ctx.do(host, row.before)
    streams = Streams(ctx, conns=row.conns, blocking=False, words=["--buf", 16384, "--rate", 8])
    ctx.streams = streams
    for load in streams.both:
        wait("all are open", 120 * SLOW, lambda: load.status()["open"] == row.conns)
    wait("all are on RDMA", 40 * SLOW, streams.on_rdma)
    streams.end()
    ctx.seen(note=f"{row.conns} on RDMA at once")


def link_kills(ctx, row):
    """The only link is lost again and again while it carries streams; each time these continue,
    and return to RDMA."""
    here = ctx.at_fault
    for host in ctx.hosts.values():
        # A connection that loses a link attaches again at once if it had lost no link and no
        # attempt had failed before, or if it was on this link for more than 10 s. Otherwise it
        # waits before each attempt: with attach_retry_ms 1 for at most 64 ms, and less if a device
        # is added meanwhile.
        ctx.do(host, row.before)
    streams = streams_on_rdma(ctx)
    stalls = []
    for _ in range(row.cycles):
        time.sleep(ctx.rng.random())
        streams.mark()
        moves = [load.state["moves"] for load in streams.both]
        ctx.do(here, "rdma link del rxe0")
        time.sleep(ctx.rng.choice((0, 0.5)) * ctx.rng.random())
        ctx.do(here, "rdma link add rxe0 type rxe netdev eth0")
        wait("streams go on", 10 * SLOW, streams.moving)
        wait("back on RDMA", row.back * SLOW, lambda: streams.on_rdma() and all(
            load.state["moves"] > old for load, old in zip(streams.both, moves)))
        stalls.append(streams.stall())
    streams.end()
    stalls.sort()
    ctx.seen(stall=stalls[-1], note=f"{row.cycles} kills, stall: median "
             f"{stalls[len(stalls) // 2]} ms, maximum {stalls[-1]} ms")
    if stalls[-1] > row.stall * SLOW:
        raise RowFailed(f"stood still for {stalls[-1]} ms, bound {row.stall * SLOW}")
