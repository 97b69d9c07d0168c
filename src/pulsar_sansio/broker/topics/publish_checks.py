"""What a SEND has to be before a topic takes it (WIRE-07).

Pure: policies and a message in, the entry to store out, or the refusal that SEND_ERROR carries.
"""

from ...model.errors import ChecksumMismatch, ChecksumRefused, MetadataError, NotAllowed
from ...wire import MessageMetadata, Send
from ..policies import Policies
from ..storage.entry import read_headers

MAX_MESSAGES_PER_ENTRY = 100_000
"""A batch that claims more is refused: bit sets of that size would be a peer's way to our memory."""

LONGEST_UUID = 8192
"""Characters: a producer's name (4,096 at most), a hyphen and a sequence id fit into it."""

LEAST_MESSAGE_BYTES = 6
"""Bytes of the smallest message in a batch: four of size, two of metadata."""


def check_message(policies: Policies, topic: str, send: Send) -> tuple[bytes, int, MessageMetadata]:
    """What to store, how many messages it is, and its metadata.

    Raises a `BrokerError` for what is refused, `FrameError` for headers that cannot be parsed.
    """
    if send.txnid_least_bits is not None and send.txnid_most_bits is not None:
        raise NotAllowed("Transactions are not supported by this broker")
    if send.message_id is not None:
        raise NotAllowed(f"The topic {topic} is not a shadow topic: sending with a message id is not allowed")
    try:
        data, metadata, size = read_headers(send.payload)
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
    """Whether deduplication looks at it: the last chunk of a message, or no chunk at all (BROKER-40)."""
    chunk, chunks = metadata.chunk_id, metadata.num_chunks_from_msg
    return chunk is None or chunks is None or chunk == chunks - 1


def chunked_message(metadata: MessageMetadata) -> str | None:
    """The uuid of the message of which this is one chunk of several; None for everything else.

    A uuid that is no such thing but megabytes of text is not kept a second time beside the entry.
    """
    uuid = metadata.uuid
    if metadata.chunk_id is None or metadata.num_chunks_from_msg is None or uuid is None:
        return None
    return uuid if len(uuid) <= LONGEST_UUID else None
