"""MESSAGE by hand: the command of every message on its way to the consumer.

The commands that a consumer sends in return are in `receiver_commands`.

It is an immutable record whose `encode()` gives the whole frame; `encode_…` does the same without a
record. `decode_…` takes a command out of its BaseCommand. A short loop reads the fields real peers write,
in any order; the general way by table takes over at any other field. It raises `FrameError` for a malformed
or incomplete command, and `IndexError` where the data end early.

The record keeps fields without an attribute as bytes in `rest`, those of the position inside it in
`position_rest`. `encode` writes them back at the end.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..ack_sets import bits_from_words, words_from_bits
from ..fields import BYTES, INT64, UINT32, UINT64, Field, Layout, signed_64
from ..messages.decode_cache import LONGEST_NUMBER, LONGEST_REMEMBERED, cut, make_room, reader
from ..positions import MINUS_ONE, take_position
from ..varint import VALUE_OF_CONTINUED, VALUE_OF_SMALL, encode_varint, read_varint
from .command_frame import JOIN_LIMIT, MESSAGE, build_frame, command_tag

_MESSAGE_TAG = command_tag(MESSAGE)
_new_tuple = tuple.__new__


class MessageCommand(NamedTuple):
    """An entry on its way from broker to consumer (WIRE-11)."""

    consumer_id: int
    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = -1
    redelivery_count: int = 0
    ack_set: int | None = None
    """The messages of the batch that the consumer delivers, bit i for message i; None is all of them."""
    consumer_epoch: int | None = None
    payload: bytes = b""
    """Headers and payload: everything behind the command, as the broker stored it."""
    rest: bytes = b""
    position_rest: bytes = b""

    def encode(self) -> bytes:
        """The whole frame."""
        head = _message_head(*self[:8], len(self.payload), self.rest, self.position_rest)
        return head + self.payload


_MESSAGE = Layout(
    "CommandMessage",
    [
        Field(1, "consumer_id", UINT64, required=True),
        Field(2, "message_id", BYTES, required=True, merged=True),
        Field(3, "redelivery_count", UINT32),
        Field(4, "ack_set", INT64, repeated=True),
        Field(5, "consumer_epoch", UINT64),
    ],
)


def _message_head(
    consumer_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int,
    batch_index: int,
    redelivery_count: int,
    ack_set: int | None,
    consumer_epoch: int | None,
    size: int,
    rest: bytes = b"",
    position_rest: bytes = b"",
) -> bytes:
    position = (
        b"\x08"
        + encode_varint(ledger_id)
        + b"\x10"
        + encode_varint(entry_id)
        + b"\x18"
        + (MINUS_ONE if partition == -1 else encode_varint(partition))
    )
    if batch_index != -1:
        position += b"\x20" + encode_varint(batch_index)
    if position_rest:
        position += position_rest
    body = b"\x08" + encode_varint(consumer_id) + b"\x12" + encode_varint(len(position)) + position
    if redelivery_count:
        body += b"\x18" + encode_varint(redelivery_count)
    if ack_set is not None:
        body += b"".join(b"\x20" + encode_varint(word) for word in words_from_bits(ack_set) or [0])
    if consumer_epoch is not None:
        body += b"\x28" + encode_varint(consumer_epoch)
    return build_frame(_MESSAGE_TAG, body + rest, size)


def encode_message(
    consumer_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int = -1,
    batch_index: int = -1,
    redelivery_count: int = 0,
    ack_set: int | None = None,
    consumer_epoch: int | None = None,
    stored: bytes = b"",
) -> list[bytes]:
    """A MESSAGE frame in chunks. `stored`: headers and payload, as the producer sent them.

    The partition is always written, also -1, as the Java broker does.
    """
    head = _message_head(
        consumer_id,
        ledger_id,
        entry_id,
        partition,
        batch_index,
        redelivery_count,
        ack_set,
        consumer_epoch,
        len(stored),
    )
    return [head + stored] if len(stored) <= JOIN_LIMIT else [head, stored]


# Entries for one consumer from one ledger differ in the entry's number alone. The decoder remembers the
# bytes before and behind it (see `likeness_of`).


class Facts(NamedTuple):
    """The values that are the same in commands that look alike."""

    consumer_id: int
    ledger_id: int
    partition: int
    redelivery_count: int
    consumer_epoch: int | None


class DecodeCache(NamedTuple):
    """The remembered form of commands that look alike."""

    size: int
    read: Callable[[bytes, int], tuple[Any, ...]]
    """Reads: front, two lower bytes of the entry's number if it has more than two, the other bytes, back."""
    front: bytes
    back: bytes
    facts: Facts
    sizes: tuple[int, int, int]
    """The bytes of front, of the entry's number, and of back."""


_likenesses: dict[bytes, DecodeCache] = {}


def likeness_of(data: bytes, position: int) -> DecodeCache | None:
    """Find the form that the command at `position` probably has: a remembered one that begins like it.

    Gives None where the decoder remembers no such form.
    """
    return _likenesses.get(data[position : position + 6])


def decode_message(data: bytes, position: int, end: int, frame_end: int) -> MessageCommand:
    likeness = _likenesses.get(data[position : position + 6])
    if likeness is not None and position + likeness[0] == end:
        _, read, front, back, facts, _ = likeness
        found_front, low, high, found_back = read(data, position)
        if found_front == front and found_back == back:
            entry_id = VALUE_OF_SMALL.get(high)
            if low and entry_id is not None:
                entry_id = (entry_id << 14) + VALUE_OF_CONTINUED.get(low, -(1 << 30))
            if entry_id is not None and entry_id >= 0:
                consumer_id, ledger_id, partition, redelivery_count, epoch = facts
                return _new_tuple(
                    MessageCommand,
                    (
                        consumer_id,
                        ledger_id,
                        entry_id,
                        partition,
                        -1,
                        redelivery_count,
                        None,
                        epoch,
                        data[end:frame_end],
                        b"",
                        b"",
                    ),
                )
    return _decode_usual_message(data, position, end, data[end:frame_end])


def _remember(data: bytes, start: int, entry_start: int, end: int, command: MessageCommand) -> None:
    entry_end = read_varint(data, entry_start)[1]
    length = entry_end - entry_start
    if length > LONGEST_NUMBER or end - start > LONGEST_REMEMBERED:
        return
    make_room(_likenesses)
    _likenesses[data[start : start + 6]] = DecodeCache(
        end - start,
        reader(entry_start - start, *cut(length), end - entry_end),
        data[start:entry_start],
        data[entry_end:end],
        Facts(
            command.consumer_id,
            command.ledger_id,
            command.partition,
            command.redelivery_count,
            command.consumer_epoch,
        ),
        (entry_start - start, length, end - entry_end),
    )


def _decode_usual_message(data: bytes, position: int, end: int, payload: bytes) -> MessageCommand:
    start = position
    consumer_id = ledger_id = entry_id = epoch = None
    partition = -1
    redelivery_count = 0
    entry_start = 0
    while position < end:
        tag = data[position]
        value = data[position + 1]
        position += 2
        if value > 0x7F:
            if tag & 1:  # of another wire type: what follows is no varint
                return _decode_any_message(data, start, end, payload)
            value, position = read_varint(data, position - 1)
        if tag == 0x08:
            consumer_id = value
        elif tag == 0x12 and ledger_id is None:
            position_end = position + value
            while position < position_end:
                tag = data[position]
                value = data[position + 1]
                position += 2
                value_start = position - 1
                if value > 0x7F:
                    if tag & 1:
                        return _decode_any_message(data, start, end, payload)
                    byte = data[position]
                    if byte < 0x80:
                        value = value & 0x7F | byte << 7
                        position += 1
                    elif tag == 0x18 and data.startswith(MINUS_ONE, position - 1):
                        partition = -1
                        position += 9
                        continue
                    else:
                        value, position = read_varint(data, position - 1)
                if tag == 0x08:
                    ledger_id = value
                elif tag == 0x10:
                    entry_id = value
                    entry_start = value_start
                elif tag == 0x18 and value < 1 << 31:
                    partition = value
                else:
                    return _decode_any_message(data, start, end, payload)
            if position != position_end:
                return _decode_any_message(data, start, end, payload)
        elif tag == 0x18 and value < 1 << 32:
            redelivery_count = value
        elif tag == 0x28:
            epoch = value
        else:
            return _decode_any_message(data, start, end, payload)
    if position != end or consumer_id is None or ledger_id is None or entry_id is None:
        return _decode_any_message(data, start, end, payload)
    if ledger_id >> 63 or entry_id >> 63:
        ledger_id = signed_64(ledger_id)
        entry_id = signed_64(entry_id)
    command = MessageCommand(
        consumer_id, ledger_id, entry_id, partition, -1, redelivery_count, None, epoch, payload
    )
    _remember(data, start, entry_start, end, command)
    return command


def _decode_any_message(data: bytes, start: int, end: int, payload: bytes) -> MessageCommand:
    values, rest = _MESSAGE.decode(data, start, end)
    (ledger_id, entry_id, partition, batch_index), position_rest = take_position(
        values["message_id"], "ledger_id", "entry_id", "partition", "batch_index"
    )
    words = values.get("ack_set")
    return MessageCommand(
        values["consumer_id"],
        ledger_id,
        entry_id,
        -1 if partition is None else partition,
        -1 if batch_index is None else batch_index,
        values.get("redelivery_count", 0),
        None if words is None else bits_from_words(words),
        values.get("consumer_epoch"),
        payload,
        rest,
        position_rest,
    )
