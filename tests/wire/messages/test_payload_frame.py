"""Headers and payload: the four combinations of blocks, the checksum, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.errors import ChecksumMismatch, FrameError
from pulsar_sansio.wire import (
    MessageMetadata,
    crc32c,
    encode_message_metadata,
    has_checksum,
    pack_payload,
    peek_metadata,
    proto,
    unpack_payload,
)

METADATA = MessageMetadata("p-0", 0, 1_700_000_000_000, uncompressed_size=5)
CHECKED = b"".join(pack_payload(METADATA.encode(), b"hello"))
UNCHECKED = CHECKED[6:]
ENTRY = proto.BrokerEntryMetadata(broker_timestamp=1_700_000_000_123, index=41)
BLOCK = b"\x0e\x02" + len(ENTRY.SerializeToString()).to_bytes(4, "big") + ENTRY.SerializeToString()


def test_the_worked_example() -> None:
    assert CHECKED.hex() == "0e019f51121f000000100a03702d3010001880d095ffbc31480568656c6c6f"


@pytest.mark.parametrize("block", [b"", BLOCK], ids=["", "broker entry metadata"])
@pytest.mark.parametrize("body", [CHECKED, UNCHECKED], ids=["checksum", "no checksum"])
def test_all_four_combinations_of_blocks(block: bytes, body: bytes) -> None:
    unpacked = unpack_payload(block + body)
    assert unpacked.broker_entry_metadata == (ENTRY if block else None)
    assert unpacked.checksum_ok is (True if body is CHECKED else None)
    assert unpacked.metadata == METADATA
    assert unpacked.payload == b"hello"
    assert has_checksum(block + body) is (body is CHECKED)


@settings(max_examples=30)
@given(st.binary(max_size=50) | st.sampled_from([b"", bytes(5000)]))
def test_pack_and_unpack(payload: bytes) -> None:
    chunks = pack_payload(METADATA.encode(), payload)
    assert chunks[-1] is payload
    data = b"".join(chunks)
    assert unpack_payload(data) == (None, True, METADATA, payload)
    assert int.from_bytes(data[2:6], "big") == crc32c(data[6:])


@pytest.mark.parametrize("block", [b"", BLOCK])
@pytest.mark.parametrize("size", [5, 8000])
def test_any_wrong_byte_under_the_checksum_is_found(block: bytes, size: int) -> None:
    data = block + b"".join(pack_payload(METADATA.encode(), bytes(size)))
    for position in (len(block) + 2, len(block) + 6, len(block) + 12, len(data) - 1):
        wrong = bytearray(data)
        wrong[position] ^= 1
        with pytest.raises(ChecksumMismatch):
            unpack_payload(bytes(wrong))


def test_the_checksum_does_not_cover_broker_entry_metadata() -> None:
    other = BLOCK[:-1] + b"\x2a"
    entry = unpack_payload(other + CHECKED).broker_entry_metadata
    assert entry is not None
    assert entry.index == 42


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "headers"),
        (b"\x0e", "headers"),
        (CHECKED[:9], "headers"),
        (UNCHECKED[:9], "headers"),
        (BLOCK[:5], "headers"),
        (BLOCK, "headers"),
        (BLOCK + b"\x0e\x01", "headers"),
        (BLOCK[:10], "cannot hold broker entry metadata"),
        (b"\x0e\x02\xff\xff\xff\xff" + bytes(20), "cannot hold broker entry metadata"),
        (b"\x0e\x02\x00\x00\x00\x02\x08\x80" + CHECKED, "broker entry metadata is malformed"),
        (b"\x00\x00\x01\x00" + UNCHECKED[4:], "cannot hold metadata"),
        (b"\x00\x00\x00\x0f" + UNCHECKED[4:], "ends inside"),
        (b"\x00\x00\x00\x05" + UNCHECKED[4:], "required"),
        (b"\x00\x00\x00\x00" + UNCHECKED[4:], "required"),
    ],
)
def test_malformed_payloads_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        unpack_payload(data)


@pytest.mark.parametrize("data", [BLOCK + CHECKED, CHECKED, UNCHECKED])
def test_every_prefix_without_all_of_the_metadata_is_refused(data: bytes) -> None:
    for end in range(len(data) - len(b"hello")):
        with pytest.raises((FrameError, ChecksumMismatch)):
            unpack_payload(data[:end])


def test_metadata_of_the_smallest_size_without_a_checksum() -> None:
    data = b"\x00\x00\x00\x06\x0a\x00\x10\x00\x18\x00"
    assert unpack_payload(data) == (None, None, MessageMetadata("", 0, 0), b"")
    assert unpack_payload(BLOCK + data).payload == b""
    assert not has_checksum(data)


@settings(max_examples=300)
@given(st.binary(max_size=40))
def test_nothing_but_the_two_errors_comes_out_of_any_bytes(data: bytes) -> None:
    crc = crc32c(data).to_bytes(4, "big")
    for candidate in (data, b"\x0e\x01" + crc + data, b"\x0e\x02" + data, BLOCK + b"\x0e\x01" + crc + data):
        try:
            unpack_payload(candidate)
        except (FrameError, ChecksumMismatch):
            continue
        assert len(candidate) >= 10


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_metadata_is_peeked_at_whatever_the_checksum_says(broker_metadata: bytes, payload: bytes) -> None:
    metadata = MessageMetadata("p", 1, 2, num_messages_in_batch=7)
    block = b"\x0e\x02" + len(broker_metadata).to_bytes(4, "big") + broker_metadata
    whole = b"".join(pack_payload(encode_message_metadata(metadata), payload))
    wrong = whole[:2] + bytes([whole[2] ^ 1]) + whole[3:]
    for data in (whole, wrong, block + wrong):
        assert peek_metadata(data) == metadata


@given(st.sampled_from([b"", b"\x0e\x01", b"\x0e\x02"]), st.binary(max_size=40))
def test_peeking_at_any_bytes_raises_nothing(front: bytes, data: bytes) -> None:
    found = peek_metadata(front + data)
    assert found is None or isinstance(found, MessageMetadata)
