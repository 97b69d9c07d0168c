"""Protobuf messages as trees of pieces, so that anything can be done to them before they become bytes.

A protobuf object holds only what its schema allows. A tree is what the wire holds: a list of pieces, each
with a field number, a wire type and a content, in any order, any number of times. Trees are made from the
descriptors of the wire schema, with values that mean something to the peer where such are known.

Knows no machine and no frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, Union

from google.protobuf.descriptor import FieldDescriptor

from fuzz.draws import Draws
from pulsar_sansio.wire import encode_varint, proto

Descriptor: TypeAlias = Any
"""The descriptor of a message. Each of protobuf's two implementations has a class of its own for it."""

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)
"""Wire types. 6 and 7 do not exist."""

MAX_DEPTH = 4
"""Messages inside messages that are made here; deeper ones are a mutation."""


@dataclass(slots=True)
class Piece:
    """One field as it stands on the wire.

    `content`: an int (varint), bytes (any wire type, written as they are; with LENGTH their length first), or
    a tree. `length`: what is written instead of the true length.
    """

    number: int
    wire_type: int
    content: Union[int, bytes, "Tree"]
    length: int | None = None


Tree = list[Piece]

Known = Mapping[str, Sequence[Any]]
"""Values that mean something to the peer just now, by field name."""


def varint(value: int) -> bytes:
    """The varint of any number, modulo 2^64."""
    return encode_varint(value & (1 << 64) - 1)


def encode(tree: Tree) -> bytes:
    """The bytes of a tree."""
    parts: list[bytes] = []
    for piece in tree:
        parts.append(varint(piece.number << 3 | piece.wire_type))
        content = piece.content
        if isinstance(content, int):
            parts.append(varint(content))
            continue
        data = content if isinstance(content, bytes) else encode(content)
        if piece.wire_type == LENGTH:
            parts.append(varint(len(data) if piece.length is None else piece.length))
        parts.append(data)
    return b"".join(parts)


# --- values ------------------------------------------------------------------------------------------

TEXTS = (
    "",
    "t",
    "s",
    "persistent://public/default/t",
    "non-persistent://public/default/n",
    "a/b",
    "persistent://public/default/t-partition-3",
    "x" * 300,
    "é\U0001f600\u202e",
    "a\x00b\n",
    "pulsar://other:6650",
    "nonsense://",
    ".*",
    "(a+)+$",
)

NUMBERS = (0, 1, 2, 3, 7, 100, 1000)


@cache
def fields_of(descriptor: Descriptor) -> tuple[FieldDescriptor, ...]:
    return tuple(descriptor.fields)


_FIXED: dict[int, tuple[int, int]] = {
    FieldDescriptor.TYPE_DOUBLE: (FIXED64, 8),
    FieldDescriptor.TYPE_FIXED64: (FIXED64, 8),
    FieldDescriptor.TYPE_SFIXED64: (FIXED64, 8),
    FieldDescriptor.TYPE_FLOAT: (FIXED32, 4),
    FieldDescriptor.TYPE_FIXED32: (FIXED32, 4),
    FieldDescriptor.TYPE_SFIXED32: (FIXED32, 4),
}

_TEXT, _BYTES, _BOOL = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_BOOL


def make_piece(field: FieldDescriptor, draws: Draws, known: Known, depth: int = 0) -> Piece:
    """A legal value of a field: mostly one that means something to the peer."""
    if field.message_type is not None:
        return Piece(field.number, LENGTH, make_tree(field.message_type, draws, known, depth + 1))
    values = known.get(field.name)
    value: Any
    if values and draws.chance(80):
        value = draws.choice(values)
    elif field.enum_type is not None:
        value = draws.choice(field.enum_type.values).number
    elif field.type in _FIXED:
        wire_type, size = _FIXED[field.type]
        return Piece(field.number, wire_type, draws.blob(size))
    elif field.type == _TEXT:
        value = draws.choice(TEXTS)
    elif field.type == _BYTES:
        value = draws.blob(draws.below(5))
    else:
        value = draws.below(2) if field.type == _BOOL else draws.choice(NUMBERS)
    if isinstance(value, str):
        return Piece(field.number, LENGTH, value.encode())
    return Piece(field.number, LENGTH if isinstance(value, bytes) else VARINT, value)


def make_tree(descriptor: Descriptor, draws: Draws, known: Known, depth: int = 0) -> Tree:
    """A legal message: all that is required, and some of the rest."""
    tree: Tree = []
    for field in fields_of(descriptor):
        if field.message_type is not None and depth >= MAX_DEPTH and not field.is_required:
            continue
        if field.is_repeated:
            for _ in range(draws.below(3)):
                tree.append(make_piece(field, draws, known, depth))
        elif field.is_required or draws.chance(40):
            tree.append(make_piece(field, draws, known, depth))
    return tree


# --- commands ----------------------------------------------------------------------------------------

TYPES: tuple[int, ...] = tuple(
    sorted(field.number for field in proto.BaseCommand.DESCRIPTOR.fields if field.message_type is not None)
)
"""Every command of the schema: its number in BaseCommand.Type, which also is its field's."""

NAMES: dict[int, str] = {number: proto.BaseCommand.Type.Name(number) for number in TYPES}


def descriptor_of(number: int) -> Descriptor:
    """The descriptor of the command with this number."""
    return proto.BaseCommand.DESCRIPTOR.fields_by_number[number].message_type


def wrap(number: int, command: Tree) -> Tree:
    """The BaseCommand around a command."""
    return [Piece(1, VARINT, number), Piece(number, LENGTH, command)]


def paths_of(descriptor: Descriptor, depth: int = 3) -> list[tuple[FieldDescriptor, ...]]:
    """Every field of a message and of the messages in it, as the way that leads to it."""
    found: list[tuple[FieldDescriptor, ...]] = []
    for field in fields_of(descriptor):
        found.append((field,))
        if field.message_type is not None and depth > 1:
            found += [(field, *inner) for inner in paths_of(field.message_type, depth - 1)]
    return found
