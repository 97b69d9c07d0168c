"""Messages in chunks that were resent, or that are incomplete."""

import pytest

from pulsar_sansio.model.config import ProducerSpec, SubscriptionType
from pulsar_sim.model.records.entry import StoredChunk, StoredEntry
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.subscription_record import SubscriptionRecord
from pulsar_sim.model.records.topic_record import TopicRecord


@pytest.fixture
def subscription() -> SubscriptionRecord:
    """The subscription of a topic with a message in two chunks, each stored twice: 0, 0, 1, 1."""
    topic = TopicRecord("persistent://public/default/t", deduplication=False)
    producer = ProducerRecord("p", topic, ProducerSpec(topic=topic.name))
    sent = Sent(producer, 0, b"ab", None, {}, 0)
    for entry_id, number in enumerate((0, 0, 1, 1)):
        topic.stored((5, entry_id), StoredEntry(b"%d" % number, (sent,), StoredChunk(number, 2, "uuid")))
    assert sent.message_positions == [(5, 2, 0)]
    return SubscriptionRecord(topic, "s", SubscriptionType.SHARED)


def test_it_is_made_again_of_what_is_left_where_it_is_done_with(subscription: SubscriptionRecord) -> None:
    assert subscription.reassembled((5, 3), (5, 0)) == ()
    subscription.acknowledged.add((5, 2, 0))
    (again,) = subscription.reassembled((5, 3), (5, 0))
    assert again.payload == b"ab"


@pytest.mark.parametrize(
    ("last", "first"),
    [((5, 3), (5, 2)), ((5, 3), (5, 3)), ((5, 3), (5, 7)), ((5, 3), None), ((5, 1), (5, 0))],
)
def test_but_not_without_a_first_and_a_last_chunk(
    subscription: SubscriptionRecord, last: tuple[int, int], first: tuple[int, int] | None
) -> None:
    subscription.acknowledged.add((5, 2, 0))
    assert subscription.reassembled(last, first) == ()


def test_a_copy_of_which_a_chunk_was_let_go_need_not_come(subscription: SubscriptionRecord) -> None:
    """The message has come as another copy."""
    topic = subscription.topic
    sent = topic.log[5, 0].source
    for entry_id, number in ((4, 0), (5, 1)):
        topic.stored((5, entry_id), StoredEntry(b"%d" % number, (sent,), StoredChunk(number, 2, "uuid")))
    assert sent.message_positions == [(5, 2, 0), (5, 5, 0)]
    subscription.useless_chunks.add((5, 4))
    assert not subscription.is_incomplete((5, 5))
    subscription.delivered[5, 2, 0] = 1
    assert subscription.is_incomplete((5, 5))
    assert not subscription.is_incomplete((5, 2))


def test_a_chunk_makes_nothing_with_one_that_was_deleted_with_the_topic(
    subscription: SubscriptionRecord,
) -> None:
    topic = subscription.topic
    sent = topic.log[5, 0].source
    assert not topic.is_torn(sent)
    topic.gone = 5
    topic.stored((6, 0), StoredEntry(b"1", (sent,), StoredChunk(1, 2, "uuid")))
    assert topic.is_torn(sent)
    assert topic.log[6, 0].messages == ()
    assert sent.message_positions == [(5, 2, 0)]
