"""Payloads in place of values, checked by the definition of the topic: this client and the one in Java."""

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.source_context_pb2 import SourceContext

from pulsar_sansio.schemas import (
    INT32,
    STRING,
    AutoPublish,
    AvroSchema,
    Int32,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    ProtobufNativeSchema,
    Schema,
)
from pulsar_trio import Client, InvalidMessage
from tests.interop.typed_program import RefusedByProgram, TypedProgram
from tests.suite.brokers import BrokerUnderTest

from .test_records import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.slow]


@dataclass
class Inner:
    """A record whose fields have the order of the Java client's definition, which is that of the alphabet."""

    count: Int32
    name: str | None


INNER = {"type": "AVRO", "model": "Inner"}
PAIR = {"type": "KEY_VALUE", "key": {"type": "STRING"}, "value": INNER, "encoding": "INLINE"}


@dataclass
class Case:
    """`spec` and `java`: the schema and the value of the Java program. `bad`: a payload of no value."""

    schema: Schema[Any]
    value: Any
    spec: dict[str, Any]
    java: Any
    bad: bytes

    def __str__(self) -> str:
        return self.schema.info.type.name


AVRO = AvroSchema(Inner, namespace=NAMESPACE)
CASES = [
    Case(INT32, -7, {"type": "INT32"}, "-7", b"\x00"),
    Case(AVRO, Inner(1, "a"), INNER, {"name": "a", "count": 1}, b"\xff"),
    Case(
        JsonSchema(Inner, namespace=NAMESPACE),
        Inner(1, "a"),
        {"type": "JSON", "model": "Inner"},
        {"name": "a", "count": 1},
        b"{",
    ),
    Case(
        ProtobufNativeSchema(SourceContext),
        SourceContext(file_name="f"),
        {"type": "PROTOBUF_NATIVE", "model": "com.google.protobuf.SourceContext"},
        'file_name: "f"',
        b"\xff",
    ),
    Case(
        KeyValueSchema(STRING, AVRO, KeyValueEncoding.INLINE),
        KeyValue("k", Inner(1, "a")),
        PAIR,
        ["k", {"name": "a", "count": 1}],
        b"\x00\x00\x00\x01k\x00\x00\x00\x01\xff",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("first", ["ours", "java"])
async def test_payloads_are_checked_by_the_definition_of_the_other_client(
    broker: BrokerUnderTest, client: Client, topic: str, java: TypedProgram, case: Case, first: str
) -> None:
    """SCHEMA-06"""
    auto = {"type": "AUTO_PUBLISH"}
    payload = case.schema.encode(case.value)
    if first == "ours":
        async with client.create_producer(topic, schema=case.schema) as typed:
            await typed.send(case.value)
    else:
        await java.send(broker.url, topic, case.spec, [case.java])
    async with client.create_producer(topic, schema=AutoPublish()) as producer:
        await producer.send(payload)
        with pytest.raises(InvalidMessage, match="no payload of the topic's definition"):
            await producer.send(case.bad)
    await java.send(broker.url, topic, auto, [payload.hex()])
    with pytest.raises(RefusedByProgram):
        await java.send(broker.url, topic, auto, [case.bad.hex()])
    assert await java.receive(broker.url, topic, case.spec, 3) == [case.java] * 3
    async with client.create_reader(topic, "earliest", schema=case.schema) as reader:
        assert [message.value async for message in reader.until_latest()] == [case.value] * 3
