"""Positions (MessageIdData): signed numbers, nesting with an end, and fields taken out or added."""

from typing import Any

import pytest

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import proto
from pulsar_sansio.wire.positions import MINUS_ONE, decode_position, take_position, write_words
from pulsar_sansio.wire.varint import encode_varint


def position(**fields: Any) -> bytes:
    return proto.MessageIdData(**{"ledgerId": 1, "entryId": 2, **fields}).SerializeToString()


def test_ledger_and_entry_are_signed() -> None:
    values, unknown = decode_position(position(ledgerId=2**64 - 1, entryId=2**64 - 2))
    assert (values, unknown) == ({"ledger_id": -1, "entry_id": -2}, b"")


def test_minus_one_is_what_protobuf_writes() -> None:
    assert position(partition=-1).endswith(MINUS_ONE)


@pytest.mark.parametrize("data", [b"", b"\x08\x01", b"\x10\x01", position()[:-1], b"\x08\x01\x10"])
def test_an_incomplete_position_is_refused(data: bytes) -> None:
    with pytest.raises(FrameError):
        decode_position(data)


def nested(depth: int) -> bytes:
    data = position()
    for _ in range(depth):
        data = position() + b"\x3a" + encode_varint(len(data)) + data
    return data


def test_first_chunks_of_first_chunks_have_an_end() -> None:
    decode_position(nested(100))
    with pytest.raises(FrameError, match="nested too deeply"):
        decode_position(nested(101))


def test_a_malformed_first_chunk_is_refused() -> None:
    with pytest.raises(FrameError):
        decode_position(position() + b"\x3a\x02\x08\x01")


def test_taken_fields_are_gone_from_the_rest() -> None:
    data = position(batch_index=3, partition=4) + b"\xa0\x06\x07"
    taken, rest = take_position(data, "batch_index", "batch_size", "ledger_id")
    assert taken == [3, None, 1]
    assert rest == b"\x10\x02\x18\x04\xa0\x06\x07", "the entry, the partition, and the unknown field"


@pytest.mark.parametrize("bits", [0, 1, 2**63, 2**64 - 1, 2**64, 2**130 + 5])
def test_a_set_is_written_as_protobuf_reads_it(bits: int) -> None:
    words = proto.MessageIdData.FromString(position() + write_words(bits)).ack_set
    assert len(words) >= 1, "no word would mean that there is no set"
    assert sum((word % 2**64) << (64 * index) for index, word in enumerate(words)) == bits
