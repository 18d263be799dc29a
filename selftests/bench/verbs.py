# SPDX-License-Identifier: GPL-2.0
"""Raw verbs: perftest between the two guests."""
import glob
import os
import subprocess

from lab import DEV, PEER, Failed

PORT = 7600
SECONDS, TRIES = 20, 2              # perftest sometimes stalls in event mode
BYTES, WRITES = 24 << 20, 3000      # limits of bandwidth(), for each direction
TRIP_BYTES, TRIPS, FEWEST = 4 << 20, 500, 10


def gid_index():
    """The index of the GID of the local IPv4 address."""
    want = "ffff:%02x%02x:%02x%02x" % tuple(map(int, os.environ["AFR_ME"].split(".")))
    for path in glob.glob(f"/sys/class/infiniband/{DEV}/ports/1/gids/*"):
        with open(path) as file:
            if file.read().strip().endswith(want):
                return path.rpartition("/")[2]
    raise Failed("no GID of the IPv4 address")


def perftest(lab, program, *words):
    """The numbers in the last line of the table that perftest prints."""
    command = [program, "-d", DEV, "-x", gid_index(), "-p", str(PORT), "-F", *map(str, words)]
    for left in reversed(range(TRIES)):
        lab.server("perftest", command, PORT)
        try:
            out = lab.local([*command, PEER], SECONDS)
            break
        except (Failed, subprocess.TimeoutExpired):
            if not left:
                raise
        finally:
            lab.end_server("perftest")
    rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
    if not rows:
        raise Failed(f"{program} printed no table: {out[-200:]}")
    return [float(word) for word in rows[-1]]


def bandwidth(lab, size, both):
    """MB/s; perftest prints MiB/s."""
    row = perftest(lab, "ib_write_bw", "-s", size, "-n", min(BYTES // size, WRITES),
                   *(["-b"] if both else []))
    return row[3] * 1.048576


def round_trip(lab, size):
    """Median and p99 in event mode; perftest prints half of the round trip."""
    row = perftest(lab, "ib_send_lat", "-e", "-s", size, "-n",
                   max(min(TRIP_BYTES // size, TRIPS), FEWEST))
    return 2 * row[4], 2 * row[7]
