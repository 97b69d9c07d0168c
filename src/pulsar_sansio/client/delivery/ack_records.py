"""Records of acknowledged messages: one for each batch, and one shared by all entries of one message.

`Entry.acknowledgement` refers to one of them. A `BatchAcknowledgement` counts while the messages of its batch
are acknowledged in order. The first message acknowledged out of order turns the count into a bitset (one
int).

The records know nothing of ACK commands; `ack_tracker` decides what is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.message_id import EntryPosition

if TYPE_CHECKING:
    from ..acknowledging.ack_tracker import AckTracker

OUT_OF_ORDER = -2
"""`in_order` of a record without such a counter; never the index of a message."""


class Deliveries:
    """The deliveries of one cluster to a consumer.

    A consumer that moves to another cluster leaves them: entry positions name other messages there, so
    acknowledging these deliveries has no effect any more.
    """

    __slots__ = ("left", "tracker")

    def __init__(self, tracker: AckTracker) -> None:
        self.tracker = tracker
        self.left = False


class PastDeliveries:
    """Facts about a batch that its acknowledgements do not tell: of its redeliveries, and of transactions.
    Most batches have none."""

    __slots__ = ("asked", "committed", "count", "refused")

    def __init__(self) -> None:
        self.committed = 0
        """Bit i is set when a committed transaction acknowledged message i: the broker knows of it."""
        self.refused = 0
        """Bit i is set while message i is negatively acknowledged and not redelivered since."""
        self.count = 0
        """The number of redeliveries. Messages of the last delivery may wait in the receiver queue while the
        application holds messages of an earlier one."""
        self.asked = False
        """True when the broker was asked for the batch and has not redelivered it since."""


class BatchAcknowledgement:
    """The acknowledged messages of a batch.

    `in_order`: exactly the messages before this index are acknowledged; `OUT_OF_ORDER` once that is no longer
    true. `checkpoint`: acknowledging this index in order needs the tracker, which sends an ACK or updates its
    records. Below the checkpoint counting is enough, and the consumer counts by itself.
    """

    __slots__ = (
        "_open",
        "checkpoint",
        "deliveries",
        "in_order",
        "left_out",
        "past_deliveries",
        "position",
        "size",
        "stamp",
    )

    def __init__(
        self, deliveries: Deliveries, position: EntryPosition, size: int, open_bits: int, stamp: int | None
    ) -> None:
        """`stamp`: identifies the batch at its position; None when unknown."""
        self.deliveries: Deliveries = deliveries
        self.position = position
        self.size = size
        self.stamp = stamp
        self._open = open_bits
        self.left_out = 0
        """Bit i is set while the broker leaves message i out of its deliveries, though the application has
        not acknowledged it. An open transaction may acknowledge it, and be aborted. Always 0 for a client
        without transactions."""
        self.past_deliveries: PastDeliveries | None = None
        self.in_order = 0 if open_bits == (1 << size) - 1 else OUT_OF_ORDER
        self.checkpoint = 0 if deliveries.tracker.index_acknowledgement else size - 1

    @property
    def open_bits(self) -> int:
        """Bit i is set while message i is not acknowledged."""
        return self._open if self.in_order < 0 else (1 << self.size) - (1 << self.in_order)

    @property
    def complete(self) -> bool:
        return self.in_order == self.size or (self.in_order < 0 and not self._open)

    @property
    def begun(self) -> bool:
        """True when some messages of the batch are acknowledged."""
        return self.in_order != 0 and self.open_bits != (1 << self.size) - 1

    @property
    def unsettled(self) -> int:
        """Bit i is set while message i is neither acknowledged nor negatively acknowledged."""
        return self.open_bits & ~self.refused

    @property
    def unsent_bits(self) -> int:
        """Bit i is set while the application has acknowledged message i and no transaction has."""
        past = self.past_deliveries
        known = self.unconfirmed_bits | (0 if past is None else past.committed)
        return ((1 << self.size) - 1) & ~known

    @property
    def refused(self) -> int:
        """Bit i is set while message i is negatively acknowledged and not acknowledged since."""
        past = self.past_deliveries
        return 0 if past is None else self.open_bits & past.refused

    def is_of(self, size: int, stamp: int) -> bool:
        """True when a batch of that size and stamp is this one."""
        return self.size == size and self.stamp in (None, stamp)

    def past(self) -> PastDeliveries:
        """Return the redelivery facts of this batch. From now on every acknowledgement needs the tracker."""
        if self.past_deliveries is None:
            self.past_deliveries = PastDeliveries()
            self.checkpoint = self.in_order
        return self.past_deliveries

    def delivered_again(self, open_bits: int | None) -> None:
        """Record a redelivery of the batch; `open_bits` as in `AckTracker.batch`."""
        past = self.past()
        past.count += 1
        past.refused = 0
        past.asked = False
        before = now = self.open_bits
        if open_bits is None:
            open_bits = (1 << self.size) - 1
        if self.deliveries.tracker.transactions:
            now |= self.left_out
            self.left_out = now & ~open_bits
        now &= open_bits
        if now != before:
            self._open = now
            self.in_order = OUT_OF_ORDER

    def leave_out(self, bits: int) -> None:
        """Record the messages that the broker left out of the delivery that was just recorded; others are not
        for the application."""
        if self.past_deliveries is None:
            self.left_out = bits
        else:
            self.left_out &= bits

    def aborted(self, bits: int) -> None:
        """Open these messages again if they were left out: their transaction was aborted."""
        if bits & self.left_out:
            self._open = self.open_bits | bits & self.left_out
            self.in_order = OUT_OF_ORDER
            self.left_out &= ~bits

    @property
    def unconfirmed_bits(self) -> int:
        """Bit i is set while the application has not acknowledged message i."""
        return self.open_bits | self.left_out

    def refuse(self, bits: int) -> bool:
        """Record these messages as negatively acknowledged. Return False when all of them are acknowledged,
        or were negatively acknowledged before."""
        bits &= self.open_bits
        if not bits:
            return False
        past = self.past()
        before = past.refused
        past.refused |= bits
        return past.refused != before

    def acknowledge(self, index: int) -> bool:
        """Record message `index` as acknowledged; return False if it already was."""
        if self.in_order >= 0:
            if index == self.in_order:
                self.in_order += 1
                return True
            if index < self.in_order:
                return False
            self._open = self.open_bits
            self.in_order = OUT_OF_ORDER
        before = self._open | self.left_out
        self._open &= ~(1 << index)
        self.left_out &= ~(1 << index)
        return self._open | self.left_out != before

    def acknowledge_through(self, index: int) -> None:
        """Record message `index` and all before it as acknowledged (ACK-20). An index beyond the batch
        acknowledges all of it; a broker may have put another batch at this position."""
        if self.in_order >= 0:
            self.in_order = max(self.in_order, min(index + 1, self.size))
        else:
            self._open = self._open >> (index + 1) << (index + 1)
            self.left_out = self.left_out >> (index + 1) << (index + 1)
        if self.past_deliveries is not None:
            self.checkpoint = self.in_order

    def count_alone(self) -> None:
        """Let counting be enough up to the last message, unless redelivery facts have to be updated."""
        self.checkpoint = self.size - 1 if self.past_deliveries is None else self.in_order

    def take_over(self, other: BatchAcknowledgement) -> None:
        """Count messages as acknowledged here that the other record holds as acknowledged and not sent."""
        if other.size == self.size:
            self._open = self.open_bits & other.open_bits
            self.left_out &= other.unconfirmed_bits
            self.in_order = OUT_OF_ORDER
        other.checkpoint = other.in_order


class EntryAcknowledgement:
    """The record that all entries of one message share: such an entry needs no count.

    `era`: how often the subscription had been moved when the entries were delivered.
    """

    __slots__ = ("checkpoint", "deliveries", "era", "in_order")

    def __init__(self, deliveries: Deliveries, era: int) -> None:
        self.deliveries: Deliveries = deliveries
        self.era = era
        self.in_order = OUT_OF_ORDER
        self.checkpoint = OUT_OF_ORDER
