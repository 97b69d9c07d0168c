"""The producers' scenarios: every step of the recorded programs, by our client, against our broker."""

from typing import Any

import pytest

from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    HashingScheme,
    OutgoingMessage,
    ProducerAccessMode,
)
from pulsar_sansio.model.errors import ProducerBusy, ProducerFenced, PulsarError
from tests.conversations.scenarios import CONSUMER, SHARED, Scenario, both, collector, play
from tests.conversations.stage import Stage

SCENARIOS: dict[str, Scenario] = {}
scenario = collector(SCENARIOS)


@scenario
def produce_single(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    producer.send_all(0, 3)
    producer.send(
        OutgoingMessage(
            b"full", key="k", properties={"a": "1", "b": "2"}, event_time=1_700_000_000_000, ordering_key=b"o"
        )
    )
    producer.send(OutgoingMessage(None))
    producer.close()


@scenario
def produce_batch(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=BatchingPolicy(5, 128 * 1024, 1.0))
    tickets = [
        producer.enqueue(OutgoingMessage(b"m%d" % i, key=f"k{i % 3}", properties={"n": f"{i}"}))
        for i in range(10)
    ]
    for ticket in tickets:
        producer.result(ticket)
    producer.close()


@scenario
def produce_key_batch(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=BatchingPolicy(max_delay=0.05, by_key=True))
    tickets = [producer.enqueue(OutgoingMessage(b"m%d" % i, key=f"k{i % 3}")) for i in range(9)]
    for ticket in tickets:
        producer.result(ticket)
    producer.close()


@scenario
def encryption(stage: Stage, topic: str) -> None:
    encrypts: dict[str, Any] = {"encryption_keys": ("my-key",), "crypto_key_reader": "of the stage"}
    batching = BatchingPolicy(2, 128 * 1024, 1.0)
    producer = stage.producer(topic, compression=CompressionType.LZ4, batching=batching, **encrypts)
    consumer = stage.consumer(topic, crypto_key_reader="of the stage", **CONSUMER)
    tickets = [producer.enqueue(b"secret %d" % number) for number in range(2)]
    for ticket in tickets:
        producer.result(ticket)
    single = stage.producer(topic, batching=None, **encrypts)
    single.send(b"secret single")
    consumer.take_and_acknowledge(3)
    for each in (consumer, producer, single):
        each.close()


def codec(compression: CompressionType) -> Scenario:
    def play(stage: Stage, topic: str) -> None:
        consumer = stage.consumer(topic, **CONSUMER)
        producer = stage.producer(topic, compression=compression, batching=BatchingPolicy(4, 128 * 1024, 1.0))
        tickets = [producer.enqueue(b"message %d " % i + b"abc" * 40) for i in range(4)]
        for ticket in tickets:
            producer.result(ticket)
        consumer.take_and_acknowledge(4)
        producer.close()
        consumer.close()

    return play


SCENARIOS.update({f"codec-{each.name.lower()}": codec(each) for each in CompressionType})


@scenario
def delayed(stage: Stage, topic: str) -> None:
    consumer = stage.consumer(topic, subscription_type=SHARED, **CONSUMER)
    producer = stage.producer(topic, batching=None)
    producer.send(OutgoingMessage(b"later", deliver_at=stage.wall_time() + 1000))
    producer.send(b"now")
    consumer.take_and_acknowledge(2)
    consumer.close()
    producer.close()


@scenario
def deduplication(stage: Stage, topic: str) -> None:
    stage.broker.administration.create_namespace(stage.now, "public/dedup")
    stage.broker.administration.set_policy(stage.now, "public/dedup", "deduplication", True)
    topic = topic.replace("public/default", "public/dedup")
    producer = stage.producer(topic, name="dd", batching=None, send_timeout=0)
    producer.send(OutgoingMessage(b"0", sequence_id=0))
    producer.send(OutgoingMessage(b"1", sequence_id=1))
    producer.send(OutgoingMessage(b"0 again", sequence_id=0))
    producer.close()
    producer = stage.producer(topic, name="dd", batching=None)
    assert producer.last_sequence_id == 1
    producer.close()


@scenario
def producer_name_conflict(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, name="n")
    with pytest.raises(PulsarError):
        stage.producer(topic, name="n")
    producer.close()


@scenario
def unknown_namespace(stage: Stage, topic: str) -> None:
    with pytest.raises(PulsarError):
        stage.producer("persistent://no-such/tenant/t")
    with pytest.raises(PulsarError):
        stage.consumer("persistent://public/no-such-ns/t", subscription="s")


@scenario
def message_too_large(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    with pytest.raises(PulsarError):
        producer.send(bytes(6 * 1024 * 1024))
    producer.send(b"fits")
    producer.close()


@scenario
def terminate(stage: Stage, topic: str) -> None:
    with both(stage, topic) as (producer, consumer):
        producer.send_all(0, 2)
        stage.broker.topic_administration.terminate(stage.now, topic)
        stage.pump()
        with pytest.raises(PulsarError):
            producer.send(b"x")
        consumer.take_and_acknowledge(2)
        stage.sleep(0.2)


@scenario
def unload(stage: Stage, topic: str) -> None:
    with both(stage, topic) as (producer, consumer):
        producer.send_all(0, 2)
        consumer.take_and_acknowledge(1)
        stage.broker.topic_administration.unload(stage.now, topic)
        stage.sleep(0.5)  # the recorded program came back before it sent again
        producer.send_all(2, 2)
        consumer.take_and_acknowledge(3)


@scenario
def delete_topic_forced(stage: Stage, topic: str) -> None:
    with both(stage, topic) as (producer, _):
        producer.send_all(0, 1)
        stage.broker.topic_administration.delete_topic(stage.now, topic, force=True)
        stage.sleep(1.5)


@scenario
def non_persistent(stage: Stage, topic: str) -> None:
    topic = topic.replace("persistent://", "non-persistent://")
    consumer = stage.consumer(topic, subscription_type=SHARED, **CONSUMER)
    producer = stage.producer(topic, batching=None)
    producer.send_all(0, 3)
    consumer.take_and_acknowledge(3)
    consumer.close()
    producer.close()


@scenario
def partitioned_murmur3(stage: Stage, topic: str) -> None:
    stage.broker.topic_administration.create_partitioned_topic(stage.now, topic, 4)
    producer = stage.producer(topic, batching=None, hashing=HashingScheme.MURMUR3_32)
    for number in range(12):
        producer.send(OutgoingMessage(b"k%d" % number, key=f"key-{number}"))
    producer.close()


@scenario
def chunking(stage: Stage, topic: str) -> None:
    consumer = stage.consumer(topic, **CONSUMER)
    producer = stage.producer(topic, batching=None, chunking=True, chunk_max_message_size=200)
    producer.send(OutgoingMessage(b"0123456789" * 50, key="k", properties={"a": "b"}))
    producer.send(OutgoingMessage(b"small"))
    consumer.take_and_acknowledge(2)
    consumer.close()
    producer.close()


@scenario
def access_exclusive(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, access_mode=ProducerAccessMode.EXCLUSIVE)
    producer.send(b"1")
    with pytest.raises(ProducerFenced):
        stage.producer(topic, access_mode=ProducerAccessMode.EXCLUSIVE)
    with pytest.raises(ProducerBusy):
        stage.producer(topic)
    producer.close()


@scenario
def access_wait(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, access_mode=ProducerAccessMode.EXCLUSIVE)
    waiting = stage.begin_producer(topic, access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
    stage.sleep(0.5)
    producer.close()
    waiting.opened()
    waiting.send(b"2")
    waiting.close()


@scenario
def access_fencing(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, access_mode=ProducerAccessMode.EXCLUSIVE)
    producer.send(b"1")
    fencing = stage.producer(topic, access_mode=ProducerAccessMode.EXCLUSIVE_WITH_FENCING)
    fencing.send(b"2")
    with pytest.raises(ProducerFenced):
        producer.send(b"3")
    stage.sleep(0.5)  # both have come back, one of them in vain
    fencing.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_side_speaks_as_the_recorded_one(name: str) -> None:
    comparison = play(name, SCENARIOS[name])
    assert not comparison.differences, "\n".join(comparison.differences)
