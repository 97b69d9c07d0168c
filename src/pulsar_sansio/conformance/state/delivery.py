"""`Delivery`: an entry at a consumer, and `RedeliveryRequests`: what the consumer asked for again."""

from collections import deque

from ..memory import BoundedDict, Position

UNACKNOWLEDGED_LIMIT = 100_000
"""Entries remembered that a consumer has not acknowledged, or has asked for again."""


class Delivery:
    """An entry at a consumer."""

    __slots__ = ("again", "count", "frame", "redeliveries_used", "redelivery_count")

    def __init__(
        self, frame: int, count: int, redelivery_count: int, redeliveries_used: int, again: bool
    ) -> None:
        self.frame = frame
        self.count = count
        """Messages of the batch; 0 where it is none."""
        self.redelivery_count = redelivery_count
        self.redeliveries_used = redeliveries_used
        """The number of the consumer's requests to redeliver everything this entry has answered or missed."""
        self.again = again
        """The entry may have been delivered before, and the application may still hold its messages."""


class RedeliveryRequests:
    """The requests of a consumer for redelivery, as far as the broker has not carried them out."""

    __slots__ = ("activations", "all", "entries", "rewinds", "unread")

    def __init__(self) -> None:
        self.entries: BoundedDict[Position, int] = BoundedDict(UNACKNOWLEDGED_LIMIT)
        """Entry -> how often the client has asked for it again and the broker has not redelivered it."""
        self.all = 0
        """The number of requests to redeliver everything."""
        self.unread: deque[int] = deque(maxlen=1024)
        """Frames of those requests that the broker may not have read.

        The broker may redeliver the entries that it sends before it reads them.
        """
        self.activations: deque[int] = deque(maxlen=1024)
        """Frames of the news that the consumer has become active (Failover).

        When it reads one, it may repeat a request that the broker may have ignored before.
        """
        self.rewinds = 0
        """The times the broker may go back to the first unacknowledged entry (Exclusive and Failover)."""
