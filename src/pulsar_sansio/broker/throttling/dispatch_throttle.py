"""`DispatchThrottle`: what one subscription may deliver now, by its topic's dispatch rate and its own.

Dispatchers ask it before they deliver, and stop when it is exhausted. It knows no entries and no consumers.
"""

from collections.abc import Callable

from .rate_limiter import RateLimiter


class DispatchThrottle:
    """`limiters`: those of the broker and of the topic, shared in turn, and the subscription's own.

    `resume` is called when the subscription may deliver again.
    """

    __slots__ = ("_limiters", "_resume", "exhausted")

    def __init__(self, limiters: tuple[RateLimiter, ...], resume: Callable[[], None]) -> None:
        self._limiters = limiters
        self._resume = resume
        self.exhausted = False
        """The next message has to wait."""

    def admits(self) -> bool:
        """True when the subscription may deliver; else it goes on by itself later."""
        self.exhausted = not all(limiter.admits(self, self._resume) for limiter in self._limiters)
        return not self.exhausted

    def take(self, messages: int, size: int) -> None:
        """Messages were delivered, of `size` bytes."""
        for limiter in self._limiters:
            if not limiter.take(messages, size):
                self.exhausted = True
                limiter.wait(self, self._resume)

    def close(self) -> None:
        """The subscription delivers no more, or by other rates."""
        for limiter in self._limiters:
            limiter.leave(self)
