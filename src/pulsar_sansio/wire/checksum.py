"""CRC-32C (Castagnoli) of payload frames (GAP-02)."""

from collections.abc import Callable

from crc32c import crc32c as _crc32c

crc32c: Callable[..., int] = _crc32c
"""`crc32c(data, value=0)`: the checksum of `data`, going on from `value`, the checksum of what came before.

The library's own function, not a wrapper of it: it is called for every message.
"""
