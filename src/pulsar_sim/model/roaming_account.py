"""`RoamingAccount`: the messages of an application whose client changes between two clusters.

Owns INV-F4. Each cluster has a log and a subscription of its own. A message that a cluster has confirmed is
in that cluster's log, with its bytes, for good. A message that was pending at a change is sent again to the
new cluster, and may be in both. In each log the first copies are in the order in which they were sent. What
the client had not received from a cluster when it left stays there; it goes on there after it came back.
"""

from collections.abc import Sequence

from ..engine.failures import ViolationError
from ..engine.profile import FAR_LEDGERS

Position = tuple[int, int]

DUPLICATE = (-1, -1)
"""The position in the receipt of a message that is stored already."""


class RoamingAccount:
    """The messages of one application: those sent, confirmed and received."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent: dict[bytes, int] = {}
        """Every payload, with its number."""
        self.confirmed: dict[Position, bytes] = {}
        """By position, which tells the cluster, too."""
        self._duplicates: list[bytes] = []
        """Payloads that a cluster has called duplicates: it has them, and does not say where."""
        self.received: dict[Position, bytes] = {}

    def sends(self, generation: int) -> bytes:
        """Return the payload of the next message. `generation`: the number of its producer."""
        payload = f"<{generation}:{len(self.sent)}>".encode()
        self.sent[payload] = len(self.sent)
        return payload

    def confirms(self, position: Position, payload: bytes) -> None:
        if position == DUPLICATE:
            self._duplicates.append(payload)
            return
        other = self.confirmed.setdefault(position, payload)
        if other != payload:
            raise ViolationError("INV-F4", f"{position} is confirmed for {other!r} and for {payload!r}")

    def receives(self, position: Position, payload: bytes) -> None:
        if payload not in self.sent or self.received.setdefault(position, payload) != payload:
            raise ViolationError("INV-F4", f"{payload!r} is received at {position}")

    def is_read(self, entries: Sequence[tuple[Position, bytes]]) -> bool:
        """True when every entry of a log was received."""
        return all(position in self.received for position, _ in entries)

    def check_duplicates(self, logs: Sequence[Sequence[tuple[Position, bytes]]]) -> None:
        """INV-F4: a message that was confirmed as a duplicate is in the log of some cluster."""
        stored = {_payload_of(data) for log in logs for _, data in log}
        for payload in self._duplicates:
            if payload not in stored:
                raise ViolationError("INV-F4", f"{payload!r} was called a duplicate, and no cluster has it")

    def check_log(self, far: bool, entries: Sequence[tuple[Position, bytes]]) -> None:
        """INV-F4: the log of one cluster holds what the cluster confirmed and delivered, in order.

        `far`: the cluster has the greater ledger ids.
        """
        log = {position: _payload_of(data) for position, data in entries}
        for what, known in (("confirmed", self.confirmed), ("received", self.received)):
            for position, payload in known.items():
                if (position[0] >= FAR_LEDGERS) is far and log.get(position) != payload:
                    raise ViolationError(
                        "INV-F4", f"{payload!r} was {what} at {position}: the log has {log.get(position)!r}"
                    )
        newest: dict[bytes, int] = {}
        seen: dict[bytes, None] = {}
        for position, payload in log.items():
            number = self.sent.get(payload)
            if number is None:
                raise ViolationError("INV-F4", f"{payload!r} at {position} was never sent")
            generation = payload.partition(b":")[0]
            if payload not in seen and number < newest.get(generation, -1):
                raise ViolationError("INV-F4", f"{payload!r} at {position} is behind a later message")
            seen[payload] = None
            newest[generation] = max(number, newest.get(generation, -1))


def _payload_of(data: bytes) -> bytes:
    """Return the payload of an entry, which is neither compressed nor a batch."""
    return data[data.rindex(b"<") :]
