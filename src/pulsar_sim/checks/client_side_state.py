"""One wire as its client sees it: open producers and consumers, requests, and frames that have arrived.

Owns the account; `client_frames` owns what a client may write because of it.
"""

from typing import Any

from .receive_frames import ConsumerEnd
from .send_frames import ProducerEnd


class PendingClose:
    """A consumer that the client is closing."""

    __slots__ = ("consumer",)

    def __init__(self, consumer: ConsumerEnd) -> None:
        self.consumer = consumer


class PendingWatch:
    """A request to watch the topics of a namespace."""

    __slots__ = ("watcher",)

    def __init__(self, watcher: int) -> None:
        self.watcher = watcher


class PendingLookup:
    """A lookup, and the number of redirects that it follows."""

    __slots__ = ("redirects", "topic")

    def __init__(self, topic: str, redirects: int) -> None:
        self.topic = topic
        self.redirects = redirects


class ClientEnd:
    """One wire as its client sees it."""

    __slots__ = (
        "connected",
        "connecting",
        "consumers",
        "dead",
        "arrived_at",
        "lookups",
        "over",
        "pings",
        "pongs",
        "producers",
        "refused",
        "requests",
        "used_at",
        "watchers",
    )

    def __init__(self) -> None:
        self.connecting = False
        self.dead = False
        """Bytes that are no frame have arrived."""
        self.over = False
        """The broker has ended its direction."""
        self.refused = False
        """A SEND_ERROR has arrived."""
        self.arrived_at = 0
        """Virtual time of the last frame that arrived."""
        self.used_at = 0
        """Virtual time of the last frame written for a handle or a request."""
        self.lookups = 0
        """The number of requests on this wire for topics and for partitions."""
        self.connected = False
        self.producers: dict[int, ProducerEnd] = {}
        self.consumers: dict[int, ConsumerEnd] = {}
        self.requests: dict[int, Any] = {}
        """Requests without an answer, each with what waits for the answer."""
        self.watchers: set[int] = set()
        """Open topic-list watchers."""
        self.pings = 0
        """PINGs without an answer."""
        self.pongs = 0
        """PONGs that may still be written."""

    @property
    def is_empty(self) -> bool:
        """True when no handle is open on the wire; unsolicited frames do not count."""
        ends: list[ProducerEnd | ConsumerEnd] = [*self.producers.values(), *self.consumers.values()]
        return not self.watchers and all(each.closed or each.record.closed or not each.ready for each in ends)
