"""One producer of one connection: access mode, and the receipts that it waits for.

It stores no message; the topic does.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ....wire import proto

if TYPE_CHECKING:
    from ...serving.connection import Connection
    from ..registry import AnyTopic


MODE_NAMES = {
    proto.Shared: "Shared",
    proto.Exclusive: "Exclusive",
    proto.WaitForExclusive: "WaitForExclusive",
    proto.ExclusiveWithFencing: "ExclusiveWithFencing",
}


class Producer:
    """One producer. `ready` is False until its client was told that it may send."""

    __slots__ = (
        "_durable",
        "_after_receipts",
        "bytes_in",
        "closing",
        "connected_at",
        "connection",
        "encrypted",
        "fenced",
        "id",
        "messages_in",
        "metadata",
        "mode",
        "name",
        "name_given",
        "pending",
        "ready",
        "request_id",
        "schema_version",
        "topic",
        "topic_epoch",
    )

    def __init__(
        self,
        connection: "Connection",
        command: proto.CommandProducer,
        name: str,
        topic: "AnyTopic",
        wall_time: int,
    ) -> None:
        self.connection = connection
        self.topic = topic
        self.id = command.producer_id
        self.request_id = command.request_id
        self.name = name
        self.name_given = command.user_provided_producer_name and bool(command.producer_name)
        self.mode = command.producer_access_mode
        self.topic_epoch: int | None = command.topic_epoch if command.HasField("topic_epoch") else None
        self.encrypted = command.encrypted
        self.metadata = [(pair.key, pair.value) for pair in command.metadata]
        self.connected_at = wall_time
        self.schema_version = b""
        self.ready = False
        self.closing = False
        """No more messages are accepted."""
        self.fenced = False
        """Another producer has exclusive access: only receipts are still sent."""
        self.pending = 0
        """The number of messages accepted and not yet durable."""
        self._durable = 0
        self._after_receipts: deque[tuple[int, Callable[[], None]]] = deque()
        """(number of durable messages to wait for, action), in order."""
        self.messages_in = 0
        self.bytes_in = 0

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in, messages and bytes out (always 0)."""
        return self.messages_in, self.bytes_in, 0, 0

    def close_when_drained(self, then: Callable[[], None]) -> None:
        """Accept no more messages; call `then` after the receipts of those accepted.

        Both sides may close. The broker's notice, if it is asked for first, precedes the answer to the
        client's CLOSE_PRODUCER, and tells the client that SENDs in between were ignored (GAP-37).
        """
        self.closing = True
        self.after_receipts(then)

    def after_receipts(self, action: Callable[[], None]) -> None:
        """Call `action` after the receipts of all messages accepted so far: SENDs are answered in order."""
        if self.pending:
            self._after_receipts.append((self._durable + self.pending, action))
        else:
            action()

    def message_durable(self) -> None:
        self.pending -= 1
        self._durable += 1
        while self._after_receipts and self._after_receipts[0][0] <= self._durable:
            self._after_receipts.popleft()[1]()
