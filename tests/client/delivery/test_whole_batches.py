"""`take` with `whole_batches`: every kind of queue leaves no part of a batch behind."""

from typing import Any

import pytest

from pulsar_sansio.client.delivery.merged_queue import MergedQueue
from pulsar_sansio.model.config import BatchReceivePolicy
from pulsar_sansio.model.interceptors import ConsumerInterceptor
from tests.client.broker_script import ConsumerScript

from .test_merged_queue import Topic

QUEUES: list[dict[str, Any]] = [
    {},
    {"interceptors": (ConsumerInterceptor(),)},
    {"batch_receive": BatchReceivePolicy(max_messages=4)},
    {"auto_scaled_receiver_queue_size": True},
]


def taken(s: ConsumerScript, limit: int) -> list[tuple[int, int]]:
    messages = s.client.take(s.now, s.consumer, limit, whole_batches=True)
    return [(each.message_id[1], each.batch_index) for each in messages]


@pytest.mark.parametrize("options", QUEUES)
def test_the_last_batch_is_not_divided(options: dict[str, Any]) -> None:
    """TXN-02"""
    s = ConsumerScript(**options)
    s.accept()
    s.message(0)
    s.batch(1, 3)
    s.batch(2, 70)
    s.message(3)
    assert taken(s, 2) == [(0, -1), (1, 0), (1, 1), (1, 2)]
    assert taken(s, 1) == [(2, index) for index in range(70)]
    assert taken(s, 0) == []
    assert taken(s, 3) == [(3, -1)]


@pytest.mark.parametrize("options", QUEUES)
def test_the_rest_of_a_batch_that_was_divided_before(options: dict[str, Any]) -> None:
    s = ConsumerScript(**options)
    s.accept()
    s.batch(0, 70)
    s.message(1)
    assert s.receive().batch_index == 0
    assert taken(s, 1) == [(0, index) for index in range(1, 70)]
    assert taken(s, 1) == [(1, -1)]


def test_batches_of_several_topics() -> None:
    merged = MergedQueue()
    topics = [Topic(name, merged) for name in "ab"]
    for topic in topics:
        topic.add_batch(3)
    assert [message.data for message in merged.take(1, whole_batches=True)] == [b"a0", b"a1", b"a2"]
    assert [message.data for message in merged.take(4, whole_batches=True)] == [b"b0", b"b1", b"b2"]
