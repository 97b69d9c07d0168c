"""`SchemaQueue`: a receiver queue that holds messages until the definition they were written with is known.

A message is delivered only when its value can be decoded without waiting. Messages behind one that is held
are held, too, so that order is kept. Permits bound their number, and the timeout of requests bounds the time
(`decoding_sources`). Held messages have arrived and are not delivered, in all that the queue says of them.
"""

from collections import deque
from collections.abc import Container, Iterable
from itertools import chain
from typing import Any

from ...model.message import Entry, Message
from ...model.message_id import EntryPosition
from ..schemas.decoding_sources import DecodingSources
from .permits import Permits
from .received_entries import Item, ReceivedBatch, ReceivedSingles, size_of
from .receiver_queue import ReceiverQueue


class SchemaQueue(ReceiverQueue):
    """`sources`: gives the source of the messages of one version, which decodes them."""

    def __init__(self, permits: Permits, *, sources: DecodingSources, **others: Any) -> None:
        super().__init__(permits, **others)
        self._sources = sources
        self._held: deque[Item] = deque()
        """Items behind the first message whose definition is not known; each of one version."""

    def add(self, message: Message[Any]) -> None:
        if self._held or not self._decodable(message.entry):
            self._hold([message])
        else:
            super().add(message)

    def add_batch(self, batch: ReceivedBatch) -> None:
        if self._held or not self._decodable(batch.entry):
            self._hold(batch)
        else:
            super().add_batch(batch)

    def add_singles(self, singles: ReceivedSingles) -> None:
        source = None if self._held else self._sources.of(singles.schema_version)
        if source is None:
            self._hold(singles)
        else:
            super().add_singles(singles._replace(source=source))

    def _hold(self, item: Item) -> None:
        self._held.append(item)
        self.weigh_held((item,), 1)

    def _decodable(self, entry: Entry) -> bool:
        source = self._sources.of(entry.header.schema_version)
        if source is None:
            return False
        entry.source = source
        return True

    def release(self) -> None:
        """Deliver held messages up to the next one whose definition is not known."""
        held, self._held = self._held, deque()
        while held and not self._held:
            item = held.popleft()
            self.weigh_held((item,), -1)
            if isinstance(item, ReceivedBatch):
                self.add_batch(item)
            elif isinstance(item, ReceivedSingles):
                self.add_singles(item)
            else:
                for message in item:
                    self.add(message)
        self._held.extend(held)

    # --- held messages are in the queue -----------------------------------------------------------

    def clear(self) -> None:
        held = self._take_in()
        super().clear()
        if held:
            self.want()

    def _drop(self, positions: Container[EntryPosition], index: int | None) -> int:
        """Messages that stay are held again when they are added again, unless all that they waited for is
        gone: then the application is told of them."""
        held = self._take_in()
        dropped = super()._drop(positions, index)
        self._sources.released()
        if held:
            self.want()
        return dropped

    def _take_in(self) -> bool:
        """Put held items behind the others. Return True when there are any: the application may still wait
        for them, and was told of none."""
        held = bool(self._held)
        self._waiting += sum(map(size_of, self._held))
        self._items.extend(self._held)
        self.weigh_held(self._held, -1)
        self._held.clear()
        self._singles = None
        return held

    def _not_begun(self) -> Iterable[Item]:
        return chain(self._items, self._held)

    @property
    def undelivered(self) -> int:
        return self.available + sum(map(size_of, self._held))
