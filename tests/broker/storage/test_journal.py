"""`Journal`: effects wait for the write that holds everything recorded before them."""

from typing import Any, cast

from pulsar_sansio.broker.outputs import Output, Persist
from pulsar_sansio.broker.records import CursorDeleted, Record, TenantSaved
from pulsar_sansio.broker.storage.journal import Journal
from pulsar_sansio.core.context import Context

INTERVAL = 1000
A, B = TenantSaved("a"), TenantSaved("b")


class Topic:
    """A topic, as the journal sees it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.durable = 0

    def take_sequence_records(self) -> list[Record]:
        return [TenantSaved(f"sequence of {self.name}")]

    def entries_durable(self, count: int) -> None:
        self.durable += count


class Subscription:
    """A subscription, as the journal sees it."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic

    def cursor_record(self) -> Record:
        return TenantSaved(f"cursor of {self.topic.name}")


class Writer:
    """A journal, and a store that the test confirms."""

    def __init__(self) -> None:
        self.context: Context[Output] = Context(0, seed=1)
        self.journal: Any = Journal(self.context, INTERVAL)
        self.effects: list[str] = []

    def record(self, *records: Record) -> None:
        self.journal.records.extend(records)

    def confirm(self, name: str) -> None:
        self.journal.confirm(lambda: self.effects.append(name))

    def written(self) -> list[Persist]:
        self.journal.settle()
        found = [cast(Persist, output) for output in self.context.outputs]
        self.context.outputs.clear()
        return found


def test_without_a_write_an_effect_happens_at_once() -> None:
    writer = Writer()
    writer.confirm("now")
    assert writer.effects == ["now"]
    assert writer.written() == []


def test_an_effect_waits_for_the_records_before_it() -> None:
    writer = Writer()
    writer.record(A)
    writer.confirm("a")
    assert writer.effects == []
    assert writer.written() == [Persist(0, [A])]
    writer.confirm("still a")
    writer.journal.persisted(0)
    assert writer.effects == ["a", "still a"]


def test_one_write_at_a_time() -> None:
    writer = Writer()
    writer.record(A)
    assert writer.written() == [Persist(0, [A])]
    writer.record(B)
    writer.confirm("b")
    assert writer.written() == []
    writer.journal.persisted(0)
    assert writer.effects == []
    assert writer.written() == [Persist(1, [B])]
    writer.journal.persisted(1)
    assert writer.effects == ["b"]


def test_a_number_that_is_not_outstanding_is_ignored() -> None:
    writer = Writer()
    writer.record(A)
    writer.confirm("a")
    writer.written()
    writer.journal.persisted(7)
    assert writer.effects == []
    writer.journal.persisted(0)
    writer.journal.persisted(0)
    assert writer.effects == ["a"]


def test_a_topic_is_told_how_many_entries_are_durable() -> None:
    writer = Writer()
    topic = Topic("t")
    for record in (A, B):
        writer.record(record)
        writer.journal.published(topic)
    assert writer.written() == [Persist(0, [A, B, TenantSaved("sequence of t")])]
    writer.record(A)
    writer.journal.published(topic)
    writer.journal.persisted(0)
    assert topic.durable == 2
    writer.written()
    writer.journal.persisted(1)
    assert topic.durable == 3


def test_a_cursor_is_written_when_the_interval_ends() -> None:
    writer = Writer()
    subscription = Subscription(Topic("t"))
    writer.journal.cursor_moved(subscription)
    assert writer.written() == []
    assert not writer.journal.is_cursor_durable(subscription)
    assert writer.context.deadlines.next() == INTERVAL
    writer.context.deadlines.run(INTERVAL)
    assert writer.written() == [Persist(0, [TenantSaved("cursor of t")])]
    assert not writer.journal.is_cursor_durable(subscription)
    writer.journal.persisted(0)
    assert writer.journal.is_cursor_durable(subscription)


def test_a_confirmed_cursor_does_not_wait_for_the_interval() -> None:
    writer = Writer()
    subscription = Subscription(Topic("t"))
    writer.journal.cursor_moved(subscription)
    writer.journal.confirm_cursors(lambda: writer.effects.append("acknowledged"))
    assert writer.written() == [Persist(0, [TenantSaved("cursor of t")])]
    assert writer.context.deadlines.next() is None
    writer.journal.persisted(0)
    assert writer.effects == ["acknowledged"]


def test_nothing_of_a_discarded_topic_is_written_or_reported() -> None:
    writer = Writer()
    topic, other = Topic("t"), Topic("other")
    for each in (topic, other):
        writer.record(CursorDeleted(each.name, "s"))
        writer.journal.published(each)
        writer.journal.cursor_moved(Subscription(each))
    writer.record(A)
    writer.journal.discard_topic("t")
    writer.journal.flush_cursors()
    (write,) = writer.written()
    assert write.records == [
        CursorDeleted("other", "s"),
        A,
        TenantSaved("sequence of other"),
        TenantSaved("cursor of other"),
    ]
    writer.journal.persisted(write.write)
    assert (topic.durable, other.durable) == (0, 1)


def test_effects_whose_records_were_discarded_have_an_empty_write() -> None:
    writer = Writer()
    writer.record(CursorDeleted("t", "s"))
    writer.confirm("over")
    writer.journal.discard_topic("t")
    assert writer.written() == [Persist(0, [])]
    writer.journal.persisted(0)
    assert writer.effects == ["over"]


def test_a_discarded_cursor_is_not_written() -> None:
    writer = Writer()
    subscription = Subscription(Topic("t"))
    writer.journal.cursor_moved(subscription)
    writer.journal.discard_cursor(subscription)
    writer.journal.flush_cursors()
    assert writer.written() == []
