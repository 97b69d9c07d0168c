"""Values in place of bytes: producers, consumers, readers and table views with a schema."""

import re
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import TopicName
from pulsar_sansio.schemas import (
    INT32,
    STRING,
    AutoConsume,
    AutoPublish,
    AvroSchema,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
)
from pulsar_trio import (
    BatchingPolicy,
    Client,
    ConsumerInterceptor,
    DeadLetterPolicy,
    IncompatibleSchema,
    InvalidMessage,
    Message,
    OutgoingMessage,
    Producer,
    SchemaDecodingError,
)
from tests.suite.brokers import BrokerUnderTest


@dataclass
class Old:
    id: str
    note: str | None = None


@dataclass
class Order:
    id: str
    note: str | None = None
    amount: int | None = None


async def test_values_are_sent_and_received(client: Client, topic: str) -> None:
    """CFG-124, CFG-229"""
    async with (
        client.create_producer(topic, schema=Order) as producer,
        client.subscribe(topic, "s", schema=Order) as consumer,
    ):
        await producer.send(Order("o1", amount=7), key="k")
        await producer.send_many([Order("o2"), Order("o3")])
        await producer.enqueue(Order("o4"))
        producer.enqueue_nowait(Order("o5"))
        await producer.flush()
        messages = [await consumer.receive() for _ in range(5)]
        assert [message.value for message in messages] == [
            Order("o1", amount=7),
            Order("o2"),
            Order("o3"),
            Order("o4"),
            Order("o5"),
        ]
        assert (messages[0].key, messages[0].data) == ("k", b'{"id":"o1","note":null,"amount":7}')
        with pytest.raises(InvalidMessage, match="give no keywords with it"):
            await producer.send(OutgoingMessage(b"{}"), key="k")
        with pytest.raises(InvalidMessage, match="schema JSON"):
            await producer.send("text")  # type: ignore[arg-type]


async def test_a_reader_with_a_newer_definition_reads_both(client: Client, topic: str) -> None:
    """CFG-303: each message is decoded by the definition that it was written with."""
    async with client.create_producer(topic, schema=AvroSchema(Old), batching=None) as producer:
        for number in range(3):
            await producer.send(Old(f"old{number}", "n"))
    async with client.create_producer(topic, schema=AvroSchema(Order)) as producer_of_new:
        await producer_of_new.send_many([Order(f"new{number}", amount=7) for number in range(3)])
    async with client.create_reader(topic, "earliest", schema=AvroSchema(Order)) as reader:
        values = [message.value async for message in reader.until_latest()]
        assert values == [Order(f"old{number}", "n") for number in range(3)] + [
            Order(f"new{number}", None, 7) for number in range(3)
        ]
    async with client.create_reader(topic, "earliest", schema=AutoConsume()) as reader_of_all:
        read = [message.value async for message in reader_of_all.until_latest()]
        assert read[0] == {"id": "old0", "note": "n"}
        assert read[-1] == {"id": "new2", "note": None, "amount": 7}


async def test_an_incompatible_schema_is_refused_at_once(client: Client, topic: str) -> None:
    """SCHEMA-11"""
    async with client.create_producer(topic, schema=JsonSchema(Order)) as producer:
        await producer.send(Order("o1"))
        with pytest.raises(IncompatibleSchema, match="JSON"):
            async with client.create_producer(topic, schema=INT32):
                pass
        with pytest.raises(IncompatibleSchema, match="JSON"):
            async with client.subscribe(topic, "s", schema=INT32):
                pass


async def test_the_key_of_a_separated_pair_is_the_key_of_the_message(client: Client, topic: str) -> None:
    schema = KeyValueSchema(STRING, AvroSchema(Order))
    async with (
        client.create_producer(topic, schema=schema) as producer,
        client.subscribe(topic, "s", schema=schema) as consumer,
    ):
        await producer.send(KeyValue("k", Order("o1")))
        message = await consumer.receive()
        assert (message.value, message.key_bytes) == (KeyValue("k", Order("o1")), b"k")
        with pytest.raises(InvalidMessage, match="give no other one"):
            await producer.send(KeyValue("k", Order("o1")), key="other")


@pytest.mark.parametrize("encoding", KeyValueEncoding)
async def test_pairs_are_read_by_the_definition_of_the_topic(
    client: Client, topic: str, encoding: KeyValueEncoding
) -> None:
    """SCHEMA-09: AutoConsume takes the key from where the producer put it, and null stays null."""
    values = [KeyValue("k", 1), KeyValue("k", None), KeyValue(None, 1)]
    async with client.create_producer(topic, schema=KeyValueSchema(STRING, INT32, encoding)) as producer:
        await producer.send_many(values)  # type: ignore[arg-type]
    async with client.create_reader(topic, "earliest", schema=AutoConsume()) as reader:
        assert [message.value async for message in reader.until_latest()] == values


@pytest.mark.parametrize("partitions", [0, 3])
async def test_bytes_are_checked_against_the_definition_of_the_topic(
    broker: BrokerUnderTest, client: Client, topic: str, partitions: int
) -> None:
    """CLIENT-10"""
    if partitions:
        await broker.create_partitioned_topic(topic, partitions)
    orders = AvroSchema(Order)
    async with client.subscribe(topic, "s", schema=orders) as consumer:
        async with client.create_producer(topic, schema=AutoPublish()) as producer:
            await producer.send(orders.encode(Order("o1")))
            with pytest.raises(InvalidMessage, match="no payload of the topic's definition"):
                await producer.send(b"\xff")
        assert (await consumer.receive()).value == Order("o1")


async def test_an_undecodable_payload_hurts_its_message_only(client: Client, topic: str) -> None:
    """CONS-39"""
    async with (
        client.create_producer(topic, schema=AvroSchema(Order)) as producer,
        client.subscribe(topic, "s", schema=AvroSchema(Order)) as consumer,
    ):
        await producer.send(OutgoingMessage(b"\xff\xff"))
        await producer.send(Order("o1"))
        bad, good = await consumer.receive(), await consumer.receive()
        with pytest.raises(SchemaDecodingError):
            assert bad.value
        assert (bad.data, good.value) == (b"\xff\xff", Order("o1"))
        consumer.acknowledge([bad, good])
        await consumer.flush()


async def test_letters_keep_the_definition_of_the_original(client: Client, topic: str) -> None:
    """A reader of the letters decodes what was written with an older definition than its own."""
    policy = DeadLetterPolicy(max_redeliver_count=1, topic=f"{topic}-dead", retry_topic=f"{topic}-retry")
    orders = AvroSchema(Order)
    async with client.create_producer(topic, schema=AvroSchema(Old)) as producer:
        await producer.send(Old("o1", "n"))
    async with client.subscribe(
        topic, "s", schema=orders, dead_letter=policy, retry=True, initial_position="earliest"
    ) as consumer:
        await consumer.reconsume_later(await consumer.receive(), 0.0)
        again = await consumer.receive()
        assert (again.topic, again.value) == (f"{topic}-retry", Order("o1", "n"))
        await consumer.dead_letter(again)
    async with client.create_reader(f"{topic}-dead", "earliest", schema=orders) as dead:
        assert (await dead.receive()).value == Order("o1", "n")


async def test_letters_of_a_consumer_of_bytes_have_no_definition(client: Client, topic: str) -> None:
    policy = DeadLetterPolicy(max_redeliver_count=1, topic=f"{topic}-dead")
    async with (
        client.create_producer(topic, schema=AvroSchema(Old)) as producer,
        client.subscribe(topic, "s", dead_letter=policy) as consumer,
    ):
        await producer.send(Old("o1", "n"))
        await consumer.dead_letter(await consumer.receive())
    async with client.create_reader(f"{topic}-dead", "earliest") as dead:
        letter = await dead.receive()
        assert (letter.value, letter.schema_version) == (AvroSchema(Old).encode(Old("o1", "n")), None)


async def test_values_over_several_topics(client: Client, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(2)]
    async with client.subscribe(names, "s", schema=AvroSchema(Order)) as consumer:
        for name in names:
            async with client.create_producer(
                name, schema=AvroSchema(Order), batching=BatchingPolicy(max_delay=1.0)
            ) as producer:
                await producer.send_many([Order(name), Order(name)])
        messages = [await consumer.receive() for _ in range(4)]
        assert sorted(message.value.id for message in messages if message.value) == sorted(names * 2)
        consumer.acknowledge(messages)
        await consumer.flush()


async def _change_twice(producer: Producer[Order]) -> None:
    await trio.testing.wait_all_tasks_blocked()
    await producer.send_many([OutgoingMessage(b'{"id":"o3"}', key="a"), OutgoingMessage(None, key="b")])


async def test_a_table_of_values(client: Client, topic: str) -> None:
    async with (
        client.create_producer(topic, schema=Order) as producer,
        client.create_table_view(topic, schema=Order) as view,
    ):
        await producer.send(Order("o1"), key="a")
        await producer.send(OutgoingMessage(b"{", key="bad"))
        await producer.send(Order("o2"), key="gone")
        await producer.send(Order("o2"), key="b")
        await producer.send(None, key="gone")
        await view.refresh()
        assert (sorted(view), view["a"]) == (["a", "b", "bad"], Order("o1"))
        assert view["a"] is view["a"]
        async with aclosing(view.changes()) as changes:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_change_twice, producer)
                assert [await anext(changes) for _ in range(2)] == [("a", Order("o3")), ("b", None)]
        with pytest.raises(SchemaDecodingError):
            assert view["bad"]


async def test_values_over_partitions_and_a_pattern(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """Partitions of a topic share its definitions; each topic of a pattern has its own."""
    await broker.create_partitioned_topic(f"{topic}-a", 3)
    orders = AvroSchema(Order)
    async with client.create_producer(f"{topic}-a", schema=AvroSchema(Old), batching=None) as producer:
        for number in range(6):
            await producer.send(Old(f"a{number}"))
    async with client.create_producer(f"{topic}-b", schema=orders) as producer_of_new:
        await producer_of_new.send(Order("b", amount=7))
    pattern = re.compile(re.escape(topic) + "-[ab]")
    async with client.subscribe(pattern, "s", schema=orders, initial_position="earliest") as consumer:
        messages = [await consumer.receive() for _ in range(7)]
        values = sorted(message.value.id for message in messages if message.value)
        assert values == [*(f"a{number}" for number in range(6)), "b"]
        for message in messages:
            consumer.acknowledge(message)
        await consumer.flush()


class Seen(ConsumerInterceptor):
    def __init__(self) -> None:
        self.values: list[object] = []

    def before_consume(self, topic: TopicName, message: Message[Any]) -> Message[Any]:
        self.values.append(message.value)
        return message


async def test_interceptors_and_chunks_have_values(client: Client, topic: str) -> None:
    seen = Seen()
    schema = AvroSchema(Order)
    large = Order("x" * 100_000)
    async with (
        client.create_producer(
            topic, schema=schema, batching=None, chunking=True, chunk_max_message_size=30_000
        ) as producer,
        client.subscribe(topic, "s", schema=schema, interceptors=(seen,)) as consumer,
    ):
        await producer.send(large)
        assert (await consumer.receive()).value == large
        assert seen.values == [large]
