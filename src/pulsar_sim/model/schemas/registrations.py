"""`Registrations`: the clients' requests to register schemas of messages, as the frames show them.

Owns the versions that brokers have returned, which requests failed and how, and until when messages may wait
for one. A client repeats a request that failed in passing, until the operation timeout (CONN-13); so messages
may wait for a version, or fail, only where a request failed.
"""

from dataclasses import dataclass

from pulsar_sansio.model.errors import PulsarError, TimedOut, broker_error
from pulsar_sansio.wire import proto

from ...engine.clock import Clock
from .questions import whole


@dataclass(slots=True, eq=False)
class OpenRegistration:
    """A request that was written over a wire."""

    client: str
    topic: str
    asked_at: int


class Registrations:
    """All registrations of a world. `timeout`: nanoseconds after which a client gives a version up."""

    def __init__(self, timeout: int, clock: Clock) -> None:
        self._timeout = timeout
        self._clock = clock
        self._open: dict[tuple[int, int], OpenRegistration] = {}
        """Requests by wire and request id."""
        self._versions: dict[tuple[str, str], dict[bytes, None]] = {}
        """Client and topic -> the versions that brokers have returned, empty where one gave none."""
        self._repeated_until: dict[str, int] = {}
        """Topic without its partition -> virtual time until which requests that failed may be repeated."""
        self._answered_at: dict[str, int] = {}
        """Topic without its partition -> virtual time of the last answer."""
        self._refusals: dict[str, set[type[PulsarError]]] = {}
        """Topic without its partition -> the errors of refused requests."""

    # --- what the wires show ---

    def asked(self, wire: int, request_id: int, client: str, topic: str) -> None:
        self._open[wire, request_id] = OpenRegistration(client, topic, self._clock.now)

    def answered(self, wire: int, request_id: int, version: bytes, code: int | None) -> None:
        """An answer has arrived. `code`: that of an error."""
        asked = self._open.pop((wire, request_id), None)
        if asked is None:
            return
        self._answered_at[whole(asked.topic)] = self._clock.now
        if code is None or code == proto.TopicNotFound:  # the broker does not have the topic yet
            self._versions.setdefault((asked.client, asked.topic), {})[version] = None
        else:
            self._refusals.setdefault(whole(asked.topic), set()).add(type(broker_error(code, "")))
            self._is_repeated(asked)

    def lost(self, wire: int) -> None:
        """A wire is gone, and with it the requests that were written over it."""
        for key in [key for key in self._open if key[0] == wire]:
            self._is_repeated(self._open.pop(key))

    def _is_repeated(self, failed: OpenRegistration) -> None:
        self._repeated_until[whole(failed.topic)] = self._clock.now + self._timeout

    # --- what they mean ---

    def versions(self, client: str, topic: str) -> list[bytes]:
        """Return the versions that brokers have returned to the client."""
        return [*self._versions.get((client, topic), ())]

    def may_wait(self, topic: str) -> bool:
        """True while messages of the topic, or of a partition of it, may wait for a version."""
        return self._wait_ends(whole(topic)) > self._clock.now

    def waited_until(self, topic: str) -> int:
        """Return the last time at which messages of the topic may have waited for a version; -1 for never."""
        name = whole(topic)
        return max(self._answered_at.get(name, -1), min(self._wait_ends(name), self._clock.now))

    def _wait_ends(self, name: str) -> int:
        """Return when clients give up the last request for the topic that is open or failed; -1 for none."""
        asked = [each.asked_at + self._timeout for each in self._open.values() if whole(each.topic) == name]
        return max([self._repeated_until.get(name, -1), *asked])

    def is_reason(self, topic: str, error: PulsarError) -> bool:
        """True when a request for the topic failed in a way that fails messages with this error."""
        name = whole(topic)
        if not isinstance(error, TimedOut):
            return type(error) in self._refusals.get(name, ())
        return name in self._repeated_until or any(whole(each.topic) == name for each in self._open.values())
