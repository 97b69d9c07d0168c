"""`AutoConsume`: values as the topic's own definition has them, whichever that is.

A consumer with this schema needs no model. Records are dicts, primitive types Python's values, protobuf
messages instances of a class made of the definition (rule SCHEMA-06).
"""

from collections.abc import Callable
from typing import Any

from ..model.errors import InvalidMessage, SchemaDecodingError
from ..model.schema import Schema, SchemaInfo, SchemaType
from .avro_schema import AvroCodec
from .definitions import AvroDefinition, DefinitionError, definition_shape
from .json_schema import load_json
from .key_value import KeyValueSchema, is_separated, parts_of
from .primitives import BYTES, PRIMITIVES
from .protobuf_schema import decode_message, message_class_of
from .shapes.shape import Form, WrongValueError


class AutoConsume(Schema[Any]):
    """For consumers, readers and table views: the values that the topic's producers defined.

    A message without a schema gives its bytes. Raises `SchemaDecodingError` where a definition is wrong or of
    a type that this version does not know. It encodes nothing.
    """

    wants_writer = True

    @property
    def info(self) -> SchemaInfo:
        return SchemaInfo(SchemaType.AUTO_CONSUME, "AutoConsume")

    def encode(self, value: Any) -> bytes:
        raise InvalidMessage("schema AUTO_CONSUME: it only reads; a producer needs a schema of its own")

    def decode(self, data: bytes) -> Any:
        return data

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], Any]:
        return schema_of_definition(writer).decoder(writer)

    def keys_are_separate(self, writer: SchemaInfo | None) -> bool:
        """Tell if the key of a value is in the message's key, so that values need `separated_decoder`."""
        return is_separated(writer)

    def separated_decoder(self, writer: SchemaInfo | None) -> Callable[[bytes | None, bytes | None], Any]:
        """Return a function of the message's key and payload, each None where it is null."""
        pairs = schema_of_definition(writer)
        assert isinstance(pairs, KeyValueSchema), "keys are separate in pairs only"
        return pairs.separated_decoder(writer)

    def __repr__(self) -> str:
        return "<schema AUTO_CONSUME>"


def schema_of_definition(info: SchemaInfo | None) -> Schema[Any]:
    """Return a schema that reads what was written with a definition. Raises `SchemaDecodingError`."""
    if info is None:
        return BYTES
    if info.type in PRIMITIVES:
        return PRIMITIVES[info.type]
    match info.type:
        case SchemaType.AVRO:
            return _Read(info, _avro(info))
        case SchemaType.JSON:
            return _Read(info, _json)
        case SchemaType.PROTOBUF_NATIVE:
            return _Read(info, _protobuf(info))
        case SchemaType.KEY_VALUE:
            key, value, encoding = parts_of(info)
            return KeyValueSchema(schema_of_definition(key), schema_of_definition(value), encoding)
    raise SchemaDecodingError(
        f"schema AUTO_CONSUME: messages of type {info.type.name} need a schema of their own"
    )


class _Read(Schema[Any]):
    """A definition of the topic's with the function that reads its payloads."""

    def __init__(self, info: SchemaInfo, decode: Callable[[bytes], Any]) -> None:
        self._info = info
        self._decode = decode

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: Any) -> bytes:
        raise InvalidMessage("schema AUTO_CONSUME: it only reads")

    def decode(self, data: bytes) -> Any:
        return self._decode(data)


def _avro(info: SchemaInfo) -> Callable[[bytes], Any]:
    try:
        codec = AvroCodec(definition_shape(AvroDefinition(info.data), Form.AVRO), values_are_plain=True)
    except DefinitionError as error:
        raise SchemaDecodingError(f"schema AVRO: the producer's definition is wrong: {error}") from None
    return codec.decoder(info.data)


def _json(data: bytes) -> Any:
    try:
        return load_json(data)
    except WrongValueError as error:
        raise SchemaDecodingError(f"schema JSON: {error}") from None
    except RecursionError:
        raise SchemaDecodingError("schema JSON: values are nested too deep") from None


def _protobuf(info: SchemaInfo) -> Callable[[bytes], Any]:
    model = message_class_of(info)
    return lambda data: decode_message(model, info.type, data)
