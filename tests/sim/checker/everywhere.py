"""The checker over every test that drives a client or a broker: a plugin that `tests/conftest.py` adds.

Listens at the machines themselves: a client answers for what it writes, given what it was given, and a broker
likewise; what a test plays for the other side by hand may break any rule. Where the other side is a real
broker or the official client, it answers for itself too.

A test that passes and shows a violation fails. What a test does on purpose, behind the machine's back, it
says: `@pytest.mark.breaks("WIRE-21", why="the version in CONNECTED is a lie")`. One that measures what the
checker would change says `@pytest.mark.unwatched(why="memory is measured")`.
"""

from collections.abc import Collection, Generator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from pulsar_sansio.broker import Broker
from pulsar_sansio.client.client import Client
from pulsar_sansio.sim.checker import Session, Side, Violation

NOT_HERE = {
    "tests/sim/": "every world has a checker at both ends of every wire",
    "tests/triosim/": "every run has a checker at both ends of every wire",
    "tests/fuzz/": "peers break the rules there, applications too, and memory and time are measured",
    "tests/bench/": "what is measured is speed",
}
"""Folders whose tests are left alone, and why."""

REAL_PEERS = {"real", "official"}
"""Marks of tests whose other side is a program of its own."""

OF_REAL_BROKERS = {"GAP-27", "INV-C14"}
"""What a real Pulsar does: it looks at permits before it reads, and sends all that it has read. Messages are
written by another thread than the one that answers CLOSE_CONSUMER, so some may come after that answer; they
are delivered to another consumer too."""

_violations: list[tuple[Side, Violation]] = []
"""With the side whose machine was listened at."""
_listening = False


def _listen(machine: type[Any], me: Side, one_peer: bool) -> None:
    sessions: WeakKeyDictionary[Any, dict[int, Session]] = WeakKeyDictionary()
    receive_data, data_to_send = machine.receive_data, machine.data_to_send

    def session(root: Any, link: int) -> Session:
        """A client has one for all of its links; of a broker's links nobody knows whose they are."""
        return sessions.setdefault(root, {}).setdefault(0 if one_peer else link, Session())

    def hear(root: Any, link: int, author: Side, data: bytes) -> None:
        _violations.extend((me, violation) for violation in session(root, link).feed(link, author, data))

    def received(self: Any, now: int, link: int, data: bytes) -> None:
        if _listening:
            hear(self, link, me.other, bytes(data))
        receive_data(self, now, link, data)

    def to_send(self: Any, link: int) -> Sequence[bytes]:
        chunks: Sequence[bytes] = data_to_send(self, link)
        if _listening and chunks:
            hear(self, link, me, b"".join(chunks))
        return chunks

    machine.receive_data, machine.data_to_send = received, to_send


_listen(Client, Side.CLIENT, one_peer=True)
_listen(Broker, Side.BROKER, one_peer=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    global _listening
    _violations.clear()
    _listening = not (item.nodeid.startswith(tuple(NOT_HERE)) or item.get_closest_marker("unwatched"))
    try:
        result = yield
    finally:
        _listening = False
    excused = {rule for mark in item.iter_markers("breaks") for rule in mark.args}
    both_sides = any(item.get_closest_marker(name) for name in REAL_PEERS)
    if item.get_closest_marker("real"):
        excused |= OF_REAL_BROKERS
    unexpected = found(excused, both_sides)
    assert not unexpected, "\n".join(map(str, unexpected[:20]))
    return result


def found(excused: Collection[str], both_sides: bool) -> list[Violation]:
    """Violations since the test began, of the machines alone or of both sides, but for `excused` rules."""
    return [
        violation
        for me, violation in _violations
        if (both_sides or violation.side is me) and violation.rule_id not in excused
    ]
