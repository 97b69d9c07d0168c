"""Batches that are handed on in one piece."""

import pytest

from pulsar_sansio.model.config import CompressionType
from pulsar_sansio.model.errors import DecompressionFailed, FrameError
from pulsar_sansio.wire import Compressed, RawBatch, compress, encode_batch_payloads

PAYLOADS = [b"%d" % number for number in range(50)]


def test_as_a_sequence_it_is_the_payloads() -> None:
    data = b"header" + encode_batch_payloads(PAYLOADS, 7)
    batch = RawBatch(data, 50, 6)
    assert batch.payloads is batch
    assert (len(batch), list(batch), batch[3], batch[-2:]) == (50, PAYLOADS, b"3", PAYLOADS[-2:])
    assert batch.single(5).sequence_id == 12
    assert batch.split() is batch.split()


def test_what_is_compressed_is_decompressed_when_it_is_looked_at() -> None:
    data = encode_batch_payloads(PAYLOADS, 7)
    batch = RawBatch(
        Compressed(CompressionType.LZ4, compress(CompressionType.LZ4, data), len(data), 10_000), 50, 0
    )
    assert len(batch) == 50
    assert batch.data == data
    assert batch.data is batch.data
    assert list(batch) == PAYLOADS
    garbage = RawBatch(Compressed(CompressionType.LZ4, b"garbage", 10_000, 10_000), 50, 0)
    with pytest.raises(DecompressionFailed):
        garbage[0]


@pytest.mark.parametrize("size", [0, -1, 1_000_000_000])
def test_so_many_messages_cannot_be_in_it(size: int) -> None:
    with pytest.raises(FrameError):
        RawBatch(encode_batch_payloads(PAYLOADS, 0), size, 0)


def test_what_is_wrong_with_it_shows_when_it_is_looked_at() -> None:
    batch = RawBatch(b"\xff" * 100, 3, 0)
    assert len(batch) == 3
    with pytest.raises(FrameError):
        batch[0]
    with pytest.raises(FrameError):
        iter(batch)
