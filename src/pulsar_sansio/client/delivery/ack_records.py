"""Records of what is acknowledged, one for each batch and one for all messages that are an entry each.

`Entry.acknowledgement` refers to one of them. A `BatchAcknowledgement` counts while the messages of its batch
are acknowledged in order, and is a bitset (one int) from the first one that is not.

Knows nothing of what is sent to the broker; that is `acks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.message_id import EntryPosition

if TYPE_CHECKING:
    from ..acknowledging.ack_tracker import AckTracker

OUT_OF_ORDER = -2
"""`in_order` of a record that has no such counter; never the index of a message."""


class Deliveries:
    """What one cluster delivers to a consumer. One that goes on in another cluster leaves them: their places
    are those of other messages there, and acknowledging them means nothing any more."""

    __slots__ = ("left", "tracker")

    def __init__(self, tracker: AckTracker) -> None:
        self.tracker = tracker
        self.left = False


class PastDeliveries:
    """The facts of a batch's redeliveries that acknowledgements do not tell. Most batches have none."""

    __slots__ = ("asked", "count", "refused")

    def __init__(self) -> None:
        self.refused = 0
        """Bit i is set while message i is negatively acknowledged, and was not delivered since."""
        self.count = 0
        """Deliveries after the first one. Messages of the last one may be in the receiver queue while the
        application has those of an earlier one."""
        self.asked = False
        """The broker was asked for the batch, and has not delivered it since."""


class BatchAcknowledgement:
    """Which messages of a batch are acknowledged.

    `in_order`: the messages before this index are acknowledged and no others; `OUT_OF_ORDER` once that is no
    longer true. `checkpoint`: acknowledging this index in order is the tracker's business, because something
    has to be sent or looked after; up to there counting is enough, and the consumer does that by itself.
    """

    __slots__ = ("_open", "checkpoint", "deliveries", "in_order", "past_deliveries", "place", "size", "stamp")

    def __init__(
        self, deliveries: Deliveries, place: EntryPosition, size: int, open_bits: int, stamp: int | None
    ) -> None:
        """`stamp`: None where it is not known."""
        self.deliveries: Deliveries = deliveries
        self.place = place
        self.size = size
        self.stamp = stamp
        self._open = open_bits
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
        """Some of its messages are acknowledged."""
        return self.in_order != 0 and self.open_bits != (1 << self.size) - 1

    @property
    def unsettled(self) -> int:
        """Bit i is set while message i is neither acknowledged nor negatively acknowledged."""
        return self.open_bits & ~self.refused

    @property
    def refused(self) -> int:
        """Bit i is set while message i is negatively acknowledged, and not acknowledged since."""
        past = self.past_deliveries
        return 0 if past is None else self.open_bits & past.refused

    def is_of(self, size: int, stamp: int) -> bool:
        """A batch of that size and stamp is this one."""
        return self.size == size and self.stamp in (None, stamp)

    def past(self) -> PastDeliveries:
        """From now on every acknowledgement is the tracker's business."""
        if self.past_deliveries is None:
            self.past_deliveries = PastDeliveries()
            self.checkpoint = self.in_order
        return self.past_deliveries

    def delivered_again(self, open_bits: int | None) -> None:
        """The batch has come once more; `open_bits` as in `AckTracker.batch`."""
        past = self.past()
        past.count += 1
        past.refused = 0
        past.asked = False
        if open_bits is not None and self.open_bits & ~open_bits:
            self._open = self.open_bits & open_bits
            self.in_order = OUT_OF_ORDER

    def refuse(self, bits: int) -> bool:
        """These messages are negatively acknowledged; False where none of them is left, or all were so
        before."""
        bits &= self.open_bits
        if not bits:
            return False
        past = self.past()
        before = past.refused
        past.refused |= bits
        return past.refused != before

    def acknowledge(self, index: int) -> bool:
        """Message `index` is acknowledged; False if it was already."""
        if self.in_order >= 0:
            if index == self.in_order:
                self.in_order += 1
                return True
            if index < self.in_order:
                return False
            self._open = self.open_bits
            self.in_order = OUT_OF_ORDER
        before = self._open
        self._open &= ~(1 << index)
        return self._open != before

    def acknowledge_through(self, index: int) -> None:
        """Message `index` and all before it are acknowledged (ACK-20); what is beyond the batch, as after a
        broker has delivered another one in its place, is all of it."""
        if self.in_order >= 0:
            self.in_order = max(self.in_order, min(index + 1, self.size))
        else:
            self._open = self._open >> (index + 1) << (index + 1)
        if self.past_deliveries is not None:
            self.checkpoint = self.in_order

    def count_alone(self) -> None:
        """Until its last message, counting is enough; not where there are past deliveries to look after."""
        self.checkpoint = self.size - 1 if self.past_deliveries is None else self.in_order

    def take_over(self, other: BatchAcknowledgement) -> None:
        """Count messages that the other record has acknowledged, and not sent, as acknowledged here."""
        if other.size == self.size:
            self._open = self.open_bits & other.open_bits
            self.in_order = OUT_OF_ORDER
        other.checkpoint = other.in_order


class EntryAcknowledgement:
    """The record that entries of one message share: there is nothing to count in them.

    `era`: how often the subscription had been moved when they were delivered.
    """

    __slots__ = ("checkpoint", "deliveries", "era", "in_order")

    def __init__(self, deliveries: Deliveries, era: int) -> None:
        self.deliveries: Deliveries = deliveries
        self.era = era
        self.in_order = OUT_OF_ORDER
        self.checkpoint = OUT_OF_ORDER
