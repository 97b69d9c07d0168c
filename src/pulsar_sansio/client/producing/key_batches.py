"""`KeyBatches`: one open batch for each key, sent together (key-based batching, rules BATCH and KSHARED).

A Key_Shared subscription gives a whole entry to one consumer, so an entry must not mix keys. It owns the
open batches and whether one more message may join them: the limits of the policy count for all of them
together, as in the Java client. The ordering key counts where there is one, messages without any key share a
batch.

All are closed at the same moment, a *round*, and sent in the order of their highest sequence ids. An entry is
known by that id alone, on the wire and in its receipt (seen: java-produce-key-batch: nine messages of three
keys are the entries 6, 7 and 8). The tickets of a round are a row, those of one batch are not.
"""

from collections.abc import Hashable, Sequence
from operator import attrgetter

from ...model.config import OutgoingMessage
from .send_encoder import Frame, SendEncoder


class KeyBatch:
    """The messages of one key. `tickets` are in ascending order, one for each member."""

    __slots__ = ("first", "highest", "members", "publish_time", "size", "tickets")

    def __init__(self, first: bytes | OutgoingMessage, publish_time: int) -> None:
        self.first = first
        self.publish_time = publish_time
        self.tickets: list[int] = []
        self.members: list[bytes] = []
        self.size = 0
        """Bytes of payload."""
        self.highest = 0
        """The sequence id of its last message."""

    def seal(self, sealer: SendEncoder) -> Frame:
        """Raises as `SendEncoder.single` does."""
        count = len(self.tickets)
        if count == 1:
            return sealer.single(self.first, self.highest, self.publish_time)
        return sealer.batch(self.first, self.publish_time, self.highest, self.highest, count, self.members)


class KeyBatches:
    """Empty, or open and waiting for more. `max_messages`, `max_bytes` and `encoded_limit` are those of an
    `OpenBatch`, and count for all batches together."""

    __slots__ = (
        "_batches",
        "_encoded_limit",
        "_extra",
        "_max_bytes",
        "_max_messages",
        "count",
        "highest",
        "size",
    )

    def __init__(self) -> None:
        self.count = 0
        """Messages."""
        self.size = 0
        """Bytes of payload."""
        self.highest = -1
        """The highest sequence id."""
        self._extra = 0
        self._batches: dict[Hashable, KeyBatch] = {}

    def limit(self, max_messages: int, max_bytes: int, encoded_limit: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._encoded_limit = encoded_limit

    @property
    def first_ticket(self) -> int:
        """The lowest, where it is not empty."""
        return next(iter(self._batches.values())).tickets[0]

    @property
    def replicate_to(self) -> tuple[str, ...]:
        """The clusters that all messages go to."""
        first = next(iter(self._batches.values())).first
        return () if isinstance(first, bytes) else first.replicate_to

    @property
    def full(self) -> bool:
        """Rule BATCH-05."""
        return (
            self.count >= self._max_messages
            or self.size >= self._max_bytes
            or self.size + self._extra >= self._encoded_limit
        )

    def has_room_for(self, size: int, extra: int, sequence_id: int) -> bool:
        """See `OpenBatch.has_room_for`."""
        together = self.size + size
        return (
            sequence_id > self.highest
            and together <= self._max_bytes
            and together + self._extra + extra <= self._encoded_limit
        )

    def add(
        self,
        message: bytes | OutgoingMessage,
        member: bytes,
        size: int,
        extra: int,
        ticket: int,
        sequence_id: int,
        publish_time: int,
    ) -> None:
        """Into the batch of its key; `size` bytes of the encoded `member` are payload."""
        key = _key(message)
        batch = self._batches.get(key)
        if batch is None:
            batch = self._batches[key] = KeyBatch(message, publish_time)
        batch.tickets.append(ticket)
        batch.members.append(member)
        batch.size += size
        batch.highest = self.highest = sequence_id
        self.count += 1
        self.size += size
        self._extra += extra

    def take(self) -> Sequence[KeyBatch]:
        """All batches, in the order in which they are to be sent; it is empty then."""
        batches = sorted(self._batches.values(), key=attrgetter("highest"))
        self._batches = {}
        self.count = self.size = self._extra = 0
        self.highest = -1
        return batches


def _key(message: bytes | OutgoingMessage) -> Hashable:
    """Text, and bytes whose Base64 is the same text, are two keys."""
    if isinstance(message, bytes):
        return None
    if message.ordering_key is not None:
        return message.ordering_key
    return (message.key, True) if message.has_base64_key else message.key


def runs(tickets: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending tickets as rows: the first of each, and how many there are."""
    found: list[tuple[int, int]] = []
    for ticket in tickets:
        if found and sum(found[-1]) == ticket:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((ticket, 1))
    return found
