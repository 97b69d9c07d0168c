"""`KeyBatches`: one open batch for each key (key-based batching, rules BATCH and KSHARED).

A Key_Shared subscription delivers a whole entry to one consumer, so an entry must not mix keys. `KeyBatches`
owns the open batches. The limits of the policy count for all batches together, as in the Java client. The
ordering key takes precedence over the key; messages without a key share a batch.

All open batches are sealed together, as one *round*, in the order of their highest sequence ids. On the wire
and in its receipt an entry has only that id. In the recording java-produce-key-batch, nine messages of three
keys are the entries 6, 7 and 8. The tickets of a round are consecutive; those of one batch need not be.
"""

from collections.abc import Hashable, Sequence
from operator import attrgetter

from ...model.config import OutgoingMessage
from .open_batch import SharedFields, shared_fields
from .send_encoder import Frame, SendEncoder


class KeyBatch:
    """The messages of one key. `tickets`: one for each member, ascending."""

    __slots__ = ("first", "highest", "members", "publish_time", "size", "tickets")

    def __init__(self, first: bytes | OutgoingMessage, publish_time: int) -> None:
        self.first = first
        self.publish_time = publish_time
        self.tickets: list[int] = []
        self.members: list[bytes] = []
        self.size = 0
        """The number of payload bytes."""
        self.highest = 0
        """The sequence id of the last message."""

    def seal(self, encoder: SendEncoder) -> Frame:
        """Encode the batch. Raises like `SendEncoder.single`."""
        count = len(self.tickets)
        if count == 1:
            return encoder.single(self.first, self.highest, self.publish_time)
        return encoder.batch(self.first, self.publish_time, self.highest, self.highest, count, self.members)


class KeyBatches:
    """The open batches of one producer. The limits are those of an `OpenBatch`, for all batches together."""

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
        """The number of messages."""
        self.size = 0
        """The number of payload bytes."""
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
        """The lowest ticket; call only while `count` is not 0."""
        return next(iter(self._batches.values())).tickets[0]

    @property
    def shared(self) -> SharedFields:
        """The fields that all messages have in common."""
        return shared_fields(next(iter(self._batches.values())).first)

    @property
    def full(self) -> bool:
        """True when the batches must be sealed (rule BATCH-05)."""
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
        """Add a message to the batch of its key; `size` bytes of the encoded `member` are payload."""
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
        """Remove and return all batches, in the order of sending."""
        batches = sorted(self._batches.values(), key=attrgetter("highest"))
        self._batches = {}
        self.count = self.size = self._extra = 0
        self.highest = -1
        return batches


def _key(message: bytes | OutgoingMessage) -> Hashable:
    """Return the batching key. A text key differs from a bytes key with equal Base64 text."""
    if isinstance(message, bytes):
        return None
    if message.ordering_key is not None:
        return message.ordering_key
    return (message.key, True) if message.has_base64_key else message.key


def runs(tickets: Sequence[int]) -> list[tuple[int, int]]:
    """Group ascending tickets into consecutive runs, each as first ticket and count."""
    found: list[tuple[int, int]] = []
    for ticket in tickets:
        if found and sum(found[-1]) == ticket:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((ticket, 1))
    return found
