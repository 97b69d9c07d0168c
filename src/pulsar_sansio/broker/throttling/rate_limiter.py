"""`RateLimiter`: the message rate of one topic or subscription; connections and subscriptions wait for it.

Connections wait whose producers sent too much, and subscriptions that have more to deliver. A limiter decides
neither which producer pays nor what happens after the wait.
"""

from collections.abc import Callable, Hashable

from ...core.context import Context
from ..outputs import Output
from ..policies import MessageRate
from .token_bucket import TokenBucket

SECOND = 1_000_000_000

LEAST_PAUSE = 10_000_000
"""The shortest wait, in ns: a high rate costs at most a hundred wake-ups a second."""


class RateLimiter:
    """Buckets for messages and for bytes; both need a token.

    `published`: the messages and bytes of the topic's producers in each second. A relative rate adds them.
    """

    def __init__(
        self, context: Context[Output], rate: MessageRate, published: tuple[int, int] = (0, 0)
    ) -> None:
        self._context = context
        self.rate = rate
        period = max(rate.period, 1) * SECOND
        limits = rate.messages, rate.size
        self._messages, self._bytes = (
            TokenBucket(context.now, limit + (more if rate.relative else 0), period) if limit > 0 else None
            for limit, more in zip(limits, published, strict=True)
        )
        self._waiting: dict[Hashable, Callable[[], None]] = {}
        """Waiting connections and subscriptions, in order of arrival, and the call by which each goes on."""
        self._served: Hashable = None
        """The connection or subscription that goes on now, before the others that wait."""
        self._timer = context.deadlines.slot(self._due)

    def follow(self, published: tuple[int, int]) -> None:
        """The producers of the topic publish so many messages and bytes in each second now."""
        if not self.rate.relative:
            return
        now = self._context.now
        if self._messages is not None:
            self._messages.set_rate(now, self.rate.messages + published[0])
        if self._bytes is not None:
            self._bytes.set_rate(now, self.rate.size + published[1])
        if self._waiting:
            self._timer.set(max(self._ready_at(), now + LEAST_PAUSE))

    def take(self, messages: int, size: int) -> bool:
        """Take the tokens of what passes. False when the next one has to wait."""
        now = self._context.now
        if self._messages is not None:
            self._messages.take(now, messages)
        if self._bytes is not None:
            self._bytes.take(now, size)
        return self._ready_at() <= now

    def _ready_at(self) -> int:
        now = self._context.now
        return max(
            (each.ready_at(now) for each in (self._messages, self._bytes) if each is not None), default=now
        )

    def admits(self, waiting: Hashable, then: Callable[[], None]) -> bool:
        """True when `waiting` may go on now; else `then` is called when its turn comes."""
        if (waiting == self._served or not self._waiting) and self._ready_at() <= self._context.now:
            return True
        self.wait(waiting, then)
        return False

    def wait(self, waiting: Hashable, then: Callable[[], None]) -> None:
        """Call `then` as soon as there are tokens and all that waited before have gone on."""
        self._waiting.setdefault(waiting, then)
        if self._timer.when is None:
            now = self._context.now
            self._timer.set(max(self._ready_at(), now + LEAST_PAUSE))

    def leave(self, waiting: Hashable) -> None:
        """Wait no longer, and do not go on."""
        self._waiting.pop(waiting, None)
        if not self._waiting:
            self._timer.clear()

    def close(self) -> None:
        """The rate does not hold any more: all that wait go on."""
        self._timer.clear()
        waiting, self._waiting = self._waiting, {}
        for then in waiting.values():
            then()

    def _due(self) -> None:
        while self._waiting and self._ready_at() <= self._context.now:
            waiting = next(iter(self._waiting))
            self._served = waiting
            self._waiting.pop(waiting)()
            self._served = None
        if self._waiting and self._timer.when is None:
            self._timer.set(max(self._ready_at(), self._context.now + LEAST_PAUSE))
