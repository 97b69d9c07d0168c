"""`AutoConsume`: values of whichever schema the topic's producers have."""

import json
from base64 import b64decode, b64encode
from itertools import permutations
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, type_pb2
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidMessage, SchemaDecodingError
from pulsar_sansio.model.schema import Schema, SchemaInfo, SchemaType
from pulsar_sansio.schemas import (
    INT64,
    STRING,
    AutoConsume,
    AvroSchema,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    ProtobufNativeSchema,
    ProtobufSchema,
)
from pulsar_sansio.wire import proto

from .models import Line, Node

AUTO = AutoConsume()


@pytest.mark.parametrize(
    ("schema", "value", "read"),
    [
        (STRING, "héllo", "héllo"),
        (INT64, -5, -5),
        (AvroSchema(Line), Line("x", 2), {"item": "x", "amount": 2}),
        (AvroSchema(Node), Node(1, Node(2)), {"value": 1, "next": {"value": 2, "next": None}}),
        (JsonSchema(Line), Line("x", 2), {"item": "x", "amount": 2}),
        (
            KeyValueSchema(STRING, AvroSchema(Line), KeyValueEncoding.INLINE),
            KeyValue("k", Line("x", 2)),
            KeyValue("k", {"item": "x", "amount": 2}),
        ),
    ],
    ids=repr,
)
def test_a_value_is_read_by_its_definition(schema: Schema[Any], value: object, read: object) -> None:
    """SCHEMA-06: auto-consume detects the topic's schema."""
    assert AUTO.decoder(schema.info)(schema.encode(value)) == read


def test_a_message_without_a_schema_is_bytes() -> None:
    assert AUTO.decoder(None)(b"\x00\xff") == b"\x00\xff"
    assert AUTO.decode(b"\x00\xff") == b"\x00\xff"


def test_a_protobuf_message_gets_a_class_of_its_definition() -> None:
    schema = ProtobufNativeSchema(proto.Schema)
    value = proto.Schema(name="n", schema_data=b"d", type="Avro")
    message = AUTO.decoder(schema.info)(schema.encode(value))
    assert (message.name, message.schema_data) == ("n", b"d")
    assert message.DESCRIPTOR.full_name == proto.Schema.DESCRIPTOR.full_name
    with pytest.raises(SchemaDecodingError, match="PROTOBUF_NATIVE: the payload is no Schema"):
        AUTO.decoder(schema.info)(b"\xff")


def native(data: bytes) -> SchemaInfo:
    return SchemaInfo(SchemaType.PROTOBUF_NATIVE, "", data)


def key_of(kind: str) -> SchemaInfo:
    return SchemaInfo(SchemaType.KEY_VALUE, "", bytes(8), (("key.schema.type", kind),))


def envelope(**changes: object) -> bytes:
    plain = json.loads(ProtobufNativeSchema(proto.Schema).info.data)
    return json.dumps({**plain, **changes}).encode()


def test_the_files_of_a_definition_come_in_any_order() -> None:
    """The clients in Java and Go write them in the order of their hash tables."""
    given = json.loads(ProtobufNativeSchema(type_pb2.Type).info.data)
    files = descriptor_pb2.FileDescriptorSet.FromString(b64decode(given["fileDescriptorSet"])).file
    payload = type_pb2.Type(name="n").SerializeToString()
    for order in permutations(files):
        together = b64encode(descriptor_pb2.FileDescriptorSet(file=order).SerializeToString()).decode()
        info = native(json.dumps(given | {"fileDescriptorSet": together}).encode())
        assert AUTO.decoder(info)(payload).name == "n"


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (SchemaInfo(SchemaType.AVRO, "", b"{}"), "definition is wrong"),
        (SchemaInfo(SchemaType.KEY_VALUE, "", b""), "no length"),
        (
            key_of("EXTERNAL"),
            "of type EXTERNAL",
        ),
        (native(b"{"), "definition is wrong"),
        (native(b"[]"), "definition is wrong"),
        (native(envelope(fileDescriptorSet="!")), "definition is wrong"),
        (
            native(envelope(fileDescriptorSet="/w==")),
            "definition is wrong",
        ),
        (
            native(envelope(rootMessageTypeName="x")),
            "definition is wrong",
        ),
        (ProtobufSchema(proto.Schema).info, "messages of type PROTOBUF need a schema of their own"),
        (SchemaInfo(SchemaType.EXTERNAL), "messages of type EXTERNAL"),
    ],
)
def test_a_definition_that_cannot_be_read_is_a_declared_error(info: SchemaInfo, words: str) -> None:
    with pytest.raises(SchemaDecodingError, match=words):
        AUTO.decoder(info)


@given(
    st.sampled_from([SchemaType.AVRO, SchemaType.PROTOBUF_NATIVE, SchemaType.KEY_VALUE, SchemaType.JSON]),
    st.binary(max_size=40),
    st.binary(max_size=20),
)
def test_any_definition_and_payload_give_a_value_or_the_declared_error(
    kind: SchemaType, definition: bytes, payload: bytes
) -> None:
    try:
        AUTO.decoder(SchemaInfo(kind, "", definition))(payload)
    except SchemaDecodingError:
        return


def test_it_writes_nothing() -> None:
    with pytest.raises(InvalidMessage, match="AUTO_CONSUME: it only reads"):
        AUTO.encode("x")
    assert (AUTO.info.name, AUTO.info.type, AUTO.info.data) == ("AutoConsume", SchemaType.AUTO_CONSUME, b"")
    assert AUTO.wants_writer
