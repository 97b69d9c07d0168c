"""A hostile broker's change of an encrypted entry: one byte, under a right checksum."""

from pulsar_sansio.wire import crc32c, unpack_payload

from ..engine.randomness import Stream

_STAMP, _CHECKED = b"\x0e\x02", b"\x0e\x01"

PARTS = ("payload", "nonce", "wrapped key")
"""The parts of an entry that may be changed."""


def is_encrypted(entry: bytes) -> bool:
    return bool(unpack_payload(entry).metadata.encryption_keys)


def changed(entry: bytes, part: str, stream: Stream) -> bytes:
    """Return an encrypted entry of which one byte of that part is another one."""
    _, _, metadata, payload = unpack_payload(entry)
    sought = {
        "payload": payload,
        "nonce": metadata.encryption_param or b"",
        "wrapped key": metadata.encryption_keys[0].value,
    }[part]
    at = entry.rindex(sought) + stream.below(len(sought))
    other = bytes((*entry[:at], entry[at] ^ (1 << stream.below(8)), *entry[at + 1 :]))
    start = 6 + int.from_bytes(other[2:6]) if other.startswith(_STAMP) else 0
    if other[start : start + 2] != _CHECKED:
        return other
    body = other[start + 6 :]
    return other[: start + 2] + crc32c(body).to_bytes(4) + body
