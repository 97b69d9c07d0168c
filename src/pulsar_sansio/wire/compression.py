"""The five codecs of payloads, with output bounded before it is allocated.

A payload is a stranger's: it may promise little and hold much. Every codec is therefore asked first how
much will come out, or told where to stop, and what comes out must have exactly the promised size.
"""

import zlib
from collections.abc import Callable

import cramjam
import lz4.block
import zstandard

from ..model.config import CompressionType
from ..model.errors import (
    DecompressionFailed,
    FrameError,
    InvalidMessage,
    UncompressedSizeCorrupted,
)
from .varint import read_varint

_ZSTD_LEVEL = 3
"""The Java client's."""

# --- compressing -----------------------------------------------------------------------------------

_COMPRESSORS: dict[int, Callable[[bytes], bytes]] = {
    CompressionType.NONE: bytes,
    CompressionType.LZ4: lambda data: bytes(lz4.block.compress(data, store_size=False)),
    CompressionType.ZLIB: zlib.compress,
    CompressionType.ZSTD: lambda data: zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(data),
    CompressionType.SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


def compress(codec: int, data: bytes) -> bytes:
    """`data` in the form the codec has on the wire. Raises `InvalidMessage` for an unknown codec."""
    compressor = _COMPRESSORS.get(codec)
    if compressor is None:
        raise InvalidMessage(f"compression: {codec!r} is no codec of Pulsar")
    return compressor(data)


# --- decompressing ---------------------------------------------------------------------------------


def decompress(codec: int, data: bytes, uncompressed_size: int, limit: int) -> bytes:
    """The payload behind `data`, which must have exactly `uncompressed_size` bytes.

    `limit`: bytes that are allowed at most. Raises `UncompressedSizeCorrupted` when the promise is larger
    (nothing has been allocated), `DecompressionFailed` when the data are corrupt, the codec is unknown, or
    the size is another. With codec NONE the promise is not looked at: not every client makes it.
    """
    if codec == CompressionType.NONE:
        return data
    _check_promise(uncompressed_size, limit)
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise DecompressionFailed(f"a payload is compressed with the unknown codec {codec}")
    output = decompressor(data, uncompressed_size)
    if len(output) != uncompressed_size:
        raise DecompressionFailed(
            f"a payload has {len(output)} bytes uncompressed and promised {uncompressed_size}"
        )
    return output


class Compressed:
    """A payload that stays compressed until `decompress` is called. Its length is the one it promises."""

    __slots__ = ("_codec", "_data", "_size")

    def __init__(self, codec: int, data: bytes, uncompressed_size: int, limit: int) -> None:
        """Take the arguments of `decompress`. Raises `UncompressedSizeCorrupted`."""
        _check_promise(uncompressed_size, limit)
        self._codec = codec
        self._data = data
        self._size = uncompressed_size

    def __len__(self) -> int:
        return self._size

    def decompress(self) -> bytes:
        """The payload, anew each time. Raises `DecompressionFailed`."""
        return decompress(self._codec, self._data, self._size, self._size)


def _check_promise(uncompressed_size: int, limit: int) -> None:
    if uncompressed_size < 0 or uncompressed_size > limit:
        raise UncompressedSizeCorrupted(
            f"a payload promises {uncompressed_size} bytes uncompressed, allowed are {limit}"
        )


def _promise_broken(promised: int) -> DecompressionFailed:
    return DecompressionFailed(f"a payload holds more or less than the {promised} bytes it promises")


def _decompress_lz4(data: bytes, size: int) -> bytes:
    # A block carries no size: the library allocates what it is told and stops there.
    try:
        output: bytes = lz4.block.decompress(data, uncompressed_size=size)
    except (lz4.block.LZ4BlockError, ValueError, OverflowError) as error:
        raise DecompressionFailed(f"LZ4: {error}") from None
    return output


def _decompress_zlib(data: bytes, size: int) -> bytes:
    # Java ends its streams with a sync flush: no last block and no Adler-32. So the end of the stream is
    # not asked for, only the size; one byte more is allowed in order to notice more.
    decompressor = zlib.decompressobj()
    try:
        return decompressor.decompress(data, size + 1)
    except zlib.error as error:
        raise DecompressionFailed(f"ZLIB: {error}") from None


def _decompress_zstd(data: bytes, size: int) -> bytes:
    # max_output_size does not limit anything when the frame's header carries a content size: the library
    # allocates that. So the header is read first.
    try:
        content_size = zstandard.frame_content_size(data)
        if content_size >= 0:
            if content_size != size:
                raise _promise_broken(size)
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
        reader = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW).stream_reader(data)
        return reader.read(size + 1)
    except zstandard.ZstdError as error:
        raise DecompressionFailed(f"ZSTD: {error}") from None


_MAX_ZSTD_WINDOW = 8 * 1024 * 1024
"""Bytes of history a frame may ask for; the format's recommendation, and more than level 3 ever asks."""


def _decompress_snappy(data: bytes, size: int) -> bytes:
    try:
        promised, _ = read_varint(data[:5], 0)
    except (IndexError, FrameError):
        raise DecompressionFailed("SNAPPY: the data do not begin with a length") from None
    if promised != size:
        raise _promise_broken(size)
    try:
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise DecompressionFailed(f"SNAPPY: {error}") from None


_DECOMPRESSORS: dict[int, Callable[[bytes, int], bytes]] = {
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZLIB: _decompress_zlib,
    CompressionType.ZSTD: _decompress_zstd,
    CompressionType.SNAPPY: _decompress_snappy,
}
