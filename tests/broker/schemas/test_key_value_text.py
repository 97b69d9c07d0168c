"""Definitions of keys and values as HTTP has them: their form, and back."""

import json
from typing import Any

import pytest

from pulsar_sansio.broker.schemas.key_value_text import pair_definition, pair_text
from pulsar_sansio.model.errors import IncompatibleSchema
from pulsar_sansio.schemas import (
    BYTES,
    INT64,
    STRING,
    AvroSchema,
    JsonSchema,
    KeyValueEncoding,
    KeyValueSchema,
    ProtobufNativeSchema,
    Schema,
)
from pulsar_sansio.schemas.key_value import split_inline
from pulsar_sansio.wire import proto
from tests.schemas.models import Line, Order

PARTS: dict[str, Schema[Any]] = {
    "STRING": STRING,
    "INT64": INT64,
    "BYTES": BYTES,
    "AVRO": AvroSchema(Order),
    "JSON": JsonSchema(Line),
    "PROTOBUF_NATIVE": ProtobufNativeSchema(proto.MessageIdData),
}


@pytest.mark.parametrize("value", PARTS)
@pytest.mark.parametrize("key", PARTS)
def test_a_definition_of_a_client_comes_back_from_its_text(key: str, value: str) -> None:
    info = KeyValueSchema(PARTS[key], PARTS[value], KeyValueEncoding.INLINE).info
    text = pair_text(info)
    halves = json.loads(text)
    for name, kind in (("key", key), ("value", value)):
        data = PARTS[kind].info.data
        assert halves[name] == (json.loads(data) if data else "")
    assert pair_text(info) == text
    found = split_inline(pair_definition(text))
    for name, half in zip(("key", "value"), found, strict=True):
        assert json.loads(half or b'""') == halves[name]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"key"', "{}", '{"key": ""}', '{"value": ""}', "7", "[" * 9999]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(IncompatibleSchema, match="KEY_VALUE"):
        pair_definition(text)


def test_null_is_an_empty_definition() -> None:
    """A Java broker takes null so, too."""
    assert split_inline(pair_definition('{"key": null, "value": ""}')) == (b"", b"")
