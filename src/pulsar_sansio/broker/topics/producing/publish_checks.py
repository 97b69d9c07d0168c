"""The checks of a SEND before a topic stores its entry (WIRE-07).

The module is pure: it takes policies and a message, and returns the entry to store or raises the refusal that
SEND_ERROR carries.
"""

from ....model.errors import ChecksumMismatch, ChecksumRefused, MetadataError, NotAllowed
from ....wire import MessageMetadata, MetadataDecoder, Send
from ...policies import Policies
from ...storage.entry import read_headers

MAX_MESSAGES_PER_ENTRY = 100_000
"""A larger batch is refused: a peer must not make the broker allocate bit sets of any size."""

LONGEST_UUID = 8192
"""The number of characters of a producer's name (4,096 at most), a hyphen and a sequence id."""

LEAST_MESSAGE_BYTES = 6
"""Bytes of the smallest message in a batch: four of size, two of metadata."""


def check_message(
    policies: Policies, topic: str, send: Send, decoder: MetadataDecoder
) -> tuple[bytes, int, MessageMetadata]:
    """Return the bytes to store, the number of messages in them, and their metadata.

    `decoder`: that of the producer's connection.

    Raises the refusal, a `BrokerError`, and `FrameError` for headers that cannot be parsed.
    """
    if send.message_id is not None:
        raise NotAllowed(f"The topic {topic} is not a shadow topic: sending with a message id is not allowed")
    try:
        data, metadata, size = read_headers(send.payload, decoder)
    except ChecksumMismatch:
        raise ChecksumRefused("Checksum failed on the broker") from None
    if policies.encryption_required and not metadata.encryption_keys:
        raise MetadataError("Messages must be encrypted")
    limit = policies.max_message_size
    if limit and not send.is_chunk and size > limit:
        raise NotAllowed(f"Exceed maximum message size: {size} bytes, allowed are {limit}")
    if metadata.deliver_at_time is not None and policies.delayed_delivery and policies.delayed_delivery_max:
        delay = metadata.deliver_at_time - metadata.publish_time
        if delay > (longest := round(policies.delayed_delivery_max * 1000)):
            raise NotAllowed(f"Exceeds max allowed delivery delay of {longest} milliseconds")
    if metadata.marker_type is not None or send.marker:
        raise NotAllowed("Markers are written by brokers only")
    messages = metadata.num_messages_in_batch
    if messages is None:
        messages = 1
    elif messages != 1:
        room = max(metadata.uncompressed_size, size) // LEAST_MESSAGE_BYTES + 1
        if not 0 < messages <= min(MAX_MESSAGES_PER_ENTRY, room):
            raise MetadataError(f"A batch of {messages} messages does not fit into its bytes")
    return data, messages, metadata


def is_last_chunk(metadata: MessageMetadata) -> bool:
    """True for the last chunk of a message, and for an entry that is no chunk: only those are deduplicated
    (BROKER-40)."""
    chunk, chunks = metadata.chunk_id, metadata.num_chunks_from_msg
    return chunk is None or chunks is None or chunk == chunks - 1


def chunked_message(metadata: MessageMetadata) -> str | None:
    """Return the uuid of the message if the entry is one of its chunks, else None.

    A uuid longer than `LONGEST_UUID` is not kept a second time beside the entry.
    """
    uuid = metadata.uuid
    if metadata.chunk_id is None or metadata.num_chunks_from_msg is None or uuid is None:
        return None
    return uuid if len(uuid) <= LONGEST_UUID else None
