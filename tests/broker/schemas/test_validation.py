"""Checks of definitions before they are registered, and which schemas are one version."""

import pytest

from pulsar_sansio.broker.schemas.validation import MAX_DEFINITION, equal, validate
from pulsar_sansio.model.errors import IncompatibleSchema
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import INT32, STRING, KeyValueEncoding, ProtobufNativeSchema, ProtobufSchema
from pulsar_sansio.schemas.key_value import key_value_info
from pulsar_sansio.wire import proto


def avro(text: str, kind: SchemaType = SchemaType.AVRO) -> SchemaInfo:
    return SchemaInfo(kind, "", text.encode())


RECORD = '{"type":"record","name":"A","fields":[]}'


@pytest.mark.parametrize(
    "info",
    [
        STRING.info,
        SchemaInfo(SchemaType.STRING, "", b"null"),
        avro(RECORD),
        avro('["null","int"]', SchemaType.JSON),
        ProtobufSchema(proto.Schema).info,
        ProtobufNativeSchema(proto.Schema).info,
        key_value_info(STRING.info, avro(RECORD), KeyValueEncoding.INLINE),
        SchemaInfo(SchemaType.NONE, "", b"anything"),
        SchemaInfo(SchemaType.EXTERNAL, "", b"anything"),
    ],
    ids=repr,
)
def test_a_definition_of_its_type_is_valid(info: SchemaInfo) -> None:
    """SCHEMA-10: definitions of struct schemas."""
    validate(info)


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (SchemaInfo(SchemaType.INT32, "", b"x"), "a primitive type has none"),
        (avro("{"), "no JSON"),
        (avro('["null","int"]'), "a union is not allowed at the top level"),
        (avro('"foo"', SchemaType.PROTOBUF), "unknown type"),
        (SchemaInfo(SchemaType.PROTOBUF_NATIVE, "", b"[]"), "definition is wrong"),
        (SchemaInfo(SchemaType.KEY_VALUE, "", b""), "no length"),
        (key_value_info(STRING.info, avro("{"), KeyValueEncoding.INLINE), "AVRO schema: no JSON"),
        (SchemaInfo(SchemaType.AUTO_CONSUME), "for consumers only"),
        (avro(" " * (MAX_DEFINITION + 1)), f"allowed are {MAX_DEFINITION}"),
    ],
)
def test_any_other_definition_is_refused(info: SchemaInfo, words: str) -> None:
    with pytest.raises(IncompatibleSchema, match=words):
        validate(info)


def test_avro_definitions_are_equal_whatever_their_text() -> None:
    spaced = avro('{"name": "A", "type": "record", "fields": [], "doc": "a remark"}')
    assert equal(avro(RECORD), spaced)
    assert not equal(avro(RECORD), avro(RECORD.replace('"A"', '"B"')))
    assert not equal(avro(RECORD), avro(RECORD, SchemaType.JSON))


def test_primitive_types_are_equal_by_type_alone() -> None:
    assert equal(STRING.info, SchemaInfo(SchemaType.STRING, "other", b"null", (("a", "b"),)))
    assert not equal(STRING.info, INT32.info)


def test_pairs_are_equal_by_their_halves_and_encoding() -> None:
    one = key_value_info(STRING.info, avro(RECORD), KeyValueEncoding.INLINE)
    assert equal(one, key_value_info(STRING.info, avro(f" {RECORD}"), KeyValueEncoding.INLINE))
    assert not equal(one, key_value_info(INT32.info, avro(RECORD), KeyValueEncoding.INLINE))
    assert not equal(one, key_value_info(STRING.info, avro(RECORD), KeyValueEncoding.SEPARATED))
