"""Failures of single links: each ends its link alone, and the log says so without being flooded.

A link fails by an exception that is not one of its socket. Many links may fail of one cause in one moment, so
only some of them are logged with their tracebacks, and the others are counted.
"""

from collections.abc import Callable
from logging import getLogger

_log = getLogger(__name__)

LOG_INTERVAL = 10 * 1_000_000_000
"""Nanoseconds from one logged failure to the next: thousands of tracebacks would hide everything else."""


class LinkFailures:
    """The failures of one pump's links. `now` gives its nanoseconds."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._next: int | None = None
        """The moment from which on a failure is logged again."""
        self._unlogged = 0

    def log(self, error: Exception) -> str:
        """Log or count a failure; gives the reason of the link's end."""
        now = self._now()
        if self._next is not None and now < self._next:
            self._unlogged += 1
        else:
            self._next = now + LOG_INTERVAL
            more = f" ({self._unlogged} more were not logged)" if self._unlogged else ""
            self._unlogged = 0
            _log.error("a connection failed and is closed, the others go on%s", more, exc_info=error)
        return f"a failure of the connection: {error!r}"
