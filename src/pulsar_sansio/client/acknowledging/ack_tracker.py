"""`AckTracker`: the messages that the application has acknowledged, and the acknowledgements that wait to be
sent.

The broker is told about entries; the application acknowledges messages. The tracker has one
`BatchAcknowledgement` for each batch that is not wholly acknowledged (rules ACK-04, ACK-05, ACK-20). The
broker is told about an entry when all its messages are acknowledged. With index acknowledgement it is told
earlier, with the set of messages that are left.

All deliveries of a batch share its record. A broker redelivers a batch as a whole; the record says which of
its messages the application has acknowledged, so that these are not delivered again. The record outlives
connections. It is dropped when the batch is wholly acknowledged, when the subscription was moved, or when
there are more than `MAX_OPEN_BATCHES`.

Waiting acknowledgements are a set, so that any repetition is harmless (ACK-01). This module decides *what*
goes into an ACK. `ack_grouping` decides *when* and over which connection it goes, and learns whether it
arrived. No bytes, no time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import LocalProtocolError
from ...model.message import Entry, ProcessingMaker
from ...model.message_id import EntryPosition, MessageId
from ..delivery.ack_records import BatchAcknowledgement, Deliveries, EntryAcknowledgement
from .taken_messages import AckId, TakenMessages

WHOLE_ENTRY = 1 << 62
"""In a `Position`: all messages of the entry, whatever their number."""

MAX_OPEN_BATCHES = 50_000
"""Batches whose acknowledged messages the tracker knows. One more makes it forget the oldest batch; a
redelivery of that batch delivers all its messages."""

MAX_IDS_IN_ACK = 1_000
MAX_ACK_BYTES = 1024 * 1024
"""Limits of one ACK, in ids and bytes (GAP-30); ack sets of very large batches reach the second limit
first."""


class Position(NamedTuple):
    """The end of a cumulative acknowledgement: that many messages of the entry, and everything before it."""

    ledger_id: int
    entry_id: int
    messages: int


class AckContent(NamedTuple):
    """The content of one ACK, and the records to restore if it is lost."""

    position: Position | None
    """The position of a cumulative acknowledgement; None for individual ones."""
    ids: list[AckId]
    records: list[BatchAcknowledgement]


class AckTracker:
    """Acknowledgements of one consumer. Methods that acknowledge return True when something new waits to be
    sent."""

    __slots__ = (
        "_batches",
        "_chunked",
        "_era",
        "_parts",
        "_position",
        "_position_record",
        "_sent",
        "chunked",
        "deliveries",
        "entries",
        "forgotten",
        "index_acknowledgement",
        "processing",
        "messages_beyond_ids",
        "single",
        "taken",
        "transactions",
    )

    def __init__(self, index_acknowledgement: bool, transactions: bool = False) -> None:
        """`transactions`: consumers of the subscription may acknowledge in transactions."""
        self.index_acknowledgement = index_acknowledgement
        self.transactions = transactions
        self.taken = TakenMessages()
        """The messages that open transactions have acknowledged."""
        self._era = 0
        """The number of times the subscription was moved."""
        self._begin()
        self.messages_beyond_ids = 0
        """Acknowledged messages without an id of their own in an ACK: all but one of each complete batch."""
        self.processing: ProcessingMaker | None = None
        """Makes the blocks of `Message.processing`; None for a client that is driven by hand."""
        self.entries: dict[EntryPosition, None] = {}
        """Whole entries that wait to be sent. `AckCommands` adds to them directly on its fast path."""
        self._parts: dict[EntryPosition, BatchAcknowledgement] = {}
        """Batches with acknowledged messages that wait to be sent; only with index acknowledgement."""
        self._position: Position | None = None
        self._position_record: BatchAcknowledgement | None = None
        self._sent: Position | None = None
        """The last cumulative position sent over the present connection; only positions beyond it are
        sent."""
        self._batches: OrderedDict[EntryPosition, BatchAcknowledgement] = OrderedDict()
        """The record of each batch that is not complete, oldest first."""
        self.forgotten = 0
        """The number of partly acknowledged batches that were forgotten for lack of room."""
        self._chunked: OrderedDict[EntryPosition, list[EntryPosition]] = OrderedDict()
        """The positions of all chunks of each message in chunks, by the position of its last chunk, oldest
        first."""

    # --- deliveries ------------------------------------------------------------------------------

    def batch(
        self, position: EntryPosition, size: int, open_bits: int | None, stamp: int
    ) -> BatchAcknowledgement:
        """Return the record for a batch that has just been delivered, perhaps not for the first time.

        `open_bits`: the messages the broker wants delivered, None for all. Acknowledged messages are not open
        in the record: they are duplicates (ACK-18). `stamp`: equal for all deliveries of a batch, and
        different for another batch that a broker has put at this position.
        """
        batches = self._batches
        record = batches.get(position)
        if record is not None:
            if record.is_of(size, stamp):
                record.stamp = stamp
                record.delivered_again(open_bits)
                return record
            self._parts.pop(position, None)
            del batches[position]
        bits = (1 << size) - 1
        if open_bits is not None:
            bits &= open_bits
        batches[position] = record = BatchAcknowledgement(self.deliveries, position, size, bits, stamp)
        if len(batches) > MAX_OPEN_BATCHES:
            self._forget_oldest()
        return record

    def open_batch(self, position: EntryPosition) -> BatchAcknowledgement | None:
        """Return the record of that batch, or None when it is unknown or complete."""
        record = self._batches.get(position)
        return None if record is None or record.complete else record

    def batch_of(self, position: EntryPosition) -> BatchAcknowledgement | None:
        """Return the record of that batch, or None when it is unknown."""
        return self._batches.get(position)

    def asked_for(self, position: EntryPosition) -> None:
        """Keep the entry's record until the broker redelivers the entry, which was requested."""
        record = self._batches.get(position)
        if record is not None:
            record.past().asked = True

    def new_connection(self) -> None:
        """Tell messages that are delivered from now on apart from those delivered before."""
        self.single = EntryAcknowledgement(self.deliveries, self._era)
        self.chunked = EntryAcknowledgement(self.deliveries, self._era)

    def moved(self) -> None:
        """Forget all batches: the subscription was moved, and the broker redelivers everything."""
        self._era += 1
        self._batches.clear()
        self.new_connection()

    def may_be_back(self, entry: Entry) -> bool:
        """True when messages of a later delivery of that entry may wait in the receiver queue, though the
        subscription was not moved."""
        record = entry.acknowledgement
        if isinstance(record, EntryAcknowledgement):
            return record.era == self._era and record is not self.single and record is not self.chunked
        if not isinstance(record, BatchAcknowledgement):
            return False
        past = record.past_deliveries
        return (
            past is not None and past.count != entry.delivery and self._batches.get(entry.position) is record
        )

    def message_in_chunks(self, positions: list[EntryPosition]) -> None:
        """Record a message in chunks that has just been delivered."""
        self._chunked.pop(positions[-1], None)
        self._chunked[positions[-1]] = positions
        if len(self._chunked) > MAX_OPEN_BATCHES:
            self._chunked.popitem(last=False)

    def positions(self, position: EntryPosition) -> list[EntryPosition]:
        """Return the positions of the message whose last chunk is at `position`."""
        return self._chunked.get(position) or [position]

    def with_all_chunks(self, positions: Mapping[EntryPosition, int]) -> dict[EntryPosition, int]:
        """Return these positions, given with bits of messages, and those of the other chunks of a message."""
        found = dict(positions)
        for chunks in self._chunked.values():
            if not found.keys().isdisjoint(chunks):
                found |= dict.fromkeys(chunks, 1)
        return found

    def in_chunks(self, position: EntryPosition) -> bool:
        """True when the message whose last chunk is at `position` is known and not acknowledged."""
        return position in self._chunked

    def is_duplicate(self, position: EntryPosition) -> bool:
        """True when the whole entry is acknowledged and the broker was not told yet (ACK-18), or an open
        transaction acknowledges it.

        Acknowledgements that were sent do not count: if one is lost, its messages must be redelivered.
        """
        if position in self.entries or self.covers(position):
            return True
        if not self.taken:
            return False
        record = self._batches.get(position)
        if record is None:
            return self.taken.has_whole(position, 1)
        return not record.open_bits & ~self.taken.bits(position, record.size)

    def covers(self, position: EntryPosition) -> bool:
        """True when the waiting cumulative acknowledgement covers the whole entry."""
        cumulative = self._position
        return cumulative is not None and (*position, WHOLE_ENTRY) <= cumulative

    # --- acknowledging ---------------------------------------------------------------------------

    def entry(self, position: EntryPosition) -> bool:
        """Acknowledge the whole entry, with the other chunks of its message."""
        self._batches.pop(position, None)
        self._parts.pop(position, None)
        if position in self.entries:
            return False
        for each in self._chunked.pop(position, None) or [position]:
            self.entries[each] = None
        return True

    def member(self, record: BatchAcknowledgement, index: int) -> bool:
        """Acknowledge message `index` of that batch."""
        if not record.acknowledge(index):
            return False
        waiting = self._parts.get(record.position)
        if waiting is not None and waiting is not record:
            record.take_over(waiting)
        if record.complete:
            self._complete(record)
            self._wait_for(record)
            return True
        if self.index_acknowledgement:
            self._parts[record.position] = record
        record.count_alone()
        return self.index_acknowledgement

    def in_part(self, record: BatchAcknowledgement) -> bool:
        """Acknowledge again what the application has acknowledged of a batch; the broker leaves out the
        rest."""
        if record.left_out == (1 << record.size) - 1:
            return False
        self._parts[record.position] = record
        return True

    def _wait_for(self, record: BatchAcknowledgement) -> None:
        """Let the acknowledgement of a complete batch wait, of all but the messages that are left out."""
        if record.left_out:
            self._parts[record.position] = record
        else:
            self.entries[record.position] = None

    def committed(self, position: EntryPosition, bits: int) -> bool:
        """Messages of an entry were acknowledged by a transaction, so the broker knows. Return True when the
        others of a batch, which were acknowledged outside of it, wait to be sent now."""
        self._chunked.pop(position, None)
        record = self._batches.get(position)
        if record is None:
            return False
        for index in range(record.size):
            if bits >> index & 1:
                record.acknowledge(index)
        if not record.complete or record.left_out:
            record.past().committed |= bits
        if not record.complete:
            record.count_alone()
            return False
        waits = position in self._parts or not self.index_acknowledgement
        self._complete(record)
        if bits == (1 << record.size) - 1 or not waits:
            return False
        self._wait_for(record)
        return True

    def committed_through(self, id_: AckId) -> bool:
        """Everything up to an entry was acknowledged by a transaction; returns as `committed`."""
        ledger_id, entry_id, left = id_
        self._forget_through(Position(ledger_id, entry_id, WHOLE_ENTRY if left is None else 0))
        if left is None:
            return False
        return self.committed((ledger_id, entry_id), (left & -left) - 1)

    def copied(self, record: BatchAcknowledgement, index: int) -> tuple[BatchAcknowledgement, bool]:
        """Acknowledge message `index` of that batch because its copy is stored. Return the record that
        counts, and whether something waits. A complete batch waits to be sent in any case: the
        acknowledgement of an earlier delivery may be lost."""
        record = self._batches.get(record.position, record)
        waits = self.member(record, index)
        if record.complete and not waits:
            self._wait_for(record)
        return record, waits or record.complete

    def check(self, message_id: MessageId) -> None:
        """Raise `LocalProtocolError` for an id whose index is outside its batch, or whose batch has an
        unknown size; any other id can be acknowledged."""
        index, size = message_id.batch_index, message_id.batch_size
        if index < 0:
            return
        record = self._batches.get(message_id[:2])
        if record is not None:
            size = record.size
        if index >= size:
            raise LocalProtocolError(
                f"message id {message_id}: its batch has {size} messages"
                if size
                else f"message id {message_id}: it is in a batch, and the id does not say of which size"
            )

    def individual(self, message_id: MessageId) -> bool:
        """Acknowledge the message, or the whole entry, with that id."""
        position = message_id[:2]
        if (
            position in self.entries and position not in self._batches
        ):  # otherwise the id counts for a later delivery
            return False
        if message_id.batch_index < 0:
            return self.entry(position)
        return self.member(self.record(message_id), message_id.batch_index)

    def cumulative(self, record: BatchAcknowledgement | None, message_id: MessageId) -> bool:
        """Acknowledge that message and everything before it; `record` is that of its batch, if known.

        Within a batch and without index acknowledgement, the position sent to the broker is the entry before
        it (ACK-06). In the first entry of a ledger that is entry -1, which is before all of them.
        """
        ledger_id, entry_id, _, index = message_id[:4]
        position = Position(ledger_id, entry_id, WHOLE_ENTRY)
        if index >= 0:
            record = self.record(message_id) if record is None else record
            record.acknowledge_through(index)
            if record.complete and not record.left_out:
                self._complete(record)
                record = None
            elif self.index_acknowledgement or record.left_out:
                record.checkpoint = record.in_order
                position = Position(ledger_id, entry_id, index + 1)
            else:
                position = Position(ledger_id, entry_id - 1, WHOLE_ENTRY)
                record = None
        return self._advance(position, record)

    # --- sending ---------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """The number of ids that wait to be sent."""
        return len(self.entries) + len(self._parts) + (self._position is not None)

    def drain(self) -> list[AckContent]:
        """Take all that waits, as ACKs: first the cumulative one, then the others in order (ACK-10)."""
        drained: list[AckContent] = []
        cumulative, record = self._position, self._position_record
        if cumulative is not None:
            self._position = self._position_record = None
            self._sent = cumulative
            self._forget_through(cumulative)
            bits = (
                None if record is None else record.unconfirmed_bits or None
            )  # an empty set would stand for no whole entry
            drained.append(
                AckContent(cumulative, [(*cumulative[:2], bits)], [] if record is None else [record])
            )
        entries, parts = self.entries.copy(), self._parts
        if self.taken.may_return:
            for position in entries:
                self.taken.acknowledged(position, -1)
            for position, record in parts.items():
                self.taken.acknowledged(position, ~record.unconfirmed_bits)
        self.entries.clear()
        self._parts = {}
        if not parts:
            whole: list[AckId] = [(ledger_id, entry_id, None) for ledger_id, entry_id in sorted(entries)]
            for start in range(0, len(whole), MAX_IDS_IN_ACK):
                drained.append(AckContent(None, whole[start : start + MAX_IDS_IN_ACK], []))
            return drained
        ids: list[AckId] = []
        records: list[BatchAcknowledgement] = []
        size = 0
        for position in sorted({**entries, **parts}):
            record = None if position in entries else parts.get(position)
            if record is None:
                ids.append((*position, None))
                size += 24
            else:
                bits = record.unconfirmed_bits
                record.checkpoint = record.in_order
                ids.append((*position, bits))
                records.append(record)
                size += 24 + 11 * (bits.bit_length() // 64 + 1)
            if len(ids) == MAX_IDS_IN_ACK or size >= MAX_ACK_BYTES:
                drained.append(AckContent(None, ids, records))
                ids, records, size = [], [], 0
        if ids:
            drained.append(AckContent(None, ids, records))
        return drained

    def put_back(self, ack: AckContent) -> None:
        """Let the content of an ACK that was lost wait again."""
        if ack.position is not None:
            self._sent = None
            self._advance(ack.position, ack.records[0] if ack.records else None)
            return
        for ledger_id, entry_id, bits in ack.ids:
            if bits is None:
                self.entries[ledger_id, entry_id] = None
        for record in ack.records:
            waiting = self._parts.get(record.position)
            if waiting is record or (record.complete and not record.left_out):
                continue
            if waiting is None:
                record.count_alone()
                self._parts[record.position] = record
                continue
            waiting.take_over(record)
            if waiting.complete:
                self._complete(waiting)
                self._wait_for(waiting)

    def forget_sent(self) -> None:
        """Allow positions to be sent again: those that were sent may be lost, or were refused."""
        self._sent = None

    def discard_waiting(self) -> None:
        """Drop all waiting acknowledgements: the subscription that they were for is gone."""
        self.entries.clear()
        self._parts.clear()
        self._position = self._position_record = None

    def leave_cluster(self) -> None:
        """Forget everything: in another cluster the positions name other messages."""
        self.deliveries.left = True
        self._begin()
        self.discard_waiting()
        self._batches.clear()
        self._chunked.clear()

    # --- inside ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin the deliveries of a cluster."""
        self.deliveries = Deliveries(self)
        self.single = EntryAcknowledgement(self.deliveries, self._era)
        """The record of all messages that are an entry each."""
        self.chunked = EntryAcknowledgement(self.deliveries, self._era)
        """The record of all messages that came in chunks: each acknowledges several entries."""

    def _advance(self, position: Position, record: BatchAcknowledgement | None) -> bool:
        """Keep the greatest position only (ACK-14)."""
        if any(other is not None and position <= other for other in (self._position, self._sent)):
            return False
        self._position = position
        self._position_record = record
        return True

    def record(self, message_id: MessageId) -> BatchAcknowledgement:
        """Return the record that counts an id of a message in a batch."""
        record = self._batches.get(message_id[:2])
        if record is None:
            size = message_id.batch_size
            record = BatchAcknowledgement(self.deliveries, message_id[:2], size, (1 << size) - 1, None)
            self._register(record)
        return record

    def _register(self, record: BatchAcknowledgement) -> None:
        self._batches[record.position] = record
        if len(self._batches) > MAX_OPEN_BATCHES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, oldest = self._batches.popitem(last=False)
        self.forgotten += oldest.begun

    def _complete(self, record: BatchAcknowledgement) -> None:
        """Forget a complete batch, unless the broker was asked to redeliver it, or leaves messages out."""
        position = record.position
        self.messages_beyond_ids += record.size - 1
        past = record.past_deliveries
        if record.left_out:
            return
        if self._batches.get(position) is record and (past is None or not past.asked):
            del self._batches[position]
        if self._parts.get(position) is record:
            del self._parts[position]

    def _forget_through(self, cumulative: Position) -> None:
        """Drop acknowledgements and records that the cumulative acknowledgement covers."""
        last = (
            cumulative[:2]
            if cumulative.messages == WHOLE_ENTRY
            else (cumulative.ledger_id, cumulative.entry_id - 1)
        )
        for position in [position for position in self.entries if position <= last]:
            del self.entries[position]
        self._parts = {position: record for position, record in self._parts.items() if position > last}
        batches = self._batches
        while batches and next(iter(batches)) <= last:
            batches.popitem(last=False)
        chunked = self._chunked
        while chunked and next(iter(chunked)) <= last:
            chunked.popitem(last=False)
