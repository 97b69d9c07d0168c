"""`ObservedProducer`: a producer as its frames show it."""

from collections import deque
from typing import Any

from ..memory import Position, ProducerMemory, UnansweredSend

PENDING_LIMIT = 100_000
"""SENDs remembered without an answer; beyond it receipts are no longer missed."""


class ObservedProducer:
    """A producer on this connection."""

    __slots__ = (
        "abandoned", "closed_by_broker", "closing", "encrypted", "frame", "last_id", "last_sequence", "match",
        "memory", "mode", "name", "open_since", "pending", "persistent", "previous", "producer_id", "resend",
        "resent", "stored_up_to", "topic", "waiting",
    )  # fmt: skip

    def __init__(self, producer_id: int, command: Any, memory: ProducerMemory, frame: int) -> None:
        self.producer_id = producer_id
        self.topic: str = command.topic
        self.persistent = not self.topic.startswith("non-persistent:")
        self.mode: int = command.producer_access_mode
        self.encrypted: bool = command.encrypted
        self.memory = memory
        self.frame = frame
        """The number of the frame with its PRODUCER."""
        self.open_since = -1
        """Frame of the PRODUCER_SUCCESS that opened it; -1 before."""
        self.waiting = False
        self.closing = -1
        """Frame of the client's CLOSE_PRODUCER; -1 before."""
        self.closed_by_broker = -1
        self.previous: ObservedProducer | None = None
        """The registration of the same id before this one, while its close is not answered."""
        self.name = ""
        self.stored_up_to = -1
        """The sequence id up to which the broker said that it drops duplicates; -1 when it did not."""
        self.last_sequence: int | None = None
        """The highest id sent in this registration."""
        self.last_id: Position = (-1, -1)
        """The last position a receipt gave."""
        self.pending: deque[UnansweredSend] = deque(maxlen=PENDING_LIMIT)
        """Sent and not answered."""
        self.resend: list[UnansweredSend] = []
        """SENDs without an answer on earlier connections; the client must send them again first."""
        self.resent = 0
        """The number of SENDs of `resend` that the client has sent again."""
        self.abandoned = False
        """A new message came first: the client has given the old ones up (send timeout)."""
        self.match = -1
        """Index in `resend` of the SEND at hand; -1 when it is none of them."""
