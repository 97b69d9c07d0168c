"""One consumer of several topics: opening, what belongs to which, growth, ends (MULTI-01 to MULTI-35)."""

from typing import Any

import pytest

from pulsar_sansio.client.multi_topics import multi_topics_consumer as module
from pulsar_sansio.client.multi_topics.multi_topics_consumer import TRANSITIONS
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
    TopicJoined,
    TopicLeft,
)
from pulsar_sansio.core.transitions import IllegalMove
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import (
    BrokerError,
    ClosedError,
    ConnectionLost,
    ConsumerBusy,
    InvalidConfiguration,
    LocalProtocolError,
    TimedOut,
    TopicNotFound,
)
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId, TopicMessageId
from pulsar_sansio.wire import proto
from tests.client.script import Command, frame_error, frame_success
from tests.client.topics_script import PREFIX, TopicsScript, full

EARLIEST_ON_WIRE = (2**64 - 1, 2**64 - 1)

PARTS = ["p-partition-0", "p-partition-1", "p-partition-2"]


def ready(topic: Any = ("a", "b"), partitions: dict[str, int] | None = None, **spec: Any) -> TopicsScript:
    """A consumer that is open, nothing of its opening left to look at."""
    world = TopicsScript(topic, partitions, **spec).answer()
    assert isinstance(world.outputs[-1], ConsumerReady)
    world.outputs.clear()
    return world


def partitioned(**spec: Any) -> TopicsScript:
    return ready("p", {"p": 3}, **spec)


# --- opening ---------------------------------------------------------------------------------------


def test_all_topics_are_subscribed_at_once_under_one_name() -> None:
    """java-multi-topic."""
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
    """java-partitioned: PARTITIONED_METADATA once, then a SUBSCRIBE for each partition (MULTI-14)."""
    world = TopicsScript("p", {"p": 3}, consumer_name="mine")
    assert world.told() == [ConsumerReady(world.handle, PREFIX + "p")]
    assert world.questions == ["p"]
    assert [command.topic for command in world.asked] == [PREFIX + name for name in PARTS]
    assert [command.consumer_id for command in world.asked] == [0, 1, 2]
    assert {command.consumer_name for command in world.asked} == {"mine"}


def test_topics_and_partitions_mixed() -> None:
    world = ready(("a", "p", "non-persistent://other/ns/c"), {"p": 2})
    assert set(world.granted) == {"a", "p-partition-0", "p-partition-1", "non-persistent://other/ns/c"}
    assert world.machine.subscribed == sorted(
        [PREFIX + "a", PREFIX + "p-partition-0", PREFIX + "p-partition-1", "non-persistent://other/ns/c"]
    )


def test_the_receiver_queue_is_shared_out_among_partitions_and_never_empty() -> None:
    """FLOW-16, MULTI-15: the total divided by the partitions, at least 1; a plain topic has all of it."""
    spec = {"receiver_queue_size": 10, "max_total_receiver_queue_size": 12}
    assert ready(("a", "p", "q"), {"p": 3, "q": 100}, **spec).granted == {
        "a": 10,
        **dict.fromkeys(PARTS, 4),
        **{f"q-partition-{index}": 1 for index in range(100)},
    }


def test_a_topic_that_cannot_be_opened_closes_the_others_and_then_the_whole_fails() -> None:
    """MULTI-12; the first error, once."""
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
    """PART-04, of consumers too: a broker confirms the close of what it is still opening, and takes it away
    when it has opened it. Who tries again on hearing of the failure would find the place taken."""
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


def test_nobody_waits_for_that_longer_than_for_opening() -> None:
    """The operation timeout of the whole, which began before SUBSCRIBE was on its way. The broker is told."""
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
def test_who_closes_what_is_failing_waits_for_no_answer(everything: bool) -> None:
    """The rest is closed at once; so it is where nobody waits for opening any more."""
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
    """It was open already, so that it has no time by which it has to be."""
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
    """MULTI-03: it cannot know of which topic the next message is wanted."""
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
    """MULTI-08; INV-C16: no topic is subscribed twice."""
    with pytest.raises(InvalidConfiguration, match=wrong):
        TopicsScript(topics)


def test_messages_that_come_before_all_are_open_are_told_of_when_they_are() -> None:
    """The application has no consumer before."""
    world = TopicsScript(("a", "b"))
    world.ignore = {"b"}
    world.answer()
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


# --- receiving ------------------------------------------------------------------------------------


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
    """An application that has no room would be told for ever."""
    world = ready()
    world.deliver("a", b"1", b"2")
    assert world.told() == [Deliverable(world.handle)]
    assert not world.script.client.take(world.script.now, world.handle, 0)
    assert world.told() == []
    assert len(world.script.client.take(world.script.now, world.handle, 1)) == 1
    assert world.told() == [Deliverable(world.handle)]


def test_permits_go_back_to_the_topic_they_are_of() -> None:
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


def test_what_is_counted_is_counted_together_also_of_topics_that_have_left() -> None:
    """MULTI-35."""
    world = ready()
    world.deliver("a", b"1", b"2")
    world.deliver("b", b"3", b"4", b"5")
    world.acknowledge(world.take(4))
    world.refuse = {"a": proto.TopicNotFound}
    world.close_by_broker("a")
    world.pass_time(1.0)
    counted = world.script.client.consumer_statistics(world.handle)
    assert (counted.messages_received, counted.acknowledgements_sent, counted.available) == (4, 4, 1)


# --- what belongs to which ------------------------------------------------------------------------


def test_a_message_is_acknowledged_where_it_came_from() -> None:
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
    """INV-C7: not even what is right beside it."""
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
    """MULTI-17."""
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


def test_messages_are_given_back_where_they_came_from() -> None:
    """MULTI-24."""
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
    """MULTI-27: the queues are emptied, and what comes then counts."""
    world = ready()
    world.deliver("a", b"1")
    world.deliver("b", b"2")
    world.script.client.redeliver_unacknowledged(world.script.now, world.handle)
    assert [topic for _, topic, _ in world.said("REDELIVER_UNACKNOWLEDGED_MESSAGES")] == ["a", "b"]
    assert world.script.client.available(world.handle) == 0
    assert world.receive() is None


def test_after_everything_went_back_the_application_is_told_of_the_next_message() -> None:
    """Also when it has not looked meanwhile."""
    world = ready(subscription_type=SubscriptionType.SHARED)
    world.deliver("a", b"1")
    world.told()
    world.script.client.redeliver_unacknowledged(world.script.now, world.handle)
    world.deliver("a", b"1")
    assert world.told() == [Deliverable(world.handle)]


# --- requests to all -------------------------------------------------------------------------------


def test_a_flush_is_done_when_every_topic_has_confirmed() -> None:
    world = ready(acknowledgement_group_time=10.0)
    world.deliver("a", b"1")
    world.deliver("b", b"2")
    world.acknowledge(world.take())
    request = world.script.client.flush_acknowledgements(world.script.now, world.handle)
    first, second = [ack for _, _, ack in world.said("ACK")]
    world.told()
    world.say(
        Command.ACK_RESPONSE,
        proto.CommandAckResponse(consumer_id=second.consumer_id, request_id=second.request_id),
    )
    assert world.told() == []
    world.say(
        Command.ACK_RESPONSE,
        proto.CommandAckResponse(consumer_id=first.consumer_id, request_id=first.request_id),
    )
    assert world.told() == [RequestDone(request, None)]


def test_a_flush_that_one_topic_refuses_has_failed() -> None:
    world = ready(acknowledgement_group_time=10.0)
    world.deliver("a", b"1")
    world.deliver("b", b"2")
    world.acknowledge(world.take())
    request = world.script.client.flush_acknowledgements(world.script.now, world.handle)
    acks = [ack for _, _, ack in world.said("ACK")]
    world.told()
    for ack, error in zip(acks, (proto.MetadataError, None), strict=True):
        response = proto.CommandAckResponse(consumer_id=ack.consumer_id, request_id=ack.request_id)
        if error is not None:
            response.error = error
        world.say(Command.ACK_RESPONSE, response)
    (failed,) = world.told()
    assert isinstance(failed, RequestFailed)
    assert failed.request == request


def test_a_flush_that_nobody_waits_for_is_not_told_of() -> None:
    world = ready(acknowledgement_group_time=10.0)
    world.deliver("a", b"1")
    world.acknowledge(world.take())
    request = world.script.client.flush_acknowledgements(world.script.now, world.handle)
    world.script.client.abandon(world.script.now, request)
    ((_, _, ack),) = world.said("ACK")
    world.told()
    world.say(
        Command.ACK_RESPONSE, proto.CommandAckResponse(consumer_id=ack.consumer_id, request_id=ack.request_id)
    )
    assert world.told() == []


def test_unsubscribing_is_unsubscribing_all_and_the_end() -> None:
    """MULTI-29."""
    world = ready()
    request = world.script.client.unsubscribe(world.script.now, world.handle, True)
    assert [(topic, command.force) for _, topic, command in world.said("UNSUBSCRIBE")] == [
        ("a", True),
        ("b", True),
    ]
    assert world.told() == [Closed(world.handle, None), RequestDone(request, None)]
    assert world.closed == []
    with pytest.raises(ClosedError):
        world.receive()
    world.pass_time(120.0)
    assert world.questions == ["a", "b"]


def test_a_topic_that_refuses_goes_on_and_may_be_asked_again() -> None:
    world = ready()
    world.refuse_unsubscribe = {"b": proto.ConsumerBusy}
    request = world.script.client.unsubscribe(world.script.now, world.handle)
    (failed,) = world.told()
    assert isinstance(failed, RequestFailed)
    assert failed.request == request
    assert isinstance(failed.error, ConsumerBusy)
    assert world.machine.subscribed == [PREFIX + "b"]
    world.deliver("b", b"1")
    assert world.receive().data == b"1"
    world.refuse_unsubscribe = {}
    request = world.script.client.unsubscribe(world.script.now, world.handle)
    assert RequestDone(request, None) in world.told()


def test_nothing_joins_while_it_is_unsubscribing() -> None:
    """MULTI-29: what would join then would stay behind."""
    world = ready("p", {"p": 2}, partitions_update_interval=1.0)
    world.hold = {Command.PARTITIONED_METADATA, Command.UNSUBSCRIBE}
    world.pass_time(1.1)
    request = world.script.client.unsubscribe(world.script.now, world.handle)
    world.answer()
    kinds = [kind for _, kind, _ in world.held]
    assert kinds == [Command.PARTITIONED_METADATA, Command.UNSUBSCRIBE, Command.UNSUBSCRIBE]
    world.partitions["p"] = 3
    world.answer_held()
    assert world.told() == [Closed(world.handle, None), RequestDone(request, None)]
    assert len(world.asked) == 2


def test_who_waits_is_told_before_the_end_of_unsubscribing() -> None:
    """INV-C14: GET_LAST_MESSAGE_ID is not answered, UNSUBSCRIBE is."""
    world = ready()
    client, now = world.script.client, world.script.now
    question = client.has_message_available(now, world.handle)
    request = client.unsubscribe(now, world.handle)
    failed, closed, done = world.told()
    assert isinstance(failed, RequestFailed)
    assert failed.request == question
    assert (closed, done) == (Closed(world.handle, None), RequestDone(request, None))


def test_who_is_sent_away_while_unsubscribing_is_closed_before_the_end() -> None:
    """INV-C14: what was asked of it is answered before the whole is over."""
    world = ready()
    client, now = world.script.client, world.script.now
    world.hold = {Command.UNSUBSCRIBE}
    question = client.has_message_available(now, world.handle)
    request = client.unsubscribe(now, world.handle)
    world.answer()
    world.ignore, world.answer_closes = {"b"}, False
    world.close_by_broker("b")
    world.pass_time(1.0)
    world.answer_held()
    told = world.told()
    assert RequestDone(request, None) in told
    assert Closed(world.handle, None) not in told
    world.pass_time(31.0)
    told += world.told()
    assert told[-1] == Closed(world.handle, None)
    assert [output.request for output in told if isinstance(output, RequestFailed)] == [question]


def test_unsubscribing_that_nobody_waits_for_any_more_when_it_is_closed() -> None:
    world = ready()
    client, now = world.script.client, world.script.now
    request = client.unsubscribe(now, world.handle)
    client.abandon(now, request)
    client.close(now, world.handle)
    world.answer()
    assert not any(getattr(output, "request", None) == request for output in world.outputs)
    assert Closed in map(type, world.outputs)


def test_unsubscribing_needs_all_topics_to_be_connected() -> None:
    world = ready()
    world.ignore = {"a"}
    world.close_by_broker("a")
    request = world.script.client.unsubscribe(world.script.now, world.handle)
    assert isinstance(failed := world.told()[-1], RequestFailed)
    assert (failed.request, type(failed.error)) == (request, ConnectionLost)
    assert world.said() == []


# --- while it is open ------------------------------------------------------------------------------


def test_the_whole_is_attached_when_all_topics_are() -> None:
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


def test_the_end_has_come_when_the_one_that_was_missing_leaves() -> None:
    """CONS-42: whoever waits for messages would wait for ever."""
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
    """CONS-42, BROKER-43: `a` is closed already, and had not ended."""
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


def test_a_topic_that_is_gone_leaves_and_the_others_go_on() -> None:
    """INV-C16. What is said of its messages then is nobody's mistake."""
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


def test_pausing_is_pausing_all_and_those_that_join() -> None:
    """MULTI-28."""
    world = ready("p", {"p": 1}, receiver_queue_size=2)
    world.granted.clear()
    client, handle = world.script.client, world.handle
    client.pause(world.script.now, handle)
    world.deliver("p-partition-0", b"1")
    world.take()
    world.partitions["p"] = 2
    world.pass_time(61.0)
    assert world.granted == {}
    client.resume(world.script.now, handle)
    world.answer()
    assert world.granted == {"p-partition-0": 1, "p-partition-1": 2}


def test_an_id_without_its_topic_is_no_place_to_go_to() -> None:
    """MULTI-26."""
    world = ready()
    client, now, handle = world.script.client, world.script.now, world.handle
    for wrong in (MessageId(100, 0), TopicMessageId("c", MessageId(100, 0)), "earliest", -1):
        with pytest.raises(LocalProtocolError):
            client.seek(now, handle, wrong)  # type: ignore[arg-type]
    assert world.said() == []
    client.seek(now, handle, TopicMessageId("b", MessageId(100, 0)))
    assert [(kind, topic) for kind, topic, _ in world.said()] == [("SEEK", "b")]
    client.seek(now, handle, 1_700_000_000_000)
    assert [(kind, topic) for kind, topic, _ in world.said()] == [("SEEK", "a")]


# --- growth ----------------------------------------------------------------------------------------


def test_new_partitions_are_found_and_opened() -> None:
    """MULTI-06, PART-07 to PART-10; a topic without partitions is not asked about."""
    world = ready(("a", "p"), {"p": 2}, receiver_queue_size=10, max_total_receiver_queue_size=12)
    world.questions.clear()
    world.partitions["p"] = 4
    world.pass_time(61.0)
    assert world.questions == ["p"]
    assert world.told() == [
        TopicJoined(world.handle, PREFIX + "p-partition-2"),
        TopicJoined(world.handle, PREFIX + "p-partition-3"),
    ]
    assert (world.granted["p-partition-0"], world.granted["p-partition-3"]) == (6, 3)
    assert {command.consumer_name for command in world.asked} == {world.asked[0].consumer_name}
    world.deliver("p-partition-3", b"new")
    message = world.receive()
    world.acknowledge(TopicMessageId("p", message.message_id._replace(partition=3)))
    assert [topic for topic, _ in world.acknowledged()] == ["p-partition-3"]


@pytest.mark.parametrize("where", [{"start_message_id": LATEST}, {"start_message_rollback": 5.0}, {}])
def test_who_reads_from_the_end_on_reads_new_partitions_from_their_beginning(where: dict[str, Any]) -> None:
    """Whatever is in them was sent after that. Where the broker remembers a subscription it has made it with
    them."""
    world = TopicsScript("p", {"p": 1}, durable=False, **where).answer()
    ((_, _, question),) = world.said("GET_LAST_MESSAGE_ID")  # where the end is: to go on there
    last = proto.MessageIdData(ledgerId=1, entryId=5)
    answer = proto.CommandGetLastMessageIdResponse(request_id=question.request_id, last_message_id=last)
    world.say(Command.GET_LAST_MESSAGE_ID_RESPONSE, answer)
    world.partitions["p"] = 2
    world.pass_time(61.0)
    _, second = world.asked
    assert (second.start_message_id.ledgerId, second.start_message_id.entryId) == EARLIEST_ON_WIRE
    assert not second.start_message_rollback_duration_sec


def test_a_new_partition_that_cannot_be_opened_takes_the_other_new_ones_back() -> None:
    """PART-11: they are tried again the next time."""
    world = ready("p", {"p": 1})
    world.partitions["p"] = 3
    world.refuse = {"p-partition-2": proto.ConsumerBusy}
    world.pass_time(61.0)
    assert world.told() == []
    assert world.closed == ["p-partition-1"]
    assert world.machine.subscribed == [PREFIX + "p-partition-0"]
    world.refuse = {}
    world.pass_time(60.0)
    assert [output for output in world.told() if isinstance(output, TopicJoined)] == [
        TopicJoined(world.handle, PREFIX + "p-partition-1"),
        TopicJoined(world.handle, PREFIX + "p-partition-2"),
    ]


@pytest.mark.parametrize("refused", [False, True])
def test_messages_of_new_partitions_wait_until_all_of_them_are_there(refused: bool) -> None:
    """PART-11: where one cannot be opened, all begin anew. A reader would have them twice."""
    world = ready("p", {"p": 1}, durable=False, start_message_id=EARLIEST)
    world.partitions["p"] = 3
    world.ignore = {"p-partition-2"}
    world.pass_time(61.0)
    world.deliver("p-partition-1", b"new")
    world.deliver("p-partition-0", b"old")
    assert world.told() == [Deliverable(world.handle)]
    assert [message.data for message in world.receive_all()] == [b"old"]
    request = world.asked[-1].request_id
    if refused:
        world.feed(frame_error(request, proto.ConsumerBusy))
        world.ignore = set()
        world.answer().pass_time(61.0)
        world.deliver("p-partition-1", b"new")
    else:
        world.feed(frame_success(request))
        world.answer()
    joined, *then = [output for output in world.told() if not isinstance(output, TopicLeft)]
    assert joined == TopicJoined(world.handle, PREFIX + "p-partition-1")
    assert then == [TopicJoined(world.handle, PREFIX + "p-partition-2"), Deliverable(world.handle)]
    assert [message.data for message in world.receive_all()] == [b"new"]


def test_a_new_partition_that_ends_while_all_are_unsubscribed_is_tried_again() -> None:
    """The unsubscription is refused, so those that are new are still wanted."""
    world = ready("p", {"p": 1}, subscription_type=SubscriptionType.SHARED)
    world.partitions["p"] = 3
    world.ignore = {"p-partition-2"}
    world.pass_time(61.0)
    opening = world.asked[-1].request_id
    world.hold = {Command.UNSUBSCRIBE}
    world.script.client.unsubscribe(world.script.now, world.handle)
    world.answer()
    world.feed(frame_error(opening, proto.ConsumerBusy))
    world.refuse_unsubscribe = dict.fromkeys(PARTS, proto.ConsumerBusy)
    world.answer_held()
    (failed,) = world.told()
    assert isinstance(failed, RequestFailed)
    world.ignore = set()
    world.pass_time(61.0)
    assert [output for output in world.told() if isinstance(output, TopicJoined)] == [
        TopicJoined(world.handle, PREFIX + "p-partition-1"),
        TopicJoined(world.handle, PREFIX + "p-partition-2"),
    ]
    world.deliver("p-partition-1", b"new")
    assert [message.data for message in world.receive_all()] == [b"new"]


@pytest.mark.parametrize("answer", ["fewer", "none", "an error"])
def test_fewer_partitions_are_not_believed(answer: str) -> None:
    """PART-12; and it is asked again."""
    world = partitioned()
    world.partitions["p"] = 0 if answer == "none" else 2
    if answer == "an error":
        world.metadata_error = {"p": proto.ServiceNotReady}
    world.pass_time(61.0)
    assert world.told() == []
    assert len(world.machine.subscribed) == 3
    world.metadata_error = {}
    world.partitions["p"] = 4
    world.pass_time(60.0)
    assert world.told() == [TopicJoined(world.handle, PREFIX + "p-partition-3")]


def test_who_does_not_want_to_be_told_does_not_ask() -> None:
    world = partitioned(partitions_update_interval=None)
    world.pass_time(200.0)
    assert world.questions == ["p"]


def test_closing_while_new_partitions_open_closes_those_too() -> None:
    world = partitioned()
    world.partitions["p"] = 4
    world.ignore = {"p-partition-3"}
    world.pass_time(61.0)
    request = world.script.client.close(world.script.now, world.handle)
    assert world.told() == [Closed(world.handle, None), RequestDone(request, None)]
    assert sorted(world.closed) == [*PARTS, "p-partition-3"]


# --- ends ------------------------------------------------------------------------------------------


def test_closing_is_closing_all_at_once_and_acknowledgements_go_first() -> None:
    """MULTI-31, java-multi-topic."""
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


# --- the table -------------------------------------------------------------------------------------


def states() -> dict[type, Any]:
    error = ClosedError("over")
    return {
        module.Opening: module.Opening(),
        module.Ready: module.Ready(),
        module.Failing: module.Failing(error),
        module.Unsubscribing: module.Unsubscribing(7),
        module.Closing: module.Closing(True),
        module.Over: module.Over(),
    }


@pytest.mark.parametrize("state", states(), ids=lambda state: state.__name__)
@pytest.mark.parametrize("event", module.Input, ids=lambda event: event.name)
def test_what_is_not_in_the_table_is_refused(state: type, event: Any) -> None:
    world = ready()
    group = world.machine
    group.state = states()[state]
    target = TRANSITIONS.table.get((state, event))
    following = states()[target] if target is not None else module.Over()
    if target is not None:
        group._move(event, following)
        assert group.state is following
    else:
        before = group.state
        with pytest.raises(IllegalMove):
            group._move(event, following)
        assert group.state is before


def test_what_was_said_before_it_had_partitions_holds_for_them() -> None:
    world = TopicsScript("p", {"p": 2})
    world.script.client.pause(world.script.now, world.handle)
    world.answer()
    assert world.granted == {}
    world.script.client.resume(world.script.now, world.handle)
    world.answer()
    assert set(world.granted) == {"p-partition-0", "p-partition-1"}


def test_whether_there_is_more_in_a_topic_that_is_moved_after_it_said_so() -> None:
    """SEEK-05: the answer is of where all of them are when it is given."""
    world = ready()
    client, now = world.script.client, world.script.now

    def answer(name: str, last: int) -> None:
        """The last message; all before it is acknowledged."""
        (asked,) = [
            each for kind, topic, each in world.commands if (kind, topic) == ("GET_LAST_MESSAGE_ID", name)
        ]
        world.commands.clear()
        response = proto.CommandGetLastMessageIdResponse(request_id=asked.request_id)
        for place, entry in (response.last_message_id, last), (response.consumer_mark_delete_position, 3):
            place.ledgerId, place.entryId = 100, entry
        world.say(Command.GET_LAST_MESSAGE_ID_RESPONSE, response)

    question = client.has_message_available(now, world.handle)
    world.answer()
    asked_b = world.commands[1:]
    answer("a", 3)
    sought = client.seek(now, world.handle, TopicMessageId(PREFIX + "a", MessageId(100, 0)))
    world.answer()
    ((_, _, seek),) = world.commands
    world.commands[:] = asked_b
    answer("b", 3)
    assert world.told() == []
    world.close_by_broker("a")
    world.say(Command.SUCCESS, proto.CommandSuccess(request_id=seek.request_id))
    world.pass_time(1.0)
    assert RequestDone(sought, None) in world.told()
    answer("a", 3)
    assert world.told() == [RequestDone(question, True)]


def test_a_question_that_is_asked_anew_has_what_is_left_of_the_time() -> None:
    """CONN-12: of 30 s, however late the topic that said so is moved."""
    world = ready()
    client, now = world.script.client, world.script.now
    question = client.has_message_available(now, world.handle)
    world.answer()
    ((_, _, asked),) = [each for each in world.commands if each[:2] == ("GET_LAST_MESSAGE_ID", "a")]
    response = proto.CommandGetLastMessageIdResponse(request_id=asked.request_id)
    response.last_message_id.ledgerId, response.last_message_id.entryId = 100, 3
    world.say(Command.GET_LAST_MESSAGE_ID_RESPONSE, response)
    world.pass_time(20.0)
    client.seek(world.script.now, world.handle, TopicMessageId(PREFIX + "a", MessageId(100, 0)))
    world.told()
    world.pass_time(9.9)
    assert world.told() == []
    world.pass_time(0.2)
    (failed,) = world.told()
    assert isinstance(failed, RequestFailed)
    assert (failed.request, type(failed.error)) == (question, TimedOut)


@pytest.mark.parametrize("topic", ["p", ("p", "q")])
def test_what_was_asked_before_it_had_partitions_is_answered(topic: Any) -> None:
    """At once: it was asked of one topic, and there is none."""
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
