"""Encoders: a column of values as payloads of one definition; and the definition of a column's type.

A definition is derived from the types of Spark, or is the topic's own. The type of a column is compared with
it before anything is written; values are checked as they are encoded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from pulsar_sansio import InvalidMessage
from pulsar_sansio.schemas import (
    AvroSchema,
    JsonSchema,
    KeyValueEncoding,
    SchemaInfo,
    SchemaType,
)
from pulsar_sansio.schemas.key_value import join_inline, key_value_info

from . import primitive_types
from .avro_types import NoSparkTypeError, definition_of, payload_definition, tree_of, type_of
from .families import Family, family_of, pair_of
from .primitive_types import BY_ARROW, PRIMITIVES
from .protobuf_types import MessageType, message_class
from .spark_types import ddl_of
from .value_types import UnfitError, ValueField, ValueType, check_fit, conform, physical, struct_of


class UnencodableError(ValueError):
    """A value cannot be encoded. `row`: its index in the column."""

    def __init__(self, row: int, words: str) -> None:
        super().__init__(words)
        self.row = row


class Encoded(NamedTuple):
    """Payloads, and the keys that are parts of values; None where keys are not."""

    payloads: list[bytes | None]
    keys: list[bytes | None] | None


class Encoder(ABC):
    """Encodes the values of one definition. `type`: of the values."""

    type: ValueType

    def check(self, arrow: Any) -> None:
        """Raise `UnfitError` for a column of the Arrow type `arrow` that cannot be written."""
        check_fit(arrow, self.type.arrow, self.type)
        _check_no_more(arrow, self.type.arrow, "value")

    @abstractmethod
    def encode(self, array: Any) -> Encoded:
        """Return what is sent for an array of values of a type that `check` took.

        Raises `UnencodableError`, and `UnfitError` or Arrow's errors for a column as a whole."""


class PrimitiveEncoder(Encoder):
    """Values of a primitive type."""

    def __init__(self, info: SchemaInfo) -> None:
        self._kind = info.type
        self.type = ValueType(PRIMITIVES[info.type])

    def encode(self, array: Any) -> Encoded:
        return Encoded(primitive_types.write(self._kind, conform(array, self.type.arrow)), None)


class StructureEncoder(Encoder):
    """Values of an AVRO or JSON schema."""

    def __init__(self, info: SchemaInfo) -> None:
        tree = tree_of(info)
        self.type = type_of(tree, info.type)
        self._physical = physical(self.type.arrow)
        self._plain = _plain(self.type)
        schema = AvroSchema if info.type is SchemaType.AVRO else JsonSchema
        self._encode = schema(definition=payload_definition(tree, info.type, writes=True)).encode

    def encode(self, array: Any) -> Encoded:
        values = conform(conform(array, self.type.arrow, self.type), self._physical).to_pylist()
        plain, encode = self._plain, self._encode
        payloads: list[bytes | None] = []
        try:
            for value in values:
                payloads.append(None if value is None else encode(value if plain is None else plain(value)))
        except (InvalidMessage, UnfitError) as error:
            raise UnencodableError(len(payloads), str(error)) from error
        return Encoded(payloads, None)


class ProtobufEncoder(Encoder):
    """Values of a PROTOBUF_NATIVE schema."""

    def __init__(self, info: SchemaInfo) -> None:
        self._messages = MessageType(message_class(info))
        self.type = self._messages.type
        self._physical = physical(self.type.arrow)

    def encode(self, array: Any) -> Encoded:
        values = conform(conform(array, self.type.arrow, self.type), self._physical).to_pylist()
        write = self._messages.write
        payloads: list[bytes | None] = []
        try:
            for value in values:
                payloads.append(None if value is None else write(value))
        except UnfitError as error:
            raise UnencodableError(len(payloads), str(error)) from error
        return Encoded(payloads, None)


class KeyValueEncoder(Encoder):
    """Pairs of a key and a value."""

    def __init__(self, info: SchemaInfo) -> None:
        key, value, self._separated = pair_of(info)
        self._key, self._value = encoder_of(key), encoder_of(value)
        self.type = struct_of((ValueField("key", self._key.type), ValueField("value", self._value.type)))

    def encode(self, array: Any) -> Encoded:
        key, value = (array.flatten()[array.type.get_field_index(name)] for name in ("key", "value"))
        keys, values = self._key.encode(key).payloads, self._value.encode(value).payloads
        if self._separated:
            return Encoded(values, keys)
        there = array.is_valid().to_pylist()
        pairs = zip(keys, values, there, strict=True)
        return Encoded([join_inline(key, value) if each else None for key, value, each in pairs], None)


_ENCODERS: dict[Family, Callable[[SchemaInfo], Encoder]] = {
    Family.PRIMITIVE: PrimitiveEncoder,
    Family.STRUCTURE: StructureEncoder,
    Family.PROTOBUF: ProtobufEncoder,
    Family.PAIR: KeyValueEncoder,
}


def encoder_of(info: SchemaInfo) -> Encoder:
    """Return the encoder of a definition. Raises `NoSparkTypeError` where Spark has no type for it."""
    return _ENCODERS[family_of(info)](info)


# --- the definition of a column ----------------------------------------------------------------------


def schema_of_column(arrow: Any, value_schema: str, key_value: str) -> SchemaInfo:
    """Return the schema of a column, from its Arrow type as Spark has it.

    `value_schema`: avro, json or primitive. `key_value`: none, separated or inline. Raises
    `NoSparkTypeError` for a type that the schema cannot have.
    """
    if key_value == "none":
        return _schema_of(arrow, value_schema, "value")
    if not pa.types.is_struct(arrow) or sorted(each.name for each in arrow) != ["key", "value"]:
        raise NoSparkTypeError(f"a pair is a struct of key and value, not {ddl_of(arrow)}")
    parts = []
    for name in ("key", "value"):
        part = arrow.field(name).type
        kind = value_schema if pa.types.is_struct(part) else "primitive"
        parts.append(_schema_of(part, kind, f"value.{name}"))
    return key_value_info(parts[0], parts[1], KeyValueEncoding(key_value.upper()))


def _schema_of(arrow: Any, value_schema: str, where: str) -> SchemaInfo:
    if value_schema == "primitive":
        if arrow not in BY_ARROW:
            raise NoSparkTypeError(f"{where}: {ddl_of(arrow)} is the type of no primitive schema")
        kind = BY_ARROW[arrow]
        return SchemaInfo(kind, kind.name)
    if not pa.types.is_struct(arrow):
        raise NoSparkTypeError(
            f"{where}: valueSchema={value_schema} writes a struct, not {ddl_of(arrow)}; other columns "
            "need valueSchema=primitive"
        )
    name = where.rpartition(".")[2]
    schema = AvroSchema if value_schema == "avro" else JsonSchema
    return schema(definition=definition_of(arrow, name)).info


# --- inside ------------------------------------------------------------------------------------------


def _check_no_more(source: Any, target: Any, where: str) -> None:
    """Raise `UnfitError` for a field that the definition lacks: it would not be written."""
    if pa.types.is_struct(source):
        for field in source:
            if target.get_field_index(field.name) < 0:
                raise UnfitError(f"{where}.{field.name}: the topic's schema has no such field")
            _check_no_more(field.type, target.field(field.name).type, f"{where}.{field.name}")
    elif pa.types.is_list(source):
        _check_no_more(source.value_type, target.value_type, f"{where}[]")
    elif pa.types.is_map(source):
        _check_no_more(source.item_type, target.item_type, f"{where}[]")


def _plain(kind: ValueType) -> Callable[[Any], Any] | None:
    """Return what makes values for the core of Arrow's: dicts of maps, and of a union its one member.

    None where a value has none of them."""
    if pa.types.is_map(kind.arrow):
        assert kind.item is not None
        inner = _plain(kind.item)
        if inner is None:
            return lambda pairs: None if pairs is None else dict(pairs)
        return lambda pairs: None if pairs is None else {key: inner(each) for key, each in pairs}
    if pa.types.is_list(kind.arrow):
        assert kind.item is not None
        item = _plain(kind.item)
        if item is None:
            return None
        return lambda items: None if items is None else [item(each) for each in items]
    if pa.types.is_struct(kind.arrow):
        found = {each.name: _plain(each.type) for each in kind.fields}
        converts = {name: convert for name, convert in found.items() if convert is not None}
        if not converts and not kind.is_union:
            return None

        def record(value: Any) -> Any:
            if value is None:
                return None
            converted = {**value, **{name: convert(value[name]) for name, convert in converts.items()}}
            return _member(converted) if kind.is_union else converted

        return record
    return None


def _member(union: dict[str, Any]) -> dict[str, Any]:
    """Return the member of a union that is not null. Raises `UnfitError` unless it is one."""
    there = {name: value for name, value in union.items() if value is not None}
    if len(there) != 1:
        raise UnfitError(f"a union has one of {', '.join(union)}, not {' and '.join(there) or 'none'}")
    return there
