"""Failures of single links: each ends its link alone, and the log says so without being flooded.

A link fails by an exception that is not one of its socket. Many links may fail of one cause in one moment, so
only some of them are logged with their tracebacks, and the others are counted (`RateLimit`). The count is in
the next record, or in one at the end.
"""

from logging import getLogger

import trio

from ..rate_limit import RateLimit

_log = getLogger("pulsar_trio.link_failures")


class LinkFailures:
    """The failures of one pump's links."""

    def __init__(self) -> None:
        self._limit = RateLimit()

    def log(self, error: Exception) -> str:
        """Log or count a failure; gives the reason of the link's end."""
        left_out = self._limit.admit(_kind(error), trio.current_time())
        if left_out is not None:
            more = f" ({left_out} records were left out before this one)" if left_out else ""
            _log.error("a connection failed and is closed; the others are unaffected%s", more, exc_info=error)
        return f"a failure of the connection: {error!r}"

    def log_rest(self) -> None:
        """Log the number of failures that no record has told yet. The pump calls it once, at its end."""
        if self._limit.left_out:
            _log.error("%d more connections failed, and were not logged", self._limit.left_out)


def _kind(error: BaseException) -> str:
    """The type that tells failures apart: a link's nursery gives its one exception in a group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return type(error).__name__
