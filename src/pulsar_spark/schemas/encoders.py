"""Encoders: a column of values as payloads of one definition; and the definition of a column's type.

A definition is derived from the types of Spark, or is the topic's own. The type of a column is compared with
it before anything is written; values are checked as they are encoded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from pulsar_sansio import InvalidMessage, SchemaDecodingError
from pulsar_sansio.schemas import (
    AvroSchema,
    JsonSchema,
    KeyValueEncoding,
    SchemaInfo,
    SchemaType,
)
from pulsar_sansio.schemas.key_value import join_inline, key_value_info, parts_of

from . import primitive_types
from .avro_types import NoSparkTypeError, definition_of, tree_of, type_of, without_logical_types
from .primitive_types import BY_ARROW, PRIMITIVES
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

    def __init__(self, kind: SchemaType) -> None:
        self._kind = kind
        self.type = ValueType(PRIMITIVES[kind])

    def encode(self, array: Any) -> Encoded:
        return Encoded(primitive_types.write(self._kind, conform(array, self.type.arrow)), None)


class StructureEncoder(Encoder):
    """Values of an AVRO or JSON schema."""

    def __init__(self, info: SchemaInfo) -> None:
        tree = tree_of(info)
        self.type = type_of(tree)
        self._physical = physical(self.type.arrow)
        self._plain = _plain(self._physical)
        schema = AvroSchema if info.type is SchemaType.AVRO else JsonSchema
        self._encode = schema(definition=without_logical_types(tree)).encode

    def encode(self, array: Any) -> Encoded:
        values = conform(conform(array, self.type.arrow, self.type), self._physical).to_pylist()
        plain, encode = self._plain, self._encode
        payloads: list[bytes | None] = []
        try:
            for value in values:
                payloads.append(None if value is None else encode(value if plain is None else plain(value)))
        except InvalidMessage as error:
            raise UnencodableError(len(payloads), str(error)) from error
        return Encoded(payloads, None)


class KeyValueEncoder(Encoder):
    """Pairs of a key and a value."""

    def __init__(self, info: SchemaInfo) -> None:
        key, value, encoding = parts_of(info)
        self._key, self._value = encoder_of(key), encoder_of(value)
        self._separated = encoding is KeyValueEncoding.SEPARATED
        self.type = struct_of((ValueField("key", self._key.type), ValueField("value", self._value.type)))

    def encode(self, array: Any) -> Encoded:
        key, value = (array.flatten()[array.type.get_field_index(name)] for name in ("key", "value"))
        keys, values = self._key.encode(key).payloads, self._value.encode(value).payloads
        if self._separated:
            return Encoded(values, keys)
        there = array.is_valid().to_pylist()
        pairs = zip(keys, values, there, strict=True)
        return Encoded([join_inline(key, value) if each else None for key, value, each in pairs], None)


def encoder_of(info: SchemaInfo) -> Encoder:
    """Return the encoder of a definition. Raises `NoSparkTypeError` where Spark has no type for it."""
    if info.type in PRIMITIVES:
        return PrimitiveEncoder(info.type)
    if info.type in (SchemaType.AVRO, SchemaType.JSON):
        return StructureEncoder(info)
    if info.type is SchemaType.KEY_VALUE:
        try:
            return KeyValueEncoder(info)
        except SchemaDecodingError as error:
            raise NoSparkTypeError(str(error)) from None
    raise NoSparkTypeError(f"values of the schema type {info.type.name} have no type in Spark")


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


def _plain(arrow: Any) -> Callable[[Any], Any] | None:
    """Return what makes dicts of Arrow's maps in a value; None where it has no map."""
    if pa.types.is_map(arrow):
        inner = _plain(arrow.item_type)
        if inner is None:
            return lambda pairs: None if pairs is None else dict(pairs)
        return lambda pairs: None if pairs is None else {key: inner(each) for key, each in pairs}
    if pa.types.is_list(arrow):
        item = _plain(arrow.value_type)
        if item is None:
            return None
        return lambda items: None if items is None else [item(each) for each in items]
    if pa.types.is_struct(arrow):
        found = {each.name: _plain(each.type) for each in arrow}
        converts = {name: convert for name, convert in found.items() if convert is not None}
        if not converts:
            return None
        return lambda record: (
            None
            if record is None
            else {**record, **{name: convert(record[name]) for name, convert in converts.items()}}
        )
    return None
