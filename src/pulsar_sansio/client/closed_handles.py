"""`ClosedHandles`: the causes and final counts of producers and consumers that have ended.

`ClosedHandles` does not know which handles were ever given; the root does.
"""

from collections import OrderedDict

from ..model.errors import ClosedError, PulsarError
from .explanation import reason
from .statistics import ConsumerStatistics, ProducerStatistics

Statistics = ProducerStatistics | ConsumerStatistics

REMEMBERED_ENDS = 1000
"""Ended producers and consumers whose cause is kept. Of older ones the client knows only that they ended."""


class ClosedHandles:
    """The last `REMEMBERED_ENDS` ends, and the final statistics of as many."""

    __slots__ = ("_causes", "_statistics")

    def __init__(self) -> None:
        self._causes: OrderedDict[int, PulsarError | None] = OrderedDict()
        self._statistics: OrderedDict[int, Statistics] = OrderedDict()

    def __len__(self) -> int:
        return len(self._causes)

    def add(self, handle: int, cause: PulsarError | None) -> None:
        """Record an end; `cause` is None when the application closed the producer or consumer."""
        self._causes[handle] = cause
        if len(self._causes) > REMEMBERED_ENDS:
            self._causes.popitem(last=False)

    def add_statistics(self, handle: int, statistics: Statistics) -> None:
        self._statistics[handle] = statistics
        if len(self._statistics) > REMEMBERED_ENDS:
            self._statistics.popitem(last=False)

    def statistics(self, handle: int) -> Statistics | None:
        """Return the final counts of a producer or consumer; None when they are not kept any more."""
        return self._statistics.get(handle)

    def explain(self, handle: int) -> str:
        """Describe the end of a producer or consumer in one line."""
        cause = self._causes.get(handle)
        return f"{handle}: closed{reason(cause)}"

    def error(self, kind: str, handle: int) -> ClosedError:
        """Make the error for a command to a handle that has ended, with the cause if it is kept."""
        cause = self._causes.get(handle)
        error = ClosedError(f"{kind} {handle} is closed" + (f": {cause}" if cause else ""))
        error.__cause__ = cause
        return error
