"""MESSAGE, ACK and FLOW by hand: the commands of every message on its way to the consumer.

Each is an immutable record whose `encode()` gives the whole frame; `encode_…` do the same without a
record. `decode_…` take a command out of its BaseCommand: a short loop for the fields real peers write, in
any order, and the general way by table as soon as anything else turns up. They raise `FrameError` for
what is malformed or incomplete, and `IndexError` where the data end early.

Fields a record has no attribute for are kept as bytes in `rest`, those of the position inside it in
`position_rest`, and written back at the end.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..model.errors import FrameError
from .ack_sets import bits_from_words, words_from_bits
from .command_frame import (
    ACK,
    FLOW,
    JOIN_LIMIT,
    MESSAGE,
    build_frame,
    check_no_payload,
    command_tag,
)
from .fields import BYTES, ENUM, INT64, TEXT, UINT32, UINT64, Field, Layout, message_kind, signed_64
from .likeness import LONGEST_NUMBER, LONGEST_REMEMBERED, cut, make_room, reader
from .positions import MINUS_ONE, take_position, write_words
from .varint import (
    CONTINUED_VARINTS,
    SMALL_VARINTS,
    VALUE_OF_CONTINUED,
    VALUE_OF_SMALL,
    encode_varint,
    read_varint,
)

INDIVIDUAL, CUMULATIVE = 0, 1
"""CommandAck.AckType."""

PositionAck = tuple[int, int, int | None]
"""Ledger, entry and the acknowledgement set: bit i set means message i is still unacknowledged; None
acknowledges the whole entry."""

_MESSAGE_TAG, _ACK_TAG, _FLOW_TAG = map(command_tag, (MESSAGE, ACK, FLOW))
_new_tuple = tuple.__new__

# --- MESSAGE ---------------------------------------------------------------------------------------


class MessageCommand(NamedTuple):
    """An entry on its way from broker to consumer (WIRE-11)."""

    consumer_id: int
    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = -1
    redelivery_count: int = 0
    ack_set: int | None = None
    """Which messages of the batch to deliver, bit i for message i; None is all of them."""
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


# Entries for one consumer from one ledger differ in the entry's number alone: what stands before it and
# behind it is remembered (see `likeness`).


class Facts(NamedTuple):
    """What is the same in commands that look alike."""

    consumer_id: int
    ledger_id: int
    partition: int
    redelivery_count: int
    consumer_epoch: int | None


class Likeness(NamedTuple):
    """What commands of one kind look like."""

    size: int
    read: Callable[[bytes, int], tuple[Any, ...]]
    """Reads: front, two lower bytes of the entry's number if it has more than two, the other bytes, back."""
    front: bytes
    back: bytes
    facts: Facts
    sizes: tuple[int, int, int]
    """Of front, the entry's number, and back."""


_likenesses: dict[bytes, Likeness] = {}


def likeness_of(data: bytes, position: int) -> Likeness | None:
    """What the command at `position` probably looks like, if something is remembered that begins like it."""
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
    _likenesses[data[start : start + 6]] = Likeness(
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


# --- ACK -------------------------------------------------------------------------------------------


class Ack(NamedTuple):
    """Acknowledgements, from consumer to broker (WIRE-12)."""

    consumer_id: int
    ack_type: int
    """INDIVIDUAL or CUMULATIVE; with the latter there is exactly one position."""
    message_ids: list[PositionAck]
    validation_error: int | None = None
    """CommandAck.ValidationError, when the message was thrown away unread."""
    request_id: int | None = None
    """Present asks for an ACK_RESPONSE."""
    txnid_least_bits: int | None = None
    txnid_most_bits: int | None = None
    properties: Sequence[tuple[str, int]] = ()
    """Only the compactor's own consumer writes them."""
    rest: bytes = b""
    position_rest: Mapping[int, bytes] = {}
    """By index in `message_ids`, for those that have more fields."""

    def encode(self) -> bytes:
        """The whole frame."""
        return encode_ack(*self)


_PROPERTY = Layout(
    "KeyLongValue", [Field(1, "key", TEXT, required=True), Field(2, "value", UINT64, required=True)]
)


def _read_property(data: bytes) -> tuple[str, int]:
    values, _ = _PROPERTY.decode(data, 0, len(data))
    return values["key"], values["value"]


def _write_property(pair: tuple[str, int]) -> bytes:
    return _PROPERTY.encode({"key": pair[0], "value": pair[1]})


_ACK = Layout(
    "CommandAck",
    [
        Field(1, "consumer_id", UINT64, required=True),
        Field(2, "ack_type", ENUM, required=True),
        Field(3, "message_ids", BYTES, repeated=True),
        Field(4, "validation_error", ENUM),
        Field(5, "properties", message_kind(_read_property, _write_property), repeated=True),
        Field(6, "txnid_least_bits", UINT64),
        Field(7, "txnid_most_bits", UINT64),
        Field(8, "request_id", UINT64),
    ],
)


def encode_ack(
    consumer_id: int,
    ack_type: int,
    message_ids: Sequence[PositionAck],
    validation_error: int | None = None,
    request_id: int | None = None,
    txnid_least_bits: int | None = None,
    txnid_most_bits: int | None = None,
    properties: Sequence[tuple[str, int]] = (),
    rest: bytes = b"",
    position_rest: Mapping[int, bytes] = {},
) -> bytes:
    """An ACK frame for any number of positions."""
    parts = [b"\x08" + encode_varint(consumer_id) + b"\x10" + encode_varint(ack_type)]
    last_ledger = None
    ledger = b""
    # Of a whole entry, all in front of its number is the same for numbers of one length: 0.2 µs an id.
    heads: list[bytes] = []
    small, continued = SMALL_VARINTS, CONTINUED_VARINTS
    for ledger_id, entry_id, ack_set in message_ids:
        if ledger_id != last_ledger:
            ledger = b"\x08" + encode_varint(ledger_id) + b"\x10"
            heads = [_POSITION_HEADS[len(ledger) + length] + ledger for length in range(11)]
            last_ledger = ledger_id
        if 0 <= entry_id < 1 << 28:
            if entry_id < 16384:
                entry = small[entry_id]
            else:
                entry = continued[entry_id & 0x3FFF] + small[entry_id >> 14]
        else:
            entry = encode_varint(entry_id)
        if ack_set is None and not position_rest:
            parts.append(heads[len(entry)] + entry)
            continue
        position = ledger + entry
        if ack_set is not None:
            position += write_words(ack_set)
        if position_rest:
            position += position_rest.get(len(parts) - 1, b"")
        size = len(position)
        parts.append(
            _POSITION_HEADS[size] + position if size < 128 else b"\x1a" + encode_varint(size) + position
        )
    if validation_error is not None:
        parts.append(b"\x20" + encode_varint(validation_error))
    if properties:
        parts.append(_ACK.encode({"properties": properties}))
    for tag, value in (
        (b"\x30", txnid_least_bits),
        (b"\x38", txnid_most_bits),
        (b"\x40", request_id),
    ):
        if value is not None:
            parts.append(tag + encode_varint(value))
    if rest:
        parts.append(rest)
    return build_frame(_ACK_TAG, b"".join(parts))


_POSITION_HEADS = [b"\x1a" + SMALL_VARINTS[size] for size in range(128)]


def decode_ack(data: bytes, position: int, end: int, frame_end: int) -> Ack:
    check_no_payload(ACK, end, frame_end)
    start = position
    consumer_id = ack_type = request_id = None
    message_ids: list[PositionAck] = []
    while position < end:
        tag = data[position]
        value = data[position + 1]
        position += 2
        if value > 0x7F:
            value, position = read_varint(data, position - 1)
        if tag == 0x1A:
            position_end = position + value
            if data[position] != 0x08:
                return _decode_any_ack(data, start, end)
            ledger_id, position = read_varint(data, position + 1)
            if data[position] != 0x10:
                return _decode_any_ack(data, start, end)
            entry_id, position = read_varint(data, position + 1)
            ack_set = None
            if position < position_end:
                words: list[int] = []
                while position < position_end and data[position] == 0x28:
                    word, position = read_varint(data, position + 1)
                    words.append(word)
                ack_set = bits_from_words(words)
            if position != position_end or ledger_id >> 63 or entry_id >> 63:
                return _decode_any_ack(data, start, end)
            message_ids.append((ledger_id, entry_id, ack_set))
        elif tag == 0x08:
            consumer_id = value
        elif tag == 0x10:
            ack_type = value
        elif tag == 0x40:
            request_id = value
        else:
            return _decode_any_ack(data, start, end)
    if position != end or consumer_id is None or (ack_type != INDIVIDUAL and ack_type != CUMULATIVE):
        return _decode_any_ack(data, start, end)
    return Ack(consumer_id, ack_type, message_ids, None, request_id)


def _decode_any_ack(data: bytes, start: int, end: int) -> Ack:
    values, rest = _ACK.decode(data, start, end)
    if values["ack_type"] not in (INDIVIDUAL, CUMULATIVE):
        raise FrameError(f"CommandAck with the unknown ack_type {values['ack_type']}")
    message_ids: list[PositionAck] = []
    others: dict[int, bytes] = {}
    for index, item in enumerate(values.pop("message_ids", ())):
        (ledger_id, entry_id, words), other = take_position(item, "ledger_id", "entry_id", "ack_set")
        message_ids.append((ledger_id, entry_id, None if words is None else bits_from_words(words)))
        if other:
            others[index] = other
    return Ack(**values, message_ids=message_ids, rest=rest, position_rest=others)


# --- FLOW ------------------------------------------------------------------------------------------


class Flow(NamedTuple):
    """The consumer takes this many messages more (WIRE-10)."""

    consumer_id: int
    message_permits: int
    rest: bytes = b""

    def encode(self) -> bytes:
        """The whole frame."""
        return encode_flow(*self)


_FLOW = Layout(
    "CommandFlow",
    [
        Field(1, "consumer_id", UINT64, required=True),
        Field(2, "message_permits", UINT32, required=True),
    ],
)


def encode_flow(consumer_id: int, message_permits: int, rest: bytes = b"") -> bytes:
    """A FLOW frame."""
    body = b"\x08" + encode_varint(consumer_id) + b"\x10" + encode_varint(message_permits) + rest
    return build_frame(_FLOW_TAG, body)


def decode_flow(data: bytes, position: int, end: int, frame_end: int) -> Flow:
    check_no_payload(FLOW, end, frame_end)
    if data[position] == 0x08:
        consumer_id, at = read_varint(data, position + 1)
        if at < end and data[at] == 0x10:
            permits, at = read_varint(data, at + 1)
            if at == end and not permits >> 32:
                return Flow(consumer_id, permits)
    values, rest = _FLOW.decode(data, position, end)
    return Flow(values["consumer_id"], values["message_permits"], rest)
