"""The five commands that come with every message, by hand: SEND, MESSAGE, SEND_RECEIPT, ACK and FLOW.

Each is an immutable record; its `encode()` gives the whole frame. The functions `encode_…` do the same
without a record, for the paths that run once per message. `decode_…` read a command out of its
BaseCommand: a short loop for the fields real peers write, in any order, and the general way by table as
soon as anything else turns up.

Ledger and entry numbers are signed here: what the wire calls 2^64-1 is -1 ("none", "dropped"). Fields a
record has no attribute for are kept as bytes in `rest`, those of the position inside it in
`position_rest`, and written back at the end. Knows nothing of the frames around a command but their sizes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..model.errors import FrameError
from .ack_sets import bits_from_words, words_from_bits
from .fields import BOOL, BYTES, ENUM, INT32, INT64, UINT32, UINT64, Field, Kind, Layout, signed_64
from .varint import SMALL_VARINTS, encode_varint, read_varint

SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW = 6, 7, 9, 10, 11
"""Numbers in BaseCommand.Type, and of the commands' fields in BaseCommand."""

INDIVIDUAL, CUMULATIVE = 0, 1
"""CommandAck.AckType."""

_JOIN_LIMIT = 16 * 1024
"""Bytes up to which copying a payload behind its command is cheaper than handing on two chunks."""

_MINUS_ONE = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
"""The varint of -1: the partition that brokers write for topics without partitions."""

PositionAck = tuple[int, int, int | None]
"""Ledger, entry and the acknowledgement set: bit i set means message i is still unacknowledged; None
acknowledges the whole entry."""

# --- frames around commands ------------------------------------------------------------------------


def _command_tag(number: int) -> bytes:
    """What precedes a command in its BaseCommand: the type, and the tag of its field."""
    return b"\x08" + encode_varint(number) + encode_varint(number << 3 | 2)


_SEND_TAG, _SEND_RECEIPT_TAG, _MESSAGE_TAG, _ACK_TAG, _FLOW_TAG = map(
    _command_tag, (SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW)
)


def _frame(tag: bytes, body: bytes, payload_size: int = 0) -> bytes:
    """A frame up to the end of its command; `payload_size` bytes of headers and payload follow it."""
    size = len(body)
    command = tag + (SMALL_VARINTS[size] if size < 16384 else encode_varint(size)) + body
    size = len(command)
    return (size + 4 + payload_size << 32 | size).to_bytes(8, "big") + command


def frame_command(number: int, body: bytes) -> bytes:
    """The simple frame of the command with this number in BaseCommand.Type."""
    return _frame(_command_tag(number), body)


# --- positions -------------------------------------------------------------------------------------

_SIGNED_64 = Kind(0, signed_64, encode_varint)

_POSITION = Layout(
    "MessageIdData",
    [
        Field(1, "ledger_id", _SIGNED_64, required=True),
        Field(2, "entry_id", _SIGNED_64, required=True),
        Field(3, "partition", INT32),
        Field(4, "batch_index", INT32),
        Field(5, "ack_set", INT64, repeated=True),
        Field(6, "batch_size", INT32),
        Field(7, "first_chunk_message_id", BYTES, merged=True),
    ],
)


def decode_position(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The fields of a MessageIdData and the unknown ones; `FrameError` when malformed or incomplete."""
    values, unknown = _POSITION.decode(data, 0, len(data))
    if "first_chunk_message_id" in values:
        decode_position(values["first_chunk_message_id"])
    return values, unknown


def _take_position(data: bytes, *names: str) -> tuple[list[Any], bytes]:
    """The named fields of a position (None where absent), and the others as bytes."""
    values, unknown = decode_position(data)
    taken = [values.pop(name, None) for name in names]
    return taken, _POSITION.encode(values, unknown)


def _write_words(bits: int) -> bytes:
    """A set as field 5 of a position. An empty set is one zero word: no word would mean "no set"."""
    return b"".join(b"\x28" + encode_varint(word) for word in words_from_bits(bits) or [0])


# --- SEND ------------------------------------------------------------------------------------------


class Send(NamedTuple):
    """A message, or a batch of `num_messages`, from producer to broker (WIRE-07)."""

    producer_id: int
    sequence_id: int
    """Of a batch: the lowest."""
    num_messages: int = 1
    highest_sequence_id: int | None = None
    txnid_least_bits: int | None = None
    txnid_most_bits: int | None = None
    marker: bool = False
    is_chunk: bool = False
    message_id: bytes | None = None
    """A MessageIdData in bytes, which only the replication of shadow topics writes."""
    payload: bytes = b""
    """Headers and payload: everything behind the command, which is what a broker stores."""
    rest: bytes = b""

    def encode(self) -> bytes:
        """The whole frame."""
        values = {name: value for name, value in zip(_SEND_NAMES, self, strict=False) if value is not None}
        for name, default in (("num_messages", 1), ("marker", False), ("is_chunk", False)):
            if values[name] == default:
                del values[name]
        return _frame(_SEND_TAG, _SEND.encode(values, self.rest), len(self.payload)) + self.payload


_SEND_NAMES = Send._fields[:9]

_SEND = Layout(
    "CommandSend",
    [
        Field(1, "producer_id", UINT64, required=True),
        Field(2, "sequence_id", UINT64, required=True),
        Field(3, "num_messages", INT32),
        Field(4, "txnid_least_bits", UINT64),
        Field(5, "txnid_most_bits", UINT64),
        Field(6, "highest_sequence_id", UINT64),
        Field(7, "is_chunk", BOOL),
        Field(8, "marker", BOOL),
        Field(9, "message_id", BYTES, merged=True),
    ],
)


def encode_send(
    producer_id: int,
    sequence_id: int,
    num_messages: int,
    highest_sequence_id: int | None,
    headers_and_payload: Sequence[bytes],
    size: int,
) -> bytes | list[bytes]:
    """A SEND frame, ready to write: one chunk when it is small, else without copying the payload.

    `size`: bytes of `headers_and_payload` together. The bytes are final; a message is sent again by
    writing them again.
    """
    body = b"\x08" + encode_varint(producer_id) + b"\x10" + encode_varint(sequence_id)
    if num_messages != 1:
        body += b"\x18" + encode_varint(num_messages)
    if highest_sequence_id is not None:
        body += b"\x30" + encode_varint(highest_sequence_id)
    head = _frame(_SEND_TAG, body, size)
    if size <= _JOIN_LIMIT:
        return head + b"".join(headers_and_payload)
    return [head, *headers_and_payload]


def _decode_send(data: bytes, position: int, end: int, payload: bytes) -> Send:
    start = position
    producer_id = sequence_id = highest = least = most = None
    count = 1
    is_chunk = False
    while position < end:
        tag = data[position]
        value = data[position + 1]
        position += 2
        if value > 0x7F:
            value, position = read_varint(data, position - 1)
        if tag == 0x08:
            producer_id = value
        elif tag == 0x10:
            sequence_id = value
        elif tag == 0x18 and value < 1 << 31:
            count = value
        elif tag == 0x30:
            highest = value
        elif tag == 0x20:
            least = value
        elif tag == 0x28:
            most = value
        elif tag == 0x38:
            is_chunk = value != 0
        else:
            return _decode_any_send(data, start, end, payload)
    if position != end or producer_id is None or sequence_id is None:
        return _decode_any_send(data, start, end, payload)
    return Send(producer_id, sequence_id, count, highest, least, most, False, is_chunk, None, payload)


def _decode_any_send(data: bytes, start: int, end: int, payload: bytes) -> Send:
    values, rest = _SEND.decode(data, start, end)
    if "message_id" in values:
        decode_position(values["message_id"])
    return Send(**values, payload=payload, rest=rest)


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
        + (_MINUS_ONE if partition == -1 else encode_varint(partition))
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
    return _frame(_MESSAGE_TAG, body + rest, size)


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
    return [head + stored] if len(stored) <= _JOIN_LIMIT else [head, stored]


_new_tuple = tuple.__new__


def _decode_message(data: bytes, position: int, end: int, payload: bytes) -> MessageCommand:
    start = position
    consumer_id = ledger_id = entry_id = epoch = None
    partition = -1
    redelivery_count = 0
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
                if value > 0x7F:
                    byte = data[position]
                    if byte < 0x80:
                        value = value & 0x7F | byte << 7
                        position += 1
                    elif tag == 0x18 and data.startswith(_MINUS_ONE, position - 1):
                        position += 9
                        continue
                    else:
                        value, position = read_varint(data, position - 1)
                if tag == 0x08:
                    ledger_id = value
                elif tag == 0x10:
                    entry_id = value
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
            payload,
            b"",
            b"",
        ),
    )


def _decode_any_message(data: bytes, start: int, end: int, payload: bytes) -> MessageCommand:
    values, rest = _MESSAGE.decode(data, start, end)
    (ledger_id, entry_id, partition, batch_index), position_rest = _take_position(
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


# --- SEND_RECEIPT ----------------------------------------------------------------------------------


class SendReceipt(NamedTuple):
    """What was sent is stored, at this position (WIRE-07). -1:-1 means it was dropped: a duplicate."""

    producer_id: int
    sequence_id: int
    ledger_id: int | None = None
    entry_id: int | None = None
    highest_sequence_id: int | None = None
    """Without meaning unless the SEND had one: the Java broker writes 0 or 2^64-1."""
    rest: bytes = b""
    position_rest: bytes = b""

    def encode(self) -> bytes:
        """The whole frame."""
        return encode_send_receipt(*self)


_SEND_RECEIPT = Layout(
    "CommandSendReceipt",
    [
        Field(1, "producer_id", UINT64, required=True),
        Field(2, "sequence_id", UINT64, required=True),
        Field(3, "message_id", BYTES, merged=True),
        Field(4, "highest_sequence_id", UINT64),
    ],
)


def encode_send_receipt(
    producer_id: int,
    sequence_id: int,
    ledger_id: int | None = None,
    entry_id: int | None = None,
    highest_sequence_id: int | None = None,
    rest: bytes = b"",
    position_rest: bytes = b"",
) -> bytes:
    """A SEND_RECEIPT frame; without a position when `ledger_id` is None."""
    body = b"\x08" + encode_varint(producer_id) + b"\x10" + encode_varint(sequence_id)
    if ledger_id is not None and entry_id is not None:
        position = b"\x08" + encode_varint(ledger_id) + b"\x10" + encode_varint(entry_id) + position_rest
        body += b"\x1a" + encode_varint(len(position)) + position
    if highest_sequence_id is not None:
        body += b"\x20" + encode_varint(highest_sequence_id)
    return _frame(_SEND_RECEIPT_TAG, body + rest)


def _decode_send_receipt(data: bytes, position: int, end: int, payload: bytes) -> SendReceipt:
    start = position
    producer_id = sequence_id = ledger_id = entry_id = highest = None
    while position < end:
        tag = data[position]
        value = data[position + 1]
        position += 2
        if value > 0x7F:
            byte = data[position]
            if byte < 0x80:
                value = value & 0x7F | byte << 7
                position += 1
            elif data.startswith(_MINUS_ONE, position - 1):
                value = (1 << 64) - 1
                position += 9
            else:
                value, position = read_varint(data, position - 1)
        if tag == 0x08:
            producer_id = value
        elif tag == 0x10:
            sequence_id = value
        elif tag == 0x20:
            highest = value
        elif tag == 0x1A and ledger_id is None:
            position_end = position + value
            if data[position] != 0x08:
                return _decode_any_send_receipt(data, start, end)
            ledger_id, position = read_varint(data, position + 1)
            if data[position] != 0x10:
                return _decode_any_send_receipt(data, start, end)
            entry_id, position = read_varint(data, position + 1)
            if position != position_end:
                return _decode_any_send_receipt(data, start, end)
        else:
            return _decode_any_send_receipt(data, start, end)
    if position != end or producer_id is None or sequence_id is None:
        return _decode_any_send_receipt(data, start, end)
    if ledger_id is not None and entry_id is not None and (ledger_id >> 63 or entry_id >> 63):
        ledger_id = signed_64(ledger_id)
        entry_id = signed_64(entry_id)
    return _new_tuple(SendReceipt, (producer_id, sequence_id, ledger_id, entry_id, highest, b"", b""))


def _decode_any_send_receipt(data: bytes, start: int, end: int) -> SendReceipt:
    values, rest = _SEND_RECEIPT.decode(data, start, end)
    ledger_id = entry_id = None
    position_rest = b""
    if "message_id" in values:
        (ledger_id, entry_id), position_rest = _take_position(values["message_id"], "ledger_id", "entry_id")
    return SendReceipt(
        values["producer_id"],
        values["sequence_id"],
        ledger_id,
        entry_id,
        values.get("highest_sequence_id"),
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
    rest: bytes = b""
    position_rest: Mapping[int, bytes] = {}
    """By index in `message_ids`, for those that have more fields."""

    def encode(self) -> bytes:
        """The whole frame."""
        return encode_ack(*self)


_ACK = Layout(
    "CommandAck",
    [
        Field(1, "consumer_id", UINT64, required=True),
        Field(2, "ack_type", ENUM, required=True),
        Field(3, "message_ids", BYTES, repeated=True),
        Field(4, "validation_error", ENUM),
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
    rest: bytes = b"",
    position_rest: Mapping[int, bytes] = {},
) -> bytes:
    """An ACK frame for any number of positions."""
    parts = [b"\x08" + encode_varint(consumer_id) + b"\x10" + encode_varint(ack_type)]
    last_ledger = None
    ledger = b""
    small = SMALL_VARINTS
    for ledger_id, entry_id, ack_set in message_ids:
        if ledger_id != last_ledger:
            ledger = b"\x08" + encode_varint(ledger_id) + b"\x10"
            last_ledger = ledger_id
        position = ledger + (small[entry_id] if 0 <= entry_id < 16384 else encode_varint(entry_id))
        if ack_set is not None:
            position += _write_words(ack_set)
        if position_rest:
            position += position_rest.get(len(parts) - 1, b"")
        size = len(position)
        parts.append(
            _POSITION_HEADS[size] + position if size < 128 else b"\x1a" + encode_varint(size) + position
        )
    for tag, value in (
        (b"\x20", validation_error),
        (b"\x30", txnid_least_bits),
        (b"\x38", txnid_most_bits),
        (b"\x40", request_id),
    ):
        if value is not None:
            parts.append(tag + encode_varint(value))
    if rest:
        parts.append(rest)
    return _frame(_ACK_TAG, b"".join(parts))


_POSITION_HEADS = [b"\x1a" + SMALL_VARINTS[size] for size in range(128)]


def _decode_ack(data: bytes, position: int, end: int, payload: bytes) -> Ack:
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
            if position != position_end or ledger_id >> 63 or entry_id >> 63:
                return _decode_any_ack(data, start, end)
            message_ids.append((ledger_id, entry_id, None))
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
        (ledger_id, entry_id, words), other = _take_position(item, "ledger_id", "entry_id", "ack_set")
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
    return _frame(_FLOW_TAG, body)


def _decode_flow(data: bytes, position: int, end: int, payload: bytes) -> Flow:
    values, rest = _FLOW.decode(data, position, end)
    return Flow(values["consumer_id"], values["message_permits"], rest)


# --- by number -------------------------------------------------------------------------------------

HotCommand = Send | MessageCommand | SendReceipt | Ack | Flow

HOT_DECODERS: dict[int, Callable[[bytes, int, int, bytes], HotCommand]] = {
    SEND: _decode_send,
    MESSAGE: _decode_message,
    SEND_RECEIPT: _decode_send_receipt,
    ACK: _decode_ack,
    FLOW: _decode_flow,
}
"""By number of the command: from data, start and end of the command in it, and the payload behind it.

They raise `FrameError` for what is malformed or incomplete, and `IndexError` where `data` ends early.
"""
