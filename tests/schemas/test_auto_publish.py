"""`AutoPublish`: bytes of any topic, checked against the topic's definition."""

import pickle

import pytest

from pulsar_sansio.model.errors import InvalidMessage
from pulsar_sansio.model.schema import Schema, SchemaType
from pulsar_sansio.schemas import (
    BYTES,
    INT64,
    STRING,
    AutoPublish,
    AvroSchema,
    JsonSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
    ProtobufNativeSchema,
    ProtobufSchema,
)
from pulsar_sansio.wire import proto

from .models import Line

INLINE = KeyValueSchema(STRING, INT64, KeyValueEncoding.INLINE)


@pytest.mark.parametrize(
    ("topic", "good", "bad"),
    [
        (STRING, "é".encode(), b"\xff"),
        (INT64, bytes(8), bytes(7)),
        (JsonSchema(Line), b"{}", b"{"),
        (AvroSchema(Line), AvroSchema(Line).encode(Line("x", 2)), b"\x07"),
        (ProtobufNativeSchema(proto.KeyValue), proto.KeyValue(key="k", value="v").SerializeToString(), b"\n"),
        (INLINE, INLINE.encode(KeyValue("k", 7)), b"\0"),
        (KeyValueSchema(STRING, INT64), bytes(8), bytes(7)),
    ],
    ids=["STRING", "INT64", "JSON", "AVRO", "PROTOBUF_NATIVE", "INLINE", "SEPARATED"],
)
def test_payloads_of_the_definition_pass_and_no_others(
    topic: Schema[object], good: bytes, bad: bytes
) -> None:
    adopted = AutoPublish().adopted(topic.info)
    assert (adopted.info, adopted.adopts) == (topic.info, False)
    assert adopted.encode(good) == good
    with pytest.raises(InvalidMessage, match="no payload of the topic's definition"):
        adopted.encode(bad)
    with pytest.raises(InvalidMessage, match="bytes, not str"):
        adopted.encode("text")  # type: ignore[arg-type]


def test_payloads_of_a_type_without_a_generic_reader_are_not_checked() -> None:
    adopted = AutoPublish().adopted(ProtobufSchema(proto.KeyValue).info)
    assert adopted.encode(b"\n") == b"\n"


def test_the_other_part_of_a_pair_with_such_a_type_is_checked() -> None:
    """A part may also be null."""
    pairs = KeyValueSchema(INT64, ProtobufSchema(proto.KeyValue), KeyValueEncoding.INLINE)
    adopted = AutoPublish().adopted(pairs.info)
    null, eight, one = b"\xff" * 4, b"\0\0\0\x08" + bytes(8), b"\0\0\0\1\n"
    for good in (eight + one, null + one, eight + null):
        assert adopted.encode(good) == good
    with pytest.raises(InvalidMessage, match="schema INT64: 8 bytes, not 1"):
        adopted.encode(one + one)
    with pytest.raises(InvalidMessage, match="no payload of the topic's definition"):
        adopted.encode(eight)


def test_without_a_definition_bytes_stay_bytes() -> None:
    schema = AutoPublish()
    assert schema.adopted(None) is schema
    assert (schema.info.type, schema.encode(b"x"), schema.decode(b"x")) == (SchemaType.NONE, b"x", b"x")


def test_both_forms_pickle() -> None:
    adopted = AutoPublish().adopted(INT64.info)
    with pytest.raises(InvalidMessage, match="schema INT64"):
        pickle.loads(pickle.dumps(adopted)).encode(b"x")
    assert pickle.loads(pickle.dumps(AutoPublish())).adopts


def test_other_schemas_take_nothing_from_the_topic() -> None:
    assert BYTES.adopted(INT64.info) is BYTES
