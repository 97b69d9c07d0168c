"""`KeyRequests`: the keys that producers and consumers of one client wait for.

The machine reads no keys. It emits `EncryptionKeyWanted`, and the driver answers when the key reader has
answered. A request that the driver does not answer within the operation timeout fails. A key reader that is
slow or fails holds up the one producer or consumer that asked.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from ...core.deadlines import Slot
from ...model.encryption import EncryptionKeyInfo
from ...model.errors import CryptoError, InvalidConfiguration
from ..connecting.services import ClientContext, Durations
from ..outputs import EncryptionKeyWanted

KeyAnswer: TypeAlias = EncryptionKeyInfo | CryptoError
"""The key, or why there is none. The error names the key."""


class _Pending(NamedTuple):
    key: str
    then: Callable[[KeyAnswer], None]
    deadline: Slot


class KeyRequests:
    """The open requests for keys. `entropy(size)` returns random bytes, for data keys and nonces; None for a
    client whose driver gives none."""

    __slots__ = ("_context", "_pending", "_timeout", "entropy")

    def __init__(
        self, context: ClientContext, durations: Durations, entropy: Callable[[int], bytes] | None
    ) -> None:
        self.entropy = entropy
        self._context = context
        self._timeout = durations.operation_timeout
        self._pending: dict[int, _Pending] = {}

    def check_entropy(self, keys: Collection[str]) -> None:
        """Raise `InvalidConfiguration` for a producer that encrypts for these keys, if the driver has given
        the client no randomness."""
        if keys and self.entropy is None:
            raise InvalidConfiguration("encryption_keys: the driver has to give `Client` an `entropy`")

    def ask(
        self,
        reader: object,
        key: str,
        metadata: Mapping[str, str],
        *,
        private: bool,
        then: Callable[[KeyAnswer], None],
    ) -> int:
        """Ask the driver for a key, and return the request. `then` is called once, later, unless the request
        is cancelled."""
        request = self._context.new_id()
        deadline = self._context.deadlines.slot(partial(self._not_in_time, request))
        deadline.set(self._context.now + self._timeout)
        self._pending[request] = _Pending(key, then, deadline)
        self._context.emit(EncryptionKeyWanted(request, reader, key, metadata, private))
        return request

    def cancel(self, request: int) -> None:
        """Withdraw a request; an answer is ignored."""
        pending = self._pending.pop(request, None)
        if pending is not None:
            pending.deadline.clear()

    def answered(self, request: int, answer: KeyAnswer) -> None:
        """Take the driver's answer. One that no request waits for is ignored: it came too late."""
        pending = self._pending.pop(request, None)
        if pending is None:
            return
        pending.deadline.clear()
        if isinstance(answer, CryptoError):
            named = CryptoError(f"encryption key {pending.key!r:.100}: {answer}")
            named.__cause__ = answer.__cause__
            answer = named
        pending.then(answer)

    def _not_in_time(self, request: int) -> None:
        seconds = self._timeout / 1_000_000_000
        self.answered(request, CryptoError(f"the key reader did not answer within {seconds:g} s"))
