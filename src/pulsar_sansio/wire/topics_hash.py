"""The hash of a list of topics, by which client and broker see whether they have the same (rule WIRE-04)."""

from collections.abc import Iterable

from .checksum import crc32c


def topics_hash(names: Iterable[str]) -> str:
    """CRC32C of the sorted names, joined by commas: its four bytes, lowest first, in hexadecimal."""
    return crc32c(",".join(sorted(names)).encode("utf-8", "surrogateescape")).to_bytes(4, "little").hex()
