"""A consumer with `AutoConsume` asks for the topic's latest definition before it subscribes."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import ConsumerFailed, ConsumerReady
from pulsar_sansio.model.errors import ServerError, TimedOut
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import AutoConsume
from tests.client.broker_script import SECOND, ConsumerScript
from tests.client.schemas.schema_script import SchemaScript, version


class Detecting(SchemaScript):
    """A consumer whose question is not answered yet."""

    def __init__(self, **spec: Any) -> None:
        ConsumerScript.__init__(self, schema=AutoConsume(), **spec)
        self.asked_latest()

    def subscribe(self) -> None:
        self.accept()
        self.frames()
        assert any(isinstance(output, ConsumerReady) for output in self.outputs())


def test_messages_of_the_latest_definition_wait_for_nothing() -> None:
    """CLIENT-16, SCHEMA-06: the answer is kept under its version."""
    s = Detecting()
    s.answer(1)
    s.subscribe()
    s.order(1, 1)
    assert s.values() == [{"id": "o1", "amount": 7}]
    s.order(2, 0)
    assert [asked for _, asked in s.asked()] == [version(0)]
    s.answer(0)
    assert s.values() == [{"id": "o2"}]


@pytest.mark.parametrize("error", [ServerError.TopicNotFound, ServerError.AuthorizationError])
def test_a_topic_without_a_definition_that_can_be_had_is_subscribed_to(error: ServerError) -> None:
    s = Detecting()
    s.refuse(error)
    s.subscribe()
    s.message(1, b"bytes")
    assert s.values() == [b"bytes"]


def test_a_definition_of_an_unknown_type_prevents_no_subscription() -> None:
    s = Detecting()
    s.answer_with(SchemaInfo(SchemaType.EXTERNAL, "x"))
    s.subscribe()


def test_a_question_that_is_not_answered_fails_the_consumer() -> None:
    s = Detecting()
    s.pass_time(30 * SECOND)
    (failed,) = [output for output in s.outputs() if isinstance(output, ConsumerFailed)]
    assert isinstance(failed.error, TimedOut)
    assert all(name != "SUBSCRIBE" for name, _ in s.frames())


def test_a_reconnect_asks_nothing_before_subscribe() -> None:
    s = Detecting()
    s.refuse(ServerError.TopicNotFound)
    s.subscribe()
    s.reconnect()


def test_a_consumer_that_finds_a_definition_of_its_topic_asks_nothing() -> None:
    """SCHEMA-07: the client has it of another consumer."""
    s = Detecting()
    s.answer(1)
    s.subscribe()
    s.client.subscribe(s.now, s.spec)
    s.pump()
    assert s.accept().HasField("schema")
