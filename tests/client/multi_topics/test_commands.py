"""Requests to a consumer of several topics are answered when all topics have answered."""

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.errors import (
    ClosedError,
    ConnectionLost,
    ConsumerBusy,
    LocalProtocolError,
    TimedOut,
)
from pulsar_sansio.model.message_id import MessageId, TopicMessageId
from pulsar_sansio.wire import proto
from tests.client.script import Command
from tests.client.topics_script import PREFIX, ready


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


def test_a_cancelled_flush_is_not_told_of() -> None:
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
    """The application unsubscribes from all topics at once (MULTI-29)."""
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
    """A partition that joined now would stay subscribed (MULTI-29)."""
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


def test_waiting_requests_are_answered_before_the_end_of_unsubscribing() -> None:
    """The broker answers UNSUBSCRIBE but not GET_LAST_MESSAGE_ID (INV-C14)."""
    world = ready()
    client, now = world.script.client, world.script.now
    question = client.has_message_available(now, world.handle)
    request = client.unsubscribe(now, world.handle)
    failed, closed, done = world.told()
    assert isinstance(failed, RequestFailed)
    assert failed.request == question
    assert (closed, done) == (Closed(world.handle, None), RequestDone(request, None))


def test_a_topic_that_detaches_while_unsubscribing_is_closed_before_the_end() -> None:
    """Requests to the consumer are answered before the consumer has ended (INV-C14)."""
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


def test_unsubscribing_that_was_cancelled_before_the_close() -> None:
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


def test_pausing_is_pausing_all_and_those_that_join() -> None:
    """Partitions that join a paused consumer are paused (MULTI-28)."""
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
    """An id moves one topic, so it has to name that topic (MULTI-26). Rule SEEK-04."""
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


def test_whether_there_is_more_in_a_topic_that_is_moved_after_it_said_so() -> None:
    """The answer is about the positions of all topics at the moment of the answer (SEEK-05)."""
    world = ready()
    client, now = world.script.client, world.script.now

    def answer(name: str, last: int) -> None:
        """The last message arrives, and everything before it is acknowledged."""
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
    """The request has 30 s, however late its topic is moved (CONN-12)."""
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
