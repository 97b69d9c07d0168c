"""The limits of messages in each partition, and flushes."""

import pytest

from pulsar_sansio.client.outputs import (
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
    Writable,
)
from pulsar_sansio.model.config import (
    OutgoingMessage,
    RoutingMode,
)
from pulsar_sansio.model.errors import (
    InvalidMessage,
    MessageTooLarge,
    ProducerQueueIsFull,
)
from pulsar_sansio.wire import proto
from tests.client.partitions.partitioned_producers import BATCHED, by_property, ready
from tests.client.partitions.partitioned_script import PartitionedScript

# --- the window ---------------------------------------------------------------------------------------


def test_each_partition_has_its_own_window() -> None:
    """Rule PART-02: 10 divided by 3 is less than 5."""
    world = ready(3, routing=by_property, max_pending_messages=5, max_pending_messages_across_partitions=10)
    for _ in range(3):
        world.send(b"0")
    with pytest.raises(ProducerQueueIsFull):
        world.send(b"0")
    assert world.send(b"1") == 3  # what was refused got no ticket
    world.answer()
    world.confirm(1)
    world.told()
    world.confirm(0, 1)
    assert [type(output) for output in world.told()] == [Receipts, Writable]
    assert world.send(b"0") == 4


def test_room_is_told_once_to_each_refused_send() -> None:
    """Two partitions are full, and one waits for both: each refusal is answered by one `Writable`."""
    world = ready(3, routing=by_property, max_pending_messages=1)
    for payload in (b"0", b"1"):
        world.send(payload)
    for payload in (b"0", b"1"):
        with pytest.raises(ProducerQueueIsFull):
            world.send(payload)
    world.answer()
    world.confirm(0)
    world.confirm(1)
    assert [type(output) for output in world.told()] == [Receipts, Writable, Receipts]
    assert world.send_many([b"0", b"1", b"2", b"2"]) == range(2, 5)
    with pytest.raises(ProducerQueueIsFull):
        world.send(b"0")
    world.answer()
    world.confirm(2)
    assert [type(output) for output in world.told()] == [Receipts, Writable]
    with pytest.raises(ProducerQueueIsFull):
        world.send(b"0")
    world.confirm(0)
    assert [type(output) for output in world.told()] == [Receipts, Writable]


def test_a_window_is_never_smaller_than_one_message() -> None:
    world = ready(3, max_pending_messages_across_partitions=2, routing=by_property)
    assert world.send(b"0") == 0
    with pytest.raises(ProducerQueueIsFull):
        world.send(b"0")


def test_send_many_takes_up_to_the_first_that_has_no_room() -> None:
    world = ready(2, routing=by_property, max_pending_messages=2)
    assert world.send_many([b"0", b"1", b"0", b"0", b"1"]) == range(3)
    assert world.send_many([b"0", b"1"]) == range(3, 3)
    world.answer()
    world.confirm(0)
    assert Writable(world.handle) in world.told()
    assert world.send_many([b"0", b"1"]) == range(3, 5)


def test_send_many_beyond_the_room_of_a_partition_that_was_not_begun() -> None:
    world = ready(2, routing=lambda message, partitions: 1, lazy_start=True, max_pending_messages=2)
    assert world.send_many([b"a"] * 3) == range(2)
    world.answer()
    world.confirm(1, 1)
    assert [type(output) for output in world.told()] == [Receipts, Writable]


def test_more_came_early_than_a_partition_has_room_for() -> None:
    """PROD-33: nothing is accepted until there is room; then `Writable` follows."""
    world = PartitionedScript(
        2, routing=RoutingMode.SINGLE_PARTITION, max_pending_messages_across_partitions=6
    )
    assert world.send_many([b"early"] * 5) == range(5)
    world.told()
    (index,) = world.sends
    assert world.send_many([b"late"] * 6) == range(5, 5)
    world.confirm(index, 2)
    assert Writable(world.handle) not in world.told()
    world.confirm(index, 1)
    assert Writable(world.handle) in world.told()
    assert world.send_many([b"late"] * 6) == range(5, 6)


def test_send_many_to_a_partition_that_has_ended_fails_them_all() -> None:
    world = ready(2, routing=lambda message, partitions: 1, max_pending_messages=2)
    world.terminate(1)
    world.told()
    assert world.send_many([b"a"] * 3) == range(3)
    assert sorted(world.settled()) == [0, 1, 2]


def test_send_many_of_a_wrong_message_takes_none() -> None:
    world = ready(2, routing=by_property)
    for wrong in (b"0" * (6 * 1024 * 1024), b"9", "text"):
        with pytest.raises(InvalidMessage):
            world.send_many([b"0", wrong])
    with pytest.raises(MessageTooLarge):
        world.send(b"0" * (6 * 1024 * 1024))
    assert world.told() == []
    assert world.send(b"0") == 0
    world.answer()
    assert world.stored == {0: [b"0"]}


def test_text_that_cannot_be_sent_fails_alone_among_many() -> None:
    world = ready(2)
    wrong = OutgoingMessage(b"x", properties={"a": "\ud800"})
    assert world.send_many([b"0", wrong, b"1"]) == range(3)
    world.answer()
    for index in range(2):
        world.confirm(index)
    settled = world.settled()
    assert isinstance(settled.pop(1), InvalidMessage)
    assert sorted(settled) == [0, 2]


# --- flush --------------------------------------------------------------------------------------------


def test_a_flush_waits_for_all_partitions() -> None:
    """Rules PART-14 and GAP-10."""
    world = ready(2, routing=by_property, batching=BATCHED)
    client, now = world.script.client, world.script.now
    world.send(b"0")
    world.send(b"1")
    request = client.flush(now, world.handle)
    assert world.told() == []
    assert sorted(world.sends) == [0, 1]
    world.confirm(1)
    assert [type(output) for output in world.told()] == [Receipts]
    world.confirm(0)
    assert world.told()[-1] == RequestDone(request, None)
    request = client.flush(now, world.handle)
    world.script.expect(RequestDone(request, None))


def test_a_flush_fails_with_what_failed() -> None:
    world = ready(2, routing=by_property, send_timeout=1.0)
    world.send(b"0")
    request = world.script.client.flush(world.script.now, world.handle)
    world.pass_time(1.1)
    failed, done = world.told()
    assert isinstance(failed, SendFailed)
    assert isinstance(done, RequestFailed)
    assert (done.request, done.error) == (request, failed.error)


def test_a_flush_from_before_the_partitions_were_known_fails_with_a_message_that_goes_to_none() -> None:
    world = PartitionedScript(2, routing=by_property)
    client, now = world.script.client, world.script.now
    requests = [client.flush(now, world.handle)]
    world.send(b"7")
    requests += [client.flush(now, world.handle)]
    world.send(b"1")
    requests += [client.flush(now, world.handle)]
    world.answer()
    world.confirm(1)
    answers = [output for output in world.told() if isinstance(output, RequestDone | RequestFailed)]
    assert answers[0] == RequestDone(requests[0], None)
    assert [(type(each), each.request) for each in answers[1:]] == [
        (RequestFailed, request) for request in requests[1:]
    ]


def test_a_flush_that_is_abandoned_is_not_answered() -> None:
    world = ready(2, routing=by_property)
    world.send(b"0")
    request = world.script.client.flush(world.script.now, world.handle)
    world.script.client.abandon(world.script.now, request)
    world.answer()
    world.confirm(0)
    assert [type(output) for output in world.told()] == [Receipts]


def test_a_flush_does_not_mind_new_partitions_that_are_being_closed_again() -> None:
    world = ready(1)
    world.partitions = 3
    world.refuse = {2: proto.NotAllowedError}
    world.answer_closes = False
    world.pass_time(60.1)
    assert world.closed == [1]
    world.send(b"a")
    request = world.script.client.flush(world.script.now, world.handle)
    world.answer()
    world.confirm(0)
    assert world.told()[-1] == RequestDone(request, None)
