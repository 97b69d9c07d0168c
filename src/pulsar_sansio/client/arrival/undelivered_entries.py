"""`UndeliveredEntries`: the ends of entries that have no message for the application.

Such an entry is acknowledged, refused with a validation error, or left to the subscription. Each end returns
the permits that the entry cost, and counts the reason, unless its caller does. `Positions` asks here how far
such entries reach.
"""

from collections.abc import Callable, Sequence

from ...model.message_id import EntryPosition
from ..acknowledging.acknowledgements import Acknowledgements
from ..delivery.consumer_services import ConsumerServices
from ..delivery.permits import Permits
from .chunk_assembly import ChunkAssembly

MAX_GUESS = 100_000
"""The maximum number of messages that an entry with a wrong checksum is believed to hold: the maximum of a
batch (`BatchingPolicy`). Believing a larger, damaged number would grant the broker too many permits."""


class UndeliveredEntries:
    """The entries of one consumer that end without a delivery."""

    __slots__ = (
        "_chunks",
        "_counters",
        "_durable",
        "_grouping",
        "_permits",
        "_redelivery",
        "_tracker",
        "on_withheld",
        "passed",
    )

    def __init__(
        self,
        services: ConsumerServices,
        permits: Permits,
        acknowledgements: Acknowledgements,
        chunks: ChunkAssembly,
    ) -> None:
        self.passed: EntryPosition | None = None
        """The last entry that has no more messages for the application, though they were not delivered."""
        self.on_withheld: Callable[[EntryPosition, int, Sequence[int]], None] | None = None
        """Called with the redelivery count and the messages of an entry that arrived and is not delivered: it
        cannot be decrypted, or no longer waits for a key."""
        self._counters = services.counters
        self._durable = services.spec.durable
        self._permits = permits
        self._tracker = acknowledgements.tracker
        self._grouping = acknowledgements.grouping
        self._redelivery = acknowledgements.redelivery
        self._chunks = chunks

    @property
    def reached(self) -> EntryPosition | None:
        """The later of `passed` and the last chunk that no incomplete message needs."""
        passed, chunk = self.passed, self._counters.last_chunk
        if chunk is None or self._chunks.waiting:
            return passed
        return chunk if passed is None else max(passed, chunk)

    def forget(self) -> None:
        """Forget how far the entries reach: the broker sends them again, or the subscription was moved."""
        self.passed = self._counters.last_chunk = None

    def passes(self, position: EntryPosition) -> None:
        """Record that an entry has no messages for the application."""
        if self.passed is None or position > self.passed:
            self.passed = position

    def finish(self, position: EntryPosition) -> None:
        """Acknowledge an entry together with others. Its permits are its caller's concern."""
        self.passes(position)
        if self._tracker.entry(position):
            self._grouping.something_waits()

    def skip(self, position: EntryPosition) -> None:
        """Skip a message before the start, in one entry or in chunks. A durable subscription acknowledges it,
        because the broker would redeliver it for ever."""
        self._counters.before_start += 1
        self.passes(position)
        if self._durable:
            self.finish(position)
        self._permits.give_back(1)

    def discard(
        self, position: EntryPosition, cost: int, validation_error: int, *, counted: int | None = None
    ) -> None:
        """Tell the broker that the entry cannot be used. `counted`: the number of messages, if not `cost`."""
        self._counters.discarded += max(cost, 1) if counted is None else counted
        self._counters.note_unreadable(position)
        self.passes(position)
        self._grouping.discard(position, validation_error)
        self._permits.give_back(cost)

    def keep_back(self, position: EntryPosition, size: int | None, redelivery_count: int, cost: int) -> None:
        """Leave an entry unacknowledged that is not delivered. `size`: of a batch, else None."""
        self.withhold(position, size, redelivery_count)
        self._counters.note_unreadable(position)
        self.passes(position)
        self._redelivery.not_delivered(position, redelivery_count)
        # Without its permits, every redelivery of the entry would bring the consumer nearer to a standstill.
        self._permits.give_back(cost)

    def withhold(self, position: EntryPosition, size: int | None, redelivery_count: int) -> None:
        """Report an entry that is not delivered. `size`: of a batch, as any producer may write it."""
        if self.on_withheld is not None:
            indexes = (-1,) if size is None else range(min(size, MAX_GUESS))
            self.on_withheld(position, redelivery_count, indexes)
