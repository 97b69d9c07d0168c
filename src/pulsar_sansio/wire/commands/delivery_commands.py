"""MESSAGE by hand: the command of every message on its way to the consumer.

The commands that a consumer sends in return are in `receiver_commands`.

It is an immutable record whose `encode()` gives the whole frame; `encode_…` does the same without a record.
`DeliveryDecoder` takes a command out of its BaseCommand. It compares the command with the template of an
earlier one. Without such a template, a short loop reads the fields that real peers write, in any order. The
decoder by table takes over at any other field. The decoder raises `FrameError` for a malformed or incomplete
command, and `IndexError` where the data end early.

The record keeps fields without an attribute as bytes in `rest`, those of the position inside it in
`position_rest`. `encode` writes them back at the end.
"""

from typing import NamedTuple

from ..ack_sets import bits_from_words, words_from_bits
from ..command_frame import JOIN_LIMIT, MESSAGE, build_frame, command_tag
from ..fields import BYTES, INT64, UINT32, UINT64, Field, Layout, signed_64
from ..positions import MINUS_ONE, take_position
from ..uniform.command_templates import DELIVERY_KEY, DeliveryTemplate, delivery_template
from ..uniform.decode_cache import DecodeCache, remember
from ..varint import VALUE_OF_CONTINUED, VALUE_OF_SMALL, encode_varint, read_varint

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


class DeliveryDecoder:
    """Decodes MESSAGE commands; one connection owns it. `templates`: those of the commands it has decoded."""

    __slots__ = ("templates",)

    def __init__(self) -> None:
        self.templates: DecodeCache[bytes, DeliveryTemplate] = {}
        """The first `DELIVERY_KEY` bytes of a command -> the template that the command probably has."""

    def decode(self, data: bytes, position: int, end: int, frame_end: int) -> MessageCommand:
        """Take the command at `data[position:end]` out of its frame."""
        template = self.templates.get(data[position : position + DELIVERY_KEY])
        if template is not None and position + template.size == end:
            front, low, high, back = template.read(data, position)
            if front == template.front and back == template.back:
                entry_id = VALUE_OF_SMALL.get(high)
                if low and entry_id is not None:
                    entry_id = (entry_id << 14) + VALUE_OF_CONTINUED.get(low, -(1 << 30))
                if entry_id is not None and entry_id >= 0:
                    return _new_tuple(
                        MessageCommand,
                        (
                            template.consumer_id,
                            template.ledger_id,
                            entry_id,
                            template.partition,
                            -1,
                            template.redelivery_count,
                            None,
                            template.consumer_epoch,
                            data[end:frame_end],
                            b"",
                            b"",
                        ),
                    )
        command, entry = _decode_common_fields(data, position, end, data[end:frame_end])
        if entry:
            learnt = delivery_template(
                data,
                position,
                entry,
                end,
                command.consumer_id,
                command.ledger_id,
                command.partition,
                command.redelivery_count,
                command.consumer_epoch,
            )
            if learnt is not None:
                remember(self.templates, data[position : position + DELIVERY_KEY], learnt)
        return command


def _decode_common_fields(data: bytes, position: int, end: int, payload: bytes) -> tuple[MessageCommand, int]:
    """Decode a command with the fields that real brokers write: the command, and where its entry's number
    begins. That place is 0 where the command has another field, and `_decode_any_message` read it."""
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
                return _decode_any_message(data, start, end, payload), 0
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
                        return _decode_any_message(data, start, end, payload), 0
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
                    return _decode_any_message(data, start, end, payload), 0
            if position != position_end:
                return _decode_any_message(data, start, end, payload), 0
        elif tag == 0x18 and value < 1 << 32:
            redelivery_count = value
        elif tag == 0x28:
            epoch = value
        else:
            return _decode_any_message(data, start, end, payload), 0
    if position != end or consumer_id is None or ledger_id is None or entry_id is None:
        return _decode_any_message(data, start, end, payload), 0
    if ledger_id >> 63 or entry_id >> 63:
        ledger_id = signed_64(ledger_id)
        entry_id = signed_64(entry_id)
    command = MessageCommand(
        consumer_id, ledger_id, entry_id, partition, -1, redelivery_count, None, epoch, payload
    )
    return command, entry_start


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
