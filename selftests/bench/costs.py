# SPDX-License-Identifier: GPL-2.0
"""What connections and messages cost: counters of the module, trace events, memory, QPs."""
import glob
import os

from lab import way

MIB = 1 << 20
EVENTS = "/sys/kernel/tracing/instances/bench"
CQ_EVENT = f"{EVENTS}/events/rdma_core/cq_schedule/enable"
MOST_MESSAGES, MOST_BYTES = 2000, 16 << 20
STATES = {"idle": 0, "tcp": 1, "rdma": 2}
OWNERS = {"rdma": "rdma_cm", "smc": "smc", "tcp": "-"}
HELD = 300

# counter: of whom (the sender of the stream, both) and what is added up
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
    """Of completion queues: entries of the trace, those overwritten too."""
    total = 0
    for path in glob.glob(f"{EVENTS}/per_cpu/*/stats"):
        with open(path) as file:
            words = dict(line.split(": ", 1) for line in file if ": " in line)
        total += int(words["entries"]) + int(words["overrun"])
    return total


def trace(on):
    """Count callbacks; false where the kernel has no such event."""
    if on:
        os.makedirs(EVENTS, exist_ok=True)
    if os.path.exists(CQ_EVENT):
        with open(CQ_EVENT, "w") as file:
            file.write(str(int(on)))
    if not on:
        os.rmdir(EVENTS)


def snapshot(lab):
    ends = lab.counters()
    for end, count in zip(ends, (callbacks(), lab.peer.ask("callbacks"))):
        end["callbacks"] = count
    return ends


def counts(lab, column, kind, size):
    messages = min(MOST_MESSAGES, MOST_BYTES // size)
    lab.peer.ask("trace", True)
    trace(True)
    try:
        _, before, answer = lab.paused(kind, column, lambda: snapshot(lab), "--pause",
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


def memory(lab, column, state):
    first, _, _ = lab.paused("hold", column, lambda: None, f"--conns={HELD}", "--seconds=0",
                             f"--warm={STATES[state]}")
    return [(f"memory {state}", first["memory"], "bytes")], ""


def growth(lab, column, conns):
    first, pairs, last = lab.paused("hold", column, lambda: lab.queue_pairs(OWNERS[column]),
                                    f"--conns={conns}", f"--seconds={lab.seconds}")
    name = f"growth {conns}"
    return [(f"{name} throughput", last["bytes"] / last["seconds"] / 1e6, "MB/s"),
            (f"{name} memory", first["memory"], "bytes"),
            (f"{name} queue pairs", pairs, ""),
            (f"{name} setup", first["seconds"] / conns * 1e6, "us")], way(column, last, 0)
