"""Acknowledgements to a consumer of several topics go to the topics of the messages."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Deliverable,
)
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import (
    LocalProtocolError,
)
from pulsar_sansio.model.message_id import MessageId, TopicMessageId
from tests.client.topics_script import PREFIX, partitioned, ready

PARTS = ["p-partition-0", "p-partition-1", "p-partition-2"]


def test_a_message_is_acknowledged_where_it_came_from() -> None:
    """Rules MSG-05, MULTI-16 and MULTI-25."""
    world = ready()
    world.deliver("a", b"1")
    world.deliver("b", b"2")
    first, second = world.receive_all()
    world.acknowledge(second)
    world.acknowledge(first)
    assert world.acknowledged() == [("b", [(101, 0)]), ("a", [(100, 0)])]


@pytest.mark.parametrize("together", [list, lambda messages: messages], ids=["a list", "as they came"])
def test_messages_of_several_topics_are_acknowledged_at_once(together: Any) -> None:
    world = ready(acknowledgement_group_time=0.1)
    world.deliver("a", b"1", b"2")
    world.deliver("b", b"3")
    world.acknowledge(together(world.take()))
    world.pass_time(1.0)
    assert world.acknowledged() == [("a", [(100, 0), (100, 1)]), ("b", [(101, 0)])]


def test_an_id_needs_its_topic() -> None:
    """Rule MSG-05."""
    world = ready()
    world.deliver("b", b"1")
    message_id = world.receive().message_id
    with pytest.raises(LocalProtocolError, match=r"TopicMessageId\(topic, id\) does"):
        world.acknowledge(message_id)
    world.acknowledge(TopicMessageId("b", message_id))
    assert world.acknowledged() == [("b", [(101, 0)])]
    world.deliver("a", b"1")
    world.acknowledge([TopicMessageId(PREFIX + "a", MessageId(100, 0))])
    assert world.acknowledged() == [("a", [(100, 0)])]


def test_an_id_of_a_partitioned_topic_needs_only_its_partition() -> None:
    world = partitioned()
    for name in PARTS:
        world.deliver(name, b"1")
    world.acknowledge(MessageId(102, 0, partition=2))
    world.acknowledge(TopicMessageId("p", MessageId(101, 0, partition=1)))
    world.acknowledge(TopicMessageId("p-partition-0", MessageId(100, 0, partition=0)))
    assert world.acknowledged() == [
        ("p-partition-2", [(102, 0)]),
        ("p-partition-1", [(101, 0)]),
        ("p-partition-0", [(100, 0)]),
    ]
    for wrong in (MessageId(7, 7), MessageId(7, 7, partition=3), MessageId(7, 7, partition=10_000_000)):
        with pytest.raises(LocalProtocolError):
            world.acknowledge(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        TopicMessageId("c", MessageId(1, 1)),
        TopicMessageId("bad//name", MessageId(1, 1)),
        TopicMessageId("a", "1:1"),  # type: ignore[arg-type]
        "text",
        7,
        [7],
    ],
)
def test_what_is_of_no_topic_of_these_changes_nothing(wrong: Any) -> None:
    """INV-C7: one wrong id in a list leaves the right ones unacknowledged. Rule ERR-04."""
    world = ready()
    world.deliver("a", b"1")
    message = world.receive()
    with pytest.raises(LocalProtocolError):
        world.acknowledge([message, wrong])
    with pytest.raises(LocalProtocolError):
        world.script.client.negative_acknowledge(world.script.now, world.handle, [message, wrong])
    world.pass_time(70.0)
    assert world.said() == []


def test_cumulative_is_for_the_one_topic() -> None:
    """A cumulative acknowledgement goes to the one topic of its message (MULTI-17)."""
    world = ready()
    world.deliver("a", b"1", b"2")
    world.deliver("b", b"3")
    messages = world.receive_all()
    world.script.client.acknowledge_cumulative(world.script.now, world.handle, messages[1])
    ((kind, topic, ack),) = world.said()
    assert (kind, topic, ack.ack_type, ack.message_ids[0][:2]) == ("ACK", "a", 1, (100, 1))
    shared = ready(subscription_type=SubscriptionType.SHARED)
    shared.deliver("a", b"1")
    with pytest.raises(LocalProtocolError, match="not possible on a shared"):
        shared.script.client.acknowledge_cumulative(shared.script.now, shared.handle, shared.receive())


def test_messages_are_negatively_acknowledged_where_they_came_from() -> None:
    """Each negative acknowledgement goes to its topic (MULTI-24)."""
    world = ready(subscription_type=SubscriptionType.SHARED, negative_acknowledgement_delay=1.0)
    world.deliver("a", b"1")
    world.deliver("b", b"2")
    world.script.client.negative_acknowledge(world.script.now, world.handle, world.take())
    world.pass_time(2.0)
    asked = world.said("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    assert [(topic, [each.ledgerId for each in command.message_ids]) for _, topic, command in asked] == [
        ("a", [100]),
        ("b", [101]),
    ]


def test_everything_again_is_everything_of_all_topics() -> None:
    """A redelivery empties the queues, and messages that arrive after it count (MULTI-27)."""
    world = ready()
    world.deliver("a", b"1")
    world.deliver("b", b"2")
    world.script.client.redeliver_unacknowledged(world.script.now, world.handle)
    assert [topic for _, topic, _ in world.said("REDELIVER_UNACKNOWLEDGED_MESSAGES")] == ["a", "b"]
    assert world.script.client.available(world.handle) == 0
    assert world.receive() is None


def test_after_everything_went_back_the_application_is_told_of_the_next_message() -> None:
    """The application did not take the earlier messages."""
    world = ready(subscription_type=SubscriptionType.SHARED)
    world.deliver("a", b"1")
    world.told()
    world.script.client.redeliver_unacknowledged(world.script.now, world.handle)
    world.deliver("a", b"1")
    assert world.told() == [Deliverable(world.handle)]
