# SPDX-License-Identifier: GPL-2.0
"""The rows of rogue-module.py: injections, and the outcomes that are right for each."""

from dataclasses import dataclass

MIB = 1 << 20
CLIENT, SERVER = "client", "server"     # the role of the unmodified end
BOTH = (CLIENT, SERVER)


# Reasons at the unmodified end when the Byzantine peer aborts first: from its ERROR frame, or from
# the RST that may overtake this frame.
ENDED = "PEER_ERROR RESET TCP_ERROR TCP_EOF "
# Reasons with which the unmodified end loses a link after the Byzantine peer has left it.
LOST = "LINK_PEER_RESUME LINK_DISCONNECTED LINK_COMPLETION"
# Reasons that the counter peer_violation counts.
VIOLATIONS = set("HELLO_BAD HELLO_CUT FRAME_BAD DATA_OFFSET WINDOW_EXCEEDED "
                 "DATA_AFTER_FIN FIN_BAD FINACK_BAD CREDIT_BAD ATTACH_BAD MOVE_BAD RESUME_BAD "
                 "MOVE_DATA".split())
# The reasons that "*" allows: those that a peer can cause, not local ones such as a lack of
# memory. If the program gets an error in a row with abort="*", an abort must be traced.
FAULTS = {"abort": VIOLATIONS | set(ENDED.split()) |
                   {"CLOSED_UNREAD", "ORPHAN_TIMEOUT", "ORPHAN_DATA"},
          "down": {"LINK_PROTOCOL", "LINK_COMPLETION", "LINK_DISCONNECTED", "LINK_PEER_RESUME",
                   "LINK_DETACH_TIMEOUT", "LINK_IDLE", "CONNECT_FAILED", "CONNECT_TIMEOUT",
                   "PEER_NO_SERVICE"}}
# Reasons with which connections and links of earlier rows may end during a later row. Always
# allowed, except that in a row with stays=True no link may be lost.
LATE = {"abort": {"ORPHAN_TIMEOUT", "ORPHAN_DATA"},
        "down": {"LINK_DETACH_TIMEOUT", "LINK_IDLE"} | set(LOST.split())}


@dataclass
class Row:
    """An injection and its outcome."""
    injection: str          # for the module parameter "rogue"
    ends: str               # words of Exchange.outcome(); inject() must return one of them
    abort: str = ""         # "": no abort; "*": FAULTS are allowed; else: one of these is required
    down: str = ""          # as abort, but for lost links
    may_down: str = ""      # additional reasons for which a link may be lost
    early: bool = False     # inject before the connection is made, else when it is on RDMA
    tcp: bool = False       # the connection stays on TCP
    fresh: bool = False     # no link to the Byzantine peer exists yet
    before: bool = False    # open and close a connection on the link first
    hurts: bool = False     # the bystander on RDMA to the Byzantine peer may have to reconnect
    roles: tuple = BOTH     # roles of the unmodified end with which the row runs
    size: int = 4 * MIB     # bytes each Exchange sends; most injections come before the last byte
    limit: float = 3        # seconds, times SLOW, without a byte: an exchange has stalled
    # detach_timeout_ms of the unmodified end; times SLOW if the row injects more than once
    detach_ms: int = 1500
    retry_ms: int = 20      # attach_retry_ms of the unmodified end
    injections: int = 1     # minimum number of injections
    counts: str = ""        # a counter of the unmodified end that must rise
    stays: bool = False     # the link must not be lost
    then: str = ""          # second injection, after the program has closed the connection
    quick: bool = False     # part of --quick

    @property
    def name(self):
        words = self.injection + (f" then {self.then}" if self.then else "")
        return words.replace(" ", "_") + (".tcp" if self.tcp else "")

    @property
    def is_flood(self):
        """Are there over 20,000 messages? With KASAN and lockdep, a smaller row runs instead."""
        words = self.injection.split()
        return "count" in words and int(words[words.index("count") + 1]) > 20000

    @property
    def pace(self):
        """Seconds between sends in the first half, so that bytes are left for the injection."""
        if self.then:
            return 0.2
        return 0.004 if self.early and not self.tcp else 0


EARLY = dict(early=True, size=2 * MIB)
TCP = dict(early=True, tcp=True)
FRESH = dict(early=True, fresh=True, size=2 * MIB)
QUICK = dict(quick=True)

ROWS = [
    # immediates
    Row("imm_any after 3 count 1", "whole", "", "LINK_PROTOCOL", **QUICK),
    Row("imm_channel after 3 count 1", "whole", "", "LINK_PROTOCOL"),
    Row("imm_channel arg 65535 after 3 count 1", "whole stall error bent", "*", "*", hurts=True),
    Row("imm_channel arg 65535 after 4 count 1", "whole stall error bent", "*", "*", before=True,
        hurts=True),
    Row("imm_channel arg 1 after 3 count 1", "whole stall error bent", "*", "*", hurts=True),
    Row("imm_reserved after 3 count 1", "whole", "", "LINK_PROTOCOL"),
    Row("imm_cursor after 3", "error", "CREDIT_BAD", **QUICK),
    Row("imm_cursor arg 0x7fff after 3", "error", "CREDIT_BAD"),
    Row("imm_cursor arg 0xffff after 3", "error whole", "*"),
    Row("imm_frozen after 3", "stall", "*"),
    Row("imm_credits", "whole", "", "LINK_PROTOCOL", **QUICK),
    Row("imm_credits arg 0x4000", "whole", "", "LINK_PROTOCOL"),
    Row("imm_credits arg 0xffff", "whole stall", "*", "*"),
    # A DETACH with bytes, or for an id that is not in use, is a violation. A DETACH without bytes
    # for an id in use is permitted. But the next message for that id is then a violation, or a
    # write into a ring that is no longer registered, unless the Byzantine peer first reads RESUME
    # and takes the link down.
    Row("imm_detach after 3 count 1", "whole", "", "LINK_PROTOCOL " + LOST),
    Row("imm_detach arg 0 after 3 count 1", "whole", "", "LINK_PROTOCOL " + LOST, **QUICK),
    Row("imm_bytes after 3 count 1", "whole", "", "LINK_PROTOCOL", **QUICK),
    Row("imm_bytes arg 1 after 3 count 1", "whole", "", "LINK_PROTOCOL"),
    # addresses, keys, lengths
    Row("write_addr after 3 rate 3", "whole bent", "", "*"),
    Row("write_addr arg 0x80000 after 3", "whole", "", "LINK_COMPLETION"),
    Row("write_near after 3 rate 3", "whole bent"),
    Row("write_rkey after 3 rate 3", "whole", "", "LINK_COMPLETION", **QUICK),
    Row("write_key after 3 count 1", "whole", "", "LINK_COMPLETION"),
    Row("write_short after 3 rate 3", "stall bent", "*"),
    Row("write_long after 3 rate 3", "error bent", ENDED + "WINDOW_EXCEEDED DATA_AFTER_FIN"),
    Row("write_long arg 262144 after 3", "error", "WINDOW_EXCEEDED", **QUICK),
    Row("stale_rkey count 1", "whole", "", "LINK_COMPLETION", before=True, **QUICK),
    Row("mute_write after 3", "stall", "*"),
    Row("mute_channel after 3", "stall", "*"),
    Row("mute_detach", "whole", counts="detach_late", stays=True, **QUICK),
    Row("mute_credits", "stall whole", "*", "*", hurts=True),
    # operations
    Row("op_read after 3 count 1", "whole", "", "LINK_COMPLETION", **QUICK),
    Row("op_write after 3 rate 3", "stall", "*", "*", hurts=True),
    Row("op_send after 3 count 1", "whole", "", "LINK_COMPLETION"),
    Row("op_send_imm after 3 count 1", "whole", "", "LINK_COMPLETION"),
    Row("op_send_empty after 3 count 1", "whole", "", "LINK_PROTOCOL", **QUICK),
    Row("op_send_inv after 3 count 1", "whole", "", "LINK_PROTOCOL LINK_COMPLETION", **QUICK),
    Row("op_broken after 3 count 1", "whole", "", LOST),
    # floods
    Row("flood_any after 3", "whole", "", "LINK_PROTOCOL", **QUICK),
    Row("flood_channel after 3", "whole", "", "LINK_PROTOCOL"),
    # The Byzantine peer sends no DETACH, since any message behind it would be a violation. After
    # the abort, the unmodified end ignores the peer's messages for the channel id, so the link
    # stays.
    Row("flood_cursor after 3 count 50000", "error", "CREDIT_BAD", detach_ms=30000,
        injections=50000, counts="detach_late", stays=True),
    Row("flood_cursor after 3 count 2000", "error", "CREDIT_BAD", detach_ms=4000,
        injections=2000, counts="detach_late", stays=True, **QUICK),
    Row("flood_empty after 3 count 20000", "whole", limit=30),
    Row("flood_again after 3 count 1000", "error", ENDED + "WINDOW_EXCEEDED DATA_AFTER_FIN",
        **QUICK),
    Row("flood_credits after 3", "whole", "", "LINK_PROTOCOL"),
    Row("flood_announced count 20000", "whole", limit=30),
    Row("flood_detach after 3", "whole", "", "LINK_PROTOCOL"),
    Row("flood_early after 3 count 1", "whole", "", "LINK_PROTOCOL " + LOST, **QUICK),
    Row("flood_ended after 1", "whole", "", "LINK_PROTOCOL", **QUICK),
    # frames on TCP
    Row("credit", "error whole stall", "*", **TCP),
    Row("credit arg 0x100000", "error", "CREDIT_BAD", **TCP),
    Row("blocked", "error whole", "*", injections=0, **TCP),
    Row("data after 3 rate 3", "error", ENDED + "DATA_OFFSET FRAME_BAD", **TCP),
    Row("data arg 1", "error", ENDED + "DATA_OFFSET", **TCP),
    Row("fin", "error stall short", "*", **TCP),
    Row("mute_credit", "stall", "*", **TCP),
    Row("mute_blocked", "whole", injections=0, **TCP),
    Row("frame_bit after 1 rate 3", "error stall short foreign", "*", **TCP),
    # frames around RDMA
    Row("fin", "error stall short", "*"),
    Row("fin arg 0xfffffffffffff000", "error short", "*", **QUICK),
    Row("finack", "error whole", "*"),
    Row("finack arg 1", "error whole", ENDED + "FINACK_BAD"),
    Row("move_epoch arg 1", "error", "MOVE_BAD", **EARLY),
    Row("move_epoch", "error", "MOVE_BAD FRAME_BAD", **EARLY),
    Row("move_start", "error", "MOVE_BAD FRAME_BAD", **EARLY),
    Row("move_start arg 0xffffffffffffffff", "error", "MOVE_BAD", **EARLY),
    Row("resume_epoch drop 3", "error stall", "*", LOST),
    Row("resume_reason drop 3", "whole", "", LOST),
    Row("resume_received drop 3", "error", "*", LOST),
    Row("resume_received arg 1 drop 3", "error", ENDED + "RESUME_BAD", LOST),
    Row("resume_received arg 0xffffffffffffffff drop 3", "error", ENDED + "RESUME_BAD", LOST),
    Row("resume_received arg 0x100000 drop 3", "error", "RESUME_BAD", LOST, **QUICK),
    Row("resume_consumed drop 3", "error whole", "*", LOST),
    Row("resume_consumed arg 0x100000 drop 3", "error whole", "*", LOST),
    Row("attach_epoch arg 0xffffffffffffffff", "error", "FRAME_BAD", **EARLY),
    Row("attach_epoch arg 5", "error stall", "*", "*", roles=(SERVER,), **EARLY),
    Row("attach_epoch arg 5", "error", "ATTACH_BAD", roles=(CLIENT,), **EARLY),
    # The server has accepted the ATTACH, but the client reads a refusal. Because of retry_ms, the
    # client does not try again during the row: a second ATTACH would be a violation.
    Row("attach_reason arg 32", "whole stall", "*", "*", roles=(CLIENT,), retry_ms=60000, **EARLY),
    Row("attach_reason arg 32", "error", "FRAME_BAD", roles=(SERVER,), **EARLY),
    Row("attach_link arg 1", "error", "ATTACH_BAD", roles=(CLIENT,), **EARLY),
    Row("attach_link arg 1", "whole", "", "*", roles=(SERVER,), **EARLY),
    Row("attach_addr", "whole error", "*", "*", **EARLY),
    Row("attach_addr arg 0x100000", "whole", "", "LINK_COMPLETION", **EARLY),
    Row("attach_rkey", "whole", "", "LINK_COMPLETION", **EARLY),
    Row("attach_ring", "error", "FRAME_BAD", **EARLY),
    Row("attach_ring arg 262144", "error", "ATTACH_BAD", quick=True, **EARLY),
    Row("attach_span", "error", "FRAME_BAD", **EARLY),
    Row("attach_channel", "whole error stall", "*", "*", hurts=True, **EARLY),
    Row("attach_flags arg 2", "error", "FRAME_BAD", **EARLY),
    Row("attach_consumed arg 0x100000000", "error", "ATTACH_BAD CREDIT_BAD", **EARLY),
    Row("frame_bit after 1 rate 3", "error stall short whole foreign", "*", "*", **EARLY),
    Row("frame_type after 1 rate 3", "error stall short", "*", "*", **EARLY),
    Row("frame_twice", "error", ENDED + "MOVE_BAD ATTACH_BAD", **EARLY),
    # omitted frames: the exchange may stall, as with a peer that does not send, read or shut down

    # Without HELLO, the frames of the Byzantine peer are data for the program.
    Row("mute_hello", "foreign error", "*", **EARLY),
    Row("mute_attach", "whole", "", "*", roles=(SERVER,), **EARLY),
    Row("mute_attached", "whole", roles=(CLIENT,), counts="conn_finished", stays=True, **EARLY),
    Row("mute_attached", "error", "CLOSED_UNREAD", "*", roles=(CLIENT,), then="frame_type",
        quick=True, **EARLY),
    Row("mute_move", "stall whole", "*", "*", **EARLY),
    Row("mute_resume drop 3", "stall error", "*", LOST),
    Row("mute_fin", "stall", "*"),
    Row("mute_finack", "whole"),
    # HELLO
    Row("hello_bit", "whole error stall short bent foreign", "*", "*", **EARLY),
    Row("hello_instance", "whole", "", "*", **EARLY),
    Row("hello_secret", "whole", "", "LINK_PROTOCOL", roles=(CLIENT,), **FRESH),
    Row("hello_port arg 1", "whole", "", "*", roles=(CLIENT,), **FRESH),
    Row("hello_ring", "error whole stall", "*", "*", **EARLY),
    Row("hello_ring arg 0x100000", "error", "HELLO_BAD", **EARLY),
    Row("hello_features", "whole", "", "*", **EARLY),
    # additional frames
    Row("more_attach after 3 count 100", "error", ENDED + "ATTACH_BAD FRAME_BAD", **EARLY),
    # While the client waits for ATTACHED, an invented one with a reason and the right epoch is a
    # refusal, so the client frees its channel id. If the server has accepted the ATTACH and writes
    # to this id, the write ends the link.
    Row("more_attached after 3 count 100", "error", ENDED + "ATTACH_BAD FRAME_BAD",
        may_down="LINK_PROTOCOL", **EARLY),
    Row("more_move after 3 count 100", "error", ENDED + "MOVE_BAD FRAME_BAD", **EARLY),
    Row("more_resume after 3 count 100", "error", ENDED + "RESUME_BAD FRAME_BAD", **EARLY),
    Row("more_credit after 3 count 100", "error", ENDED + "CREDIT_BAD FRAME_BAD", **EARLY),
    Row("more_credit arg 0 after 3 count 5000", "whole", "", "*", **EARLY),
    Row("more_blocked arg 0 after 3 count 5000", "whole", "", "*", quick=True, **EARLY),
    Row("more_fin after 3 count 100", "error", ENDED + "FIN_BAD FRAME_BAD DATA_AFTER_FIN", **EARLY),
    Row("more_finack after 3 count 100", "error", ENDED + "FINACK_BAD FRAME_BAD", **EARLY),
    Row("more_urgent arg 0 after 3 count 5000", "whole", "", "*", **EARLY),
    # Random offsets: about one in eight is above the largest offset of a stream.
    Row("more_urgent after 3 count 5000", "error", ENDED + "FRAME_BAD", "*", **EARLY),
    Row("more_urgentack after 3 count 5000", "error", ENDED + "FRAME_BAD", "*", **EARLY),
    # private data of rdma_cm

    # The depth is a big-endian field: this row reports 3 receives, the next one 768. The Byzantine
    # peer has posted 16 and announces new ones only when 4 were used, so the other end may run out
    # of credits first.
    Row("req_depth arg 0x300", "whole stall", "*", "*", roles=(SERVER,), hurts=True, **FRESH),
    Row("req_depth arg 3", "whole", "", "*", roles=(SERVER,), **FRESH),
    Row("req_depth", "whole", "", "*", roles=(SERVER,), **FRESH),
    Row("req_secret", "whole", "", "*", counts="link_refused",
        roles=(SERVER,), quick=True, **FRESH),
    Row("req_instance", "whole", "", "*", counts="link_refused",
        roles=(SERVER,), **FRESH),
    Row("req_link", "whole", "", "*", roles=(SERVER,), **FRESH),
    Row("req_magic", "whole", "", "*", counts="link_refused",
        roles=(SERVER,), **FRESH),
    Row("req_version", "whole", "", "*", counts="link_refused",
        roles=(SERVER,), **FRESH),
    Row("rep_depth arg 0x300", "whole stall", "*", "*", roles=(CLIENT,), hurts=True, **FRESH),
    Row("rep_depth arg 3", "whole", "", "*", roles=(CLIENT,), **FRESH),
    Row("rep_reason arg 5", "whole", "", "CONNECT_FAILED", roles=(CLIENT,), **FRESH),
    Row("rep_instance", "whole", "", "CONNECT_FAILED", roles=(CLIENT,), **FRESH),
    Row("rep_link", "whole", "", "CONNECT_FAILED", roles=(CLIENT,), **FRESH),
    Row("mute_rep", "whole", "", "CONNECT_TIMEOUT CONNECT_FAILED", roles=(CLIENT,), **FRESH),
]
