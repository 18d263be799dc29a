# SPDX-License-Identifier: GPL-2.0
"""Costs of connections and messages: counters of the module, trace events, memory, QPs."""
import glob
import os
import time

from lab import SMCTL, way

MIB = 1 << 20
EVENTS = "/sys/kernel/tracing/instances/bench"
CQ_EVENT = f"{EVENTS}/events/rdma_core/cq_schedule/enable"
MOST_MESSAGES, MOST_BYTES = 2000, 16 << 20
STATES = {"idle": 0, "tcp": 1, "rdma": 2}
OWNERS = {"rdma": "rdma_cm", "smc": "smc"}
HELD = 100
# growth() sends GROWN messages of 64 KiB on all connections together, but at least EACH on each.
GROWN, EACH = 1000, 4
ACCOUNTED = ["MemFree", "Buffers", "Cached", "AnonPages", "PageTables", "KernelStack", "Slab"]
PAGE = 4096
STEADY = 64 << 10
STEADY_SECONDS = 5

# For each figure: the ends whose counters are read ("sender" is the client, also in round trips),
# and the counters that are added up.
COUNTERS = {
    "writes": ("sender", ["tx_writes"]),
    "posts": ("both", ["link_posts"]),
    "credits": ("both", ["tx_credit_writes", "tx_announces"]),
    "signals": ("sender", ["tx_completions"]),
    "completions": ("both", ["tx_completions", "rx_completions"]),
    "callbacks": ("both", ["callbacks"]),
    "frames": ("both", ["frames_sent"]),
    "wakes": ("both", ["wakes_read", "wakes_write"]),
    "copied": ("both", ["copied_in", "copied_out"]),
}


def callbacks():
    """The number of callbacks of completion queues: entries of the trace, including overwritten
    ones."""
    total = 0
    for path in glob.glob(f"{EVENTS}/per_cpu/*/stats"):
        with open(path) as file:
            words = dict(line.split(": ", 1) for line in file if ": " in line)
        total += int(words["entries"]) + int(words["overrun"])
    return total


def trace(on):
    """Start or end the trace of callbacks, if the kernel has an event for them."""
    if on:
        os.makedirs(EVENTS, exist_ok=True)
    if os.path.exists(CQ_EVENT):
        with open(CQ_EVENT, "w") as file:
            file.write(str(int(on)))
    if not on:
        os.rmdir(EVENTS)


def snapshot(lab):
    """The counters of both ends, and with them the callbacks."""
    ends = lab.counters()
    for end, count in zip(ends, (callbacks(), lab.peer.ask("callbacks"))):
        end["callbacks"] = count
    return ends


def counts(lab, column, kind, size):
    messages = min(MOST_MESSAGES, MOST_BYTES // size)
    lab.peer.ask("trace", True)
    trace(True)
    try:
        [(_, before)], answer = lab.paused(kind, column, lambda: snapshot(lab),
                                           f"--size={size}", f"--messages={messages}")
        after = snapshot(lab)
    finally:
        trace(False)
        lab.peer.ask("trace", False)
    figures = []
    for name, (who, parts) in COUNTERS.items():
        ends = zip(before, after) if who == "both" else [(before[0], after[0])]
        total = sum(new[part] - old[part] for old, new in ends for part in parts)
        figures.append((f"counts {kind} {name} {size}", total / messages, "/message"))
    return figures, way(column, answer, 0)


def kernel_memory():
    """Kernel memory of this host in bytes: slab objects in use, and all pages except those in the
    ACCOUNTED fields of /proc/meminfo and those on the per-CPU lists of free pages."""
    for path in glob.glob("/sys/kernel/slab/*/shrink"):
        with open(path, "w") as file:
            file.write("1")
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("1")
    with open("/proc/meminfo") as file:
        kib = {line.split(":")[0]: int(line.split()[1]) for line in file}
    with open("/proc/slabinfo") as file:
        slabs = sum(int(words[1]) * int(words[3]) for words in map(str.split, file)
                    if words[1].isdigit())
    with open("/proc/zoneinfo") as file:        # per-CPU lists of free pages, not in MemFree
        kept = sum(int(line.split()[1]) for line in file if line.split()[:1] == ["count:"])
    return slabs + 1024 * (kib["MemTotal"] - sum(kib[name] for name in ACCOUNTED)) - PAGE * kept


def steady_memory():
    """kernel_memory() when it has become steady, or after STEADY_SECONDS: memory of earlier
    connections is freed late."""
    last, now, end = 0, kernel_memory(), time.monotonic() + STEADY_SECONDS
    while abs(now - last) > STEADY and time.monotonic() < end:
        time.sleep(0.2)
        last, now = now, kernel_memory()
    return now


def memory(lab, column, state):
    if column == "smc" and state != "idle":
        # "idle" includes SMC's buffers, which are allocated at connect(). After close(), SMC keeps
        # them for later connections, so a later difference of memory would not include them.
        return [], ""

    def look():
        """Memory, and how many connections are on RDMA: smctl shows a link for each of these."""
        size = steady_memory()
        return size, lab.local([SMCTL, "conn"]).count(" link ") if column == "rdma" else 0

    [(_, (first, _)), (_, (last, on_rdma))], _ = lab.paused(
        "stream", column, look, f"--conns={HELD + 1}", "--seconds=0", f"--warm={STATES[state]}")
    void = column == "rdma" and (on_rdma <= HELD if state == "rdma" else on_rdma > 0)
    return ([(f"memory {state}", (last - first) / HELD, "bytes")],
            f"void: {on_rdma} of {HELD + 1} on RDMA" if void else "")


def growth(lab, column, conns):
    def look():
        pairs = lab.queue_pairs(OWNERS[column]) if column in OWNERS else 0
        return pairs, kernel_memory()

    begin = steady_memory()
    pauses, answer = lab.paused("stream", column, look, f"--conns={conns}",
                                f"--messages={max(GROWN // conns, EACH)}")
    pairs, end = pauses[-1][1]
    took = sum(line["seconds"] for line, _ in pauses)
    name = f"growth {conns}"
    each = (end - begin) / conns
    return [(f"{name} throughput", answer["bytes"] / answer["seconds"] / 1e6, "MB/s"),
            (f"{name} memory each", each, "bytes"), (f"{name} queue pairs", pairs, ""),
            (f"{name} setup", took / conns * 1e6, "us")], way(column, answer, answer["bytes"])
