# SPDX-License-Identifier: GPL-2.0
"""Access to the two hosts for measurements: families, offloads, counters, checks of the path."""
import json
import os
import subprocess
import threading

from peer import Peer, run

SRC = os.environ["AFR_SRC"]
PEER = os.environ["AFR_PEER"]
DEV = os.environ["AFR_DEV"]
BENCH = f"{SRC}/build/bench/afr_bench"
SMCTL = f"{SRC}/build/tools/smctl"
SMC_SO = f"{SRC}/build/programs/smc.so"
BENCH_PORT = 7503               # of AF_RDMA: afr_bench listens on its other ports before this one
PAUSED_SECONDS = 240            # limit of afr_bench --pause, enough for a thousand connections
PACKET = 4096                   # maximum payload of a RoCE packet
SMC_BUFFERS = 262144            # four times the default

# For each column: its family (verbs has none), and the words to put before a command so that its
# program uses this family.
COLUMNS = {
    "rdma": ("rdma", [SMCTL, "run", "--"]),
    "smc": ("smc", ["env", f"LD_PRELOAD={SMC_SO}"]),
    "tcp": ("tcp", []),
    "tcp-off": ("tcp", []),
    "verbs": (None, []),
}
SYSCTLS = ["net.ipv4.ip_local_port_range=10000 65000",
           "net.ipv4.tcp_tw_reuse=1", "net.core.somaxconn=4096",
           "net.ipv4.tcp_max_syn_backlog=4096",
           f"net.smc.wmem={SMC_BUFFERS}", f"net.smc.rmem={SMC_BUFFERS}",
           f"net.afrdma.mem_max={1 << 20}"]
MEM_MAX = "/sys/module/afrdma/parameters/mem_max"


class Failed(Exception):
    """A program has failed."""


class Lab:
    def __init__(self, options):
        self.options = options
        self.seconds = options["seconds"]
        self.peer = None
        self.offloads = None
        self.servers = {}
        self.smc = run(["python3", f"{SRC}/selftests/programs/smc_eid.py"])["rc"] == 0
        for setting in SYSCTLS:
            run(["sysctl", "-qw", setting])
        # 1,000 connections have 560 MiB of rings, and one peer may use three eighths of mem_max.
        # So both limits of this name are raised: the sysctl by SYSCTLS, the module parameter here.
        if os.path.exists(MEM_MAX):
            run(["sh", "-c", f"echo {1 << 20} >{MEM_MAX}"])

    def join(self):
        """In guest b: connect to guest a, and start the server of afr_bench there."""
        self.peer = Peer(PEER)
        self.server("bench", [BENCH, "serve"], BENCH_PORT)

    def leave(self):
        self.peer.close()

    def clean_up(self):
        """Remove the RDMA device and add it again: otherwise SMC would keep its queue pairs for ten
        minutes, and the ledger (lab/ledger.sh) would report them."""
        run(["rdma", "link", "del", DEV])
        run(["rdma", "link", "add", DEV, "type", os.environ["AFR_RDMA"], "netdev", "eth0"])

    def has(self, column):
        """Is the column to be measured, and can it be measured here?"""
        if self.options["columns"] and column not in self.options["columns"]:
            return False
        return {"smc": self.smc, "verbs": os.environ["AFR_ACCEL"] != "uml"}.get(column, True)

    def describe(self):
        """Write properties of the whole run: kernel, and whether SMC uses RDMA."""
        smc = "SMC-R: not measured"
        if self.has("smc"):
            packets = self.bench("stream", "smc", "--seconds=0.2")["packets"]
            pairs = self.queue_pairs("smc")
            smc = (f"SMC-R: {'on RDMA' if pairs and packets > 100 else 'NOT ON RDMA'}: "
                   f"{pairs} queue pairs of [smc] in rdma res, {packets} packets of RoCE "
                   "for a stream of 0.2 s")
        with open(os.path.join(os.environ["AFR_OUT"], "host"), "w") as out:
            json.dump({"kernel": os.uname().release, "accel": os.environ["AFR_ACCEL"],
                       "smc": smc}, out)
        print(f"# {smc}", flush=True)

    def local(self, argv, timeout=60):
        """Run a program in this guest; returns its output."""
        answer = run(argv, timeout)
        if answer["rc"]:
            raise Failed(f"{argv[0]}: {answer['rc']}: {answer['err'] or answer['out'][-300:]}")
        return answer["out"]

    def remote(self, argv):
        """Run a program at the peer; returns its output."""
        answer = self.peer.ask("run", argv)
        if answer["rc"]:
            raise Failed(f"{argv[0]} at the peer: {answer['rc']}: {answer['err']}")
        return answer["out"]

    def server(self, name, argv, port):
        """Start a server at the peer, unless it runs already."""
        if name in self.servers:
            return
        answer = self.peer.ask("start", argv, port)
        if not answer["up"]:
            raise Failed(f"the server {name} does not listen")
        self.servers[name] = answer["pid"]

    def end_server(self, name):
        self.peer.ask("stop", self.servers.pop(name))

    def set_offloads(self, on):
        """Set TSO, GSO and GRO in both guests, unless they are so already."""
        if on != self.offloads:
            self.local([BENCH, "offloads", "tcp", PEER, f"--on={int(on)}"])
            self.offloads = on

    def bench(self, command, column, *words):
        """Run afr_bench. Returns its result, with the RoCE packets of this guest."""
        self.set_offloads(column != "tcp-off")
        before = self.packets()
        out = self.local([BENCH, command, COLUMNS[column][0], PEER, *words])
        answer = json.loads(out.splitlines()[-1])
        answer["packets"] = self.packets() - before
        return answer

    def paused(self, command, column, look, *words):
        """Run afr_bench --pause, which prints a line and waits after its first and after its last
        connection. Call look() at each pause. Returns pairs of line and result of look(), and the
        result of afr_bench."""
        self.set_offloads(column != "tcp-off")
        before, pauses = self.packets(), []
        argv = [BENCH, command, COLUMNS[column][0], PEER, "--pause", *words]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as child:
            timer = threading.Timer(PAUSED_SECONDS, child.kill)
            timer.start()
            answer = {}
            for line in child.stdout:
                answer = json.loads(line)
                if "open" in answer:
                    pauses.append((answer, look()))
                    before = self.packets()     # do not count the packets up to here
                    print(file=child.stdin, flush=True)
            timer.cancel()
        if child.returncode:
            raise Failed(f"afr_bench {command} with {len(pauses)} pauses: {child.returncode}")
        answer["packets"] = self.packets() - before
        return pauses, answer

    @staticmethod
    def packets():
        """RoCE packets of this guest, in both directions."""
        total = 0
        for name in ("sent_pkts", "rcvd_pkts"):
            with open(f"/sys/class/infiniband/{DEV}/ports/1/hw_counters/{name}") as file:
                total += int(file.read())
        return total

    def counters(self):
        """The counters of the module at both ends."""
        ends = (self.local([SMCTL, "stats"]), self.remote([SMCTL, "stats"]))
        return [by_name(end) for end in ends]

    def queue_pairs(self, owner):
        return self.local(["rdma", "res", "show", "qp"]).count(f"comm [{owner}]")


def by_name(stats):
    """The counters by name, from the lines of "smctl stats"."""
    words = (line.split() for line in stats.splitlines())
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}


def way(column, answer, size):
    """The note "void: ..." if the bytes of a figure were not carried as the column says, or ""."""
    if column == "rdma" and answer["by_rdma"] < 0.99:
        return f"void: {1 - answer['by_rdma']:.0%} by TCP"
    if column == "smc" and answer["packets"] < 0.9 * size / PACKET:
        return "void: by TCP"
    return ""
