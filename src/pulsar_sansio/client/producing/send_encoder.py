"""`SendEncoder`: encodes messages as SEND frames.

It owns the metadata, compression, and the size check. The metadata have the fields that the Java client
writes. What is sent together, a message, a batch or a chunk, is encrypted together, after compression
(CRYPTO-02). The encoder keeps no message.

Every payload is compressed with the producer's codec (BATCH-06), as the recorded Java client 4.0 does. (Java
4.2 leaves payloads of up to 4096 bytes uncompressed; readers accept both.) A payload that fits only
uncompressed is sent uncompressed.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from ...encryption import TAG_SIZE, EntryCipher
from ...model.config import CompressionType, OutgoingMessage
from ...model.errors import ChecksumMismatch, MessageTooLarge
from ...model.message_id import MAX_CHUNKS
from ...model.schema import Schema
from ...wire import (
    SHORT_SEND_LIMIT,
    FrameDecoder,
    MessageMetadata,
    ShortSend,
    SingleMessageMetadata,
    compress,
    encode_encryption,
    encode_keyed,
    encode_message_metadata,
    encode_send,
    encode_single,
    encode_unordered,
    max_frame_size,
    pack_payload,
    unpack_payload,
)
from ..encryption.entry_encryption import EntryEncryption

Frame: TypeAlias = bytes | list[bytes]

SHORT_METADATA_LIMIT = 4096
"""The longest metadata, in bytes, with which a short SEND needs no check of its total size: a frame may have
10 KiB beside the largest payload."""

SMALL_PART = 16 * 1024
"""The average size of a batch's parts, in bytes, below which joining is cheaper than writing many chunks."""

MAX_CHUNKED_SIZE = 2**31 - 1
"""The largest chunked message, in bytes as sent; the protocol has no field for more."""

_COMMAND_ALLOWANCE = 64
"""The bytes reserved in a SEND frame for sizes, checksum and command, which take at most 58."""


class _Sealing(NamedTuple):
    """The short SEND frames of one data key. `limit`: bytes of the largest payload, before encryption."""

    cipher: EntryCipher
    short_send: ShortSend
    limit: int


def no_version(schema: Schema[object]) -> bytes | None:
    """Return the version of no schema."""
    return None


class SendEncoder:
    """Encodes the frames of one producer.

    `version_of`: returns the version of a schema that messages have beside the producer's own.
    """

    __slots__ = (
        "_codec",
        "_encryption",
        "_frame_limit",
        "_name",
        "_producer_id",
        "_schema_version",
        "_sealing",
        "_version_of",
        "_short_limit",
        "_short_send",
        "max_message_size",
    )

    def __init__(
        self,
        name: str,
        producer_id: int,
        codec: CompressionType,
        max_message_size: int,
        schema_version: bytes = b"",
        version_of: Callable[[Schema[object]], bytes | None] = no_version,
        encryption: EntryEncryption | None = None,
    ) -> None:
        self._version_of = version_of
        self._encryption = encryption
        self._sealing: _Sealing | None = None
        """Short SEND frames of the present data key."""
        self._name = name
        self._producer_id = producer_id
        self._codec = codec
        self.attached(max_message_size, schema_version)

    def attached(self, max_message_size: int, schema_version: bytes) -> None:
        """Use what the broker says: the size of the largest payload in bytes, and the version of the
        producer's schema, empty for bytes (rules PROD-13, PROD-37)."""
        self.max_message_size = max_message_size
        self._schema_version = schema_version or None
        self._short_send = ShortSend(self._producer_id, self._name, schema_version)
        self._frame_limit = max_frame_size(max_message_size)
        short = (
            self._codec is CompressionType.NONE
            and self._encryption is None
            and self._short_send.metadata_size < SHORT_METADATA_LIMIT
        )
        self._short_limit = min(SHORT_SEND_LIMIT, max_message_size) if short else -1
        self._sealing = None

    def fits(self, frame: Frame) -> bool:
        """Tell whether the current limit allows a frame that was made under another limit."""
        size = len(frame) if isinstance(frame, bytes) else sum(map(len, frame))
        return size - 4 <= self._frame_limit

    def single(self, message: bytes | OutgoingMessage, sequence_id: int, publish_time: int) -> Frame:
        """Encode one message as an entry of its own.

        Raises `MessageTooLarge` if the payload as sent, or payload and metadata together, exceed the broker's
        limit; `InvalidMessage` for text without a UTF-8 form.
        """
        if type(message) is bytes and len(message) <= self._short_limit:
            return self._short_send.encode(sequence_id, publish_time, message)
        if type(message) is bytes and self._encryption is not None:
            sealed = self._short_sealed(self._encryption.cipher, message, sequence_id, publish_time)
            if sealed is not None:
                return sealed
        metadata, payload = self._metadata_of(message, sequence_id, publish_time)
        payload = self._compressed(metadata, payload)
        return self._seal(metadata, (payload,), sequence_id, 1, None)

    def _short_sealed(
        self, cipher: EntryCipher | None, payload: bytes, sequence_id: int, publish_time: int
    ) -> bytes | None:
        """Encrypt a payload, and encode it as a short SEND. Returns None, having done nothing, where there is
        no cipher, or the frame would not be short."""
        if cipher is None or self._codec is not CompressionType.NONE:
            return None
        sealing = self._sealing
        if sealing is None or sealing.cipher is not cipher:
            short_send = ShortSend(
                self._producer_id, self._name, self._schema_version or b"", encode_encryption(cipher.keys)
            )
            short = short_send.metadata_size < SHORT_METADATA_LIMIT
            limit = min(SHORT_SEND_LIMIT, self.max_message_size) - TAG_SIZE if short else -1
            sealing = self._sealing = _Sealing(cipher, short_send, limit)
        if len(payload) > sealing.limit:
            return None
        nonce, encrypted = cipher.seal(payload)
        return sealing.short_send.encode(sequence_id, publish_time, encrypted, nonce)

    def chunks(
        self,
        message: bytes | OutgoingMessage,
        sequence_id: int,
        publish_time: int,
        chunk_max_message_size: int | None,
    ) -> list[Frame]:
        """Encode one message as one SEND if it fits, else as several chunks with one sequence id.

        The message is compressed as a whole, and every chunk has all of its metadata.
        `chunk_max_message_size`: the limit of payload bytes in one chunk; the broker's own limit counts, too.
        Raises like `single`.
        """
        metadata, payload = self._metadata_of(message, sequence_id, publish_time)
        if self._codec is not CompressionType.NONE:
            payload = compress(self._codec, payload)
            metadata.compression = self._codec
        size = len(payload)
        most = min(self.max_message_size, chunk_max_message_size or self.max_message_size)
        if size <= most:
            with suppress(MessageTooLarge):  # the metadata may leave too little room
                return [self._seal(metadata, (payload,), sequence_id, 1, None)]
        if size > MAX_CHUNKED_SIZE:
            raise MessageTooLarge(
                f"the payload has {size} bytes to send; in chunks up to {MAX_CHUNKED_SIZE} can be sent"
            )
        metadata.uuid = f"{self._name}-{sequence_id}"
        metadata.total_chunk_msg_size = size
        metadata.num_chunks_from_msg = metadata.chunk_id = MAX_CHUNKS  # the longest encodings of both fields
        headers = 0
        if self._encryption is not None:
            headers = len(self._encryption.encrypt(metadata, b""))  # which sets fields of the metadata, too
        headers += len(encode_message_metadata(metadata))
        most = min(most, self.max_message_size - headers)
        total = -(-size // most) if most > 0 else MAX_CHUNKS + 1
        if total > MAX_CHUNKS:
            raise MessageTooLarge(
                f"the payload has {size} bytes to send and its metadata {headers}: more than {MAX_CHUNKS} "
                f"chunks of {max(most, 0)} bytes"
            )
        metadata.num_chunks_from_msg = total
        frames = []
        view = memoryview(payload)
        for chunk_id in range(total):
            metadata.chunk_id = chunk_id
            part = bytes(view[chunk_id * most : (chunk_id + 1) * most])
            frames.append(self._seal(metadata, (part,), sequence_id, 1, None, is_chunk=True))
        return frames

    def batch(
        self,
        first: bytes | OutgoingMessage,
        publish_time: int,
        lowest: int,
        highest: int,
        count: int,
        members: Sequence[bytes],
    ) -> Frame:
        """Encode `count` messages as one entry; `members` is the encoded batch.

        `first` provides the fields that a batch has only once (rule BATCH-11). Raises like `single`.
        """
        metadata = MessageMetadata(self._name, lowest, publish_time)
        if not isinstance(first, bytes):
            if first.key is not None:
                metadata.partition_key = first.key
                metadata.partition_key_b64_encoded = first.has_base64_key
            if first.ordering_key is not None:
                metadata.ordering_key = first.ordering_key
            if first.replicate_to:
                metadata.replicate_to = first.replicate_to
        self._stamp(metadata, first)
        metadata.num_messages_in_batch = count
        metadata.highest_sequence_id = highest
        if self._codec is not CompressionType.NONE:
            payload = b"".join(members)
            metadata.uncompressed_size = len(payload)
            members = (self._compressed(metadata, payload),)
        elif len(members) > 1 and sum(map(len, members)) < len(members) * SMALL_PART:
            members = (b"".join(members),)
        return self._seal(metadata, members, lowest, count, highest)

    def _metadata_of(
        self, message: bytes | OutgoingMessage, sequence_id: int, publish_time: int
    ) -> tuple[MessageMetadata, bytes]:
        """Return the metadata of a message that is sent alone, and its payload."""
        metadata = MessageMetadata(self._name, sequence_id, publish_time)
        if isinstance(message, bytes):
            payload = message
        else:
            payload = message.payload or b""
            _describe(metadata, message)
        metadata.uncompressed_size = len(payload)
        self._stamp(metadata, message)
        return metadata, payload

    def _stamp(self, metadata: MessageMetadata, message: bytes | OutgoingMessage) -> None:
        """Set the transaction, and the version of the message's schema or of the producer's."""
        version = self._schema_version
        if not isinstance(message, bytes):
            if message.schema is not None:
                version = self._version_of(message.schema) or None
            if message.transaction is not None:
                metadata.txnid_most_bits, metadata.txnid_least_bits = message.transaction
        if version is not None:
            metadata.schema_version = version

    def _compressed(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        if self._codec is CompressionType.NONE:
            return payload
        compressed = compress(self._codec, payload)
        if len(compressed) > self.max_message_size >= len(payload):
            return payload
        metadata.compression = self._codec
        return compressed

    def _seal(
        self,
        metadata: MessageMetadata,
        payload: Sequence[bytes],
        sequence_id: int,
        count: int,
        highest: int | None,
        *,
        is_chunk: bool = False,
    ) -> Frame:
        limit = self.max_message_size
        if self._encryption is not None:
            payload = (self._encryption.encrypt(metadata, b"".join(payload)),)
        size = sum(map(len, payload))
        if size > limit:
            raise MessageTooLarge(f"the payload has {size} bytes, the broker accepts {limit}")
        parts = pack_payload(encode_message_metadata(metadata), *payload)
        size += len(parts[0])
        if size + _COMMAND_ALLOWANCE > self._frame_limit:
            raise MessageTooLarge(
                f"payload and metadata have {size} bytes together, the broker accepts "
                f"{self._frame_limit - _COMMAND_ALLOWANCE}"
            )
        most, least = metadata.txnid_most_bits, metadata.txnid_least_bits
        transaction = None if most is None or least is None else (most, least)
        return encode_send(self._producer_id, sequence_id, count, highest, parts, size, is_chunk, transaction)


def _describe(metadata: MessageMetadata, message: OutgoingMessage) -> None:
    """Set the metadata of a message that is sent alone."""
    if message.properties:
        metadata.properties = tuple(message.properties.items())
    if message.key is not None:
        metadata.partition_key = message.key
        metadata.partition_key_b64_encoded = message.has_base64_key
    elif message.has_null_key:
        metadata.null_partition_key = True
    if message.replicate_to:
        metadata.replicate_to = message.replicate_to
    if message.event_time:
        metadata.event_time = message.event_time
    if message.ordering_key is not None:
        metadata.ordering_key = message.ordering_key
    if message.deliver_at is not None:
        metadata.deliver_at_time = message.deliver_at
    if message.payload is None:
        metadata.null_value = True


def encode_member(message: OutgoingMessage, sequence_id: int) -> bytes:
    """Encode one member of a batch. Raises `InvalidMessage` for text without a UTF-8 form."""
    payload, key = message.payload, message.key
    if key is not None and payload is not None and not message.properties and message.ordering_key is None:
        return encode_keyed(key, message.has_base64_key, message.event_time, sequence_id, payload)
    properties = message.properties.items() if message.properties else ()
    if message.ordering_key is None and not message.has_null_key:
        return encode_unordered(
            properties, key, message.has_base64_key, message.event_time, sequence_id, payload
        )
    single = SingleMessageMetadata(sequence_id=sequence_id)
    if message.ordering_key is not None:
        single.ordering_key = message.ordering_key
    if properties:
        single.properties = tuple(properties)
    if key is not None:
        single.partition_key = key
        single.partition_key_b64_encoded = message.has_base64_key
    elif message.has_null_key:
        single.null_partition_key = True
    if message.event_time:
        single.event_time = message.event_time
    if payload is None:
        single.null_value = True
    return encode_single(single, payload or b"")


def is_intact(frame: Frame) -> bool:
    """Tell whether the checksum of a sealed frame matches its content."""
    whole = frame if isinstance(frame, bytes) else b"".join(frame)
    decoded = FrameDecoder().decode(whole, 0, len(whole))
    assert decoded is not None
    try:
        unpack_payload(decoded[1].payload)
    except ChecksumMismatch:
        return False
    return True
