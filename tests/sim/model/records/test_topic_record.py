"""The log of a topic as the model knows it: entries, chunks that complete a message, and deletion."""

import pytest

from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.records.entry import StoredChunk, StoredEntry
from tests.sim.model.scenes import TopicScene


def chunked(numbers: str, total: int, ledgers: str = "") -> TopicScene:
    """A topic in which the chunks of one message lie in this order, in ledger 1 or those of `ledgers`."""
    scene = TopicScene()
    sent = scene.sent("a")
    for entry_id, number in enumerate(map(int, numbers)):
        ledger = int(ledgers[entry_id]) if ledgers else 1
        chunk = StoredChunk(number, total, "u")
        scene.topic.stored((ledger, entry_id), StoredEntry(b"%d" % number, (sent,), chunk))
    return scene


def test_entries_lie_in_order_whenever_they_become_known() -> None:
    scene = TopicScene()
    for position, keys in (((1, 0), "a"), ((2, 0), "b"), ((1, 5), "ab"), ((2, 1), "a")):
        scene.store(position, keys)
    topic = scene.topic
    assert topic.order == [(1, 0), (1, 5), (2, 0), (2, 1)]
    assert (topic.messages, topic.late) == (5, 1)
    assert topic.log[1, 5].messages[1].message_positions == [(1, 5, 1)]


def test_an_entry_that_is_shown_again_is_the_same() -> None:
    scene = TopicScene()
    entry = scene.store((1, 0), "a")
    scene.topic.stored((1, 0), entry)
    assert (scene.topic.order, scene.topic.messages, entry.positions) == ([(1, 0)], 1, [(1, 0)])
    with pytest.raises(ViolationError, match="holds two different entries"):
        scene.store((1, 0), "a")


def test_a_message_may_lie_in_the_log_twice() -> None:
    scene = TopicScene()
    entry = scene.store((1, 0), "a")
    scene.topic.stored((1, 3), entry)
    assert entry.source.message_positions == [(1, 0, 0), (1, 3, 0)]
    assert scene.topic.expected == 2


@pytest.mark.parametrize(
    ("numbers", "whole"),
    [
        ("012", {2: [0, 1, 2]}),
        ("01", {}),
        ("12", {}),
        ("02", {}),
        ("0012", {3: [1, 2, 3]}),
        ("0112", {3: [0, 1, 3]}),
        ("01012", {4: [2, 3, 4]}),
        ("0122", {2: [0, 1, 2]}),
        ("012012", {2: [0, 1, 2], 5: [3, 4, 5]}),
        ("02012", {4: [2, 3, 4]}),
        ("0212", {}),
    ],
)
def test_the_chunks_that_complete_a_message(numbers: str, whole: dict[int, list[int]]) -> None:
    """Rule CHUNK-01."""
    scene = chunked(numbers, 3)
    topic = scene.topic
    sent = topic.log[topic.order[0]].source
    found = topic.complete_chunks(sent)
    assert found == {(1, last): [(1, each) for each in parts] for last, parts in whole.items()}
    assert sent.message_positions == [(1, last, 0) for last in whole]
    assert topic.messages == len(whole)
    for entry_id in range(len(numbers)):
        parts = whole.get(entry_id, [entry_id])
        assert topic.chunks_of((1, entry_id)) == [(1, each) for each in parts]
        assert bool(topic.log[1, entry_id].messages) == (entry_id in whole)


def test_a_chunk_that_becomes_known_late_completes_the_message() -> None:
    scene = TopicScene()
    sent = scene.sent("a")
    first, second = (StoredEntry(b"%d" % number, (sent,), StoredChunk(number, 2, "u")) for number in (0, 1))
    scene.topic.stored((1, 1), second)
    assert scene.topic.messages == 0
    late = scene.topic.late
    scene.topic.stored((1, 0), first)
    assert sent.message_positions == [(1, 1, 0)]
    assert (scene.topic.messages, scene.topic.late > late) == (1, True)


def test_chunks_are_torn_by_the_deletion_of_the_topic() -> None:
    scene = chunked("01", 2, "12")
    topic = scene.topic
    sent = topic.log[1, 0].source
    assert topic.complete_chunks(sent) == {(2, 1): [(1, 0), (2, 1)]}
    assert not topic.is_torn(sent)
    topic.gone = 1
    assert topic.complete_chunks(sent) == {}
    assert topic.is_torn(sent)


def test_what_was_deleted_is_not_expected() -> None:
    scene = TopicScene()
    scene.store((1, 0), "aa")
    scene.store((2, 0), "a")
    topic = scene.topic
    assert (topic.expected, topic.last_message) == (3, (2, 0))
    topic.gone = 1
    assert (topic.expected, topic.last_message) == (1, (2, 0))
    topic.gone = 2
    assert (topic.expected, topic.last_message) == (0, None)


def test_the_last_message_is_no_chunk_that_completes_nothing() -> None:
    scene = chunked("010", 2)
    assert scene.topic.last_message == (1, 1)
    assert TopicScene().topic.last_message is None


@pytest.mark.parametrize(("ledgers", "gone"), [([], -1), ([1], 1), ([1, 2], 2), ([1, 9], 5)])
def test_a_deletion_that_was_not_durable_may_have_used_no_more_ledgers_than_are_known(
    ledgers: list[int], gone: int
) -> None:
    scene = TopicScene()
    for ledger in ledgers:
        scene.store((ledger, 0), "a")
    scene.topic.gone = 5
    scene.topic.lose_unsaved()
    assert scene.topic.gone == gone
