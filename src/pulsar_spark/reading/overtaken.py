"""This module detects that retention overtook a task: the broker removed ledgers between plan and reading.

A broker says nothing when it removes ledgers under a reader: the reader goes on with what is left. But
the broker removes ledgers as a whole and from the oldest on, and entries come in order. So a task asks only
where the next entry is of another ledger, or no entry comes at all. Nothing is lost where the ledger
that was read last is still there; or where it was read to its end, and the one after it is there. Which entry
is its last, and which ledger comes after it, is looked up before it is read, while it is there.

It asks `QueryTopics` and knows neither sockets nor messages. The query's options decide what a loss means.
"""

from collections.abc import Callable

from .offsets import NOTHING, Position, Range
from .plan import Lost
from .topics import QueryTopics

Report = Callable[[Lost], None]


class Watch:
    """One range while it is read; `report` is told what is lost, and may raise."""

    def __init__(self, topics: QueryTopics, wanted: Range, report: Report) -> None:
        self._topics = topics
        self._range = wanted
        self._report = report
        self._read: tuple[Position, int] | None = None
        """The last entry of the ledger that is being read, and the ledger after it, where they are known.
        Only ledgers before the one in which the range ends have them."""

    def begin(self) -> None:
        """Before anything is read. Costs nothing where the range lies in one ledger."""
        start = self._range.start
        if self._range.next_ledger is not None:
            self._read = start, self._range.next_ledger
        elif start != NOTHING:
            self._look_at(start[0])

    def enter(self, ledger: int, reached: Position) -> None:
        """Note that the next entry behind `reached` is of another ledger; report a loss between them."""
        if reached != NOTHING:
            self._check(reached, ledger)
        self._look_at(ledger)

    def end(self, reached: Position) -> None:
        """Behind `reached` nothing comes, though the range goes on."""
        if reached != NOTHING:
            self._check(reached, None)

    def _look_at(self, ledger: int) -> None:
        self._read = None
        if ledger < self._range.end[0]:
            found = self._topics.ledger(self._range.topic, ledger, self._range.end)
            if found.last >= 0:
                self._read = (ledger, found.last), found.next

    def _check(self, reached: Position, entered: int | None) -> None:
        needed = reached[0]
        if self._read is not None and reached >= self._read[0]:
            needed = self._read[1]
            if entered == needed:
                return
        begins = self._topics.begins(self._range.topic)
        if begins == NOTHING or begins[0] <= needed:
            return
        self._report(
            Lost(
                self._range.topic,
                reached,
                begins,
                f"the ledger {needed} was taken away while a task read the topic, up to "
                f"{reached[0]}:{reached[1]}; what it had behind that entry, and ledgers after it, are gone",
            )
        )
