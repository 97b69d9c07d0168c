"""The entries of a task: what is in the topic after attempts that ended anywhere, on both brokers.

Attempts run in this process, over links of their own; an attempt that "dies" has its sockets closed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from pulsar_sansio import OutgoingMessage
from pulsar_sansio import client_outputs as outputs
from pulsar_spark.errors import DeduplicationOff, ProducerBusy
from pulsar_spark.link import Link
from pulsar_spark.writing import producing
from pulsar_spark.writing.producing import Limits, Numbered, TaskProducer, WriteFailed, Written
from tests.spark.scenes.brokers import SparkBroker
from tests.spark.scenes.reading_back import entries_of, keep, values_of
from tests.spark.scenes.serving import served

SMALL = Limits(batch_messages=4, batch_bytes=1000)
"""Entries of four rows."""


def rows(count: int) -> list[bytes]:
    return [b"row %d" % number for number in range(count)]


@contextmanager
def task(broker: SparkBroker, numbered: Numbered | None, limits: Limits = SMALL) -> Iterator[TaskProducer]:
    """One attempt; its connection is cut at the end, whatever it has come to."""
    link = Link(broker.url, create_topics=True)
    try:
        yield TaskProducer(link, limits, numbered)
    finally:
        link.drop()


def write(task: TaskProducer, topic: str, messages: list[bytes]) -> Written:
    task.open([topic])
    task.send(topic, messages, [len(each) for each in messages])
    return task.finish()


def test_at_least_once_needs_no_name_and_writes_again(broker: SparkBroker, topic: str) -> None:
    for _ in range(2):
        with task(broker, None) as attempt:
            written = write(attempt, topic, rows(10))
        assert (written.rows, written.entries, written.known) == (10, 3, 0)
    assert values_of(broker, topic) == rows(10) * 2
    assert entries_of(broker, topic) == [4, 4, 2] * 2


def test_an_attempt_after_a_complete_one_changes_nothing(
    broker: SparkBroker, deduplicated_topic: str
) -> None:
    for known in (0, 10):
        with task(broker, Numbered("q-0", 7)) as attempt:
            written = write(attempt, deduplicated_topic, rows(10))
        assert (written.rows, written.known) == (10, known)
    assert values_of(broker, deduplicated_topic) == rows(10)
    assert entries_of(broker, deduplicated_topic) == [1, 3, 4, 2]


@pytest.mark.parametrize("sent", [1, 2, 4, 5, 9])
def test_an_attempt_goes_on_where_another_died(
    broker: SparkBroker, deduplicated_topic: str, sent: int
) -> None:
    with task(broker, Numbered("q-0", 0)) as first:
        first.open([deduplicated_topic])
        first.send(deduplicated_topic, rows(sent), [5] * sent)
        for each in first._destinations.values():
            first.settle([each])
    with task(broker, Numbered("q-0", 0)) as second:
        written = write(second, deduplicated_topic, rows(10))
    assert written.rows == 10
    assert values_of(broker, deduplicated_topic) == rows(10)


@pytest.mark.parametrize("known", range(9))
def test_no_entry_straddles_what_another_way_of_cutting_left(
    our_broker: SparkBroker, deduplicated_topic: str, known: int
) -> None:
    """The limit of a batch changes, as with another batchMaxMessages between two runs of a query."""
    with task(our_broker, Numbered("q-0", 3), Limits(batch_messages=1)) as first:
        write(first, deduplicated_topic, rows(known))
    with task(our_broker, Numbered("q-0", 3), SMALL) as second:
        written = write(second, deduplicated_topic, rows(12))
    assert written.known == known
    assert values_of(our_broker, deduplicated_topic) == rows(12)


def test_a_later_batch_follows_the_earlier_one(broker: SparkBroker, deduplicated_topic: str) -> None:
    for batch in range(3):
        with task(broker, Numbered("q-0", batch)) as attempt:
            assert write(attempt, deduplicated_topic, rows(6)).known == 0
    assert values_of(broker, deduplicated_topic) == rows(6) * 3


def test_an_earlier_batch_than_the_broker_has_is_refused(
    our_broker: SparkBroker, deduplicated_topic: str
) -> None:
    with task(our_broker, Numbered("q-0", 5)) as later:
        write(later, deduplicated_topic, rows(2))
    with (
        task(our_broker, Numbered("q-0", 4)) as earlier,
        pytest.raises(WriteFailed, match=r"batch 5 from .*batch 4"),
    ):
        write(earlier, deduplicated_topic, rows(2))
    assert values_of(our_broker, deduplicated_topic) == rows(2)


def test_without_deduplication_one_row_is_written_and_the_error_says_what_to_do(
    broker: SparkBroker, topic: str
) -> None:
    with (
        task(broker, Numbered("q-0", 0)) as attempt,
        pytest.raises(DeduplicationOff, match="set-deduplication public/default --enable") as caught,
    ):
        write(attempt, topic, rows(10))
    assert topic in str(caught.value)
    assert values_of(broker, topic) == rows(1)


def test_deduplication_that_was_switched_off_is_noticed_by_the_next_batch(broker: SparkBroker) -> None:
    namespace = f"public/off-{time.time_ns()}"
    topic = f"persistent://{namespace}/topic"
    broker.admin.create_namespace(namespace)
    broker.admin.set_namespace_policy(namespace, "deduplication", True)
    with task(broker, Numbered("q-0", 0)) as attempt:
        write(attempt, topic, rows(5))
    broker.admin.set_namespace_policy(namespace, "deduplication", False)
    broker.admin.unload(topic)
    with task(broker, Numbered("q-0", 1)) as attempt, pytest.raises(DeduplicationOff):
        write(attempt, topic, rows(5))


def test_a_name_that_is_taken_stays_so_while_its_producer_lives(
    broker: SparkBroker, deduplicated_topic: str
) -> None:
    impatient = Limits(batch_messages=4, busy_timeout=0.3)
    with task(broker, Numbered("q-0", 0)) as first:
        first.open([deduplicated_topic])
        first.send(deduplicated_topic, rows(4), [5] * 4)
        with (
            served(first.link),
            task(broker, Numbered("q-0", 0), impatient) as second,
            pytest.raises(ProducerBusy, match=r"q-0.*producerBusyTimeoutMs"),
        ):
            second.open([deduplicated_topic])
        first.finish()
    assert values_of(broker, deduplicated_topic) == rows(4)


def test_a_name_that_is_taken_is_waited_for(broker: SparkBroker, deduplicated_topic: str) -> None:
    with task(broker, Numbered("q-0", 0)) as first, task(broker, Numbered("q-0", 0)) as second:
        first.open([deduplicated_topic])
        first.send(deduplicated_topic, rows(4), [5] * 4)
        with served(first.link, dies_after=0.5):
            written = write(second, deduplicated_topic, rows(10))
    assert written.rows == 10
    assert values_of(broker, deduplicated_topic) == rows(10)


def test_an_attempt_that_another_has_overtaken_leaves_its_rows_alone(
    broker: SparkBroker, deduplicated_topic: str
) -> None:
    """The first is silent, so the broker takes it for dead; the second writes with other cuts; the first
    wakes up. Whether it ends well or not, the rows are there once."""
    with task(broker, Numbered("q-0", 0)) as first:
        first.open([deduplicated_topic])
        first.send(deduplicated_topic, rows(6), [5] * 6)
        with task(broker, Numbered("q-0", 0), Limits(batch_messages=3)) as second:
            write(second, deduplicated_topic, rows(10))
        with suppress(WriteFailed):
            first.send(deduplicated_topic, rows(10)[6:], [5] * 4)
            assert first.finish().rows == 10
    assert values_of(broker, deduplicated_topic) == rows(10)


def test_an_attempt_that_comes_back_to_more_sends_no_entry_that_straddles_it(
    our_broker: SparkBroker, deduplicated_topic: str
) -> None:
    """Nothing was unconfirmed when its connection was lost; another attempt stored one row more."""
    with task(our_broker, Numbered("q-0", 0)) as attempt:
        attempt.open([deduplicated_topic])
        attempt.send(deduplicated_topic, rows(6), [5] * 6)
        (destination,) = attempt._destinations.values()
        attempt.settle([destination])
        destination.on_output(outputs.Attached(destination._handle, 4))
        with pytest.raises(WriteFailed, match="another attempt of this task has stored rows up to id 4"):
            attempt.send(deduplicated_topic, rows(9)[6:], [5] * 3)
    assert values_of(our_broker, deduplicated_topic) == rows(4)


def test_an_unloaded_topic_is_come_back_to(broker: SparkBroker, deduplicated_topic: str) -> None:
    keep(broker, deduplicated_topic)
    with task(broker, Numbered("q-0", 0)) as attempt:
        attempt.open([deduplicated_topic])
        attempt.send(deduplicated_topic, rows(30), [6] * 30)
        broker.admin.unload(deduplicated_topic)
        attempt.send(deduplicated_topic, rows(60)[30:], [6] * 30)
        assert attempt.finish().rows == 60
    assert values_of(broker, deduplicated_topic) == rows(60)


def test_rows_with_more_than_a_value(broker: SparkBroker, deduplicated_topic: str) -> None:
    message = OutgoingMessage(b"v", key="k", properties={"a": "b"}, event_time=5)
    for _ in range(2):
        with task(broker, Numbered("q-0", 0)) as attempt:
            attempt.open([deduplicated_topic])
            attempt.send(deduplicated_topic, [message, OutgoingMessage(None, key="gone"), b"bare"], [4, 4, 4])
            attempt.finish()
    assert values_of(broker, deduplicated_topic) == [b"v", b"", b"bare"]


def test_no_more_is_unconfirmed_than_allowed(our_broker: SparkBroker, topic: str) -> None:
    limits = Limits(batch_messages=10, in_flight=25)
    with task(our_broker, None, limits) as attempt:
        attempt.open([topic])
        for _ in range(20):
            attempt.send(topic, rows(10), [6] * 10)
            assert attempt._rows_in_flight <= 25
        assert attempt.finish().rows == 200


@pytest.mark.parametrize("numbered", [None, Numbered("q-0", 0)])
def test_what_waits_for_many_topics_together_is_bounded(
    our_broker: SparkBroker,
    deduplicated_topic: str,
    monkeypatch: pytest.MonkeyPatch,
    numbered: Numbered | None,
) -> None:
    monkeypatch.setattr(producing, "MAX_WAITING", 30 * (producing.ROW + 100))
    topics = [f"{deduplicated_topic}-{number}" for number in range(8)]
    sent = [b"%0100d" % number for number in range(10)]
    with task(our_broker, numbered, Limits()) as attempt:
        attempt.open(topics)
        for row in sent:
            for topic in topics:
                attempt.send(topic, [row], [100])
                assert sum(len(each.waiting) for each in attempt._destinations.values()) <= 30
        assert attempt.finish().rows == 80
        assert attempt._waiting == 0
    for topic in topics:
        assert values_of(our_broker, topic) == sent
        assert len(entries_of(our_broker, topic)) in (3, 4)


def test_a_message_that_is_too_large_names_the_topic(our_broker: SparkBroker, topic: str) -> None:
    with task(our_broker, None) as attempt, pytest.raises(WriteFailed, match=f"{topic}.*payload has"):
        write(attempt, topic, [bytes(6 * 2**20)])


def test_a_terminated_topic_fails_the_write(broker: SparkBroker, topic: str) -> None:
    broker.admin.create_topic(topic)
    broker.admin.terminate(topic)
    with task(broker, None) as attempt, pytest.raises(WriteFailed, match=topic):
        write(attempt, topic, rows(3))
