"""`SendEncoder`: messages become SEND frames (rules PROD-34 to PROD-40, BATCH-06, BATCH-11).

It owns what goes into the metadata, compression, and the check of the size; the fields are those the Java
client writes. It keeps no message and knows nothing of windows, receipts or connections.

Compression: whatever the producer's codec is, every payload is compressed with it, as the recorded Java
client 4.0 does. (Java 4.2 leaves payloads of up to 4096 bytes as they are. Any reader accepts both.) Only a
payload that would not fit compressed but fits as it is goes uncompressed.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

from ...model.config import CompressionType, OutgoingMessage
from ...model.errors import ChecksumMismatch, MessageTooLarge
from ...wire import (
    PLAIN_LIMIT,
    MessageMetadata,
    SingleMessageMetadata,
    compress,
    decode_frame,
    encode_keyed,
    encode_message_metadata,
    encode_plain_send,
    encode_send,
    encode_single,
    encode_usual,
    max_frame_size,
    pack_payload,
    plain_command_prefix,
    plain_metadata_prefix,
    plain_time,
    unpack_payload,
)

Frame: TypeAlias = bytes | list[bytes]

PLAIN_NAME_LIMIT = 1024
"""Bytes of a producer's name up to which a plain frame needs no check of what it adds to the payload."""

SMALL_PART = 16 * 1024
"""Bytes, on the average, below which the parts of a batch are joined: copying them costs less than handing on
so many chunks."""

MAX_CHUNKS = 100_000
"""Chunks of one message. Consumers keep the place of each."""

MAX_CHUNKED_SIZE = 2**31 - 1
"""Bytes of a message in chunks, as it is sent: what the protocol can say."""

_COMMAND_ALLOWANCE = 64
"""Bytes of a SEND frame that are neither metadata nor payload: sizes, checksum and the command. At most
58."""


class SendEncoder:
    """Makes the frames of one producer."""

    __slots__ = (
        "_codec",
        "_command_prefix",
        "_frame_limit",
        "_metadata_prefix",
        "_name",
        "_plain_limit",
        "_producer_id",
        "_publish_time",
        "_time",
        "max_message_size",
    )

    def __init__(self, name: str, producer_id: int, codec: CompressionType, max_message_size: int) -> None:
        self._name = name
        self._producer_id = producer_id
        self._codec = codec
        self._command_prefix = plain_command_prefix(producer_id)
        self._metadata_prefix = plain_metadata_prefix(name)
        self._publish_time = -1
        self._time = b""
        self.limit(max_message_size)

    def limit(self, max_message_size: int) -> None:
        """The broker accepts payloads of up to `max_message_size` bytes."""
        self.max_message_size = max_message_size
        self._frame_limit = max_frame_size(max_message_size)
        plain = self._codec is CompressionType.NONE and len(self._metadata_prefix) < PLAIN_NAME_LIMIT
        self._plain_limit = min(PLAIN_LIMIT, max_message_size) if plain else -1

    def fits(self, frame: Frame) -> bool:
        """Whether a frame made under another limit may still be sent."""
        size = len(frame) if isinstance(frame, bytes) else sum(map(len, frame))
        return size - 4 <= self._frame_limit

    def single(self, message: bytes | OutgoingMessage, sequence_id: int, publish_time: int) -> Frame:
        """One message by itself.

        Raises `MessageTooLarge` where its payload, as it would be sent, or its payload and metadata together
        are larger than the broker accepts; `InvalidMessage` for text that cannot be sent.
        """
        if type(message) is bytes and len(message) <= self._plain_limit:
            if publish_time != self._publish_time:
                self._publish_time = publish_time
                self._time = plain_time(publish_time)
            return encode_plain_send(
                self._command_prefix, self._metadata_prefix, self._time, sequence_id, message
            )
        metadata, payload = self._metadata_of(message, sequence_id, publish_time)
        payload = self._compressed(metadata, payload)
        return self._seal(metadata, (payload,), sequence_id, 1, None)

    def chunks(
        self,
        message: bytes | OutgoingMessage,
        sequence_id: int,
        publish_time: int,
        chunk_max_message_size: int | None,
    ) -> list[Frame]:
        """One message in as many SENDs as it takes, all with its sequence id; a single one where it fits.

        It is compressed as a whole, and every chunk has all of its metadata. `chunk_max_message_size`: bytes
        of payload in one chunk, where that is less than what the broker accepts. Raises as `single`.
        """
        metadata, payload = self._metadata_of(message, sequence_id, publish_time)
        if self._codec is not CompressionType.NONE:
            payload = compress(self._codec, payload)
            metadata.compression = self._codec
        size = len(payload)
        most = min(self.max_message_size, chunk_max_message_size or self.max_message_size)
        if size <= most:
            with suppress(MessageTooLarge):  # its metadata leave too little room
                return [self._seal(metadata, (payload,), sequence_id, 1, None)]
        if size > MAX_CHUNKED_SIZE:
            raise MessageTooLarge(
                f"the payload has {size} bytes to send; in chunks up to {MAX_CHUNKED_SIZE} can be sent"
            )
        metadata.uuid = f"{self._name}-{sequence_id}"
        metadata.total_chunk_msg_size = size
        metadata.num_chunks_from_msg = metadata.chunk_id = MAX_CHUNKS  # the longest they can be
        headers = len(encode_message_metadata(metadata))
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
        """`count` messages in one entry; `members` is the encoded batch. `first` is where the fields come
        from that the batch has only once (rule BATCH-11). Raises as `single`."""
        metadata = MessageMetadata(self._name, lowest, publish_time)
        if not isinstance(first, bytes):
            if first.key is not None:
                metadata.partition_key = first.key
                metadata.partition_key_b64_encoded = first.has_base64_key
            if first.ordering_key is not None:
                metadata.ordering_key = first.ordering_key
            if first.replicate_to:
                metadata.replicate_to = first.replicate_to
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
        """Of one message by itself, with its payload."""
        metadata = MessageMetadata(self._name, sequence_id, publish_time)
        if isinstance(message, bytes):
            payload = message
        else:
            payload = message.payload or b""
            _describe(metadata, message)
        metadata.uncompressed_size = len(payload)
        return metadata, payload

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
        return encode_send(self._producer_id, sequence_id, count, highest, parts, size, is_chunk)


def _describe(metadata: MessageMetadata, message: OutgoingMessage) -> None:
    """What goes with a message that is sent by itself."""
    if message.properties:
        metadata.properties = tuple(message.properties.items())
    if message.key is not None:
        metadata.partition_key = message.key
        metadata.partition_key_b64_encoded = message.has_base64_key
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
    """One member of a batch. Raises `InvalidMessage` for text that cannot be sent."""
    payload, key = message.payload, message.key
    if key is not None and payload is not None and not message.properties and message.ordering_key is None:
        return encode_keyed(key, message.has_base64_key, message.event_time, sequence_id, payload)
    properties = message.properties.items() if message.properties else ()
    if message.ordering_key is None:
        return encode_usual(properties, key, message.has_base64_key, message.event_time, sequence_id, payload)
    single = SingleMessageMetadata(ordering_key=message.ordering_key, sequence_id=sequence_id)
    if properties:
        single.properties = tuple(properties)
    if key is not None:
        single.partition_key = key
        single.partition_key_b64_encoded = message.has_base64_key
    if message.event_time:
        single.event_time = message.event_time
    if payload is None:
        single.null_value = True
    return encode_single(single, payload or b"")


def is_intact(frame: Frame) -> bool:
    """Whether the checksum of a sealed frame still agrees with its content."""
    whole = frame if isinstance(frame, bytes) else b"".join(frame)
    decoded = decode_frame(whole, 0, len(whole))
    assert decoded is not None
    try:
        unpack_payload(decoded[1].payload)
    except ChecksumMismatch:
        return False
    return True
