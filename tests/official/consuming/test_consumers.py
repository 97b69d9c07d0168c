"""The official client's consumers at our broker: its asyncio API, and what they say of themselves."""

import asyncio
from typing import Any

import pulsar
import pulsar.asyncio

from tests.official.client import in_thread, official_client
from tests.suite.brokers import OurBroker


async def test_its_asyncio_api(broker: OurBroker, topic: str) -> None:
    async def scenario() -> None:
        client = pulsar.asyncio.Client(
            broker.url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")
        )
        consumer = await client.subscribe(topic, "sub", negative_ack_redelivery_delay_ms=100)
        producer = await client.create_producer(topic)
        sent = [await producer.send(b"%d" % number) for number in range(4)]
        messages = [await consumer.receive() for _ in range(4)]
        assert [message.data() for message in messages] == [b"0", b"1", b"2", b"3"]
        last = await consumer.get_last_message_id()
        assert (last.ledger_id(), last.entry_id()) == (sent[3].ledger_id(), sent[3].entry_id())
        await consumer.acknowledge_cumulative(messages[1])
        await consumer.negative_acknowledge(messages[2])
        again = [(await consumer.receive()).data() for _ in range(2)]
        assert again == [b"2", b"3"]  # one alone cannot be redelivered here
        await consumer.seek(messages[0].publish_timestamp() - 1000)
        assert [(await consumer.receive()).data() for _ in range(4)] == [b"0", b"1", b"2", b"3"]
        consumer.redeliver_unacknowledged_messages()
        for number in range(4):
            message = await consumer.receive()
            assert message.data() == b"%d" % number
            await consumer.acknowledge(message)
        await consumer.unsubscribe()
        await client.close()

    async def within_limits() -> None:
        await asyncio.wait_for(scenario(), 15)

    await in_thread(lambda: asyncio.run(within_limits()))
    assert await broker.subscriptions(topic) == []


async def test_what_it_says_of_itself(broker: OurBroker, topic: str) -> None:
    def scenario() -> Any:
        with official_client(broker.url) as client:
            client.subscribe(
                topic,
                "sub",
                pulsar.ConsumerType.KeyShared,
                consumer_name="worker",
                properties={"host": "here"},
                replicate_subscription_state_enabled=True,
                key_shared_policy=pulsar.ConsumerKeySharedPolicy(allow_out_of_order_delivery=True),
            )
            (stats,) = broker.admin.stats(topic)["subscriptions"].values()
            return stats

    stats = await in_thread(scenario)
    (consumer,) = stats["consumers"]
    assert stats["type"] == "Key_Shared"
    assert stats["allowOutOfOrderDelivery"]
    assert (consumer["consumerName"], consumer["metadata"]) == ("worker", {"host": "here"})
