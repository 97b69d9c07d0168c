"""One bad message in a batch: its neighbours are handled once, and it alone is a dead letter.

`ONCE_MORE`: seconds after the dead letter in which anything that is delivered too often would come.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import pulsar
import pytest
import trio

from pulsar_trio import (
    BatchingPolicy,
    Client,
    CompressionType,
    Consumer,
    DeadLetterPolicy,
    Message,
    OutgoingMessage,
    RedeliveryBackoff,
)
from tests.official.client import in_thread, official_client
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, rest
from tests.suite.line import Line

ONCE_MORE = 1.0
BAD = b"3"
KINDS = ["shared", "key_shared"]


class Handling:
    """A handler that counts its messages. It fails for `BAD`, and takes `seconds` for the others."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.handled: Counter[bytes] = Counter()
        self.tried: Counter[bytes] = Counter()

    async def __call__(self, message: Message) -> None:
        self.tried[message.data[:1]] += 1
        await trio.sleep(self.seconds)
        if message.data[:1] == BAD:
            raise ValueError("a bad message")
        self.handled[message.data[:1]] += 1


async def run_until_dead(
    consumer: Consumer, dead: Consumer, handling: Handling, concurrency: int
) -> Sequence[Message]:
    """Handle everything until there is a dead letter and nothing more comes; the dead letters."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(consumer.run, handling, concurrency=concurrency))
        letters = [await dead.receive()]
        letters += await rest(dead, ONCE_MORE)
        nursery.cancel_scope.cancel()
    await consumer.flush()
    return letters


def check(handling: Handling, letters: Sequence[Message], count: int, tries: int) -> None:
    good = {str(number).encode() for number in range(count)} - {BAD}
    assert [letter.data[:1] for letter in letters] == [BAD]
    assert handling.handled == dict.fromkeys(good, 1)
    assert handling.tried[BAD] == tries


async def send_batch(client: Client, topic: str, count: int = 8, **options: Any) -> None:
    batching = options.pop("batching", BatchingPolicy(max_delay=10.0, max_messages=count))
    async with client.create_producer(topic, batching=batching, **options) as producer:
        await producer.send_many([OutgoingMessage(data, key="k") for data in payloads(count)])


def policy(topic: str, most: int = 2) -> DeadLetterPolicy:
    return DeadLetterPolicy(most, topic=f"{topic}-dead", initial_subscription="kept")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("concurrency", [1, 2, 10])
@pytest.mark.parametrize("seconds", [0.0, 0.05])
async def test_one_bad_message_of_eight(
    client: Client, topic: str, kind: Any, concurrency: int, seconds: float
) -> None:
    """With default batching; the delay is short beside the time that the handlers take together."""
    handling = Handling(seconds)
    async with (
        client.subscribe(
            topic, "sub", kind, negative_acknowledgement_delay=0.1, dead_letter=policy(topic)
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
    ):
        await send_batch(client, topic, batching=BatchingPolicy())
        letters = await run_until_dead(consumer, dead, handling, concurrency)
        check(handling, letters, 8, 3)
        assert consumer.statistics().undelivered.dead_letters == 1
    async with client.subscribe(topic, "sub", kind) as consumer:
        assert await rest(consumer) == []


@pytest.mark.parametrize("index_acknowledgement", [False, True])
@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD])
async def test_with_the_acknowledgement_of_indexes(
    client: Client, topic: str, index_acknowledgement: bool, compression: CompressionType
) -> None:
    handling = Handling(0.01)
    async with (
        client.subscribe(
            topic,
            "sub",
            negative_acknowledgement_delay=0.1,
            dead_letter=policy(topic),
            batch_index_acknowledgement=index_acknowledgement,
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
    ):
        await send_batch(client, topic, compression=compression)
        check(handling, await run_until_dead(consumer, dead, handling, 2), 8, 3)


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4])
@pytest.mark.parametrize("chunks", [False, True])
async def test_messages_that_are_no_batch(
    client: Client, topic: str, compression: CompressionType, chunks: bool
) -> None:
    handling = Handling(0.01)
    async with (
        client.subscribe(
            topic, "sub", negative_acknowledgement_delay=0.1, dead_letter=policy(topic)
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
        client.create_producer(
            topic,
            batching=None,
            compression=compression,
            chunking=chunks,
            chunk_max_message_size=1000 if chunks else None,
        ) as producer,
    ):
        await producer.send_many([data * (3000 if chunks else 1) for data in payloads(8)])
        check(handling, await run_until_dead(consumer, dead, handling, 2), 8, 3)


async def test_of_partitions(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)
    handling = Handling(0.01)
    async with (
        client.subscribe(
            topic, "sub", negative_acknowledgement_delay=0.1, dead_letter=policy(topic)
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
    ):
        await send_batch(client, topic)
        check(handling, await run_until_dead(consumer, dead, handling, 2), 8, 3)


async def test_of_several_topics(client: Client, topic: str) -> None:
    """Half of the messages each, in a batch of each. Rule DLQ-10."""
    handling = Handling(0.01)
    names = [f"{topic}-a", f"{topic}-b"]
    async with (
        client.subscribe(
            names, "sub", negative_acknowledgement_delay=0.1, dead_letter=policy(topic)
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
    ):
        for half, name in enumerate(names):
            async with client.create_producer(
                name, batching=BatchingPolicy(max_delay=10.0, max_messages=4)
            ) as producer:
                await producer.send_many(payloads(4, 4 * half))
        check(handling, await run_until_dead(consumer, dead, handling, 2), 8, 3)


async def test_a_delay_that_grows(client: Client, topic: str) -> None:
    handling = Handling(0.01)
    async with (
        client.subscribe(
            topic,
            "sub",
            negative_acknowledgement_backoff=RedeliveryBackoff(0.05, 1.0, 2.0),
            dead_letter=policy(topic),
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
    ):
        await send_batch(client, topic)
        check(handling, await run_until_dead(consumer, dead, handling, 2), 8, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_over_a_lost_connection(
    client: Client, client_on_line: Client, line: Line, topic: str, kind: Any, concurrency: int
) -> None:
    """Messages that are being handled then are delivered again, and acknowledged while they wait: with one
    handler at a time none is handled twice. A broker begins to count anew when the only consumer leaves."""
    handling = Handling(0.0)
    cut = False

    async def handle(message: Message) -> None:
        nonlocal cut
        if not cut and sum(handling.handled.values()) >= 4:
            cut = True
            line.cut()
            while consumer.connected:  # noqa: ASYNC110
                await trio.sleep(0.01)
            while not consumer.statistics().available:  # noqa: ASYNC110
                await trio.sleep(0.01)
        await handling(message)

    async with (
        client_on_line.subscribe(
            topic, "sub", kind, negative_acknowledgement_delay=0.1, dead_letter=policy(topic)
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
    ):
        await send_batch(client, topic)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(consumer.run, handle, concurrency=concurrency))
            letters = [await dead.receive()]
            letters += await rest(dead, ONCE_MORE)
            nursery.cancel_scope.cancel()
        assert cut
        good = {str(number).encode() for number in range(8)} - {BAD}
        assert [letter.data for letter in letters] == [BAD]
        assert set(handling.handled) == good
        twice = [data for data, times in handling.handled.items() if times > 1]
        assert len(twice) < concurrency
        assert handling.tried[BAD] in (3, 4)


async def test_what_is_reconsumed_later_leaves_its_neighbours_alone(client: Client, topic: str) -> None:
    """One message is reconsumed later until it is a dead letter; another is negatively acknowledged once."""
    handled: Counter[bytes] = Counter()
    refused: list[bytes] = []
    retry = DeadLetterPolicy(
        1, topic=f"{topic}-dead", retry_topic=f"{topic}-retry", initial_subscription="kept"
    )

    async def handle(message: Message) -> None:
        if message.data == BAD:
            await consumer.reconsume_later(message, 0.0)
        elif message.data == b"5" and not refused:
            refused.append(message.data)
            raise ValueError("once")
        else:
            handled[message.data] += 1

    async with (
        client.subscribe(
            topic, "sub", negative_acknowledgement_delay=0.1, retry=True, dead_letter=retry
        ) as consumer,
        client.subscribe(f"{topic}-dead", "kept") as dead,
    ):
        await send_batch(client, topic)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(consumer.run, handle, concurrency=2))
            letters = [await dead.receive()]
            letters += await rest(dead, ONCE_MORE)
            nursery.cancel_scope.cancel()
    assert [letter.data for letter in letters] == [BAD]
    assert handled == {data: 1 for data in payloads(8) if data != BAD}


async def test_after_a_seek_everything_is_redelivered(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", negative_acknowledgement_delay=60.0) as consumer:
        await send_batch(client, topic)
        messages = await rest(consumer)
        consumer.acknowledge(messages[:5])
        await consumer.flush()
        await consumer.seek(messages[0].message_id._replace(batch_index=-1, batch_size=0))
        assert len(await rest(consumer)) == 8


async def test_after_asking_for_everything_what_is_not_acknowledged_comes(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub") as consumer:
        await send_batch(client, topic)
        consumer.acknowledge((await rest(consumer))[::2])
        consumer.redeliver_unacknowledged()
        assert [message.data for message in await rest(consumer)] == [b"1", b"3", b"5", b"7"]


async def test_another_consumer_gets_the_batch_as_a_whole(client: Client, topic: str) -> None:
    """The other consumer knows nothing of what was acknowledged, and the broker is not told without the
    option."""
    async with client.subscribe(topic, "sub") as consumer:
        await send_batch(client, topic)
        consumer.acknowledge((await rest(consumer))[1:])
        await consumer.flush()
    async with client.subscribe(topic, "sub") as consumer:
        assert len(await rest(consumer)) == 8


async def test_the_official_client_takes_the_neighbours_along(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """An application of the official client does the same with the same batch. The neighbours are redelivered
    though acknowledged, and all eight are dead letters."""

    def scenario() -> tuple[Counter[bytes], list[bytes]]:
        seen: Counter[bytes] = Counter()
        with official_client(broker.url) as official:
            consumer = official.subscribe(
                topic,
                "sub",
                pulsar.ConsumerType.Shared,
                negative_ack_redelivery_delay_ms=100,
                dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2, f"{topic}-dead", "kept"),
            )
            producer = official.create_producer(
                topic, batching_enabled=True, batching_max_publish_delay_ms=5000, batching_max_messages=8
            )
            for data in payloads(8):
                producer.send_async(data, lambda *_: None)
            producer.flush()
            dead = official.subscribe(f"{topic}-dead", "kept", pulsar.ConsumerType.Shared)
            while True:
                try:
                    message = consumer.receive(2000)
                except pulsar.Timeout:
                    break
                seen[message.data()] += 1
                if message.data() == BAD:
                    consumer.negative_acknowledge(message)
                else:
                    consumer.acknowledge(message)
            letters = []
            while True:
                try:
                    letters.append(dead.receive(2000).data())
                except pulsar.Timeout:
                    return seen, letters

    seen, letters = await in_thread(scenario)
    assert seen == dict.fromkeys(payloads(8), 3)
    assert sorted(letters) == payloads(8)
