"""The scenarios of several topics: partitions, topics by name, a pattern."""

from typing import Any

import pytest

from pulsar_sansio.model.config import OutgoingMessage, TopicsPattern
from tests.conversations.scenarios import CONSUMER, SHARED, Scenario, collector, play
from tests.conversations.stage import Stage

SCENARIOS: dict[str, Scenario] = {}
scenario = collector(SCENARIOS)

AT_ONCE: dict[str, Any] = {"subscription_type": SHARED, "acknowledgement_group_time": 0.0}


@scenario
def partitioned(stage: Stage, topic: str) -> None:
    stage.broker.topic_administration.create_partitioned_topic(stage.now, topic, 3)
    consumer = stage.consumer(topic, subscription_type=SHARED, **CONSUMER)
    # Where Java's hash and the partition that it drew to begin with put them.
    producer = stage.producer(
        topic, batching=None, routing=lambda message, count: (int(message.payload[1:]) + 2) % count
    )
    for number in range(6):
        producer.send(OutgoingMessage(b"k%d" % number, key=f"key-{number}"))
    producer.send_all(0, 6)
    consumer.take_and_acknowledge(12)
    consumer.close()
    producer.close()


@scenario
def multi_topic(stage: Stage, topic: str) -> None:
    producers = [stage.producer(f"{topic}-{name}", batching=None) for name in "ab"]
    consumer = stage.consumer((f"{topic}-a", f"{topic}-b"), subscription_type=SHARED)
    for index, producer in enumerate(producers):
        producer.send_all(3 * index, 3)
    consumer.take_and_acknowledge(6)
    consumer.close()
    for producer in producers:
        producer.close()


@scenario
def pattern(stage: Stage, topic: str) -> None:
    first = stage.producer(f"{topic}-a", batching=None)
    wanted = TopicsPattern(f"{topic}-.*")
    consumer = stage.consumer(wanted, subscription_type=SHARED, initial_position=CONSUMER["initial_position"])
    first.send_all(0, 2)
    consumer.take_and_acknowledge(2)
    second = stage.producer(f"{topic}-new", batching=None)
    stage.sleep(0.0)
    second.send_all(0, 2)
    consumer.take_and_acknowledge(2)
    consumer.close()
    first.close()
    second.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_client_and_broker_say_the_same(name: str) -> None:
    assert play(name, SCENARIOS[name]).differences == []
