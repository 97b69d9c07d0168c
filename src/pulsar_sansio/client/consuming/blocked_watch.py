"""`BlockedWatch`: detects that the broker delivers nothing because too many messages are unacknowledged.

A broker stops delivering to a consumer of a Shared or Key_Shared subscription at a number of unacknowledged
messages that the client does not know, and sends no notice. So a consumer that waits in vain asks
(CONSUMER_STATS): permits are at the broker, the receiver queue is empty, and no message has arrived for
`QUIET`. A consumer asks at most once for `WORTH_ASKING` messages, so that a topic with little traffic costs
no requests.
"""

from typing import Any

from ...core.callbacks import ignore
from ...wire import encode_command, proto
from ..acknowledging.acknowledgements import Acknowledgements
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..delivery.permits import Permits
from ..delivery.receiver_queue import ReceiverQueue
from ..outputs import ConsumerBlocked

_Command = proto.BaseCommand

QUIET = 10_000_000_000
"""Nanoseconds without a message after which a waiting consumer counts as quiet."""

WORTH_ASKING = 100
"""Messages delivered since the last question. Brokers allow tens of thousands of unacknowledged messages."""


class BlockedWatch:
    """The watch of one consumer."""

    __slots__ = (
        "_acknowledged_before",
        "_acknowledgements",
        "_asked_at",
        "_connection",
        "_granted",
        "_last_look",
        "_permits",
        "_queue",
        "_services",
        "_slot",
        "found",
    )

    def __init__(
        self,
        services: ConsumerServices,
        permits: Permits,
        queue: ReceiverQueue,
        acknowledgements: Acknowledgements,
    ) -> None:
        self._services = services
        self._permits = permits
        self._queue = queue
        self._acknowledgements = acknowledgements
        self._acknowledged_before = 0
        """Messages acknowledged before the connection began."""
        self._slot = services.context.deadlines.slot(self._look)
        self._connection: Connection | None = None
        self._granted = 0
        """Permits granted on this connection."""
        self._last_look = 0
        """Messages delivered at the last check."""
        self._asked_at = 0
        """Messages delivered when the broker was asked last."""
        self.found: tuple[int, int] | None = None
        """While the broker delivers nothing: the number of unacknowledged messages it reported, and the
        time."""

    def attach(self, connection: Connection) -> None:
        """Begin to count for this connection; permits follow."""
        self._connection = connection
        self._granted = self._last_look = self._asked_at = 0
        self._acknowledged_before = self._acknowledgements.count

    def detach(self) -> None:
        """Stop counting: the connection is lost, and the broker redelivers unacknowledged messages."""
        self._connection = None
        self._slot.clear()
        self.found = None

    @property
    def delivered(self) -> int:
        """Messages that the broker has delivered on this connection."""
        return self._granted - self._permits.at_broker if self._connection is not None else 0

    @property
    def unacknowledged(self) -> int:
        """The maximum number of messages that the application received over this connection and did not
        acknowledge; messages negatively acknowledged since then are included."""
        acknowledged = self._acknowledgements.count - self._acknowledged_before
        return max(0, self.delivered - self._queue.undelivered - acknowledged)

    def granted(self, permits: int) -> None:
        """Record permits granted to the broker: messages have left the queue."""
        self._granted += permits
        self.found = None
        if self._slot.when is None and self._is_worth_asking:
            self._wait()

    @property
    def _is_worth_asking(self) -> bool:
        return self.delivered - self._asked_at >= WORTH_ASKING

    def _wait(self) -> None:
        self._last_look = self.delivered
        self._slot.set(self._services.context.now + QUIET)

    def _look(self) -> None:
        """Ask the broker when no message arrived since the last check, though the broker had permits."""
        if self._connection is None:
            return
        if self.delivered != self._last_look or self._queue.undelivered or self._permits.at_broker <= 0:
            self._wait()
            return
        if not self._is_worth_asking:
            return
        self._asked_at = self.delivered
        connection, services = self._connection, self._services

        def answered(answer: Any) -> None:
            if self._connection is connection and answer.blockedConsumerOnUnackedMsgs:
                self.found = answer.unackedMessages, services.context.now
                count = self.found[0]
                services.emit(ConsumerBlocked(services.handle, services.source.topic, count))

        def encode(request_id: int) -> bytes:
            command = proto.CommandConsumerStats(consumer_id=services.wire_id, request_id=request_id)
            return encode_command(_Command.CONSUMER_STATS, command)

        services.client.requests.send(
            connection, encode, answered, ignore, reply=_Command.CONSUMER_STATS_RESPONSE
        )
