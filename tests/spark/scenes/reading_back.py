"""Read a topic's messages with the client of `pulsar_trio`, which shares nothing with the package."""

import trio

from pulsar_sansio import EARLIEST, Message
from pulsar_trio import open_client
from tests.spark.scenes.brokers import SparkBroker


def keep(broker: SparkBroker, topic: str) -> None:
    """From now on the topic keeps what it gets. Without a subscription a real Pulsar may drop a ledger that
    is full, or that ended with its broker."""

    async def subscribe() -> None:
        async with open_client(broker.url, **broker.client_options) as client:
            async with client.subscribe(topic, "keep", initial_position="earliest"):
                pass

    trio.run(subscribe)


def messages_of(broker: SparkBroker, topic: str) -> list[Message]:
    """All messages of a topic or of the partitions of one, in their order within a partition."""

    async def read() -> list[Message]:
        found: list[Message] = []
        async with open_client(broker.url, **broker.client_options) as client:
            async with client.create_reader(topic, start=EARLIEST) as reader:
                async for message in reader.until_latest():
                    found.append(message)
        return found

    return trio.run(read)


def values_of(broker: SparkBroker, topic: str) -> list[bytes]:
    return [message.data for message in messages_of(broker, topic)]


def entries_of(broker: SparkBroker, topic: str) -> list[int]:
    """Return the number of messages in each entry."""
    found: dict[tuple[int, int, int], int] = {}
    for message in messages_of(broker, topic):
        place = (message.message_id.partition, *message.message_id[:2])
        found[place] = found.get(place, 0) + 1
    return list(found.values())
