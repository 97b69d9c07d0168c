"""`Conversation`: reads the two streams of one connection and asks the rules about every frame.

    conversation = Conversation()
    for side, data in pieces:
        for violation in conversation.feed(side, data):
            print(violation)

The pieces are bytes in the order in which they passed one place between client and broker. Any other order
that causes and effects allow will do: a frame stands before every frame that was sent because of it. Pieces
need not be frames.

This module owns the cutting into frames and the order of the checks: the rules see a frame, then the state
changes. It knows no rule by name but those about frames themselves.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ..model.errors import FrameError
from ..wire import FrameDecoder, max_frame_size
from .commands import BROKER_SINCE, CLIENT_SINCE, SENT_BY
from .findings import Blame, Finding, Side, Violation
from .memory import Memory
from .registry import RULES, Selection, id_of
from .rules import framing, handshake, versions
from .state.state import State
from .tracking.frames import PREPARE, TRACK
from .traits import ALL_TRAITS, PINGED

_ALL = Selection()
_OF_CLIENT, _OF_BROKER = (
    {kind: (since.get(kind, 0), PREPARE.get(kind), TRACK.get(kind)) for kind in SENT_BY[side]}
    for side, since in ((Side.CLIENT, CLIENT_SINCE), (Side.BROKER, BROKER_SINCE))
)
"""Kind of command -> the protocol version that brought it, and its functions in `PREPARE` and `TRACK`."""
_OF = {Side.CLIENT: _OF_CLIENT, Side.BROKER: _OF_BROKER}


class Conversation:
    """One connection, from its first byte."""

    def __init__(
        self,
        checks: Iterable[str] | Selection | None = None,
        memory: Memory | None = None,
        number: int = 0,
    ) -> None:
        """`checks`: ids of the rules to apply, None for all; an unknown one raises `ValueError`. `memory`:
        what is known of the client's other connections, see `Session`. `number`: told in violations."""
        if checks is None:
            selection = _ALL
        else:
            selection = checks if isinstance(checks, Selection) else Selection(checks)
        self.number = number
        self.state = State(memory or Memory())
        self._ids = selection.ids
        self._of_client, self._of_broker = (selection.routes[side] for side in Side)
        self._received = selection.received
        self._buffers = {Side.CLIENT: b"", Side.BROKER: b""}
        self._unreadable: set[Side] = set()
        self._decoders = {side: FrameDecoder() for side in Side}

    @property
    def frames(self) -> int:
        """The number of frames that have passed."""
        return self.state.frame + 1

    def feed(self, side: Side, data: bytes) -> list[Violation]:
        """Bytes that `side` has sent. Gives what they show, in order.

        After bytes that are no frame the rest of that side's stream cannot be read, and is not looked at.
        """
        if side in self._unreadable:
            return []
        buffer = self._buffers[side]
        if buffer:
            data = buffer + data
        violations: list[Violation] = []
        position = 0
        while True:
            limit = max_frame_size(self.state.max_message_size)
            try:
                found = self._decoders[side].decode(data, position, limit)
            except FrameError as error:
                self._unreadable.add(side)
                self._buffers[side] = b""
                self._no_frame(side, framing.explain(data, position, limit, str(error)), violations)
                return violations
            if found is None:
                break
            kind, command, position = found
            violations += self.frame(side, kind, command)
        self._buffers[side] = data[position:] if position else bytes(data)
        return violations

    def frame(self, side: Side, kind: int, command: Any) -> list[Violation]:
        """One frame that `side` has sent, decoded already: as `FrameDecoder` gives it. Gives what it
        shows."""
        state = self.state
        state.frame += 1
        state.side = side
        state.kind = kind
        violations: list[Violation] = []
        from_client = side is Side.CLIENT
        plan = (_OF_CLIENT if from_client else _OF_BROKER).get(kind)
        if plan is None or command is None:
            if not from_client:
                state.keepalive.quiet = False  # a frame of an unknown kind is a sign of life, too (INV-N7)
            self._report(framing.each_side_has_its_commands, "WIRE-22", kind, violations)
            self._report(framing.commands_are_known, "CHECK-78", kind, violations)
            return violations
        since, prepare, step = plan
        if state.version < since or not state.connected:
            self._of_any_kind(kind, violations)
        state.producer = state.consumer = state.request = None
        traits = ALL_TRAITS if prepare is None else prepare(state, command)
        if state.keepalive.of_broker if from_client else state.keepalive.of_client:
            traits |= PINGED
        for check in (self._of_client if from_client else self._of_broker)[kind, traits]:
            finding = check(state, command)
            if finding is not None:
                violations.append(self._violation(id_of(check), finding))
        if step is not None:
            step(state, command)
        if not from_client:
            state.keepalive.quiet = False
        return violations

    def received(self, side: Side, kind: int, command: Any) -> Sequence[Violation]:
        """Check a frame as `frame` does, but find only the faults of the side that did not send it.

        A caller that looks at one end of a connection, and trusts nothing that arrives there, uses this.
        """
        state = self.state
        state.frame += 1
        state.side = side
        state.kind = kind
        route = self._received[side].get(kind)
        violations: Sequence[Violation] = ()
        if route is not None and command is not None:
            state.producer = state.consumer = state.request = None
            _, prepare, step = _OF[side][kind]
            if prepare is not None:
                prepare(state, command)
            if route:
                found = [(check, check(state, command)) for check in route]
                said = [
                    self._violation(id_of(check), finding) for check, finding in found if finding is not None
                ]
                violations = [violation for violation in said if violation.side is not side]
            if step is not None:
                step(state, command)
        if side is Side.BROKER:
            state.keepalive.quiet = False
        return violations

    def _of_any_kind(self, kind: int, violations: list[Violation]) -> None:
        """Rules that look at every frame, while they can find anything: before CONNECTED and with old
        peers."""
        if self.state.side is Side.CLIENT:
            self._report(handshake.connect_is_first, "CONN-01", kind, violations)
            self._report(handshake.client_waits_for_connected, "CHECK-01", kind, violations)
            self._report(versions.commands_the_broker_knows, "WIRE-21", kind, violations)
        else:
            self._report(handshake.broker_does_not_begin, "CHECK-02", kind, violations)
            self._report(handshake.broker_shakes_hands, "CONN-03", kind, violations)
            self._report(versions.pushes_the_client_knows, "CHECK-08", kind, violations)

    def _no_frame(self, side: Side, bad: framing.BadFrame, violations: list[Violation]) -> None:
        state = self.state
        state.frame += 1
        state.side = side
        for rule_id in ("GAP-06", "GAP-01", "CHECK-77"):
            self._report(RULES[rule_id].check, rule_id, bad, violations)

    def _report(self, check: Any, rule_id: str, subject: Any, violations: list[Violation]) -> None:
        if rule_id in self._ids:
            finding = check(self.state, subject)
            if finding is not None:
                violations.append(self._violation(rule_id, finding))

    def _violation(self, rule_id: str, finding: Finding) -> Violation:
        if isinstance(finding, Blame):
            return Violation(rule_id, finding.side, finding.frame_number, finding.text, self.number)
        assert finding is not None
        return Violation(rule_id, self.state.side, self.state.frame, finding, self.number)


def check(pieces: Iterable[tuple[Side, bytes]], checks: Iterable[str] | None = None) -> list[Violation]:
    """Everything that is wrong with one connection, given its pieces in the order in which they passed."""
    conversation = Conversation(checks)
    violations: list[Violation] = []
    for side, data in pieces:
        violations += conversation.feed(side, data)
    return violations
