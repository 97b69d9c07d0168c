"""The trace of a world: (time, actor, event) as stable text, hashed as it grows.

Owns the equality of runs: two runs are equal when their trace hashes are. Only numbers, names and bytes go
in, never a default repr, an address or the order of a set. With `keep` the lines are kept for readers.
"""

from hashlib import blake2b

_FLUSH_AT = 512


class Trace:
    """Lines are hashed in portions, bytes at once and separately: the portions do not change the hash."""

    __slots__ = ("_bytes", "_lines", "_pending", "keep", "lines")

    def __init__(self, keep: bool = False) -> None:
        self._lines = blake2b(digest_size=16)
        self._bytes = blake2b(digest_size=16)
        self._pending: list[str] = []
        self.keep = keep
        self.lines: list[str] = []

    def add(self, now: int, actor: str, event: str) -> None:
        pending = self._pending
        pending.append(f"{now} {actor} {event}\n")
        if len(pending) >= _FLUSH_AT:
            self._flush()

    def add_bytes(self, now: int, actor: str, event: str, data: bytes) -> None:
        """Add a line with the number of bytes, and hash the bytes themselves."""
        self._bytes.update(data)
        pending = self._pending
        pending.append(f"{now} {actor} {event} {len(data)} bytes\n")
        if len(pending) >= _FLUSH_AT:
            self._flush()

    def note(self, now: int, actor: str, event: str) -> None:
        """Add a line for readers only: it is no part of the hash, and dropped unless lines are kept."""
        if self.keep:
            self._flush()
            self.lines.append(f"{now} {actor}   {event}")

    def _flush(self) -> None:
        if self.keep:
            self.lines += [line[:-1] for line in self._pending]
        self._lines.update("".join(self._pending).encode())
        self._pending.clear()

    def hexdigest(self) -> str:
        """Return the hash of everything so far."""
        self._flush()
        both = self._lines.digest() + self._bytes.digest()
        return blake2b(both, digest_size=16).hexdigest()
