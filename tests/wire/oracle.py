"""Protobuf as the oracle: arbitrary messages of the schema, and every way their bytes may be written.

`messages(cls)` draws a message with any of its fields. `written(cls)` draws bytes whose meaning is that of
two such messages merged: fields in any order, scalars repeated, repeated numbers packed or not, unknown
fields in between. What they mean is what protobuf's own parser says.
"""

from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from hypothesis import strategies as st

_RANGES = {
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
}

_texts = st.text(st.characters(codec="utf-8"), max_size=6)


def _numbers(low: int, high: int) -> st.SearchStrategy[int]:
    edges = [
        n for n in (low, -1, 0, 1, 127, 128, 16383, 16384, 2**28, 2**31, 2**63, high) if low <= n <= high
    ]
    return st.sampled_from(edges) | st.integers(low, high)


def _values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    if field.type in _RANGES:
        return _numbers(*_RANGES[field.type])
    if field.type == FieldDescriptor.TYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BOOL:
        return st.booleans()
    if field.type == FieldDescriptor.TYPE_STRING:
        return _texts
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=6)
    assert field.type == FieldDescriptor.TYPE_MESSAGE
    return messages(field.message_type._concrete_class, depth + 1)


@st.composite
def messages(draw: st.DrawFn, cls: type[Any], depth: int = 0) -> Any:
    """A complete message with any of its optional fields."""
    message = cls()
    for field in cls.DESCRIPTOR.fields:
        if field.message_type is not None and depth > 1:
            continue
        values = _values(field, depth)
        if field.is_repeated:
            for value in draw(st.lists(values, max_size=3)):
                if field.message_type is not None:
                    getattr(message, field.name).add().CopyFrom(value)
                else:
                    getattr(message, field.name).append(value)
        elif field.is_required or draw(st.booleans()):
            if field.message_type is not None:
                getattr(message, field.name).CopyFrom(draw(values))
            else:
                setattr(message, field.name, draw(values))
    return message


# --- bytes -----------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    value %= 2**64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def pieces(data: bytes) -> list[tuple[int, bytes]]:
    """The fields of a well-formed message that protobuf wrote: number and bytes with the tag."""
    found = []
    position = 0
    while position < len(data):
        start = position
        tag, position = _read_varint(data, position)
        value, position = _read_varint(data, position)
        if tag & 7 == 2:
            position += value
        found.append((tag >> 3, data[start:position]))
    return found


@st.composite
def unknown_fields(draw: st.DrawFn) -> tuple[int, bytes]:
    """A field that no message of this schema has, of any wire type."""
    number = draw(st.integers(100, 2**29 - 1))
    wire_type = draw(st.sampled_from([0, 1, 2, 3, 5]))
    if wire_type == 0:
        content = varint(draw(st.integers(0, 2**64 - 1)))
    elif wire_type == 2:
        content = draw(st.binary(max_size=9))
        content = varint(len(content)) + content
    elif wire_type == 3:
        content = draw(st.sampled_from([b"", b"\x08\x01", b"\x0b\x0c", b"\x12\x01x"])) + varint(
            number << 3 | 4
        )
    else:
        size = 8 if wire_type == 1 else 4
        content = draw(st.binary(min_size=size, max_size=size))
    return number, varint(number << 3 | wire_type) + content


class Written(NamedTuple):
    data: bytes
    fields: list[tuple[int, bytes]]
    """The fields in the order in which they stand in `data`."""
    meaning: Any
    """The message protobuf reads from `data`."""

    def unknown(self, known: set[int]) -> bytes:
        """The fields whose numbers are not in `known`, as they stand."""
        return b"".join(data for number, data in self.fields if number not in known)


@st.composite
def written(draw: st.DrawFn, cls: type[Any], pack: bool = True) -> Written:
    """Bytes of a message as a strange but legal peer might write them."""
    fields = pieces(draw(messages(cls)).SerializeToString())
    fields += pieces(draw(messages(cls)).SerializeToString())
    fields += draw(st.lists(unknown_fields(), max_size=2))
    fields = draw(st.permutations(fields))
    if pack:
        fields = [
            _packed(cls, number, data) if draw(st.booleans()) else (number, data) for number, data in fields
        ]
    data = b"".join(data for _, data in fields)
    meaning = read(cls, data)
    assert meaning is not None
    return Written(data, fields, meaning)


def _packed(cls: type[Any], number: int, data: bytes) -> tuple[int, bytes]:
    field = cls.DESCRIPTOR.fields_by_number.get(number)
    if field is None or not field.is_repeated or field.type not in _RANGES:
        return number, data
    content = data[len(varint(number << 3)) :]
    return number, varint(number << 3 | 2) + varint(len(content)) + content


def read(cls: type[Any], data: bytes) -> Any:
    """What protobuf reads from `data`; None when it is malformed or a required field is missing."""
    message: Message = cls()
    try:
        message.MergeFromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() else None


def text(value: str | bytes) -> str:
    """Text as the hand-written code gives it: protobuf hands out bytes when they are not UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def optional(message: Any, name: str) -> Any:
    """The field's value, or None when it is absent."""
    return getattr(message, name) if message.HasField(name) else None


# --- damage ----------------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn, cls: type[Any]) -> bytes:
    """Bytes that were a message until somebody cut, changed, dropped or doubled something."""
    data = bytearray(draw(written(cls)).data)
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        position = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["cut", "change", "drop", "insert"])):
            case "cut":
                del data[position:]
            case "change":
                data[position] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, data[position] ^ 0x80]))
            case "drop":
                del data[position]
            case _:
                data[position:position] = draw(st.binary(min_size=1, max_size=11))
    return bytes(data)
