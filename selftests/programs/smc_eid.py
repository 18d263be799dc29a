#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Add an enterprise id (EID), a name shared by a group of hosts, to AF_SMC of this host.

Without an EID, SMC uses only version 1, which needs RoCE v1; rxe does not support that. This script
sends the generic netlink message of "smcr ueid add", since Debian has no package of smcr.
"""
import socket
import struct

CTRL, GETFAMILY, FAMILY_ID, FAMILY_NAME = 16, 3, 1, 2   # of the generic netlink controller
ADD_UEID, ENTRY = 10, 1
EID = "AFRDMA-PROGRAMS"


def attribute(kind, value):
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + bytes(-size % 4)


def call(sock, family, command, attributes):
    """Send one request; return the answer without its headers, or raise OSError."""
    body = struct.pack("=BBH", command, 1, 0) + attributes
    sock.send(struct.pack("=IHHII", 16 + len(body), family, 5, 1, 0) + body)
    answer = sock.recv(65536)
    if struct.unpack_from("=H", answer, 4)[0] == 2:     # NLMSG_ERROR; error 0 means success
        error = struct.unpack_from("=i", answer, 16)[0]
        if error:
            raise OSError(-error, "netlink error")
        return b""
    return answer[20:]


def family_number(sock, name):
    answer = call(sock, CTRL, GETFAMILY, attribute(FAMILY_NAME, name.encode() + b"\0"))
    sock.recv(65536)                                    # the request's acknowledgement
    while answer:
        size, kind = struct.unpack_from("=HH", answer)
        if kind == FAMILY_ID:
            return struct.unpack_from("=H", answer, 4)[0]
        answer = answer[size + 3 & ~3:]
    raise OSError(f"no generic netlink family {name}")


def main():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as sock:
        sock.bind((0, 0))
        number = family_number(sock, "SMC_GEN_NETLINK")
        call(sock, number, ADD_UEID, attribute(ENTRY, EID.ljust(32).encode() + b"\0"))


if __name__ == "__main__":
    main()
