"""The trace of a world: (time, actor, event) as stable text, hashed as it grows.

Owns what "the same run" means: two runs are the same when their trace hashes are equal. Only numbers, names
and bytes go in, never a default repr, an address or the order of a set. With `keep` the lines are kept for
people.
"""

from hashlib import blake2b

_FLUSH_AT = 512


class Trace:
    """Lines are hashed in portions; `hexdigest` includes everything so far."""

    __slots__ = ("_hash", "_pending", "count", "keep", "lines")

    def __init__(self, keep: bool = False) -> None:
        self._hash = blake2b(digest_size=16)
        self._pending: list[str] = []
        self.keep = keep
        self.lines: list[str] = []
        self.count = 0

    def add(self, now: int, actor: str, event: str) -> None:
        self.count += 1
        self._pending.append(f"{now} {actor} {event}")
        if len(self._pending) >= _FLUSH_AT:
            self._flush()

    def add_bytes(self, now: int, actor: str, event: str, data: bytes) -> None:
        """The bytes themselves are hashed; the line shows their number."""
        self.add(now, actor, f"{event} {len(data)} bytes")
        self._hash.update(data)

    def note(self, now: int, actor: str, event: str) -> None:
        """A line for people only: no part of the hash, dropped unless lines are kept."""
        if self.keep:
            self._flush()
            self.lines.append(f"{now} {actor}   {event}")

    def _flush(self) -> None:
        if self.keep:
            self.lines += self._pending
        self._hash.update("\n".join(self._pending).encode())
        self._pending.clear()

    def hexdigest(self) -> str:
        self._flush()
        return self._hash.hexdigest()
