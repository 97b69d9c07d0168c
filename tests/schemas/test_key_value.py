"""`KeyValueSchema`: keys in the payload or beside it, null halves, and definitions."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidConfiguration, InvalidMessage, SchemaDecodingError
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import (
    INT32,
    STRING,
    AvroSchema,
    KeyValue,
    KeyValueEncoding,
    KeyValueSchema,
)
from pulsar_sansio.schemas.key_value import parts_of

from .models import Line

INLINE = KeyValueSchema(STRING, INT32, KeyValueEncoding.INLINE)
SEPARATED = KeyValueSchema(INT32, STRING)


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        (KeyValue("k", 7), "000000016b0000000400000007"),
        (KeyValue("k", None), "000000016bffffffff"),
        (KeyValue(None, 7), "ffffffff0000000400000007"),
        (KeyValue(None, None), "ffffffffffffffff"),
        (KeyValue("", 7), "000000000000000400000007"),
    ],
)
def test_inline_has_both_behind_their_lengths(value: KeyValue[str, int], payload: str) -> None:
    """SCHEMA-09: INLINE puts key and value together in the payload."""
    assert INLINE.encode(value).hex() == payload
    assert INLINE.decode(bytes.fromhex(payload)) == value


def test_separated_has_the_key_beside_the_payload() -> None:
    pair = KeyValue(7, "v")
    assert (SEPARATED.encode_key(pair), SEPARATED.encode(pair)) == (b"\0\0\0\7", b"v")
    decode = SEPARATED.separated_decoder(None)
    assert decode(b"\0\0\0\7", b"v") == pair
    assert tuple(decode(None, b"v")) == (None, "v")
    assert tuple(decode(b"\0\0\0\7", None)) == (7, None)
    assert SEPARATED.encode_key(KeyValue(None, "v")) is None  # type: ignore[arg-type]
    assert SEPARATED.encode(KeyValue(7, None)) == b""  # type: ignore[arg-type]
    with pytest.raises(SchemaDecodingError, match="the key is not in the payload"):
        SEPARATED.decode(b"v")


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ("", "no length at byte 0 of 0"),
        ("000000", "no length at byte 0 of 3"),
        ("00000001", "length 1 at byte 0, where 0 bytes are left"),
        ("7fffffff6b", "length 2147483647 at byte 0"),
        ("fffffffe", "length -2 at byte 0"),
        ("000000016b", "no length at byte 5 of 5"),
        ("000000016b000000040000000700", "1 bytes after the value"),
        ("000000016b00000003000007", "INT32: 4 bytes, not 3"),
    ],
)
def test_a_payload_whose_lengths_do_not_fill_it_is_refused(payload: str, words: str) -> None:
    with pytest.raises(SchemaDecodingError, match=words):
        INLINE.decode(bytes.fromhex(payload))


@given(st.binary(max_size=24))
def test_any_payload_gives_a_value_or_the_declared_error(data: bytes) -> None:
    try:
        decoded = INLINE.decode(data)
    except SchemaDecodingError:
        return
    assert INLINE.encode(decoded) == data


def test_the_definition_has_both_definitions_and_their_kinds() -> None:
    info = KeyValueSchema(STRING, INT32, KeyValueEncoding.SEPARATED).info
    assert info.data == bytes(8)
    assert dict(info.properties) == {
        "key.schema.name": "String",
        "key.schema.type": "STRING",
        "key.schema.properties": "{}",
        "value.schema.name": "INT32",
        "value.schema.type": "INT32",
        "value.schema.properties": "{}",
        "kv.encoding.type": "SEPARATED",
    }
    line = AvroSchema(Line)
    with_struct = KeyValueSchema(STRING, line, KeyValueEncoding.INLINE)
    key, value, encoding = parts_of(with_struct.info)
    assert (key, value, encoding) == (STRING.info, line.info, KeyValueEncoding.INLINE)


def test_halves_are_read_with_their_writers_definitions() -> None:
    schema = KeyValueSchema(STRING, AvroSchema(Line), KeyValueEncoding.INLINE)
    assert schema.wants_writer
    assert not SEPARATED.wants_writer
    decode = schema.decoder(schema.info)
    assert decode(schema.encode(KeyValue("k", Line("x", 2)))) == KeyValue("k", Line("x", 2))
    with pytest.raises(SchemaDecodingError, match="the message was written as INT32"):
        schema.decoder(INT32.info)


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(SchemaType.KEY_VALUE, "", b"\0"),
        SchemaInfo(SchemaType.KEY_VALUE, "", bytes(8), (("key.schema.type", "NOTHING"),)),
        SchemaInfo(SchemaType.KEY_VALUE, "", bytes(8), (("key.schema.type", "KEY_VALUE"),)),
        SchemaInfo(SchemaType.KEY_VALUE, "", bytes(8), (("value.schema.properties", "["),)),
        SchemaInfo(SchemaType.KEY_VALUE, "", bytes(8), (("value.schema.properties", "[]"),)),
        SchemaInfo(SchemaType.KEY_VALUE, "", bytes(8), (("kv.encoding.type", "BOTH"),)),
    ],
)
def test_a_wrong_definition_is_a_declared_error(info: SchemaInfo) -> None:
    with pytest.raises(SchemaDecodingError, match="KEY_VALUE"):
        parts_of(info)


def test_without_properties_halves_are_bytes_and_the_key_is_in_the_payload() -> None:
    key, value, encoding = parts_of(SchemaInfo(SchemaType.KEY_VALUE, "", bytes(8)))
    assert (key.type, value.type, encoding) == (SchemaType.NONE, SchemaType.NONE, KeyValueEncoding.INLINE)


def test_wrong_values_and_schemas_are_refused() -> None:
    with pytest.raises(InvalidMessage, match="a KeyValue, not int"):
        INLINE.encode(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage, match="INT32"):
        INLINE.encode(KeyValue("k", "v"))  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match="value: a schema of bytes, a primitive type or a struct"):
        KeyValueSchema(STRING, INLINE)


def test_schemas_pickle_to_equal_ones() -> None:
    schema = KeyValueSchema(STRING, AvroSchema(Line))
    assert pickle.loads(pickle.dumps(schema)).info == schema.info
