"""Avro's types as types of Spark, and back. JSON schemas of Pulsar have definitions in Avro's JSON, too.

A definition comes from a broker, so it goes through the core's reader of definitions first, which refuses
what is wrong or dangerous. Everything here is about definitions; payloads are decoded elsewhere.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from pulsar_sansio import InvalidConfiguration
from pulsar_sansio.schemas import AvroSchema, JsonSchema, SchemaInfo, SchemaType

from .value_types import NEEDED, ValueField, ValueType, list_of, map_of, struct_of, union_of

MOST_DIGITS = 38
"""The digits of Spark's decimals."""

MOST_FIELDS = 10_000
"""Fields of a type with those of records within. A few lines of a definition can make more of them than there
is memory: each record has two fields of the next record's type."""

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}

_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
"""The other logical types mean nothing to Spark: times of day are numbers, UUIDs are text."""


class NoSparkTypeError(ValueError):
    """A definition that no type of Spark can hold; the text names the part of it."""


# --- from a definition to a type ---------------------------------------------------------------------


def tree_of(info: SchemaInfo) -> Any:
    """Return the checked definition of an AVRO or JSON schema. Raises `NoSparkTypeError`."""
    schema = AvroSchema if info.type is SchemaType.AVRO else JsonSchema
    try:
        return json.loads(schema(definition=info.data.decode()).info.data)
    except (InvalidConfiguration, UnicodeDecodeError) as error:
        raise NoSparkTypeError(f"the definition is wrong: {error}"[:300]) from None


def type_of(tree: Any, kind: SchemaType) -> ValueType:
    """Return the type of a checked definition of `kind`, AVRO or JSON. Raises `NoSparkTypeError`."""
    return _Types(tells_apart=kind is SchemaType.AVRO).of(tree, "value")


def payload_definition(tree: Any, kind: SchemaType, *, writes: bool = False) -> Any:
    """Return the definition that payloads are read with, or written.

    It has no logical types but decimals: its values are numbers, text and bytes. Arrow makes dates and
    timestamps of the numbers, all at once. In AVRO each type of a union is the one field of a record, so that
    values are the structs that they are in Spark. That makes no difference to payloads.
    """
    return _PayloadDefinition(tree, kind, writes).of(tree)


def union_words(union: list[Any]) -> str:
    return ", ".join(each if isinstance(each, str) else str(each["type"]) for each in union)


def _widened(types: list[Any]) -> Any | None:
    """Return the one type that a union of two numbers is in Spark; None for any other union."""
    names = {each for each in types if isinstance(each, str)}
    if len(types) != 2:
        return None
    return "long" if names == {"int", "long"} else "double" if names == {"float", "double"} else None


class _PayloadDefinition:
    def __init__(self, tree: Any, kind: SchemaType, writes: bool) -> None:
        self._avro = kind is SchemaType.AVRO
        self._writes = writes
        self._prefix = "Member"
        self._records = 0
        text = json.dumps(tree)
        while self._prefix in text:
            self._prefix += "_"

    def of(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return self._union(tree)
        if not isinstance(tree, dict):
            return tree
        if tree.get("logicalType", "decimal") != "decimal":
            return tree["type"]
        return {
            key: self.of(each) if key in ("type", "items", "values") else each
            for key, each in tree.items()
            if key != "fields"
        } | ({"fields": [self._field(each) for each in tree["fields"]]} if "fields" in tree else {})

    def _field(self, field: dict[str, Any]) -> dict[str, Any]:
        kept = {name: each for name, each in field.items() if not (self._avro and name == "default")}
        return kept | {"type": self.of(field["type"])}

    def _union(self, union: list[Any]) -> list[Any]:
        others = [each for each in union if each != "null"]
        wide = _widened(others)
        if len(others) == 1 or not self._avro or wide == "long" or (wide and not self._writes):
            return [self.of(each) for each in union]
        if wide:  # what is written is a double
            return [self._record("float", each) if each == "float" else each for each in union]
        members = iter(range(len(others)))
        return [each if each == "null" else self._record(f"member{next(members)}", each) for each in union]

    def _record(self, field: str, tree: Any) -> Any:
        self._records += 1
        name = f"{self._prefix}{self._records}"
        return {"type": "record", "name": name, "fields": [{"name": field, "type": self.of(tree)}]}


class _Types:
    """`tells_apart`: payloads say which type of a union they have."""

    def __init__(self, *, tells_apart: bool) -> None:
        self._tells_apart = tells_apart
        self._named: dict[str, Any] = {}
        self._open: list[str] = []
        self._fields = 0

    def of(self, tree: Any, where: str) -> ValueType:
        if isinstance(tree, list):
            return self._union(tree, where)
        if isinstance(tree, str):
            return self._by_name(tree, where)
        kind, logical = tree["type"], tree.get("logicalType")
        if "name" in tree:
            self._named[_full_name(tree)] = tree
        if logical == "decimal":
            return _decimal(tree, where)
        match kind:
            case "record" | "error":
                return self._record(tree, where)
            case "array":
                return list_of(self.of(tree["items"], f"{where}[]"))
            case "map":
                return map_of(self.of(tree["values"], f"{where}[]"))
            case "enum":
                return ValueType(pa.string())
            case "fixed":
                return ValueType(pa.binary())
        return ValueType(_LOGICAL[logical]) if logical in _LOGICAL else self._by_name(kind, where)

    def _union(self, union: list[Any], where: str) -> ValueType:
        others = [each for each in union if each != "null"]
        wide = others[0] if len(others) == 1 else _widened(others)
        if wide is not None:
            return self.of(wide, where)
        if not others:
            raise NoSparkTypeError(f"{where}: always null, which is no type of a column")
        if not self._tells_apart:
            raise NoSparkTypeError(
                f"{where}: a union of {union_words(union)}; JSON does not say which of them a value has"
            )
        self._count(len(others), where)
        return union_of(self.of(each, f"{where}.member{index}") for index, each in enumerate(others))

    def _count(self, fields: int, where: str) -> None:
        self._fields += fields
        if self._fields > MOST_FIELDS:
            raise NoSparkTypeError(f"{where}: a type of more than {MOST_FIELDS} fields")

    def _by_name(self, name: str, where: str) -> ValueType:
        if name in _PRIMITIVES:
            return ValueType(_PRIMITIVES[name])
        if name == "null":
            raise NoSparkTypeError(f"{where}: always null, which is no type of a column")
        if name in self._open:
            raise NoSparkTypeError(
                f"{where}: recursive, {name} holds itself, and Spark's types have an end. Read bytes, and "
                "use from_avro with its option recursiveFieldMaxDepth"
            )
        return self.of(self._named[name], where)

    def _record(self, tree: Any, where: str) -> ValueType:
        if not tree["fields"]:
            raise NoSparkTypeError(f"{where}: a record without fields")
        self._count(len(tree["fields"]), where)
        self._open.append(_full_name(tree))
        fields = tuple(
            ValueField(
                each["name"],
                self.of(each["type"], f"{where}.{each['name']}"),
                self._default(each["type"], each["default"]) if "default" in each else NEEDED,
            )
            for each in tree["fields"]
        )
        self._open.pop()
        return struct_of(fields)

    def _default(self, tree: Any, default: Any) -> Any:
        """Return a default as a value that Arrow takes. A union's default is of its first type, or null."""
        if isinstance(tree, list):
            if default is None:
                return None
            others = [each for each in tree if each != "null"]
            value = self._default(others[0], default)
            return value if len(others) == 1 or _widened(others) else {"member0": value}
        if isinstance(tree, str):
            return self._default(self._named.get(tree, {"type": tree}), default)
        kind, logical = tree["type"], tree.get("logicalType")
        convert: Callable[[Any, Any], Any] = self._default
        match kind, default:
            case (("bytes" | "fixed"), str()):
                data = default.encode("latin-1")
                if logical != "decimal":
                    return data
                return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-tree.get("scale", 0))
            case "array", list():
                return [convert(tree["items"], each) for each in default]
            case "map", dict():
                return [(key, convert(tree["values"], each)) for key, each in default.items()]
            case (("record" | "error"), dict()):
                return {
                    each["name"]: convert(each["type"], default.get(each["name"], each.get("default")))
                    for each in tree["fields"]
                }
        return default


def _decimal(tree: Any, where: str) -> ValueType:
    precision = tree["precision"]
    if precision > MOST_DIGITS:
        raise NoSparkTypeError(f"{where}: a decimal of {precision} digits; Spark's have {MOST_DIGITS}")
    return ValueType(pa.decimal128(precision, tree.get("scale", 0)))


def _full_name(tree: Any) -> str:
    namespace, name = tree.get("namespace"), str(tree["name"])
    return f"{namespace}.{name}" if namespace and "." not in name else name


# --- from a type to a definition ---------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_AVRO = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", tz="UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}


def definition_of(arrow: Any, name: str = "value", namespace: str = "") -> Any:
    """Return the definition of a type, as Spark has it. `name`, `namespace`: of its record.

    Every field and item is a union with null, and null is a field's default, whatever Spark says of nulls: it
    infers that from the query, and a schema that came and went with it would be refused. Records within are
    named by the fields that lead to them. Raises `NoSparkTypeError`.
    """
    where = f"{namespace}.{name}".lstrip(".")
    if pa.types.is_struct(arrow):
        fields = [_field(each, where) for each in arrow]
        if not fields:
            raise NoSparkTypeError(f"{where}: a record without fields")
        return {"type": "record", "name": name, "namespace": namespace, "fields": fields}
    if pa.types.is_list(arrow):
        return {"type": "array", "items": ["null", definition_of(arrow.value_type, name, namespace)]}
    if pa.types.is_map(arrow):
        if arrow.key_type != pa.string():
            raise NoSparkTypeError(f"{where}: a map whose keys are no text")
        return {"type": "map", "values": ["null", definition_of(arrow.item_type, name, namespace)]}
    if pa.types.is_decimal(arrow):
        return {
            "type": "bytes", "logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale
        }  # fmt: skip
    if arrow not in _AVRO:
        raise NoSparkTypeError(f"{where}: Avro has no type for {arrow}")
    return _AVRO[arrow]


def _field(field: Any, record: str) -> dict[str, Any]:
    if not _NAME.fullmatch(field.name):
        raise NoSparkTypeError(f"{record}: {field.name!r:.100} is no name of a field: letters, digits and _")
    return {
        "name": field.name,
        "type": ["null", definition_of(field.type, field.name, record)],
        "default": None,
    }
