"""Listening at the machines of a process: a checker at every client and broker that it drives.

A client answers for what it writes, given what it was given; so does a broker. This module owns the methods
that are replaced; the caller decides what to do with a violation. `everywhere` listens in the tests' own
process, `processes/sitecustomize.py` in those that tests start.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from pulsar_sansio.broker import Broker
from pulsar_sansio.client.client import Client
from pulsar_sansio.conformance import Session, Side, Violation

Hear = Callable[[Side, Violation], None]
"""Told of a violation, with the side whose machine was listened at."""


def listen(hear: Hear, is_on: Callable[[], bool]) -> None:
    """From now on, at every client and broker; `is_on` says whether bytes count."""
    _listen_at(Client, Side.CLIENT, True, hear, is_on)
    _listen_at(Broker, Side.BROKER, False, hear, is_on)


def _listen_at(machine: type[Any], me: Side, one_peer: bool, hear: Hear, is_on: Callable[[], bool]) -> None:
    sessions: WeakKeyDictionary[Any, dict[int, Session]] = WeakKeyDictionary()
    over_http: WeakKeyDictionary[Any, set[int]] = WeakKeyDictionary()
    """The links of each client over which it has sent an HTTP request."""
    receive_data, data_to_send = machine.receive_data, machine.data_to_send

    def session(root: Any, link: int) -> Session:
        """Return the session of a link. A client has one for all of its links; a broker has one for each
        link, as it cannot know which peer a link belongs to."""
        return sessions.setdefault(root, {}).setdefault(0 if one_peer else link, Session())

    def feed(root: Any, link: int, author: Side, data: bytes) -> None:
        for violation in session(root, link).feed(link, author, data):
            hear(me, violation)

    def received(self: Any, now: int, link: int, data: bytes) -> None:
        if is_on() and link not in over_http.get(self, ()):
            feed(self, link, me.other, bytes(data))
        receive_data(self, now, link, data)

    def to_send(self: Any, link: int) -> Sequence[bytes]:
        chunks: Sequence[bytes] = data_to_send(self, link)
        if is_on() and chunks:
            if chunks[0].startswith(b"GET "):  # no frame begins so: its size would be beyond any limit
                over_http.setdefault(self, set()).add(link)
            else:
                feed(self, link, me, b"".join(chunks))
        return chunks

    machine.receive_data, machine.data_to_send = received, to_send
