#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Give AF_SMC of this host the name of a group of hosts (EID), the same on all.

Without one it speaks version 1 only, which wants RoCE v1, which rxe has not. What
"smcr ueid add" does, of which Debian has no package: one generic netlink message.
"""
import socket
import struct

CTRL, GETFAMILY, FAMILY_ID, FAMILY_NAME = 16, 3, 1, 2   # of the family that knows the others
ADD_UEID, ENTRY = 10, 1
EID = "AFRDMA-PROGRAMS"


def attribute(kind, value):
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + bytes(-size % 4)


def call(sock, family, command, attributes):
    """Send one request; the answer behind its headers, or an OSError."""
    body = struct.pack("=BBH", command, 1, 0) + attributes
    sock.send(struct.pack("=IHHII", 16 + len(body), family, 5, 1, 0) + body)
    answer = sock.recv(65536)
    if struct.unpack_from("=H", answer, 4)[0] == 2:     # NLMSG_ERROR, or 0 for success
        error = struct.unpack_from("=i", answer, 16)[0]
        if error:
            raise OSError(-error, "netlink refuses")
        return b""
    return answer[20:]


def family_number(sock, name):
    answer = call(sock, CTRL, GETFAMILY, attribute(FAMILY_NAME, name.encode() + b"\0"))
    sock.recv(65536)                                    # its acknowledgement
    while answer:
        size, kind = struct.unpack_from("=HH", answer)
        if kind == FAMILY_ID:
            return struct.unpack_from("=H", answer, 4)[0]
        answer = answer[size + 3 & ~3:]
    raise OSError(f"no family {name}")


def main():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as sock:
        sock.bind((0, 0))
        number = family_number(sock, "SMC_GEN_NETLINK")
        call(sock, number, ADD_UEID, attribute(ENTRY, EID.ljust(32).encode() + b"\0"))


if __name__ == "__main__":
    main()
