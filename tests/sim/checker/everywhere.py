"""A pytest plugin: the checker over every test that drives a client or a broker machine.

    pytest -p tests.sim.checker.everywhere tests/client tests/broker tests/trio tests/sim

Listens at the machines themselves: a client answers for what it writes, given what it was given, and a broker
likewise; what the test plays for the other side may break any rule. A test that passes and shows a violation
fails. `EXPECTED` lists what tests do on purpose behind the machine's back.
"""

from collections.abc import Generator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from pulsar_sansio.broker import Broker
from pulsar_sansio.client.client import Client
from pulsar_sansio.sim.checker import Session, Side, Violation

EXPECTED: dict[str, tuple[str, ...]] = {
    # Received by a link that is not connected, so not received.
    "CHECK-01": ("test_connection.py::test_a_link_cannot_be_connected_twice_nor_receive_before",),
    # Requests made by hand, without their consumers.
    "CHECK-57": ("test_requests.py::",),
    # An application may acknowledge any id it has.
    "INV-C4": ("test_verdicts.py::test_a_message_of_another_consumer_of_the_topic",),
    # Sequence ids of the application, in any order.
    "INV-P6": (
        "test_batching.py::test_however_they_are_batched",
        "test_producer.py::test_an_id_of_ones_own_is_sent_as_given_and_does_not_move_the_counter",
        "trio/test_producer.py::test_everything_said_of_a_message_arrives",
    ),
    # The version in CONNECTED is what was damaged, or a lie.
    "WIRE-21": ("test_connection.py::test_damaged_frames_never_raise", "client/test_hostile.py::"),
}
"""Rule -> the tests that break it, or seem to, with good reason."""

_violations: list[Violation] = []


def _listen(machine: type[Any], me: Side, one_peer: bool) -> None:
    sessions: WeakKeyDictionary[Any, dict[int, Session]] = WeakKeyDictionary()
    receive_data, data_to_send = machine.receive_data, machine.data_to_send

    def session(root: Any, link: int) -> Session:
        """A client has one for all of its links; of a broker's links nobody knows whose they are."""
        return sessions.setdefault(root, {}).setdefault(0 if one_peer else link, Session())

    def note(root: Any, link: int, side: Side, data: bytes) -> None:
        found = session(root, link).feed(link, side, data)
        _violations.extend(violation for violation in found if violation.side is me)

    def received(self: Any, now: int, link: int, data: bytes) -> None:
        note(self, link, me.other, bytes(data))
        receive_data(self, now, link, data)

    def to_send(self: Any, link: int) -> Sequence[bytes]:
        chunks: Sequence[bytes] = data_to_send(self, link)
        note(self, link, me, b"".join(chunks))
        return chunks

    machine.receive_data, machine.data_to_send = received, to_send


_listen(Client, Side.CLIENT, one_peer=True)
_listen(Broker, Side.BROKER, one_peer=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    _violations.clear()
    result = yield
    unexpected = [
        violation
        for violation in _violations
        if not any(test in item.nodeid for test in EXPECTED.get(violation.rule_id, ()))
    ]
    assert not unexpected, "\n".join(map(str, unexpected[:20]))
    return result
