"""The checks of a SEND: each refusal has its error, and what passes is stored as it came."""

from typing import Any

import pytest

from pulsar_sansio.broker.policies import Policies
from pulsar_sansio.broker.topics.producing.publish_checks import (
    LONGEST_UUID,
    MAX_MESSAGES_PER_ENTRY,
    check_message,
    chunked_message,
    is_last_chunk,
)
from pulsar_sansio.model.errors import ChecksumRefused, FrameError, MetadataError, NotAllowed
from pulsar_sansio.wire import (
    EncryptionKey,
    MessageMetadata,
    MetadataDecoder,
    Send,
    encode_message_metadata,
    pack_payload,
)

TOPIC = "persistent://public/default/t"
WALL = 1_700_000_000_000


def metadata(**fields: Any) -> MessageMetadata:
    return MessageMetadata("p", 0, WALL, **fields)


def stored(payload: bytes = b"x" * 100, **fields: Any) -> bytes:
    return b"".join(pack_payload(encode_message_metadata(metadata(**fields)), payload))


def check(data: bytes | None = None, policies: Policies | None = None, **send: Any) -> tuple[bytes, int, Any]:
    message = Send(1, 0, payload=stored() if data is None else data, **send)
    return check_message(policies or Policies(), TOPIC, message, MetadataDecoder())


def test_what_passes_is_stored_as_it_came() -> None:
    data = stored(partition_key="k")
    found, messages, headers = check(data)
    assert (found, messages, headers.partition_key) == (data, 1, "k")


def test_ids_of_shadow_topics_are_refused() -> None:
    with pytest.raises(NotAllowed, match=f"{TOPIC} is not a shadow topic"):
        check(message_id=b"\x08\x01\x10\x01")


def test_a_wrong_checksum_and_broken_headers_are_told_apart() -> None:
    data = stored()
    with pytest.raises(ChecksumRefused):
        check(data[:-1] + b"y")
    with pytest.raises(FrameError):
        check(b"\x00\x00\x00\xff")


def test_where_encryption_is_required_a_plain_message_is_refused() -> None:
    required = Policies(encryption_required=True)
    with pytest.raises(MetadataError, match="must be encrypted"):
        check(policies=required)
    check(stored(encryption_keys=[EncryptionKey("k", b"v")]), required)


def test_a_payload_may_have_the_largest_size_and_a_chunk_any() -> None:
    limit = Policies(max_message_size=100)
    check(stored(b"x" * 100), limit)
    with pytest.raises(NotAllowed, match="101 bytes, allowed are 100"):
        check(stored(b"x" * 101), limit)
    check(stored(b"x" * 101), limit, is_chunk=True)


def test_a_delay_may_be_the_longest() -> None:
    policies = Policies(delayed_delivery=True, delayed_delivery_max=1.5)
    check(stored(deliver_at_time=WALL + 1500), policies)
    late = stored(deliver_at_time=WALL + 1501)
    with pytest.raises(NotAllowed, match="delay of 1500 milliseconds"):
        check(late, policies)
    check(late, Policies(delayed_delivery=True, delayed_delivery_max=0.0))
    check(late, Policies(delayed_delivery=False, delayed_delivery_max=1.5))


def test_markers_are_refused_by_metadata_and_by_command() -> None:
    for data, marker in ((stored(marker_type=10), False), (stored(), True)):
        with pytest.raises(NotAllowed, match="Markers"):
            check(data, marker=marker)


@pytest.mark.parametrize("count", [0, -1, 18, MAX_MESSAGES_PER_ENTRY + 1, 2**31 - 1])
def test_a_batch_of_more_messages_than_fit_into_its_bytes_is_refused(count: int) -> None:
    with pytest.raises(MetadataError, match=f"A batch of {count} messages"):
        check(stored(b"x" * 100, num_messages_in_batch=count))


def test_the_uncompressed_size_makes_room_for_messages_up_to_the_limit() -> None:
    large = 6 * (MAX_MESSAGES_PER_ENTRY + 10)
    for count in (18, MAX_MESSAGES_PER_ENTRY):
        assert check(stored(num_messages_in_batch=count, uncompressed_size=large))[1] == count
    with pytest.raises(MetadataError):
        check(stored(num_messages_in_batch=MAX_MESSAGES_PER_ENTRY + 1, uncompressed_size=large))


def test_a_batch_of_one_may_be_empty() -> None:
    assert check(stored(b"", num_messages_in_batch=1))[1] == 1


@pytest.mark.parametrize(
    ("fields", "last", "uuid"),
    [
        ({}, True, None),
        ({"uuid": "u", "chunk_id": 0, "num_chunks_from_msg": 2}, False, "u"),
        ({"uuid": "u", "chunk_id": 1, "num_chunks_from_msg": 2}, True, "u"),
        ({"uuid": "u", "chunk_id": 0}, True, None),
        ({"uuid": "u", "num_chunks_from_msg": 2}, True, None),
        ({"chunk_id": 0, "num_chunks_from_msg": 2}, False, None),
        ({"uuid": "u" * LONGEST_UUID, "chunk_id": 0, "num_chunks_from_msg": 2}, False, "u" * LONGEST_UUID),
        ({"uuid": "u" * (LONGEST_UUID + 1), "chunk_id": 0, "num_chunks_from_msg": 2}, False, None),
    ],
)
def test_chunks_are_known_by_their_metadata(fields: dict[str, Any], last: bool, uuid: str | None) -> None:
    assert (is_last_chunk(metadata(**fields)), chunked_message(metadata(**fields))) == (last, uuid)
