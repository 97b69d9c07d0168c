"""The encryption of the clients' frames, and their questions for keys (CRYPTO).

Owns what is known of data keys and nonces over a whole world, whichever process, producer or partition uses
them. It opens each encrypted SEND by the private key of every recipient, so that the other checks see the
messages. It shares no code with the machine.
"""

from typing import TYPE_CHECKING, Any

from pulsar_sansio.model.encryption import ProducerCryptoFailureAction
from pulsar_sansio.wire import MessageMetadata

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.security.encryption_plan import EncryptionPlan
from ..engine.security.key_holder import NEVER, KeyHolder, key_id
from ..engine.security.key_keeper import version_of
from ..engine.security.key_pairs import OpeningError, decrypt, fingerprint, unwrap
from ..model.records.entry import StoredEntry
from ..model.records.producer_record import ProducerRecord
from ..model.records.sealed import Sealed

if TYPE_CHECKING:
    from pulsar_sansio.client.outputs import EncryptionKeyWanted

NONCE_SIZE = 12

RETRY = 10 * SECOND
"""Nanoseconds for which a consumer does not repeat a question that was refused."""

LATE = 3 * SECOND
"""Nanoseconds by which a data key may be renewed late, beside the answers of the key reader."""


class EncryptionWatch:
    """The encryption of all clients of a world. `plan`: None where nothing is encrypted."""

    def __init__(self, plan: EncryptionPlan | None) -> None:
        self._plan = plan
        self._payloads: dict[tuple[bytes, bytes], bytes] = {}
        """The entry of each data key and nonce."""
        self._owners: dict[bytes, tuple[str, str]] = {}
        """The producer and the topic of each data key."""
        self._since: dict[bytes, int] = {}
        """Virtual time at which each data key was first used."""
        self._letters = KeyHolder("letters", 0, private=False, dependable=False, several=True)
        """Stands for the key readers of all producers of letters, whose names are not known at first."""
        self._unwrapped: dict[tuple[str, int, bytes], bytes] = {}

    @property
    def letters(self) -> dict[str, Any]:
        """The encryption options of producers of letters."""
        if self._plan is None or not self._plan.letters:
            return {}
        return {"encryption_keys": self._plan.names, "crypto_key_reader": self._letters}

    # --- questions ---

    def asked(self, reader: KeyHolder, output: "EncryptionKeyWanted", now: int) -> None:
        """INV-E4: the client asks for a key that it needs, and asks no question again that is open, was
        refused just now, or was answered."""
        key = key_id(output.key, output.metadata)
        if output.private is not reader.private:
            raise ViolationError("INV-E4", f"{reader.owner}: asks for the wrong half of {output.key}")
        if not reader.private:
            if key[1] or (self._plan is not None and output.key not in self._plan.names):
                raise ViolationError("INV-E4", f"{reader.owner}: asks for {key}")
            if not reader.several and key in reader.open.values():
                raise ViolationError("INV-E4", f"{reader.owner}: asks for {output.key} twice")
            return
        if key not in reader.arrived and not reader.disturbed:
            raise ViolationError("INV-E4", f"{reader.owner}: asks for {key}, for which no message came")
        if reader.several:
            return
        if reader.open:
            raise ViolationError("INV-E4", f"{reader.owner}: asks for {output.key} while it waits for a key")
        if now < reader.refusals.get(key, NEVER - RETRY) + RETRY:
            raise ViolationError("INV-E4", f"{reader.owner}: asks for {output.key} again too early")
        if not reader.disturbed and reader.right.get(key, 0) >= len(reader.arrived[key]):
            raise ViolationError("INV-E4", f"{reader.owner}: asks for {output.key}, and has it")

    # --- producers ---

    def opens(self, record: ProducerRecord, command: Any) -> None:
        """INV-E1: a producer says that it encrypts, and does not open without its keys (CRYPTO-03)."""
        spec = record.spec
        if command.encrypted is not bool(spec.encryption_keys):
            raise ViolationError("INV-E1", f"{record.tag}: encrypted is {command.encrypted} in PRODUCER")
        reader = spec.crypto_key_reader
        if (
            isinstance(reader, KeyHolder)
            and reader.complete_at is None
            and spec.crypto_failure_action is ProducerCryptoFailureAction.FAIL
        ):
            raise ViolationError("INV-E1", f"{record.tag}: opens without its keys")

    def opened(
        self, record: ProducerRecord, topic: str, metadata: MessageMetadata, payload: bytes, whole: bytes
    ) -> tuple[bytes, Sealed | None]:
        """INV-E1, INV-E2, INV-X3: return the plaintext of a SEND that is written the first time. `whole`: the
        entry as it lies in the frame."""
        wanted = record.spec.encryption_keys
        if not metadata.encryption_keys:
            if wanted and record.spec.crypto_failure_action is ProducerCryptoFailureAction.FAIL:
                raise ViolationError("INV-E1", f"{record.tag}: sends an unencrypted message")
            return payload, None
        names = tuple(key.key for key in metadata.encryption_keys)
        if names != wanted:
            raise ViolationError("INV-E1", f"{record.tag}: encrypts for {names}, and not for {wanted}")
        data_key = self._data_key(record, metadata)
        nonce = metadata.encryption_param or b""
        if len(nonce) != NONCE_SIZE:
            raise ViolationError("INV-E1", f"{record.tag}: a nonce of {len(nonce)} bytes")
        if self._payloads.setdefault((data_key, nonce), whole) != whole:
            raise ViolationError(
                "INV-X3", f"{record.tag}: nonce {nonce.hex()} twice with data key {fingerprint(data_key)}"
            )
        owner = ("letters" if record.spec.crypto_key_reader is self._letters else record.tag), topic
        if self._owners.setdefault(data_key, owner) != owner:
            raise ViolationError("INV-E2", f"{owner} and {self._owners[data_key]} have one data key")
        try:
            plain = decrypt(data_key, nonce, payload)
        except OpeningError as error:
            raise ViolationError(
                "INV-E1", f"{record.tag}: a payload that cannot be decrypted: {error}"
            ) from None
        keys = tuple((key.key, tuple(key.metadata)) for key in metadata.encryption_keys)
        wrapped = tuple(key.value for key in metadata.encryption_keys)
        return plain, Sealed(keys, wrapped, data_key, nonce, payload)

    def _data_key(self, record: ProducerRecord, metadata: MessageMetadata) -> bytes:
        """INV-E1: return the one data key that every recipient can unwrap."""
        found = set()
        for key in metadata.encryption_keys:
            question = key.key, version_of(key.metadata), key.value
            if question not in self._unwrapped:
                try:
                    self._unwrapped[question] = unwrap(*question)
                except OpeningError as error:
                    raise ViolationError("INV-E1", f"{record.tag}: {key.key}: {error}") from None
            found.add(self._unwrapped[question])
        if len(found) != 1:
            raise ViolationError("INV-E1", f"{record.tag}: the recipients have different data keys")
        return found.pop()

    def check_time(self, record: ProducerRecord, entry: StoredEntry, now: int) -> None:
        """INV-E1, INV-E2: a producer that has its keys sends no message in clear, and none with a data key
        that should have been renewed (CRYPTO-01). Each partition has its keys by itself."""
        plan, reader, sealed = self._plan, record.spec.crypto_key_reader, entry.sealed
        if plan is None or not isinstance(reader, KeyHolder):
            return
        if sealed is None:
            complete_at, sent = reader.complete_at, entry.messages[-1]
            if complete_at is not None and sent.sent_at > complete_at and not reader.several:
                raise ViolationError("INV-E1", f"{record.tag}: {sent} is not encrypted")
            return
        since = self._since.setdefault(sealed.data_key, now)
        limit = since + plan.renewal + plan.delay + LATE
        if plan.renewal and entry.source.sent_at > limit and not reader.failed_since(since):
            raise ViolationError(
                "INV-E2", f"{record.tag}: {entry.source} has data key {fingerprint(sealed.data_key)}, too old"
            )
