"""`LineSchema`: JSON as payloads of any definition.

The definition is registered byte for byte as it is, so that a topic's own one makes no new version.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from functools import partial
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError

from pulsar_sansio import InvalidConfiguration, InvalidMessage, SchemaDecodingError
from pulsar_sansio.schemas import (
    AvroSchema,
    JsonSchema,
    KeyValue,
    KeyValueSchema,
    Schema,
    SchemaInfo,
    SchemaType,
)
from pulsar_sansio.schemas.definitions import AvroDefinition, DefinitionError
from pulsar_sansio.schemas.key_value import parts_of
from pulsar_sansio.schemas.primitives import PRIMITIVES
from pulsar_sansio.schemas.protobuf_schema import message_class_of
from pulsar_sansio.schemas.shapes.shape import WrongValueError, wrong

from .value_of_json import NOT_FINITE, ValueOfJson, bytes_of_base64, parsed


def line_schema(info: SchemaInfo) -> Schema[Any]:
    """Return a schema that encodes JSON. Raises `InvalidConfiguration` for a definition that is wrong, or of
    a type that only its own classes can write."""
    try:
        if info.type is SchemaType.KEY_VALUE:
            key, value, encoding = parts_of(info)
            return KeyValueSchema(line_schema(key), line_schema(value), encoding)
        return LineSchema(info)
    except (DefinitionError, SchemaDecodingError) as error:
        raise InvalidConfiguration(f"schema {info.type.name}: {error}") from None


class LineSchema(Schema[Any]):
    """Values are what `json.loads` returns."""

    def __init__(self, info: SchemaInfo) -> None:
        self._info = info
        self._encode = _encoder(info)

    @property
    def info(self) -> SchemaInfo:
        return self._info

    def encode(self, value: Any) -> bytes:
        try:
            return self._encode(value)
        except WrongValueError as error:
            raise InvalidMessage(f"schema {self._info.type.name}: {error}") from None
        except RecursionError:
            raise InvalidMessage(f"schema {self._info.type.name}: values are nested too deep") from None

    def decode(self, data: bytes) -> Any:
        raise SchemaDecodingError("this schema only writes")


def pair_of_json(plain: Any) -> KeyValue[Any, Any]:
    """Return the pair of an object with `key` and `value`, each of which may be null."""
    if not isinstance(plain, Mapping) or set(plain) != {"key", "value"}:
        raise InvalidMessage("schema KEY_VALUE: an object with key and value, either of which may be null")
    return KeyValue(plain["key"], plain["value"])


def _encoder(info: SchemaInfo) -> Callable[[Any], bytes]:
    kind = info.type
    if kind in PRIMITIVES:
        encode, convert = PRIMITIVES[kind].encode, _PRIMITIVE_VALUES.get(kind, _same)
        return lambda plain: encode(convert(plain))
    if kind in (SchemaType.AVRO, SchemaType.JSON):
        text = info.data.decode(errors="replace")
        value_of = ValueOfJson(AvroDefinition(text))
        write = AvroSchema(definition=text) if kind is SchemaType.AVRO else JsonSchema(definition=text)
        return lambda plain: write.encode(value_of(plain))
    if kind is SchemaType.PROTOBUF_NATIVE:
        return _protobuf(info)
    raise InvalidConfiguration(f"schema {kind.name}: only the producer's own classes can write it")


def _protobuf(info: SchemaInfo) -> Callable[[Any], bytes]:
    model = message_class_of(info)

    def encode(plain: Any) -> bytes:
        if not isinstance(plain, dict):
            raise wrong(f"an object with the fields of {model.DESCRIPTOR.name}", plain)
        try:
            return ParseDict(plain, model()).SerializeToString()
        except ParseError as error:
            raise WrongValueError(f"{error}"[:200]) from None

    return encode


def _same(plain: Any) -> Any:
    return plain


def _number(plain: Any) -> Any:
    return float(plain) if plain in NOT_FINITE else plain


_PRIMITIVE_VALUES: dict[SchemaType, Callable[[Any], Any]] = {
    SchemaType.NONE: partial(parsed, bytes_of_base64, "Base64 text"),
    SchemaType.FLOAT: _number,
    SchemaType.DOUBLE: _number,
    SchemaType.DATE: partial(parsed, datetime.fromisoformat, "an ISO 8601 moment with a time zone"),
    SchemaType.TIMESTAMP: partial(parsed, datetime.fromisoformat, "an ISO 8601 moment with a time zone"),
    SchemaType.INSTANT: partial(parsed, datetime.fromisoformat, "an ISO 8601 moment with a time zone"),
    SchemaType.TIME: partial(parsed, time.fromisoformat, "an ISO 8601 time"),
    SchemaType.LOCAL_DATE: partial(parsed, date.fromisoformat, "an ISO 8601 date"),
    SchemaType.LOCAL_TIME: partial(parsed, time.fromisoformat, "an ISO 8601 time"),
    SchemaType.LOCAL_DATE_TIME: partial(parsed, datetime.fromisoformat, "an ISO 8601 moment"),
}
