"""`ShortSend` builds a frame in one go, with the bytes that the functions for every message give."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.wire import (
    EncryptionKey,
    MessageMetadata,
    ShortSend,
    encode_encryption,
    encode_message_metadata,
    encode_send,
    pack_payload,
)
from pulsar_sansio.wire.commands.short_send import MAX_SIZES

NUMBERS = st.integers(0, 2**63 - 1) | st.integers(0, 300) | st.sampled_from([127, 128, 16383, 16384])
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
PAYLOADS = st.binary(max_size=300) | st.sampled_from([b"x" * 16383, b"x" * 16384])


@given(
    producer_id=NUMBERS,
    name=NAMES,
    version=st.binary(max_size=200),
    messages=st.lists(st.tuples(NUMBERS, NUMBERS, PAYLOADS), min_size=1, max_size=5),
)
def test_frames_are_those_of_the_general_functions(
    producer_id: int, name: str, version: bytes, messages: list[tuple[int, int, bytes]]
) -> None:
    """Messages of one producer follow each other with other times and sizes; earlier ones repeat."""
    short = ShortSend(producer_id, name, version)
    for sequence_id, publish_time, payload in [*messages, *messages]:
        assert short.encode(sequence_id, publish_time, payload) == in_general(
            producer_id, name, sequence_id, publish_time, payload, version
        )


def test_the_parts_for_more_sizes_than_a_producer_keeps() -> None:
    short = ShortSend(1, "p")
    for size in [*range(2 * MAX_SIZES + 1), 0]:
        assert short.encode(7, 1_000, b"x" * size) == in_general(1, "p", 7, 1_000, b"x" * size)


KEYS = st.lists(
    st.builds(EncryptionKey, NAMES, st.binary(max_size=300), st.just((("version", "1"),))), max_size=3
)


@given(
    name=NAMES,
    version=st.binary(max_size=20),
    keys=KEYS,
    messages=st.lists(st.tuples(NUMBERS, NUMBERS, PAYLOADS, st.binary(min_size=12, max_size=12)), max_size=5),
)
def test_frames_of_encrypted_messages_are_those_of_the_general_functions(
    name: str, version: bytes, keys: list[EncryptionKey], messages: list[tuple[int, int, bytes, bytes]]
) -> None:
    short = ShortSend(3, name, version, encode_encryption(keys) if keys else b"")
    for sequence_id, publish_time, payload, nonce in [*messages, *messages]:
        encrypted = payload + bytes(16) if keys else payload
        found = short.encode(sequence_id, publish_time, encrypted, nonce if keys else None)
        more = {"encryption_keys": keys, "encryption_param": nonce} if keys else {}
        assert found == in_general(
            3, name, sequence_id, publish_time, encrypted, version, uncompressed_size=len(payload), **more
        )


def in_general(
    producer_id: int,
    name: str,
    sequence_id: int,
    publish_time: int,
    payload: bytes,
    version: bytes = b"",
    **fields: Any,
) -> bytes:
    metadata = MessageMetadata(
        name, sequence_id, publish_time, **{"uncompressed_size": len(payload), **fields}
    )
    if version:
        metadata.schema_version = version
    chunks = pack_payload(encode_message_metadata(metadata), payload)
    frame = encode_send(producer_id, sequence_id, 1, None, chunks, sum(map(len, chunks)))
    return frame if isinstance(frame, bytes) else b"".join(frame)
