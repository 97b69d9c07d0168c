"""Values between the official client and ours: each reads the other's bytes, over one definition."""

from dataclasses import dataclass
from typing import Any

import pulsar
import pytest
from pulsar.schema import AvroSchema as TheirAvro
from pulsar.schema import Integer, Record, String
from pulsar.schema import JsonSchema as TheirJson

from pulsar_sansio.schemas import AutoConsume, AvroSchema, JsonSchema, Schema
from pulsar_trio import IncompatibleSchema, open_client
from tests.official.client import RECEIVE_TIMEOUT, in_thread, official_client
from tests.suite.brokers import OurBroker


class Order(Record):  # type: ignore[misc]
    """As the official client defines it: each field is a union with null."""

    id = String()
    amount = Integer()


DEFINITION = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": ["null", "string"]},
        {"name": "amount", "type": ["null", "int"]},
    ],
}
SCHEMAS = [
    pytest.param(TheirAvro(Order), AvroSchema(definition=DEFINITION), id="avro"),
    pytest.param(TheirJson(Order), JsonSchema(definition=DEFINITION), id="json"),
]


@dataclass(frozen=True)
class Received:
    id: str
    amount: int


def send(url: str, topic: str, schema: Any, orders: list[Received]) -> None:
    with official_client(url) as client:
        producer = client.create_producer(topic, schema=schema)
        for order in orders:
            producer.send(Order(id=order.id, amount=order.amount))


def receive(url: str, topic: str, schema: Any, count: int) -> list[Received]:
    with official_client(url) as client:
        position = pulsar.InitialPosition.Earliest
        consumer = client.subscribe(topic, "official", schema=schema, initial_position=position)
        values = [consumer.receive(RECEIVE_TIMEOUT).value() for _ in range(count)]
        return [Received(value.id, value.amount) for value in values]


ORDERS = [Received("o1", 7), Received("o2", 8)]


@pytest.mark.parametrize(("theirs", "ours"), SCHEMAS)
async def test_ours_reads_what_the_official_client_wrote(
    broker: OurBroker, topic: str, theirs: Any, ours: Schema[Any]
) -> None:
    await in_thread(send, broker.url, topic, theirs, ORDERS)
    async with open_client(broker.url) as client:
        for schema in (ours, AutoConsume()):
            async with client.create_reader(topic, "earliest", schema=schema) as reader:
                read: list[Any] = [message.value async for message in reader.until_latest()]
                assert [Received(**value) for value in read] == ORDERS


@pytest.mark.parametrize(("theirs", "ours"), SCHEMAS)
async def test_the_official_client_reads_what_ours_wrote(
    broker: OurBroker, topic: str, theirs: Any, ours: Schema[Any]
) -> None:
    async with (
        open_client(broker.url) as client,
        client.create_producer(topic, schema=ours) as producer,
    ):
        await producer.send_many({"id": order.id, "amount": order.amount} for order in ORDERS)
    assert await in_thread(receive, broker.url, topic, theirs, len(ORDERS)) == ORDERS


async def test_a_schema_that_differs_from_the_official_clients_is_refused(
    broker: OurBroker, topic: str
) -> None:
    await in_thread(send, broker.url, topic, TheirJson(Order), ORDERS)
    async with open_client(broker.url) as client:
        with pytest.raises(IncompatibleSchema):
            async with client.create_producer(topic, schema=str):
                pass
