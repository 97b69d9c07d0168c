"""How often an application was given a message, as far as its consumer knows (DLQ-03).

A broker counts how often it has delivered an entry. Messages that waited in the receiver queue when it was
dropped, as after a lost connection, were delivered, and no application has seen them. `DeliveryCounts` remembers these
deliveries, by the broker's count, and leaves them out. It does not know of deliveries that were lost on the
way, nor of those to other consumers of the subscription: they are tries, as the broker says.

A broker forgets its counts when it restarts, or when the last consumer of the subscription has left. An
entry that arrives with a lower count than before, or the same, shows that: then its earlier deliveries are
forgotten here, too.
"""

from collections.abc import Sequence

from ...model.message import Entry
from ...model.message_id import EntryPosition
from ..delivery.received_entries import Item, ReceivedBatch, ReceivedSingles

MAX_UNTRIED = 50_000
"""Messages of which a delivery that no application has seen is remembered; the oldest entry is forgotten for
one more, and such deliveries of it are tries."""


class DeliveryCounts:
    """One consumer's."""

    __slots__ = ("_entries", "_messages", "forgotten")

    def __init__(self) -> None:
        self._entries: dict[EntryPosition, dict[int, set[int]]] = {}
        """By entry and redelivery count: the messages that were not handed to the application then."""
        self._messages = 0
        self.forgotten = 0
        """Entries that were forgotten for want of room."""

    def taken_back(self, items: Sequence[Item]) -> None:
        """These have left the receiver queue, and not for the application."""
        for item in items:
            if isinstance(item, ReceivedBatch):
                self._note(item.entry.place, item.entry.redelivery_count, item.indexes)
            elif isinstance(item, ReceivedSingles):
                for place in item.places:
                    self._note(place, item.redelivery_count, (-1,))
            else:
                for message in item:
                    self._note(message.entry.place, message.entry.redelivery_count, (-1,))

    def _note(self, place: EntryPosition, count: int, indexes: Sequence[int]) -> None:
        known = self._entries.setdefault(place, {}).setdefault(count, set())
        self._messages -= len(known)
        known.update(indexes)
        self._messages += len(known)
        while self._messages > MAX_UNTRIED and len(self._entries) > 1:
            self.discard(next(iter(self._entries)))
            self.forgotten += 1

    def __len__(self) -> int:
        return len(self._entries)

    def arrived(self, place: EntryPosition, redelivery_count: int) -> None:
        """The entry is delivered again: what is known of deliveries that the broker has not counted is of no
        use."""
        known = self._entries.get(place)
        if known is not None:
            for count in [count for count in known if count >= redelivery_count]:
                self._messages -= len(known.pop(count))

    def of(self, entry: Entry, index: int) -> int:
        """How often the message was tried before this delivery of its entry."""
        known = self._entries.get(entry.place, {})
        return entry.redelivery_count - sum(index in untried for untried in known.values())

    def discard(self, place: EntryPosition) -> None:
        """Nothing of that entry is left."""
        known = self._entries.pop(place, None)
        if known is not None:
            self._messages -= sum(map(len, known.values()))

    def clear(self) -> None:
        """The subscription was moved: the broker counts anew, or what comes has other counts."""
        self._entries.clear()
        self._messages = 0
