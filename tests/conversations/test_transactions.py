"""The scenarios of transactions: one that is committed, and one that is aborted."""

import pytest

from pulsar_sansio.model.config import OutgoingMessage
from tests.conversations.scenarios import CONSUMER, SHARED, Scenario, collector, play
from tests.conversations.stage import PlayedConsumer, PlayedProducer, Stage

SCENARIOS: dict[str, Scenario] = {}
scenario = collector(SCENARIOS)

TIMEOUT = 30.0
"""Seconds, as in the recorded programs."""


def open_all(
    stage: Stage, topic: str
) -> tuple[PlayedProducer, PlayedProducer, PlayedConsumer, PlayedConsumer]:
    out = stage.producer(f"{topic}-out", batching=None)
    source = stage.producer(topic, batching=None)
    consumer = stage.consumer(topic, subscription_type=SHARED, **CONSUMER)
    result = stage.consumer(f"{topic}-out", subscription_type=SHARED, **CONSUMER)
    return source, out, consumer, result


@scenario
def transaction_commit(stage: Stage, topic: str) -> None:
    source, out, consumer, result = open_all(stage, topic)
    source.send_all(0, 2)
    transaction = stage.begin_transaction(TIMEOUT)
    for _ in range(2):
        message = consumer.receive()
        out.send(OutgoingMessage(message.data, transaction=transaction))
        consumer.acknowledge(message, transaction)
    stage.sleep(0.5)
    assert result.receive_now() is None
    stage.commit(transaction)
    result.take_and_acknowledge(2)
    for each in (result, consumer, out, source):
        each.close()


@scenario
def transaction_abort(stage: Stage, topic: str) -> None:
    source, out, consumer, result = open_all(stage, topic)
    source.send_all(0, 1)
    transaction = stage.begin_transaction(TIMEOUT)
    message = consumer.receive()
    out.send(OutgoingMessage(message.data, transaction=transaction))
    consumer.acknowledge(message, transaction)
    stage.abort(transaction)
    stage.sleep(0.5)
    assert result.receive_now() is None
    consumer.redeliver_unacknowledged()
    consumer.take_and_acknowledge(1)
    out.send(b"plain")
    result.take_and_acknowledge(1)
    for each in (result, consumer, out, source):
        each.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_client_and_broker_say_the_same(name: str) -> None:
    assert play(name, SCENARIOS[name]).differences == []
