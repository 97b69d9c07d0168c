"""Definitions and payloads of strangers: what a schema makes of them.

A definition is read, or refused with its one error; so is a payload. What was read can be written and read
again. No payload becomes more values than its bytes allow.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import msgspec
import pydantic

from pulsar_sansio import IncompatibleSchema, InvalidMessage, SchemaDecodingError
from pulsar_sansio.broker.schemas.key_value_text import pair_definition, pair_text
from pulsar_sansio.broker.schemas.strategies import unreadable
from pulsar_sansio.broker.schemas.validation import equal, validate
from pulsar_sansio.schemas import (
    INT64,
    STRING,
    AvroSchema,
    AvroType,
    Int32,
    JsonSchema,
    KeyValueEncoding,
    KeyValueSchema,
    Schema,
    SchemaInfo,
    SchemaType,
)
from pulsar_sansio.schemas.auto import schema_of_definition
from pulsar_sansio.schemas.definitions import MAX_EMPTY_VALUES, AvroDefinition, DefinitionError
from pulsar_sansio.schemas.key_value import parts_of
from pulsar_sansio.schemas.shapes.shape import avro_text

FREE_VALUES = 1000
"""Values that a payload may become whatever its size: fields with defaults of the definitions below."""


LONGEST_ERROR = 2000
"""Characters of the text of an error."""

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Line:
    """A record within others."""

    item: str
    amount: Int32 = 1


@dataclass
class Order:
    """Fields whose conversions can fail."""

    id: str
    count: int
    rate: float
    color: Color
    price: Annotated[Decimal, AvroType(DECIMAL)]
    lines: list[Line]
    weights: dict[str, bytes]
    extra: Line | str | None = None


@dataclass
class Node:
    """A record that holds itself."""

    value: int
    next: "Node | None" = None


class Checked(pydantic.BaseModel):
    """A model whose library reads JSON."""

    id: int
    tags: list[str] = []
    inner: "Checked | None" = None


class Packed(msgspec.Struct):
    """A model whose library reads JSON."""

    id: int
    tags: list[bytes] = []
    color: Color = Color.RED


OTHER_ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "rate", "type": "float"},
        {"name": "count", "type": "int"},
        {"name": "id", "type": "string"},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE", "GREEN"]}},
        {"name": "price", "type": "bytes"},
        {"name": "more", "type": ["null", "string"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "item", "type": "string"}]}}},
        {"name": "weights", "type": {"type": "map", "values": "bytes"}},
    ],
}  # fmt: skip
"""An order of another producer: resolution has to make an `Order` of it."""

NULLS = {
    "type": "record",
    "name": "Nulls",
    "fields": [
        {"name": "nothing", "type": "null"},
        {"name": "items", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "map", "type": {"type": "map", "values": "null"}},
    ],
}
"""Values that take few bytes or none."""

AVRO: tuple[Schema[Any], ...] = (
    AvroSchema(Order),
    AvroSchema(Node),
    AvroSchema(Checked),
    AvroSchema(Packed),
    AvroSchema(definition=OTHER_ORDER),
    AvroSchema(definition=NULLS),
)

DICTS = AVRO[4:]
"""Schemas whose values have no class."""

JSON: tuple[Schema[Any], ...] = (
    JsonSchema(Order),
    JsonSchema(Node),
    JsonSchema(Checked),
    JsonSchema(Packed),
    JsonSchema(definition=OTHER_ORDER),
    JsonSchema(definition=NULLS),
)

PAIRS = tuple(
    KeyValueSchema(key, value, encoding)
    for encoding in KeyValueEncoding
    for key, value in ((STRING, INT64), (STRING, AVRO[0]), (JSON[1], AVRO[2]))
)


def definitions(data: bytes) -> None:
    """Two definitions with a zero byte between them: each is one or is refused, by schemas and broker alike;
    and the broker compares two of them, both ways."""
    infos = []
    for text in data.split(b"\0", 1):
        info = SchemaInfo(SchemaType.AVRO, "", text)
        try:
            definition = AvroDefinition(text)
        except DefinitionError as error:
            str(error)
            _check_that_a_broker_refuses(info)
            return
        written = avro_text(definition.avro)
        assert AvroDefinition(written).avro == definition.avro, "written anew, it is another one"
        for kind in (AvroSchema, JsonSchema):
            kind(definition=written)
        try:
            validate(info)
        except IncompatibleSchema:
            return
        assert equal(info, SchemaInfo(SchemaType.AVRO, "", written.encode()))
        infos.append(info)
    for reader, writer in ((infos[0], infos[-1]), (infos[-1], infos[0])):
        reason = unreadable(reader, writer)
        assert not reason or reader is not writer, reason


def _check_that_a_broker_refuses(info: SchemaInfo) -> None:
    try:
        validate(info)
    except IncompatibleSchema:
        return
    raise AssertionError("the broker takes what schemas refuse")


def avro_data(data: bytes) -> None:
    """A byte that names writer and reader, and a payload; or 255, a definition, a zero byte and a payload."""
    if not data:
        return
    if data[0] == 255:
        text, _, payload = data[1:].partition(b"\0")
        try:
            schema: Schema[Any] = schema_of_definition(SchemaInfo(SchemaType.AVRO, "", text))
        except SchemaDecodingError:
            return
        value = _decoded(schema.decode, payload, MAX_EMPTY_VALUES)
        if value is not None:
            _comes_back(AvroSchema(definition=text.decode()), value, of_dicts=True)
        return
    reader = AVRO[data[0] % len(AVRO)]
    writer = AVRO[data[0] // len(AVRO) % len(AVRO)]
    try:
        decode = reader.decoder(writer.info)
    except SchemaDecodingError:
        return
    value = _decoded(decode, data[1:], MAX_EMPTY_VALUES)
    if value is not None:
        _comes_back(reader, value, of_dicts=reader in DICTS)


def json_data(data: bytes) -> None:
    """A byte that names the schema, and a payload."""
    if not data:
        return
    schema = JSON[data[0] % len(JSON)]
    value = _decoded(schema.decode, data[1:], 1)
    if value is not None:
        _comes_back(schema, value)


def key_value(data: bytes) -> None:
    """A byte that names the schema, and a payload; or 254, the text of HTTP; or 255, a definition whose
    properties stand before it as JSON and a zero byte."""
    if not data:
        return
    if data[0] == 254:
        _text_of_a_pair(data[1:])
        return
    if data[0] == 255:
        _definition_of_a_pair(data[1:])
        return
    schema = PAIRS[data[0] % len(PAIRS)]
    payload = data[1:]
    if schema.encoding is KeyValueEncoding.INLINE:
        value = _decoded(schema.decode, payload, MAX_EMPTY_VALUES)
        if value is not None:
            _comes_back(schema, value)
        return
    decode = schema.separated_decoder(schema.info)
    key, _, payload = payload.partition(b"\0")
    value = _decoded(lambda given: decode(key, given), payload, MAX_EMPTY_VALUES, len(key))
    if value is not None:
        key_again, again = schema.encode_key(value), schema.encode(value)
        assert _same(decode(key_again, again), value)


def _text_of_a_pair(data: bytes) -> None:
    try:
        binary = pair_definition(data.decode(errors="replace"))
    except IncompatibleSchema:
        return
    for properties in ((), (("key.schema.type", "JSON"), ("value.schema.type", "STRING"))):
        info = SchemaInfo(SchemaType.KEY_VALUE, "", binary, properties)
        try:
            validate(info)
        except IncompatibleSchema:
            continue
        again = SchemaInfo(SchemaType.KEY_VALUE, "", pair_definition(pair_text(info)), properties)
        if properties:  # bytes have no definition that could come back
            assert equal(info, again)


def _definition_of_a_pair(data: bytes) -> None:
    text, _, binary = data.partition(b"\0")
    try:
        given = json.loads(text)
        properties = tuple((str(key), str(value)) for key, value in given.items())
    except (ValueError, AttributeError, RecursionError):
        return
    info = SchemaInfo(SchemaType.KEY_VALUE, "", binary, properties)
    try:
        parts_of(info)
        schema_of_definition(info)
    except SchemaDecodingError:
        _check_that_a_broker_refuses(info)
        return
    try:
        validate(info)
    except IncompatibleSchema:
        return
    assert equal(info, info)
    assert not unreadable(info, info)


# --- what is checked of values ---------------------------------------------------------------------------


def _decoded(decode: Callable[[bytes], Any], payload: bytes, each: int, further: int = 0) -> Any:
    """Return the value of a payload; None where it is refused. `each`: the most values of one byte."""
    try:
        value = decode(payload)
    except SchemaDecodingError as error:
        if len(str(error)) > LONGEST_ERROR:
            raise AssertionError("an error with much of the payload") from error
        return None
    most = FREE_VALUES + 2 * each * (len(payload) + further)
    assert _count(value, most) <= most, f"{len(payload)} bytes became more than {most} values"
    return value


def _count(value: Any, most: int) -> int:
    """Count the values within a value, up to `most` and one."""
    found, waiting = 0, [value]
    while waiting and found <= most:
        found += 1
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
        elif isinstance(one, (Line, Order, Node, pydantic.BaseModel)):
            waiting.extend(vars(one).values())
        elif isinstance(one, msgspec.Struct):
            waiting.extend(msgspec.structs.astuple(one))
    return found


def _comes_back(schema: Schema[Any], value: Any, *, of_dicts: bool = False) -> None:
    """A value that was read can be written, and is read again. `of_dicts`: records have no class."""
    try:
        payload = schema.encode(value)
    except InvalidMessage as error:
        # A value may be nested deeper than a writer goes. Numbers of dicts are not compared with their type.
        if not ("too deep" in str(error) or ("2**31" in str(error) and of_dicts)):
            raise AssertionError("read, and not written") from error
        return
    assert _same(schema.decode(payload), value), "written and read again, it is another value"


def _same(one: Any, other: Any) -> bool:
    """Compare by text, in which NaN is like NaN."""
    try:
        return bool(one == other) or repr(one) == repr(other)
    except RecursionError:
        return True
