"""One consumer of several topics: receiving, attachment and ends."""

import pytest

from pulsar_sansio.client.outputs import (
    ActiveChanged,
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
    RequestDone,
    RequestFailed,
    TopicLeft,
)
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import (
    ClosedError,
    ConsumerBusy,
    TopicNotFound,
)
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.script import Command
from tests.client.topics_script import PREFIX, TopicsScript, ready

# --- receiving --------------------------------------------------------------------------------------


def test_messages_know_their_topic_and_the_application_is_told_once() -> None:
    world = ready()
    world.deliver("a", b"1", b"2")
    world.deliver("b", b"3")
    assert world.told() == [Deliverable(world.handle)]
    client = world.script.client
    assert client.available(world.handle) == 3
    messages = client.take(world.script.now, world.handle, 10)
    assert [(message.topic, message.data) for message in messages] == [
        (PREFIX + "a", b"1"),
        (PREFIX + "a", b"2"),
        (PREFIX + "b", b"3"),
    ]
    assert world.told() == []
    world.deliver("b", b"4", entry=1)
    assert world.told() == [Deliverable(world.handle)]


@pytest.mark.parametrize("limit", [1, 2, 70])
def test_the_application_is_told_again_while_something_is_left(limit: int) -> None:
    world = ready()
    world.deliver("a", *[b"1"] * 100)
    world.deliver("b", *[b"2"] * 100)
    taken = 0
    while told := world.told():
        assert told == [Deliverable(world.handle)]
        taken += len(world.script.client.take(world.script.now, world.handle, limit))
    assert taken == 200


def test_a_take_of_nothing_is_not_told_again() -> None:
    """Without this rule an application without room would be told for ever."""
    world = ready()
    world.deliver("a", b"1", b"2")
    assert world.told() == [Deliverable(world.handle)]
    assert not world.script.client.take(world.script.now, world.handle, 0)
    assert world.told() == []
    assert len(world.script.client.take(world.script.now, world.handle, 1)) == 1
    assert world.told() == [Deliverable(world.handle)]


def test_permits_go_back_to_the_topic_they_are_of() -> None:
    """Rules MULTI-21, MULTI-22 and MULTI-23."""
    world = ready(receiver_queue_size=4)
    world.granted.clear()
    world.deliver("a", b"1", b"2", b"3")
    world.deliver("b", b"4")
    world.receive_all()
    assert world.granted == {"a": 2}


def test_arrivals_are_counted_together() -> None:
    world = ready(acknowledgement_group_time=10.0)
    counters = world.script.client.arrival_counters(world.handle)
    world.deliver("a", b"1", b"2")
    world.acknowledge(world.take())
    world.deliver("a", b"1")
    world.deliver("b", b"1")
    world.acknowledge(world.take())
    world.deliver("b", b"1")
    assert counters.duplicates == 2


def test_what_is_counted_is_counted_together_also_of_removed_topics() -> None:
    """The counts include topics that have left (MULTI-35)."""
    world = ready()
    world.deliver("a", b"1", b"2")
    world.deliver("b", b"3", b"4", b"5")
    world.acknowledge(world.take(4))
    world.refuse = {"a": proto.TopicNotFound}
    world.close_by_broker("a")
    world.pass_time(1.0)
    counted = world.script.client.consumer_statistics(world.handle)
    assert (counted.messages_received, counted.acknowledgements_sent, counted.available) == (4, 4, 1)


# --- while it is open -------------------------------------------------------------------------------


def test_the_whole_is_attached_when_all_topics_are() -> None:
    """Rules HAND-05 and HAND-13."""
    world = ready()
    world.ignore = {"a", "b"}
    world.close_by_broker("a")
    world.close_by_broker("b")
    (detached,) = world.told()
    assert isinstance(detached, Detached)
    world.ignore = {"b"}
    world.pass_time(31.0)
    assert world.told() == []
    world.ignore = set()
    world.pass_time(120.0)
    assert world.told() == [Attached(world.handle)]


def test_it_is_another_consumer_that_is_active_for_each_topic() -> None:
    world = ready(subscription_type=SubscriptionType.FAILOVER)
    active = proto.CommandActiveConsumerChange(consumer_id=1, is_active=True)
    world.say(Command.ACTIVE_CONSUMER_CHANGE, active)
    assert world.told() == [ActiveChanged(world.handle, True, PREFIX + "b")]


def test_the_end_of_all_topics_is_the_end() -> None:
    world = ready()
    world.say(Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=1))
    assert world.told() == []
    for _ in range(2):
        world.say(Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=0))
    assert world.told() == [EndOfTopic(world.handle)]


def test_the_end_has_come_when_the_missing_topic_is_removed() -> None:
    """An application that waits for messages would wait for ever without the end (CONS-42)."""
    world = ready()
    end = proto.CommandReachedEndOfTopic(consumer_id=world.consumer_of["a"])
    world.say(Command.REACHED_END_OF_TOPIC, end)
    assert EndOfTopic(world.handle) not in world.outputs
    world.refuse["b"] = proto.TopicNotFound
    world.close_by_broker("b")
    world.pass_time(5.0)
    told = [type(output) for output in world.outputs]
    assert told.index(TopicLeft) < told.index(EndOfTopic)


def test_an_end_that_has_come_before_it_is_ready_is_told_then() -> None:
    world = TopicsScript()
    world.ignore.add("b")
    world.answer()
    a, b = world.asked
    world.say(Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=b.consumer_id))
    world.say(Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=a.consumer_id))
    assert world.told() == []
    world.say(Command.SUCCESS, proto.CommandSuccess(request_id=b.request_id))
    assert [type(output) for output in world.told()] == [ConsumerReady, EndOfTopic]


def test_the_end_of_those_that_are_left_while_it_closes_is_not_the_end() -> None:
    """Topic `a` is closed already, and had not ended (CONS-42, BROKER-43)."""
    world = ready()
    world.hold = {Command.CLOSE_CONSUMER}
    request = world.script.client.close(world.script.now, world.handle)
    world.answer()
    world.answer_held(1)
    world.say(
        Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=world.consumer_of["b"])
    )
    assert world.told() == []
    world.answer_held()
    assert world.told() == [Closed(world.handle, None), RequestDone(request, None)]


def test_the_end_of_those_that_refused_to_be_unsubscribed_is_told() -> None:
    world = ready()
    world.say(
        Command.REACHED_END_OF_TOPIC, proto.CommandReachedEndOfTopic(consumer_id=world.consumer_of["b"])
    )
    assert world.told() == []
    world.refuse_unsubscribe = {"b": proto.ConsumerBusy}
    request = world.script.client.unsubscribe(world.script.now, world.handle)
    end, failed = world.told()
    assert end == EndOfTopic(world.handle)
    assert isinstance(failed, RequestFailed)
    assert failed.request == request


def test_a_deleted_topic_is_removed_and_the_others_go_on() -> None:
    """An acknowledgement of a message of a topic that has left raises nothing (INV-C16)."""
    world = ready()
    world.deliver("a", b"1")
    message = world.receive()
    world.deliver("a", b"2", entry=1)
    world.told()
    world.refuse = {"a": proto.TopicNotFound}
    world.close_by_broker("a")
    world.pass_time(1.0)
    detached, attached, left = world.told()
    assert isinstance(detached, Detached)
    assert attached == Attached(world.handle)
    assert isinstance(left, TopicLeft)
    assert (left.consumer, left.topic, type(left.error)) == (world.handle, PREFIX + "a", TopicNotFound)
    assert world.receive() is None
    world.acknowledge(message)
    assert world.said() == []
    world.deliver("b", b"3")
    assert world.receive().data == b"3"


def test_the_last_topic_that_is_gone_is_the_end_of_the_whole() -> None:
    world = ready()
    world.refuse = {"a": proto.TopicNotFound, "b": proto.TopicNotFound}
    world.close_by_broker("a")
    world.close_by_broker("b")
    world.pass_time(1.0)
    closed = world.told()[-1]
    assert isinstance(closed, Closed)
    assert isinstance(closed.error, TopicNotFound)
    with pytest.raises(ClosedError):
        world.receive()


# --- ends -------------------------------------------------------------------------------------------


def test_closing_is_closing_all_at_once_and_acknowledgements_go_first() -> None:
    """All members close at once, as in the recording java-multi-topic (MULTI-31)."""
    world = ready(acknowledgement_group_time=10.0)
    world.deliver("a", b"1")
    world.deliver("b", b"2")
    world.acknowledge(world.take())
    world.told()
    world.answer_closes = False
    request = world.script.client.close(world.script.now, world.handle)
    assert [topic for _, topic, _ in world.said("ACK")] == ["a", "b"]
    assert world.closed == ["a", "b"]
    assert world.told() == []
    for call in (world.receive, world.take, lambda: world.acknowledge(MessageId(1, 1))):
        with pytest.raises(ClosedError):
            call()
    world.script.lose(world.link)
    assert world.told()[-2:] == [Closed(world.handle, None), RequestDone(request, None)]


def test_closing_before_it_is_open() -> None:
    world = TopicsScript(("a", "b"))
    request = world.script.client.close(world.script.now, world.handle)
    failed, done = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, ClosedError)
    assert done == RequestDone(request, None)


def test_closing_while_it_fails_waits_for_the_same_end() -> None:
    world = TopicsScript(("a", "b"))
    world.refuse = {"b": proto.ConsumerBusy}
    world.answer_closes = False
    world.answer()
    request = world.script.client.close(world.script.now, world.handle)
    world.script.lose(world.link)
    failed, done = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, ConsumerBusy)
    assert done == RequestDone(request, None)


def test_closing_the_client_closes_them() -> None:
    world = ready()
    request = world.script.client.close(world.script.now)
    assert world.told()[-1] == RequestDone(request, None)
    assert world.closed == ["a", "b"]
