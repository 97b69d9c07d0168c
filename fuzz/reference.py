"""Compares the readers that the library has written by hand with protobuf's own parser.

The hand-written readers promise to be exactly as strict as protobuf, with two exceptions. They keep text that
is not UTF-8, and they show values of enums that the schema does not know. So both parsers must accept the
same bytes, and read the same from them.
"""

from typing import Any

from google.protobuf.message import DecodeError

from pulsar_sansio.wire import bits_from_words, proto


def parse(kind: type[Any], data: bytes) -> Any | None:
    """A complete message, or None for bytes that are none."""
    message = kind()
    try:
        message.MergeFromString(data)
    except DecodeError:
        return None
    return message if message.IsInitialized() else None


def same_fields(record: Any, message: Any) -> None:
    """Every field that protobuf found has the same value in `record`; the others are as if they were not
    set. Asserts."""
    for field in message.DESCRIPTOR.fields:
        mine = getattr(record, field.name)
        theirs = getattr(message, field.name)
        if field.is_repeated:
            assert [_plain(value) for value in theirs] == [_bare(value) for value in mine], field.name
        elif field.enum_type is not None and mine not in field.enum_type.values_by_number:
            pass  # protobuf hides it, and shows a known one that came before it
        elif message.HasField(field.name):
            assert _bare(mine) == _plain(theirs), field.name
        else:
            assert mine is None or _bare(mine) == _plain(theirs), field.name


def _plain(value: Any) -> Any:
    """A value of protobuf in plain form: messages as tuples of their fields, text as bytes."""
    if hasattr(value, "DESCRIPTOR"):
        return tuple(
            tuple(_plain(item) for item in getattr(value, field.name))
            if field.is_repeated
            else _plain(getattr(value, field.name))
            for field in value.DESCRIPTOR.fields
        )
    return value.encode() if isinstance(value, str) else value


def _bare(value: Any) -> Any:
    """A value of the library in plain form: records are tuples already, text becomes bytes."""
    if isinstance(value, tuple):
        return tuple(_bare(item) for item in value)
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def same_messages(mine: Any, theirs: Any) -> None:
    """Two messages of one kind mean the same: a field that is not set is its default. Asserts."""
    for field in theirs.DESCRIPTOR.fields:
        left, right = getattr(mine, field.name), getattr(theirs, field.name)
        if field.name == "ack_set":
            # A set: zero words at the end say nothing. No word at all says that there is no set.
            assert bool(left) == bool(right)
            assert bits_from_words(left) == bits_from_words(right)
        elif field.message_type is None:
            assert (list(left) == list(right)) if field.is_repeated else left == right, field.name
        elif field.is_repeated:
            assert len(left) == len(right), field.name
            for one, other in zip(left, right, strict=True):
                same_messages(one, other)
        else:
            assert mine.HasField(field.name) == theirs.HasField(field.name), field.name
            if mine.HasField(field.name):
                same_messages(left, right)


COMMAND_FIELDS: dict[int, str] = {
    field.number: field.name
    for field in proto.BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
}


def parse_command(data: bytes) -> tuple[int, Any] | None:
    """The type and the command in the bytes of a BaseCommand; None for bytes that are none, or where the
    command of the type is missing."""
    base = proto.BaseCommand()
    try:
        base.MergeFromString(data)
    except DecodeError:
        return None
    if not base.HasField("type") or not base.IsInitialized():
        return None
    name = COMMAND_FIELDS[base.type]
    return (base.type, getattr(base, name)) if base.HasField(name) else None


def split(payload: bytes, count: int) -> list[tuple[Any, bytes]] | None:
    """The headers and payloads of a batch, read one by one; None where they are not exactly `count`."""
    members: list[tuple[Any, bytes]] = []
    position = 0
    while position < len(payload) and len(members) < count:
        header = position + 4
        end = header + int.from_bytes(payload[position:header], "big")
        single = parse(proto.SingleMessageMetadata, payload[header:end])
        if single is None or single.payload_size < 0 or header > len(payload) or end > len(payload):
            return None
        position = end + single.payload_size
        if position > len(payload):
            return None
        members.append((single, payload[end:position]))
    return members if len(members) == count and position == len(payload) else None
