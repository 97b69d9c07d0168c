"""Interceptors that override nothing change nothing, so a subclass overrides what it needs."""

from pulsar_sansio.model.config import OutgoingMessage
from pulsar_sansio.model.interceptors import ConsumerInterceptor, ProducerInterceptor
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.topic_name import TopicName
from tests.model.test_message import single

TOPIC = TopicName.parse("t")


def test_a_producers_messages_are_eligible_and_pass_as_they_are() -> None:
    interceptor = ProducerInterceptor()
    message = OutgoingMessage(b"x")
    assert interceptor.eligible(TOPIC, message) is True
    assert interceptor.before_send(TOPIC, message) is message


def test_a_consumers_messages_pass_as_they_are() -> None:
    message: Message = single()
    assert ConsumerInterceptor().before_consume(TOPIC, message) is message
