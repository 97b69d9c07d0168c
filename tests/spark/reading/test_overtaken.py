"""The reader decides by the ledgers there are, and by what it read of them, what was taken away from a
task."""

from typing import cast

from pulsar_spark.reading.offsets import NOTHING, Position, Range
from pulsar_spark.reading.overtaken import Watch
from pulsar_spark.reading.plan import Lost
from pulsar_spark.reading.topics import ClosedLedger, QueryTopics

TOPIC = "persistent://public/default/t"


class Log:
    """A topic whose ledgers have these last entries; those before `first` are gone."""

    def __init__(self, **ledgers: int) -> None:
        self.ledgers = {int(name[1:]): last for name, last in ledgers.items()}
        self.asked = 0

    def trim(self, first: int) -> None:
        self.ledgers = {ledger: last for ledger, last in self.ledgers.items() if ledger >= first}

    def begins(self, _: str) -> Position:
        self.asked += 1
        return (min(self.ledgers), -1)

    def ledger(self, _: str, number: int, end: Position) -> ClosedLedger:
        self.asked += 1
        return ClosedLedger(self.ledgers.get(number, -1), min(each for each in self.ledgers if each > number))


def watching(log: Log, wanted: Range) -> tuple[Watch, list[Lost]]:
    lost: list[Lost] = []
    return Watch(cast(QueryTopics, log), wanted, lost.append), lost


def test_a_range_in_one_ledger_asks_nothing() -> None:
    log = Log(L1=9)
    watch, lost = watching(log, Range(TOPIC, (1, 3), (1, 7)))
    watch.begin()
    watch.end((1, 7))
    assert log.asked == 1, "only at its end, where the broker said so"
    assert lost == []


def test_a_ledger_that_was_read_to_its_end_may_go() -> None:
    log = Log(L1=9, L2=9, L3=9)
    watch, lost = watching(log, Range(TOPIC, (1, 3), (3, 9)))
    watch.begin()
    log.trim(2)
    watch.enter(2, (1, 9))
    log.trim(3)
    watch.enter(3, (2, 9))
    assert lost == []


def test_a_ledger_that_goes_in_the_middle_is_a_loss() -> None:
    log = Log(L1=9, L2=9)
    watch, lost = watching(log, Range(TOPIC, (1, 3), (2, 9)))
    watch.begin()
    log.trim(2)
    watch.enter(2, (1, 6))
    assert [(each.topic, each.expected, each.found) for each in lost] == [(TOPIC, (1, 6), (2, -1))]


def test_a_ledger_that_went_before_the_task_began() -> None:
    log = Log(L2=9)
    watch, lost = watching(log, Range(TOPIC, (1, 9), (2, 9)))
    watch.begin()
    watch.enter(2, (1, 9))
    assert len(lost) == 1, "the reader cannot know whether that was all of it"
    watch, lost = watching(log, Range(TOPIC, (1, 9), (2, 9), next_ledger=2))
    watch.begin()
    watch.enter(2, (1, 9))
    assert lost == []


def test_a_ledger_that_is_left_out_is_a_loss() -> None:
    log = Log(L1=9, L4=9, L7=9)
    watch, lost = watching(log, Range(TOPIC, (1, 3), (7, 9)))
    watch.begin()
    log.trim(7)
    watch.enter(7, (1, 9))
    assert [(each.expected, each.found) for each in lost] == [((1, 9), (7, -1))], "all of the ledger 4"
    log = Log(L4=9, L7=9)
    watch, lost = watching(log, Range(TOPIC, (1, 9), (4, 9), next_ledger=4))
    watch.begin()
    log.trim(7)
    watch.end((1, 9))
    assert len(lost) == 1


def test_numbers_between_ledgers_are_of_other_topics() -> None:
    log = Log(L1=9, L4=9)
    watch, lost = watching(log, Range(TOPIC, (1, 9), (4, 9)))
    watch.begin()
    log.trim(4)
    watch.enter(4, (1, 9))
    assert lost == []


def test_entries_that_are_never_delivered_are_none() -> None:
    """Markers, or what compaction took away: the ledger is there, and ends with them."""
    log = Log(L1=9, L2=9)
    watch, lost = watching(log, Range(TOPIC, NOTHING, (2, 9)))
    watch.begin()
    watch.enter(1, NOTHING)
    watch.enter(2, (1, 6))
    watch.end((2, 5))
    assert lost == []


def test_everything_that_was_left_is_gone() -> None:
    log = Log(L1=9, L2=9, L3=9)
    watch, lost = watching(log, Range(TOPIC, (1, 3), (2, 9)))
    watch.begin()
    log.trim(3)
    watch.end((1, 3))
    assert [each.found for each in lost] == [(3, -1)]
