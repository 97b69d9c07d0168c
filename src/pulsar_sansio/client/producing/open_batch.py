"""`OpenBatch`: the messages that will share the producer's next entry (rules BATCH-01 to BATCH-13).

It owns which messages are in it and whether one more may join. Bare payloads with consecutive sequence ids,
the common case, are only appended to `run`; they are counted, numbered and encoded together when the batch is
closed. `room` and `space` say what the producer's short path may still append without asking: how many bare
payloads, and how many bytes. Everything else asks, through `has_room_for`.

The short path is open between `lend` and `withdraw`; what the other methods do, they do while it is closed.

It knows nothing of tickets, time or connections, and makes no frame.
"""

from ...model.config import BatchingPolicy, OutgoingMessage
from ...wire.messages.batch import encode_batch_parts

MEMBER_ALLOWANCE = 24
"""Bytes that a bare payload grows by in a batch: its size field and its metadata, at most 4 + 1 + 5 + 1 +
10."""


class OpenBatch:
    """Empty, or open and waiting for more."""

    __slots__ = (
        "_encoded_limit",
        "_extra",
        "_lent",
        "_max_bytes",
        "_max_messages",
        "_members",
        "_parts",
        "_policy",
        "_size",
        "_size_then",
        "_space_then",
        "explicit_highest",
        "first",
        "first_ticket",
        "lowest",
        "publish_time",
        "replicate_to",
        "room",
        "run",
        "run_first",
        "space",
    )

    def __init__(self, policy: BatchingPolicy, max_message_size: int) -> None:
        self._policy = policy
        self.limit(max_message_size)
        self.clear()

    def limit(self, max_message_size: int) -> None:
        """An entry may have up to `max_message_size` bytes: how much of the policy that leaves.

        Half of it at most is kept for what the members add to their payloads, so that an encoded batch always
        fits (BATCH-13).
        """
        policy = self._policy
        self._max_messages = max(2, min(policy.max_messages, max_message_size // (2 * MEMBER_ALLOWANCE)))
        if policy.max_messages == 1:
            self._max_messages = 1
        self._max_bytes = policy.max_bytes
        self._encoded_limit = max_message_size - MEMBER_ALLOWANCE * self._max_messages

    @property
    def limits(self) -> tuple[int, int, int]:
        """Messages, bytes of payload, and bytes with what the members add beyond their allowance."""
        return self._max_messages, self._max_bytes, self._encoded_limit

    def clear(self) -> None:
        """Empty again."""
        self.run: list[bytes] = []
        self.run_first = 0
        """The sequence id of the first of `run`."""
        self.room = 0
        self.space = 0
        self.first: bytes | OutgoingMessage = b""
        self.first_ticket = 0
        self.lowest = 0
        self.explicit_highest = -1
        """The highest sequence id of a member that is not in the run."""
        self.publish_time = 0
        self.replicate_to: tuple[str, ...] = ()
        """The clusters that all of its messages go to; the entry says it once."""
        self._parts: list[bytes] = []
        self._members = 0
        self._size = 0
        self._space_then = 0
        self._extra = 0
        self._lent = 0
        """Bytes of the client's memory that the short path may use."""
        self._size_then = 0
        """How many bytes it had when they were lent."""

    @property
    def count(self) -> int:
        return self._members + len(self.run)

    @property
    def size(self) -> int:
        """Bytes of payload."""
        return self._size + self._space_then - self.space

    @property
    def highest(self) -> int:
        """The highest sequence id in it."""
        return self.run_first + len(self.run) - 1 if self.run else self.explicit_highest

    @property
    def full(self) -> bool:
        """Rule BATCH-05."""
        size = self.size
        return (
            self.count >= self._max_messages
            or size >= self._max_bytes
            or size + self._extra >= self._encoded_limit
        )

    def has_room_for(self, size: int, extra: int, sequence_id: int) -> bool:
        """Whether a message of `size` bytes of payload, `extra` bytes of metadata beyond the allowance and
        this sequence id may join (rule BATCH-04). Ids increase within a batch: the broker's deduplication
        judges a batch as a whole."""
        together = self.size + size
        return (
            sequence_id > self.highest
            and together <= self._max_bytes
            and together + self._extra + extra <= self._encoded_limit
        )

    def begin(self, first: bytes | OutgoingMessage, ticket: int, sequence_id: int, publish_time: int) -> None:
        """Open it, for a first message that is added next (rule BATCH-01)."""
        self.first = first
        self.first_ticket = ticket
        self.lowest = sequence_id
        self.publish_time = publish_time
        self.replicate_to = () if isinstance(first, bytes) else first.replicate_to

    def add_payload(self, payload: bytes, sequence_id: int) -> None:
        """Add a bare payload whose id follows on the run's."""
        self._size += len(payload)
        if not self.run:
            self.run_first = sequence_id
        self.run.append(payload)

    def add_encoded(self, member: bytes, size: int, extra: int, sequence_id: int) -> None:
        """Add a member that is encoded already; `size` bytes of it are payload."""
        self._size += size
        self._extra += extra
        self._fold()
        self._parts.append(member)
        self._members += 1
        self.explicit_highest = sequence_id

    def append_member(self, member: bytes, size: int, extra: int, sequence_id: int) -> bool:
        """`add_encoded` within the room and space that were offered, while there are no bare payloads; False,
        and nothing has changed, where there is not enough. A large `extra` counts as payload for `space`:
        what is refused for it is for who asks `has_room_for`."""
        space = self.space - size - extra
        if space <= 0:
            return False
        self.space = self._space_then = space
        self.room -= 1
        self._size += size
        self._extra += extra
        self._parts.append(member)
        self._members += 1
        self.explicit_highest = sequence_id
        self.run_first = sequence_id + 1
        return True

    def offer(self, next_sequence_id: int, window: int) -> int:
        """How many bytes the short path may use for messages that get ids from `next_sequence_id` on, for
        `lend`; 0 where it has to stay closed.

        `window`: messages the producer may still take. The payload that fills the batch or the window is left
        to the long path, which closes the batch.
        """
        if next_sequence_id <= self.highest or self.replicate_to:
            return 0
        if not self.run:
            self.run_first = next_sequence_id
        self.room = min(self._max_messages - self.count, window) - 1
        return min(self._max_bytes, self._encoded_limit - self._extra) - self._size

    def lend(self, size: int) -> None:
        """Open the short path for up to `size` bytes, which are taken from the client's memory."""
        self._lent = self.space = self._space_then = size
        self._size_then = self._size

    @property
    def unused(self) -> int:
        """How many of the bytes lent are not used."""
        return self._lent - (self.size - self._size_then) if self._lent else 0

    def withdraw(self) -> int:
        """Close the short path; returns how many of the bytes lent were not used."""
        unused = self.unused
        self._size = self.size
        self.room = self.space = self._space_then = self._lent = 0
        return unused

    def members(self) -> list[bytes]:
        """The encoded batch, in parts."""
        self._fold()
        return self._parts

    def _fold(self) -> None:
        if self.run:
            self._parts += encode_batch_parts(self.run, self.run_first)
            self._members += len(self.run)
            self.explicit_highest = self.run_first + len(self.run) - 1
            self.run = []
