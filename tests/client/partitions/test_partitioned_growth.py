"""Growth of a partitioned topic, and lazily started partitions."""

import pytest

from pulsar_sansio.client.outputs import (
    ProducerReady,
    RequestDone,
    SendFailed,
)
from pulsar_sansio.model.config import BatchingPolicy
from pulsar_sansio.model.errors import (
    ProducerQueueIsFull,
)
from pulsar_sansio.schemas import AutoPublish
from pulsar_sansio.wire import proto
from tests.client.partitions.partitioned_producers import by_property, ready
from tests.client.partitions.partitioned_script import TOPIC, PartitionedScript

# --- lazy start ---------------------------------------------------------------------------------------


def test_lazily_only_what_is_sent_to_is_opened() -> None:
    world = PartitionedScript(3, routing=by_property, lazy_start=True).answer()
    assert [command.topic for command in world.asked] == [f"{TOPIC}-partition-0"]
    assert world.told() == [ProducerReady(world.handle, "p-1", -1, TOPIC)]
    assert world.send(b"2a") == 0
    assert world.send(b"2b") == 1
    assert world.told() == []
    assert [(command.topic, command.producer_name) for command in world.asked[1:]] == [
        (f"{TOPIC}-partition-2", "p-1")
    ]
    assert world.stored == {2: [b"2a", b"2b"]}
    world.confirm(2)
    assert sorted(world.settled()) == [0, 1]
    statistics = world.script.client.partition_statistics(world.handle)
    assert [each.connected for each in statistics] == [True, False, True]
    request = world.script.client.flush(world.script.now, world.handle)
    assert world.told() == [RequestDone(request, None)]


def test_lazily_a_push_holds_for_what_waits_for_its_partition() -> None:
    """PROD-28"""
    batching = BatchingPolicy(max_delay=60.0)
    world = PartitionedScript(2, routing=by_property, lazy_start=True, batching=batching).answer()
    world.send(b"1")
    world.script.client.push(world.script.now, world.handle)
    world.send(b"1 again")
    world.answer()
    assert world.stored == {1: [b"1", b"1 again"]}


def test_lazily_what_was_sent_before_there_is_a_name_waits_for_it() -> None:
    world = PartitionedScript(3, routing=by_property, lazy_start=True)
    world.send(b"2")
    world.answer()
    assert [command.producer_name for command in world.asked] == ["", "p-1"]
    assert world.stored == {2: [b"2"]}


def test_lazily_one_that_cannot_be_opened_fails_its_messages_and_is_tried_again() -> None:
    world = PartitionedScript(2, routing=by_property, lazy_start=True).answer()
    world.outputs.clear()
    world.refuse = {1: proto.NotAllowedError}
    world.send(b"0")
    world.send(b"1")
    (failed,) = world.told()
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (1, 1)
    world.refuse.clear()
    assert world.send(b"1") == 2
    world.answer()
    assert world.stored[1] == [b"1"]
    world.confirm(1)
    world.confirm(0)
    assert sorted(world.settled()) == [0, 2]


# --- growth -------------------------------------------------------------------------------------------


def test_new_partitions_are_used_when_all_of_them_are_open() -> None:
    """Rules PART-07, PART-10, PART-13 and TIMER-08."""
    world = ready(2, routing=lambda message, partitions: partitions - 1, max_pending_messages=2)
    world.partitions = 4
    world.ignore = {3}
    world.pass_time(59.9)
    assert world.metadata_questions == 1
    world.pass_time(0.2)
    assert world.metadata_questions == 2
    assert [command.topic[-1] for command in world.asked] == ["0", "1", "2", "3"]
    assert [command.producer_name for command in world.asked[2:]] == ["p-1", "p-1"]
    world.send(b"a")
    world.answer()
    assert world.stored == {1: [b"a"]}
    world.open_after_all()
    world.send(b"b")
    world.answer()
    assert world.stored == {1: [b"a"], 3: [b"b"]}
    world.send(b"c")
    with pytest.raises(ProducerQueueIsFull):
        world.send(b"d")


def test_a_new_partition_that_cannot_be_opened_changes_nothing_until_the_next_time() -> None:
    """Rule PART-11."""
    world = ready(1, routing=lambda message, partitions: partitions - 1)
    world.partitions = 3
    world.refuse = {2: proto.NotAllowedError}
    world.pass_time(60.1)
    assert world.told() == []
    assert world.closed == [1]
    world.send(b"a")
    world.answer()
    assert world.stored == {0: [b"a"]}
    world.confirm(0)
    world.told()
    world.refuse.clear()
    world.pass_time(60.0)
    world.send(b"b")
    assert world.told() == []
    assert world.stored == {0: [b"a"], 2: [b"b"]}


def test_a_smaller_number_and_a_failed_question_change_nothing() -> None:
    """Rule PART-12: a smaller number in the metadata removes no partition."""
    world = ready(3, routing=by_property)
    world.partitions = 0
    world.pass_time(60.1)
    world.metadata_error = proto.ServiceNotReady
    world.pass_time(60.0)
    assert world.metadata_questions == 3
    world.send(b"2")
    assert world.told() == []
    assert world.closed == []
    world.metadata_error = None
    world.partitions = 4
    world.pass_time(60.0)
    world.send(b"3")
    world.answer()
    assert sorted(world.stored) == [2, 3]


def test_updates_can_be_switched_off() -> None:
    world = ready(2, partitions_update_interval=None)
    world.pass_time(600.0)
    assert world.metadata_questions == 1


def test_no_question_is_asked_while_the_last_is_open_or_after_the_end() -> None:
    """Rules PART-08, PART-09."""
    world = PartitionedScript(2, partitions_update_interval=1.0)
    world.ignore = {1}
    world.answer()
    world.pass_time(2.5)  # not ready yet: the timer goes on
    assert world.metadata_questions == 1
    world.open_after_all()
    world.partitions = 3
    world.ignore = {2}
    world.pass_time(1.0)
    assert world.metadata_questions == 2
    world.pass_time(5.0)
    assert world.metadata_questions == 2
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    world.pass_time(60.0)
    assert world.metadata_questions == 2


def test_lazily_growth_opens_nothing() -> None:
    world = PartitionedScript(1, routing=lambda _, partitions: partitions - 1, lazy_start=True).answer()
    world.partitions = 1000
    world.pass_time(60.1)
    assert len(world.asked) == 1
    world.send(b"x")
    world.answer()
    assert world.stored == {999: [b"x"]}


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "lazily"])
def test_all_partitions_have_the_definition_that_the_first_one_adopted(lazy: bool) -> None:
    """CLIENT-10: payloads are checked by it, also those for partitions that are opened later."""
    world = PartitionedScript(2, schema=AutoPublish(), routing=by_property, lazy_start=lazy)
    world.schema = proto.Schema(name="", schema_data=b"", type=proto.Schema.String)
    world.answer()
    world.schema = proto.Schema(name="", schema_data=b"", type=proto.Schema.Int32)
    world.partitions = 3
    world.pass_time(61)
    for payload in (b"0", b"1", b"2"):
        world.send(payload)
    world.answer()
    assert sorted((command.topic, command.schema.type) for command in world.asked) == [
        (f"{TOPIC}-partition-{index}", proto.Schema.String) for index in range(3)
    ]
