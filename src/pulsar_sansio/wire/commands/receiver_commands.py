"""ACK and FLOW by hand: what a consumer says of the messages it gets. Records, and the ways of writing and
reading them, are as in `delivery_commands`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...model.errors import FrameError
from ..ack_sets import bits_from_words
from ..command_frame import ACK, FLOW, build_frame, check_no_payload, command_tag
from ..fields import BYTES, ENUM, TEXT, UINT32, UINT64, Field, Layout, message_kind
from ..positions import take_position, write_words
from ..varint import CONTINUED_VARINTS, SMALL_VARINTS, encode_varint, read_varint

INDIVIDUAL, CUMULATIVE = 0, 1
"""CommandAck.AckType."""

PositionAck = tuple[int, int, int | None]
"""Ledger, entry and the acknowledgement set: bit i set means message i is still unacknowledged; None
acknowledges the whole entry."""

_ACK_TAG, _FLOW_TAG = map(command_tag, (ACK, FLOW))
_new_tuple = tuple.__new__

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
    """Index in `message_ids` -> the bytes of further fields, for ids that have any."""

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
            if tag & 1:  # of another wire type: what follows is no varint
                return _decode_any_ack(data, start, end)
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
