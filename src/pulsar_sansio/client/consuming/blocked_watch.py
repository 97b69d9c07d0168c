"""`BlockedWatch`: finds out that the broker delivers nothing because too much is unacknowledged.

A broker stops delivering to a consumer of a Shared or Key_Shared subscription at a number of unacknowledged
messages that the client does not know, and says nothing. So the consumer asks (CONSUMER_STATS), when it waits
in vain: permits are at the broker, the receiver queue is empty, and nothing has come for `QUIET`. It asks at
most once for `WORTH_ASKING` messages, so that a topic in which little happens costs no requests.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ...model.topic_name import TopicName
from ...wire import encode_command, proto
from ..acknowledging.ack_grouping import AckGrouping
from ..acknowledging.ack_tracker import AckTracker
from ..connecting.connection import Connection
from ..connecting.requests import Requests
from ..connecting.services import ClientContext
from ..delivery.permits import Permits
from ..delivery.receiver_queue import ReceiverQueue
from ..outputs import ConsumerBlocked, Output

_Command = proto.BaseCommand

QUIET = 10_000_000_000
"""Nanoseconds without a message after which a waiting consumer is quiet."""

WORTH_ASKING = 100
"""Messages delivered since the last question. Brokers allow tens of thousands of unacknowledged messages."""


class Watched(Protocol):
    """The consumer."""

    handle: int
    wire_id: int
    topic: TopicName


class BlockedWatch:
    """The watch of one consumer."""

    __slots__ = (
        "_acknowledged_before",
        "_acknowledger",
        "_asked_at",
        "_connection",
        "_consumer",
        "_context",
        "_emit",
        "_granted",
        "_last_look",
        "_permits",
        "_queue",
        "_requests",
        "_slot",
        "_tracker",
        "found",
    )

    def __init__(
        self,
        context: ClientContext,
        requests: Requests,
        emit: Callable[[Output], None],
        consumer: Watched,
        permits: Permits,
        queue: ReceiverQueue,
        tracker: AckTracker,
        acknowledger: AckGrouping,
    ) -> None:
        self._context = context
        self._requests = requests
        self._emit = emit
        self._consumer = consumer
        self._permits = permits
        self._queue = queue
        self._tracker = tracker
        self._acknowledger = acknowledger
        self._acknowledged_before = 0
        """Messages acknowledged when the connection began."""
        self._slot = context.deadlines.slot(self._look)
        self._connection: Connection | None = None
        self._granted = 0
        """Permits granted on this connection."""
        self._last_look = 0
        """Messages delivered at the last look."""
        self._asked_at = 0
        """Messages delivered when the broker was asked last."""
        self.found: tuple[int, int] | None = None
        """The number that the broker said, and the moment, while it still delivers nothing."""

    def attach(self, connection: Connection) -> None:
        """Subscribed over this connection; permits follow."""
        self._connection = connection
        self._granted = self._last_look = self._asked_at = 0
        self._acknowledged_before = self._acknowledged

    def detach(self) -> None:
        """The connection is lost: the broker delivers again what is unacknowledged."""
        self._connection = None
        self._slot.clear()
        self.found = None

    @property
    def delivered(self) -> int:
        """Messages that the broker has delivered on this connection."""
        return self._granted - self._permits.at_broker if self._connection is not None else 0

    @property
    def _acknowledged(self) -> int:
        """Messages acknowledged, also those whose acknowledgement waits; an ACK sent twice counts twice."""
        tracker = self._tracker
        return self._acknowledger.ids_sent + tracker.waiting + tracker.messages_beyond_ids

    @property
    def unacknowledged(self) -> int:
        """Messages that the application has received over this connection and not acknowledged, at most:
        those that were negatively acknowledged since then count, too."""
        acknowledged = self._acknowledged - self._acknowledged_before
        return max(0, self.delivered - self._queue.available - acknowledged)

    def granted(self, permits: int) -> None:
        """The broker was granted so many more permits: messages have left the queue."""
        self._granted += permits
        self.found = None
        if self._slot.when is None and self._is_worth_asking:
            self._wait()

    @property
    def _is_worth_asking(self) -> bool:
        return self.delivered - self._asked_at >= WORTH_ASKING

    def _wait(self) -> None:
        self._last_look = self.delivered
        self._slot.set(self._context.now + QUIET)

    def _look(self) -> None:
        """Ask where nothing came since the last look, though it might have."""
        if self._connection is None:
            return
        if self.delivered != self._last_look or self._queue.available or self._permits.at_broker <= 0:
            self._wait()
            return
        if not self._is_worth_asking:
            return
        self._asked_at = self.delivered
        connection = self._connection

        def answered(answer: Any) -> None:
            if self._connection is connection and answer.blockedConsumerOnUnackedMsgs:
                self.found = answer.unackedMessages, self._context.now
                count = self.found[0]
                self._emit(ConsumerBlocked(self._consumer.handle, str(self._consumer.topic), count))

        def encode(request_id: int) -> bytes:
            command = proto.CommandConsumerStats(consumer_id=self._consumer.wire_id, request_id=request_id)
            return encode_command(_Command.CONSUMER_STATS, command)

        self._requests.send(connection, encode, answered, _ignore, reply=_Command.CONSUMER_STATS_RESPONSE)


def _ignore(_: object) -> None:
    """A broker that cannot answer leaves it unknown."""
