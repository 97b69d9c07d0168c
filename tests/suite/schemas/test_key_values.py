"""Pairs of a key and a value between this client and the one in Java: each schema is both."""

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.source_context_pb2 import SourceContext

from pulsar_sansio.schemas import (
    AutoConsume,
    AvroSchema,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    ProtobufNativeSchema,
    Schema,
)
from pulsar_trio import Client
from tests.interop.typed_program import TypedProgram
from tests.suite.brokers import BrokerUnderTest

from .test_primitives import CASES, Case
from .test_records import NAMESPACE, Inner

pytestmark = [pytest.mark.real, pytest.mark.slow]


@dataclass
class Part:
    """A key, which is a value, too. `spec` and `java`: the schema and the value of the Java program.

    `found`, `java_found`: what AUTO_CONSUME makes of it here and in Java.
    """

    schema: Schema[Any]
    value: Any
    spec: dict[str, str]
    java: Any
    found: Any
    java_found: Any


def primitive(case: Case) -> Part:
    value, text = case.both[0]
    return Part(case.schema, value, {"type": case.schema.info.type.name}, text, value, text)


INNER, PLAIN_INNER = Inner("é", -1), {"name": "é", "count": -1}
CONTEXT, CONTEXT_TEXT = SourceContext(file_name="f"), 'file_name: "f"'
PARTS = [
    *map(primitive, CASES),
    Part(
        AvroSchema(Inner, namespace=NAMESPACE),
        INNER,
        {"type": "AVRO", "model": "Inner"},
        PLAIN_INNER,
        PLAIN_INNER,
        {"name": "é", "count": "-1"},
    ),
    Part(
        JsonSchema(Inner, namespace=NAMESPACE),
        INNER,
        {"type": "JSON", "model": "Inner"},
        PLAIN_INNER,
        PLAIN_INNER,
        PLAIN_INNER,
    ),
    Part(
        ProtobufNativeSchema(SourceContext),
        CONTEXT,
        {"type": "PROTOBUF_NATIVE", "model": "com.google.protobuf.SourceContext"},
        CONTEXT_TEXT,
        CONTEXT_TEXT,
        CONTEXT_TEXT,
    ),
]


def pairs_of(value: Any) -> list[tuple[Any, Any]]:
    return [(value, value), (None, value), (value, None), (None, None)]


def plain(value: Any) -> Any:
    """Return the text of a message of any class, and other values as they are."""
    return str(value).strip() if isinstance(value, Message) else value


@pytest.mark.parametrize("encoding", KeyValueEncoding, ids=lambda encoding: encoding.value)
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.spec["type"])
async def test_each_client_reads_the_pairs_of_the_other_one(
    broker: BrokerUnderTest,
    client: Client,
    topic: str,
    java: TypedProgram,
    part: Part,
    encoding: KeyValueEncoding,
) -> None:
    """SCHEMA-09: keys and values may be null."""
    schema = KeyValueSchema(part.schema, part.schema, encoding)
    spec = {"type": "KEY_VALUE", "key": part.spec, "value": part.spec, "encoding": encoding.value}
    async with client.create_producer(topic, schema=schema) as producer:
        await producer.send_many([KeyValue(*pair) for pair in pairs_of(part.value)])
    pairs = [list(pair) for pair in pairs_of(part.java)]
    await java.send(broker.url, topic, spec, pairs)
    assert await java.receive(broker.url, topic, spec, 8) == [*pairs, *pairs]
    found = [list(pair) for pair in pairs_of(part.java_found)]
    assert await java.receive(broker.url, topic, {"type": "AUTO_CONSUME"}, 8) == [*found, *found]
    for reader_schema, value in ((schema, plain(part.value)), (AutoConsume(), part.found)):
        async with client.create_reader(topic, "earliest", schema=reader_schema) as reader:
            read: list[Any] = [message.value async for message in reader.until_latest()]
        assert [(plain(key), plain(value)) for key, value in read] == [*pairs_of(value), *pairs_of(value)]
