"""Checks of a schema before it is registered, by its type, and equality of definitions."""

import json

from ...model.errors import IncompatibleSchema, SchemaDecodingError
from ...model.schema import SchemaInfo, SchemaType
from ...schemas.definitions import AvroDefinition, DefinitionError
from ...schemas.key_value import parts_of
from ...schemas.protobuf_schema import message_class_of
from .strategies import AVRO_TYPES

MAX_DEFINITION = 1024 * 1024
"""Bytes of the largest definition. The broker keeps every version, and compares new ones with them."""

WITHOUT_DEFINITION = (SchemaType.NONE, SchemaType.EXTERNAL)


def validate(info: SchemaInfo) -> None:
    """Raise `IncompatibleSchema` for a definition that is none of its type."""
    if len(info.data) > MAX_DEFINITION:
        raise _invalid(info, f"{len(info.data)} bytes, allowed are {MAX_DEFINITION}")
    if info.type in WITHOUT_DEFINITION:
        return
    if info.type in AVRO_TYPES:
        definition = _avro(info)
        if isinstance(definition.avro, list) and info.type is SchemaType.AVRO:
            raise _invalid(info, "a union is not allowed at the top level")
    elif info.type is SchemaType.PROTOBUF_NATIVE:
        try:
            message_class_of(info)
        except SchemaDecodingError as error:
            raise _invalid(info, str(error)) from None
    elif info.type is SchemaType.KEY_VALUE:
        try:
            key, value, _ = parts_of(info)
        except SchemaDecodingError as error:
            raise _invalid(info, str(error)) from None
        validate(key)
        validate(value)
    elif info.type is SchemaType.AUTO_CONSUME:
        raise _invalid(info, "it is for consumers only")
    elif info.data not in (b"", b"null"):  # old Python clients send null
        raise _invalid(info, "a primitive type has none")


def _avro(info: SchemaInfo) -> AvroDefinition:
    try:
        return AvroDefinition(info.data)
    except DefinitionError as error:
        raise _invalid(info, str(error)) from None


def _invalid(info: SchemaInfo, words: str) -> IncompatibleSchema:
    return IncompatibleSchema(f"Invalid schema definition data for {info.type.name} schema: {words}"[:1000])


def root_message(data: bytes) -> str:
    """Return the name of the root message of a valid definition of type PROTOBUF_NATIVE."""
    name: str = json.loads(data)["rootMessageTypeName"]
    return name


def equal(one: SchemaInfo, other: SchemaInfo) -> bool:
    """Tell whether two valid schemas are one version: of Avro types the parsed definitions count, of others
    the bytes. Names and properties are not compared, except the kinds of a key and a value."""
    if one.type is not other.type:
        return False
    if one.type in AVRO_TYPES:
        return one.data == other.data or _avro(one).avro == _avro(other).avro
    if one.type is SchemaType.KEY_VALUE:
        key, value, encoding = parts_of(one)
        other_key, other_value, other_encoding = parts_of(other)
        return encoding is other_encoding and equal(key, other_key) and equal(value, other_value)
    return (one.data or b"null") == (other.data or b"null") or one.data == other.data
