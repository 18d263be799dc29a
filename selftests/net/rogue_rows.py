# SPDX-License-Identifier: GPL-2.0
"""The rows of rogue-module.py: lies, and what an honest end must make of them."""

from dataclasses import dataclass

MIB = 1 << 20
CLIENT, SERVER = "client", "server"     # what the honest end is
BOTH = (CLIENT, SERVER)


# What an honest end says when it was told nonsense, and what reaches it when the liar
# was first to notice: its ERROR frame, or the reset that may overtake it.
HEARD = "PEER_ERROR RESET TCP_ERROR TCP_EOF "
LOST = "LINK_PEER_RESUME LINK_DISCONNECTED LINK_COMPLETION"
# What the counter peer_violation counts.
VIOLATIONS = set("HELLO_BAD HELLO_CUT FRAME_BAD FRAME_UNKNOWN DATA_OFFSET WINDOW_EXCEEDED "
                 "DATA_AFTER_FIN FIN_BAD FINACK_BAD CREDIT_BAD ATTACH_BAD MOVE_BAD RESUME_BAD "
                 "MOVE_DATA".split())
# What "*" stands for: whatever a peer can be blamed for, and never something of our own, such as
# no memory; and an error of the program has a reason.
BLAMED = {"abort": VIOLATIONS | set(HEARD.split()) |
                   {"CLOSED_UNREAD", "ORPHAN_TIMEOUT", "ORPHAN_DATA"},
          "down": {"LINK_PROTOCOL", "LINK_COMPLETION", "LINK_DISCONNECTED", "LINK_PEER_RESUME",
                   "LINK_DETACH_TIMEOUT", "LINK_IDLE", "CONNECT_FAILED", "CONNECT_TIMEOUT",
                   "PEER_NO_SERVICE"}}
# Rows before may end late.
LATE = {"abort": {"ORPHAN_TIMEOUT", "ORPHAN_DATA"},
        "down": {"LINK_DETACH_TIMEOUT", "LINK_IDLE"} | set(LOST.split())}


@dataclass
class Row:
    """One lie. The outcome is one of @ends; the rest has defaults that fit most."""
    knob: str               # for the module parameter "rogue"
    ends: str               # whole, error, stall, short, bent, foreign: see rogue_stream.py
    abort: str = ""         # reasons, one of which the honest end must give; "*": BLAMED
    down: str = ""          # the same for links it lost
    may_down: str = ""      # reasons for which a link may be lost, or not
    early: bool = False     # set before the connection is made, not when it is on RDMA
    tcp: bool = False       # the connection stays on TCP
    fresh: bool = False     # there is no link yet
    before: bool = False    # one connection was made and ended on the link
    hurts: bool = False     # it may touch other connections of the same two hosts
    roles: tuple = BOTH
    size: int = 4 * MIB     # so much that the lie is told in the midst of it
    limit: float = 3        # seconds until a stall is one
    detach_ms: int = 1500   # how long the honest end waits for DETACH
    retry_ms: int = 20      # how long the honest end waits before it asks for RDMA again
    lies: int = 1           # at least
    counts: str = ""        # a counter of the honest end that must rise
    stays: bool = False     # and the link is not lost to this
    then: str = ""          # the program leaves after the lie, and this one follows
    quick: bool = False     # part of the short run

    @property
    def name(self):
        words = self.knob + (f" then {self.then}" if self.then else "")
        return words.replace(" ", "_") + (".tcp" if self.tcp else "")

    @property
    def is_flood(self):
        """Tens of thousands of messages: with KASAN and lockdep there are fewer instead."""
        words = self.knob.split()
        return "count" in words and int(words[words.index("count") + 1]) > 20000

    @property
    def pace(self):
        """Seconds between sends of the first half: what is to happen must find some left."""
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
    # A peer may leave with DETACH. Its next write breaks the rules, or finds no ring any more.
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
    Row("write_long after 3 rate 3", "error bent", HEARD + "WINDOW_EXCEEDED DATA_AFTER_FIN"),
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
    # nobody detaches, and what else is said for the slot is passed over
    Row("flood_cursor after 3 count 50000", "error", "CREDIT_BAD", detach_ms=30000, lies=50000,
        counts="detach_late", stays=True),
    Row("flood_cursor after 3 count 2000", "error", "CREDIT_BAD", detach_ms=4000, lies=2000,
        counts="detach_late", stays=True, **QUICK),
    Row("flood_empty after 3 count 20000", "whole", limit=30),
    Row("flood_again after 3 count 1000", "error", HEARD + "WINDOW_EXCEEDED DATA_AFTER_FIN",
        **QUICK),
    Row("flood_credits after 3", "whole", "", "LINK_PROTOCOL"),
    Row("flood_told count 20000", "whole", limit=30),
    Row("flood_detach after 3", "whole", "", "LINK_PROTOCOL"),
    Row("flood_early after 3 count 1", "whole", "", "LINK_PROTOCOL " + LOST, **QUICK),
    Row("flood_ended after 1", "whole", "", "LINK_PROTOCOL", **QUICK),
    # frames on TCP
    Row("credit", "error whole stall", "*", **TCP),
    Row("credit arg 0x100000", "error", "CREDIT_BAD", **TCP),
    Row("blocked", "error whole", "*", lies=0, **TCP),
    Row("data after 3 rate 3", "error", HEARD + "DATA_OFFSET FRAME_BAD", **TCP),
    Row("data arg 1", "error", HEARD + "DATA_OFFSET", **TCP),
    Row("fin", "error stall short", "*", **TCP),
    Row("mute_credit", "stall", "*", **TCP),
    Row("mute_blocked", "whole", lies=0, **TCP),
    Row("frame_bit after 1 rate 3", "error stall short foreign", "*", **TCP),
    # frames around RDMA
    Row("fin", "error stall short", "*"),
    Row("fin arg 0xfffffffffffff000", "error short", "*", **QUICK),
    Row("finack", "error whole", "*"),
    Row("finack arg 1", "error whole", HEARD + "FINACK_BAD"),
    Row("move_epoch arg 1", "error", "MOVE_BAD", **EARLY),
    Row("move_epoch", "error", "MOVE_BAD FRAME_BAD", **EARLY),
    Row("move_start", "error", "MOVE_BAD FRAME_BAD", **EARLY),
    Row("move_start arg 0xffffffffffffffff", "error", "MOVE_BAD", **EARLY),
    Row("resume_epoch drop 3", "error stall", "*", LOST),
    Row("resume_reason drop 3", "whole", "", LOST),
    Row("resume_received drop 3", "error", "*", LOST),
    Row("resume_received arg 1 drop 3", "error", HEARD + "RESUME_BAD", LOST),
    Row("resume_received arg 0xffffffffffffffff drop 3", "error", HEARD + "RESUME_BAD", LOST),
    Row("resume_received arg 0x100000 drop 3", "error", "RESUME_BAD", LOST, **QUICK),
    Row("resume_consumed drop 3", "error whole", "*", LOST),
    Row("resume_consumed arg 0x100000 drop 3", "error whole", "*", LOST),
    Row("attach_epoch arg 0xffffffffffffffff", "error", "FRAME_BAD", **EARLY),
    Row("attach_epoch arg 5", "error stall", "*", "*", roles=(SERVER,), **EARLY),
    Row("attach_epoch arg 5", "error", "ATTACH_BAD", roles=(CLIENT,), **EARLY),
    # The server accepted, the client reads a refusal: a second ATTACH would be a violation.
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
    Row("frame_twice", "error", HEARD + "MOVE_BAD ATTACH_BAD", **EARLY),
    # silence: a peer that says nothing is as good as one that does not read
    # without HELLO the frames themselves are the liar's bytes
    Row("mute_hello", "foreign error", "*", **EARLY),
    Row("mute_attach", "whole", "", "*", roles=(SERVER,), **EARLY),
    Row("mute_attached", "whole", "", "*", roles=(CLIENT,), **EARLY),
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
    # frames that nobody asked for
    Row("more_attach after 3 count 100", "error", HEARD + "ATTACH_BAD FRAME_BAD", **EARLY),
    # An invented ATTACHED with a reason is a refusal. The client frees its slot, and a write that
    # the server posts to it, having accepted, ends the link.
    Row("more_attached after 3 count 100", "error", HEARD + "ATTACH_BAD FRAME_BAD",
        may_down="LINK_PROTOCOL", **EARLY),
    Row("more_move after 3 count 100", "error", HEARD + "MOVE_BAD FRAME_BAD", **EARLY),
    Row("more_resume after 3 count 100", "error", HEARD + "RESUME_BAD FRAME_BAD", **EARLY),
    Row("more_credit after 3 count 100", "error", HEARD + "CREDIT_BAD FRAME_BAD", **EARLY),
    Row("more_credit arg 0 after 3 count 5000", "whole", "", "*", **EARLY),
    Row("more_blocked arg 0 after 3 count 5000", "whole", "", "*", quick=True, **EARLY),
    Row("more_fin after 3 count 100", "error", HEARD + "FIN_BAD FRAME_BAD DATA_AFTER_FIN", **EARLY),
    Row("more_finack after 3 count 100", "error", HEARD + "FINACK_BAD FRAME_BAD", **EARLY),
    Row("more_urgent arg 0 after 3 count 5000", "whole", "", "*", **EARLY),
    # offsets at random: half of them are such as no stream can have
    Row("more_urgent after 3 count 5000", "error", HEARD + "FRAME_BAD", "*", **EARLY),
    Row("more_urgentack after 3 count 5000", "error", HEARD + "FRAME_BAD", "*", **EARLY),
    # private data of rdma_cm
    # 3 receives, and so many are never told of to one who thinks it has 16; or 768
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
