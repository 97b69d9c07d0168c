"""`Services`: the parts of the client that every machine may use.

The root makes one record and gives it to every machine. A machine reaches other machines only through it.
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
    from ..encryption.key_requests import KeyRequests
    from ..lookup.lookup import Lookup
    from ..schemas.schema_versions import SchemaVersions
    from ..transactions.transactions import Transactions
    from .broker_addresses import BrokerAddresses
    from .links import Links
    from .pool import Pool
    from .requests import Requests

ClientContext: TypeAlias = Context[Output]

DATA_KEY_RENEWAL = 4 * 3600 * 1_000_000_000
"""Nanoseconds between two data keys of one producer, as in the Java client."""


@dataclass(slots=True)
class Durations:
    """The durations of a `ClientConfig` in integer nanoseconds, converted once when the root takes it.
    One more is a constant."""

    operation_timeout: int
    keepalive_interval: int
    connect_timeout: int
    initial_backoff: int
    max_backoff: int
    data_key_renewal: int = DATA_KEY_RENEWAL

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
    """The root sets `requests`, `keys`, `addresses`, `links`, `pool`, `lookup`, `schemas` and `transactions`
    once, before any machine exists."""

    __slots__ = (
        "addresses",
        "config",
        "context",
        "durations",
        "ended",
        "keys",
        "links",
        "lookup",
        "memory",
        "next_consumer_id",
        "next_producer_id",
        "next_watcher_id",
        "pool",
        "received_memory",
        "requests",
        "schemas",
        "transactions",
        "wall_offset",
    )

    requests: "Requests"
    keys: "KeyRequests"
    addresses: "BrokerAddresses"
    links: "Links"
    pool: "Pool"
    lookup: "Lookup"
    schemas: "SchemaVersions"
    transactions: "Transactions"

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
        """`ended(handle, error)`: an attachment reports the permanent end of a producer or consumer."""
        self.next_producer_id = count().__next__
        """Wire ids from 0, with separate counters for producers and consumers (rule CLIENT-04)."""
        self.next_consumer_id = count().__next__
        self.next_watcher_id = count().__next__
        self.wall_offset: int | None = None
        """Wall time when the client's clock was 0, in ms since 1970; None until the driver reports one."""

    def record_wall_time(self, wall_time: int) -> None:
        """Record the current wall time, in ms since 1970."""
        self.wall_offset = wall_time - self.context.now // 1_000_000

    def wall_time(self) -> int:
        """Return the current wall time, in ms since 1970, by the last recorded value."""
        assert self.wall_offset is not None
        return self.wall_offset + self.context.now // 1_000_000

    def within(self, context: ClientContext, ended: Callable[[int, PulsarError | None], None]) -> "Services":
        """Return a copy for nested machines; their ends are reported to `ended`."""
        inner = copy(self)
        inner.context = context
        inner.ended = ended
        return inner
