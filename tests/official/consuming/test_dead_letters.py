"""Dead letters between the two clients: each reads what the other has put aside."""

from functools import partial
from typing import Any

import pulsar

from pulsar_trio import DeadLetterPolicy, open_client
from tests.official.client import Letter, in_thread, official_client, open_official_client, send_all
from tests.suite.brokers import OurBroker

ORIGIN = {"REAL_TOPIC", "ORIGIN_MESSAGE_ID"}


async def test_its_dead_letters_at_our_broker(broker: OurBroker, topic: str) -> None:
    """The broker counts, makes the initial subscription, and keeps what comes before anybody reads it."""

    def scenario() -> None:
        policy = pulsar.ConsumerDeadLetterPolicy(2, f"{topic}-dead", "kept")
        with official_client(broker.url) as client:
            consumer = client.subscribe(
                topic,
                "sub",
                pulsar.ConsumerType.Shared,
                negative_ack_redelivery_delay_ms=100,
                dead_letter_policy=policy,
            )
            send_all(client.create_producer(topic), [Letter(b"poison", "k", {"x": "y"})])
            for count in range(3):
                message = consumer.receive(10_000)
                assert message.redelivery_count() == count
                consumer.negative_acknowledge(message)
            dead = client.subscribe(f"{topic}-dead", "kept", pulsar.ConsumerType.Shared)
            message = dead.receive(10_000)
            assert (message.data(), message.partition_key()) == (b"poison", "k")
            assert message.properties().keys() >= ORIGIN | {"x"}
            dead.acknowledge(message)

    await in_thread(scenario)


async def test_it_reads_our_dead_letters(broker: OurBroker, topic: str) -> None:
    def read() -> Any:
        with official_client(broker.url) as client:
            dead = client.subscribe(f"{topic}-sub-DLQ", "kept", pulsar.ConsumerType.Shared)
            message = dead.receive(10_000)
            dead.acknowledge(message)
            return message.data(), message.partition_key(), message.properties()

    async with open_client(broker.url) as client:
        policy = DeadLetterPolicy(1, initial_subscription="kept")
        async with (
            client.subscribe(
                topic, "sub", negative_acknowledgement_delay=0.1, dead_letter=policy
            ) as consumer,
            client.create_producer(topic) as producer,
        ):
            message_id = await producer.send(b"poison", key="k", properties={"x": "y"})
            for _ in range(2):
                consumer.negative_acknowledge(await consumer.receive())
            data, key, properties = await in_thread(read)
    assert (data, key, properties["x"]) == (b"poison", "k", "y")
    assert properties["ORIGIN_MESSAGE_ID"] == str(message_id)
    assert properties["REAL_SUBSCRIPTION"] == "sub"
    assert properties.keys() >= ORIGIN


async def test_it_reads_what_we_reconsume_later(broker: OurBroker, topic: str) -> None:
    """From our retry topic: a broker that looks once a second gives it out at once."""

    def read(consumer: Any) -> Any:
        message = consumer.receive(10_000)
        consumer.acknowledge(message)
        return message.data(), message.partition_key(), message.properties()

    async with (
        open_client(broker.url) as client,
        open_official_client(broker.url) as theirs,
        client.subscribe(topic, "sub", kind="shared", retry=True) as consumer,
        client.create_producer(topic) as producer,
    ):
        subscribe = partial(theirs.subscribe, f"{topic}-sub-RETRY", "look", pulsar.ConsumerType.Shared)
        waiting = await in_thread(subscribe)
        message_id = await producer.send(b"later", key="k", properties={"x": "y"})
        await consumer.reconsume_later(await consumer.receive(), 0.3, {"why": "busy"})
        data, key, properties = await in_thread(read, waiting)
    assert (data, key) == (b"later", "k")
    assert properties.keys() == {*ORIGIN, "ORIGIN_MESSAGE_IDY_TIME", "REAL_SUBSCRIPTION"} | {
        "x",
        "why",
        "RECONSUMETIMES",
        "DELAY_TIME",
    }
    assert properties["ORIGIN_MESSAGE_ID"] == str(message_id)
    assert (properties["RECONSUMETIMES"], properties["DELAY_TIME"]) == ("1", "300")
