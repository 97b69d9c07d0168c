"""`DeliveryCounts`: how often the application received a message, as far as its consumer knows (DLQ-03).

A broker counts how often it has delivered an entry. Some messages were delivered and never reached the
application, because they waited in a receiver queue that was dropped, for example with a lost connection,
or because the consumer could not decrypt them.
`DeliveryCounts` remembers these deliveries by the broker's count and subtracts them. It knows neither
deliveries that were lost on the way, nor those to other consumers of the subscription. They count as
deliveries to the application.

A broker forgets its counts when it restarts, or when the last consumer of the subscription has left. An entry
that arrives with an equal or lower count than before shows that; its earlier deliveries are forgotten here
too.
"""

from collections.abc import Sequence

from ...model.message import Entry
from ...model.message_id import EntryPosition
from ..delivery.received_entries import Item, ReceivedBatch, ReceivedSingles

MAX_UNTRIED = 50_000
"""Messages with a remembered delivery that never reached the application. Beyond that number the oldest entry
is forgotten, and its deliveries count again."""


class DeliveryCounts:
    """The delivery counts of one consumer."""

    __slots__ = ("_entries", "_messages", "forgotten")

    def __init__(self) -> None:
        self._entries: dict[EntryPosition, dict[int, set[int]]] = {}
        """By entry and redelivery count: the messages that did not reach the application in that delivery."""
        self._messages = 0
        self.forgotten = 0
        """The number of entries that were forgotten for lack of room."""

    def taken_back(self, items: Sequence[Item]) -> None:
        """Record items that left the receiver queue without reaching the application."""
        for item in items:
            if isinstance(item, ReceivedBatch):
                self._note(item.entry.position, item.entry.redelivery_count, item.indexes)
            elif isinstance(item, ReceivedSingles):
                for position in item.positions:
                    self._note(position, item.redelivery_count, (-1,))
            else:
                for message in item:
                    self._note(message.entry.position, message.entry.redelivery_count, (-1,))

    def withheld(self, position: EntryPosition, redelivery_count: int, indexes: Sequence[int]) -> None:
        """Record messages that arrived, and that the consumer does not deliver because it cannot decrypt
        them."""
        self.arrived(position, redelivery_count)
        self._note(position, redelivery_count, indexes)

    def _note(self, position: EntryPosition, count: int, indexes: Sequence[int]) -> None:
        known = self._entries.setdefault(position, {}).setdefault(count, set())
        self._messages -= len(known)
        known.update(indexes)
        self._messages += len(known)
        while self._messages > MAX_UNTRIED and len(self._entries) > 1:
            self.discard(next(iter(self._entries)))
            self.forgotten += 1

    def __len__(self) -> int:
        return len(self._entries)

    def arrived(self, position: EntryPosition, redelivery_count: int) -> None:
        """Record a redelivery of the entry: deliveries that the broker has not counted no longer matter."""
        known = self._entries.get(position)
        if known is not None:
            for count in [count for count in known if count >= redelivery_count]:
                self._messages -= len(known.pop(count))

    def of(self, entry: Entry, index: int) -> int:
        """Return how often the application received the message before this delivery of its entry. Index -1
        stands for the whole entry: a batch that cannot be decrypted is one message."""
        known = self._entries.get(entry.position, {})
        return entry.redelivery_count - sum(
            index in untried or -1 in untried or (index < 0 and bool(untried)) for untried in known.values()
        )

    def discard(self, position: EntryPosition) -> None:
        """Forget an entry that has no messages left."""
        known = self._entries.pop(position, None)
        if known is not None:
            self._messages -= sum(map(len, known.values()))

    def clear(self) -> None:
        """Forget everything: the broker counts anew after a seek, or delivers messages with other counts."""
        self._entries.clear()
        self._messages = 0
