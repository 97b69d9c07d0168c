"""`RenewalWatch`: the brokers' requests for new credentials, and their answers, of every wire.

Owns INV-N14: a broker cuts a connection because of its credentials only when it has asked for new ones and
has read no answer for the whole interval. So a connection that renewed its credentials outlives the old ones.
"""

from typing import Any

from pulsar_sansio.wire import proto

from ..engine.failures import ViolationError
from ..engine.network import Wire

T = proto.BaseCommand

REASONS = ("AUTH_CHALLENGE in time", "credentials expired")
"""Parts of the reasons for which a broker cuts a connection whose credentials have expired."""


REFRESH = b"PulsarAuthRefresh"
"""The data of the AUTH_CHALLENGE with which a renewal begins; a method may have further steps."""


class RenewalWatch:
    """All brokers. `interval`: nanoseconds that a client has for a whole renewal."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._began: dict[int, int] = {}
        """When the last renewal of each wire began, by its number."""
        self._unanswered: dict[int, None] = {}
        """Wires by number whose last AUTH_CHALLENGE has no answer that the broker has read."""

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        if kind == T.AUTH_CHALLENGE:
            self._unanswered[wire.number] = None
            if command.challenge.auth_data == REFRESH:
                self._began[wire.number] = wire.network.clock.now

    def got(self, wire: Wire, kind: int) -> None:
        if kind == T.AUTH_RESPONSE:
            self._unanswered.pop(wire.number, None)

    def closes(self, wire: Wire, reason: str) -> None:
        """INV-N14: the broker ends the wire."""
        if not any(each in reason for each in REASONS):
            return
        began = self._began.get(wire.number)
        if began is None or wire.number not in self._unanswered:
            raise ViolationError("INV-N14", f"wire {wire.number} owes no credentials and is ended: {reason}")
        waited = wire.network.clock.now - began
        if waited < self._interval:
            raise ViolationError("INV-N14", f"wire {wire.number} is ended after {waited} ns: {reason}")

    def forget(self, wire: Wire) -> None:
        """The wire has ended."""
        self._began.pop(wire.number, None)
        self._unanswered.pop(wire.number, None)
