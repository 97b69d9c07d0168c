"""Message ids as bytes, for keeping outside: the message MessageIdData.

Written as the Java client does: partition and batch index only where there is one, the batch size always.
Any subset of the fields is read.
"""

from ..model.errors import FrameError, InvalidMessage
from ..model.message_id import MessageId
from .positions import decode_position
from .varint import encode_varint


def encode_message_id(message_id: MessageId) -> bytes:
    """Return the serialized id, as any Pulsar client reads it (message MessageIdData of the wire schema)."""
    encoded = b"\x08" + encode_varint(message_id.ledger_id) + b"\x10" + encode_varint(message_id.entry_id)
    if message_id.partition >= 0:
        encoded += b"\x18" + encode_varint(message_id.partition)
    if message_id.batch_index >= 0:
        encoded += b"\x20" + encode_varint(message_id.batch_index)
    encoded += b"\x30" + encode_varint(message_id.batch_size)
    if message_id.first_chunk is not None:
        first = encode_message_id(MessageId(*message_id.first_chunk, message_id.partition))
        encoded += b"\x3a" + encode_varint(len(first)) + first
    return encoded


def decode_message_id(data: bytes) -> MessageId:
    """The id behind bytes that any client wrote.

    Raises `InvalidMessage` when `data` is no id.
    """
    try:
        values, _ = decode_position(bytes(data))
        first_chunk = values.get("first_chunk_message_id")
        first = None if first_chunk is None else decode_position(first_chunk)[0]
    except FrameError as error:
        raise InvalidMessage(f"not a message id: {error}") from None
    return MessageId(
        values["ledger_id"],
        values["entry_id"],
        values.get("partition", -1),
        values.get("batch_index", -1),
        values.get("batch_size", 0),
        None if first is None else (first["ledger_id"], first["entry_id"]),
    )
