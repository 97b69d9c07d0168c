"""Batch receive over several topics and partitions."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import BatchReceivePolicy
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import proto
from tests.client.script import Command, frame_success
from tests.client.topics_script import PREFIX, TopicsScript


def ready(topic: Any = ("a", "b"), partitions: dict[str, int] | None = None, **policy: Any) -> TopicsScript:
    spec = {name: policy.pop(name) for name in list(policy) if name.startswith("rec")}
    policy = {"max_bytes": None, "timeout": 1.0, **policy}
    world = TopicsScript(topic, partitions, batch_receive=BatchReceivePolicy(**policy), **spec).answer()
    world.outputs.clear()
    return world


def ask(world: TopicsScript) -> int:
    return world.script.client.batch_receive(world.script.now, world.handle)


def told(world: TopicsScript) -> list[int]:
    return [output.request for output in world.told() if isinstance(output, RequestDone)]


@pytest.mark.parametrize(("topic", "partitions"), [(("a", "b"), None), ("p", {"p": 2})])
def test_what_waits_in_all_counts_together(topic: Any, partitions: Any) -> None:
    world = ready(topic, partitions, max_messages=4)
    one, other = list(world.consumer_of)
    request = ask(world)
    world.deliver(one, b"1", b"2")
    world.deliver(other, b"3")
    assert told(world) == []
    world.deliver(other, b"4", b"5", entry=1)
    assert told(world) == [request]
    messages = world.take()
    assert len(messages) == 4
    assert {message.topic for message in messages} == {PREFIX + one, PREFIX + other}
    assert len(world.take()) == 1


def test_so_many_bytes_of_all_together_and_no_more() -> None:
    world = ready(max_bytes=10)
    request = ask(world)
    world.deliver("a", b"1234", b"1234")
    assert told(world) == []
    world.deliver("b", b"12345", b"1")
    assert told(world) == [request]
    taken = []
    while messages := world.take():
        assert sum(len(message.data) for message in messages) <= 10
        taken += [message.data for message in messages]
    assert sorted(taken) == [b"1", b"1234", b"1234", b"12345"]


def test_a_message_that_is_larger_comes_alone() -> None:
    world = ready(max_bytes=10)
    world.deliver("a", b"x" * 50)
    world.deliver("b", b"y" * 50)
    assert [len(world.take()) for _ in range(3)] == [1, 1, 0]


def test_one_topic_that_has_all_it_may_is_enough() -> None:
    world = ready(max_messages=100, timeout=0.0, receiver_queue_size=3)
    request = ask(world)
    world.deliver("a", b"1", b"2", b"3")
    assert told(world) == [request]
    assert len(world.take()) == 3


def test_time() -> None:
    world = ready(max_messages=100, timeout=0.5)
    request = ask(world)
    world.deliver("b", b"1")
    assert told(world) == []
    world.pass_time(0.6)
    assert told(world) == [request]


def test_requests_are_answered_in_turn() -> None:
    world = ready(max_messages=2)
    first, second = ask(world), ask(world)
    world.deliver("a", b"1", b"2", b"3")
    world.deliver("b", b"4")
    assert told(world) == [first]
    assert len(world.take()) == 2
    assert told(world) == [second]


def test_a_cancelled_request() -> None:
    world = ready(max_messages=2)
    world.script.client.abandon(world.script.now, ask(world))
    world.deliver("a", b"1", b"2")
    assert told(world) == []
    assert len(world.take()) == 2


def test_partitions_that_come_later_count() -> None:
    world = TopicsScript(
        "p",
        {"p": 1},
        batch_receive=BatchReceivePolicy(3, None, 60.0),
        partitions_update_interval=1.0,
    ).answer()
    world.partitions["p"] = 2
    world.pass_time(2.0)
    world.outputs.clear()
    request = ask(world)
    world.deliver("p-partition-0", b"1")
    world.deliver("p-partition-1", b"2", b"3")
    assert told(world) == [request]
    assert len(world.take()) == 3


def test_a_request_from_before_partitions_were_known_is_answered() -> None:
    world = TopicsScript("p", {"p": 2}, batch_receive=BatchReceivePolicy(2, None, 60.0))
    request = ask(world)
    world.answer()
    world.deliver("p-partition-0", b"1")
    world.deliver("p-partition-1", b"2")
    assert told(world) == [request]


def test_the_end() -> None:
    world = ready(max_messages=2)
    request = ask(world)
    world.script.client.close(world.script.now, world.handle)
    (failed,) = [output for output in world.told() if isinstance(output, RequestFailed)]
    assert failed.request == request
    assert isinstance(failed.error, ClosedError)


def test_the_end_of_all_topics() -> None:
    world = ready(max_messages=2)
    request = ask(world)
    for name in ("a", "b"):
        assert told(world) == []
        command = proto.CommandReachedEndOfTopic(consumer_id=world.consumer_of[name])
        world.say(Command.REACHED_END_OF_TOPIC, command)
    assert told(world) == [request]


def test_it_takes_a_policy() -> None:
    world = TopicsScript().answer()
    with pytest.raises(LocalProtocolError, match="batch_receive"):
        ask(world)


def test_queues_that_scale_belong_to_the_partitions() -> None:
    world = TopicsScript(
        "p", {"p": 2}, auto_scaled_receiver_queue_size=True, receiver_queue_size=100
    ).answer()
    assert world.granted == {"p-partition-0": 1, "p-partition-1": 1}
    assert len(world.script.client._services.received_memory.queues) == 2
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    assert not world.script.client._services.received_memory.queues


@pytest.mark.parametrize("why", ["seek", "closed"])
def test_the_end_counts_as_long_as_all_have_reached_it(why: str) -> None:
    world = ready(max_messages=2, timeout=0.0)
    for name in ("a", "b"):
        command = proto.CommandReachedEndOfTopic(consumer_id=world.consumer_of[name])
        world.say(Command.REACHED_END_OF_TOPIC, command)
    if why == "seek":
        world.script.client.seek(world.script.now, world.handle, EARLIEST)
    else:
        world.close_by_broker("a")
    world.told()
    request = ask(world)
    assert told(world) == []
    world.pass_time(1.0)
    world.deliver("a", b"1", b"2")
    assert told(world) == [request]


def test_a_partition_that_joins_after_all_others_have_ended() -> None:
    """More messages may arrive from the new partition, so the policy decides again what is enough."""
    world = ready("p", {"p": 2}, max_messages=2, timeout=0.0)
    for name in list(world.consumer_of):
        command = proto.CommandReachedEndOfTopic(consumer_id=world.consumer_of[name])
        world.say(Command.REACHED_END_OF_TOPIC, command)
    world.partitions["p"] = 3
    world.pass_time(61.0)
    world.told()
    request = ask(world)
    assert told(world) == []
    world.deliver("p-partition-2", b"1")
    assert told(world) == []
    world.deliver("p-partition-2", b"2", entry=1)
    assert told(world) == [request]


def test_what_was_opened_before_partitions_were_known_counts_no_more() -> None:
    """Neither a batch receive nor the memory of scaled queues keeps the queue of such a consumer, because
    topics of a pattern may come and go for ever."""
    world = TopicsScript(("p", "q"), {"p": 3, "q": 2}, batch_receive=BatchReceivePolicy()).answer()
    assert world.machine._batch_receive is not None
    assert len(world.machine._batch_receive._queues) == 5
    world = TopicsScript(("p", "q"), {"p": 3, "q": 2}, auto_scaled_receiver_queue_size=True).answer()
    assert len(world.script.client._services.received_memory.queues) == 5


def test_what_has_not_joined_does_not_count() -> None:
    """Messages of a new partition wait for the other new partitions (PART-11)."""
    world = ready("p", {"p": 1}, max_messages=2, timeout=0.0)
    world.partitions["p"] = 3
    world.ignore = {"p-partition-2"}
    world.pass_time(61.0)
    request = ask(world)
    world.deliver("p-partition-1", b"1", b"2")
    assert told(world) == []
    assert not world.take()
    world.feed(frame_success(world.asked[-1].request_id))
    assert told(world) == [request]
    assert len(world.take()) == 2
