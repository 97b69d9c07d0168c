"""Opening a partitioned producer."""

import pytest

from pulsar_sansio.client.outputs import (
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    SendFailed,
)
from pulsar_sansio.model.config import BatchingPolicy, ProducerAccessMode
from pulsar_sansio.model.errors import (
    ClosedError,
    TimedOut,
    TopicTerminated,
)
from pulsar_sansio.schemas import STRING, message_of
from pulsar_sansio.wire import proto
from tests.client.partitions.partitioned_producers import by_property
from tests.client.partitions.partitioned_script import TOPIC, PartitionedScript
from tests.client.script import Script, frame_producer_success

# --- opening ---------------------------------------------------------------------------------------


def test_the_first_partition_is_opened_and_gives_the_others_its_name() -> None:
    """java-partitioned: PRODUCER of partition 0 without a name; when it has one, the others with that name,
    which counts as the broker's. Rule PART-03."""
    world = PartitionedScript(3)
    assert world.told() == [ProducerReady(world.handle, "p-1", 1, TOPIC)]
    assert [command.topic for command in world.asked] == [f"{TOPIC}-partition-{n}" for n in range(3)]
    assert [command.producer_id for command in world.asked] == [0, 1, 2]
    assert [command.producer_name for command in world.asked] == ["", "p-1", "p-1"]
    assert not any(command.user_provided_producer_name for command in world.asked)
    assert world.metadata_questions == 1


def test_a_name_of_the_applications_own_is_every_partitions() -> None:
    world = PartitionedScript(2, name="mine")
    (opened,) = world.told()
    assert isinstance(opened, ProducerReady)
    assert [command.producer_name for command in world.asked] == ["mine", "mine"]
    assert all(command.user_provided_producer_name for command in world.asked)


def test_nothing_is_ready_until_all_are() -> None:
    """Rule PART-05."""
    world = PartitionedScript(3)
    world.ignore = {2}
    assert world.told() == []
    assert len(world.asked) == 3


@pytest.mark.parametrize("refused", [0, 1, 2])
def test_one_that_cannot_be_opened_closes_the_others_and_fails_the_whole(refused: int) -> None:
    """Rules PART-04, PART-05: the producer fails with that partition's error once the others are closed."""
    world = PartitionedScript(3)
    world.refuse = {refused: proto.TopicTerminatedError}
    ticket = world.send(b"early")
    failed, end = world.told()
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (ticket, 1)
    assert isinstance(failed.error, TopicTerminated)
    assert isinstance(end, ProducerFailed)
    assert end.producer == world.handle
    assert isinstance(end.error, TopicTerminated)
    assert sorted(world.closed) == [n for n in range(3) if n != refused and refused != 0]
    with pytest.raises(ClosedError):
        world.send()
    world.pass_time(300.0)
    assert world.told() == []


def test_the_others_are_closed_when_the_broker_has_answered_for_them() -> None:
    """Rule PART-04: the application can reopen the producer under the released names."""
    world = PartitionedScript(3)
    world.ignore = {1}
    world.refuse = {2: proto.TopicTerminatedError}
    assert world.told() == []
    assert world.closed == [0]
    (asked,) = (command for command in world.asked if command.topic.endswith("1"))
    (link,) = world.script.client.links
    world.script.feed(link, frame_producer_success(asked.request_id, "p-1"))
    (failed,) = world.told()
    assert isinstance(failed, ProducerFailed)
    assert isinstance(failed.error, TopicTerminated)
    assert world.closed == [0, 1]


def test_closing_what_is_failing_waits_for_no_answer() -> None:
    world = PartitionedScript(3)
    world.ignore = {1}
    world.refuse = {2: proto.TopicTerminatedError}
    assert world.told() == []
    world.script.client.abandon(world.script.now, world.handle)
    (failed,) = world.told()
    assert isinstance(failed, ProducerFailed)
    assert world.closed == [0, 1]


def test_new_partitions_that_fail_are_closed_at_once() -> None:
    """Rule PART-11: the producer does not wait for them, and the next attempt uses equal names."""
    world = PartitionedScript(2, partitions_update_interval=1.0)
    world.answer()
    world.partitions = 4
    world.ignore, world.refuse = {2}, {3: proto.TopicTerminatedError}
    world.pass_time(1.0)
    assert world.closed == [2]


def test_opening_gives_up_when_the_application_stops_waiting() -> None:
    """One operation timeout covers all partitions and the partition check."""
    world = PartitionedScript(2, script=Script(operation_timeout=5.0))
    world.ignore = {1}
    world.answer()
    world.pass_time(4.9)
    assert world.told() == []
    world.pass_time(0.2)
    (end,) = world.told()
    assert isinstance(end, ProducerFailed)
    assert isinstance(end.error, TimedOut)
    assert world.closed == [1, 0] or world.closed == [0, 1]


@pytest.mark.parametrize("seconds", [29.0, 100.0])
def test_waiting_for_exclusive_access_on_one_partition_takes_no_time_from_the_others(seconds: float) -> None:
    world = PartitionedScript(2, access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
    world.queue = {0}
    assert world.told() == []
    world.pass_time(seconds)
    assert world.told() == []
    world.queue.clear()
    world.open_after_all(1)
    world.pass_time(5.0)
    assert world.told() == []
    world.open_after_all()
    assert world.told() == [ProducerReady(world.handle, "p-1", 0, TOPIC)]
    assert [command.producer_access_mode for command in world.asked] == [2, 2]


def test_closed_before_it_is_ready() -> None:
    world = PartitionedScript(2)
    world.ignore = {1}
    world.answer()
    request = world.script.client.close(world.script.now, world.handle)
    end, done = world.told()
    assert isinstance(end, ProducerFailed)
    assert isinstance(end.error, ClosedError)
    assert done == RequestDone(request, None)


def test_what_was_sent_before_the_partitions_were_known_goes_to_them_in_order() -> None:
    world = PartitionedScript(3, routing=by_property)
    client, now = world.script.client, world.script.now
    tickets = [world.send(payload) for payload in (b"0a", b"2b", b"0c")]
    flush = client.flush(now, world.handle)
    tickets += [world.send(payload) for payload in (b"1d", b"0e", b"7no")]
    opened, refused = world.told()[::-1]
    assert isinstance(opened, ProducerReady)
    assert isinstance(refused, SendFailed)
    assert (refused.first, refused.count) == (5, 1)
    assert world.stored == {0: [b"0a", b"0c", b"0e"], 2: [b"2b"], 1: [b"1d"]}
    assert tickets == [0, 1, 2, 3, 4, 5]
    world.confirm(0, 2)
    assert list(world.settled()) == [0, 2]
    world.confirm(2)
    receipt, done = world.told()
    assert receipt == Receipts(world.handle, 1, receipt.message_ids)  # type: ignore[union-attr]
    assert done == RequestDone(flush, None)
    assert world.send(b"1f") == 6


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("typed", [{0}, {1}, {0, 1}, {2}, {0, 2}, {0, 1, 2}])
def test_a_push_before_the_partitions_are_known_holds_for_messages_with_schemas(
    typed: set[int], lazy: bool
) -> None:
    """PROD-28, SCHEMA-03: the pushed messages go once the version of a schema is known, not at the batching
    delay."""
    batching = BatchingPolicy(max_delay=60.0)
    world = PartitionedScript(2, routing=by_property, lazy_start=lazy, batching=batching, send_timeout=0)
    messages = [
        message_of(text, STRING) if index in typed else text.encode()
        for index, text in enumerate(("1 a", "1 b", "1 c"))
    ]
    for message in messages[:2]:
        world.send(message)
    world.script.client.push(world.script.now, world.handle)
    world.send(messages[2])
    world.answer()
    pushed = [b"1 a", b"1 b"]
    assert world.stored[1][:2] == pushed
    world.pass_time(61)
    assert world.stored == {1: [*pushed, b"1 c"]}
    world.confirm(1)
    (receipts,) = [each for each in world.told() if isinstance(each, Receipts)]
    assert (receipts.first, len(receipts.message_ids)) == (0, 3)
