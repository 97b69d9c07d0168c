"""A producer as the model knows it: the messages that may be pending, on a topic and on a partitioned one."""

from typing import Any

import pytest

from pulsar_sansio.model.config import BatchingPolicy, ProducerSpec
from pulsar_sim.model.partitioned_topics import PartitionedTopic
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.topic_record import TopicRecord

NAME = "persistent://public/default/t"


def given(*counts: int, wrong: tuple[int, ...] = (), **spec: Any) -> ProducerRecord:
    """A producer of a topic; with `counts`, of a partitioned topic that had these numbers of partitions."""
    topic: TopicRecord | PartitionedTopic
    if counts:
        topic = PartitionedTopic(NAME, deduplication=False)
        topic.counts += counts
        topic.wrong_counts += wrong
    else:
        topic = TopicRecord(NAME, deduplication=False)
    return ProducerRecord("p", topic, ProducerSpec(topic=NAME, **spec))


@pytest.mark.parametrize(
    ("counts", "wrong", "each", "together", "window", "least"),
    [
        ((), (), 10, 100, 10, 10),
        ((2,), (), 10, 100, 20, 10),
        ((4,), (), 10, 20, 20, 5),
        ((4,), (), 10, 2, 4, 1),
        ((2, 4), (), 10, 20, 40, 5),
        ((2,), (4,), 10, 20, 40, 10),
    ],
)
def test_the_window(
    counts: tuple[int, ...], wrong: tuple[int, ...], each: int, together: int, window: int, least: int
) -> None:
    """A client that believed fewer partitions gave each a larger share of the limit of all."""
    record = given(
        *counts, wrong=wrong, max_pending_messages=each, max_pending_messages_across_partitions=together
    )
    assert (record.window, record.least_window) == (window, least)


def pending(record: ProducerRecord, *sent_at: int) -> None:
    for ticket, moment in enumerate(sent_at):
        sent = Sent(record, ticket, b"x", None, {}, 0)
        sent.sent_at = moment
        record.pending[ticket] = sent


def test_messages_from_before_the_partitions_were_known_count_towards_another_window() -> None:
    record = given(2, max_pending_messages=3)
    pending(record, 10, 20, 21, 30)
    assert record.late_pending == 1
    record.ready_at = 20
    assert record.late_pending == 2
    plain = given(max_pending_messages=3)
    pending(plain, 10, 20)
    assert plain.late_pending == 2


@pytest.mark.parametrize(
    ("batching", "by_key"), [(None, False), (BatchingPolicy(), False), (BatchingPolicy(by_key=True), True)]
)
def test_batches_by_key_are_in_order_per_key(batching: BatchingPolicy | None, by_key: bool) -> None:
    assert given(batching=batching).by_key == by_key


def test_there_is_one_lane_for_each_topic() -> None:
    record = given()
    assert isinstance(record.topic, TopicRecord)
    lane = record.lane(record.topic)
    assert record.lane(record.topic) is lane
    other = TopicRecord(f"{NAME}-2", deduplication=False)
    assert record.lane(other).topic is other
    assert list(record.lanes) == [NAME, other.name]
