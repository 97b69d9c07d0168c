"""Whether retention overtook a task: ledgers of its range were taken away between its plan and its reading.

A broker says nothing when it removes ledgers under a reader: the reader goes on with what is left. But
ledgers go as a whole, and entries come in order, so there is something to ask about only where what comes
next is of another ledger, or nothing comes at all. What was read last is no loss where its ledger is still
there, or where it was that ledger's last entry; that is looked up while the ledger is there, before it is
read.

It asks `Topics` and knows neither sockets nor messages. What a loss means is decided by the query's options.
"""

from collections.abc import Callable

from .offsets import NOTHING, Position, Range
from .plan import Lost
from .topics import Topics

Report = Callable[[Lost], None]


class Watch:
    """One range while it is read; `report` is told what is lost, and may raise."""

    def __init__(self, topics: Topics, wanted: Range, report: Report) -> None:
        self._topics = topics
        self._range = wanted
        self._report = report
        self._last: int | None = None
        """The last entry of the ledger that is being read, where that is known; only ledgers before the one
        in which the range ends have one."""

    def begin(self) -> None:
        """Before anything is read. Costs nothing where the range lies in one ledger."""
        start = self._range.start
        if self._range.from_end_of_ledger:
            self._last = start[1]
        elif start != NOTHING:
            self._look_at(start[0])

    def enter(self, ledger: int, reached: Position) -> None:
        """What comes behind `reached` is of another ledger."""
        if reached != NOTHING:
            self._check(reached)
        self._look_at(ledger)

    def end(self, reached: Position) -> None:
        """Behind `reached` nothing comes, though the range goes on."""
        if reached != NOTHING:
            self._check(reached)

    def _look_at(self, ledger: int) -> None:
        complete = ledger < self._range.end[0]
        self._last = self._topics.end_of_ledger(self._range.topic, ledger) if complete else None

    def _check(self, reached: Position) -> None:
        if self._last is not None and reached[1] >= self._last:
            return
        begins = self._topics.begins(self._range.topic)
        if begins == NOTHING or begins[0] <= reached[0]:
            return
        self._report(
            Lost(
                self._range.topic,
                reached,
                begins,
                f"the ledger {reached[0]} was taken away while a task read it, up to entry {reached[1]}; "
                "what it had behind that entry, and ledgers after it, are gone",
            )
        )
