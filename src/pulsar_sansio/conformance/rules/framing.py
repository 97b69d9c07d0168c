"""Rules about frames themselves, before their commands mean anything.

They look at what was cut from the stream, or at what could not be; the conversation asks them by hand.
"""

from typing import Any, NamedTuple

from .. import commands as c
from ..findings import Finding
from ..registry import rule
from ..state.state import State


class BadFrame(NamedTuple):
    """Bytes that are no frame."""

    total_size: int
    limit: int
    """The largest total size allowed."""
    command_size: int | None
    """The size of the command; None when its bytes have not arrived yet."""
    reason: str


@rule("GAP-06")
def frames_fit(state: State, bad: BadFrame) -> Finding:
    """A frame is at most 10 240 bytes larger than the maximum message size, its size field included."""
    if bad.total_size <= bad.limit:
        return None
    return f"a frame of {bad.total_size} bytes, allowed are {bad.limit}"


@rule("GAP-01")
def sizes_agree(state: State, bad: BadFrame) -> Finding:
    """A frame is its size, the size of its command, the command, and a payload for SEND and MESSAGE alone."""
    if bad.total_size > bad.limit:
        return None
    if bad.total_size < 4 or (bad.command_size is not None and bad.command_size + 4 > bad.total_size):
        return bad.reason
    return bad.reason if "belong to nothing" in bad.reason else None


@rule("CHECK-77")
def commands_are_whole(state: State, bad: BadFrame) -> Finding:
    """A command is well-formed, has a type, the field of that type, and all required fields."""
    if frames_fit(state, bad) is not None or sizes_agree(state, bad) is not None:
        return None
    return bad.reason


@rule("WIRE-22")
def each_side_has_its_commands(state: State, kind: int) -> Finding:
    """Each side sends only its own commands."""
    if kind in c.SENT_BY[state.side] or kind not in c.SENT_BY[state.side.other]:
        return None
    return f"{c.name_of(kind)} is the {state.side.other}'s"


@rule("CHECK-78")
def commands_are_known(state: State, kind: int) -> Finding:
    """No command is sent that the agreed protocol version does not have."""
    if any(kind in kinds for kinds in c.SENT_BY.values()):
        return None
    return f"command {kind} is unknown"


def explain(data: Any, position: int, limit: int, reason: str) -> BadFrame:
    """Describe bytes that `FrameDecoder` refused, for the rules of this module."""
    total_size = int.from_bytes(data[position : position + 4], "big")
    has_command = len(data) >= position + 8
    command_size = int.from_bytes(data[position + 4 : position + 8], "big") if has_command else None
    return BadFrame(total_size, limit, command_size, reason)
