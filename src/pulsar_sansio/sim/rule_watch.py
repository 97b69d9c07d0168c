"""The checker of the protocol's rules, listening at both ends of every wire.

Owns nothing of the rules: it gives the checker what each client process wrote and what arrived at it, and
what each broker process wrote and what arrived at it, and believes it about that side only. So a frame that
mischief swallowed, answered or added is held against nobody. What no end may say is a violation by its
rule's id.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .checker import Conversation, Session, Side, TopicMemory, Violation
from .network import GARBAGE, Wire
from .violations import ViolationError


class _Ear:
    """At one end of one wire."""

    __slots__ = ("conversation", "deaf", "process", "session")

    def __init__(self, session: Session, process: str, number: int) -> None:
        self.session = session
        self.process = process
        self.conversation: Conversation = session.conversation(number)
        self.deaf = False
        """Garbage has arrived: nothing after it is read."""


class RuleWatch:
    """All conversations of a world."""

    def __init__(self) -> None:
        self._topics = TopicMemory()
        self._sessions: dict[tuple[Side, str], Session] = {}
        """By side and process."""
        self._ears: dict[Side, dict[int, _Ear]] = {side: {} for side in Side}
        """By side and number of the wire."""
        self.frames = 0
        """Frames judged, each at both ends."""
        self.excused: set[str] = set()
        """Rules that say nothing of this world: what they forbid has a reason that no frame shows."""

    def seen(
        self, end: Side, process_of: Callable[[Wire], str], wire: Wire, by: Side, kind: int, command: Any
    ) -> None:
        """At `end` of the wire a frame of `by` was written or has arrived.

        `process_of` is asked once for each end which process that is.
        """
        number = wire.number
        ear = self._ears[end].get(number)
        if ear is None:
            ear = self._listen(end, process_of(wire), number)
        found: Sequence[Violation]
        if by is end:
            found = ear.conversation.frame(by, kind, command)
        elif kind == GARBAGE or ear.deaf:
            ear.deaf = True
            return
        else:
            found = ear.conversation.heard(by, kind, command)
        self.frames += 1
        for violation in found:
            if violation.side is end and violation.rule_id not in self.excused:
                raise ViolationError(violation.rule_id, f"{ear.process} on wire {number}: {violation.text}")

    def _listen(self, end: Side, process: str, number: int) -> _Ear:
        session = self._sessions.get((end, process))
        if session is None:
            session = self._sessions[end, process] = Session(topics=self._topics)
        ear = self._ears[end][number] = _Ear(session, process, number)
        return ear

    def wire_closed(self, end: Side, wire: Wire) -> None:
        ear = self._ears[end].pop(wire.number, None)
        if ear is not None:
            ear.session.end(wire.number)
