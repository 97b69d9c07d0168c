"""The checker of the protocol's rules, listening at both ends of every wire.

Owns nothing of the rules: it gives the checker what each client process wrote and what arrived at it, and
what each broker process wrote and what arrived at it, and believes it about that side only. So a frame that
mischief swallowed, answered or added is held against nobody. What no end may say is a violation by its
rule's id.
"""

from typing import Any

from .checker import Session, Side, TopicMemory
from .network import GARBAGE, Wire
from .violations import ViolationError


class RuleWatch:
    """All conversations of a world."""

    def __init__(self) -> None:
        self._topics = TopicMemory()
        self._sessions: dict[tuple[Side, str], Session] = {}
        """By side and process."""
        self._dead: set[tuple[Side, int]] = set()
        """Ends of wires at which garbage has arrived: nothing after it is read."""
        self.frames = 0
        """Frames judged, each at both ends."""

    def seen(self, end: Side, process: str, wire: Wire, by: Side, kind: int, command: Any) -> None:
        """At `end` of the wire, which is in `process`, a frame of `by` was written or has arrived."""
        number = wire.number
        if kind == GARBAGE:
            self._dead.add((end, number))
        if (end, number) in self._dead and by is not end:
            return
        session = self._sessions.get((end, process))
        if session is None:
            session = self._sessions[end, process] = Session(topics=self._topics)
        self.frames += 1
        judge = session.frame if by is end else session.heard
        for violation in judge(number, by, kind, command):
            if violation.side is end:
                raise ViolationError(violation.rule_id, f"{process} on wire {number}: {violation.text}")

    def wire_closed(self, end: Side, process: str, wire: Wire) -> None:
        session = self._sessions.get((end, process))
        if session is not None:
            session.end(wire.number)
