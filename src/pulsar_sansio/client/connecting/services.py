"""`Services`: what a machine may use of the root it lives under.

One record, made by the root and given to every machine. A machine reaches other machines through nothing
else.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from ...core.context import Context
from ...model.config import ClientConfig, nanoseconds_of
from ...model.errors import PulsarError
from ..memory import MemoryLimit, ReceivedMemory
from ..outputs import Output

if TYPE_CHECKING:
    from .lookup import Lookup
    from .pool import Pool
    from .requests import Requests

ClientContext: TypeAlias = Context[Output]


@dataclass(slots=True)
class Durations:
    """The durations of a `ClientConfig` as integer nanoseconds: converted once, when the root takes it."""

    operation_timeout: int
    keepalive_interval: int
    connect_timeout: int
    initial_backoff: int
    max_backoff: int

    @classmethod
    def of(cls, config: ClientConfig) -> "Durations":
        return cls(
            nanoseconds_of(config.operation_timeout),
            nanoseconds_of(config.keepalive_interval),
            nanoseconds_of(config.connect_timeout),
            nanoseconds_of(config.initial_backoff),
            nanoseconds_of(config.max_backoff),
        )


class Services:
    """`requests`, `pool` and `lookup` are set by the root, once, before any machine exists."""

    __slots__ = (
        "config",
        "context",
        "durations",
        "ended",
        "lookup",
        "memory",
        "next_consumer_id",
        "next_producer_id",
        "next_watcher_id",
        "pool",
        "received_memory",
        "requests",
        "wall_offset",
    )

    requests: "Requests"
    pool: "Pool"
    lookup: "Lookup"

    def __init__(
        self,
        context: ClientContext,
        config: ClientConfig,
        ended: Callable[[int, PulsarError | None], None],
    ) -> None:
        self.context = context
        self.config = config
        self.durations = Durations.of(config)
        self.memory = MemoryLimit(config.memory_limit)
        self.received_memory = ReceivedMemory(self.memory)
        self.ended = ended
        """`ended(handle, error)`: the attachment tells the root that a producer or consumer is gone for
        good."""
        self.next_producer_id = count().__next__
        """Ids on the wire: one counter for producers, one for consumers, from 0 (rule CLIENT-04)."""
        self.next_consumer_id = count().__next__
        self.next_watcher_id = count().__next__
        self.wall_offset: int | None = None
        """Milliseconds since 1970 at the moment 0; None where nobody has said."""

    def note_wall_time(self, wall_time: int) -> None:
        """It is so many milliseconds since 1970 now."""
        self.wall_offset = wall_time - self.context.now // 1_000_000

    def wall_time(self) -> int:
        """Milliseconds since 1970, as far as it is known."""
        assert self.wall_offset is not None
        return self.wall_offset + self.context.now // 1_000_000

    def within(self, context: ClientContext, ended: Callable[[int, PulsarError | None], None]) -> "Services":
        """The same for machines within a machine, which is told of their ends."""
        inner = copy(self)
        inner.context = context
        inner.ended = ended
        return inner
