"""The five codecs: what comes out is what went in, and no peer makes us allocate more than we allow."""

import sys
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import cramjam
import lz4.block
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.model.config import CompressionType
from pulsar_sansio.model.errors import (
    DecompressionFailed,
    InvalidMessage,
    UncompressedSizeCorrupted,
)
from pulsar_sansio.wire import Compressed, compress, decompress

CODECS = list(CompressionType)
REAL = [codec for codec in CODECS if codec is not CompressionType.NONE]
LIMIT = 1_000_000
BOMB_SIZE = 256 * 1024 * 1024
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"hello hello hello", bytes(100_000), bytes(range(256)) * 9],
    ids=lambda data: str(len(data)),
)
def test_round_trip(codec: CompressionType, data: bytes) -> None:
    compressed = compress(codec, data)
    assert type(compressed) is bytes
    restored = decompress(codec, compressed, len(data), LIMIT)
    assert type(restored) is bytes
    assert restored == data


@settings(max_examples=50)
@given(st.sampled_from(REAL), st.binary(max_size=300))
def test_round_trip_of_any_bytes(codec: CompressionType, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data), 300) == data


@pytest.mark.parametrize("codec", [CompressionType.LZ4, CompressionType.SNAPPY, CompressionType.ZSTD])
def test_what_is_written_is_the_form_others_read(codec: CompressionType) -> None:
    data = b"abc" * 100
    compressed = compress(codec, data)
    if codec is CompressionType.LZ4:
        assert lz4.block.decompress(compressed, uncompressed_size=300) == data
    elif codec is CompressionType.SNAPPY:
        assert compressed[:2] == b"\xac\x02"  # the length, as a varint: the raw form, not the framed one
        assert bytes(cramjam.snappy.decompress_raw(compressed)) == data
    else:
        assert compressed[:4] == ZSTD_MAGIC
        assert zstandard.decompress(compressed) == data


def test_lz4_of_nothing_is_one_byte() -> None:
    assert compress(CompressionType.LZ4, b"") == b"\x00"


# --- what other clients write ----------------------------------------------------------------------


def test_zlib_that_ends_with_a_sync_flush_and_no_checksum_is_accepted() -> None:
    compressor = zlib.compressobj()
    data = b"as the Java client writes it " * 30
    stream = compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(zlib.error):
        zlib.decompress(stream)
    assert decompress(CompressionType.ZLIB, stream, len(data), LIMIT) == data


def test_zstd_without_a_content_size_is_accepted() -> None:
    data = b"the header need not say how much will come out " * 30
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(data)
    assert zstandard.frame_content_size(frame) == -1
    assert decompress(CompressionType.ZSTD, frame, len(data), LIMIT) == data


# --- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", REAL)
def test_a_promise_over_the_limit_is_refused(codec: CompressionType) -> None:
    """Rule INV-X4."""
    compressed = compress(codec, b"x" * 100)
    assert decompress(codec, compressed, 100, 100) == b"x" * 100
    with pytest.raises(UncompressedSizeCorrupted, match="promises 100 bytes uncompressed, allowed are 99"):
        decompress(codec, compressed, 100, 99)
    with pytest.raises(UncompressedSizeCorrupted):
        decompress(codec, compressed, -1, 99)
    with pytest.raises(UncompressedSizeCorrupted):
        Compressed(codec, compressed, 100, 99)


@pytest.mark.parametrize("codec", REAL)
def test_what_is_decompressed_later(codec: CompressionType) -> None:
    payload = Compressed(codec, compress(codec, b"x" * 100), 100, 100)
    assert (len(payload), payload.decompress()) == (100, b"x" * 100)
    with pytest.raises(DecompressionFailed):
        Compressed(codec, b"garbage, garbage", 100, 100).decompress()


@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize("promise", [0, 1, 99, 101, 5000])
def test_another_size_than_promised_is_refused(codec: CompressionType, promise: int) -> None:
    with pytest.raises(DecompressionFailed):
        decompress(codec, compress(codec, b"x" * 100), promise, LIMIT)


def test_zstd_of_another_size_without_a_content_size_is_refused() -> None:
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 100)
    for promise in (0, 99, 101):
        with pytest.raises(DecompressionFailed):
            decompress(CompressionType.ZSTD, frame, promise, LIMIT)


def test_without_a_codec_the_promise_is_not_looked_at() -> None:
    data = b"some clients promise nothing"
    assert decompress(CompressionType.NONE, data, 0, 1) is data


@pytest.mark.parametrize("codec", [5, 99, -1])
def test_an_unknown_codec(codec: int) -> None:
    with pytest.raises(DecompressionFailed, match=f"unknown codec {codec}"):
        decompress(codec, b"x", 1, LIMIT)
    with pytest.raises(InvalidMessage, match="no codec"):
        compress(codec, b"x")


# --- corrupt data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize("data", [b"", b"\xff", b"\x80", b"garbage, garbage", b"\xff" * 50])
def test_garbage_is_refused(codec: CompressionType, data: bytes) -> None:
    with pytest.raises(DecompressionFailed):
        decompress(codec, data, 100, LIMIT)


@pytest.mark.parametrize("codec", REAL)
def test_a_truncated_payload_is_refused(codec: CompressionType) -> None:
    data = bytes(range(256)) * 4
    compressed = compress(codec, data)
    for end in (1, len(compressed) // 2):
        with pytest.raises(DecompressionFailed):
            decompress(codec, compressed[:end], len(data), LIMIT)


@settings(max_examples=60)
@given(st.sampled_from(REAL), st.binary(max_size=60), st.integers(0, 100))
def test_nothing_but_the_error_comes_out_of_any_bytes(
    codec: CompressionType, data: bytes, promise: int
) -> None:
    for candidate in (data, compress(codec, data)[:-1] + data[:2]):
        with suppress(DecompressionFailed):
            assert len(decompress(codec, candidate, promise, 100)) == promise


# --- bombs -----------------------------------------------------------------------------------------


def _zstd_bomb(content_size: bool) -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=content_size)
    stream = compressor.compressobj(size=BOMB_SIZE if content_size else -1)
    parts = [stream.compress(bytes(1024 * 1024)) for _ in range(BOMB_SIZE // (1024 * 1024))]
    return b"".join([*parts, stream.flush()])


def _zlib_bomb() -> bytes:
    compressor = zlib.compressobj(1)
    parts = [compressor.compress(bytes(1024 * 1024)) for _ in range(BOMB_SIZE // (1024 * 1024))]
    return b"".join([*parts, compressor.flush()])


def _lz4_bomb() -> bytes:
    # One literal, then matches of it: every byte of 255 stands for 255 bytes of output.
    return b"\x1fx\x01\x00" + b"\xff" * (BOMB_SIZE // 255) + b"\x00\x50xxxxx"


def _snappy_bomb() -> bytes:
    # A length of 256 MiB, a literal, then copies of 64 bytes each from one byte back.
    return b"\x80\x80\x80\x80\x01\x00x" + b"\xfe\x01\x00" * 400_000


BOMBS: dict[str, tuple[CompressionType, Callable[[], bytes]]] = {
    "zstd with its size": (CompressionType.ZSTD, lambda: _zstd_bomb(True)),
    "zstd without its size": (CompressionType.ZSTD, lambda: _zstd_bomb(False)),
    "zstd with a false size": (
        CompressionType.ZSTD,
        lambda: b"\x28\xb5\x2f\xfd\xa0\x00\x00\x00\x10\x01\x00\x00",
    ),
    "zstd with a huge window": (CompressionType.ZSTD, lambda: b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"),
    "zlib": (CompressionType.ZLIB, _zlib_bomb),
    "lz4": (CompressionType.LZ4, _lz4_bomb),
    "snappy": (CompressionType.SNAPPY, _snappy_bomb),
    "snappy with a false size": (CompressionType.SNAPPY, lambda: b"\xff\xff\xff\xff\x0f\x00x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_its_content_is_allocated(name: str) -> None:
    codec, make = BOMBS[name]
    bomb = make()
    before = resident_bytes()
    tracemalloc.start()
    try:
        for promise in (1000, LIMIT):
            with pytest.raises(DecompressionFailed):
                decompress(codec, bomb, promise, LIMIT)
        with pytest.raises(UncompressedSizeCorrupted):
            decompress(codec, bomb, BOMB_SIZE, LIMIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * LIMIT
    # What the libraries allocate by themselves does not pass by Python; the system knows.
    assert resident_bytes() - before < BOMB_SIZE // 4


def resident_bytes() -> int:
    """The most memory this process ever had, where the system tells it; a bomb would show there."""
    if sys.platform != "linux":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
