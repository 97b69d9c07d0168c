"""`EntryEncryption`: the encryption of one producer's entries, and the renewal of its data key (CRYPTO-01).

A producer reads its public keys before it opens, and again every four hours. Each time it makes a data key.
Without a public key, opening fails; with `ProducerCryptoFailureAction.SEND` the producer sends unencrypted
messages until it has all of them. Once it has encrypted it never goes back: when a renewal fails, the
producer keeps its data key and tries again (rules PROD-05, CRYPTO-03).

(The Java client fails to open with SEND too, and so never sends in clear. The official C++ and Python clients
do as this one.)
"""

from collections.abc import Callable
from functools import partial

from ...core.backoff import Backoff
from ...encryption import TAG_SIZE, EntryCipher
from ...model.config import ProducerSpec
from ...model.encryption import EncryptionKeyInfo, ProducerCryptoFailureAction
from ...model.errors import CryptoError
from ...wire import MessageMetadata
from ..connecting.services import Services
from ..explanation import reason
from ..outputs import EncryptionKeysFailed
from .key_requests import KeyAnswer


class EntryEncryption:
    """The encryption of one producer with `encryption_keys`."""

    __slots__ = (
        "_backoff",
        "_context",
        "_failed",
        "_failed_with",
        "_handle",
        "_infos",
        "_proceed",
        "_requests",
        "_services",
        "_spec",
        "_timer",
        "cipher",
        "failures",
    )

    overhead = TAG_SIZE
    """Bytes that encryption adds to a payload."""

    def __init__(self, services: Services, handle: int, spec: ProducerSpec) -> None:
        context, durations = services.context, services.durations
        self._context = context
        self._services = services
        self._handle = handle
        self._spec = spec
        self.cipher: EntryCipher | None = None
        """This is None while entries are not encrypted."""
        self._requests: dict[str, int] = {}
        """The open requests, by the names of their keys."""
        self._infos: dict[str, EncryptionKeyInfo] = {}
        """The public keys of this attempt that are there."""
        self._proceed: Callable[[], None] | None = None
        """Opens the producer; None once called."""
        self._failed: Callable[[CryptoError], None] | None = None
        self.failures = 0
        """The attempts to read the keys that failed while the producer went on."""
        self._failed_with: CryptoError | None = None
        """The error of the latest attempt; None after one that succeeded."""
        self._backoff = Backoff(durations.initial_backoff, durations.max_backoff, context.rng)
        self._timer = context.deadlines.slot(self._ask)

    def begin(self, proceed: Callable[[], None], failed: Callable[[CryptoError], None]) -> None:
        """Read the public keys, then call `proceed`, or `failed` where the producer cannot be opened. Call
        once."""
        self._proceed = proceed
        self._failed = failed
        self._ask()

    @property
    def awaited(self) -> list[str]:
        """The names of the keys that the producer waits for before it opens."""
        return [] if self._proceed is None else list(self._requests)

    def explain(self) -> list[str]:
        """Describe the keys that cannot be had, while the producer goes on without them."""
        if self._failed_with is None:
            return []
        how = "go unencrypted" if self.cipher is None else "are encrypted with the last data key"
        failures = f"{self.failures} readings of the encryption keys have failed"
        return [f"messages {how}: {failures}, the latest{reason(self._failed_with)}"]

    def encrypt(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        """Return the payload encrypted, and set what `metadata` says of it. Return the payload itself while
        the producer has no keys."""
        return payload if self.cipher is None else self.cipher.encrypt(metadata, payload)

    def close(self) -> None:
        """Ask for no more keys."""
        for request in self._requests.values():
            self._services.keys.cancel(request)
        self._requests.clear()
        self._infos.clear()
        self._timer.clear()
        self._proceed = self._failed = None

    def _ask(self) -> None:
        keys, reader = self._services.keys, self._spec.crypto_key_reader
        for name in self._spec.encryption_keys:
            then = partial(self._answered, name)
            self._requests[name] = keys.ask(reader, name, {}, private=False, then=then)

    def _answered(self, name: str, answer: KeyAnswer) -> None:
        del self._requests[name]
        if isinstance(answer, CryptoError):
            self._attempt_failed(answer)
            return
        self._infos[name] = answer
        if self._requests:
            return
        recipients = [(key, self._infos[key]) for key in self._spec.encryption_keys]
        assert self._services.keys.entropy is not None
        try:
            self.cipher = EntryCipher.new(recipients, self._services.keys.entropy)
        except CryptoError as error:
            self._attempt_failed(error)
            return
        self._infos.clear()
        self._failed_with = None
        self._backoff.reset()
        self._timer.set(self._context.now + self._services.durations.data_key_renewal)
        self._open()

    def _open(self) -> None:
        proceed, self._proceed, self._failed = self._proceed, None, None
        if proceed is not None:
            proceed()

    def _attempt_failed(self, error: CryptoError) -> None:
        failed = self._failed
        sends = self._spec.crypto_failure_action is ProducerCryptoFailureAction.SEND
        if failed is not None and not sends:
            failed(error)
            return
        for request in self._requests.values():
            self._services.keys.cancel(request)
        self._requests.clear()
        self._infos.clear()
        self.failures += 1
        self._failed_with = error
        wait = self._backoff.next(self._context.now)
        self._timer.set(self._context.now + wait)
        in_clear = self.cipher is None
        self._context.emit(EncryptionKeysFailed(self._handle, error, wait, in_clear))
        self._open()
