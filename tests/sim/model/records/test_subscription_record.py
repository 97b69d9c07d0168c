"""A subscription as the model knows it: what is left to acknowledge, and the order of deliveries."""

import pytest

from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.records.consumer_record import ConsumerRecord
from pulsar_sim.model.records.entry import StoredChunk, StoredEntry
from pulsar_sim.model.records.message_position import MessagePosition
from pulsar_sim.model.records.subscription_record import SubscriptionRecord
from tests.sim.model.scenes import NAME, TopicScene


def given(*entries: str) -> tuple[TopicScene, SubscriptionRecord]:
    scene = TopicScene()
    scene.store_all(*entries)
    return scene, scene.subscription()


@pytest.mark.parametrize(
    ("cumulative", "acknowledged", "left"),
    [
        ((-1, -1, -1), [], [0, 1, 2]),
        ((-1, -1, -1), [(1, 1, 1)], [0, 2]),
        ((1, 0, 0), [], [0, 1, 2]),
        ((1, 1, 0), [], [1, 2]),
        ((1, 1, 0), [(1, 1, 2)], [1]),
        ((1, 1, 2), [], []),
        ((1, 2, 0), [], []),
    ],
)
def test_messages_of_a_batch_that_are_left(
    cumulative: MessagePosition, acknowledged: list[MessagePosition], left: list[int]
) -> None:
    _, subscription = given("a", "abc", "a")
    subscription.cumulative = cumulative
    subscription.acknowledged |= set(acknowledged)
    assert subscription.left_of((1, 1)) == [(1, 1, index) for index in left]
    assert subscription.open_bits((1, 1)) == sum(1 << index for index in left)


def test_everything_is_acknowledged_once_nothing_of_the_log_is_left() -> None:
    scene, subscription = given("a", "ab")
    subscription.acknowledged |= {(1, 0, 0), (1, 1, 0)}
    assert not subscription.everything_acknowledged()
    assert subscription.missing() == [(1, 1, 1)]
    subscription.acknowledged.add((1, 1, 1))
    assert subscription.everything_acknowledged()
    scene.store((1, 5), "a")
    assert not subscription.everything_acknowledged()
    subscription.cumulative = (1, 5, 0)
    assert subscription.everything_acknowledged()
    assert subscription.missing() == []


def test_an_entry_that_becomes_known_late_is_not_acknowledged() -> None:
    scene, subscription = given()
    for position in ((1, 0), (1, 4)):
        scene.store(position, "a")
        subscription.acknowledged.add((*position, 0))
    assert subscription.everything_acknowledged()
    scene.store((1, 2), "a")
    assert not subscription.everything_acknowledged()


def test_what_was_deleted_with_the_topic_is_not_missing() -> None:
    scene, subscription = given("a")
    scene.store((2, 0), "a")
    scene.topic.gone = 1
    assert subscription.missing() == [(2, 0, 0)]
    assert not subscription.everything_acknowledged()
    subscription.acknowledged.add((2, 0, 0))
    assert subscription.everything_acknowledged()
    assert subscription.through((2, 0, 0)) == [(2, 0, 0)]
    assert subscription.all_up_to((2, 0, 0))


def test_everything_up_to_a_message() -> None:
    _, subscription = given("a", "abc", "a")
    assert subscription.through((1, 1, 1)) == [(1, 0, 0), (1, 1, 0), (1, 1, 1)]
    subscription.acknowledged |= {(1, 0, 0), (1, 1, 0)}
    assert subscription.all_up_to((1, 1, 0))
    assert not subscription.all_up_to((1, 1, 1))
    subscription.cumulative = (1, 1, 1)
    assert subscription.all_up_to((1, 1, 1))
    assert not subscription.all_up_to((1, 2, 0))


def test_copied_messages_of_an_entry_are_done_with_it() -> None:
    _, subscription = given("abc", "a")
    subscription.copied |= {(1, 0, 0), (1, 0, 2), (1, 1, 0)}
    subscription.acknowledge_copied((1, 0))
    assert subscription.acknowledged == {(1, 0, 0), (1, 0, 2)}
    assert subscription.left_of((1, 0)) == [(1, 0, 1)]


def test_a_message_whose_earlier_chunk_is_acknowledged_need_not_come() -> None:
    """A message of another producer lies between the chunks, and it is acknowledged cumulatively."""
    scene, subscription = given()
    sent = scene.sent("a")
    for entry_id, number in ((0, 0), (2, 1)):
        scene.topic.stored((1, entry_id), StoredEntry(b"%d" % number, (sent,), StoredChunk(number, 2, "u")))
    scene.store((1, 1), "b")
    assert not subscription.is_incomplete((1, 2))
    subscription.cumulative = (1, 1, 0)
    assert subscription.is_incomplete((1, 2))
    assert (subscription.missing(), subscription.everything_acknowledged()) == ([], True)


# --- the order of deliveries (INV-C3) -----------------------------------------------------------------


def delivered(subscription: SubscriptionRecord, *positions: MessagePosition) -> ConsumerRecord:
    """A consumer that got these messages in this order."""
    consumer = ConsumerRecord("c", subscription, ConsumerSpec(NAME, "s", SubscriptionType.EXCLUSIVE))
    for position in positions:
        deliver(subscription, consumer, position)
    return consumer


def deliver(subscription: SubscriptionRecord, consumer: ConsumerRecord, position: MessagePosition) -> None:
    subscription.check_order(consumer, position)
    subscription.delivered[position] = 1


def test_messages_come_in_order() -> None:
    _, subscription = given("a", "ab", "a")
    delivered(subscription, (1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 2, 0))


@pytest.mark.parametrize("again", [(1, 0, 0), (1, 1, 0)])
def test_a_step_back_has_a_cause(again: MessagePosition) -> None:
    _, subscription = given("a", "a")
    consumer = delivered(subscription, (1, 0, 0), (1, 1, 0))
    with pytest.raises(ViolationError, match="without a cause"):
        deliver(subscription, consumer, again)
    consumer.rewinds = 1
    deliver(subscription, consumer, again)
    with pytest.raises(ViolationError, match="without a cause"):
        deliver(subscription, consumer, (1, 0, 0))


def test_no_message_is_left_out() -> None:
    _, subscription = given("a", "ab", "a")
    consumer = delivered(subscription, (1, 0, 0), (1, 1, 0))
    with pytest.raises(ViolationError, match=r"\(1, 2\) is delivered, \(1, 1, 1\) never was"):
        deliver(subscription, consumer, (1, 2, 0))
    subscription.acknowledged.add((1, 1, 1))
    consumer.rewinds = 1
    deliver(subscription, consumer, (1, 2, 0))


def test_messages_that_were_deleted_may_be_left_out() -> None:
    scene, subscription = given("a")
    scene.store((2, 0), "a")
    scene.topic.gone = 1
    delivered(subscription, (2, 0, 0))
