"""What one wire looks like from its client: who is open on it, what it has asked for, and what it has heard.

Owns the account; what a client may write because of it is `watch_client`'s.
"""

from typing import Any

from .receive_frames import ConsumerEnd
from .send_frames import ProducerEnd


class Farewell:
    """A consumer that the client is closing."""

    __slots__ = ("consumer",)

    def __init__(self, consumer: ConsumerEnd) -> None:
        self.consumer = consumer


class Watching:
    """A request to be told of topics that come and go."""

    __slots__ = ("watcher",)

    def __init__(self, watcher: int) -> None:
        self.watcher = watcher


class Looking:
    """A lookup, and how many redirects it follows."""

    __slots__ = ("redirects", "topic")

    def __init__(self, topic: str, redirects: int) -> None:
        self.topic = topic
        self.redirects = redirects


class ClientEnd:
    """What one wire looks like from its client."""

    __slots__ = (
        "connected",
        "connecting",
        "consumers",
        "dead",
        "heard_at",
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
        """Garbage has arrived."""
        self.over = False
        """The broker has ended its direction."""
        self.refused = False
        """A SEND_ERROR has arrived."""
        self.heard_at = 0
        """When the last frame arrived."""
        self.used_at = 0
        """When the client last wrote a frame that is neither PING nor PONG."""
        self.lookups = 0
        """Asked on it, for topics and for partitions."""
        self.connected = False
        self.producers: dict[int, ProducerEnd] = {}
        self.consumers: dict[int, ConsumerEnd] = {}
        self.requests: dict[int, Any] = {}
        """Requests without an answer yet: id -> what waits for it."""
        self.watchers: set[int] = set()
        """Who is told of topics that come and go."""
        self.pings = 0
        """PINGs without an answer."""
        self.pongs = 0
        """PONGs that may still be written."""

    @property
    def is_empty(self) -> bool:
        """Nobody is open on it; what strangers send changes nothing in that."""
        ends: list[ProducerEnd | ConsumerEnd] = [*self.producers.values(), *self.consumers.values()]
        return not self.watchers and all(each.closed or each.record.closed or not each.ready for each in ends)
