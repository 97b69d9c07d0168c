"""A plain message's frame, put together in one go, has the bytes that the general functions give."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.wire import (
    MessageMetadata,
    encode_message_metadata,
    encode_plain_send,
    encode_send,
    pack_payload,
    plain_command_prefix,
    plain_metadata_prefix,
    plain_time,
)

NUMBERS = st.integers(0, 2**63 - 1) | st.integers(0, 300) | st.sampled_from([127, 128, 16383, 16384])


@given(
    producer_id=NUMBERS,
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200),
    publish_time=NUMBERS,
    sequence_id=NUMBERS,
    payload=st.binary(max_size=300) | st.sampled_from([b"x" * 16383, b"x" * 16384]),
)
def test_a_plain_frame_is_what_the_general_way_makes(
    producer_id: int, name: str, publish_time: int, sequence_id: int, payload: bytes
) -> None:
    metadata = MessageMetadata(name, sequence_id, publish_time)
    metadata.uncompressed_size = len(payload)
    chunks = pack_payload(encode_message_metadata(metadata), payload)
    general = encode_send(producer_id, sequence_id, 1, None, chunks, sum(map(len, chunks)))
    plain = encode_plain_send(
        plain_command_prefix(producer_id),
        plain_metadata_prefix(name),
        plain_time(publish_time),
        sequence_id,
        payload,
    )
    assert plain == (general if isinstance(general, bytes) else b"".join(general))
