"""Faults in commands: in every field of every command, in every way that the wire allows.

A *case* is a command, a way to one of its fields, and a mutation that applies there. `cases()` lists them
all, so that a run can say that it has been everywhere; beyond that, seeds combine them. Frames as a whole
have mutations of their own. `payloads` makes the bytes behind SEND and MESSAGE.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from fuzz.draws import Draws
from fuzz.trees import (
    END_GROUP,
    FIXED32,
    FIXED64,
    LENGTH,
    START_GROUP,
    TYPES,
    VARINT,
    Descriptor,
    Known,
    Piece,
    Tree,
    descriptor_of,
    encode,
    make_piece,
    make_tree,
    paths_of,
    varint,
    wrap,
)

Field = FieldDescriptor

HUGE = (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
NEGATIVE = (-1, -2, -(2**31), -(2**31) - 1, -(2**63))
LENGTHS = (1, 127, 2**14, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
"""Lengths that a field claims, or claims too much."""

MANY = 100
"""Repetitions of a field; messages of protobuf cost far more in memory than on the wire."""

DEEP = 150
"""Messages inside messages, beyond what any decoder accepts."""

LONG = 3000
"""Bytes of a text or blob where a few are expected."""

# --- mutations of one field ---------------------------------------------------------------------------
# Each changes `tree`, in which a piece of `field` stands at `place`.

Mutation = Callable[[Tree, int, Field, Draws, Known], None]


def _bytes_of(piece: Piece) -> bytes:
    content = piece.content
    if isinstance(content, int):
        return varint(content)
    return content if isinstance(content, bytes) else encode(content)


def _drop(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree[:] = [piece for piece in tree if piece.number != field.number]


def _duplicate(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree.insert(place, tree[place])


def _contradict(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """The same field a second time, with another value."""
    tree.insert(draws.below(len(tree) + 1), make_piece(field, draws, known))


def _swap(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """Exchange the content of a field with that of another field of this message."""
    other = draws.below(len(tree))
    mine, theirs = tree[place], tree[other]
    tree[place] = Piece(mine.number, theirs.wire_type, theirs.content)
    tree[other] = Piece(theirs.number, mine.wire_type, mine.content)


def _reverse(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree.reverse()


def _huge(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree[place] = Piece(field.number, VARINT, draws.choice(HUGE))


def _negative(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree[place] = Piece(field.number, VARINT, draws.choice(NEGATIVE))


def _near(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """A neighbour of a value that means something."""
    value = draws.choice([value for value in known.get(field.name, ()) if isinstance(value, int)] or [1])
    tree[place] = Piece(field.number, VARINT, value + draws.choice((-1, 1, 2, 1000)))


def _overlong(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """A varint of more bytes than it needs, or of more than there may be."""
    zeros = draws.choice(
        (b"\x80" * 4 + b"\0", b"\x80" * 9 + b"\0", b"\xff" * 9 + b"\x7f", b"\xff" * 11, b"\xff")
    )
    tree[place] = Piece(field.number, VARINT, zeros)


def _no_enum(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    last = max(value.number for value in field.enum_type.values) if field.enum_type is not None else 1
    tree[place] = Piece(field.number, VARINT, draws.choice((last + 1, 127, 2**31 - 1, -1)))


def _long_length(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """Make a field claim more bytes than it has."""
    data = _bytes_of(tree[place])
    tree[place] = Piece(field.number, LENGTH, data, len(data) + draws.choice(LENGTHS))


def _short_length(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """Make a field claim fewer bytes than it has: what follows is read as fields."""
    data = _bytes_of(tree[place])
    tree[place] = Piece(field.number, LENGTH, data, len(data) // 2)


def _truncated(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """Make a field end early, and say so truthfully."""
    data = _bytes_of(tree[place])
    tree[place] = Piece(field.number, LENGTH, data[: draws.below(len(data) + 1)])


def _empty(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree[place] = Piece(field.number, LENGTH, b"")


def _long(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree[place] = Piece(field.number, LENGTH, draws.choice((b"x", b"\0", b"/", b"(", b"-partition-9")) * LONG)


def _not_utf8(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    data = draws.choice((b"\xff", b"a\xc0\x80", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82"))
    tree[place] = Piece(field.number, LENGTH, data)


def _wire_type(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    kind = draws.choice((VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32, 6, 7))
    tree[place] = Piece(field.number, kind, draws.choice((b"", b"\0", b"\x08\x01", b"\0" * 8)))


def _packed(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    numbers = b"".join(varint(draws.choice((*HUGE, *NEGATIVE, 0, 1))) for _ in range(draws.below(12)))
    tree[place] = Piece(field.number, LENGTH, numbers + draws.choice((b"", b"", b"\x80")))


def _many(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    tree[place:place] = [tree[place]] * MANY


def _deep(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """The same field inside itself, over and over, or groups inside groups."""
    if draws.chance(50):
        data = b""
        for _ in range(DEEP):
            data = varint(field.number << 3 | LENGTH) + varint(len(data)) + data
        tree[place] = Piece(field.number, LENGTH, data)
    else:
        opened, closed = varint(field.number << 3 | START_GROUP), varint(field.number << 3 | END_GROUP)
        tree.append(Piece(field.number, START_GROUP, opened * DEEP + closed * (DEEP + draws.below(3))))


def _stranger(tree: Tree, place: int, field: Field, draws: Draws, known: Known) -> None:
    """A field that the schema does not have, or that cannot be."""
    number = draws.choice((0, 99, 15999, 19000, 2**29 - 1, 2**29, 2**60))
    tree.insert(place, Piece(number, draws.choice((VARINT, LENGTH)), draws.choice((b"\x01", b"\x02ab", b""))))


_NUMBERS = frozenset(
    (
        Field.TYPE_INT32,
        Field.TYPE_INT64,
        Field.TYPE_UINT32,
        Field.TYPE_UINT64,
        Field.TYPE_BOOL,
        Field.TYPE_ENUM,
    )
)
_WITH_LENGTH = frozenset((Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_MESSAGE))


def _is_number(field: Field) -> bool:
    return field.type in _NUMBERS


def _has_length(field: Field) -> bool:
    return field.type in _WITH_LENGTH


def _always(field: Field) -> bool:
    return True


MUTATIONS: dict[str, tuple[Mutation, Callable[[Field], bool]]] = {
    "drop": (_drop, _always),
    "duplicate": (_duplicate, _always),
    "contradict": (_contradict, _always),
    "swap": (_swap, _always),
    "reverse": (_reverse, _always),
    "huge number": (_huge, _is_number),
    "negative number": (_negative, _is_number),
    "near number": (_near, _is_number),
    "overlong number": (_overlong, _is_number),
    "no value of the enum": (_no_enum, lambda field: field.enum_type is not None),
    "length too long": (_long_length, _always),
    "length too short": (_short_length, _has_length),
    "truncated": (_truncated, _has_length),
    "empty": (_empty, _has_length),
    "long": (_long, lambda field: _has_length(field) and field.message_type is None),
    "not UTF-8": (_not_utf8, lambda field: field.type == Field.TYPE_STRING),
    "wire type": (_wire_type, _always),
    "packed": (_packed, lambda field: _is_number(field) and field.is_repeated),
    "many": (_many, _always),
    "deep": (_deep, lambda field: field.message_type is not None),
    "stranger": (_stranger, _always),
}
"""The mutations by name: the function that does it, and a test for the fields that it applies to."""


class Case(NamedTuple):
    """One way to go wrong: in the command with this number, the field at the end of `path`."""

    number: int
    path: tuple[Field, ...]
    mutation: str

    def __str__(self) -> str:
        way = ".".join(field.name for field in self.path)
        return f"{descriptor_of(self.number).name}.{way}: {self.mutation}"


FieldCase = tuple[tuple[Field, ...], str]


def cases_of(descriptor: Descriptor) -> tuple[FieldCase, ...]:
    """Every field of a message, with every mutation that applies to it."""
    return tuple(
        (path, name)
        for path in paths_of(descriptor)
        for name, (_, applies) in MUTATIONS.items()
        if applies(path[-1])
    )


@lru_cache(maxsize=1)
def cases() -> tuple[Case, ...]:
    """The cases of every command of the schema."""
    return tuple(
        Case(number, path, name) for number in TYPES for path, name in cases_of(descriptor_of(number))
    )


def mutate(tree: Tree, path: tuple[Field, ...], name: str, draws: Draws, known: Known) -> None:
    """Apply a mutation to a tree. Missing fields on the way are made first."""
    depth = 0
    for field in path[:-1]:
        depth += 1
        piece = tree[_find(tree, field, draws, known, depth)]
        if not isinstance(piece.content, list):
            piece.content = make_tree(field.message_type, draws, known, depth)
        tree = piece.content
    field = path[-1]
    MUTATIONS[name][0](tree, _find(tree, field, draws, known, depth + 1), field, draws, known)


def _find(tree: Tree, field: Field, draws: Draws, known: Known, depth: int) -> int:
    for place, piece in enumerate(tree):
        if piece.number == field.number:
            return place
    tree.append(make_piece(field, draws, known, depth))
    return len(tree) - 1


def mutated_command(case: Case, draws: Draws, known: Known) -> Tree:
    """A legal command to which the case was done."""
    tree = make_tree(descriptor_of(case.number), draws, known)
    mutate(tree, case.path, case.mutation, draws, known)
    return wrap(case.number, tree)


def legal_command(number: int, draws: Draws, known: Known) -> Tree:
    """A command with nothing wrong in its form. That it was not asked for may be wrong enough."""
    return wrap(number, make_tree(descriptor_of(number), draws, known))


# --- frames ------------------------------------------------------------------------------------------


def frame(command: bytes, behind: bytes = b"") -> bytes:
    """Sizes, command, and headers and payload."""
    return (
        (len(command) + 4 + len(behind)).to_bytes(4, "big")
        + len(command).to_bytes(4, "big")
        + command
        + behind
    )


def _sizes(total: int, command: int, whole: bytes) -> bytes:
    return (total % 2**32).to_bytes(4, "big") + (command % 2**32).to_bytes(4, "big") + whole[8:]


def _total_of(whole: bytes) -> int:
    return int.from_bytes(whole[:4], "big")


def _command_of(whole: bytes) -> int:
    return int.from_bytes(whole[4:8], "big")


FrameMutation = Callable[[bytes, Draws], bytes]

FRAME_MUTATIONS: dict[str, FrameMutation] = {
    "total size off": lambda whole, draws: _sizes(
        _total_of(whole) + draws.choice((-9, -5, -1, 1, 4, 200)), _command_of(whole), whole
    ),
    "total size huge": lambda whole, draws: _sizes(draws.choice(HUGE), _command_of(whole), whole),
    "total size tiny": lambda whole, draws: _sizes(draws.below(8), _command_of(whole), whole),
    "command size off": lambda whole, draws: _sizes(
        _total_of(whole), _command_of(whole) + draws.choice((-9, -2, -1, 1, 2, 9)), whole
    ),
    "command size huge": lambda whole, draws: _sizes(_total_of(whole), draws.choice(HUGE), whole),
    "command size zero": lambda whole, draws: _sizes(_total_of(whole), 0, whole),
    "cut short": lambda whole, draws: whole[: draws.below(len(whole))],
    "something behind": lambda whole, draws: (
        _sizes(_total_of(whole) + 5, _command_of(whole), whole) + b"extra"
    ),
    "another type": lambda whole, draws: whole[:8] + b"\x08" + varint(draws.choice(TYPES)) + whole[10:],
    "no type": lambda whole, draws: frame(whole[10:]),
    "type of the future": lambda whole, draws: frame(b"\x08" + varint(draws.choice((1, 69, 100, 2**31 - 1)))),
    "two types": lambda whole, draws: frame(whole[8:] + b"\x08" + varint(draws.choice(TYPES))),
    "bits flipped": lambda whole, draws: _flip(whole, draws),
    "bytes from nowhere": lambda whole, draws: draws.blob(draws.below(40)),
    "another protocol": lambda whole, draws: draws.choice(
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 64, b"\xff" * 64)
    ),
    "empty frame": lambda whole, draws: b"\0\0\0\4\0\0\0\0",
}
"""Faults of a whole frame with any command in it, by name."""


def _flip(whole: bytes, draws: Draws) -> bytes:
    changed = bytearray(whole)
    for _ in range(draws.between(1, 4)):
        changed[draws.below(len(changed))] ^= 1 << draws.below(8)
    return bytes(changed)
