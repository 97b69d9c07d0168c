"""Encrypted entries that a consumer cannot decrypt, and what it may do with them (CRYPTO-05).

Owns, for one consumer, the reasons for which an entry may be withheld: the consumer has no key reader, its
key reader failed for all keys of the entry, or a hostile broker changed the entry. A consumer that has opened
a data key opens all later entries of that key (INV-E3). It shares no code with the machine.
"""

from pulsar_sansio.model.config import ConsumerSpec
from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction

from ..engine.clock import SECOND
from ..engine.security.key_holder import NEVER, KeyHolder
from .records.entry import StoredEntry
from .records.message_position import Position
from .records.sealed import Sealed


class WithheldEntries:
    """The encrypted entries of one consumer."""

    __slots__ = ("_action", "_arrivals", "_changed", "_entries", "_opened", "_reader", "_timeout")

    def __init__(self, spec: ConsumerSpec) -> None:
        reader = spec.crypto_key_reader
        self._reader: KeyHolder | None = reader if isinstance(reader, KeyHolder) else None
        self._action = spec.crypto_failure_action
        self._timeout = round(spec.acknowledgement_timeout * SECOND)
        self._arrivals: dict[Position, int] = {}
        """Virtual time of the last arrival of each encrypted entry."""
        self._entries: dict[Position, StoredEntry] = {}
        self._changed: set[Position] = set()
        """Entries that arrived changed by a hostile broker."""
        self._opened: dict[bytes, int] = {}
        """Wrapped data keys, each with the time at which a message of it was delivered first."""

    @property
    def reader(self) -> KeyHolder | None:
        return self._reader

    def arrived(self, position: Position, entry: StoredEntry, changed: bool, now: int) -> None:
        """An encrypted entry arrived. `changed`: it is not as the producer wrote it."""
        sealed = entry.sealed
        assert sealed is not None
        self._arrivals[position] = now
        self._entries[position] = entry
        reader = self._reader
        if reader is not None:
            for key, wrapped in zip(sealed.keys, sealed.wrapped, strict=True):
                reader.arrived.setdefault(key, set()).add(wrapped)
            reader.disturbed = reader.disturbed or changed
        if changed:
            self._changed.add(position)
        else:
            self._changed.discard(position)

    def opened(self, position: Position, sealed: Sealed, now: int) -> None:
        """A message of the entry was delivered decrypted."""
        self._arrivals.pop(position, None)
        for wrapped in sealed.wrapped:
            self._opened.setdefault(wrapped, now)

    def is_changed(self, position: Position) -> bool:
        return position in self._changed

    def excuses(self, position: Position) -> bool:
        """True when there is a reason that the consumer did not decrypt the entry when it arrived last."""
        arrived = self._arrivals.get(position)
        if arrived is None:
            return False
        if position in self._changed or self._reader is None:
            return True
        sealed, reader = self._entries[position].sealed, self._reader
        assert sealed is not None
        if any(self._opened.get(wrapped, arrived) < arrived for wrapped in sealed.wrapped):
            return False
        return all(reader.failures.get(key, NEVER) >= arrived - reader.memory for key in sealed.keys)

    def may_skip(self, position: Position) -> bool:
        """True when the application need not get the entry."""
        return self._action is not ConsumerCryptoFailureAction.CONSUME and self.excuses(position)

    def may_discard(self, position: Position) -> bool:
        """True when the consumer may acknowledge the entry by itself."""
        return self._action is ConsumerCryptoFailureAction.DISCARD and self.excuses(position)

    def may_deliver(self, position: Position) -> bool:
        """True when the consumer may deliver the entry as it is."""
        return self._action is ConsumerCryptoFailureAction.CONSUME and self.excuses(position)

    def is_due(self, position: Position, now: int) -> bool:
        """True when the acknowledgement timeout of a withheld entry has expired."""
        arrived = self._arrivals.get(position)
        return (
            bool(self._timeout)
            and self._action is ConsumerCryptoFailureAction.FAIL
            and arrived is not None
            and now >= arrived + self._timeout
            and self.excuses(position)
        )

    def any_due(self, now: int) -> bool:
        """True when the timeout of any withheld entry has expired; then everything is asked for."""
        found = any(self.is_due(position, now) for position in self._arrivals)
        if found:
            self._arrivals.clear()
        return found
