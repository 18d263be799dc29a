# SPDX-License-Identifier: GPL-2.0
"""Third-party programs on each family: redis, iperf3, sockperf."""
import csv
import json
import re
from itertools import count

from lab import COLUMNS, PEER, SMCTL, Failed, by_name

# In each of its tests, GET and SET, redis-benchmark sends REQUESTS[0] requests plus REQUESTS[1]
# for each client, all multiplied by the pipeline depth.
REQUESTS = 500, 50
LEAST_PACKETS = 100
LEAST_SHARE = 0.5                   # of bytes by RDMA; TCP carries a connection's first bytes
ports = count(7700)
used = {}                           # port of each server


class Way:
    """Checks that RDMA carries LEAST_SHARE of the bytes of a program, or LEAST_PACKETS with SMC."""

    def __init__(self, lab, column):
        self.lab, self.column = lab, column
        self.before = self.look()

    def look(self):
        """Counters of this guest. AF_RDMA: bytes by RDMA, and by TCP. Other columns: RoCE packets,
        and 0."""
        if self.column == "rdma":
            stats = by_name(self.lab.local([SMCTL, "stats"]))
            return [sum(stats[f"{way}_bytes_{path}"] for way in ("tx", "rx"))
                    for path in ("rdma", "tcp")]
        return [self.lab.packets(), 0]

    def note(self):
        """What makes the figures void, or ""."""
        rdma, tcp = (new - old for new, old in zip(self.look(), self.before))
        if self.column == "rdma" and not rdma + tcp:
            return "void: without AF_RDMA"
        if self.column == "rdma" and rdma < LEAST_SHARE * (rdma + tcp):
            return f"void: {tcp / (rdma + tcp):.0%} by TCP"
        if self.column == "smc" and rdma < LEAST_PACKETS:
            return "void: by TCP"
        return ""


def run(lab, column, name, server, client):
    """The output of the client, and a note. Each server runs until the end, on its own port."""
    port = used.setdefault((name, column), next(ports))
    under = COLUMNS[column][1]
    lab.set_offloads(column != "tcp-off")
    lab.server(f"{name} {column}", [*under, *server(port)], port)
    way = Way(lab, column)
    out = lab.local([*under, *client(port)])
    return out, way.note()


def redis(lab, column, pipeline, threads, clients):
    requests = (REQUESTS[0] + REQUESTS[1] * clients) * pipeline
    out, note = run(
        lab, column, "redis",
        lambda port: ["redis-server", "--port", str(port), "--save", "", "--protected-mode", "no"],
        lambda port: ["redis-benchmark", "-h", PEER, "-p", str(port), "-t", "get,set", "--csv",
                      "-n", str(requests), "-P", str(pipeline), "-c", str(clients),
                      "--threads", str(threads)])
    return [(f"redis {row['test']} {pipeline} {threads} {clients}", float(row["rps"]), "/s")
            for row in csv.DictReader(out.splitlines())], note


def iperf3(lab, column, conns):
    out, note = run(lab, column, "iperf3", lambda port: ["iperf3", "-s", "-p", str(port)],
                    lambda port: ["iperf3", "-c", PEER, "-p", str(port), "-t", "1", "-J",
                                  "-P", str(conns)])
    rate = json.loads(out)["end"]["sum_received"]["bits_per_second"] / 8e6
    return [(f"iperf3 {conns}", rate, "MB/s")], note


def sockperf(lab, column, size):
    out, note = run(lab, column, "sockperf",
                    lambda port: ["sockperf", "server", "--tcp", "-p", str(port)],
                    lambda port: ["sockperf", "ping-pong", "--tcp", "-i", PEER, "-p", str(port),
                                  "-t", "1", "-m", str(size), "--full-rtt"])
    found = dict(re.findall(r"percentile (\d\d\.\d+) = +([\d.]+)", out))
    if "50.000" not in found:
        raise Failed(f"sockperf: {out[-200:]}")
    return [(f"sockperf {size} median", float(found["50.000"]), "us"),
            (f"sockperf {size} p99", float(found["99.000"]), "us")], note
