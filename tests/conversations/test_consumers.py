"""The consumers' scenarios: every step of the recorded programs, by our client, against our broker."""

import pytest

from pulsar_sansio.model.config import (
    BatchingPolicy,
    BatchReceivePolicy,
    DeadLetterPolicy,
    KeySharedPolicy,
    OutgoingMessage,
    SubscriptionType,
)
from pulsar_sansio.model.errors import ConsumerBusy, TopicTerminated
from pulsar_sansio.model.message_id import EARLIEST, LATEST
from pulsar_sansio.schemas import STRING
from tests.conversations.scenarios import CONSUMER, SHARED, Scenario, both, collector, play
from tests.conversations.stage import PlayedConsumer, PlayedProducer, Stage

SCENARIOS: dict[str, Scenario] = {}
scenario = collector(SCENARIOS)

BATCH_OF_8 = BatchingPolicy(8, 128 * 1024, 1.0)


@scenario
def consume_individual(stage: Stage, topic: str) -> None:
    with both(stage, topic) as (producer, consumer):
        producer.send_all(0, 12)
        consumer.take_and_acknowledge(12)


@scenario
def consume_ack_receipt(stage: Stage, topic: str) -> None:
    with both(stage, topic, acknowledgement_receipts=True) as (producer, consumer):
        producer.send_all(0, 3)
        consumer.take_and_acknowledge(3)


@scenario
def consume_cumulative(stage: Stage, topic: str) -> None:
    with both(stage, topic) as (producer, consumer):
        producer.send_all(0, 6)
        messages = [consumer.receive() for _ in range(6)]
        consumer.acknowledge_cumulative(messages[-1])


@scenario
def consume_grouped_acks(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    consumer = stage.consumer(topic, subscription_type=SHARED, acknowledgement_group_time=0.1)
    producer.send_all(0, 20)
    consumer.take_and_acknowledge(20)
    stage.sleep(0.3)
    consumer.close()
    producer.close()


@scenario
def batch_index_ack(stage: Stage, topic: str) -> None:
    options = {"subscription_type": SHARED, "batch_index_acknowledgement": True, **CONSUMER}
    producer = stage.producer(topic, batching=BATCH_OF_8)
    consumer = stage.consumer(topic, **options)
    producer.send_all(0, 8)
    messages = [consumer.receive() for _ in range(8)]
    for index in (1, 3, 5):
        consumer.acknowledge(messages[index])
    stage.sleep(0.2)
    consumer.close()
    consumer = stage.consumer(topic, **options)
    consumer.take_and_acknowledge(5)
    consumer.close()
    producer.close()


@scenario
def batch_index_ack_cumulative(stage: Stage, topic: str) -> None:
    options = {"batch_index_acknowledgement": True, **CONSUMER}
    producer = stage.producer(topic, batching=BATCH_OF_8)
    consumer = stage.consumer(topic, **options)
    producer.send_all(0, 8)
    messages = [consumer.receive() for _ in range(4)]
    consumer.acknowledge_cumulative(messages[-1])
    stage.sleep(0.2)
    consumer.close()
    consumer = stage.consumer(topic, **options)
    consumer.take_and_acknowledge(4)
    consumer.close()
    producer.close()


@scenario
def negative_ack(stage: Stage, topic: str) -> None:
    options = {"subscription_type": SHARED, "negative_acknowledgement_delay": 0.3}
    with both(stage, topic, **options) as (producer, consumer):
        producer.send_all(0, 3)
        for _ in range(3):
            consumer.negative_acknowledge(consumer.receive())
        consumer.take_and_acknowledge(3)


@scenario
def ack_timeout(stage: Stage, topic: str) -> None:
    timeout = {"acknowledgement_timeout": 1.0, "acknowledgement_timeout_tick": 0.2}
    with both(stage, topic, subscription_type=SHARED, **timeout) as (producer, consumer):
        producer.send_all(0, 3)
        for _ in range(3):
            consumer.receive()
        consumer.take_and_acknowledge(3)


@scenario
def dead_letter(stage: Stage, topic: str) -> None:
    policy = DeadLetterPolicy(2, topic + "-dead", initial_subscription="init")
    options = {"negative_acknowledgement_delay": 0.1, "dead_letter": policy}
    with both(stage, topic, subscription_type=SHARED, **options) as (producer, consumer):
        producer.send(OutgoingMessage(b"poison", key="k", properties={"x": "y"}))
        for _ in range(3):
            consumer.negative_acknowledge(consumer.receive())
        stage.sleep(2.0)
        dead = stage.consumer(topic + "-dead", subscription_type=SHARED, **CONSUMER)
        dead.take_and_acknowledge(1)
        dead.close()


@scenario
def retry_letter(stage: Stage, topic: str) -> None:
    policy = DeadLetterPolicy(2, topic + "-dead", topic + "-retry")
    with both(stage, topic, subscription_type=SHARED, retry=True, dead_letter=policy) as (producer, consumer):
        producer.send(OutgoingMessage(b"again", key="k", properties={"x": "y"}))
        for _ in range(3):
            consumer.reconsume_later(consumer.receive(), 0.2)
        stage.sleep(1.0)


@scenario
def redeliver_exclusive(stage: Stage, topic: str) -> None:
    with both(stage, topic) as (producer, consumer):
        producer.send_all(0, 4)
        consumer.receive()
        consumer.receive()
        consumer.redeliver_unacknowledged()
        consumer.take_and_acknowledge(4)


@scenario
def consumer_busy(stage: Stage, topic: str) -> None:
    consumer = stage.consumer(topic, **CONSUMER)
    for kind in (SubscriptionType.EXCLUSIVE, SHARED):
        with pytest.raises(ConsumerBusy):
            stage.consumer(topic, subscription_type=kind, **CONSUMER)
    consumer.close()


@scenario
def unsubscribe(stage: Stage, topic: str) -> None:
    consumer = stage.consumer(topic, **CONSUMER)
    consumer.unsubscribe()


@scenario
def shared_two(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    options = {**CONSUMER, "subscription_type": SHARED, "receiver_queue_size": 2}
    first = stage.consumer(topic, **options)
    second = stage.consumer(topic, start_paused=True, **options)
    producer.send_all(0, 10)
    stage.client.resume(stage.now, second.handle)
    stage.pump()
    for _ in range(3):
        first.acknowledge(first.receive())
    first.close()
    second.take_and_acknowledge(7)
    second.close()
    producer.close()


@scenario
def failover(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    kind = SubscriptionType.FAILOVER
    first = stage.consumer(topic, subscription_type=kind, consumer_name="a", **CONSUMER)
    second = stage.consumer(topic, subscription_type=kind, consumer_name="b", **CONSUMER)
    stage.sleep(1.5)
    producer.send_all(0, 4)
    stage.sleep(1.0)
    message = first.receive_now()
    active, other = (second, first) if message is None else (first, second)
    active.acknowledge(message or active.receive())
    active.close()
    other.take_and_acknowledge(3)
    other.close()
    producer.close()


@scenario
def key_shared(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    kind = SubscriptionType.KEY_SHARED
    consumers = [
        stage.consumer(topic, subscription_type=kind, consumer_name=name, **CONSUMER) for name in "ab"
    ]
    send_keys_and_receive_them(stage, producer, consumers)


@scenario
def key_shared_sticky(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    kind = SubscriptionType.KEY_SHARED
    policies = KeySharedPolicy(((0, 32767),)), KeySharedPolicy(((32768, 65535),))
    consumers = [
        stage.consumer(topic, subscription_type=kind, key_shared=policy, **CONSUMER) for policy in policies
    ]
    send_keys_and_receive_them(stage, producer, consumers)


def send_keys_and_receive_them(
    stage: Stage, producer: PlayedProducer, consumers: list[PlayedConsumer]
) -> None:
    for number in range(10):
        producer.send(OutgoingMessage(b"k%d" % number, key=f"key-{number}"))
    for consumer in consumers:
        while (message := consumer.receive_now()) is not None:
            consumer.acknowledge(message)
    for consumer in consumers:
        consumer.close()
    producer.close()


@scenario
def subscription_options(stage: Stage, topic: str) -> None:
    consumer = stage.consumer(
        topic,
        subscription_type=SHARED,
        priority_level=2,
        properties={"team": "x"},
        subscription_properties={"owner": "me"},
        replicate_subscription_state=True,
        consumer_name="named",
        **CONSUMER,
    )
    consumer.close()
    consumer = stage.consumer(topic, subscription="nd", subscription_type=SHARED, durable=False, **CONSUMER)
    consumer.close()


@scenario
def zero_queue(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    options = CONSUMER | {"receiver_queue_size": 0}
    consumer = stage.consumer(topic, subscription_type=SHARED, **options)
    producer.send_all(0, 3)
    consumer.take_and_acknowledge(3)
    consumer.close()
    producer.close()


@scenario
def pause_resume(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    consumer = stage.consumer(topic, **CONSUMER | {"receiver_queue_size": 2})
    stage.client.pause(stage.now, consumer.handle)
    producer.send_all(0, 6)
    consumer.take_and_acknowledge(2)
    assert consumer.receive_now() is None
    stage.client.resume(stage.now, consumer.handle)
    stage.pump()
    consumer.take_and_acknowledge(4)
    consumer.close()
    producer.close()


@scenario
def batch_receive(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=BatchingPolicy(10, 128 * 1024, 1.0))
    policy = BatchReceivePolicy(max_messages=5, timeout=0.5)
    consumer = stage.consumer(topic, subscription_type=SHARED, batch_receive=policy, **CONSUMER)
    producer.send_all(0, 10)
    for _ in range(2):
        stage.request(stage.client.batch_receive(stage.now, consumer.handle))
        messages = stage.client.take(stage.now, consumer.handle, 1000)
        assert len(messages) == 5
        stage.client.acknowledge(stage.now, consumer.handle, messages)
        stage.pump()
    consumer.close()
    producer.close()


@scenario
def terminate(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    consumer = stage.consumer(topic, **CONSUMER)
    producer.send_all(0, 2)
    stage.broker.topic_administration.terminate(stage.now, topic)
    stage.pump()
    with pytest.raises(TopicTerminated):
        producer.send(b"x")
    consumer.take_and_acknowledge(2)
    stage.sleep(0.2)
    consumer.close()
    producer.close()


@scenario
def seek(stage: Stage, topic: str) -> None:
    with both(stage, topic) as (producer, consumer):
        producer.send_all(0, 6)
        third = None
        for number in range(6):
            message = consumer.receive()
            third = message.message_id if number == 2 else third
            consumer.acknowledge(message)
        assert third is not None
        for target in (third, EARLIEST, stage.wall_time() - 3_600_000):
            consumer.seek(target)
            consumer.receive()
        consumer.seek(LATEST)


@scenario
def last_message_id(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=BatchingPolicy(4, 128 * 1024, 1.0))
    consumer = stage.consumer(topic, **CONSUMER)
    assert consumer.last_message_id()[:2] == (-1, -1)
    producer.send_all(0, 4)
    assert consumer.last_message_id().batch_index == 3
    consumer.close()
    producer.close()


@scenario
def reader(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=BatchingPolicy(3, 128 * 1024, 1.0))
    producer.send_all(0, 6)
    reader = stage.reader(topic, EARLIEST)
    while reader.has_message_available():
        reader.receive()
    reader.seek(EARLIEST)
    reader.receive()
    reader.close()
    producer.close()


@scenario
def reader_inclusive(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=BatchingPolicy(3, 128 * 1024, 1.0))
    tickets = [producer.enqueue(b"m%d" % number) for number in range(6)]
    ids = [producer.result(ticket) for ticket in tickets]
    reader = stage.reader(topic, ids[1], start_inclusive=True)
    while reader.has_message_available():
        reader.receive()
    reader.close()
    producer.close()


@scenario
def compaction(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None)
    for number in range(6):
        producer.send(OutgoingMessage(b"v%d" % number, key=f"k{number % 2}"))
    stage.broker.topic_administration.compact(stage.now, topic)
    stage.sleep(3.0)
    consumer = stage.consumer(topic, read_compacted=True, **CONSUMER)
    consumer.take_and_acknowledge(2)
    consumer.close()
    producer.close()


@scenario
def table_view(stage: Stage, topic: str) -> None:
    producer = stage.producer(topic, batching=None, schema=STRING)
    producer.send(OutgoingMessage(b"1", key="a"))
    producer.send(OutgoingMessage(b"2", key="b"))
    view = stage.table_view(topic, schema=STRING)
    producer.send(OutgoingMessage(b"3", key="a"))
    stage.until(lambda: view["a"] == "3")
    stage.sleep(0.3)
    view.close()
    producer.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_side_speaks_as_the_recorded_one(name: str) -> None:
    comparison = play(name, SCENARIOS[name])
    assert not comparison.differences, "\n".join(comparison.differences)
