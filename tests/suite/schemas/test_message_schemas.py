"""A producer whose messages have several schemas."""

from dataclasses import dataclass

import pytest

from pulsar_sansio.schemas import INT32, STRING, AutoConsume, AvroSchema, message_of
from pulsar_trio import Client, IncompatibleSchema
from tests.suite.brokers import BrokerUnderTest


@dataclass
class Old:
    id: str


@dataclass
class New:
    id: str
    note: str = "none"


async def test_messages_of_several_versions_in_one_topic(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "s", schema=AutoConsume()) as consumer:
        async with client.create_producer(topic, schema=AvroSchema(Old)) as producer:
            await producer.send_many(
                [
                    Old("a"),
                    message_of(New("b", "x"), AvroSchema(New)),
                    Old("c"),
                    message_of(New("d"), AvroSchema(New), key="k"),
                ]
            )
        messages = [await consumer.receive() for _ in range(4)]
    assert [message.value for message in messages] == [
        {"id": "a"},
        {"id": "b", "note": "x"},
        {"id": "c"},
        {"id": "d", "note": "none"},
    ]
    versions = [message.schema_version for message in messages]
    assert versions[0] == versions[2] != versions[1] == versions[3]
    assert messages[3].key == "k"


async def test_a_schema_that_does_not_follow_is_refused_alone(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.create_producer(topic, schema=AvroSchema(Old)) as producer:
        await producer.send(Old("a"))
        with pytest.raises(IncompatibleSchema):
            await producer.send(message_of(1, INT32))
        await producer.send(Old("b"))
        assert producer.statistics().failed == 1


async def test_a_producer_of_bytes_sends_values(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "s", schema=STRING) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(message_of("text", STRING))
        assert (await consumer.receive()).value == "text"
