"""The commit of a batch: its tasks' transactions, and drivers that end anywhere in it, on both brokers.

Tasks and drivers run in this process, over links of their own; one that ends has its sockets closed.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from pulsar_sansio import OutgoingMessage, TransactionId
from pulsar_spark.errors import CommitTooLate, CommitUnknown
from pulsar_spark.link import Link, wall_time
from pulsar_spark.writing import transactions
from pulsar_spark.writing.commit_log import CommitDecision, Stage, commit_log, decision_of
from pulsar_spark.writing.producing import Limits, TaskProducer, WriteFailed
from pulsar_spark.writing.transactions import BatchEnd, TaskTransaction, begin, log_topic, release
from tests.spark.scenes.brokers import OurBroker, SparkBroker
from tests.spark.scenes.reading_back import entries_of, values_of
from tests.spark.scenes.sending import send

TIMEOUT = 60.0
"""Seconds: the timeout of the transactions."""

SMALL = Limits(batch_messages=4)

PLACE = "persistent://public/default/"


class Scene:
    """A query that writes to one topic in transactions. Its name is the topic's."""

    def __init__(self, broker: SparkBroker, topic: str) -> None:
        self.broker = broker
        self.topic = topic
        self.owner = topic.rpartition("/")[2]
        self.log_topic = log_topic(PLACE, "spark", self.owner)
        self._links: list[Link] = []

    def link(self, **options: Any) -> Link:
        made = Link(self.broker.url, create_topics=True, memory_limit=None, transactions=True, **options)
        self._links.append(made)
        return made

    def end(self) -> None:
        for each in self._links:
            each.drop()

    def attempt(self, *rows: str, batch: int = 0) -> TaskTransaction:
        """An attempt of a task that has written its rows."""
        link = self.link()
        transaction = begin(link, self.owner, batch, TIMEOUT, 30.0)
        task = TaskProducer(link, SMALL, None, transaction.id)
        messages = [OutgoingMessage(each.encode(), transaction=transaction.id) for each in rows]
        task.open([self.topic])
        task.send(self.topic, messages, [len(each) for each in rows])
        assert task.finish().rows == len(rows)
        release(link, transaction)
        link.drop()
        return transaction

    def driver(self, *found: TaskTransaction, kind: type[BatchEnd] = BatchEnd) -> BatchEnd:
        topic = partial(log_topic, PLACE, "spark")
        return kind(self.link(), topic, found, TIMEOUT, 30.0)

    def values(self) -> list[bytes]:
        return values_of(self.broker, self.topic)

    def decide(self, *decisions: CommitDecision) -> None:
        """Write the decisions of an earlier driver."""
        link = self.link()
        with commit_log(link, self.log_topic, 30.0) as log:
            for each in decisions:
                log.write(each)

    def last(self) -> CommitDecision | None:
        link = self.link()
        with commit_log(link, self.log_topic, 30.0) as log:
            return log.last


@pytest.fixture
def scene(broker: SparkBroker, topic: str) -> Iterator[Scene]:
    made = Scene(broker, topic)
    yield made
    made.end()


@pytest.fixture
def ours(our_broker: SparkBroker, topic: str) -> Iterator[Scene]:
    made = Scene(our_broker, topic)
    yield made
    made.end()


class DriverEnds(Exception):
    """The driver is killed here."""


class EndsAfterDeciding(BatchEnd):
    commits = 0
    """Transactions that it has committed by then."""

    def _outcomes(self, ids: Sequence[TransactionId]) -> tuple[transactions.Errors, transactions.Errors]:
        super()._outcomes(ids[: self.commits])
        self._link.drop()
        raise DriverEnds


class EndsAfterOne(EndsAfterDeciding):
    commits = 1


class EndsAfterAll(EndsAfterDeciding):
    commits = 2


# --- a batch without failures --------------------------------------------------------------------------


def test_rows_are_visible_when_the_driver_has_committed(scene: Scene) -> None:
    """TXN-01"""
    tasks = [scene.attempt("a", "b", "c", "d", "e"), scene.attempt("f")]
    assert scene.values() == []
    assert scene.driver(*tasks).commit()
    assert sorted(scene.values()) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert sorted(entries_of(scene.broker, scene.topic)) == [1, 1, 4]
    assert scene.last() == CommitDecision(0, Stage.DONE)


def test_nothing_of_an_aborted_batch_is_ever_visible(scene: Scene) -> None:
    """TXN-01: what comes later is not held up by it."""
    scene.driver(scene.attempt("a"), scene.attempt("b")).abort()
    assert scene.driver(scene.attempt("c")).commit()
    assert scene.values() == [b"c"]


def test_batches_follow_each_other(scene: Scene) -> None:
    for batch in range(3):
        assert scene.driver(scene.attempt(str(batch), batch=batch)).commit()
    assert scene.values() == [b"0", b"1", b"2"]
    assert scene.last() == CommitDecision(2, Stage.DONE)


def test_the_log_keeps_its_last_decision_only(ours: Scene) -> None:
    ours.decide(*(CommitDecision(batch, Stage.DONE) for batch in range(20)))
    link = ours.link()
    with commit_log(link, ours.log_topic, 30.0) as log:
        where = log._hold.where(30.0)
        assert where.mark_delete == (where.last[0], where.last[1] - 1)
        assert log.last == CommitDecision(19, Stage.DONE)


# --- batches that are repeated ---------------------------------------------------------------------------


def test_a_batch_that_is_repeated_changes_nothing(scene: Scene) -> None:
    assert scene.driver(scene.attempt("a", batch=4)).commit()
    assert not scene.driver(scene.attempt("a", batch=4), scene.attempt("b", batch=4)).commit()
    assert scene.driver(scene.attempt("c", batch=5)).commit()
    assert scene.values() == [b"a", b"c"]


def test_the_log_outlasts_its_topic_s_broker(scene: Scene) -> None:
    """The topic is unloaded, and a real Pulsar begins another ledger."""
    for batch in range(2):
        assert scene.driver(scene.attempt(str(batch), batch=batch)).commit()
        scene.broker.admin.unload(scene.log_topic)
    assert not scene.driver(scene.attempt("1", batch=1)).commit()
    assert scene.values() == [b"0", b"1"]


@pytest.mark.parametrize("kind", [EndsAfterDeciding, EndsAfterOne, EndsAfterAll])
def test_a_driver_that_ends_in_a_commit_has_it_finished_by_the_next(
    scene: Scene, kind: type[BatchEnd]
) -> None:
    """The rows of the repeated batch are dropped, whatever they are: those that were decided are there."""
    with pytest.raises(DriverEnds):
        scene.driver(scene.attempt("a"), scene.attempt("b"), kind=kind).commit()
    assert not scene.driver(scene.attempt("b"), scene.attempt("another a")).commit()
    assert sorted(scene.values()) == [b"a", b"b"]
    assert scene.last() == CommitDecision(0, Stage.DONE)


def test_a_driver_that_ends_before_the_decision_has_decided_nothing(scene: Scene) -> None:
    lost = scene.attempt("a")
    assert scene.driver(scene.attempt("a")).commit()
    link = scene.link()
    link.call(
        lambda now: link.client.end_released_transaction(now, lost.id, commits=False), 30.0, "its timeout"
    )
    assert scene.values() == [b"a"]


def test_an_abort_leaves_what_was_decided(scene: Scene) -> None:
    """Spark calls abort where the commit has failed."""
    tasks = scene.attempt("a"), scene.attempt("b")
    with pytest.raises(DriverEnds):
        scene.driver(*tasks, kind=EndsAfterOne).commit()
    scene.driver(*tasks).abort()
    assert not scene.driver(scene.attempt("a"), scene.attempt("b")).commit()
    assert sorted(scene.values()) == [b"a", b"b"]


def test_a_checkpoint_older_than_the_log_is_refused(ours: Scene) -> None:
    assert ours.driver(ours.attempt("a", batch=5)).commit()
    with pytest.raises(WriteFailed, match="batch 5 is committed, and this is batch 4"):
        ours.driver(ours.attempt("b", batch=4)).commit()


# --- what cannot be known --------------------------------------------------------------------------------


def test_a_decision_that_is_older_than_the_timeout_may_be_carried_out_or_not(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator forgets a transaction that has ended: after the timeout, either way."""
    with pytest.raises(DriverEnds):
        scene.driver(scene.attempt("a"), scene.attempt("b"), kind=EndsAfterAll).commit()
    again = scene.attempt("a")
    monkeypatch.setattr(transactions, "wall_time", lambda: wall_time() + int(TIMEOUT * 1000))
    for _ in range(2):
        with pytest.raises(CommitUnknown, match=rf"batch 0: an earlier run ended .* {scene.log_topic}"):
            scene.driver(again).commit()
    scene.driver(again).abort()
    assert sorted(scene.values()) == [b"a", b"b"]


def test_a_batch_that_took_too_long_is_not_committed(ours: Scene) -> None:
    late = replace(ours.attempt("b"), expires=wall_time() + int(TIMEOUT * 1000 / 5))
    tasks = ours.attempt("a"), late
    with pytest.raises(CommitTooLate, match=r"transactionTimeoutMs.*nothing of it is visible"):
        ours.driver(*tasks).commit()
    ours.driver(*tasks).abort()
    assert ours.values() == []
    assert ours.last() is None


def test_a_transaction_that_was_aborted_by_another_tears_the_batch(scene: Scene) -> None:
    """Each later attempt says so, too: nothing is added to what is there."""
    tasks = scene.attempt("a"), scene.attempt("b")
    link = scene.link()
    link.call(
        lambda now: link.client.end_released_transaction(now, tasks[1].id, commits=False), 30.0, "an abort"
    )
    for found in (tasks, (scene.attempt("a"), scene.attempt("b"))):
        with pytest.raises(CommitUnknown, match=r"coordinator had aborted a part of it.* Delete persistent:"):
            scene.driver(*found).commit()
        scene.driver(*found).abort()
    assert scene.values() == [b"a"]


def test_a_last_decision_that_was_acknowledged_is_no_first_commit(ours: Scene) -> None:
    assert ours.driver(ours.attempt("a")).commit()
    with commit_log(ours.link(), ours.log_topic, 30.0) as log:
        assert log._position is not None
        log._hold.acknowledge_up_to(log._position[:2])
    with pytest.raises(CommitUnknown, match="is acknowledged, by a limit on the age"):
        ours.driver(ours.attempt("a")).commit()


def test_two_drivers_cannot_have_the_log_at_the_same_time(ours: Scene) -> None:
    link = ours.link()
    other = ours.link(operation_timeout=0.5)
    with commit_log(link, ours.log_topic, 30.0):
        with (
            pytest.raises(WriteFailed, match=r"commit log .* cannot be used"),
            commit_log(other, ours.log_topic, 1.0),
        ):
            pass


def test_another_message_in_the_log_is_an_error(ours: Scene) -> None:
    send(ours.broker.url, ours.log_topic, [b"hello"])
    with pytest.raises(WriteFailed, match="which is for decisions of commits"):
        ours.driver(ours.attempt("a")).commit()


@pytest.mark.parametrize(
    "payload", [b"hello", b"{}", b"[]", b"\xff", b'{"v": 2}', CommitDecision(1, Stage.DONE).encode()[:-9]]
)
def test_what_is_no_decision_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"decision|Expecting|Unterminated"):
        decision_of(payload)


def test_a_decision_is_read_as_it_was_written() -> None:
    decision = CommitDecision(7, Stage.DECIDED, (TransactionId(0, 5), TransactionId(15, 2**40)), 123)
    assert decision_of(decision.encode()) == decision


# --- tasks -----------------------------------------------------------------------------------------------


def test_an_attempt_fails_with_its_connection(ours: Scene) -> None:
    """The broker may have stored what was not confirmed. Sent again, it would be there twice."""
    link = ours.link()
    transaction = begin(link, ours.owner, 0, TIMEOUT, 30.0)
    task = TaskProducer(link, SMALL, None, transaction.id)
    task.open([ours.topic])
    rows = [OutgoingMessage(b"%d" % row, transaction=transaction.id) for row in range(8)]
    task.send(ours.topic, rows, [1] * 8)
    ours.broker.admin.unload(ours.topic)
    with pytest.raises(WriteFailed, match=f"{ours.topic} failed: .*until the topic is unloaded"):
        for _ in range(100):
            task.send(ours.topic, rows, [1] * 8)
    task.abandon()
    transactions.abort_quietly(link, transaction, 30.0)
    assert ours.values() == []


def test_a_connection_that_is_lost_between_entries_does_no_harm(ours: Scene) -> None:
    link = ours.link()
    transaction = begin(link, ours.owner, 0, TIMEOUT, 30.0)
    task = TaskProducer(link, SMALL, None, transaction.id)
    task.open([ours.topic])
    rows = [OutgoingMessage(b"%d" % row, transaction=transaction.id) for row in range(4)]
    for _ in range(2):
        task.send(ours.topic, rows, [1] * 4)
        task.confirm()
        ours.broker.admin.unload(ours.topic)
        time.sleep(0.05)
        link.serve(0.1)
    assert task.finish().rows == 8
    release(link, transaction)
    assert ours.driver(transaction).commit()
    assert len(ours.values()) == 8


def test_every_topic_is_a_part_of_the_transaction_before_the_first_row(ours: Scene) -> None:
    link = ours.link()
    transaction = begin(link, ours.owner, 0, TIMEOUT, 30.0)
    task = TaskProducer(link, SMALL, None, transaction.id)
    topics = [f"{ours.topic}-{number}" for number in range(20)]
    task.open(topics)
    machine = link.client._services.transactions.open[transaction.id]
    assert all(machine.has_topic(each) for each in topics)


def test_a_cluster_without_transactions_says_so(spark_environment: None) -> None:
    broker = OurBroker("--set", "transactionCoordinatorEnabled=false")
    link = Link(broker.url, transactions=True)
    try:
        with pytest.raises(WriteFailed, match=r"cannot be opened: .*transactionCoordinatorEnabled"):
            begin(link, "q", 0, TIMEOUT, 30.0)
    finally:
        link.drop()
        broker.stop()
