"""`AckCommands`: acknowledge, acknowledge cumulatively, acknowledge negatively (rules ACK-01, NACK-01).

The application names a message, an id, or several of either (ACK-22). `AckCommands` checks that they belong
to this consumer, and passes them to the acknowledgement tracker or to redelivery. A call that raises has
changed nothing. `ack_grouping` decides what is sent, and when.

`acknowledge` is called once per message: its first lines are all that most calls run.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, cast

from ...model.errors import ClosedError, InvalidTopicName, LocalProtocolError
from ...model.message import ChunkedEntry, Entry, Message
from ...model.message_id import EntryPosition, MessageId, TopicMessageId, is_message_id
from ...model.topic_name import TopicName
from ..delivery.ack_records import BatchAcknowledgement, Deliveries, EntryAcknowledgement
from ..delivery.consumer_services import ConsumerServices
from ..delivery.received_entries import Item, Messages, ReceivedBatch, ReceivedSingles, messages_of
from ..transactions.transaction import Transaction
from .ack_grouping import AckGrouping
from .ack_tracker import AckTracker
from .redelivery import Redelivery
from .transactional_acks import TransactionalAcks

OneMessage = Message | MessageId | TopicMessageId
Acknowledgeable = OneMessage | Iterable[OneMessage]


class AckCommands:
    """The acknowledgement commands of one consumer.

    All methods raise `ClosedError` once the consumer is closing, and `LocalProtocolError` for a value that is
    no message or id, or belongs to another topic.
    """

    __slots__ = (
        "_ack_grouping",
        "_kind",
        "_negative",
        "_owner",
        "_redelivery",
        "_single",
        "_source",
        "_tracker",
        "_transactional",
        "described",
    )

    def __init__(
        self,
        services: ConsumerServices,
        tracker: AckTracker,
        ack_grouping: AckGrouping,
        redelivery: Redelivery,
        transactional: TransactionalAcks,
    ) -> None:
        self._transactional = transactional
        self.described = services.described
        """A description of the consumer or reader, for texts."""
        self._kind = services.spec.subscription_type
        self._source = services.source
        self._tracker = tracker
        self._ack_grouping = ack_grouping
        self._redelivery = redelivery
        self._negative = redelivery.negative.positions
        """The entries that wait to be requested again; only their presence matters here."""
        self._owner: Deliveries | None = tracker.deliveries
        """The deliveries of the present cluster; None once the consumer is closing."""
        self._single: EntryAcknowledgement | None = None if redelivery.tracks else tracker.single
        """The record shared by all entries of one message; None when acknowledging them takes more than
        counting."""

    def watch(self, wanted: bool) -> None:
        """Set whether redelivery must know of every acknowledged entry, those of one message included."""
        if self._owner is not None:
            self._single = None if wanted or self._redelivery.tracks else self._tracker.single

    def renew(self) -> None:
        """Take over the tracker's new records: after a new connection, a seek, or a move to another cluster.
        In another cluster, acknowledging earlier messages has no effect."""
        if self._owner is not None:
            self._owner = self._tracker.deliveries
            if self._single is not None:
                self._single = self._tracker.single

    def close(self) -> None:
        """Raise from now on, for every command."""
        self._owner = None
        self._single = None

    @property
    def closed(self) -> bool:
        return self._owner is None

    def check_open(self) -> None:
        """Raise `ClosedError` once the consumer is closing."""
        if self._owner is None:
            raise ClosedError(f"the {self.described} is closed")

    def acknowledge(self, what: Acknowledgeable) -> bool:
        """Acknowledge these messages (rules ACK-01, ACK-22). Acknowledging again changes nothing.

        Return True when an output or a deadline may follow; mostly none does. Raises `LocalProtocolError` for
        a value that is no message or id, or belongs to another topic, having changed nothing.
        """
        if type(what) is Message:
            entry = what.entry
            record = entry.acknowledgement
            index = what.batch_index
            # Next in order, and nothing to send: counting is enough.
            if index == record.in_order and index != record.checkpoint and record.deliveries is self._owner:
                record.in_order = index + 1
                return False
            # An entry of one message, while others wait already: adding its position is enough.
            if record is self._single:
                entries = self._tracker.entries
                entries[entry.position] = None
                if len(entries) < self._ack_grouping.flush_at and not self._negative:
                    return False
            self._check_message(what)
            waits = self._acknowledge_message(what)
        elif isinstance(what, MessageId):
            self._check_id(what)
            waits = self._acknowledge_id(what)
        elif isinstance(what, Messages):
            waits = self._acknowledge_together(what)
        elif isinstance(what, TopicMessageId):
            return self.acknowledge(self.own_id(what))
        else:
            waits = self._acknowledge_all(cast(Iterable[OneMessage], what))
        if waits:
            self._ack_grouping.something_waits()
        return True

    def acknowledge_cumulative(self, what: OneMessage) -> None:
        """Acknowledge this message and all before it (rules ACK-02, ACK-06, ACK-14).

        Raises `LocalProtocolError` on a Shared or Key_Shared subscription, or for a value that is no message
        or id of this topic.
        """
        self.check_cumulative()
        record = None
        if isinstance(what, TopicMessageId):
            what = self.own_id(what)
        if isinstance(what, Message):
            self._check_message(what)
            if is_left(what.entry):
                return
            message_id = what.message_id
            self._redelivery.take_back_through(what.entry, what.batch_index)
            if what.batch_index >= 0 and what.entry.acknowledgement.deliveries is self._owner:
                record = what.entry.acknowledgement
        elif isinstance(what, MessageId):
            self._check_id(what)
            message_id = what
        else:
            raise not_a_message(what)
        if record is None and message_id.batch_index >= 0:
            record = self._tracker.record(message_id)
        waits = self._tracker.cumulative(record, message_id)
        ledger_id, entry_id = message_id[:2]
        # A complete batch may leave nothing waiting: an earlier delivery of it was acknowledged already.
        in_part = record is not None and not (record.complete or self._tracker.covers((ledger_id, entry_id)))
        self._redelivery.acknowledged_through((ledger_id, entry_id - in_part))
        if waits:
            self._ack_grouping.something_waits()

    def acknowledge_in(self, what: Acknowledgeable, transaction: Transaction) -> None:
        """Acknowledge these messages with the transaction. Raises like `acknowledge`."""
        if type(what) is Message:
            self._check_message(what)
            self._acknowledge_message_in(what, transaction)
            return
        one = isinstance(what, MessageId | TopicMessageId)
        ids, messages = self._several([what] if one else what)
        for message_id in ids:
            record = self._tracker.open_batch(message_id[:2])
            if record is not None and record.past_deliveries is not None:
                self._redelivery.take_back_id(message_id[:2], message_id.batch_index)
            self._acknowledge_in(transaction, message_id)
        for message in messages:
            self._acknowledge_message_in(message, transaction)

    def _acknowledge_message_in(self, message: Message, transaction: Transaction) -> None:
        if not is_left(message.entry):
            self._redelivery.take_back(message.entry, message.batch_index)
            self._acknowledge_in(transaction, message.message_id)

    def _acknowledge_in(self, transaction: Transaction, message_id: MessageId) -> None:
        position, index = message_id[:2], message_id.batch_index
        if index < 0:
            for each in self._tracker.positions(position):
                self._transactional.acknowledge(transaction, each, 1, 1)
            return
        record = self._tracker.open_batch(position)
        size = message_id.batch_size if record is None else record.size
        bits = 1 << index
        if record is not None and not self._tracker.index_acknowledgement:
            # The broker waits for the last message to hear of the others: they may be acknowledged outside.
            bits |= record.unsent_bits
        self._transactional.acknowledge(transaction, position, bits, size)

    def acknowledge_cumulative_in(self, what: OneMessage, transaction: Transaction) -> None:
        """Acknowledge this message and all before it with the transaction. Raises like
        `acknowledge_cumulative`."""
        self.check_cumulative()
        ids, messages = self._several([what])
        for message_id in [*ids, *(each.message_id for each in messages if not is_left(each.entry))]:
            self._redelivery.take_back_through_id(message_id[:2], message_id.batch_index)
            index, size = message_id.batch_index, message_id.batch_size
            left = ((1 << size) - 1) >> (index + 1) << (index + 1) if index >= 0 else 0
            self._transactional.acknowledge_cumulative(transaction, (*message_id[:2], left or None), size)

    def negative_acknowledge(self, what: Acknowledgeable) -> None:
        """Request redelivery of these messages after the delay; a batch is redelivered as a whole (NACK-01,
        NACK-02).

        Raises like `acknowledge`.
        """
        ids, messages = self._several(
            [what] if isinstance(what, Message | MessageId | TopicMessageId) else what
        )
        known = self._tracker.in_chunks
        positions: dict[EntryPosition, int] = {}
        batches: dict[BatchAcknowledgement, tuple[int, int]] = {}
        for message_id in ids:
            position, index = message_id[:2], message_id.batch_index
            record = self._tracker.open_batch(position)
            if record is not None:
                bits = 1 << index if index >= 0 else record.open_bits
                batches[record] = batches.get(record, (0, 0))[0] | bits, 0
            elif message_id.first_chunk is None or known(position):
                positions[position] = 0
        for message in messages:
            entry = message.entry
            if is_left(entry):
                continue
            record = entry.acknowledgement
            if isinstance(record, BatchAcknowledgement):
                bits = batches.get(record, (0, 0))[0] | 1 << message.batch_index
                batches[record] = bits, entry.redelivery_count
            # An acknowledged message in chunks is not requested: its last chunk alone makes no message.
            elif type(entry) is not ChunkedEntry or known(entry.position):
                positions[entry.position] = entry.redelivery_count
        self._redelivery.negative_acknowledge(positions, batches)

    def copied(self, message: Message) -> None:
        """Acknowledge a message whose copy is stored, unless the consumer is closing."""
        if self._owner is None:
            return
        record = message.entry.acknowledgement
        if isinstance(record, BatchAcknowledgement):
            record, waits = self._tracker.copied(record, message.batch_index)
            # The broker may have restarted its count and redelivered the message meanwhile.
            self._redelivery.take_back_id(record.position, message.batch_index)
            self._look_after(record)
        else:
            self._acknowledge_chunks(message.entry.position)
            waits = True
        if waits:
            self._ack_grouping.something_waits()

    def check_cumulative(self) -> None:
        """Raise `LocalProtocolError` on a subscription whose messages go to several consumers (ACK-02)."""
        if not self._kind.cumulative:
            raise LocalProtocolError(
                f"cumulative acknowledgement is not possible on a {self._kind.value} "
                f"subscription, whose messages go to several consumers"
            )

    def check_message(self, message: Message) -> None:
        """Raise `LocalProtocolError` unless it is a message of this consumer, and `ClosedError` once the
        consumer is closing."""
        if not isinstance(message, Message):
            raise LocalProtocolError(f"a message, not {type(message).__name__}")
        self._check_message(message)

    # --- inside ----------------------------------------------------------------------------------

    def _acknowledge_message(self, message: Message) -> bool:
        """Acknowledge a message; return True when something new waits to be sent."""
        entry = message.entry
        record: Any = entry.acknowledgement
        if record.deliveries is not self._owner:
            return not is_left(entry) and self._acknowledge_id(message.message_id)
        if record is self._tracker.single:
            self._tracker.entries[entry.position] = None
            self._redelivery.acknowledged(entry.position)
            return True
        if message.batch_index < 0:
            self._redelivery.take_back(entry, -1)
            return self._acknowledge_chunks(entry.position)
        if record.past_deliveries is not None:
            self._redelivery.take_back(entry, message.batch_index)
        waits: bool = self._tracker.member(record, message.batch_index)
        if record.complete:
            self._redelivery.acknowledged(entry.position)
        elif record.past_deliveries is not None:
            self._redelivery.settled(entry.position)
        return waits

    def _look_after(self, record: BatchAcknowledgement) -> None:
        """Tell redelivery that a message of that batch is acknowledged: perhaps its last open one."""
        if record.complete:
            self._redelivery.acknowledged(record.position)
        elif record.past_deliveries is not None:
            self._redelivery.settled(record.position)

    def _acknowledge_chunks(self, position: EntryPosition) -> bool:
        """Acknowledge a message in one or several entries; return True when something new waits to be
        sent."""
        positions = self._tracker.positions(position)
        waits = self._tracker.entry(position)
        for each in positions:
            self._redelivery.acknowledged(each)
        return waits

    def _acknowledge_id(self, message_id: MessageId) -> bool:
        """Acknowledge an id; return True when something new waits to be sent."""
        if message_id.batch_index < 0:
            return self._acknowledge_chunks(message_id[:2])
        position = message_id[:2]
        record = self._tracker.open_batch(position)
        waits = self._tracker.individual(message_id)
        if record is not None and record.past_deliveries is not None:
            self._redelivery.take_back_id(position, message_id.batch_index)
            self._look_after(record)
        if self._tracker.is_duplicate(position):
            self._redelivery.acknowledged(position)
        return waits

    def _acknowledge_all(self, what: Iterable[OneMessage]) -> bool:
        """Check all messages first, then acknowledge all of them."""
        waits = False
        ids, messages = self._several(what)
        for message_id in ids:
            waits |= self._acknowledge_id(message_id)
        owner = self._owner
        for message in messages:
            record = message.entry.acknowledgement
            index = message.batch_index
            if index == record.in_order and index != record.checkpoint and record.deliveries is owner:
                record.in_order = index + 1
            else:
                waits |= self._acknowledge_message(message)
        return waits

    def _acknowledge_together(self, messages: Messages) -> bool:
        """Acknowledge messages that were delivered together: their shared attributes are checked once."""
        self.check_open()
        for item in messages.items:
            for entry in _entries_to_check(item):
                self._check_entry(entry)
        waits = False
        single = None if self._negative else self._single
        for item in messages.items:
            if isinstance(item, ReceivedBatch):
                waits |= self._acknowledge_batch(item)
            elif isinstance(item, ReceivedSingles) and item.acknowledgement is single:
                self._tracker.entries.update(dict.fromkeys(item.positions))
                waits = True
            else:
                for message in messages_of(item):
                    waits |= self._acknowledge_message(message)
        return waits

    def _acknowledge_batch(self, item: ReceivedBatch) -> bool:
        record = item.entry.acknowledgement
        first = record.in_order
        last = first + len(item.indexes) - 1
        if (
            record.deliveries is not self._owner
            or item.indexes != range(first, last + 1)
            or record.past_deliveries is not None
        ):
            waits = False
            for message in messages_of(item):
                waits |= self._acknowledge_message(message)
            return waits
        if first <= record.checkpoint <= last:
            record.in_order = last
            return self._acknowledge_message(Message.of(item.payloads[-1], item.entry, last))
        record.in_order = last + 1
        return False

    # --- checks: raise for the caller's mistakes -------------------------------------------------

    def _several(self, what: object) -> tuple[list[MessageId], list[Message]]:
        """Return the ids and the messages in `what`, all of them checked."""
        self.check_open()
        if not isinstance(what, Iterable) or isinstance(what, str | bytes):
            raise not_a_message(what)
        messages = what if isinstance(what, list) else list(what)
        ids: list[MessageId] = []
        kinds = set(map(type, messages)) - {Message}
        if TopicMessageId in kinds:
            messages = [self.own_id(item) if type(item) is TopicMessageId else item for item in messages]
        if kinds:
            ids = [item for item in messages if type(item) is MessageId]
            messages = [item for item in messages if type(item) is not MessageId]
            for item in messages:
                if type(item) is not Message:
                    raise not_a_message(item)
            for message_id in ids:
                self._check_id(message_id)
        # Messages of an entry share its source, so each entry is checked once.
        for entry in set(map(_entry_of, messages)):
            self._check_entry(entry)
        return ids, messages

    def _check_message(self, message: Message) -> None:
        self.check_open()
        self._check_entry(message.entry)

    def _check_entry(self, entry: Entry) -> None:
        if entry.source is not self._source and entry.source != self._source:
            ledger_id, entry_id = entry.position
            raise LocalProtocolError(
                f"message {ledger_id}:{entry_id} is from {entry.source.topic}, not from {self._source.topic}"
            )

    def own_id(self, what: TopicMessageId) -> MessageId:
        """Return the id without its topic."""
        topic, message_id = what
        check_id(message_id)
        try:
            name = TopicName.parse(topic)
        except InvalidTopicName as error:
            raise LocalProtocolError(f"message id {message_id}: {error}") from None
        own = TopicName.parse(self._source.topic)
        if name != own and name != own.base:
            raise LocalProtocolError(f"message id {message_id} is of {name}, not of {own}")
        return message_id

    def _check_id(self, message_id: MessageId) -> None:
        self.check_open()
        check_id(message_id)
        partition = self._source.partition
        if message_id.partition >= 0 and message_id.partition != partition:
            raise LocalProtocolError(
                f"message id {message_id} is of partition {message_id.partition}, not of {self._source.topic}"
            )
        self._tracker.check(message_id)


def is_left(entry: Entry) -> bool:
    """True when the entry was delivered by a cluster that its consumer has left: its position names another
    message now."""
    deliveries = entry.acknowledgement.deliveries
    return deliveries is not None and deliveries.left


_entry_of: Callable[[Message], Entry] = attrgetter("entry")


def _entries_to_check(item: Item) -> list[Entry]:
    """Return entries that cover all sources of an item."""
    if isinstance(item, ReceivedBatch):
        return [item.entry]
    return [item.entry(0)] if isinstance(item, ReceivedSingles) else [message.entry for message in item]


def check_id(message_id: object) -> None:
    """Raise `LocalProtocolError` for a value that is no id, or whose numbers no broker gives."""
    if not isinstance(message_id, MessageId):
        raise not_a_message(message_id)
    if not is_message_id(message_id):
        raise LocalProtocolError(f"a message id of whole numbers, not {tuple(message_id)!r}")


def not_a_message(what: object) -> LocalProtocolError:
    """Return the error for a value that is neither message nor id."""
    return LocalProtocolError(f"a message, a message id or several of them, not {type(what).__name__}")
