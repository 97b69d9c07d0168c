"""Entries as they are stored and sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker.storage.entry import MessageFront, entry_metadata, read_headers
from pulsar_sansio.model.errors import ChecksumMismatch, FrameError
from pulsar_sansio.wire import (
    MessageMetadata,
    MetadataDecoder,
    encode_message,
    encode_message_metadata,
    pack_payload,
    unpack_payload,
)

uint64 = st.integers(0, 2**64 - 1)
METADATA = encode_message_metadata(MessageMetadata("p", 7, 1_700_000_000_000))


@given(
    uint64,
    st.integers(0, 2**40),
    st.integers(0, 2**40),
    st.integers(-1, 5000),
    st.none() | uint64,
    st.binary(),
)
def test_a_front_is_what_the_wire_would_write(
    consumer: int, ledger: int, entry: int, partition: int, epoch: int | None, stored: bytes
) -> None:
    front = MessageFront(consumer, ledger, partition, epoch)
    for number in (entry, 0, 127, 128, entry):
        whole = encode_message(consumer, ledger, number, partition, consumer_epoch=epoch, stored=stored)
        assert front.frame(number, stored) + stored == b"".join(whole)


@pytest.mark.parametrize("size", [0, 1, 5000])
def test_headers_are_read_and_the_bytes_kept(size: int) -> None:
    data = b"".join(pack_payload(METADATA, b"x" * size))
    headers = read_headers(data, MetadataDecoder())
    assert headers.data is data
    assert (headers.metadata.sequence_id, headers.payload_size) == (7, size)
    assert entry_metadata(data, MetadataDecoder()).producer_name == "p"


def test_an_entry_without_a_checksum_gets_one() -> None:
    """The Go client cannot read one without."""
    bare = len(METADATA).to_bytes(4, "big") + METADATA + b"payload"
    headers = read_headers(bare, MetadataDecoder())
    unpacked = unpack_payload(headers.data)
    assert unpacked.checksum_ok
    assert unpacked.payload == b"payload"
    assert headers.payload_size == 7


@pytest.mark.parametrize("size", [3, 9000])
def test_a_wrong_checksum_is_found(size: int) -> None:
    data = bytearray(b"".join(pack_payload(METADATA, b"x" * size)))
    data[-1] ^= 1
    with pytest.raises(ChecksumMismatch):
        read_headers(bytes(data), MetadataDecoder())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x0e\x01",
        b"\x0e\x01\0\0\0\0\0\0\0\xff",
        b"\x0e\x02\0\0\0\2\x08\1" + b"".join(pack_payload(METADATA, b"")),
        b"\0\0\0\2\xff\xff",
    ],
)
def test_what_cannot_be_headers(data: bytes) -> None:
    with pytest.raises((FrameError, ChecksumMismatch)):
        read_headers(data, MetadataDecoder())
