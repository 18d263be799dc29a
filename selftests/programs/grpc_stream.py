#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A stream of messages in both directions at once over gRPC, with verification.

    grpc_stream.py serve ADDRESS:PORT
    grpc_stream.py echo ADDRESS:PORT FILE
"""
import signal
import sys
from concurrent import futures

import grpc

CHUNK = 65536
METHOD = "/afr.Bulk/Echo"


class Bulk(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method == METHOD:
            return grpc.stream_stream_rpc_method_handler(lambda chunks, _context: chunks)
        return None


def serve(at):
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[Bulk()])
    if not server.add_insecure_port(at):
        sys.exit(f"cannot listen at {at}")
    server.start()
    signal.sigwait([signal.SIGTERM])
    server.stop(None).wait()


def echo(to, path):
    with open(path, "rb") as file:
        data = file.read()
    chunks = (data[at:at + CHUNK] for at in range(0, len(data), CHUNK))
    with grpc.insecure_channel(to) as channel:
        got = b"".join(channel.stream_stream(METHOD)(chunks))
    if got != data:
        sys.exit(f"{len(got)} of {len(data)} bytes came back, or they differ")
    print(f"{len(got)} bytes came back")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        serve(sys.argv[2])
    else:
        echo(*sys.argv[2:])
