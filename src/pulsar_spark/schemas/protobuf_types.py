"""Messages of protobuf as structs of Spark, by their descriptors; and structs as messages.

Fields that tell whether they are set (messages, `optional`, members of a oneof) are null where they are not;
others have protobuf's default. Unsigned numbers have a type that holds them all. `google.protobuf.Timestamp`
is a moment.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from pulsar_sansio import SchemaDecodingError
from pulsar_sansio.schemas import SchemaInfo
from pulsar_sansio.schemas.protobuf_schema import message_class_of

from .avro_types import MOST_FIELDS, NoSparkTypeError
from .value_types import UnfitError, ValueField, ValueType, list_of, map_of, struct_of

_TYPES = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}

_MOMENT = "google.protobuf.Timestamp"

Read = Callable[[Any], Any]
"""Makes plain data of a value of a message's field."""

Write = Callable[[Any], Any]
"""Makes what a message's field takes of plain data."""


def message_class(info: SchemaInfo) -> type:
    """Return the class of a definition's messages. Raises `NoSparkTypeError` for a wrong definition."""
    try:
        return message_class_of(info)
    except SchemaDecodingError as error:
        raise NoSparkTypeError(str(error)) from None


class MessageType:
    """The struct of one kind of message. `type`: of values.

    Raises `NoSparkTypeError` for a kind that Spark has no type for.
    """

    def __init__(self, model: type) -> None:
        self._model = model
        descriptor: Any = model.DESCRIPTOR  # type: ignore[attr-defined]
        fields = _Fields()
        self.type = fields.struct(descriptor, "value")
        self._read = _reader(descriptor)
        self._write = _writer(descriptor)

    def read(self, message: Any) -> Any:
        """Return a message's fields as data for Arrow."""
        return self._read(message)

    def write(self, value: Any) -> bytes:
        """Return the payload of a struct. Raises `UnfitError` for a value that the message cannot have."""
        message = self._model()
        self._write(value, message)
        payload: bytes = message.SerializeToString()
        return payload


class _Fields:
    """The types of fields; and the messages whose fields are being looked at."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._count = 0

    def struct(self, descriptor: Any, where: str) -> ValueType:
        name = descriptor.full_name
        if name == _MOMENT:
            return ValueType(pa.timestamp("us", tz="UTC"))
        if name in self._open:
            raise NoSparkTypeError(
                f"{where}: recursive, {name} holds itself, and Spark's types have an end. Read bytes, and "
                "use from_protobuf with its option recursive.fields.max.depth"
            )
        if not descriptor.fields:
            raise NoSparkTypeError(f"{where}: {name}, a message without fields")
        self._count += len(descriptor.fields)
        if self._count > MOST_FIELDS:
            raise NoSparkTypeError(f"{where}: a type of more than {MOST_FIELDS} fields")
        self._open.append(name)
        fields = [
            ValueField(each.name, self._of(each, f"{where}.{each.name}"), None) for each in descriptor.fields
        ]
        self._open.pop()
        return struct_of(tuple(fields))

    def _of(self, field: Any, where: str) -> ValueType:
        if _is_map(field):
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            return map_of(self._single(value, f"{where}[]"), self._single(key, where).arrow)
        single = self._single(field, where)
        return list_of(single) if field.is_repeated else single

    def _single(self, field: Any, where: str) -> ValueType:
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            return self.struct(field.message_type, where)
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return ValueType(pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string())
        return ValueType(_TYPES[field.cpp_type])


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and kind.GetOptions().map_entry


# --- from messages to data ----------------------------------------------------------------------------


def _reader(descriptor: Any) -> Read:
    if descriptor.full_name == _MOMENT:
        return _microseconds
    fields = [(each.name, each.has_presence, _field_reader(each)) for each in descriptor.fields]

    def read(message: Any) -> dict[str, Any]:
        return {
            name: None if has_presence and not message.HasField(name) else convert(getattr(message, name))
            for name, has_presence, convert in fields
        }

    return read


def _field_reader(field: Any) -> Read:
    if _is_map(field):
        key, value = (_single_reader(field.message_type.fields_by_name[name]) for name in ("key", "value"))
        return lambda found: [(key(each), value(found[each])) for each in found]
    convert = _single_reader(field)
    return (lambda found: [convert(each) for each in found]) if field.is_repeated else convert


def _single_reader(field: Any) -> Read:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return _reader(field.message_type)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    return _same


def _same(value: Any) -> Any:
    return value


def _microseconds(moment: Any) -> int:
    return int(moment.seconds) * 1_000_000 + int(moment.nanos) // 1000


# --- from data to messages ----------------------------------------------------------------------------


def _writer(descriptor: Any) -> Callable[[Any, Any], None]:
    """Return what sets the fields of a message by data."""
    if descriptor.full_name == _MOMENT:
        return _set_moment
    setters = [(each.name, _setter(each)) for each in descriptor.fields]
    oneofs = [[each.name for each in group.fields] for group in descriptor.oneofs if len(group.fields) > 1]
    required = [each.name for each in descriptor.fields if each.is_required]

    def write(value: Any, message: Any) -> None:
        for names in oneofs:
            given = [name for name in names if value[name] is not None]
            if len(given) > 1:
                raise UnfitError(f"{descriptor.full_name}: {' and '.join(given)} of one oneof")
        for name in required:
            if value[name] is None:
                raise UnfitError(f"{descriptor.full_name}.{name}: null, and the field is required")
        for name, setter in setters:
            if value[name] is not None:
                setter(message, value[name])

    return write


def _setter(field: Any) -> Callable[[Any, Any], None]:
    name = field.name
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
        key_of = _single_writer(key)
        if value.message_type is not None:
            fill = _writer(value.message_type)

            def set_messages(message: Any, pairs: Any) -> None:
                there = getattr(message, name)
                for one, data in _present(pairs, field, lambda pair: pair[1]):
                    fill(data, there[key_of(one)])

            return set_messages
        value_of = _single_writer(value)

        def set_pairs(message: Any, pairs: Any) -> None:
            there = getattr(message, name)
            for one, data in _present(pairs, field, lambda pair: pair[1]):
                _try(field, partial(there.__setitem__, key_of(one), value_of(data)))

        return set_pairs
    if field.message_type is not None:
        fill = _writer(field.message_type)
        if field.is_repeated:

            def add(message: Any, items: Any) -> None:
                there = getattr(message, name)
                for each in _present(items, field):
                    fill(each, there.add())

            return add

        def set_message(message: Any, data: Any) -> None:
            inner = getattr(message, name)
            inner.SetInParent()
            fill(data, inner)

        return set_message
    convert = _single_writer(field)
    if field.is_repeated:
        return lambda message, items: _try(
            field, lambda: getattr(message, name).extend(convert(each) for each in _present(items, field))
        )
    return lambda message, data: _try(field, lambda: setattr(message, name, convert(data)))


def _present(items: Iterable[Any], field: Any, part: Callable[[Any], Any] = _same) -> Iterable[Any]:
    for each in items:
        if part(each) is None:
            raise UnfitError(f"{field.full_name}: null in a list or map, which protobuf has not")
        yield each


def _single_writer(field: Any) -> Write:
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}

        def number_of(name: str) -> int:
            try:
                return numbers[name] if name in numbers else int(name)
            except ValueError:
                raise UnfitError(f"{field.full_name}: {name!r:.40} is none of its values") from None

        return number_of
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return int
    return _same


def _try(field: Any, action: Callable[[], Any]) -> None:
    """Set a field. Raises `UnfitError` for a value beyond the field's range."""
    try:
        action()
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, UnfitError):
            raise
        raise UnfitError(f"{field.full_name}: {error}"[:300]) from None


def _set_moment(value: Any, message: Any) -> None:
    """`value`: microseconds since 1970."""
    message.seconds, micros = divmod(value, 1_000_000)
    message.nanos = micros * 1000
