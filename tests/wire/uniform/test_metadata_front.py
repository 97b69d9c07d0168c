"""The front of an entry's metadata, as every client writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.wire import MessageMetadata, encode_message_metadata
from pulsar_sansio.wire.uniform.metadata_front import PUBLISH_TIME_SIZE, read_name, read_time

YEAR = 365 * 86_400_000


@given(st.text(min_size=1, max_size=30), st.integers(0, 127), st.integers(YEAR * 2, YEAR * 130))
def test_the_encoder_writes_what_is_read(name: str, sequence_id: int, publish_time: int) -> None:
    try:
        encoded = encode_message_metadata(MessageMetadata(name, sequence_id, publish_time))
    except UnicodeEncodeError:
        return
    size = len(name.encode())
    if size < 0x80:
        assert read_name(encoded[: size + 3]) == name
        assert read_time(encoded[size + 4 : size + 4 + PUBLISH_TIME_SIZE]) == publish_time


@pytest.mark.parametrize(
    "prefix",
    [
        b"",
        b"\x0a\x01a",
        b"\x0a\x00\x10",
        b"\x12\x01a\x10",
        b"\x0a\x02a\x10",
        b"\x0a\x01a\x18",
        b"\x0a\x80" + b"a" * 128 + b"\x10",
    ],
)
def test_other_bytes_are_no_name(prefix: bytes) -> None:
    assert read_name(prefix) is None


@pytest.mark.parametrize(
    "field",
    [
        bytes.fromhex("10808080808001"),
        bytes.fromhex("18808080808080"),
        bytes.fromhex("18808000808001"),
        bytes.fromhex("18010000000000"),
    ],
)
def test_other_bytes_are_no_time(field: bytes) -> None:
    assert len(field) == PUBLISH_TIME_SIZE
    assert read_time(field) is None
