"""`OpenBatch`: the messages that will share the producer's next entry.

The batch owns its messages and decides whether one more may join. Payloads with consecutive sequence ids, the
common case, are only appended to `run`; closing the batch counts, numbers and encodes the run. The producer's
fast path may append up to `room` messages and `space` bytes without a check. Other messages are checked by
`has_room_for`.

The fast path is open between `lend` and `withdraw`. The other methods are called while it is closed. The
`EntryBuilder` owns the time limit and makes the frame.
"""

from collections.abc import Sequence
from typing import TypeAlias

from ...model.config import BatchingPolicy, OutgoingMessage
from ...model.schema import SchemaInfo
from ...model.transaction_id import TransactionId
from ...wire.messages.batch import encode_batch_parts

SharedFields: TypeAlias = tuple[Sequence[str], SchemaInfo | None, TransactionId | None]
"""The replication clusters, the schema and the transaction of a message, which an entry's metadata name once
for all of its messages."""

NOTHING_SHARED: SharedFields = ((), None, None)
"""The fields of a message that has none of them."""


def shared_fields(message: bytes | OutgoingMessage) -> SharedFields:
    """Return the fields in which messages must agree that share a batch (rule BATCH-04)."""
    if isinstance(message, bytes):
        return NOTHING_SHARED
    clusters, schema, transaction = message.replicate_to, message.schema, message.transaction
    if not clusters and schema is None and transaction is None:
        return NOTHING_SHARED
    return clusters, None if schema is None else schema.info, transaction


MEMBER_ALLOWANCE = 24
"""The bytes that a batch adds to a payload: size field and metadata, at most 4 + 1 + 5 + 1 + 10."""


class OpenBatch:
    """The open batch of one producer; empty when `count` is 0."""

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
        "transaction_room",
        "first",
        "first_ticket",
        "lowest",
        "publish_time",
        "room",
        "run",
        "run_first",
        "shared",
        "space",
    )

    def __init__(self, policy: BatchingPolicy, max_message_size: int) -> None:
        self._policy = policy
        self.limit(max_message_size)
        self.clear()

    def limit(self, max_message_size: int) -> None:
        """Reduce the policy's limits for entries of up to `max_message_size` bytes.

        At most half of the entry is reserved for the members' metadata, so that an encoded batch always fits
        (BATCH-13).
        """
        policy = self._policy
        self._max_messages = max(2, min(policy.max_messages, max_message_size // (2 * MEMBER_ALLOWANCE)))
        if policy.max_messages == 1:
            self._max_messages = 1
        self._max_bytes = policy.max_bytes
        self._encoded_limit = max_message_size - MEMBER_ALLOWANCE * self._max_messages

    @property
    def limits(self) -> tuple[int, int, int]:
        """The limits of messages, of payload bytes, and of payload bytes with metadata beyond the
        allowance."""
        return self._max_messages, self._max_bytes, self._encoded_limit

    def clear(self) -> None:
        """Empty the batch."""
        self.run: list[bytes] = []
        self.run_first = 0
        """The sequence id of the first payload in `run`."""
        self.room = 0
        """The number of messages that the fast path may add to a batch outside of transactions."""
        self.transaction_room = 0
        """The number of messages of its transaction that the fast path may add to a batch of one."""
        self.space = 0
        self.first: bytes | OutgoingMessage = b""
        self.first_ticket = 0
        self.lowest = 0
        self.explicit_highest = -1
        """The highest sequence id of a member outside `run`."""
        self.publish_time = 0
        self.shared: SharedFields = NOTHING_SHARED
        """The fields that all messages of the batch have in common."""
        self._parts: list[bytes] = []
        self._members = 0
        self._size = 0
        self._space_then = 0
        self._extra = 0
        self._lent = 0
        """The bytes of the client's memory that the fast path may use."""
        self._size_then = 0
        """The payload bytes of the batch at the time of `lend`."""

    @property
    def count(self) -> int:
        return self._members + len(self.run)

    @property
    def size(self) -> int:
        """The number of payload bytes."""
        return self._size + self._space_then - self.space

    @property
    def highest(self) -> int:
        """The highest sequence id in the batch."""
        return self.run_first + len(self.run) - 1 if self.run else self.explicit_highest

    @property
    def full(self) -> bool:
        """True when the batch must be sealed (rule BATCH-05)."""
        size = self.size
        return (
            self.count >= self._max_messages
            or size >= self._max_bytes
            or size + self._extra >= self._encoded_limit
        )

    def has_room_for(self, size: int, extra: int, sequence_id: int) -> bool:
        """Tell whether a message may join (rule BATCH-04).

        `size`: payload bytes. `extra`: metadata bytes beyond the allowance. Sequence ids increase within a
        batch, because the broker deduplicates a batch as a whole.
        """
        together = self.size + size
        return (
            sequence_id > self.highest
            and together <= self._max_bytes
            and together + self._extra + extra <= self._encoded_limit
        )

    def begin(self, first: bytes | OutgoingMessage, ticket: int, sequence_id: int, publish_time: int) -> None:
        """Open the batch for its first message, which the caller adds next (rule BATCH-01)."""
        self.first = first
        self.first_ticket = ticket
        self.lowest = sequence_id
        self.publish_time = publish_time
        self.shared = shared_fields(first)

    def add_payload(self, payload: bytes, sequence_id: int) -> None:
        """Add a payload whose sequence id follows the last one of `run`."""
        self._size += len(payload)
        if not self.run:
            self.run_first = sequence_id
        self.run.append(payload)

    def add_encoded(self, member: bytes, size: int, extra: int, sequence_id: int) -> None:
        """Add an encoded member; `size` bytes of it are payload."""
        self._size += size
        self._extra += extra
        self._fold()
        self._parts.append(member)
        self._members += 1
        self.explicit_highest = sequence_id

    def append_member(self, member: bytes, size: int, extra: int, sequence_id: int) -> bool:
        """Add an encoded member by the fast path, while `run` is empty; the caller counts the room.

        Returns False, having changed nothing, if `space` is too small. `extra` counts as payload here, so a
        refused member may still pass `has_room_for`.
        """
        space = self.space - size - extra
        if space <= 0:
            return False
        self.space = self._space_then = space
        self._size += size
        self._extra += extra
        self._parts.append(member)
        self._members += 1
        self.explicit_highest = sequence_id
        self.run_first = sequence_id + 1
        return True

    def offer(self, next_sequence_id: int, window: int) -> int:
        """Prepare the fast path for sequence ids from `next_sequence_id`, and return the bytes to `lend`.

        Returns 0 or less if the fast path must stay closed. `window`: the number of messages that the
        producer may still accept. A message that fills the batch or the window goes through `send`, which
        seals the batch.
        """
        clusters, schema, transaction = self.shared
        if next_sequence_id <= self.highest or clusters or schema is not None:
            return 0
        if not self.run:
            self.run_first = next_sequence_id
        room = min(self._max_messages - self.count, window) - 1
        if transaction is None:
            self.room = room
        else:
            self.transaction_room = room
        return min(self._max_bytes, self._encoded_limit - self._extra) - self._size

    def lend(self, size: int) -> None:
        """Open the fast path for up to `size` bytes, which the caller took from the client's memory."""
        self._lent = self.space = self._space_then = size
        self._size_then = self._size

    @property
    def unused(self) -> int:
        """The number of lent bytes that are not used."""
        return self._lent - (self.size - self._size_then) if self._lent else 0

    def withdraw(self) -> int:
        """Close the fast path, and return the number of unused lent bytes."""
        unused = self.unused
        self._size = self.size
        self.room = self.transaction_room = self.space = self._space_then = self._lent = 0
        return unused

    def members(self) -> list[bytes]:
        """Return the encoded batch in parts."""
        self._fold()
        return self._parts

    def _fold(self) -> None:
        if self.run:
            self._parts += encode_batch_parts(self.run, self.run_first)
            self._members += len(self.run)
            self.explicit_highest = self.run_first + len(self.run) - 1
            self.run = []
