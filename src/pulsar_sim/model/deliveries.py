"""What one consumer was sent and its application was given, message by message.

Owns three things that a broker does not know, because it delivers entries: which messages of a batch the
application has acknowledged (INV-C19: its consumer does not give them again), which it has not settled
(INV-C9: their entry is not asked for), and how often it was given each (INV-C10: a dead letter was given as
often as the policy says). It shares no code with the machine, and is told by the applications' calls and by
frames.

What cannot be known for sure is not held against a consumer: what a seek has moved, and counts of entries of
which the consumer may have forgotten something.
"""

from pulsar_sansio.model.config import ConsumerSpec

from ..engine.clock import SECOND

Position = tuple[int, int]
Place = tuple[int, int, int]

PATIENCE = 60 * SECOND
"""A consumer waits so long, and for ten of its delays, for messages that nobody settles."""


class ConsumerDeliveries:
    """To one consumer, over all its attachments."""

    __slots__ = (
        "_acknowledged",
        "_changed",
        "_closed",
        "_dead",
        "_done",
        "_moved",
        "_most",
        "_patience",
        "_sizes",
        "_unseen",
        "_unsettled",
        "_vague",
    )

    def __init__(self, spec: ConsumerSpec) -> None:
        policy = spec.dead_letter
        self._most = None if policy is None else policy.max_redeliver_count
        backoff = spec.negative_acknowledgement_backoff
        delay = spec.negative_acknowledgement_delay if backoff is None else backoff.max_delay
        self._patience = max(round(10 * delay * SECOND), PATIENCE)
        self._moved = False
        """It was moved by a seek: everything may be given again."""
        self._sizes: dict[Position, int] = {}
        """Batches that have come, with their messages."""
        self._acknowledged: dict[Position, set[int]] = {}
        """Batches of which something is left."""
        self._closed: dict[Position, set[int]] = {}
        """Messages that somebody else has acknowledged, as the broker says, or that are safe elsewhere."""
        self._done: set[Position] = set()
        """Batches of which nothing is left, and that have not come since."""
        self._unsettled: dict[Position, set[int]] = {}
        """Messages that have come over this attachment and are neither acknowledged nor refused since."""
        self._changed: dict[Position, int] = {}
        """When something of that was given or settled, or the batch came."""
        self._unseen: dict[Position, dict[int, set[int]]] = {}
        """By redelivery count: messages that came, and were not given."""
        self._dead: dict[Position, tuple[int, set[int]]] = {}
        """The last count of each entry, and its messages that have come too often for sure."""
        self._vague: set[Position] = set()
        """Entries of which it is not clear what the consumer knows."""

    # --- what happens --------------------------------------------------------------------------------

    def subscribes(self) -> None:
        """Over a new connection, perhaps."""
        self._unsettled.clear()
        self._changed.clear()

    def moves(self) -> None:
        """It seeks."""
        self._moved = True

    def came(self, position: Position, size: int, mask: int | None, count: int, whole: bool, now: int) -> int:
        """An entry has come with so many messages, `mask` the bits of those that are meant, redelivered
        `count` times; `whole`: it is no chunk. The messages that have come too often, perhaps, as bits."""
        meant = set(range(size)) if mask is None else {index for index in range(size) if mask >> index & 1}
        if size > 1:
            self._sizes[position] = size
            self._done.discard(position)
            if len(meant) < size:
                self._closed.setdefault(position, set()).update(set(range(size)) - meant)
            known = self._acknowledged.get(position, set()) | self._closed.get(position, set())
            self._unsettled[position] = meant - known
            self._changed[position] = now
            self._look(position)
        meant -= self._acknowledged.get(position, set())
        return self._count(position, meant, count, whole)

    def _count(self, position: Position, meant: set[int], count: int, whole: bool) -> int:
        most = self._most
        if most is None:
            return 0
        unseen = self._unseen.setdefault(position, {})
        for before in [before for before in unseen if before >= count]:
            del unseen[before]
        tried = {index: count - sum(index in each for each in unseen.values()) for index in meant}
        dead = {index for index in meant if tried[index] > most}
        self._dead[position] = count, dead
        unseen[count] = meant - dead
        vague = self._moved or not whole or position in self._vague
        perhaps = meant if vague and count > most else dead
        return sum(1 << index for index in perhaps)

    def handed_out(self, place: Place, count: int, now: int) -> None:
        """The application has it, of a delivery that was the so-many-th redelivery of its entry."""
        position, index = place[:2], place[2]
        if position in self._changed:
            self._changed[position] = now
        unseen = self._unseen.get(position)
        if unseen is not None and count in unseen:
            unseen[count].discard(index)

    def acknowledged(self, place: Place, now: int) -> None:
        """By the application."""
        position, index = place[:2], place[2]
        self.settled(place, now)
        if position not in self._sizes:
            self._vague.add(position)
        elif position not in self._done:
            self._acknowledged.setdefault(position, set()).add(index)
            self._look(position)

    def acknowledged_through(self, place: Place, now: int) -> None:
        """The message and all before it are acknowledged."""
        for position in [each for each in self._acknowledged if each < place[:2]]:
            self._forget(position)
        for index in range(place[2] + 1):
            self.acknowledged((*place[:2], index), now)

    def copied_through(self, place: Place) -> None:
        """A copy of it is safe: its consumer acknowledges it and all before it, a moment later."""
        for position in [each for each in self._sizes if each <= place[:2]]:
            self._forget(position)

    def copied(self, place: Place, now: int) -> None:
        """A copy of it is safe: its consumer acknowledges it."""
        self.settled(place, now)
        if place[:2] in self._sizes and place[:2] not in self._done:
            self._closed.setdefault(place[:2], set()).add(place[2])
            self._look(place[:2])

    def settled(self, place: Place, now: int) -> None:
        """Acknowledged, refused, or safe elsewhere."""
        unsettled = self._unsettled.get(place[:2])
        if unsettled is not None:
            unsettled.discard(place[2])
            self._changed[place[:2]] = now

    def _look(self, position: Position) -> None:
        """A batch of which nothing is left is acknowledged as a whole, and nothing of it is remembered."""
        done = self._acknowledged.get(position, set()) | self._closed.get(position, set())
        if len(done) == self._sizes[position]:
            self._forget(position)

    def _forget(self, position: Position) -> None:
        self._acknowledged.pop(position, None)
        self._closed.pop(position, None)
        self._done.add(position)
        self._vague.add(position)

    # --- what follows --------------------------------------------------------------------------------

    def is_known(self, place: Place) -> bool:
        """True when the application has acknowledged it, and its consumer knows that."""
        return not self._moved and place[2] in self._acknowledged.get(place[:2], ())

    def is_dead(self, place: Place, count: int) -> bool:
        """True when it came too often, with that count."""
        last, dead = self._dead.get(place[:2], (-1, set()))
        return last == count and place[2] in dead

    def blocking(self, position: Position, now: int) -> set[int]:
        """Messages that have to be settled before their entry is asked for."""
        if self._moved or now - self._changed.get(position, 0) >= self._patience:
            return set()
        return self._unsettled.get(position, set())

    def may_wait(self, position: Position, now: int) -> bool:
        """True when there may be a reason not to ask for the entry."""
        if position not in self._changed:
            return position in self._sizes  # over this attachment it has not come
        return bool(self._unsettled.get(position)) and now - self._changed[position] < 3 * self._patience
