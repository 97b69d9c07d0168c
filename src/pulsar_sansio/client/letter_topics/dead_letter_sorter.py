"""`DeadLetterSorter`: separates the messages that may be delivered from those beyond the redelivery limit.

It stands in front of a consumer's queue. A batch may be divided, because each of its messages has its own
count of deliveries.
"""

from collections.abc import Container

from ...model.message import Message
from ..delivery.received_entries import ReceivedBatch, ReceivedSingles, messages_of
from ..delivery.receiver_queue import ReceiverQueue
from .letter_topics import LetterTopics


class DeadLetterSorter:
    """The entrance to a consumer's queue that lets only messages pass that may be delivered."""

    __slots__ = ("_dead_letter", "_maximum", "_queue", "_tries")

    def __init__(self, queue: ReceiverQueue, letters: LetterTopics) -> None:
        self._queue = queue
        self._dead_letter = letters.dead_letter
        self._maximum = letters.policy.max_redeliver_count
        self._tries = letters.tries

    def add(self, message: Message) -> None:
        """See `ReceiverQueue`."""
        if self._tries:
            self._tries.arrived(message.entry.position, message.entry.redelivery_count)
        if message.entry.redelivery_count > self._maximum and self._is_dead(message):
            self._dead_letter([message])
        else:
            self._queue.add(message)

    def add_batch(self, batch: ReceivedBatch) -> None:
        """See `ReceiverQueue`."""
        if self._tries:
            self._tries.arrived(batch.entry.position, batch.entry.redelivery_count)
        if batch.entry.redelivery_count <= self._maximum:
            self._queue.add_batch(batch)
            return
        dead = [message for message in messages_of(batch) if self._is_dead(message)]
        if len(dead) < len(batch.indexes):
            self._queue.add_batch(_without(batch, {message.batch_index for message in dead}))
        if dead:
            self._dead_letter(dead)

    def add_singles(self, singles: ReceivedSingles) -> None:
        """See `ReceiverQueue`."""
        if singles.redelivery_count <= self._maximum:
            if self._tries:
                for position in singles.positions:
                    self._tries.arrived(position, singles.redelivery_count)
            self._queue.add_singles(singles)
            return
        for message in messages_of(singles):
            self.add(message)

    def _is_dead(self, message: Message) -> bool:
        """True when the application has received the message as often as the policy allows (DLQ-03).

        Earlier deliveries that still wait in the queue do not count yet.
        """
        tries = self._tries.of(message.entry, message.batch_index)
        if tries <= self._maximum:
            return False
        return tries - self._queue.copies_of(message.entry.position, message.batch_index) > self._maximum


def _without(batch: ReceivedBatch, indexes: Container[int]) -> ReceivedBatch:
    """Return the batch without the messages of these indexes."""
    kept = [position for position, index in enumerate(batch.indexes) if index not in indexes]
    if len(kept) == len(batch.indexes):
        return batch
    payloads = [batch.payloads[position] for position in kept]
    return ReceivedBatch(batch.entry, payloads, [batch.indexes[position] for position in kept])
