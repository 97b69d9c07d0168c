"""The checker of the protocol's rules, at both ends of every wire.

Owns no rule: it passes to the checker the frames that each process wrote and received, and believes the
checker about that process's side only. So a frame that misbehaviour dropped, answered or added accuses no
machine. A frame that a side may not write is a violation under its rule's id.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pulsar_sansio.conformance import Conversation, Session, Side, TopicMemory, Violation

from ..engine.failures import ViolationError
from ..engine.network import Wire


class _WireEnd:
    """The conversation at one end of one wire."""

    __slots__ = ("conversation", "process", "session")

    def __init__(self, session: Session, process: str, number: int) -> None:
        self.session = session
        self.process = process
        self.conversation: Conversation = session.conversation(number)


class CheckedEnds:
    """The ends of all wires on one side: checks frames written there, and records frames that arrive
    there."""

    def __init__(
        self,
        side: Side,
        process_of: Callable[[Wire], str],
        topics: TopicMemory,
        excused: set[tuple[str, str]],
    ) -> None:
        """`process_of` is called once for each end and names its process. `excused`: pairs of a process and a
        rule that does not apply to it."""
        self._side, self._other = side, side.other
        self._process_of = process_of
        self._topics = topics
        self._excused = excused
        self._sessions: dict[str, Session] = {}
        """Sessions by process."""
        self._wire_ends: dict[int, _WireEnd] = {}
        """Ends of wires by wire number."""

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        """A frame was written at this end of the wire."""
        ear = self._wire_ends.get(wire.number) or self._listen(wire)
        if found := ear.conversation.frame(self._side, kind, command):
            self._report(ear, found)

    def received(self, wire: Wire, kind: int, command: Any) -> None:
        """A frame of the other end has arrived at this end."""
        ear = self._wire_ends.get(wire.number) or self._listen(wire)
        if found := ear.conversation.received(self._other, kind, command):
            self._report(ear, found)

    def _listen(self, wire: Wire) -> _WireEnd:
        process = self._process_of(wire)
        session = self._sessions.get(process)
        if session is None:
            session = self._sessions[process] = Session(topics=self._topics)
        ear = self._wire_ends[wire.number] = _WireEnd(session, process, wire.number)
        return ear

    def _report(self, ear: _WireEnd, found: Sequence[Violation]) -> None:
        for violation in found:
            if violation.side is self._side and (ear.process, violation.rule_id) not in self._excused:
                where = f"{ear.process} on wire {violation.connection}"
                raise ViolationError(violation.rule_id, f"{where}: {violation.text}")

    def wire_closed(self, wire: Wire) -> None:
        ear = self._wire_ends.pop(wire.number, None)
        if ear is not None:
            ear.session.end(wire.number)


class RuleWatch:
    """All conversations of a world."""

    def __init__(self, client_process: Callable[[Wire], str], broker_process: Callable[[Wire], str]) -> None:
        """Name the processes at both ends of a wire."""
        topics = TopicMemory()
        self._excused: set[tuple[str, str]] = set()
        self.clients = CheckedEnds(Side.CLIENT, client_process, topics, self._excused)
        self.brokers = CheckedEnds(Side.BROKER, broker_process, topics, self._excused)

    def excuse(self, process: str, rule: str) -> None:
        """Exempt a process from a rule: there is a reason that no frame shows."""
        self._excused.add((process, rule))
