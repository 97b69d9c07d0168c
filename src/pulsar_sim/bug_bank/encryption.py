"""Bugs of end-to-end encryption: data keys and nonces, key readers, and messages that cannot be decrypted."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pulsar_sansio.client.acknowledging.redelivery import Redelivery
from pulsar_sansio.client.arrival.arrival import Arrival
from pulsar_sansio.client.arrival.encrypted_arrival import EncryptedArrival
from pulsar_sansio.client.arrival.undelivered_entries import UndeliveredEntries
from pulsar_sansio.client.encryption import decryption as decryption_module
from pulsar_sansio.client.encryption.decryption import Decryption
from pulsar_sansio.client.encryption.entry_encryption import EntryEncryption
from pulsar_sansio.client.encryption.key_requests import KeyRequests
from pulsar_sansio.client.letter_topics.delivery_counts import DeliveryCounts
from pulsar_sansio.client.letter_topics.letter_topics import LetterTopics
from pulsar_sansio.client.producing.registration import Registration
from pulsar_sansio.encryption import DATA_KEY_SIZE, TAG_SIZE, DataKey, EntryCipher
from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction
from pulsar_sansio.model.errors import CryptoError
from pulsar_sansio.wire import MessageMetadata, open_payload, proto

from .planted_bug import Patches, bug, nothing
from .preconditions import encryption as needs
from .preconditions import general

_CONSUME = ConsumerCryptoFailureAction.CONSUME


# --- historical -----------------------------------------------------------------------------------------


@bug("BUG-013", caught_by=("INV-N5",), needs=[needs.fails_with_timeouts])
def undecryptable_messages_are_forgotten(patches: Patches) -> None:
    """A message that cannot be decrypted is neither delivered nor asked for again."""
    patches.replace(Redelivery, "not_delivered", nothing)


@bug("BUG-014", caught_by=("INV-C2",), needs=[needs.consumes, general.compressed])
def ciphertext_is_decompressed(patches: Patches) -> None:
    """A compressed message that is to be delivered as it is fails at decompression, and is discarded."""

    def undecryptable(original: Any, self: Any, position: Any, metadata: MessageMetadata, *rest: Any) -> None:
        cost = rest[3]
        if metadata.compression and self._services.spec.crypto_failure_action is _CONSUME:
            self.undelivered.discard(position, cost, proto.CommandAck.DecompressionError)
        else:
            original(self, position, metadata, *rest)

    patches.around(Arrival, "_undecryptable", undecryptable)


@bug("BUG-112", caught_by=("exception",), needs=[needs.wrong_keys])
def a_broken_data_key_crashes(patches: Patches) -> None:
    """The consumer does not expect that a private key does not fit the data key."""

    def unwrap(original: Any, private_key: bytes, wrapped: bytes) -> Any:
        try:
            return original(private_key, wrapped)
        except CryptoError as error:
            raise ValueError(str(error)) from None

    patches.around(decryption_module, "unwrap_data_key", unwrap)


# --- data keys and nonces -------------------------------------------------------------------------------


@bug("own", caught_by=("INV-X3",), needs=[needs.encryption])
def one_nonce_for_each_data_key(patches: Patches) -> None:
    """The nonce is drawn with the data key, and serves all entries."""
    nonces: dict[DataKey, bytes] = {}

    def seal(original: Any, self: Any, payload: bytes) -> tuple[bytes, bytes]:
        nonce = nonces.setdefault(self._data_key, original(self, payload)[0])
        return nonce, self._data_key.encrypt(nonce, payload)

    patches.around(EntryCipher, "seal", seal)


@bug("own", caught_by=("INV-X3",), needs=[needs.encryption, general.chunks])
def nonces_are_sequence_ids(patches: Patches) -> None:
    """The sequence id is the nonce. The chunks of one message have one sequence id."""

    def encrypt(original: Any, self: Any, metadata: MessageMetadata, payload: bytes) -> Any:
        original(self, metadata, payload)
        metadata.encryption_param = nonce = metadata.sequence_id.to_bytes(12)
        return self._data_key.encrypt(nonce, payload)

    patches.around(EntryCipher, "encrypt", encrypt)


@bug("own", caught_by=("INV-E2",), needs=[needs.encryption])
def producers_share_a_data_key(patches: Patches) -> None:
    """All producers of a process encrypt with one data key."""
    shared: list[DataKey] = []

    def new(entropy: Callable[[int], bytes]) -> DataKey:
        if not shared:
            shared.append(DataKey(entropy(DATA_KEY_SIZE)))
        return shared[0]

    patches.replace(DataKey, "new", new)


@bug("own", caught_by=("INV-E2",), needs=[needs.renewals])
def data_keys_are_never_renewed(patches: Patches) -> None:
    """A producer keeps its data key for ever."""

    def ask(original: Any, self: Any) -> None:
        if self.cipher is None:
            original(self)

    patches.around(EntryEncryption, "_ask", ask)


@bug("own", caught_by=("INV-E1",), needs=[needs.failing_renewals])
def a_failed_renewal_ends_encryption(patches: Patches) -> None:
    """A producer that cannot renew its data key sends in clear, whatever its failure action is."""

    def failed(original: Any, self: Any, error: CryptoError) -> None:
        self.cipher = None
        original(self, error)

    patches.around(EntryEncryption, "_attempt_failed", failed)


# --- producers ------------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-E1",), needs=[needs.several_recipients])
def only_the_first_recipient_can_decrypt(patches: Patches) -> None:
    """The data key is wrapped for the first recipient alone."""

    def init(original: Any, self: Any, data_key: DataKey, keys: Any, entropy: Any) -> None:
        original(self, data_key, keys[:1], entropy)

    patches.around(EntryCipher, "__init__", init)


@bug("own", caught_by=("INV-E1",), needs=[needs.failing_keys])
def a_producer_opens_without_its_keys(patches: Patches) -> None:
    """The producer opens while it waits for its keys, and sends in clear until then."""

    def begin(original: Any, self: Any, proceed: Callable[[], None], failed: Any) -> None:
        original(self, nothing, nothing)
        proceed()

    patches.around(EntryEncryption, "begin", begin)


@bug("own", caught_by=("INV-E1",), needs=[needs.encryption])
def encryption_is_not_announced(patches: Patches) -> None:
    """PRODUCER does not say that the producer encrypts."""

    def command(original: Any, self: Any, *arguments: Any) -> Any:
        made = original(self, *arguments)
        made.encrypted = False
        return made

    patches.around(Registration, "command", command)


@bug("own", caught_by=("INV-E1",), needs=[needs.letters])
def letters_are_sent_in_clear(patches: Patches) -> None:
    """The keys of a dead-letter policy are ignored."""

    def producer(original: Any, self: Any, *arguments: Any) -> Any:
        spec = original(self, *arguments)
        object.__setattr__(spec, "encryption_keys", ())
        object.__setattr__(spec, "crypto_key_reader", None)
        return spec

    patches.around(LetterTopics, "_producer", producer)


# --- questions for keys ---------------------------------------------------------------------------------


@bug("own", caught_by=("INV-E4", "INV-N5"), needs=[needs.rotations])
def keys_are_asked_for_without_their_metadata(patches: Patches) -> None:
    """The consumer names the key, and does not say which version of it."""

    def ask(original: Any, self: Any, reader: Any, key: str, metadata: Any, **rest: Any) -> Any:
        return original(self, reader, key, {}, **rest)

    patches.around(KeyRequests, "ask", ask)


@bug("own", caught_by=("INV-E4",), needs=[needs.fails])
def refusals_are_not_remembered(patches: Patches) -> None:
    """The consumer asks for a key again that was refused just now, for each message."""

    def note(original: Any, self: Any, what: Any, error: CryptoError) -> None:
        original(self, what, error)
        self._failures[what] = self._failures[what]._replace(until=self._context.now)

    patches.around(Decryption, "_note_failure", note)


@bug("own", caught_by=("INV-N5", "INV-C9"), needs=[needs.fails_with_timeouts])
def refusals_are_remembered_for_ever(patches: Patches) -> None:
    """A key that a consumer could not have once is never asked for again: its messages are lost."""

    def note(original: Any, self: Any, what: Any, error: CryptoError) -> None:
        original(self, what, error)
        self._failures[what] = self._failures[what]._replace(until=2**62)

    patches.around(Decryption, "_note_failure", note)


@bug("own", caught_by=("INV-E3", "INV-C3", "INV-N5"), needs=[needs.renewals])
def data_keys_are_kept_by_name(patches: Patches) -> None:
    """The consumer keeps the first data key of a name, and decrypts all messages with it."""

    def decrypt(original: Any, self: Any, metadata: MessageMetadata, payload: bytes) -> Any:
        known = next(iter(self._keys.values()), None)
        if known is None:
            return original(self, metadata, payload)
        return known.data_key.decrypt(metadata.encryption_param or b"", payload)

    patches.around(Decryption, "decrypt", decrypt)


# --- arrival --------------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-C3", "INV-C12"), needs=[needs.slow_keys, needs.renewals])
def others_pass_a_message_that_waits_for_its_key(patches: Patches) -> None:
    """Only messages whose own key is missing wait."""

    def receive(original: Any, self: Any, command: Any, epoch: int, most: int, decoder: Any) -> None:
        metadata = open_payload(command.payload, decoder)[2]
        if self._waiting and not self._has_to_wait(metadata):
            self._arrival.receive(command, epoch, most, decoder)
        else:
            original(self, command, epoch, most, decoder)

    patches.around(EncryptedArrival, "receive", receive)


@bug("own", caught_by=("INV-C3", "INV-C7", "INV-C8", "INV-C6", "INV-E3"), needs=[needs.slow_keys])
def waiting_messages_survive_a_seek(patches: Patches) -> None:
    """Messages that wait for a key are delivered after a seek, or a redelivery of everything."""
    patches.replace(EncryptedArrival, "drop", nothing)


@bug(
    "own", caught_by=("INV-C3", "INV-C6", "INV-L1"), needs=[needs.slow_keys, general.fault(*general.BREAKING)]
)
def waiting_messages_survive_their_connection(patches: Patches) -> None:
    """Messages that wait for a key stay when the connection is lost, and are delivered twice."""
    patches.replace(EncryptedArrival, "clear", nothing)


@bug("own", caught_by=("INV-N5",), needs=[needs.discards])
def discarded_messages_are_not_acknowledged(patches: Patches) -> None:
    """A message that is discarded because it cannot be decrypted stays in the backlog."""

    def discard(original: Any, self: Any, position: Any, cost: int, why: int, **rest: Any) -> None:
        if why == proto.CommandAck.DecryptionError:
            self.passes(position)
            self._permits.give_back(cost)
        else:
            original(self, position, cost, why, **rest)

    patches.around(UndeliveredEntries, "discard", discard)


@bug("own", caught_by=("INV-E3",), needs=[needs.fails])
def every_failure_discards(patches: Patches) -> None:
    """A message that cannot be decrypted is acknowledged, although a consumer with the key may come."""

    def undecryptable(original: Any, self: Any, position: Any, metadata: Any, *rest: Any) -> None:
        if self._services.spec.crypto_failure_action is _CONSUME:
            original(self, position, metadata, *rest)
        else:
            self.undelivered.discard(position, rest[3], proto.CommandAck.DecryptionError)

    patches.around(Arrival, "_undecryptable", undecryptable)


@bug("own", caught_by=("INV-C6", "INV-N5"), needs=[needs.fails, general.batches])
def a_withheld_batch_returns_one_permit(patches: Patches) -> None:
    """A batch that cannot be decrypted returns one permit, and the consumer comes nearer to a standstill."""

    def keep_back(original: Any, self: Any, position: Any, size: Any, count: int, cost: int) -> None:
        original(self, position, size, count, min(cost, 1))

    patches.around(UndeliveredEntries, "keep_back", keep_back)


@bug("own", caught_by=("INV-C6", "INV-N5"), needs=[needs.consumes, general.batches])
def an_undecrypted_batch_counts_as_its_messages(patches: Patches) -> None:
    """A batch that is delivered as one message takes the permits of all of its messages."""

    def undecryptable(original: Any, self: Any, *arguments: Any) -> None:
        *before, cost, error = arguments
        taken = self._services.spec.crypto_failure_action is _CONSUME
        original(self, *before, 1 if taken else cost, error)

    patches.around(Arrival, "_undecryptable", undecryptable)


@bug("own", caught_by=("INV-C2",), needs=[needs.changes])
def tags_are_not_verified(patches: Patches) -> None:
    """The consumer decrypts without looking at the tag: a hostile broker changes messages unnoticed."""

    def decrypt(original: Any, self: Any, nonce: bytes, payload: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        cipher = Cipher(AES(self.reveal()), CTR(nonce + (2).to_bytes(4)))
        return cipher.decryptor().update(payload[:-TAG_SIZE])

    patches.around(DataKey, "decrypt", decrypt)


@bug(
    "own",
    caught_by=("INV-C2", "INV-C11", "INV-C3", "INV-C7"),
    needs=[needs.encryption, general.chunks_received],
)
def chunks_are_joined_before_they_are_decrypted(patches: Patches) -> None:
    """The ciphertexts of the chunks are joined, and decrypted with the nonce of the first."""

    def decrypted(original: Any, self: Any, metadata: MessageMetadata, payload: bytes) -> Any:
        return payload if (metadata.num_chunks_from_msg or 0) > 1 else original(self, metadata, payload)

    patches.around(Arrival, "_decrypted", decrypted)


@bug("own", caught_by=("INV-C10",), needs=[needs.dead_letters])
def withheld_messages_count_as_delivered(patches: Patches) -> None:
    """A message becomes a dead letter when its key comes, and no application ever got it."""
    patches.replace(DeliveryCounts, "withheld", nothing)


@bug("own", caught_by=("INV-E3",), needs=[needs.fails])
def every_failure_is_delivered(patches: Patches) -> None:
    """A message that cannot be decrypted is delivered as it is, whatever the failure action is."""

    def undecryptable(original: Any, self: Any, *arguments: Any) -> None:
        services = self._services
        self._services = replace(services, spec=replace(services.spec, crypto_failure_action=_CONSUME))
        try:
            original(self, *arguments)
        finally:
            self._services = services

    patches.around(Arrival, "_undecryptable", undecryptable)
