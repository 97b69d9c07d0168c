"""`KeepAlive`: PING and PONG of one connection, which show that its client is alive (CONN-01).

The broker asks at an interval, and at once when a rival claims a producer's name or a consumer's place. Every
whole frame is a sign of life. A client that gives none is disconnected.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...wire import encode_ping

if TYPE_CHECKING:
    from .connection import Connection


class KeepAlive:
    """The keep-alive of one connection, from its beginning to its end."""

    __slots__ = (
        "_connection",
        "_context",
        "_interval",
        "_pinged",
        "_probe",
        "_timeout",
        "_timer",
        "_waiters",
        "awaited",
    )

    def __init__(self, connection: "Connection") -> None:
        services = connection.services
        context = services.context
        self._connection = connection
        self._context = context
        self._interval = services.keepalive_interval
        self._timeout = services.liveness_timeout
        self.awaited = False
        """A PING is unanswered."""
        self._pinged = False
        """A PING of the keep-alive is unanswered; a probe's PING does not count."""
        self._timer = context.deadlines.slot(self._due)
        self._timer.set(context.now + self._interval)
        self._probe = context.deadlines.slot(self._probe_due)
        self._waiters: list[Callable[[bool], None]] = []

    def connected(self) -> None:
        """The handshake is complete: the interval begins anew."""
        self._timer.set(self._context.now + self._interval)

    def on_frame(self) -> None:
        """A whole frame has answered the PING."""
        self.awaited = self._pinged = False
        if self._waiters:
            self._probe.clear()
            self._answer(True)

    def probe(self, then: Callable[[bool], None]) -> None:
        """Send a PING; call `then(True)` at the next frame, or `then(False)` once the connection is dead."""
        self._waiters.append(then)
        if self._probe.when is None:
            self.awaited = True
            self._connection.write(encode_ping())
            self._probe.set(self._context.now + self._timeout)

    def stop(self) -> None:
        """The connection is dead: ask no more."""
        self._timer.clear()
        self._probe.clear()

    def report_dead(self) -> None:
        """Answer every probe: the connection is dead."""
        self._answer(False)

    def _answer(self, alive: bool) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(alive)

    def _due(self) -> None:
        connection = self._connection
        if (missing := connection.missing_in_handshake) is not None:
            connection.terminate(f"no {missing} in time")
        elif self._pinged and connection.reading:
            connection.terminate("no answer to PING")
        else:
            if connection.protocol_version >= 1:
                self.awaited = self._pinged = True
                connection.write(encode_ping())
            self._timer.set(self._context.now + self._interval)

    def _probe_due(self) -> None:
        self._connection.terminate("no sign of life")
