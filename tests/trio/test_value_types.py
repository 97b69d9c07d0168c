"""The static types of values. A type checker checks every `assert_type` here; the program runs as well."""

from dataclasses import dataclass
from typing import assert_type

import pytest

from pulsar_sansio.schemas import STRING, AvroSchema, KeyValue, KeyValueSchema
from pulsar_trio import (
    Client,
    ExclusiveConsumer,
    FailoverConsumer,
    InvalidMessage,
    KeySharedConsumer,
    Message,
    Messages,
    Producer,
    Reader,
    SharedConsumer,
    TableView,
)


@dataclass
class Order:
    id: str


async def test_what_is_sent_has_the_type_of_the_schema(client: Client) -> None:
    async with client.create_producer("t", schema=AvroSchema(Order)) as producer:
        assert_type(producer, Producer[Order])
        await producer.send(Order("o1"))
        with pytest.raises(InvalidMessage):
            await producer.send("text")  # type: ignore[arg-type]
    async with client.create_producer("u", schema=str) as of_text:
        assert_type(of_text, Producer[str])
    async with client.create_producer("v") as of_bytes:
        as_bytes: Producer[bytes] = of_bytes
        await as_bytes.send(b"x")
        with pytest.raises(InvalidMessage):
            await of_bytes.send("text")  # type: ignore[arg-type]


async def test_what_is_received_has_the_type_of_the_schema(client: Client) -> None:
    async with (
        client.create_producer("t", schema=Order) as producer,
        client.subscribe("t", "a", schema=Order) as consumer,
        client.create_reader("t", "earliest", schema=Order) as reader,
        client.create_table_view("t", schema=Order) as view,
        client.create_table_view("t", key_schema=str) as of_bytes,
        client.create_table_view("t", schema=Order, key_schema=bytes) as by_bytes,
    ):
        await producer.send(Order("o1"), key="k")
        message = await consumer.receive()
        assert_type(message, Message[Order])
        assert_type(message.value, Order | None)
        await producer.send(Order("o2"), key="k")
        messages = await consumer.receive_many()
        assert_type(messages, Messages[Order])
        assert_type(messages[0].value, Order | None)
        assert_type(reader, Reader[Order])
        assert_type((await reader.receive()).value, Order | None)
        await view.refresh()
        assert_type(view, TableView[str, Order])
        assert_type(view["k"], Order)
        assert_type(of_bytes, TableView[str])
        assert_type(of_bytes.snapshot(), dict[str, bytes])
        await by_bytes.refresh()
        assert_type(by_bytes, TableView[bytes, Order])
        assert_type(by_bytes[b"k"], Order)
        assert_type(list(by_bytes.items()), list[tuple[bytes, Order]])

        async def handler(message: Message[Order]) -> None: ...

        async def handler_of_text(message: Message[str]) -> None: ...

        run = consumer.run
        run(handler).close()
        run(handler_of_text).close()  # type: ignore[arg-type]


async def test_each_kind_of_consumer_has_the_type(client: Client) -> None:
    schema = KeyValueSchema(STRING, AvroSchema(Order))
    async with client.subscribe("t", "a", "shared", schema=schema) as shared:
        assert_type(shared, SharedConsumer[KeyValue[str, Order]])
    async with client.subscribe("w", "b", "key_shared", schema=str) as key_shared:
        assert_type(key_shared, KeySharedConsumer[str])
    async with client.subscribe("u", "c", "exclusive", schema=str) as exclusive:
        assert_type(exclusive, ExclusiveConsumer[str])
    async with client.subscribe("u", "d", "failover", schema=str) as failover:
        assert_type(failover, FailoverConsumer[str])
    async with client.subscribe("v", "e") as of_bytes:
        assert_type(of_bytes, SharedConsumer[bytes])
