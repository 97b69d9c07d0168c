"""Changes of a key that two partitions have: every explanation is followed, and no other."""

from pulsar_sim.model.compaction import KeyValue
from pulsar_sim.model.table_view_history import TableViewHistory

END = (9, 9)


def said(*values: bytes | None) -> list[KeyValue]:
    return [((0, number, 0), value) for number, value in enumerate(values)]


def record_change(history: TableViewHistory, value: bytes | None, *partitions: list[KeyValue]) -> bool:
    return history.record_change("key", value, dict(enumerate(partitions)), [END] * len(partitions))


def test_of_one_partition_each_message_is_heard_once() -> None:
    history = TableViewHistory({})
    assert record_change(history, b"a", said(b"a", b"b", b"a"))
    assert record_change(history, b"a", said(b"a", b"b", b"a"))
    assert not record_change(history, b"a", said(b"a", b"b", b"a"))


def test_what_two_partitions_say_may_be_of_either() -> None:
    first, second = said(b"a", None, b"b"), said(None)
    history = TableViewHistory({})
    assert record_change(history, None, first, second), "which of the two is not known"
    assert record_change(history, b"a", first, second), "it was the second"


def test_when_it_is_known_which_it_was_the_other_was_not() -> None:
    first, second = said(b"a", None), said(None)
    history = TableViewHistory({})
    for value in (None, b"a", None):
        assert record_change(history, value, first, second)
    assert not record_change(history, None, first, second), "each says it once"


def test_what_was_not_read_is_not_heard() -> None:
    history = TableViewHistory({})
    messages = {0: said(b"a", b"b")}
    assert not history.record_change("key", b"b", messages, [(0, 0)])
    history = TableViewHistory({})
    assert history.record_change("key", b"b", messages, [(0, 1)])


def test_it_begins_with_what_was_known_of_either() -> None:
    first, second = said(b"a", b"b"), said(b"a")
    history = TableViewHistory({"key": [{0: (0, 0, 0)}, {1: (0, 0, 0)}]})
    assert record_change(history, b"b", first, second)
    assert record_change(history, b"a", first, second), "of the other"
    assert not record_change(history, b"a", first, second)


def test_a_way_that_has_come_further_everywhere_is_dropped() -> None:
    history = TableViewHistory({"key": [{0: (0, 1, 0)}, {0: (0, 0, 0)}, {0: (0, 0, 0), 1: (0, 0, 0)}]})
    assert history.explanations("key") == [{0: (0, 0, 0)}]
