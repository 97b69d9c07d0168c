"""Requests: one answer each, in time, on the connection of the request."""

from typing import Any

import pytest

from pulsar_sansio.model.errors import BrokerError, ConnectionLost, PulsarError, TimedOut
from pulsar_sansio.wire import encode_command, proto
from tests.client.script import Command, Script, frame_error, frame_success

pytestmark = pytest.mark.breaks("CHECK-57", why="the requests are made by hand, without their consumers")


class Asker:
    """Sends requests over an attached producer's connection and records the outcomes."""

    def __init__(self) -> None:
        self.script = Script(operation_timeout=10.0, keepalive_interval=1000.0)
        _, self.link = self.script.ready_producer()
        self.connection = self.script.connection(self.link)
        self.requests = self.script.client._services.requests
        self.done: list[Any] = []
        self.failed: list[PulsarError] = []

    def ask(self) -> int:
        def encode(request_id: int) -> bytes:
            command = proto.CommandUnsubscribe(consumer_id=0, request_id=request_id)
            return encode_command(Command.UNSUBSCRIBE, command)

        self.script.client._context.now = self.script.now  # as every input of the root does
        return self.requests.send(self.connection, encode, self.done.append, self.failed.append)


def test_every_request_has_its_own_id_and_is_answered_by_it() -> None:
    """Rule CONN-06."""
    asker = Asker()
    first, second = asker.ask(), asker.ask()
    assert second == first + 1
    sent = asker.script.sent(asker.link, Command.UNSUBSCRIBE, Command.UNSUBSCRIBE)
    assert [command.request_id for command in sent] == [first, second]
    asker.script.feed(asker.link, frame_success(second), frame_error(first, proto.MetadataError, "broken"))
    assert [answer.request_id for answer in asker.done] == [second]
    assert [str(error) for error in asker.failed] == ["MetadataError: broken"]
    assert isinstance(asker.failed[0], BrokerError)


def test_an_answer_counts_once() -> None:
    asker = Asker()
    request = asker.ask()
    asker.script.feed(asker.link, frame_success(request), frame_success(request))
    asker.script.feed(asker.link, frame_error(request, proto.MetadataError))
    assert len(asker.done) == 1
    assert asker.failed == []


def test_no_answer_in_time_is_a_failure_and_a_late_one_is_ignored() -> None:
    """Rules CONN-13, TIMER-03 and ERR-06."""
    asker = Asker()
    first = asker.ask()
    asker.script.advance(4)
    second = asker.ask()
    asker.script.advance(5.9)
    assert asker.failed == []
    asker.script.advance(0.2)
    assert [type(error) for error in asker.failed] == [TimedOut]
    assert f"request {first} was not answered within 10 s" in str(asker.failed[0])
    asker.script.feed(asker.link, frame_success(first))
    assert asker.done == []
    asker.script.feed(asker.link, frame_success(second))
    assert len(asker.done) == 1


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_when_the_link_dies_everything_asked_on_it_fails_in_order(answered: int) -> None:
    """Rules CONN-16 and ERR-19."""
    asker = Asker()
    requests = [asker.ask() for _ in range(3)]
    for request in requests[:answered]:
        asker.script.feed(asker.link, frame_success(request))
    asker.script.lose(asker.link)
    assert [type(error) for error in asker.failed] == [ConnectionLost] * (3 - answered)
    asker.script.advance(20)
    assert len(asker.failed) == 3 - answered


def test_a_cancelled_request_is_never_heard_of_again() -> None:
    asker = Asker()
    request = asker.ask()
    asker.requests.cancel(asker.connection, request)
    asker.requests.cancel(asker.connection, request)
    asker.script.feed(asker.link, frame_success(request))
    asker.script.advance(20)
    assert asker.done == []
    assert asker.failed == []


def test_no_timer_is_left_when_nothing_is_asked() -> None:
    asker = Asker()
    deadline = asker.script.client.next_deadline()
    request = asker.ask()
    assert asker.script.client.next_deadline() == asker.script.now + 10_000_000_000
    asker.script.feed(asker.link, frame_success(request))
    assert asker.script.client.next_deadline() == deadline
