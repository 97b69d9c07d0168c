"""Bytes and commands: frames, headers, batches, ids, codecs.

Encoding is pure. Decoders remember templates of what they have read, within bounds. A connection owns its
decoders (`FrameReader`, `FrameDecoder`, `MetadataDecoder`), so nothing is shared, and nothing survives a
connection.

Hot commands and headers are encoded and decoded by hand, everything else by protobuf. Nothing here knows
when a command may be sent or what follows from it.
"""

from ..model.encryption_context import EncryptionKey
from . import proto
from .ack_sets import bits_from_words, words_from_bits
from .checksum import crc32c
from .commands.hot_commands import (
    CUMULATIVE,
    INDIVIDUAL,
    Ack,
    Flow,
    HotCommand,
    MessageCommand,
    PositionAck,
    Send,
    SendReceipt,
    encode_ack,
    encode_flow,
    encode_message,
    encode_send,
    encode_send_receipt,
)
from .commands.short_send import SHORT_SEND_LIMIT, ShortSend
from .compression import Compressed, compress, decompress
from .frame_reader import FrameReader
from .frames import (
    DEFAULT_MAX_MESSAGE_SIZE,
    FRAME_PADDING,
    FrameDecoder,
    encode_command,
    encode_ping,
    encode_pong,
    max_frame_size,
)
from .message_ids import decode_message_id, encode_message_id
from .messages.batch import (
    Batch,
    encode_batch_payloads,
    encode_keyed,
    encode_single,
    encode_unordered,
    single_prefix,
    split_batch,
)
from .messages.metadata import (
    MessageMetadata,
    Property,
    SingleMessageMetadata,
    decode_single_metadata,
    encode_encryption,
    encode_message_metadata,
    encode_single_metadata,
)
from .messages.metadata_decoder import MetadataDecoder
from .messages.payload_frame import (
    OpenedPayload,
    UnpackedPayload,
    has_checksum,
    open_payload,
    pack_broker_entry_metadata,
    pack_payload,
    peek_metadata,
    unpack_payload,
)
from .messages.raw_batch import RawBatch
from .topics_hash import topics_hash
from .uniform.message_reader import MESSAGE_TAG, UniformEncryption, UniformMessageReader, UniformMessages
from .varint import encode_varint

__all__ = [
    "SHORT_SEND_LIMIT",
    "ShortSend",
    "CUMULATIVE",
    "DEFAULT_MAX_MESSAGE_SIZE",
    "FRAME_PADDING",
    "INDIVIDUAL",
    "MESSAGE_TAG",
    "Ack",
    "UniformEncryption",
    "UniformMessages",
    "UniformMessageReader",
    "Batch",
    "Compressed",
    "EncryptionKey",
    "Flow",
    "FrameDecoder",
    "FrameReader",
    "HotCommand",
    "MessageCommand",
    "MessageMetadata",
    "MetadataDecoder",
    "OpenedPayload",
    "PositionAck",
    "Property",
    "Send",
    "SendReceipt",
    "SingleMessageMetadata",
    "RawBatch",
    "UnpackedPayload",
    "bits_from_words",
    "compress",
    "crc32c",
    "decode_message_id",
    "decode_single_metadata",
    "decompress",
    "encode_ack",
    "encode_batch_payloads",
    "encode_command",
    "encode_flow",
    "encode_encryption",
    "encode_keyed",
    "encode_message",
    "encode_message_id",
    "encode_message_metadata",
    "encode_ping",
    "encode_pong",
    "encode_send",
    "encode_send_receipt",
    "encode_single",
    "encode_single_metadata",
    "encode_unordered",
    "encode_varint",
    "has_checksum",
    "max_frame_size",
    "open_payload",
    "pack_broker_entry_metadata",
    "pack_payload",
    "peek_metadata",
    "proto",
    "single_prefix",
    "split_batch",
    "topics_hash",
    "unpack_payload",
    "words_from_bits",
]
