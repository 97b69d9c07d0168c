"""A consumer of several topics opens all of them at once, or fails as a whole."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Attached,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.errors import (
    BrokerError,
    ClosedError,
    ConsumerBusy,
    InvalidConfiguration,
    TimedOut,
)
from pulsar_sansio.model.message_id import EARLIEST, MessageId
from pulsar_sansio.wire import proto
from tests.client.script import Command, frame_error, frame_success
from tests.client.topics_script import PREFIX, TopicsScript, full, ready

PARTS = ["p-partition-0", "p-partition-1", "p-partition-2"]


def test_all_topics_are_subscribed_at_once_under_one_name() -> None:
    """The order of commands is that of the recording java-multi-topic. Rules CLIENT-15 and MULTI-10."""
    world = TopicsScript(("a", "b"), receiver_queue_size=10)
    assert world.told() == [ConsumerReady(world.handle, f"{PREFIX}a, {PREFIX}b")]
    assert world.questions == ["a", "b"]
    assert [command.topic for command in world.asked] == [PREFIX + "a", PREFIX + "b"]
    assert [command.consumer_id for command in world.asked] == [0, 1]
    (name,) = {command.consumer_name for command in world.asked}
    assert len(name) == 5
    assert all(command.force_topic_creation for command in world.asked)
    assert world.granted == {"a": 10, "b": 10}


def test_a_partitioned_topic_by_its_name_is_one_consumer_of_all_partitions() -> None:
    """The client sends PARTITIONED_METADATA once, then a SUBSCRIBE for each partition (MULTI-14), as in the
    recording java-partitioned. Rules CLIENT-11 and CLIENT-18."""
    world = TopicsScript("p", {"p": 3}, consumer_name="mine")
    assert world.told() == [ConsumerReady(world.handle, PREFIX + "p")]
    assert world.questions == ["p"]
    assert [command.topic for command in world.asked] == [PREFIX + name for name in PARTS]
    assert [command.consumer_id for command in world.asked] == [0, 1, 2]
    assert {command.consumer_name for command in world.asked} == {"mine"}


def test_topics_and_partitions_mixed() -> None:
    """Rules MULTI-01, MULTI-02 and MULTI-11."""
    world = ready(("a", "p", "non-persistent://other/ns/c"), {"p": 2})
    assert set(world.granted) == {"a", "p-partition-0", "p-partition-1", "non-persistent://other/ns/c"}
    assert world.machine.subscribed == sorted(
        [PREFIX + "a", PREFIX + "p-partition-0", PREFIX + "p-partition-1", "non-persistent://other/ns/c"]
    )


def test_the_receiver_queue_is_shared_out_among_partitions_and_never_empty() -> None:
    """The total is divided by the number of partitions, at least 1 for each. A plain topic has all of it
    (FLOW-16, MULTI-15)."""
    spec = {"receiver_queue_size": 10, "max_total_receiver_queue_size": 12}
    assert ready(("a", "p", "q"), {"p": 3, "q": 100}, **spec).granted == {
        "a": 10,
        **dict.fromkeys(PARTS, 4),
        **{f"q-partition-{index}": 1 for index in range(100)},
    }


def test_a_topic_that_cannot_be_opened_closes_the_others_and_then_the_whole_fails() -> None:
    """The application is told the first error, once (MULTI-12)."""
    world = TopicsScript(("a", "b", "c"))
    world.refuse = {"b": proto.ConsumerBusy, "c": proto.ConsumerBusy}
    world.answer_closes = False
    assert world.told() == []
    assert world.closed == ["a"]
    with pytest.raises(ClosedError) as closed:
        world.receive()
    assert "closed" in str(closed.value)
    world.answer_closes = True
    world.pass_time(31.0)
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, ConsumerBusy)
    assert world.script.client._handles.consumers == {}


@pytest.mark.parametrize("answer", ["opened", "refused", "closed by the broker", "lost"])
def test_the_others_are_closed_when_the_broker_has_answered_for_them(answer: str) -> None:
    """A broker confirms the close of a consumer that it is still opening, and removes the consumer when it
    has opened it. An application that tries again after the failure must not find that consumer (PART-04)."""
    world = TopicsScript(("a", "b"))
    world.ignore = {"a"}
    world.refuse = {"b": proto.ConsumerBusy}
    world.answer_closes = False
    assert world.told() == []
    assert world.closed == []
    (request,) = (asked.request_id for asked in world.asked if asked.topic.endswith("/a"))
    match answer:
        case "opened":
            world.feed(frame_success(request))
            assert world.told() == []
            assert world.closed == ["a"]
            assert world.granted == {}
            world.answer_closes = True
            world.pass_time(30.0)
        case "refused":
            world.feed(frame_error(request, proto.ServiceNotReady))
        case "closed by the broker":
            world.close_by_broker("a")
        case _:
            world.script.lose(world.link)
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, ConsumerBusy)
    assert world.closed == ["a"] * (answer == "opened")
    assert world.script.client._handles.consumers == {}


def test_that_wait_is_no_longer_than_for_opening() -> None:
    """The operation timeout of the whole began before SUBSCRIBE was sent. The broker is told of the close."""
    world = TopicsScript(("a", "b"))
    world.hold = {Command.LOOKUP}
    world.answer()
    world.pass_time(10.0)
    world.ignore = {"a"}
    world.refuse = {"b": proto.ConsumerBusy}
    world.answer_held()
    world.pass_time(19.0)
    assert world.told() == []
    world.pass_time(1.0)
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, ConsumerBusy)
    assert world.closed == ["a"]


@pytest.mark.parametrize("everything", [False, True])
def test_closing_what_is_failing_waits_for_no_answer(everything: bool) -> None:
    """The others are closed at once. So they are after the application has stopped waiting for the
    opening."""
    world = TopicsScript(("a", "b"))
    world.ignore = {"a"}
    world.refuse = {"b": proto.ConsumerBusy}
    assert world.told() == []
    assert world.closed == []
    client, now = world.script.client, world.script.now
    request = client.close(now, None if everything else world.handle)
    failed, done = world.told()
    assert world.closed == ["a"]
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, ConsumerBusy)
    assert done == RequestDone(request, None)


def test_one_that_is_coming_back_while_another_cannot_be_opened_is_not_waited_for() -> None:
    """The topic was open already, so that no timeout of opening applies to it."""
    world = TopicsScript(("a", "b"))
    world.ignore = {"b"}
    world.answer()
    world.ignore = {"a", "b"}
    world.close_by_broker("a")
    world.pass_time(1.0)
    again, refused = world.asked[-1], world.asked[1]
    assert (again.topic, refused.topic) == (full("a"), full("b"))
    world.feed(frame_error(refused.request_id, proto.ConsumerBusy))
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, ConsumerBusy)
    assert world.closed == ["a"]


def test_a_topic_that_is_not_there_for_too_long_fails_the_whole() -> None:
    world = TopicsScript(("a", "b"))
    world.ignore = {"b"}
    world.answer()
    world.pass_time(29.0)
    assert world.told() == []
    world.pass_time(2.0)
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, TimedOut)
    assert world.closed == ["b", "a"]


def test_a_topic_of_which_the_partitions_are_not_known_fails_the_whole() -> None:
    world = TopicsScript(("a", "b"))
    world.metadata_error = {"a": proto.AuthorizationError}
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, BrokerError)


def test_too_many_partitions_fail_the_whole() -> None:
    world = TopicsScript("p", {"p": 10_001})
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert "10001 partitions" in str(failed.error)


def test_a_queue_of_size_0_is_for_one_topic_without_partitions() -> None:
    """The consumer cannot know from which topic the application wants the next message (MULTI-03)."""
    world = TopicsScript("p", {"p": 3}, receiver_queue_size=0)
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert "because persistent://public/default/p has 3 partitions" in str(failed.error)
    with pytest.raises(InvalidConfiguration, match="1 and more for several topics"):
        TopicsScript(("a", "b"), receiver_queue_size=0)


def test_an_id_to_begin_at_is_of_one_topic() -> None:
    begin: dict[str, Any] = {"durable": False, "start_message_id": MessageId(7, 7)}
    (failed,) = TopicsScript("p", {"p": 3}, **begin).told()
    assert isinstance(failed, ConsumerFailed)
    assert "EARLIEST or LATEST, because persistent://public/default/p has 3" in str(failed.error)
    with pytest.raises(InvalidConfiguration, match="EARLIEST or LATEST for several topics"):
        TopicsScript(("a", "b"), **begin)
    world = ready(durable=False, start_message_id=EARLIEST)
    assert [command.start_message_id.ledgerId for command in world.asked] == [2**64 - 1] * 2


@pytest.mark.parametrize(
    ("topics", "wrong"),
    [
        ((), "at least one"),
        (("a", "b", "persistent://public/default/a"), "a is named twice"),
        (("a", "a-partition-3"), "a-partition-3 is a partition of .*a, which is named too"),
    ],
)
def test_a_topic_is_named_once(topics: tuple[str, ...], wrong: str) -> None:
    """No topic is subscribed twice (MULTI-08, INV-C16)."""
    with pytest.raises(InvalidConfiguration, match=wrong):
        TopicsScript(topics)


def test_messages_that_come_before_all_are_open_are_told_of_when_they_are() -> None:
    """The application has no consumer before `ConsumerReady`. Rules FLOW-03, MULTI-09 and MULTI-11."""
    world = TopicsScript(("a", "b"))
    world.ignore = {"b"}
    world.answer()
    assert world.granted == {"a": 1000}
    world.deliver("a", b"early")
    assert world.told() == []
    world.pass_time(1.0)
    request = world.asked[-1].request_id
    world.say(Command.SUCCESS, proto.CommandSuccess(request_id=request))
    assert [type(output) for output in world.told()] == [ConsumerReady, Deliverable]
    assert world.receive().data == b"early"


def test_a_topic_that_is_lost_while_the_others_open_is_told_of_when_they_are() -> None:
    world = TopicsScript(("a", "b"))
    world.ignore = {"b"}
    world.answer()
    world.ignore = {"a", "b"}
    world.close_by_broker("a")
    world.answer()
    assert world.told() == []
    (request,) = [command.request_id for command in world.asked if command.topic.endswith("b")]
    world.say(Command.SUCCESS, proto.CommandSuccess(request_id=request))
    assert [type(output) for output in world.told()] == [ConsumerReady, Detached]
    world.ignore = set()
    world.pass_time(31.0)
    assert world.told() == [Attached(world.handle)]


def test_what_was_said_before_it_had_partitions_holds_for_them() -> None:
    world = TopicsScript("p", {"p": 2})
    world.script.client.pause(world.script.now, world.handle)
    world.answer()
    assert world.granted == {}
    world.script.client.resume(world.script.now, world.handle)
    world.answer()
    assert set(world.granted) == {"p-partition-0", "p-partition-1"}


@pytest.mark.parametrize("topic", ["p", ("p", "q")])
def test_what_was_asked_before_it_had_partitions_is_answered(topic: Any) -> None:
    """The batch receive is answered at once: it was asked of one topic, and the topic is empty."""
    world = TopicsScript(topic, {"p": 2, "q": 3})
    client, now = world.script.client, world.script.now
    requests = [
        client.seek(now, world.handle, EARLIEST),
        client.last_message_id(now, world.handle),
        client.has_message_available(now, world.handle),
        client.flush_acknowledgements(now, world.handle),
    ]
    world.answer()
    answered = [each for each in world.outputs if isinstance(each, RequestDone | RequestFailed)]
    assert sorted(each.request for each in answered) == requests
    assert all(each.error.retryable for each in answered if isinstance(each, RequestFailed))
