"""`MessageId`: the place of a message in a topic (rules MSG-01, MSG-02, MSG-04)."""

from typing import NamedTuple, TypeGuard

MAX_BATCH = 2**24
"""The largest batch that an id may name: the client keeps a bit for each message. No client makes batches of
a hundredth of that."""


EntryPosition = tuple[int, int]
"""The ledger id and the entry id of an entry."""

MAX_CHUNKS = 100_000
"""The most chunks of one message, because consumers keep the position of each chunk."""


class MessageId(NamedTuple):
    """The place of a message: ledger, entry, partition and, inside a batch, its index.

    Ids are ordered by ledger, entry, partition and batch index, a missing index being -1. Equality
    and hash ignore `batch_size` and `first_chunk`, which serve only to acknowledge by id or to begin
    reading there.
    """

    ledger_id: int
    entry_id: int
    partition: int = -1
    """Index of the partition; -1 where the topic is not partitioned."""
    batch_index: int = -1
    """Index in the batch; -1 where the message is an entry by itself."""
    batch_size: int = 0
    """Number of messages in the entry's batch; 0 where it is not known or no batch."""
    first_chunk: tuple[int, int] | None = None
    """Ledger and entry id of the first chunk, where the message came in chunks: the id is the last one's."""

    @property
    def entry(self) -> "MessageId":
        """The id of the whole entry: the batch part dropped."""
        return MessageId(self.ledger_id, self.entry_id, self.partition)

    def __str__(self) -> str:
        text = f"{self.ledger_id}:{self.entry_id}:{self.partition}"
        return text if self.batch_index < 0 else f"{text}:{self.batch_index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageId) and self[:4] == other[:4]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:4])

    def __lt__(self, other: tuple[object, ...]) -> bool:
        return self[:4] < other[:4]

    def __le__(self, other: tuple[object, ...]) -> bool:
        return self[:4] <= other[:4]

    def __gt__(self, other: tuple[object, ...]) -> bool:
        return self[:4] > other[:4]

    def __ge__(self, other: tuple[object, ...]) -> bool:
        return self[:4] >= other[:4]


def is_message_id(value: object) -> TypeGuard[MessageId]:
    """Return True for a `MessageId` that a broker could have given: whole numbers that fit the wire, and a
    batch of no more than `MAX_BATCH` messages."""
    if not isinstance(value, MessageId):
        return False
    first_chunk = value.first_chunk
    if first_chunk is not None and (not isinstance(first_chunk, tuple) or len(first_chunk) != 2):
        return False
    places = (*value[:4], *(first_chunk or ()))
    size = value.batch_size
    return (
        all(type(number) is int and -(2**63) <= number < 2**63 for number in places)
        and type(size) is int
        and 0 <= size <= MAX_BATCH
    )


class TopicMessageId(NamedTuple):
    """The place of a message in one of several topics: an id alone does not say in which.

    `topic`: the topic's name in any form. That of a partition, or that of the partitioned topic where the id
    says which partition.
    """

    topic: str
    message_id: MessageId

    def __str__(self) -> str:
        return f"{self.message_id} of {self.topic}"


EARLIEST = MessageId(-1, -1)
"""Before the first message of any topic."""

LATEST = MessageId(2**63 - 1, 2**63 - 1)
"""After the last message of any topic."""
