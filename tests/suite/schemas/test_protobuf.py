"""Protobuf messages between this client and the one in Java: both have the classes of Google's own types."""

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf import any_pb2, source_context_pb2, struct_pb2, text_format, type_pb2
from google.protobuf.message import Message

from pulsar_sansio.schemas import AutoConsume, ProtobufNativeSchema, ProtobufSchema, Schema
from pulsar_trio import Client
from tests.interop.typed_program import TypedProgram
from tests.suite.brokers import BrokerUnderTest

pytestmark = [pytest.mark.real, pytest.mark.slow]


@dataclass
class Case:
    """`java`: the class of the messages, which have nested messages, enums, maps, and imported files."""

    java: str
    messages: list[Message]


STRUCT = struct_pb2.Struct()
STRUCT.update({"number": -1.5, "": [True, None, {"inner": "text"}]})

CASES = [
    Case(
        "com.google.protobuf.Type",
        [
            type_pb2.Type(
                name="é",
                fields=[
                    type_pb2.Field(kind=type_pb2.Field.TYPE_BYTES, number=-1, packed=True),
                    type_pb2.Field(oneof_index=2**31 - 1),
                ],
                oneofs=["a", ""],
                options=[type_pb2.Option(name="o", value=any_pb2.Any(type_url="u", value=b"\x00\xff"))],
                source_context=source_context_pb2.SourceContext(file_name="f"),
                syntax=type_pb2.SYNTAX_PROTO3,
            ),
            type_pb2.Type(),
        ],
    ),
    Case("com.google.protobuf.Struct", [STRUCT, struct_pb2.Struct()]),
]


def text(message: Message | None) -> str | None:
    return None if message is None else text_format.MessageToString(message)


@pytest.mark.parametrize("type", ["PROTOBUF", "PROTOBUF_NATIVE"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.java)
@pytest.mark.parametrize("first", ["ours", "java"])
async def test_each_client_reads_the_messages_of_the_other_one(
    broker: BrokerUnderTest, client: Client, topic: str, java: TypedProgram, case: Case, type: str, first: str
) -> None:
    """SCHEMA-10: either client defines the topic."""
    model: Any = case.messages[0].__class__
    schema: Schema[Any] = ProtobufSchema(model) if type == "PROTOBUF" else ProtobufNativeSchema(model)
    spec = {"type": type, "model": case.java}
    values = [*case.messages, None]

    async def send() -> None:
        async with client.create_producer(topic, schema=schema) as producer:
            await producer.send_many(values)

    if first == "ours":
        await send()
    await java.send(broker.url, topic, spec, list(map(text, values)))
    if first == "java":
        await send()
    for reader_spec in [spec] if type == "PROTOBUF" else [spec, {"type": "AUTO_CONSUME"}]:
        said = await java.receive(broker.url, topic, reader_spec, 2 * len(values))
        read = [None if each is None else text_format.Parse(each, model()) for each in said]
        assert read == [*values, *values]
    for reader_schema in [schema] if type == "PROTOBUF" else [schema, AutoConsume()]:
        async with client.create_reader(topic, "earliest", schema=reader_schema) as reader:
            found = [message.value async for message in reader.until_latest()]
        assert list(map(text, found)) == list(map(text, [*values, *values]))
