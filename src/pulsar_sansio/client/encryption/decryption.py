"""`Decryption`: the data keys of one consumer, and the private keys that it wants for them (CRYPTO-08).

An entry has its data key once for each recipient. The consumer asks for one private key after the other,
until one of them unwraps the data key. It keeps data keys, not private keys. It remembers failures for a
while, so that a backlog of entries of another recipient does not ask for every entry.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple

from ...encryption import DataKey, unwrap_data_key, wrapped_keys
from ...model.errors import CryptoError
from ...wire import EncryptionKey, MessageMetadata, UniformEncryption
from ..connecting.services import Services
from .key_requests import KeyAnswer

MAX_DATA_KEYS = 1000
"""Data keys that a consumer keeps; those used last stay. A producer has one at a time."""

DATA_KEY_TIME = 4 * 3600 * 1_000_000_000
"""Nanoseconds for which a consumer keeps a data key after its last use, as the Java client does."""

FAILURE_TIME = 10 * 1_000_000_000
"""Nanoseconds before a consumer asks once more for a key that it could not have. In a rotation of keys the
new one may arrive later than the messages."""

MAX_FAILURES = 1000
"""Failures that a consumer remembers. Names of keys come from any producer."""

MAX_REASONS = 3
"""Keys in the text of one error."""


class _Known(NamedTuple):
    data_key: DataKey
    used: int


class _Failure(NamedTuple):
    until: int
    error: CryptoError


class Decryption:
    """The keys of one consumer with a key reader. `on_answer`: called when a key or a refusal has come."""

    __slots__ = (
        "_context",
        "_failures",
        "_keys",
        "_reader",
        "_request",
        "_services",
        "_waits_since",
        "awaited",
        "on_answer",
    )

    def __init__(self, services: Services, reader: object, on_answer: Callable[[], None]) -> None:
        self._services = services
        self._context = services.context
        self._reader = reader
        self._keys: OrderedDict[bytes, _Known] = OrderedDict()
        """Data keys by their wrapped form."""
        self._failures: OrderedDict[Hashable, _Failure] = OrderedDict()
        self._request: int | None = None
        self._waits_since: int | None = None
        """The moment from which the first waiting entry has waited; None while none waits."""
        self.awaited: str | None = None
        """The name of the key that the consumer has asked for; else None."""
        self.on_answer = on_answer

    def is_waiting_for(self, metadata: MessageMetadata) -> bool:
        """Tell whether an encrypted entry has to wait for a key, and ask for that key if so. An entry with a
        known data key does not wait, nor does one that cannot be decrypted."""
        try:
            keys = wrapped_keys(metadata.encryption_keys)
        except CryptoError:
            return False
        self._forget_old()
        for key in keys:
            if key.value in self._keys:
                self._wait_is_over(keys)
                return False
        untried = [key for key in keys if self._failure(key) is None]
        if not untried:
            self._wait_is_over(keys)
            return False
        if self._waits_since is None:
            self._waits_since = self._context.now
        if self._request is None:
            self._ask(untried[0])
        return True

    def stop_waiting(self) -> None:
        """The waiting entries were dropped: failures count from their own moments again."""
        self._waits_since = None

    def decrypt(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        """Return the plaintext of an entry that does not wait. Raises `CryptoError`, which says why each key
        failed."""
        reasons = []
        for key in wrapped_keys(metadata.encryption_keys):
            known = self._keys.get(key.value)
            if known is not None:
                self._use(key, known.data_key)
                try:
                    return known.data_key.decrypt(metadata.encryption_param or b"", payload)
                except CryptoError as error:
                    reasons.append(f"encryption key {key.key!r:.100}: {error}")
            elif (failure := self._failure(key)) is not None:
                reasons.append(str(failure.error))
        more = f" (and {len(reasons) - MAX_REASONS} more)" if len(reasons) > MAX_REASONS else ""
        raise CryptoError("; ".join(reasons[:MAX_REASONS]) + more)

    def decrypt_all(self, encryption: UniformEncryption, payloads: Sequence[bytes]) -> list[bytes] | None:
        """Return the plaintexts of uniform entries, while no entry waits. Return None where they may need
        another key, or cannot all be decrypted: then each has to be asked for by itself."""
        try:
            keys = wrapped_keys(encryption.keys)
        except CryptoError:
            return None
        self._forget_old()
        for key in keys:
            known = self._keys.get(key.value)
            if known is not None:
                self._use(key, known.data_key)
                try:
                    return list(map(known.data_key.decrypt, encryption.nonces, payloads))
                except CryptoError:
                    return None
        return None

    def close(self) -> None:
        """Ask for no more keys, and forget all."""
        if self._request is not None:
            self._services.keys.cancel(self._request)
            self._request = self.awaited = None
        self._waits_since = None
        self._keys.clear()
        self._failures.clear()

    # --- inside ------------------------------------------------------------------------------------

    def _use(self, key: EncryptionKey, data_key: DataKey) -> None:
        self._keys[key.value] = _Known(data_key, self._context.now)
        self._keys.move_to_end(key.value)

    def _ask(self, key: EncryptionKey) -> None:
        self.awaited = key.key
        self._request = self._services.keys.ask(
            self._reader, key.key, dict(key.metadata), private=True, then=partial(self._answered, key)
        )

    def _answered(self, key: EncryptionKey, answer: KeyAnswer) -> None:
        self._request = self.awaited = None
        if isinstance(answer, CryptoError):
            self._note_failure(_refusal(key), answer)
        else:
            try:
                data_key = unwrap_data_key(answer.key.reveal(), key.value)
            except CryptoError as error:
                why = CryptoError(f"encryption key {key.key!r:.100}: {error}")
                self._note_failure((key.key, key.value), why)
            else:
                self._keys[key.value] = _Known(data_key, self._context.now)
                if len(self._keys) > MAX_DATA_KEYS:
                    self._keys.popitem(last=False)
        self.on_answer()

    def _wait_is_over(self, keys: Sequence[EncryptionKey]) -> None:
        """Remember the failures of an entry from now on, so that entries behind it ask for none of them."""
        if self._waits_since is None:
            return
        self._waits_since = None
        for key in keys:
            for what in ((key.key, key.value), _refusal(key)):
                if what in self._failures:
                    self._note_failure(what, self._failures[what].error)

    def _note_failure(self, what: Hashable, error: CryptoError) -> None:
        self._failures[what] = _Failure(self._context.now + FAILURE_TIME, error)
        self._failures.move_to_end(what)
        if len(self._failures) > MAX_FAILURES:
            self._failures.popitem(last=False)

    def _failure(self, key: EncryptionKey) -> _Failure | None:
        return self._failures.get((key.key, key.value)) or self._failures.get(_refusal(key))

    def _forget_old(self) -> None:
        """Forget what was kept for long enough. No failure expires while an entry waits: a slow key reader
        would otherwise be asked for the entry's keys in turn, for ever."""
        now = self._context.now
        while self._keys and next(iter(self._keys.values())).used + DATA_KEY_TIME <= now:
            self._keys.popitem(last=False)
        expired = now if self._waits_since is None else self._waits_since
        while self._failures and next(iter(self._failures.values())).until <= expired:
            self._failures.popitem(last=False)


def _refusal(key: EncryptionKey) -> Hashable:
    """Return what the key reader refused: it does not know the wrapped data key."""
    return key.key, key.metadata
