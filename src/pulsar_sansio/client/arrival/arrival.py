"""`Arrival`: the processing of a MESSAGE frame before its messages wait in the queue.

Every frame ends in exactly one of these ways: its messages are queued; they are dropped for a counted reason
and their permits returned; or the broker is told that the entry cannot be used. A frame can neither stop the
connection nor disturb another consumer, except by ignoring permits.
"""

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any, Protocol, TypeAlias

from ...model.config import ReadingSpec
from ...model.encryption import ConsumerCryptoFailureAction
from ...model.errors import (
    ChecksumMismatch,
    CryptoError,
    DecompressionFailed,
    FrameError,
    UncompressedSizeCorrupted,
)
from ...model.message import (
    BrokerStampedEntry,
    ChunkedEntry,
    Entry,
    Message,
    RedeliveredEntry,
    UndecryptedEntry,
)
from ...model.message_id import EntryPosition, MessageId
from ...wire import (
    Batch,
    Compressed,
    MessageCommand,
    MessageMetadata,
    MetadataDecoder,
    OpenedPayload,
    RawBatch,
    UniformMessages,
    decompress,
    open_payload,
    peek_metadata,
    proto,
    split_batch,
)
from ..acknowledging.acknowledgements import Acknowledgements
from ..delivery.consumer_services import ConsumerServices
from ..delivery.permits import Permits
from ..delivery.received_entries import CompressedSingle, ReceivedBatch, ReceivedSingles
from ..encryption.decryption import Decryption
from ..outputs import Undecryptable
from .chunk_assembly import ChunkAssembly
from .delivery_start import DeliveryStart
from .undelivered_entries import MAX_GUESS, UndeliveredEntries

INFLATION = 32
"""A payload may inflate to this many times its size on the wire while it waits for a reader of raw batches; a
payload that would exceed it stays compressed. Delivering uncompressed payloads is faster, and most stay below
the limit."""

_Validation = proto.CommandAck.ValidationError

BrokerStamp: TypeAlias = proto.BrokerEntryMetadata | None
"""The metadata that a broker may put in front of an entry: its own time, and the index of the entry's last
message."""


class Entrance(Protocol):
    """The entrance to the queue: the methods of `ReceiverQueue`, or of an object in front of it."""

    def add(self, message: Message) -> None: ...
    def add_batch(self, batch: ReceivedBatch) -> None: ...
    def add_singles(self, singles: ReceivedSingles) -> None: ...


class Arrival:
    """Entries of one consumer between connection and queue."""

    __slots__ = (
        "_ack_grouping",
        "_chunks",
        "_decryption",
        "_permits",
        "_queue",
        "_services",
        "_source",
        "_tracker",
        "_keeps_raw_batches",
        "bytes_arrived",
        "counters",
        "start",
        "undelivered",
    )

    def __init__(
        self,
        services: ConsumerServices,
        permits: Permits,
        queue: Entrance,
        acknowledgements: Acknowledgements,
        chunks: ChunkAssembly,
        decryption: Decryption | None,
    ) -> None:
        """`decryption`: None for a consumer without a key reader."""
        spec = services.spec
        self._keeps_raw_batches = isinstance(spec, ReadingSpec) and spec.raw_batches
        """True when batches stay in one piece, and payloads that inflate a lot stay compressed
        (`ReaderSpec`)."""
        self.counters = services.counters
        self.bytes_arrived = 0
        """The stored payloads of readable entries, in bytes: compressed, with the headers of batches."""
        self.start = DeliveryStart(chunks)
        """The first message that is wanted."""
        self.undelivered = UndeliveredEntries(services, permits, acknowledgements, chunks)
        """The ends of the entries that have no message for the application."""
        self._services = services
        self._source = services.source
        self._permits = permits
        self._queue = queue
        self._tracker = acknowledgements.tracker
        self._ack_grouping = acknowledgements.grouping
        self._decryption = decryption
        self._chunks = chunks

    def forget(self) -> None:
        """Forget the position of the subscription: it was moved."""
        self.start.start_at(None, False)
        self.undelivered.forget()

    def receive(
        self, command: MessageCommand, epoch: int, max_message_size: int, decoder: MetadataDecoder
    ) -> None:
        """Take one MESSAGE. `epoch`: deliveries of an older one are outdated; `max_message_size`: in bytes.
        `decoder`: that of the connection.

        Raises `PermitsExceeded` when the broker has sent far too much.
        """
        try:
            opened = open_payload(command.payload, decoder)
        except (ChecksumMismatch, FrameError):
            self.discard_unreadable(command)
            return
        self.receive_opened(command, opened, epoch, max_message_size)

    def discard_unreadable(self, command: MessageCommand) -> None:
        """Take one MESSAGE whose payload `open_payload` refuses. Raises like `receive`."""
        cost = _probable_cost(command.payload, command.ack_set)
        self._permits.charge(cost, len(command.payload))
        position = (command.ledger_id, command.entry_id)
        self.undelivered.discard(position, cost, _Validation.ChecksumMismatch, counted=1)

    def receive_opened(
        self, command: MessageCommand, opened: OpenedPayload, epoch: int, max_message_size: int
    ) -> None:
        """Take one MESSAGE whose payload is open, as `receive` does."""
        _, ledger_id, entry_id, _, _, redelivery_count, bits, sent_in_epoch, stored, _, _ = command
        position = (ledger_id, entry_id)
        stamp, _, metadata, start = opened
        self.bytes_arrived += len(stored) - start
        size = metadata.num_messages_in_batch
        cost = 1 if size is None else size if bits is None and size > 0 else _cost(size, bits)
        if self._permits.at_broker > 0:
            self._permits.at_broker -= cost
        else:
            # A producer may write any size. An impossible size must not end this link, so it is capped.
            promised = min(metadata.uncompressed_size, max_message_size) if metadata.compression else 0
            self._permits.charge(cost, max(promised, len(stored)))
        outdated = sent_in_epoch is not None and sent_in_epoch < epoch
        if not self._is_for_the_application(position, metadata, cost, outdated):
            self._permits.give_back(cost)
            return
        if metadata.encryption_keys:
            try:
                stored, start = self._decrypted(metadata, stored[start:]), 0
            except CryptoError as error:
                self._undecryptable(position, metadata, stamp, stored[start:], redelivery_count, cost, error)
                return
        if size is None and (metadata.num_chunks_from_msg or 0) > 1:
            self._chunk(position, metadata, stamp, stored[start:], redelivery_count)
            return
        payload: bytes | Compressed = stored
        # A raw batch with unwanted messages has to be split.
        raw_batches = self._keeps_raw_batches and bits is None and not self.start.filters
        if metadata.compression:
            inflates = metadata.uncompressed_size > INFLATION * len(stored)
            unpack = Compressed if raw_batches and inflates else decompress
            try:
                payload = unpack(
                    metadata.compression, stored[start:], metadata.uncompressed_size, max_message_size
                )
            except UncompressedSizeCorrupted:
                self.undelivered.discard(position, cost, _Validation.UncompressedSizeCorruption)
                return
            except DecompressionFailed:
                self.undelivered.discard(position, cost, _Validation.DecompressionError)
                return
            start = 0
        if size is None:
            whole = payload[start:] if isinstance(payload, bytes) else payload
            self._single(position, metadata, stamp, whole, redelivery_count)
            return
        try:
            split: Callable[..., Batch | RawBatch] = RawBatch if raw_batches else split_batch
            batch = split(payload, size, start)
        except FrameError:
            self.undelivered.discard(position, cost, _Validation.BatchDeSerializeError)
            return
        self._batch(position, metadata, stamp, batch, redelivery_count, size, bits, cost)

    def drop(self, command: MessageCommand) -> None:
        """Count an entry as outdated in place of `receive`, and return its permits."""
        cost = _probable_cost(command.payload, command.ack_set)
        self.counters.outdated += cost
        self._permits.at_broker -= cost
        self._permits.give_back(cost)

    def _is_for_the_application(
        self, position: EntryPosition, metadata: MessageMetadata, cost: int, outdated: bool
    ) -> bool:
        """True when the entry is to be opened; otherwise the entry is counted here, and the caller returns
        its permits."""
        counters = self.counters
        if outdated:
            counters.outdated += cost
            return False
        tracker, start = self._tracker, self.start
        taken, size = tracker.taken, metadata.num_messages_in_batch
        if position in tracker.entries or tracker.covers(position):
            counters.duplicates += cost
        elif taken and size is None and taken.has_whole(position, 1):
            taken.drop(position, 1)
            counters.duplicates += cost
        elif metadata.marker_type is not None:
            counters.markers += cost
            self.undelivered.finish(position)
        elif start.filters and start.since is not None and metadata.publish_time < start.since:
            counters.before_start += cost
        else:
            return True
        self.undelivered.passes(position)
        return False

    def _decrypted(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        """Return the plaintext of an encrypted entry. Raises `CryptoError`."""
        if self._decryption is None:
            keys = ", ".join(f"encryption key {key.key!r:.100}" for key in metadata.encryption_keys[:5])
            raise CryptoError(f"{keys}: the consumer has no crypto_key_reader")
        return self._decryption.decrypt(metadata, payload)

    def _undecryptable(
        self,
        position: EntryPosition,
        metadata: MessageMetadata,
        stamp: BrokerStamp,
        payload: bytes,
        redelivery_count: int,
        cost: int,
        error: CryptoError,
    ) -> None:
        """Carry out the consumer's failure action for an entry that cannot be decrypted (rules CRYPTO-05,
        CRYPTO-06, CRYPTO-07). A chunk is an entry by itself here: each has a nonce of its own."""
        action, counters = self._services.spec.crypto_failure_action, self.counters
        if action is ConsumerCryptoFailureAction.CONSUME:
            self._permits.give_back(cost - 1)  # a batch is one message here
            if self.start.filters and self.start.is_behind(position):
                self.undelivered.skip(position)
                return
            entry = UndecryptedEntry(self._source, position, metadata, redelivery_count, self._tracker.single)
            entry.stamp(*_values(stamp))
            self._queue.add(Message.of(payload, entry, -1))
            return
        discards = action is ConsumerCryptoFailureAction.DISCARD
        if counters.undecryptable == 0:
            message_id = MessageId(*position, self._source.partition)
            self._services.emit(Undecryptable(self._services.handle, message_id, error, discards))
        counters.undecryptable += max(cost, 1)
        if discards:
            self.undelivered.discard(position, cost, _Validation.DecryptionError, counted=0)
            return
        if metadata.num_messages_in_batch is None and (metadata.num_chunks_from_msg or 0) > 1:
            self._chunks.keep_back(metadata)
        self.undelivered.keep_back(position, metadata.num_messages_in_batch, redelivery_count, cost)

    def withhold(self, command: MessageCommand) -> None:
        """Record that an entry is not delivered that waited for a key."""
        metadata = peek_metadata(command.payload)
        size = None if metadata is None else metadata.num_messages_in_batch
        self.undelivered.withhold((command.ledger_id, command.entry_id), size, command.redelivery_count)

    def _single(
        self,
        position: EntryPosition,
        metadata: MessageMetadata,
        stamp: BrokerStamp,
        payload: bytes | Compressed,
        redelivery_count: int,
    ) -> None:
        if self.start.filters and self.start.is_behind(position):
            self.undelivered.skip(position)
            return
        make = Entry if stamp is None else partial(_stamped_entry, stamp)
        entry = make(self._source, position, metadata, redelivery_count, self._tracker.single)
        self._add_single(entry, payload)

    def _add_single(self, entry: Entry, payload: bytes | Compressed) -> None:
        if isinstance(payload, Compressed):
            self._queue.add_batch(ReceivedBatch(entry, CompressedSingle(payload), (-1,)))
        else:
            self._queue.add(Message.of(payload, entry, -1))

    def _chunk(
        self,
        position: EntryPosition,
        metadata: MessageMetadata,
        stamp: BrokerStamp,
        payload: bytes,
        redelivery_count: int,
    ) -> None:
        """A message in chunks costs one permit: the permits of all chunks but the last are returned at
        once."""
        if self._chunks.is_kept_back(metadata):
            self.counters.undecryptable += 1
            self.undelivered.keep_back(position, None, redelivery_count, 1)
            return
        start = self.start
        if (
            start.message_id is not None
            and start.message_id.first_chunk is None
            and start.is_behind(position)
        ):
            # The last chunk of a delivered message arrives without the chunks before it.
            self.undelivered.skip(position)
            return
        complete = self._chunks.take(position, metadata, payload)
        if complete is None:
            self._permits.give_back(1)
            return
        data: bytes | Compressed = complete.payload
        if metadata.compression:
            size, limit = metadata.uncompressed_size, self._chunks.max_message_size
            inflates = size > INFLATION * len(complete.payload)
            opened = Compressed if self._keeps_raw_batches and inflates else decompress
            try:
                data = opened(metadata.compression, complete.payload, size, limit)
            except (UncompressedSizeCorrupted, DecompressionFailed):
                self._permits.give_back(1)
                self.counters.discarded += 1
                self.counters.note_unreadable(position)
                for each in complete.positions:
                    self._ack_grouping.discard(each, _Validation.DecompressionError)
                return
        tracker = self._tracker
        tracker.message_in_chunks(complete.positions)
        if start.is_behind(position):
            self.undelivered.skip(position)
            return
        entry = ChunkedEntry(self._source, position, metadata, redelivery_count, tracker.chunked)
        entry.stamp(*_values(stamp))
        entry.first_chunk = complete.positions[0]
        self._add_single(entry, data)

    def receive_uniform(self, entries: UniformMessages, epoch: int, decoder: MetadataDecoder) -> bool:
        """Take plain entries that need no decision: all of the present epoch, none acknowledged, and permits
        for all; encrypted ones with a known data key. Return False, having changed nothing, if an entry
        differs; then pass each to `receive`.

        `decoder`: that of the connection.
        """
        facts, entry_ids, headers, stored, _, schema_version, encryption = entries
        _, ledger_id, _, redelivery_count, sent_in_epoch = facts
        tracker = self._tracker
        permits = self._permits
        count = len(entry_ids)
        positions = list(zip(repeat(ledger_id), entry_ids))
        if (
            permits.at_broker < count
            or self.start.filters
            or (sent_in_epoch is not None and sent_in_epoch < epoch)
            or not tracker.entries.keys().isdisjoint(positions)
            or tracker.covers((ledger_id, min(entry_ids)))
            or (tracker.taken and tracker.taken.has_any(positions))
        ):
            return False
        payloads = stored
        if encryption is not None:
            opened = None if self._decryption is None else self._decryption.decrypt_all(encryption, stored)
            if opened is None:
                return False
            payloads = opened
        permits.at_broker -= count
        self.bytes_arrived += sum(map(len, stored))
        self._queue.add_singles(
            ReceivedSingles(
                self._source,
                positions,
                headers,
                redelivery_count,
                tracker.single,
                payloads,
                decoder,
                schema_version,
            )
        )
        return True

    def _batch(
        self,
        position: EntryPosition,
        metadata: MessageMetadata,
        stamp: BrokerStamp,
        batch: Batch | RawBatch,
        redelivery_count: int,
        size: int,
        bits: int | None,
        cost: int,
    ) -> None:
        if self._tracker.taken and (taken := self._tracker.taken.bits(position, size)):
            bits = (1 << size) - 1 if bits is None else bits
            self._tracker.taken.drop(position, bits & taken)
            self.counters.duplicates += (bits & taken).bit_count()
            bits &= ~taken
        wanted = self._without_skipped(batch, position, size, (1 << size) - 1 if bits is None else bits)
        identity = metadata.publish_time << 24 ^ metadata.sequence_id
        record = self._tracker.batch(position, size, wanted, identity)
        past = record.past_deliveries
        if self._tracker.transactions and (bits is not None or past is not None):
            record.leave_out(0 if bits is None else ((1 << size) - 1) & ~bits)
        if past is not None:
            entry: Entry = _redelivered_entry(
                past.count, stamp, self._source, position, metadata, redelivery_count, record, batch, size
            )
        else:
            make = Entry if stamp is None else partial(_stamped_entry, stamp)
            entry = make(self._source, position, metadata, redelivery_count, record, batch, size)
        if record.in_order == 0:
            self._queue.add_batch(ReceivedBatch(entry, batch.payloads, range(size)))
            return
        deliver = record.open_bits
        self.counters.duplicates += wanted.bit_count() - deliver.bit_count()
        indexes = [index for index in range(size) if deliver >> index & 1]
        if indexes:
            payloads = batch.payloads
            self._queue.add_batch(ReceivedBatch(entry, [payloads[index] for index in indexes], indexes))
        elif not record.left_out:
            self.undelivered.finish(position)
        elif self._tracker.in_part(record):
            self._ack_grouping.something_waits()
        self._permits.give_back(cost - len(indexes))

    def _without_skipped(self, batch: Batch | RawBatch, position: EntryPosition, size: int, bits: int) -> int:
        """Return `bits` without the messages that are not for the application (CONS-33)."""
        skipped = self.start.skipped(position, size)
        if skipped:
            kept = bits >> skipped << skipped
            self.counters.before_start += (bits ^ kept).bit_count()
            bits = kept
        if batch.compacted:
            # A placeholder has no payload, so only the headers of empty messages are read.
            for index, payload in enumerate(batch.payloads):
                if not payload and bits >> index & 1 and batch.single(index).compacted_out:
                    self.counters.compacted_out += 1
                    bits ^= 1 << index
        return bits


def _stamped_entry(stamp: BrokerStamp, *entry: Any) -> Entry:
    stamped = BrokerStampedEntry(*entry)
    stamped.stamp(*_values(stamp))
    return stamped


def _redelivered_entry(count: int, stamp: BrokerStamp, *entry: Any) -> Entry:
    """Return an entry that was delivered `count` times before."""
    redelivered = RedeliveredEntry(*entry)
    redelivered.delivery = count
    redelivered.stamp(*_values(stamp))
    return redelivered


def _values(stamp: BrokerStamp) -> tuple[int | None, int | None]:
    """Return the broker's time and the index of the last message; None for each that the broker left out."""
    if stamp is None:
        return None, None
    return (
        stamp.broker_timestamp if stamp.HasField("broker_timestamp") else None,
        stamp.index if stamp.HasField("index") else None,
    )


def _probable_cost(stored: bytes, bits: int | None) -> int:
    """Return the permits that an unreadable entry probably cost. Other clients count one (CONS-26), and stall
    after as many messages in damaged batches as their queue has room for. Mostly only the payload is damaged,
    and the metadata's batch size is right."""
    metadata = peek_metadata(stored)
    size = metadata.num_messages_in_batch if metadata is not None else None
    return _cost(size, bits) if size is not None and 1 <= size <= MAX_GUESS else 1


def _cost(size: int, bits: int | None) -> int:
    """Return the permits that a batch of `size` cost, counted as the broker does: the messages whose bit in
    the ack set is still open."""
    size = max(size, 0)
    return size if bits is None else (bits & ((1 << min(size, bits.bit_length())) - 1)).bit_count()
