"""`KeyHolder`: the key reader of one producer or consumer of a world, its questions and its answers.

Owns facts alone: `key_keeper` decides the answers, and the checks read the facts.
"""

from collections.abc import Mapping
from typing import TypeAlias

KeyId: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a key, and what the producer wrote of it."""

NEVER = -1
"""A virtual time before all others."""


def key_id(name: str, metadata: Mapping[str, str]) -> KeyId:
    return name, tuple(metadata.items())


class KeyHolder:
    """The questions to one key reader, and its answers."""

    __slots__ = (
        "arrived",
        "complete_at",
        "dependable",
        "disturbed",
        "failures",
        "having",
        "memory",
        "open",
        "owner",
        "private",
        "refusals",
        "right",
        "several",
    )

    def __init__(self, owner: str, memory: int, *, private: bool, dependable: bool, several: bool) -> None:
        self.owner = owner
        self.memory = memory
        """Nanoseconds for which a failure may be the reason that a message is not decrypted, at most."""
        self.private = private
        """A consumer uses the reader, and wants private keys."""
        self.dependable = dependable
        """The reader has every key in time."""
        self.several = several
        """Several producers or consumers of one client use it: one for each topic or partition."""
        self.open: dict[int, KeyId] = {}
        """Questions without an answer."""
        self.failures: dict[KeyId, int] = {}
        """Virtual time of the last question for each key that failed."""
        self.refusals: dict[KeyId, int] = {}
        """Virtual time of the last question for each key that had no key for an answer."""
        self.having: set[str] = set()
        """The keys that a producer has so far. When it cannot have one it begins anew."""
        self.right: dict[KeyId, int] = {}
        """The number of right answers for each key that came in time."""
        self.complete_at: int | None = None
        """Virtual time at which a producer had all its keys first."""
        self.arrived: dict[KeyId, set[bytes]] = {}
        """The wrapped data keys of messages that arrived at the consumer."""
        self.disturbed = False
        """A message arrived that a hostile broker had changed."""

    def failed(self, request: int, now: int, *, refused: bool) -> None:
        """A question has failed. `refused`: there was no key for an answer, or none in time."""
        key = self.open.pop(request, None)
        if key is not None:
            self.failures[key] = now
            if refused:
                self.refusals[key] = now
            self.having.clear()
            if not self.private and not self.several:  # the producer asks for all of them again
                self.open.clear()

    def answered(self, request: int, wanted: int, now: int) -> None:
        """The right key came in time. `wanted`: the number of keys that a producer needs."""
        key = self.open.pop(request, None)
        if key is None:
            return
        self.right[key] = self.right.get(key, 0) + 1
        self.having.add(key[0])
        if self.complete_at is None and (len(self.having) == wanted or self.several):
            self.complete_at = now

    def failed_since(self, time: int) -> bool:
        """True when a question has failed since, or is open."""
        return bool(self.open) or max(self.failures.values(), default=NEVER) >= time

    def __repr__(self) -> str:
        return f"KeyHolder({self.owner})"
