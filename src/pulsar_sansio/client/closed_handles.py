"""`ClosedHandles`: what the root still knows of producers and consumers that are gone for good.

Why each ended, and what it had counted by then. It does not know which handles were ever given; the
root does.
"""

from collections import OrderedDict

from ..model.errors import ClosedError, PulsarError
from .explanation import reason
from .statistics import ConsumerStatistics, ProducerStatistics

Statistics = ProducerStatistics | ConsumerStatistics

REMEMBERED_ENDS = 1000
"""Closed producers and consumers of which is still known why they ended; of older ones only that they did."""


class ClosedHandles:
    """The last `REMEMBERED_ENDS` ends, and the final statistics of as many."""

    __slots__ = ("_causes", "_statistics")

    def __init__(self) -> None:
        self._causes: OrderedDict[int, PulsarError | None] = OrderedDict()
        self._statistics: OrderedDict[int, Statistics] = OrderedDict()

    def __len__(self) -> int:
        return len(self._causes)

    def note(self, handle: int, cause: PulsarError | None) -> None:
        """It is gone; `cause` is None where the application closed it."""
        self._causes[handle] = cause
        if len(self._causes) > REMEMBERED_ENDS:
            self._causes.popitem(last=False)

    def note_statistics(self, handle: int, statistics: Statistics) -> None:
        self._statistics[handle] = statistics
        if len(self._statistics) > REMEMBERED_ENDS:
            self._statistics.popitem(last=False)

    def statistics(self, handle: int) -> Statistics | None:
        """What that producer or consumer had counted at its end; None where that is not known any more."""
        return self._statistics.get(handle)

    def explain(self, handle: int) -> str:
        """One line about something that is gone."""
        cause = self._causes.get(handle)
        return f"{handle}: closed{reason(cause)}"

    def closed(self, kind: str, handle: int) -> ClosedError:
        """What to raise for a command to something that is gone: with the cause, where it is remembered."""
        cause = self._causes.get(handle)
        error = ClosedError(f"{kind} {handle} is closed" + (f": {cause}" if cause else ""))
        error.__cause__ = cause
        return error
