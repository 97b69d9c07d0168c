"""A persistent topic: its entries, producers and subscriptions, and the publishing of messages.

The topic takes a message from SEND to durable: checks, deduplication, the entry, the receipt. `producers`
decides which producers are admitted, `managed_ledger` numbers entries, `subscription` delivers them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...model.config import nanoseconds_of
from ...model.errors import PersistenceError, TopicTerminated
from ...model.topic_name import TopicName
from ...model.transaction_id import TransactionId, transaction_id
from ...wire import MessageMetadata, MetadataDecoder, Send
from ...wire.fields import signed_64
from ..dispatching.consumer import Consumer
from ..dispatching.key_hash import Sticky
from ..policies import Policies
from ..records import (
    AcknowledgedInTransaction,
    CursorSaved,
    EntryAdded,
    LedgersDeleted,
    MigratedTo,
    SequenceSaved,
    TopicDeleted,
    TopicSaved,
)
from ..storage.cursor import Cursor
from ..storage.entry import entry_metadata
from ..storage.managed_ledger import ManagedLedger, Retention
from ..storage.store import StoredTopic
from ..storage.trim_mark import NEVER, TrimMark
from ..throttling.topic_rates import TopicRates
from . import quotas
from .compaction.compaction import SUBSCRIPTION as COMPACTION
from .compaction.compaction import Compaction
from .inactivity import Inactivity
from .producing.deduplication import Deduplication
from .producing.producer import Producer
from .producing.producers import Producers, going_away
from .producing.publish_checks import check_message, chunked_message, is_last_chunk
from .subscription import Subscription
from .transactions.marker import marker
from .transactions.transaction_buffer import TransactionBuffer

if TYPE_CHECKING:
    from ..services import BrokerServices


ORPHAN_TIME = 60 * 1_000_000_000
"""Nanoseconds that a non-durable subscription waits for its consumer to reconnect after a seek."""


class Topic:
    """One persistent topic (or partition)."""

    persistent = True

    def __init__(
        self, services: "BrokerServices", name: TopicName, policies: Policies, stored: StoredTopic | None
    ) -> None:
        self.services = services
        self.context = services.context
        self.journal = services.journal
        self.topic_name = name
        self.name = str(name)
        self.partition = name.partition
        self.policies = policies
        self.rates = TopicRates(services.context, policies, services.publish_limiter)
        self.subscriptions: dict[str, Subscription] = {}
        self.served: dict[Subscription, None] = {}
        """Subscriptions that have consumers: only they are dispatched."""
        self.closing = False
        """The topic is being deleted, unloaded or released: no client is admitted."""
        self.lost = False
        """Another broker serves the topic: nothing more is confirmed."""
        self.loaded_at = services.wall_time
        """The wall time in ms at which the broker began to serve the topic."""
        self.messages_in = 0
        self.bytes_in = 0
        self.chunk_published = False
        self.out_of_deleted = (0, 0)
        """Messages and bytes delivered by subscriptions that have been deleted."""
        self._pending: list[tuple[Producer | None, int, int | None, int | None, int, int]] = []
        """Entries not yet durable: producer, sequence id, highest sequence id, id for deduplication, ledger,
        entry. Markers of transactions and messages of administrators have no producer."""
        self._sequences_moved: dict[str, int] = {}
        """Deduplication: producer name -> highest sequence id among the entries of the next write."""
        self._trim_mark = TrimMark()
        is_new = stored is None
        stored = stored or StoredTopic()
        self.terminated_at = stored.terminated_at
        """The offset after the last entry of a terminated topic; None for any other."""
        self.migrated_to = stored.migrated_to
        """The cluster to which the topic migrated; only unacknowledged entries are still delivered here."""
        self.producers = Producers(self, stored.topic_epoch)
        self.deduplication = self._new_deduplication(stored.sequences) if policies.deduplication else None
        self.log = ManagedLedger.restored(self.name, stored.ledgers, services.entry_cache)
        if is_new:
            self.save()
        self.transactions = TransactionBuffer(self.log)
        for saved in stored.cursors.values():
            self._restore(saved, stored.pending_acks.get(saved.subscription, ()))
        if not self.log.ledgers:
            self._roll()
        self.inactivity = Inactivity(self)
        self.compaction = Compaction(self, stored.compacted)
        self.compaction.retain_uncompacted()
        self._place_trim_mark()

    def _restore(self, saved: CursorSaved, pending_acks: Iterable[AcknowledgedInTransaction]) -> None:
        cursor = Cursor(saved.mark_delete)
        for first, last in saved.acknowledged:
            for offset in range(first, last + 1):
                cursor.ranges.add(offset)
        cursor.partly = dict(saved.partly)
        self.subscriptions[saved.subscription] = Subscription(
            self, saved.subscription, cursor, True, saved.properties, pending_acks
        )

    def save(self) -> None:
        """Record the topic: it is new, or its epoch, its end or its cluster changed."""
        self.journal.records.append(
            TopicSaved(self.name, self.producers.topic_epoch, self.terminated_at, self.migrated_to)
        )

    def set_policies(self, policies: Policies) -> None:
        self.policies = policies
        if not policies.deduplication:
            if self.deduplication is not None:
                for name in self.deduplication.persisted:
                    self.journal.records.append(SequenceSaved(self.name, name, None))
            self.deduplication = None
        elif self.deduplication is None:
            self.deduplication = self._new_deduplication({})
        self.rates.apply(policies)
        for subscription in self.subscriptions.values():
            subscription.read_limits()
        self.compaction.retain_uncompacted()
        self.trim()

    # --- publishing -----------------------------------------------------------------------------------

    def publish(self, producer: Producer, send: Send) -> bool:
        """Store the message or batch of a SEND. Raises the refusal (a `BrokerError`) that SEND_ERROR carries,
        and then stores nothing.

        Return False for a duplicate, which is confirmed at once without an id. Any other receipt leaves when
        the entry is durable.
        """
        if self.terminated_at is not None:
            raise TopicTerminated("Topic was already terminated")
        if self.closing or producer.closing:
            raise PersistenceError("Producer is closed")
        data, messages, metadata = check_message(
            self.policies, self.name, send, producer.connection.metadata_decoder
        )
        if self.rates.limits_publishing:
            self.rates.charge(producer.connection, messages, len(data))
        sequence_id = send.sequence_id
        highest = send.highest_sequence_id
        remember: int | None = None
        if self.deduplication is not None and is_last_chunk(metadata):
            # Ids are unsigned on the wire, signed in PRODUCER_SUCCESS and in comparisons: 2^64-1 is -1.
            first = signed_64(sequence_id)
            remember = first if highest is None else max(first, signed_64(highest))
            if self.deduplication.is_duplicate(producer.name, first, remember):
                return False
            self._sequences_moved[producer.name] = remember
        entry = self._append(
            data, messages, metadata, transaction_id(send.txnid_most_bits, send.txnid_least_bits)
        )
        self._pending.append((producer, sequence_id, highest, remember, entry.ledger_id, entry.entry_id))
        producer.pending += 1
        producer.messages_in += messages
        producer.bytes_in += len(data)
        producer.connection.pending_publishes += 1
        return True

    def publish_for_administrator(self, send: Send) -> EntryAdded:
        """Store a message that no producer sent: it gets no receipt. Raises its refusal, a `BrokerError`."""
        if self.terminated_at is not None:
            raise TopicTerminated("Topic was already terminated")
        if self.closing or self.migrated_to is not None:
            raise going_away()
        quotas.check(self)
        if not self.has_room():
            raise PersistenceError("The broker has no room for messages")
        data, messages, metadata = check_message(self.policies, self.name, send, MetadataDecoder())
        entry = self._append(data, messages, metadata, None)
        self._pending.append((None, 0, None, None, entry.ledger_id, entry.entry_id))
        return entry

    def _append(
        self, data: bytes, messages: int, metadata: MessageMetadata, transaction: TransactionId | None
    ) -> EntryAdded:
        log = self.log
        self._roll_full_ledger()
        if metadata.deliver_at_time is None and metadata.chunk_id is None and transaction is None:
            received_at = self.services.wall_time
            entry = log.append(data, messages, metadata.publish_time, received_at=received_at)
        else:
            entry = self._append_special(data, messages, metadata, transaction)
        journal = self.journal
        journal.records.append(entry)
        journal.published(self)
        self.messages_in += messages
        self.bytes_in += len(data)
        return entry

    def _append_special(
        self, data: bytes, messages: int, metadata: MessageMetadata, transaction: TransactionId | None
    ) -> EntryAdded:
        """Append an entry that is delayed, a chunk, or part of a transaction."""
        chunk_of = chunked_message(metadata)
        if chunk_of is not None:
            self.chunk_published = True
        entry = self.log.append(
            data,
            messages,
            metadata.publish_time,
            metadata.deliver_at_time,
            chunk_of,
            self.services.wall_time,
            transaction,
        )
        if transaction is not None:
            self._added_to_transaction()
        return entry

    def _added_to_transaction(self) -> None:
        offset = self.log.end - 1
        self.transactions.added(offset, self.log.transactional[offset])

    def end_transaction(self, transaction: TransactionId, commits: bool) -> None:
        """Append a marker, which takes effect once it is durable. A transaction without messages in the topic
        needs none."""
        if not self.transactions.has_entries_of(transaction):
            return
        self._roll_full_ledger()
        wall_time = self.services.wall_time
        entry = self.log.append(
            marker(transaction, commits, wall_time),
            1,
            wall_time,
            received_at=wall_time,
            transaction=transaction,
            commits=commits,
        )
        self._added_to_transaction()
        self._pending.append((None, 0, None, None, entry.ledger_id, entry.entry_id))
        self.journal.records.append(entry)
        self.journal.published(self)
        if self.terminated_at is not None:  # The marker belongs to the topic's end, too.
            self.terminated_at = self.log.end
            self.save()

    def entries_durable(self, count: int) -> None:
        """`count` more entries are durable: send their receipts, and dispatch."""
        durable = self._pending[:count]
        assert len(durable) == count, "the journal reports entries of an owner before"
        del self._pending[:count]
        deduplication = self.deduplication
        for producer, sequence_id, highest, remember, ledger_id, entry_id in durable:
            if producer is None:
                continue
            if remember is not None and deduplication is not None:
                deduplication.stored(producer.name, remember)
            producer.connection.confirm_send(producer, sequence_id, highest, ledger_id, entry_id)
        self.log.made_durable(count)
        self.transactions.settle()
        for subscription in list(self.served):
            dispatcher = subscription.dispatcher
            if dispatcher is not None:
                dispatcher.dispatch()

    def discard_pending(self) -> None:
        """Another broker serves the topic: entries that are not durable are never confirmed."""
        pending, self._pending = self._pending, []
        for producer, *_ in pending:
            if producer is not None:
                producer.connection.publish_done(producer)

    def last_sequence_id(self, name: str) -> int:
        """The last sequence id in PRODUCER_SUCCESS; -1 without deduplication."""
        return -1 if self.deduplication is None else self.deduplication.last_sequence_id(name)

    def take_sequence_records(self) -> list[SequenceSaved]:
        """Deduplication: return the records to write together with the entries of this write."""
        moved, self._sequences_moved = self._sequences_moved, {}
        return [SequenceSaved(self.name, name, sequence_id) for name, sequence_id in moved.items()]

    def check_first_key_shared(self, newcomer: Consumer) -> None:
        """Raise the refusal that the first consumer of a new subscription gets for its hash ranges."""
        if newcomer.sticky:
            Sticky().check(newcomer.sticky_ranges)

    # --- subscriptions --------------------------------------------------------------------------------

    def subscribe(
        self, name: str, mark_delete: int, durable: bool, properties: tuple[tuple[str, str], ...] = ()
    ) -> Subscription:
        """Create a subscription that begins after `mark_delete`."""
        subscription = Subscription(self, name, Cursor(mark_delete), durable, properties)
        self.subscriptions[name] = subscription
        if durable:
            self.journal.records.append(subscription.cursor_record())
        self._trim_mark.cursor_added(mark_delete)
        return subscription

    @property
    def empty(self) -> bool:
        """True when the topic holds no entry."""
        return self.log.end == self.log.first

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in, messages and bytes out."""
        messages, size = self.out_of_deleted
        for subscription in self.subscriptions.values():
            _, _, more, bytes_out = subscription.counters()
            messages, size = messages + more, size + bytes_out
        return self.messages_in, self.bytes_in, messages, size

    @property
    def consumer_count(self) -> int:
        return sum(len(subscription.consumers) for subscription in self.subscriptions.values())

    # --- ledgers --------------------------------------------------------------------------------------

    def _roll_full_ledger(self) -> None:
        """Open the next ledger where the last one is full, or old and not empty.

        Its age may be negative: wall time may go back. A broker without a least time then asks for none.
        """
        ledger = self.log.ledgers[-1]
        config = self.services.config
        age = self.services.wall_time - ledger.opened_at
        if (
            (
                ledger.count >= config.ledger_max_entries
                or ledger.size >= config.ledger_max_bytes
                or age >= config.ledger_max_time * 1000
            )
            and ledger.count
            and (not config.ledger_min_time or age >= config.ledger_min_time * 1000)
        ):
            self._roll()

    def has_room(self) -> bool:
        """True where the broker's memory takes one more entry.

        Where it does not, the ledger that is open is removed if all subscriptions have acknowledged it, and
        so are the entries of a topic without subscriptions.
        """
        stored = self.services.stored_bytes
        if stored.has_room():
            return True
        self._close_acknowledged_ledger()
        return stored.has_room()

    def _close_acknowledged_ledger(self) -> None:
        """Open the next ledger where no entry of the last one is needed, so that it can be removed."""
        log = self.log
        needed = min(
            (each.cursor.mark_delete + 1 for each in self.subscriptions.values()), default=log.durable_end
        )
        if log.ledgers[-1].count and needed == log.end == log.durable_end:
            self._roll()

    def _roll(self) -> None:
        self.journal.records.append(self.log.roll(self.services.ledger_ids.take(), self.services.wall_time))
        self.trim()

    def mark_delete_moved(self, before: int, mark_delete: int) -> None:
        """A cursor moved from `before` to `mark_delete`: remove ledgers once no subscription needs them.

        Ledgers are looked at once each, when the last subscription has acknowledged all of one.
        `run_housekeeping` removes ledgers that retention kept.
        """
        if self._trim_mark.cursor_moved(before, mark_delete):
            self.trim()

    def cursor_deleted(self, mark_delete: int) -> None:
        """A subscription whose mark-delete position was `mark_delete` was deleted."""
        if self._trim_mark.cursor_deleted(mark_delete):
            self.trim()

    def trim(self, retained: bool = True) -> None:
        """Remove ledgers that every subscription has acknowledged, as retention allows (rule STORE-30).

        `retained`: False removes what retention keeps, too.
        """
        log = self.log
        upto = min(
            (subscription.cursor.mark_delete + 1 for subscription in self.subscriptions.values()),
            default=log.durable_end,
        )
        policies = self.policies
        keep = None
        all_go = self.subscriptions or not retained or self.services.stored_bytes.full
        enough = -1 if all_go else self.services.config.keep_without_subscription
        if retained and (policies.retention_time or policies.retention_size):
            keep = Retention(
                policies.retention_time or -1, policies.retention_size or -1, self.services.wall_time
            )
        removed = log.trim(min(upto, log.durable_end), keep, enough)
        if removed:
            self.transactions.trimmed()
            self.journal.records.append(LedgersDeleted(self.name, removed))
        self._place_trim_mark()

    def _place_trim_mark(self) -> None:
        ledgers = self.log.ledgers
        self._trim_mark.place(
            ledgers[0].end - 1 if len(ledgers) > 1 else NEVER,
            (subscription.cursor.mark_delete for subscription in self.subscriptions.values()),
        )

    def expire(self) -> None:
        """Acknowledge entries older than the message TTL (rule STORE-32)."""
        ttl = self.policies.message_ttl
        if ttl:
            self.expire_before(self.services.wall_time - round(ttl * 1000))

    def expire_before(self, oldest: int) -> None:
        """Acknowledge entries published before `oldest` (ms) in every subscription except compaction's."""
        subscriptions = self._of_consumers()
        log = self.log
        # Only a backlog is read, and only its first entry where that is not old, as in the Java broker.
        first = min((each.cursor.mark_delete + 1 for each in subscriptions), default=log.durable_end)
        first = max(first, log.first)
        if first < log.durable_end and log.peek(first).publish_time < oldest:
            first = log.find_publish_time(oldest, first + 1)
        last = min(first, self.transactions.read_end) - 1
        for subscription in subscriptions:
            subscription.expire_up_to(last)

    def skip_everywhere(self, mark_delete: int) -> None:
        """Acknowledge entries up to that offset in every subscription except compaction's."""
        for subscription in self._of_consumers():
            if subscription.skip_up_to(mark_delete) and subscription.dispatcher is not None:
                subscription.dispatcher.dispatch()

    def _of_consumers(self) -> list[Subscription]:
        """All subscriptions except compaction's, which loses no entry."""
        return [each for name, each in self.subscriptions.items() if name != COMPACTION]

    def publish_rate_measured(self, messages: float, size: float) -> None:
        """Producers published so many messages and bytes in each second of the last interval."""
        self.rates.measured(messages, size)
        for subscription in self.subscriptions.values():
            subscription.publish_rate_measured()

    def run_housekeeping(self) -> None:
        """Do what depends on time: expiry, quotas, deduplication, subscriptions without consumers,
        compaction, retention."""
        self.expire()
        quotas.enforce(self)
        self.purge_sequences()
        expiration = nanoseconds_of(self.policies.subscription_expiration or 0)
        for subscription in list(self.subscriptions.values()):
            away = self.context.now - subscription.orphaned_at
            kept = expiration if subscription.durable else ORPHAN_TIME
            if kept and away > kept and not subscription.consumers and subscription.name != COMPACTION:
                subscription.delete()
        self.compaction.start_if_due()
        self._roll_full_ledger()
        self.has_room()
        self.trim()

    def _new_deduplication(self, stored: dict[str, int]) -> Deduplication:
        limit = self.services.config.deduplication_max_producers
        return Deduplication(stored, self.context.now, limit)

    def purge_sequences(self) -> None:
        """Deduplication: discard producer names that have been absent for long, or are too many."""
        if self.deduplication is not None:
            before = self.context.now - self.services.deduplication_inactivity
            for name in self.deduplication.purge(before):
                self._sequences_moved.pop(name, None)
                self.journal.records.append(SequenceSaved(self.name, name, None))

    def last_position(self) -> tuple[int, int, int]:
        """(ledger, entry, batch index) of the last message that consumers may receive; all -1 where there is
        none."""
        log = self.log
        offset = self.transactions.last_visible
        if offset < log.first:
            return -1, -1, -1
        entry = log.peek(offset)
        count = entry_metadata(entry.data, MetadataDecoder()).num_messages_in_batch
        return entry.ledger_id, entry.entry_id, -1 if count is None else count - 1

    # --- end ------------------------------------------------------------------------------------------

    def detach_producer(self, producer: Producer) -> None:
        self.producers.detach(producer)
        if self.deduplication is not None and producer.name not in self.producers.by_name:
            self.deduplication.detached(producer.name, self.context.now)
            self.purge_sequences()

    def terminate(self) -> None:
        """Disconnect producers for good; consumers read to the end (BROKER-43)."""
        if self.terminated_at is None:
            self.terminated_at = self.log.end
            self.save()
            self.producers.disconnect_all(TopicTerminated("Topic was already terminated"))
            for subscription in list(self.subscriptions.values()):
                subscription.check_end_of_topic()

    def migrate(self, target: MigratedTo) -> None:
        """Migrate the topic to another cluster.

        Producers are sent there after their receipts, consumers once they have acknowledged all entries here,
        so that no message is left behind.
        """
        self.migrated_to = target
        self.save()
        for producer in [*self.producers.waiting, *self.producers.by_name.values()]:
            producer.connection.close_producer(producer)
        for subscription in list(self.subscriptions.values()):
            subscription.check_end_of_topic()

    def unload(self) -> None:
        """Disconnect all clients; they reconnect to the topic with its durable state."""
        self.closing = True
        self.compaction.stop()
        self.producers.disconnect_all(going_away())
        self.rates.close()
        self.rates = TopicRates(self.context, self.policies, self.services.publish_limiter)
        for subscription in list(self.subscriptions.values()):
            subscription.unload()
            subscription.read_limits()
        self.closing = False

    def discard(self) -> None:
        """Count the entries no more: the topic is not served here any longer."""
        self.log.discard()
        self.compaction.discard()

    def delete(self) -> None:
        """Disconnect all clients, and delete the topic."""
        self.closing = True
        self.compaction.stop()
        self.producers.disconnect_all(going_away())
        self.rates.close()
        for subscription in list(self.subscriptions.values()):
            subscription.delete()
        self._sequences_moved.clear()
        self.journal.records.append(TopicDeleted(self.name))
