"""`SubscribeThrottle`: how often a consumer may subscribe to one topic in each period (BROKER-15).

Periods follow each other from the moment the rate was set, as in the Java broker.
"""

from ...core.context import Context
from ..outputs import Output
from ..policies import SubscribeRate
from .rate_limiter import SECOND

MOST_COUNTED = 10_000
"""The number of consumers that are counted in one period; beyond it the first one's count is discarded."""

ConsumerKey = tuple[str, str, int]
"""The address of the client, the name of the consumer and its id."""


class SubscribeThrottle:
    """Counts each consumer's SUBSCRIBE commands in the present period."""

    def __init__(self, context: Context[Output], rate: SubscribeRate) -> None:
        self._context = context
        self.rate = rate
        self._ends = context.now
        self._counts: dict[ConsumerKey, int] = {}

    def take(self, consumer: ConsumerKey) -> bool:
        """Count a SUBSCRIBE. False when it is one too many."""
        rate = self.rate
        if rate.per_consumer <= 0 or rate.period <= 0:
            return True
        now, period = self._context.now, rate.period * SECOND
        if now >= self._ends:
            self._ends += ((now - self._ends) // period + 1) * period
            self._counts.clear()
        count = self._counts.get(consumer, 0) + 1
        if count > rate.per_consumer:
            return False
        self._counts[consumer] = count
        if len(self._counts) > MOST_COUNTED:
            del self._counts[next(iter(self._counts))]
        return True
