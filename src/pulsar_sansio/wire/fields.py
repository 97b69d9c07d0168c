"""Fields of protobuf messages by table: the general codec of the hot messages.

A message is described once, as a list of `Field`s; `Layout` makes of it a reader that fills a dictionary
and a writer that empties one. Presence is membership: a field that was on the wire is in the dictionary,
default or not. What the table does not know is kept as it came. Reading is exactly as strict as
protobuf's own parser, with two differences that a peer's bytes can show:

* text that is not UTF-8 is kept with surrogate escapes (protobuf for Python returns bytes instead);
* an enum value the schema does not know stays a number (protobuf hides it).

Knows nothing of frames, and nothing of which messages exist.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..model.errors import FrameError, InvalidMessage
from .varint import encode_varint, read_varint

_MAX_NESTING = 100
"""Groups inside groups that a reader accepts; as protobuf's own."""

# --- conversions between wire and Python -----------------------------------------------------------


def signed_64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _signed_32(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def _unsigned_32(value: int) -> int:
    return value & 0xFFFF_FFFF


def decode_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def encode_text(text: str) -> bytes:
    """Raises `InvalidMessage` for text that has no UTF-8 form (a lone surrogate)."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"text cannot be written as UTF-8: {error}") from None


def _write_text(value: str) -> bytes:
    data = encode_text(value)
    return encode_varint(len(data)) + data


def _write_bytes(value: bytes) -> bytes:
    return encode_varint(len(value)) + value


def _write_bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


class Kind(NamedTuple):
    """The functions that read values of a type (from a varint, or the bytes of the field) and write them."""

    wire_type: int
    read: Callable[[Any], Any] | None
    """The function that reads a value; None where the number is the value."""
    write: Callable[[Any], bytes]


UINT64 = Kind(0, None, encode_varint)
INT64 = Kind(0, signed_64, encode_varint)
INT32 = Kind(0, _signed_32, encode_varint)
UINT32 = Kind(0, _unsigned_32, encode_varint)
ENUM = INT32
BOOL = Kind(0, bool, _write_bool)
TEXT = Kind(2, decode_text, _write_text)
BYTES = Kind(2, None, _write_bytes)


def message_kind(read: Callable[[bytes], Any], write: Callable[[Any], bytes]) -> Kind:
    """A message inside a message, read from and written to its bytes."""
    return Kind(2, read, lambda value: _write_bytes(write(value)))


class Field(NamedTuple):
    number: int
    name: str
    kind: Kind
    required: bool = False
    repeated: bool = False
    merged: bool = False
    """A single message inside: occurrences are concatenated, which is how protobuf merges them."""


# --- the codec -------------------------------------------------------------------------------------


class Layout:
    """Reads and writes the fields of one message."""

    __slots__ = ("_readers", "_required", "_writers", "message")

    def __init__(self, message: str, fields: list[Field]) -> None:
        self.message = message
        self._readers: dict[int, tuple[str, Callable[[Any], Any] | None, int]] = {}
        self._writers: dict[str, tuple[int, str, bytes, Callable[[Any], bytes], bool]] = {}
        self._required = [field.name for field in fields if field.required]
        for field in fields:
            tag = field.number << 3 | field.kind.wire_type
            how = _REPEATED if field.repeated else _MERGED if field.merged else _SINGLE
            self._readers[tag] = (field.name, field.kind.read, how)
            if field.repeated and field.kind.wire_type == 0:
                self._readers[field.number << 3 | 2] = (field.name, field.kind.read, _PACKED)
            self._writers[field.name] = (
                field.number,
                field.name,
                encode_varint(tag),
                field.kind.write,
                field.repeated,
            )

    def decode(self, data: bytes, start: int, end: int) -> tuple[dict[str, Any], bytes]:
        """The fields between `start` and `end`, and the bytes of those the table does not know.

        Raises `FrameError` when they are malformed or a required one is missing.
        """
        values, unknown = self.decode_part(data, start, end)
        for name in self._required:
            if name not in values:
                raise FrameError(f"{self.message} without its required field {name}")
        return values, unknown

    def decode_part(self, data: bytes, start: int, end: int) -> tuple[dict[str, Any], bytes]:
        """Decode bytes that are only a part of a message: as `decode`, but required fields may be absent."""
        values: dict[str, Any] = {}
        try:
            unknown = self._decode(data, start, end, values)
        except IndexError:
            raise FrameError(f"{self.message} ends inside a field") from None
        return values, unknown

    def _decode(self, data: bytes, start: int, end: int, values: dict[str, Any]) -> bytes:
        position = start
        readers = self._readers
        unknown: list[bytes] = []
        merged: dict[str, list[bytes]] = {}
        while position < end:
            field_start = position
            tag = data[position]
            position += 1
            if tag > 0x7F:
                byte = data[position]
                if byte < 0x80:
                    tag = tag & 0x7F | byte << 7
                    position += 1
                else:
                    tag, position = _read_tag(data, field_start)
            reader = readers.get(tag)
            if reader is None:
                position = _skip(data, position, end, tag, 0)
                if position <= end:
                    unknown.append(data[field_start:position])
                continue
            name, read, how = reader
            value: Any
            value = data[position]
            position += 1
            if value > 0x7F:
                byte = data[position]
                if byte < 0x80:
                    value = value & 0x7F | byte << 7
                    position += 1
                else:
                    value, position = read_varint(data, position - 1)
            if tag & 7:
                if position + value > end:
                    raise IndexError
                if how == _PACKED:
                    unpacked = _unpack(data, position, position + value, read)
                    if unpacked:  # nothing in it is as if it were not there
                        values.setdefault(name, []).extend(unpacked)
                    position += value
                    continue
                content = data[position : position + value]
                position += value
                value = content
            if read is not None:
                value = read(value)
            if how == _SINGLE:
                values[name] = value
            elif how == _MERGED:
                merged.setdefault(name, []).append(value)
            else:
                values.setdefault(name, []).append(value)
        if position != end:
            raise FrameError(f"{self.message} ends inside a field")
        for name, occurrences in merged.items():
            if len(occurrences) > 1:
                for occurrence in occurrences:
                    _check_fields(occurrence)
            values[name] = b"".join(occurrences)
        return b"".join(unknown)

    def encode(self, values: dict[str, Any], unknown: bytes = b"") -> bytes:
        """The fields in the order of their numbers, then `unknown`. A value of None is left out."""
        parts: list[bytes] = []
        for _, name, tag, write, repeated in sorted(map(self._writers.__getitem__, values)):
            value = values[name]
            if repeated:
                for item in value:
                    parts += (tag, write(item))
            elif value is not None:
                parts += (tag, write(value))
        if unknown:
            parts.append(unknown)
        return b"".join(parts)


_SINGLE, _REPEATED, _PACKED, _MERGED = range(4)


def _unpack(data: bytes, position: int, end: int, read: Callable[[Any], Any] | None) -> list[Any]:
    values = []
    while position < end:
        value, position = read_varint(data, position)
        values.append(value if read is None else read(value))
    if position != end:
        raise FrameError("a packed field ends inside a number")
    return values


def _check_fields(data: bytes) -> None:
    """Raises unless `data` are whole fields: they must not need the next occurrence for that."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _read_tag(data, position)
        position = _skip(data, position, end, tag, 0)
    if position != end:
        raise IndexError


def _read_tag(data: bytes, position: int) -> tuple[int, int]:
    tag, behind = read_varint(data, position)
    if behind - position > 5 or tag >> 32:
        raise FrameError("a field's tag is longer than 32 bits")
    return tag, behind


def _skip(data: bytes, position: int, end: int, tag: int, depth: int) -> int:
    """The position behind a field the table does not know; may lie behind `end`."""
    wire_type = tag & 7
    if tag < 8 and not depth:  # inside of a skipped group protobuf accepts it
        raise FrameError("a field has the number 0")
    if wire_type == 0:
        return read_varint(data, position)[1]
    if wire_type == 1:
        return position + 8
    if wire_type == 2:
        size, position = read_varint(data, position)
        return position + size
    if wire_type == 5:
        return position + 4
    if wire_type == 3 and depth < _MAX_NESTING:
        while position < end:
            inner, position = _read_tag(data, position)
            if inner & 7 == 4:
                if inner >> 3 != tag >> 3:
                    break
                return position
            position = _skip(data, position, end, inner, depth + 1)
    raise FrameError("a field has a wire type that does not exist, or a group does not end")
