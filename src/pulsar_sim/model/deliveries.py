"""Deliveries to one consumer and its application, message by message.

Owns three facts that a broker does not know, because it delivers entries:

* the messages of a batch that the application has acknowledged (INV-C19: they are not delivered again);
* the messages without any acknowledgement, positive or negative (INV-C9: their entry is not asked for);
* the deliveries of each message (INV-C10: a dead letter was delivered as often as the policy says).

It shares no code with the machine; applications' calls and frames feed it.

Uncertain facts do not count against a consumer: after a seek, and counts of entries that the consumer may
have partly forgotten.
"""

from pulsar_sansio.model.config import ConsumerSpec

from ..engine.clock import SECOND

Position = tuple[int, int]
MessagePosition = tuple[int, int, int]

PATIENCE = 60 * SECOND
"""Nanoseconds that a consumer waits, or ten of its delays if longer, for messages that the application does
not settle."""


class ConsumerDeliveries:
    """The deliveries to one consumer, over all its attachments."""

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
        "_whole",
    )

    def __init__(self, spec: ConsumerSpec) -> None:
        policy = spec.dead_letter
        self._most = None if policy is None else policy.max_redeliver_count
        backoff = spec.negative_acknowledgement_backoff
        delay = spec.negative_acknowledgement_delay if backoff is None else backoff.max_delay
        self._patience = max(round(10 * delay * SECOND), PATIENCE)
        self._moved = False
        """The consumer has sought: everything may be delivered again."""
        self._sizes: dict[Position, int] = {}
        """Batches that have arrived, with their number of messages."""
        self._acknowledged: dict[Position, set[int]] = {}
        """Messages that the application has acknowledged, of batches with messages left."""
        self._closed: dict[Position, set[int]] = {}
        """Messages of these batches that another consumer has acknowledged, as the broker says, or whose
        copies are stored."""
        self._done: set[Position] = set()
        """Batches with no message left that have not arrived since."""
        self._unsettled: dict[Position, set[int]] = {}
        """Messages that arrived over this attachment and were neither acknowledged nor negatively
        acknowledged since."""
        self._changed: dict[Position, int] = {}
        """Virtual time when a message of the batch was delivered or settled, or the batch arrived."""
        self._unseen: dict[Position, dict[int, set[int]]] = {}
        """Messages that arrived and were not delivered, by redelivery count."""
        self._dead: dict[Position, tuple[int, set[int]]] = {}
        """The last redelivery count of each entry, and its messages that certainly exceeded the limit."""
        self._vague: set[Position] = set()
        """Entries for which the consumer's knowledge is uncertain."""

        self._whole: set[Position] = set()
        """Batches that were delivered as one message: the consumer does not know which of their messages the
        application had before."""

    # --- events -----------------------------------------------------------------------------------------

    def subscribes(self) -> None:
        """The consumer subscribes, perhaps over a new connection."""
        self._unsettled.clear()
        self._changed.clear()

    def moves(self) -> None:
        """The consumer seeks."""
        self._moved = True

    def came(self, position: Position, size: int, mask: int | None, count: int, whole: bool, now: int) -> int:
        """An entry of `size` messages arrived with redelivery count `count`. `mask`: the bits of the messages
        meant; `whole`: it is no chunk. Return the messages that may have exceeded the limit, as bits."""
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

    def delivered(self, message_position: MessagePosition, count: int, now: int) -> None:
        """The application takes the message from a delivery with that redelivery count."""
        position, index = message_position[:2], message_position[2]
        if position in self._changed:
            self._changed[position] = now
        unseen = self._unseen.get(position)
        if unseen is not None and count in unseen:
            unseen[count].discard(index)

    def delivered_whole(self, position: Position) -> None:
        """The application takes a batch as one message, which could not be decrypted."""
        self._whole.add(position)
        self._vague.add(position)

    def acknowledged(self, message_position: MessagePosition, now: int) -> None:
        """The application acknowledges the message."""
        position, index = message_position[:2], message_position[2]
        self.settled(message_position, now)
        if position not in self._sizes:
            self._vague.add(position)
        elif position not in self._done:
            self._acknowledged.setdefault(position, set()).add(index)
            self._look(position)

    def acknowledged_through(self, message_position: MessagePosition, now: int) -> None:
        """The application acknowledges the message and all before it."""
        for position in [each for each in self._acknowledged if each < message_position[:2]]:
            self._forget(position)
        for index in range(message_position[2] + 1):
            self.acknowledged((*message_position[:2], index), now)

    def copied_through(self, message_position: MessagePosition) -> None:
        """A copy of the message is stored: the consumer acknowledges the message and all before it a moment
        later."""
        for position in [each for each in self._sizes if each <= message_position[:2]]:
            self._forget(position)

    def copied(self, message_position: MessagePosition, now: int) -> None:
        """A copy of the message is stored: the consumer acknowledges the message."""
        self.settled(message_position, now)
        if message_position[:2] in self._sizes and message_position[:2] not in self._done:
            self._closed.setdefault(message_position[:2], set()).add(message_position[2])
            self._look(message_position[:2])

    def settled(self, message_position: MessagePosition, now: int) -> None:
        """The message is acknowledged, negatively acknowledged, or has a stored copy."""
        unsettled = self._unsettled.get(message_position[:2])
        if unsettled is not None:
            unsettled.discard(message_position[2])
            self._changed[message_position[:2]] = now

    def _look(self, position: Position) -> None:
        """Forget a batch with no message left, because it is acknowledged as a whole."""
        done = self._acknowledged.get(position, set()) | self._closed.get(position, set())
        if len(done) == self._sizes[position]:
            self._forget(position)

    def _forget(self, position: Position) -> None:
        self._acknowledged.pop(position, None)
        self._closed.pop(position, None)
        self._done.add(position)
        self._vague.add(position)

    # --- questions --------------------------------------------------------------------------------------

    def is_known(self, message_position: MessagePosition) -> bool:
        """True when the application has acknowledged the message and the consumer still knows that."""
        return not self._moved and message_position[2] in self._acknowledged.get(message_position[:2], ())

    def is_dead(self, message_position: MessagePosition, count: int) -> bool:
        """True when the message exceeded the redelivery limit with that count."""
        last, dead = self._dead.get(message_position[:2], (-1, set()))
        return last == count and message_position[2] in dead

    def blocking(self, position: Position, now: int) -> set[int]:
        """Return the messages that must be settled before their entry is asked for."""
        if self._moved or position in self._whole or now - self._changed.get(position, 0) >= self._patience:
            return set()
        return self._unsettled.get(position, set())

    def may_wait(self, position: Position, now: int) -> bool:
        """True when the consumer may have a reason not to ask for the entry."""
        if position not in self._changed:
            return position in self._sizes  # the entry has not arrived over this attachment
        return bool(self._unsettled.get(position)) and now - self._changed[position] < 3 * self._patience
