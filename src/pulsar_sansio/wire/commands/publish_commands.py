"""SEND and SEND_RECEIPT by hand: the two commands of every message on its way to the broker.

Each is an immutable record whose `encode()` gives the whole frame; `encode_…` do the same without a record.
`decode_send` and `ReceiptDecoder` take a command out of its BaseCommand. A short loop reads the fields that
real peers write, in any order. The decoder by table takes over at any other field. They raise `FrameError`
for a malformed or incomplete command, and `IndexError` where the data end early.

A record keeps fields without an attribute as bytes in `rest`, those of the position inside it in
`position_rest`. `encode` writes them back at the end.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..command_frame import (
    JOIN_LIMIT,
    SEND,
    SEND_RECEIPT,
    build_frame,
    check_no_payload,
    command_tag,
)
from ..fields import BOOL, BYTES, INT32, UINT64, Field, Layout, signed_64
from ..positions import MINUS_ONE, decode_position, take_position
from ..uniform.command_templates import RECEIPT_KEY, ReceiptTemplate, receipt_template
from ..uniform.decode_cache import DecodeCache, remember
from ..varint import VALUE_OF_CONTINUED, VALUE_OF_SMALL, encode_varint, read_varint

_SEND_TAG = command_tag(SEND)
_SEND_RECEIPT_TAG = command_tag(SEND_RECEIPT)
_new_tuple = tuple.__new__

# --- SEND ------------------------------------------------------------------------------------------


class Send(NamedTuple):
    """A message, or a batch of `num_messages`, from producer to broker (WIRE-07)."""

    producer_id: int
    sequence_id: int
    """The id of the message; the lowest one in a batch."""
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
        return build_frame(_SEND_TAG, _SEND.encode(values, self.rest), len(self.payload)) + self.payload


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
    is_chunk: bool = False,
    transaction: tuple[int, int] | None = None,
) -> bytes | list[bytes]:
    """A SEND frame, ready to write: in one piece when it is small, else without copying the payload.

    `size`: bytes of `headers_and_payload` together. `is_chunk`: it is part of a message. `transaction`: the
    most and the least significant bits of its transaction. The bytes are final; a message is sent again by
    writing them again.
    """
    body = b"\x08" + encode_varint(producer_id) + b"\x10" + encode_varint(sequence_id)
    if num_messages != 1:
        body += b"\x18" + encode_varint(num_messages)
    if transaction is not None:
        most, least = transaction
        body += b"\x20" + encode_varint(least) + b"\x28" + encode_varint(most)
    if highest_sequence_id is not None:
        body += b"\x30" + encode_varint(highest_sequence_id)
    if is_chunk:
        body += b"\x38\x01"
    head = build_frame(_SEND_TAG, body, size)
    if size <= JOIN_LIMIT:
        return head + b"".join(headers_and_payload)
    return [head, *headers_and_payload]


def decode_send(data: bytes, position: int, end: int, frame_end: int) -> Send:
    start = position
    payload = data[end:frame_end]
    producer_id = sequence_id = highest = least = most = None
    count = 1
    is_chunk = False
    while position < end:
        tag = data[position]
        value = data[position + 1]
        position += 2
        if value > 0x7F:
            if tag & 1:  # of another wire type: what follows is no varint
                return _decode_any_send(data, start, end, payload)
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


# --- SEND_RECEIPT ----------------------------------------------------------------------------------


class SendReceipt(NamedTuple):
    """The broker has stored a SEND at this position (WIRE-07). -1:-1: it dropped the SEND as a duplicate."""

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
    return build_frame(_SEND_RECEIPT_TAG, body + rest)


class ReceiptDecoder:
    """Decodes SEND_RECEIPT commands; one connection owns it."""

    __slots__ = ("templates",)

    def __init__(self) -> None:
        self.templates: DecodeCache[tuple[bytes, int], ReceiptTemplate] = {}
        """The first `RECEIPT_KEY` bytes of a receipt, and its size -> the template that it probably has."""

    def decode(self, data: bytes, position: int, end: int, frame_end: int) -> SendReceipt:
        """Take the receipt at `data[position:end]` out of its frame."""
        check_no_payload(SEND_RECEIPT, end, frame_end)
        template = self.templates.get((data[position : position + RECEIPT_KEY], end - position))
        if template is not None:
            front, low, high, middle, entry_low, entry_high, back = template.read(data, position)
            if front == template.front and middle == template.middle and back == template.back:
                sequence_id = VALUE_OF_SMALL.get(high, -1)
                entry_id = VALUE_OF_SMALL.get(entry_high, -1)
                if sequence_id >= 0 and entry_id >= 0:
                    if low:
                        sequence_id = (sequence_id << 14) + VALUE_OF_CONTINUED.get(low, -(1 << 30))
                    if entry_low:
                        entry_id = (entry_id << 14) + VALUE_OF_CONTINUED.get(entry_low, -(1 << 30))
                    if sequence_id >= 0 and entry_id >= 0:
                        return _new_tuple(
                            SendReceipt,
                            (
                                template.producer_id,
                                sequence_id,
                                template.ledger_id,
                                entry_id,
                                template.highest_sequence_id,
                                b"",
                                b"",
                            ),
                        )
        receipt, sequence, entry = _decode_common_fields(data, position, end)
        if entry and receipt.ledger_id is not None:
            learnt = receipt_template(
                data,
                position,
                sequence,
                entry,
                end,
                receipt.producer_id,
                receipt.ledger_id,
                receipt.highest_sequence_id,
            )
            if learnt is not None:
                remember(self.templates, (data[position : position + RECEIPT_KEY], end - position), learnt)
        return receipt


def _decode_common_fields(data: bytes, position: int, end: int) -> tuple[SendReceipt, int, int]:
    """Decode a receipt with the fields that real brokers write.

    Gives the receipt, and where its sequence id and its entry's number begin. The places are 0 where the
    receipt has no such field, and where it has another field.
    """
    start = position
    producer_id = sequence_id = ledger_id = entry_id = highest = None
    sequence = entry = 0
    while position < end:
        tag = data[position]
        value_start = position + 1
        value = data[value_start]
        position += 2
        if value > 0x7F:
            if tag & 1:  # of another wire type: what follows is no varint
                return _decode_any_send_receipt(data, start, end), 0, 0
            byte = data[position]
            if byte < 0x80:
                value = value & 0x7F | byte << 7
                position += 1
            elif data.startswith(MINUS_ONE, position - 1):
                value = (1 << 64) - 1
                position += 9
            else:
                value, position = read_varint(data, position - 1)
        if tag == 0x08:
            producer_id = value
        elif tag == 0x10:
            sequence_id = value
            sequence = value_start
        elif tag == 0x20:
            highest = value
        elif tag == 0x1A and ledger_id is None:
            position_end = position + value
            if data[position] != 0x08:
                return _decode_any_send_receipt(data, start, end), 0, 0
            ledger_id, position = read_varint(data, position + 1)
            if data[position] != 0x10:
                return _decode_any_send_receipt(data, start, end), 0, 0
            entry = position + 1
            entry_id, position = read_varint(data, entry)
            if position != position_end:
                return _decode_any_send_receipt(data, start, end), 0, 0
        else:
            return _decode_any_send_receipt(data, start, end), 0, 0
    if position != end or producer_id is None or sequence_id is None:
        return _decode_any_send_receipt(data, start, end), 0, 0
    if ledger_id is not None and entry_id is not None and (ledger_id >> 63 or entry_id >> 63):
        ledger_id = signed_64(ledger_id)
        entry_id = signed_64(entry_id)
    receipt = SendReceipt(producer_id, sequence_id, ledger_id, entry_id, highest)
    return receipt, sequence, entry


def _decode_any_send_receipt(data: bytes, start: int, end: int) -> SendReceipt:
    values, rest = _SEND_RECEIPT.decode(data, start, end)
    ledger_id = entry_id = None
    position_rest = b""
    if "message_id" in values:
        (ledger_id, entry_id), position_rest = take_position(values["message_id"], "ledger_id", "entry_id")
    return SendReceipt(
        values["producer_id"],
        values["sequence_id"],
        ledger_id,
        entry_id,
        values.get("highest_sequence_id"),
        rest,
        position_rest,
    )
