"""The broker remembers acknowledgements when a consumer, its connection or its topic goes and comes back."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import trio

from pulsar_trio import BatchingPolicy, Client, ExclusiveConsumer
from tests.suite.helpers import numbers, payloads, receive, receive_and_acknowledge, rest
from tests.suite.line import Line

close_cut_unload = pytest.mark.parametrize("how", ["close", "cut", "unload"])
close_cut = pytest.mark.parametrize("how", ["close", "cut"])


class Reader:
    """An exclusive consumer of a topic with ten messages, and its next life."""

    def __init__(self, line: Line, client: Client, topic: str, stack: AsyncExitStack) -> None:
        self.line = line
        self.client = client
        self.topic = topic
        self.stack = stack

    async def open(self, *, one_batch: bool = False, batch_index: bool = False) -> ExclusiveConsumer:
        self.batch_index = batch_index
        consumer = await self._subscribe()
        batching = BatchingPolicy(max_messages=10, max_delay=5.0) if one_batch else None
        async with self.client.create_producer(self.topic, batching=batching) as producer:
            message_ids = await producer.send_many(payloads(10))
        assert len({message_id[:2] for message_id in message_ids}) == (1 if one_batch else 10)
        return consumer

    async def come_back(self, how: str, consumer: ExclusiveConsumer) -> ExclusiveConsumer:
        """The consumer after it closed, its connection was cut, or the topic was unloaded."""
        await consumer.flush()
        if how == "close":
            await consumer.aclose()
            return await self._subscribe()
        if how == "cut":
            self.line.cut()
        else:
            await self.line.broker.unload(self.topic)
        return consumer

    async def _subscribe(self) -> ExclusiveConsumer:
        return await self.stack.enter_async_context(
            self.client.subscribe(
                self.topic,
                "sub",
                kind="exclusive",
                acknowledgement_receipts=True,
                batch_index_acknowledgement=self.batch_index,
            )
        )


@pytest.fixture
async def reader(line: Line, client_on_line: Client, topic: str) -> AsyncIterator[Reader]:
    async with AsyncExitStack() as stack:
        yield Reader(line, client_on_line, topic, stack)


@close_cut_unload
async def test_messages_are_acknowledged_one_by_one(reader: Reader, how: str) -> None:
    consumer = await reader.open()
    messages = await receive(consumer, 10)
    consumer.acknowledge([message for message in messages if int(message.data) % 2])
    consumer = await reader.come_back(how, consumer)
    assert numbers(await receive_and_acknowledge(consumer, 5)) == [0, 2, 4, 6, 8]
    assert await rest(consumer) == []


@close_cut_unload
async def test_messages_are_acknowledged_up_to_one(reader: Reader, how: str) -> None:
    consumer = await reader.open()
    messages = await receive(consumer, 10)
    consumer.acknowledge_cumulative(messages[6])
    consumer = await reader.come_back(how, consumer)
    assert numbers(await receive_and_acknowledge(consumer, 3)) == [7, 8, 9]
    assert await rest(consumer) == []


# A real Pulsar forgets at an unload which messages of a batch are acknowledged; so `close` and `cut` only.


@close_cut
async def test_messages_of_a_batch_are_acknowledged_one_by_one(reader: Reader, how: str) -> None:
    consumer = await reader.open(one_batch=True, batch_index=True)
    messages = await receive(consumer, 10)
    consumer.acknowledge([messages[0], messages[2], messages[9]])
    consumer = await reader.come_back(how, consumer)
    assert numbers(await receive_and_acknowledge(consumer, 7)) == [1, 3, 4, 5, 6, 7, 8]
    assert await rest(consumer) == []


@close_cut
async def test_messages_of_a_batch_are_acknowledged_up_to_one(reader: Reader, how: str) -> None:
    consumer = await reader.open(one_batch=True, batch_index=True)
    messages = await receive(consumer, 10)
    consumer.acknowledge_cumulative(messages[3])
    consumer = await reader.come_back(how, consumer)
    assert numbers(await receive_and_acknowledge(consumer, 6)) == [4, 5, 6, 7, 8, 9]
    assert await rest(consumer) == []


async def test_without_batch_indexes_the_broker_hears_of_whole_batches_only(reader: Reader) -> None:
    consumer = await reader.open(one_batch=True)
    consumer.acknowledge((await receive(consumer, 10))[:9])
    consumer = await reader.come_back("close", consumer)
    consumer.acknowledge(messages := await receive(consumer, 10))
    assert numbers(messages) == list(range(10))
    consumer = await reader.come_back("close", consumer)
    assert await rest(consumer) == []


@pytest.mark.parametrize("receipts", [False, True])
@pytest.mark.parametrize("cumulative", [False, True])
async def test_what_is_acknowledged_while_the_connection_is_lost(
    line: Line, client_on_line: Client, topic: str, cumulative: bool, receipts: bool
) -> None:
    """The acknowledgement waits, and goes first on the next connection: before anything is redelivered."""
    async with client_on_line.subscribe(
        topic, "sub", kind="exclusive", acknowledgement_receipts=receipts
    ) as consumer:
        async with client_on_line.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(10))
        messages = await receive(consumer, 10)
        line.cut()
        while consumer.connected:
            await trio.lowlevel.checkpoint()
        if cumulative:
            consumer.acknowledge_cumulative(messages[5])
        else:
            consumer.acknowledge(messages[:6])
        again = await receive(consumer, 4)
        assert numbers(again) == [6, 7, 8, 9]
        await consumer.flush()
    async with client_on_line.subscribe(topic, "sub", kind="exclusive") as consumer:
        assert numbers(await receive_and_acknowledge(consumer, 4)) == [6, 7, 8, 9]
        assert await rest(consumer) == []
