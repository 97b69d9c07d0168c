"""`ValueType`: the type of values as Arrow holds them; and arrays of one type as arrays of another.

`conform` resolves what a message was written with to what a query reads, a whole array at a time: fields by
name, defaults for fields that the writer lacks, and Avro's promotions (int to long, float to double).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Needed(Enum):
    """Stands for the default of a field that has none."""

    NEEDED = "needed"


NEEDED = Needed.NEEDED


class UnfitError(ValueError):
    """Values of one type cannot become values of another; the text says where, and shows no value."""


@dataclass(frozen=True, slots=True)
class ValueField:
    """A field of a record. `default`: the value where a writer lacks the field, or `NEEDED`."""

    name: str
    type: "ValueType"
    default: Any = NEEDED


@dataclass(frozen=True, slots=True)
class ValueType:
    """`arrow`: the type. `fields`: those of a record. `item`: the type of list items or of a map's values.

    `is_union`: the fields are the types of a union, and one of them is not null."""

    arrow: Any
    fields: tuple[ValueField, ...] = ()
    item: "ValueType | None" = None
    is_union: bool = False

    def field(self, name: str) -> ValueField:
        return next(each for each in self.fields if each.name == name)


def struct_of(fields: tuple[ValueField, ...]) -> ValueType:
    return ValueType(pa.struct([pa.field(each.name, each.type.arrow) for each in fields]), fields)


def union_of(types: Iterable[ValueType]) -> ValueType:
    """Return the type of a union, as Spark's `from_avro` has it: a struct of member0, member1, …"""
    fields = tuple(ValueField(f"member{index}", each, None) for index, each in enumerate(types))
    return replace(struct_of(fields), is_union=True)


def list_of(item: ValueType) -> ValueType:
    return ValueType(pa.list_(pa.field("element", item.arrow)), (), item)


def map_of(item: ValueType, key: Any = None) -> ValueType:
    """`key`: the Arrow type of keys; None is text."""
    return ValueType(map_type(pa.string() if key is None else key, item.arrow), (), item)


def map_type(key: Any, value: Any, nullable: bool = True) -> Any:
    """Return the type of a map with the names that Spark gives to its parts."""
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value, nullable=nullable))


# --- from type to type ------------------------------------------------------------------------------


def conform(array: Any, target: Any, reader: ValueType | None = None, where: str = "value") -> Any:
    """Return the array as one of the Arrow type `target`.

    `reader`: where the defaults of fields come from that the array lacks; without it they are null. Raises
    `UnfitError`, and Arrow's errors for values beyond the range of their new type.
    """
    source = array.type
    if source == target:
        return array
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _conform_struct(array, target, reader, where)
    if _is_list(source) and pa.types.is_list(target):
        inner = None if reader is None else reader.item
        items = _conform_items(array.values, target.value_field, inner, f"{where}[]")
        return pa.ListArray.from_arrays(_offsets(array), items, target, mask=_nulls(array))
    if pa.types.is_map(source) and pa.types.is_map(target):
        inner = None if reader is None else reader.item
        keys = conform(array.keys, target.key_type, None, f"{where} (key)")
        items = _conform_items(array.items, target.item_field, inner, f"{where}[]")
        return pa.MapArray.from_arrays(_offsets(array), keys, items, target, mask=_nulls(array))
    safe = _cast(source, target)
    if safe is None:
        raise UnfitError(f"{where}: {_words(source)} where {_words(target)} is wanted")
    return array.cast(target, safe=safe)


def check_members(source: ValueType, target: Any, where: str = "value") -> None:
    """Raise `UnfitError` where a union in the type `source` has a member that `target` lacks."""
    if pa.types.is_struct(target):
        for field in source.fields:
            place = f"{where}.{field.name}"
            if target.get_field_index(field.name) >= 0:
                check_members(field.type, target.field(field.name).type, place)
            elif source.is_union:
                raise UnfitError(f"{place}: a type of a union that the reader lacks")
    elif source.item is not None:
        check_members(source.item, target.field(target.num_fields - 1).type, f"{where}[]")


def check_fit(source: Any, target: Any, reader: ValueType | None = None, where: str = "value") -> None:
    """Raise `UnfitError` where no array of the type `source` can become one of `target`."""
    conform(pa.array([], source), target, reader, where)


def physical(arrow: Any) -> Any:
    """Return the type with dates and timestamps as the numbers that Avro and JSON write."""
    if pa.types.is_struct(arrow):
        return pa.struct([each.with_type(physical(each.type)) for each in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(physical(arrow.value_type)))
    if pa.types.is_map(arrow):
        return map_type(arrow.key_type, physical(arrow.item_type), arrow.item_field.nullable)
    if pa.types.is_timestamp(arrow):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(arrow) else arrow


def _conform_struct(array: Any, target: Any, reader: ValueType | None, where: str) -> Any:
    source = array.type
    nulls = _nulls(array)
    children = []
    for field in target:
        place = f"{where}.{field.name}"
        index = source.get_field_index(field.name)
        known = None if reader is None else reader.field(field.name)
        if index >= 0:
            child = conform(array.field(index), field.type, None if known is None else known.type, place)
        else:
            child = _absent(len(array), field.type, known, place)
        if not field.nullable and _has_null(child, nulls):
            raise UnfitError(f"{place}: null where NOT NULL is wanted")
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=nulls)


def _absent(count: int, target: Any, known: ValueField | None, where: str) -> Any:
    """Return the values of a field that the writer lacks."""
    default = None if known is None else known.default
    if default is NEEDED:
        raise UnfitError(f"{where}: the field is missing, and has no default")
    if default is None or known is None:
        return pa.nulls(count, target)
    return conform(pa.repeat(pa.scalar(default, known.type.arrow), count), target, known.type, where)


def _conform_items(items: Any, field: Any, reader: ValueType | None, where: str) -> Any:
    found = conform(items, field.type, reader, where)
    if not field.nullable and found.null_count:
        raise UnfitError(f"{where}: null where NOT NULL is wanted")
    return found


def _has_null(child: Any, nulls: Any) -> bool:
    """True if a value is null whose record is not."""
    if not child.null_count:
        return False
    return nulls is None or bool(pc.any(pc.and_not(child.is_null(), nulls)).as_py())


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _offsets(array: Any) -> Any:
    """Return the offsets of a list or map that may be a slice of another, in memory of their own."""
    return pa.array(array.offsets.to_numpy())


def _is_list(arrow: Any) -> bool:
    return pa.types.is_list(arrow) or pa.types.is_large_list(arrow)


_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())
_BYTES = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _cast(source: Any, target: Any) -> bool | None:
    """Return the argument `safe` of Arrow's cast; None where the one does not become the other."""
    if source in _INTEGERS and target in _INTEGERS:
        return True if _INTEGERS.index(target) >= _INTEGERS.index(source) else None
    if target in _FLOATS and (source in _INTEGERS or source == pa.float32()):
        return False  # Avro's promotions may round
    if source in _BYTES and target in _BYTES:
        return True
    if pa.types.is_timestamp(source):
        return _cast_timestamp(source, target)
    if pa.types.is_date32(source):
        return True if target == pa.int32() else None
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        digits = target.precision - target.scale >= source.precision - source.scale
        return True if digits and target.scale >= source.scale else None
    return None


def _cast_timestamp(source: Any, target: Any) -> bool | None:
    if target == pa.int64():
        return True
    if not pa.types.is_timestamp(target) or (source.tz is None) is not (target.tz is None):
        return None
    return not (source.unit == "us" and target.unit == "ms")  # microseconds are dropped, as Pulsar does


def _words(arrow: Any) -> str:
    """Return the type in Spark's words; Arrow's where Spark has none."""
    from .spark_types import ddl_of

    return ddl_of(arrow)
