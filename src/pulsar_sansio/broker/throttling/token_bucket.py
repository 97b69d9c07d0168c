"""`TokenBucket`: how much may pass in each period, counted in whole numbers, without a clock.

The bucket is full at first and holds the tokens of one period. A message that is larger than what is left
passes, too, and its debt is paid before the next one, as in the Java broker.
"""


class TokenBucket:
    """`rate` tokens come in each `period` (ns), evenly; `now`: the present moment (ns)."""

    __slots__ = ("_at", "_level", "_period", "_rate")

    def __init__(self, now: int, rate: int, period: int) -> None:
        self._rate = rate
        self._period = period
        self._level = rate * period
        """Tokens times `period`, so that a moment's part of a token is a whole number, too."""
        self._at = now

    def take(self, now: int, tokens: int) -> None:
        """Take tokens, also those that are not there yet."""
        self._fill(now)
        self._level -= tokens * self._period

    def ready_at(self, now: int) -> int:
        """Return the first moment, `now` or later, at which there is a token."""
        self._fill(now)
        missing = self._period - self._level
        return now if missing <= 0 else now - (-missing // self._rate)

    def set_rate(self, now: int, rate: int) -> None:
        """From now on `rate` tokens come in each period; those that are there stay."""
        self._fill(now)
        self._rate = rate

    def _fill(self, now: int) -> None:
        self._level = min(self._level + (now - self._at) * self._rate, self._rate * self._period)
        self._at = now
