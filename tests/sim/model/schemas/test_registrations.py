"""Registrations of schemas of messages: which messages may wait, and for how long."""

import pytest

from pulsar_sansio.model.errors import AuthorizationError, IncompatibleSchema, TimedOut
from pulsar_sansio.wire import proto
from pulsar_sim.engine.clock import SECOND, Clock
from pulsar_sim.model.schemas.registrations import Registrations

TOPIC = "persistent://public/default/t"
PART = f"{TOPIC}-partition-1"


class Client:
    """A client that registers schemas, and gives each up after five seconds."""

    def __init__(self) -> None:
        self.clock = Clock(0)
        self.all = Registrations(5 * SECOND, self.clock)
        self.all.asked(1, 1, "client", PART)

    def wait(self, seconds: float) -> None:
        self.clock.run_until(self.clock.now + round(seconds * SECOND), 1000)


def test_messages_wait_for_an_answer_and_no_longer_than_the_timeout() -> None:
    client = Client()
    assert not client.all.may_wait("another topic")
    client.wait(4.9)
    assert client.all.may_wait(TOPIC)
    assert client.all.may_wait(PART)
    assert client.all.waited_until(TOPIC) == client.clock.now
    client.wait(0.1)
    assert not client.all.may_wait(TOPIC)
    assert client.all.is_reason(TOPIC, TimedOut("late"))


def test_a_version_ends_the_wait() -> None:
    client = Client()
    client.wait(1)
    client.all.answered(1, 1, b"v", None)
    client.wait(1)
    assert not client.all.may_wait(TOPIC)
    assert client.all.waited_until(TOPIC) == SECOND
    assert client.all.waited_until("another topic") == -1
    assert client.all.versions("client", PART) == [b"v"]
    assert client.all.versions("another client", PART) == []
    assert not client.all.is_reason(TOPIC, TimedOut("late"))


def test_a_topic_that_is_not_loaded_gives_no_version() -> None:
    """SCHEMA-03"""
    client = Client()
    client.all.answered(1, 1, b"", proto.TopicNotFound)
    assert client.all.versions("client", PART) == [b""]
    assert not client.all.may_wait(TOPIC)


@pytest.mark.parametrize("lost", [False, True])
def test_a_request_that_failed_is_repeated_until_the_timeout(lost: bool) -> None:
    """CONN-13"""
    client = Client()
    client.wait(4)
    if lost:
        client.all.lost(2)
        assert not client.all.is_reason(TOPIC, IncompatibleSchema("no"))
        client.all.lost(1)
    else:
        client.all.answered(1, 1, b"", proto.IncompatibleSchema)
    assert client.all.is_reason(TOPIC, IncompatibleSchema("no")) is not lost
    assert not client.all.is_reason(TOPIC, AuthorizationError("no"))
    assert client.all.is_reason(TOPIC, TimedOut("late"))
    client.wait(4.9)
    assert client.all.may_wait(TOPIC)
    client.wait(0.1)
    assert not client.all.may_wait(TOPIC)


def test_an_answer_to_no_request_means_nothing() -> None:
    client = Client()
    client.all.answered(1, 2, b"v", None)
    assert client.all.versions("client", PART) == []
    assert client.all.waited_until("t") == -1
