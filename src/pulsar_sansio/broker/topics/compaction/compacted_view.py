"""`CompactedView`: the entries that compaction kept of a topic up to an offset, its horizon, and how
consumers read them.

Entries keep their ids and offsets, so a consumer that reads compacted continues from the view to the ledgers.
The module does not know how entries were chosen.
"""

from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING

from ....model.errors import FrameError
from ....wire import MetadataDecoder, split_batch
from ...records import EntryAdded, TopicCompacted
from ...storage.entry import entry_metadata
from ..messages import batch_payload
from ..producing.publish_checks import is_last_chunk

if TYPE_CHECKING:
    from ...dispatching.consumer import Consumer
    from ...dispatching.single_active import SingleActive


class CompactedView:
    """The result of one compaction."""

    def __init__(self, record: TopicCompacted) -> None:
        self.ledger_id = record.ledger_id
        self.horizon = record.horizon
        """Offset of the last entry that compaction read; later entries are in the ledgers alone."""
        self.entries = record.entries
        self.offsets = record.offsets
        self._ids = [(entry.ledger_id, entry.entry_id) for entry in self.entries]
        self.size = sum(len(entry.data) for entry in self.entries)

    @property
    def first(self) -> int:
        """Offset of the first entry; the offset after the horizon where no entry was kept."""
        return self.offsets[0] if self.offsets else self.horizon + 1

    def offset(self, ledger_id: int, entry_id: int) -> int | None:
        """Return the offset of that entry, or of the next one that was kept; None where there is none."""
        index = bisect_left(self._ids, (ledger_id, entry_id))
        return self.offsets[index] if index < len(self.offsets) else None

    def find_publish_time(self, publish_time: int) -> int | None:
        """Return the offset of the first entry published at this time (ms) or later; None where there is
        none."""
        for offset, entry in zip(self.offsets, self.entries, strict=True):
            if entry.publish_time >= publish_time:
                return offset
        return None

    @cached_property
    def last_position(self) -> tuple[int, int, int]:
        """(ledger, entry, batch index) of the last message that was kept; all -1 where there is none.

        A message whose last chunk is missing does not count.
        """
        for entry in reversed(self.entries):
            if is_last_chunk(entry_metadata(entry.data, MetadataDecoder())):
                return entry.ledger_id, entry.entry_id, _last_index(entry)
        return -1, -1, -1

    def dispatch(self, dispatcher: "SingleActive", consumer: "Consumer") -> None:
        """Deliver entries to `consumer` from the dispatcher's read position on, as permits allow."""
        subscription = dispatcher.subscription
        cursor, throttle = subscription.cursor, subscription.throttle
        connection = consumer.connection
        for index in range(bisect_left(self.offsets, dispatcher.read), len(self.offsets)):
            offset = self.offsets[index]
            entry = self.entries[index]
            if not cursor.acknowledged(offset) and consumer.matches_key_filter(entry.data):
                bits = subscription.deliverable(offset, entry.messages)
                messages = entry.messages if bits is None else bits.bit_count()
                if messages:  # An open transaction may have acknowledged all of them.
                    consumer.deliver(entry, messages, 0, bits)
            dispatcher.read = offset + 1
            if consumer.permits <= 0 or not connection.writable:
                return
            if throttle is not None and throttle.exhausted:
                return
        dispatcher.read = max(dispatcher.read, self.horizon + 1)


def _last_index(entry: EntryAdded) -> int:
    """The batch index of the last message kept in the entry; -1 where the entry is no batch."""
    metadata = entry_metadata(entry.data, MetadataDecoder())
    count = metadata.num_messages_in_batch
    if count is None:
        return -1
    payload = batch_payload(entry.data, metadata)
    if payload is None:
        return count - 1
    try:
        batch = split_batch(payload, count)
    except FrameError:  # A batch that cannot be read is kept unchanged.
        return count - 1
    return max(index for index in range(count) if not batch.single(index).compacted_out)
