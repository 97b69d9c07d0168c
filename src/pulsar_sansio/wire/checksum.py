"""CRC-32C (Castagnoli) of payload frames (wire: checksum)."""

from crc32c import crc32c as _crc32c


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of `data`, going on from `value`, the checksum of what came before."""
    result: int = _crc32c(data, value)
    return result
