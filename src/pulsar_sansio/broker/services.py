"""`BrokerServices`: what the machines of one broker share: context, config, journal, wall time, new ids.

A topic, a subscription and a connection each hold it, so none of them has to know the root machine.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..core.context import Context
from ..model.config import nanoseconds_of
from .config import BrokerConfig
from .outputs import Output
from .records import BrokerStarted
from .storage.entry_cache import EntryCache
from .storage.journal import Journal
from .storage.store import EntryReader
from .storage.stored_bytes import StoredBytes

if TYPE_CHECKING:
    from .throttling.rate_limiter import RateLimiter


class LedgerIds:
    """The ids of new ledgers. An embedder of several brokers over one store may pass a subclass."""

    def __init__(self, first: int) -> None:
        self._next = first

    def take(self) -> int:
        """Return an id that no ledger of this broker has had."""
        ledger_id = self._next
        self._next += 1
        return ledger_id

    def reserve(self, used: Iterable[int]) -> None:
        """Give new ledgers larger ids than these, which another broker gave."""
        self._next = max([self._next, *(each + 1 for each in used)])


class BrokerServices:
    """`wall_time`: milliseconds since 1970 at the moment `context.now`."""

    __slots__ = (
        "_incarnation",
        "_names_given",
        "_wall_offset",
        "config",
        "context",
        "deduplication_inactivity",
        "dispatch_limiter",
        "entry_cache",
        "failover_delay",
        "journal",
        "keepalive_interval",
        "ledger_ids",
        "liveness_timeout",
        "publish_limiter",
        "stored_bytes",
    )

    def __init__(
        self,
        context: Context[Output],
        config: BrokerConfig,
        ledger_ids: LedgerIds,
        incarnation: int,
        wall_time: int,
        reader: EntryReader | None,
    ) -> None:
        self.context = context
        self.config = config
        self.journal = Journal(context, nanoseconds_of(config.cursor_flush_interval))
        self.keepalive_interval = nanoseconds_of(config.keepalive_interval)
        self.liveness_timeout = nanoseconds_of(config.liveness_timeout)
        self.failover_delay = nanoseconds_of(config.failover_delay)
        self.deduplication_inactivity = nanoseconds_of(config.deduplication_inactivity)
        """The four durations of `config` that machines need, in nanoseconds."""
        self._wall_offset = wall_time - context.now // 1_000_000
        self.ledger_ids = ledger_ids
        self.stored_bytes = StoredBytes(config.max_stored_bytes)
        self.entry_cache = EntryCache(self.stored_bytes, config.effective_entry_cache_bytes, reader)
        self.publish_limiter: RateLimiter | None = None
        self.dispatch_limiter: RateLimiter | None = None
        """The limiters that all topics share, which the root sets; None where there is no limit."""
        self._incarnation = incarnation
        self._names_given = 0
        self.journal.records.append(BrokerStarted(self._incarnation))

    @property
    def wall_time(self) -> int:
        """The wall time at the input being handled, in ms since 1970."""
        return self._wall_offset + self.context.now // 1_000_000

    def wall_time_of(self, moment: int) -> int:
        """The wall time, in ms since 1970, at a moment of the monotonic clock, in ns."""
        return self._wall_offset + moment // 1_000_000

    def new_producer_name(self) -> str:
        """Return a name that is unique over all topics and restarts (rule BROKER-37)."""
        self._names_given += 1
        return f"{self.config.cluster}-{self._incarnation}-{self._names_given - 1}"


def wall_text(wall_time: int) -> str:
    """Format a wall time, in milliseconds since 1970, as ISO 8601 in UTC, without fractions of a second."""
    days, seconds = divmod(wall_time // 1000, 86_400)
    # The Gregorian calendar is counted in eras of 400 years that begin in March, so leap days come last.
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month, year = (month + 3, year) if month < 10 else (month - 9, year + 1)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{era * 400 + year:04}-{month:02}-{day:02}T{clock}Z"
