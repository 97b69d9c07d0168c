"""`RateLimit`: how many records of a log are written when the same thing goes wrong again and again.

It decides about one record at a time and keeps count of those that it leaves out. It knows no logger and no
clock: the moment is an argument.
"""

INTERVAL = 10.0
"""Seconds in which one reason is written once. A broker that is away for a day makes less than 10,000 lines,
and a reader of the log sees within seconds that it is still away."""

MOST = 20
"""Records in one interval, whatever their reasons: a thousand topics that fail, each for a reason of its own,
make two lines a second."""


class RateLimit:
    """One kind of records. Memory is bounded by `MOST` keys."""

    def __init__(self, interval: float = INTERVAL, most: int = MOST) -> None:
        self._interval = interval
        self._most = most
        self._written: dict[str, float] = {}
        """The moments of the records of the last interval, oldest first, by their keys."""
        self._left_out = 0

    @property
    def left_out(self) -> int:
        """The number of records that were left out since the last one was written."""
        return self._left_out

    def admit(self, key: str, now: float) -> int | None:
        """Decide about a record with that key at the moment `now`, in seconds.

        Gives the number of records that were left out since the last one was written; None to leave it out.
        """
        written = self._written
        while written and now - written[oldest := next(iter(written))] >= self._interval:
            del written[oldest]
        if key in written or len(written) >= self._most:
            self._left_out += 1
            return None
        written[key] = now
        left_out, self._left_out = self._left_out, 0
        return left_out
