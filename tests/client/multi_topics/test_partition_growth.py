"""New partitions of a topic join its consumer."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    Deliverable,
    RequestDone,
    RequestFailed,
    TopicJoined,
    TopicLeft,
)
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.message_id import EARLIEST, LATEST, TopicMessageId
from pulsar_sansio.wire import proto
from tests.client.script import Command, frame_error, frame_success
from tests.client.topics_script import PREFIX, TopicsScript, partitioned, ready

EARLIEST_ON_WIRE = (2**64 - 1, 2**64 - 1)

PARTS = ["p-partition-0", "p-partition-1", "p-partition-2"]


def test_new_partitions_are_found_and_opened() -> None:
    """The client asks for the partitions at an interval, but never for those of a topic without partitions
    (MULTI-06, PART-07, PART-10). Rule GAP-15."""
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
def test_a_consumer_that_started_at_latest_reads_new_partitions_from_their_beginning(
    where: dict[str, Any],
) -> None:
    """All messages of a new partition were sent after the reader began. A broker that remembers a
    subscription has made it together with the partition."""
    world = TopicsScript("p", {"p": 1}, durable=False, **where).answer()
    ((_, _, question),) = world.said("GET_LAST_MESSAGE_ID")  # the reader resumes there after a reconnect
    last = proto.MessageIdData(ledgerId=1, entryId=5)
    answer = proto.CommandGetLastMessageIdResponse(request_id=question.request_id, last_message_id=last)
    world.say(Command.GET_LAST_MESSAGE_ID_RESPONSE, answer)
    world.partitions["p"] = 2
    world.pass_time(61.0)
    _, second = world.asked
    assert (second.start_message_id.ledgerId, second.start_message_id.entryId) == EARLIEST_ON_WIRE
    assert not second.start_message_rollback_duration_sec


def test_a_new_partition_that_cannot_be_opened_takes_the_other_new_ones_back() -> None:
    """New partitions that failed are tried again at the next interval (PART-11)."""
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
    """When one new partition cannot be opened, all begin again. A reader would get their messages twice
    (PART-11)."""
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
    """The broker refuses the unsubscription, so the new partitions are still wanted."""
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
    """A smaller number is ignored, and the client asks again (PART-12)."""
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


def test_without_partition_updates_the_client_does_not_ask() -> None:
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
