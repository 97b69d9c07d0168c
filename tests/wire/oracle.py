"""Protobuf as the oracle: arbitrary messages of the schema, and every way their bytes may be written.

`messages(cls)` gives messages with any of their fields. `written(cls)` gives bytes whose meaning is that of
two such messages merged: fields in any order, scalars repeated, repeated numbers packed or not, unknown
fields in between. What they mean is what protobuf's own parser says. `damaged(cls)` gives such bytes after
an accident.

A message has dozens of fields, and drawing each by hypothesis would take most of a test's time; so
hypothesis draws a seed, and everything else follows from it.
"""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from hypothesis import strategies as st

_T = TypeVar("_T")

_RANGES = {
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
}

_EDGES = [0, 1, 127, 128, 16383, 16384, 2**28 - 1, 2**28, 2**31 - 1, 2**31, 2**63 - 1, 2**63]
_LETTERS = "ab é€😀\0"


def _seeded(make: Callable[[Random], _T]) -> st.SearchStrategy[_T]:
    return st.integers(0, 2**64 - 1).map(lambda seed: make(Random(seed)))


# --- messages --------------------------------------------------------------------------------------


def messages(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Complete messages with any of the optional fields."""
    return _seeded(lambda random: _message(random, cls))


def _number(random: Random, low: int, high: int) -> int:
    number = random.choice(_EDGES) * random.choice([1, 1, -1])
    return number if low <= number <= high and random.random() < 0.7 else random.randint(low, high)


def _bytes(random: Random, most: int = 6) -> bytes:
    return random.randbytes(random.choice([0, 1, random.randrange(most + 1)]))


def _value(random: Random, field: Any, depth: int) -> Any:
    if field.type in _RANGES:
        return _number(random, *_RANGES[field.type])
    if field.type == FieldDescriptor.TYPE_ENUM:
        return random.choice(field.enum_type.values).number
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return random.choice([0.0, -1.5, 1e300])
    if field.type == FieldDescriptor.TYPE_BOOL:
        return random.random() < 0.5
    if field.type == FieldDescriptor.TYPE_STRING:
        return "".join(random.choices(_LETTERS, k=random.choice([0, 1, 5, 5, 70])))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(random)
    assert field.type == FieldDescriptor.TYPE_MESSAGE
    return _message(random, field.message_type._concrete_class, depth + 1)


def _message(random: Random, cls: type[Any], depth: int = 0) -> Any:
    message = cls()
    share = random.choice([0.1, 0.5, 0.9])
    for field in cls.DESCRIPTOR.fields:
        if not field.is_required and (
            random.random() > share or (field.message_type is not None and depth > 1)
        ):
            continue
        if field.is_repeated:
            for _ in range(random.randrange(1, 4)):
                if field.message_type is not None:
                    getattr(message, field.name).add().CopyFrom(_value(random, field, depth))
                else:
                    getattr(message, field.name).append(_value(random, field, depth))
        elif field.message_type is not None:
            getattr(message, field.name).CopyFrom(_value(random, field, depth))
        else:
            setattr(message, field.name, _value(random, field, depth))
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


def _unknown_field(random: Random) -> tuple[int, bytes]:
    """A field that no message of this schema has, of any wire type."""
    number = random.choice([100, 2**29 - 1, random.randrange(100, 2**29)])
    wire_type = random.choice([0, 1, 2, 3, 5])
    if wire_type == 0:
        content = varint(_number(random, 0, 2**64 - 1))
    elif wire_type == 2:
        content = _bytes(random, 9)
        content = varint(len(content)) + content
    elif wire_type == 3:
        content = random.choice([b"", b"\x08\x01", b"\x0b\x0c", b"\x12\x01x", b"\x0d1234"])
        content += varint(number << 3 | 4)
    else:
        content = random.randbytes(8 if wire_type == 1 else 4)
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


def written(cls: type[Any]) -> st.SearchStrategy[Written]:
    """Bytes of a message as a strange but legal peer might write them."""
    return _seeded(lambda random: _written(random, cls))


def _written(random: Random, cls: type[Any]) -> Written:
    fields = pieces(_message(random, cls).SerializeToString())
    if random.random() < 0.7:
        fields += pieces(_message(random, cls).SerializeToString())
        random.shuffle(fields)
    for _ in range(random.choice([0, 0, 1, 2])):
        fields.insert(random.randrange(len(fields) + 1), _unknown_field(random))
    fields = [_packed(cls, *field) if random.random() < 0.3 else field for field in fields]
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
    """Read `data` with protobuf; return None when it is malformed or a required field is missing."""
    message: Message = cls()
    try:
        message.MergeFromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() else None


def text(value: str | bytes) -> str:
    """Text as the hand-written code gives it: protobuf returns bytes when they are not UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def optional(message: Any, name: str) -> Any:
    """The field's value, or None when it is absent."""
    return getattr(message, name) if message.HasField(name) else None


# --- damage ----------------------------------------------------------------------------------------


def damaged(cls: type[Any]) -> st.SearchStrategy[bytes]:
    """Bytes of a message in which something was cut, changed, dropped or doubled."""
    return _seeded(lambda random: _damaged(random, cls))


def _damaged(random: Random, cls: type[Any]) -> bytes:
    data = bytearray(_written(random, cls).data)
    for _ in range(random.randrange(1, 4)):
        if not data:
            break
        position = random.randrange(len(data))
        match random.choice(["cut", "change", "drop", "insert", "repeat"]):
            case "cut":
                del data[position:]
            case "change":
                data[position] = random.choice(
                    [0, 1, 0x7F, 0x80, 0xFF, data[position] ^ 0x80, random.randrange(256)]
                )
            case "drop":
                del data[position]
            case "insert":
                data[position:position] = random.choice([b"\x80", b"\xff" * 9, b"\x0b", _bytes(random, 11)])
            case _:
                data[position:position] = data[position : position + random.randrange(1, 9)]
    return bytes(data)
