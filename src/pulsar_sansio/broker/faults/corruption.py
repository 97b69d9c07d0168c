"""Damage to one entry on its way: a bit of its checksum or of its payload is changed."""

from ...core.rng import Rng

_BROKER_ENTRY_METADATA = b"\x0e\x02"
_CHECKSUM = b"\x0e\x01"
_SIZE = 4
"""Bytes of a size and of a checksum."""


def corrupted(entry: bytes, rng: Rng) -> bytes:
    """Change one bit. `entry`: everything behind the command of a SEND or MESSAGE.

    Metadata stay whole, so a client without checksums reads them and gets another payload.
    """
    start = 0
    if entry[:2] == _BROKER_ENTRY_METADATA:
        start = 6 + int.from_bytes(entry[2:6], "big")
    places: list[int] = []
    if entry[start : start + 2] == _CHECKSUM:
        places += range(start + 2, start + 2 + _SIZE)
        start += 2 + _SIZE
    payload = start + _SIZE + int.from_bytes(entry[start : start + _SIZE], "big")
    size = max(0, len(entry) - payload)
    choice = rng.below(max(1, len(places) + size))
    place = places[choice] if choice < len(places) else payload + choice - len(places)
    if place >= len(entry):  # no checksum and no payload
        return entry
    return entry[:place] + bytes([entry[place] ^ 1 << rng.below(8)]) + entry[place + 1 :]
