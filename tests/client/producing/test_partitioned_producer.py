"""One producer over several partitions: opening, tickets, growth, ends."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Detached,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
    Writable,
)
from pulsar_sansio.client.producing import partitioned_producer as module
from pulsar_sansio.client.producing.partition_producer import PartitionStatistics
from pulsar_sansio.client.producing.partitioned_producer import TRANSITIONS, PartitionedProducer
from pulsar_sansio.client.statistics import ProducerStatistics, SendLatency
from pulsar_sansio.core.transitions import IllegalMove
from pulsar_sansio.model.config import (
    BatchingPolicy,
    OutgoingMessage,
    ProducerAccessMode,
    RoutingMode,
)
from pulsar_sansio.model.errors import (
    BrokerError,
    ClosedError,
    InvalidMessage,
    MessageTooLarge,
    ProducerQueueIsFull,
    ServerError,
    TimedOut,
    TopicTerminated,
)
from pulsar_sansio.model.interceptors import ProducerInterceptor
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import proto
from tests.client.partitioned_script import TOPIC, PartitionedScript
from tests.client.script import Script, frame_producer_success

BATCHED = BatchingPolicy(max_messages=100, max_delay=0.001)
SWITCH = 0.010
"""Ten times the batching delay."""


def by_property(message: OutgoingMessage, partitions: int) -> int:
    """A custom router: the partition is the message's first byte."""
    payload = message.payload
    assert payload is not None
    return payload[0] - ord("0")


def ready(partitions: int = 3, **spec: Any) -> PartitionedScript:
    """An open producer; the outputs of its opening are cleared."""
    world = PartitionedScript(partitions, **spec).answer()
    assert isinstance(world.outputs[-1], ProducerReady)
    world.outputs.clear()
    return world


# --- opening ---------------------------------------------------------------------------------------


def test_the_first_partition_is_opened_and_gives_the_others_its_name() -> None:
    """java-partitioned: PRODUCER of partition 0 without a name; when it has one, the others with that name,
    which counts as the broker's."""
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


def test_who_closes_what_is_failing_waits_for_no_answer() -> None:
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


# --- tickets and ids ---------------------------------------------------------------------------------


def test_tickets_are_one_row_whatever_order_the_partitions_answer_in() -> None:
    world = ready(3, routing=by_property)
    tickets = [world.send(b"%d" % index) for index in (0, 1, 2, 2, 1, 0, 0)]
    assert tickets == list(range(7))
    world.answer()
    for index in (2, 0, 1):
        world.confirm(index)
    assert world.settled() == {
        2: MessageId(102, 0, 2),
        3: MessageId(102, 1, 2),
        0: MessageId(100, 0, 0),
        5: MessageId(100, 1, 0),
        6: MessageId(100, 2, 0),
        1: MessageId(101, 0, 1),
        4: MessageId(101, 1, 1),
    }


def test_a_batch_whose_messages_did_not_come_in_a_row() -> None:
    """Two batches filled in turn: each receipt names its own tickets, ids count within the batch."""
    world = ready(2, routing=by_property, batching=BATCHED)
    assert [world.send(b"%d" % index) for index in (0, 1, 1, 0, 0)] == [0, 1, 2, 3, 4]
    world.script.client.push(world.script.now, world.handle)
    world.answer()
    assert {index: len(sends) for index, sends in world.sends.items()} == {0: 1, 1: 1}
    world.confirm(0)
    world.confirm(1)
    assert world.settled() == {
        0: MessageId(100, 0, 0, 0, 3),
        3: MessageId(100, 0, 0, 1, 3),
        4: MessageId(100, 0, 0, 2, 3),
        1: MessageId(101, 0, 1, 0, 2),
        2: MessageId(101, 0, 1, 1, 2),
    }


def test_a_run_of_receipts_is_one_output() -> None:
    world = ready(2, routing=RoutingMode.SINGLE_PARTITION)
    for _ in range(5):
        world.send()
    world.answer()
    (index,) = world.sends
    world.confirm(index)
    (receipts,) = world.told()
    assert isinstance(receipts, Receipts)
    assert (receipts.first, len(receipts.message_ids)) == (0, 5)


@pytest.mark.parametrize("seeds", range(6))
def test_random_traffic_settles_every_ticket_once_with_its_own_id(seeds: int) -> None:
    """Single messages, many at a time, batches and appended payloads, confirmed bit by bit."""
    for seed in (2 * seeds, 2 * seeds + 1):
        draw = Random(seed)
        batching = draw.choice([None, BatchingPolicy(max_messages=draw.randint(2, 9), max_delay=0.001)])
        routing = draw.choice([RoutingMode.ROUND_ROBIN, RoutingMode.SINGLE_PARTITION, by_property])
        world = ready(3, batching=batching, routing=routing, max_pending_messages=25)
        client = world.script.client
        append = client.appender(world.handle)
        expected: dict[int, bytes] = {}
        settled: dict[int, Any] = {}
        for number in range(100):
            payloads = [b"%d-%d-%d" % (draw.randrange(3), number, n) for n in range(draw.randint(1, 6))]
            messages: list[Any] = [
                payload if draw.random() < 0.8 else OutgoingMessage(payload, key=f"k{draw.randrange(9)}")
                for payload in payloads
            ]
            how = draw.randrange(8)
            if how < 2:
                tickets = world.send_many(messages)
                expected.update(zip(tickets, payloads, strict=False))
            elif how < 5:
                for message, payload in zip(messages, payloads, strict=True):
                    ticket = append(message)
                    if ticket < 0:
                        try:
                            ticket = world.send(message)
                        except ProducerQueueIsFull:
                            break
                    assert ticket not in expected
                    expected[ticket] = payload
            elif how == 5:
                world.pass_time(draw.choice([0.0005, 0.002, 0.02]))
            elif how == 6:
                world.answer()
                world.confirm(draw.randrange(3), draw.randint(1, 5))
            else:
                client.push(world.script.now, world.handle)
            _settle(world, settled)
        client.push(world.script.now, world.handle)
        world.answer()
        for index in range(3):
            world.confirm(index)
        _settle(world, settled)
        assert sorted(settled) == list(range(len(expected))) == sorted(expected)
        for ticket, payload in expected.items():
            message_id = settled[ticket]
            stored = world.stored[message_id.partition]
            assert payload in stored
            if routing is by_property:
                assert message_id.partition == payload[0] - ord("0")
        for index in range(3):  # ids ascend as the messages were stored, and as they were sent
            here = [ticket for ticket in sorted(settled) if settled[ticket].partition == index]
            assert [expected[ticket] for ticket in here] == world.stored.get(index, [])
            assert sorted(settled[ticket] for ticket in here) == [settled[ticket] for ticket in here]
        assert [each.pending for each in client.partition_statistics(world.handle)] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_every_ticket_and_every_flush_is_settled_once(seed: int) -> None:
    """Connections are lost; partitions are closed, terminated and added; timeouts and an end occur."""
    draw = Random(seed)
    lazy = draw.random() < 0.5
    world = PartitionedScript(
        3,
        batching=draw.choice([None, BatchingPolicy(max_messages=4, max_delay=0.001)]),
        routing=draw.choice([RoutingMode.ROUND_ROBIN, by_property]),
        lazy_start=lazy,
        send_timeout=draw.choice([0.0, 1.0]),
        max_pending_messages=20,
        partitions_update_interval=0.5,
    )
    client = world.script.client
    given: set[int] = set()
    flushes: set[int] = set()
    settled: list[int] = []
    answered: list[int] = []
    for _ in range(150):
        message: Any = b"%d" % draw.randrange(3)
        if draw.random() < 0.4:
            message = OutgoingMessage(message, key=f"k{draw.randrange(9)}")
        try:
            match draw.randrange(12):
                case 0:
                    given.update(world.send_many([message] * draw.randint(1, 5)))
                case 1:
                    flushes.add(client.flush(world.script.now, world.handle))
                case 2:
                    world.pass_time(draw.choice([0.002, 0.2, 0.7]))
                case 3 | 4 if world.sends and world.attached():
                    world.confirm(draw.choice(sorted(world.sends)), draw.randint(1, 4))
                case 5 if draw.random() < 0.3 and client.links:
                    world.script.lose(client.links[0])
                    world.sends.clear()
                case 6 if draw.random() < 0.3 and world.attached():
                    world.close_by_broker(draw.choice(world.attached()))
                    world.sends.clear()
                case 7 if draw.random() < 0.1 and world.attached():
                    world.terminate(draw.choice(world.attached()))
                    world.sends.clear()
                case 8 if draw.random() < 0.1:
                    world.partitions += 1
                case 9:
                    world.answer()
                case _:
                    given.add(world.send(message))
        except ProducerQueueIsFull:
            pass
        except ClosedError:
            break
    client.close(world.script.now, world.handle)
    world.pass_time(40.0)
    ends = 0
    for output in world.told():
        match output:
            case Receipts(_, first, message_ids):
                settled += range(first, first + len(message_ids))
            case SendFailed(_, first, count):
                settled += range(first, first + count)
            case RequestDone(request) | RequestFailed(request):
                answered.append(request)
            case Closed() | ProducerFailed():
                ends += 1
    assert sorted(settled) == sorted(given) == list(range(len(given)))
    assert flushes <= set(answered)
    assert len(answered) == len(set(answered))
    assert ends == 1
    assert not client._handles.producers
    questions = world.metadata_questions
    world.pass_time(3.0)
    assert world.metadata_questions == questions


def _settle(world: PartitionedScript, settled: dict[int, Any]) -> None:
    for output in world.told():
        if isinstance(output, Receipts):
            for ticket, message_id in enumerate(output.message_ids, output.first):
                assert ticket not in settled
                settled[ticket] = message_id
        else:
            assert isinstance(output, Writable), output


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


def test_room_is_told_once_to_who_asked() -> None:
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
    """Rule PART-14."""
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


# --- lost and back ------------------------------------------------------------------------------------


def test_detached_with_the_first_and_attached_with_the_last() -> None:
    world = ready(3, routing=by_property)
    world.close_by_broker(0)
    (detached,) = world.told()
    assert isinstance(detached, Detached)
    assert detached.id == world.handle
    world.close_by_broker(1)
    assert world.told() == []
    world.send(b"0")
    world.pass_time(1.0)
    assert world.told() == [Attached(world.handle)]
    assert world.stored == {0: [b"0"]}


def test_after_a_lost_connection_each_partition_sends_its_own_again() -> None:
    world = ready(2, routing=by_property)
    for payload in (b"0a", b"1b", b"0c"):
        world.send(payload)
    world.answer()
    (link,) = world.script.client.links
    world.sends.clear()
    world.script.lose(link)
    world.pass_time(1.0)
    assert [type(output) for output in world.told()] == [Detached, Attached]
    assert world.stored == {0: [b"0a", b"0c", b"0a", b"0c"], 1: [b"1b", b"1b"]}
    world.confirm(1)
    world.confirm(0)
    assert sorted(world.settled()) == [0, 1, 2]


def test_a_send_timeout_is_each_partitions_own() -> None:
    world = ready(2, routing=by_property, send_timeout=1.0)
    world.send(b"0")
    world.pass_time(0.5)
    for payload in (b"1", b"0", b"1"):
        world.send(payload)
    world.pass_time(0.6)
    first, second = world.told()
    assert isinstance(first, SendFailed)
    assert isinstance(second, SendFailed)
    assert [(failed.first, failed.count) for failed in (first, second)] == [(0, 1), (2, 1)]
    world.confirm(1)
    assert sorted(world.settled()) == [1, 3]
    assert world.send(b"0") == 4
    world.answer()
    world.confirm(0)  # the receipts of what timed out name no message any more
    assert list(world.settled()) == [4]


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
    """Rules PART-07, PART-10, PART-13."""
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


# --- ends ---------------------------------------------------------------------------------------------


def test_a_partition_that_ends_takes_only_its_own_messages_with_it() -> None:
    world = ready(2, routing=by_property)
    world.send(b"0")
    world.send(b"1")
    world.answer()
    world.terminate(0)
    (failed,) = world.told()
    assert isinstance(failed, SendFailed)
    assert (failed.first, failed.count) == (0, 1)
    assert isinstance(failed.error, TopicTerminated)
    assert world.send(b"0") == 2
    assert list(world.send_many([b"1", b"0", b"1"])) == [3, 4, 5]
    world.answer()
    world.confirm(1)
    settled = world.settled()
    assert [ticket for ticket, result in settled.items() if isinstance(result, TopicTerminated)] == [2, 4]
    assert sorted(settled) == [1, 2, 3, 4, 5]
    with pytest.raises(InvalidMessage):
        world.send("text")


def test_who_waits_for_room_in_a_partition_that_ends_is_woken() -> None:
    world = ready(2, routing=by_property, max_pending_messages=1)
    world.send(b"0")
    with pytest.raises(ProducerQueueIsFull):
        world.send(b"0")
    world.answer()
    world.terminate(0)
    assert [type(output) for output in world.told()] == [SendFailed, Writable]
    assert world.send(b"0") == 1
    assert isinstance(world.settled()[1], TopicTerminated)


def test_when_the_last_partition_has_ended_the_whole_has() -> None:
    world = ready(2, routing=by_property)
    world.terminate(0)
    assert world.told() == []
    world.terminate(1)
    (end,) = world.told()
    assert isinstance(end, Closed)
    assert isinstance(end.error, TopicTerminated)
    with pytest.raises(ClosedError):
        world.send(b"0")
    assert world.script.client.next_deadline() is None or world.metadata_questions == 1


def test_a_partition_that_ends_while_detached_is_not_waited_for() -> None:
    world = ready(2, routing=by_property)
    world.close_by_broker(0)
    assert [type(output) for output in world.told()] == [Detached]
    world.refuse = {0: proto.TopicTerminatedError}
    world.pass_time(1.0)
    assert world.told() == [Attached(world.handle)]


def test_close_closes_all_and_says_so_once() -> None:
    """Rule PART-14."""
    world = ready(3, routing=by_property, batching=BATCHED)
    for payload in (b"0", b"1", b"0"):
        world.send(payload)
    request = world.script.client.close(world.script.now, world.handle)
    with pytest.raises(ClosedError):
        world.send(b"0")
    with pytest.raises(ClosedError):
        world.send_many([b"0"])
    assert world.script.client.appender(world.handle)(b"0") == -1
    *failed, closed, done = world.told()
    assert sorted(
        ticket
        for output in failed
        if isinstance(output, SendFailed)
        for ticket in range(output.first, output.first + output.count)
    ) == [0, 1, 2]
    assert closed == Closed(world.handle, None)
    assert done == RequestDone(request, None)
    assert sorted(world.closed) == [0, 1, 2]


def test_closing_the_client_closes_it() -> None:
    world = ready(2)
    request = world.script.client.close(world.script.now)
    assert Closed(world.handle, None) in world.told()
    assert RequestDone(request, None) in world.script.history


def test_statistics_by_partition() -> None:
    world = ready(2, routing=by_property)
    for payload in (b"0", b"1", b"1"):
        world.send(payload)
    world.answer()
    world.confirm(1, 1)
    assert world.script.client.partition_statistics(world.handle) == [
        PartitionStatistics(
            f"{TOPIC}-partition-0", True, ProducerStatistics(1, 1, pending=1, pending_bytes=1)
        ),
        PartitionStatistics(
            f"{TOPIC}-partition-1",
            True,
            ProducerStatistics(
                2, 2, confirmed=1, pending=1, pending_bytes=1, latency=SendLatency(1, 0, 0, 0, 0, 0, 0)
            ),
        ),
    ]
    assert world.script.client.producer_statistics(world.handle) == ProducerStatistics(
        3, 3, confirmed=1, pending=2, pending_bytes=2, latency=SendLatency(1, 0, 0, 0, 0, 0, 0)
    )


# --- routing in a producer ------------------------------------------------------------------------------


def test_round_robin_without_batching_takes_turns() -> None:
    """Rule ROUTE-04."""
    world = ready(3)
    world.send_many([b"0", b"1"])
    for number in range(2, 6):
        world.send(b"%d" % number)
    world.answer()
    first = next(index for index, stored in world.stored.items() if stored[0] == b"0")
    assert [world.stored[(first + n) % 3] for n in range(3)] == [[b"0", b"3"], [b"1", b"4"], [b"2", b"5"]]


def test_a_message_that_is_refused_moves_no_turn() -> None:
    world = ready(2)
    first = world.send(b"a")
    with pytest.raises(MessageTooLarge):
        world.send(b"x" * (6 * 1024 * 1024))
    world.send(b"b")
    world.answer()
    assert first == 0
    assert sorted(world.stored) == [0, 1]


def test_round_robin_with_batching_stays_for_a_window_and_cuts_no_batch() -> None:
    """Rule ROUTE-03; the clock counts when a batch begins."""
    world = ready(4, batching=BatchingPolicy(max_messages=4, max_delay=0.001))
    append = world.script.client.appender(world.handle)
    window = round(SWITCH * 1e9)
    world.script.now += window - world.script.now % window  # a window begins
    world.send(b"a")
    world.script.now += window  # the next one has begun, and the batch is still open
    assert append(b"b") == 1
    world.answer()
    world.pass_time(0.001)
    world.send(b"c")
    world.pass_time(0.002)
    (first,) = [index for index, stored in world.stored.items() if stored == [b"a", b"b"]]
    assert world.stored[(first + 1) % 4] == [b"c"]


def test_keys_leave_the_open_batch_of_the_others_alone() -> None:
    world = ready(2, routing=RoutingMode.SINGLE_PARTITION, batching=BATCHED)
    append = world.script.client.appender(world.handle)
    world.send(b"plain")
    assert append(b"plain") == 1
    keys = [world.send(OutgoingMessage(b"%d" % n, key=f"key-{n}")) for n in range(8)]
    assert keys == list(range(2, 10))
    assert append(b"declined: the last message went by its key") == -1
    world.pass_time(0.01)
    assert sorted(len(stored) for stored in world.stored.values()) != [0, 10]
    for index in range(2):
        world.confirm(index)
    settled = world.settled()
    assert settled[0].partition == settled[1].partition


# --- the table ------------------------------------------------------------------------------------------


STATES = [
    module.Opening(None),
    module.Ready(),
    module.Failing(TimedOut("")),
    module.Closing(True),
    module.Over(),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_what_is_not_in_the_table_is_not_possible(state: module.State) -> None:
    for event in module.Input:
        for following in STATES:
            if TRANSITIONS.table.get((type(state), event)) is not type(following):
                with pytest.raises(IllegalMove):
                    TRANSITIONS.check(state, event, following)


def test_the_first_error_is_a_brokers() -> None:
    """A retryable refusal is retried until the operation timeout, and then reported."""
    world = PartitionedScript(2, script=Script(operation_timeout=3.0))
    world.refuse = {1: proto.ServiceNotReady}
    for _ in range(40):
        world.answer()
        world.pass_time(0.1)
    (end,) = world.told()
    assert isinstance(end, ProducerFailed)
    assert isinstance(end.error, BrokerError)
    assert end.error.code is ServerError.ServiceNotReady
    assert world.closed == [0]
    assert not isinstance(world.script.client._handles.producers.get(world.handle), PartitionedProducer)


# --- everything together ---------------------------------------------------------------------------------


class Counting(ProducerInterceptor):
    """The messages that the interceptor saw, less their outcomes."""

    def __init__(self) -> None:
        self.open = 0

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        self.open += 1
        return message

    def on_send_acknowledgement(self, *_: object) -> None:
        self.open -= 1
        assert self.open >= 0


@pytest.mark.parametrize("seed", range(12))
def test_batches_by_key_memory_and_interceptors_over_partitions(seed: int) -> None:
    """INV-P1 and INV-P7, with lost connections, ended partitions and tickets that are not consecutive."""
    draw = Random(seed)
    limit = draw.choice([30, 200])
    counting = Counting()
    world = PartitionedScript(
        3,
        script=Script(memory_limit=limit),
        batching=BatchingPolicy(max_messages=draw.choice([3, 8]), max_delay=0.01, by_key=True),
        lazy_start=draw.random() < 0.5,
        send_timeout=draw.choice([0.0, 1.0]),
        interceptors=(counting,) if draw.random() < 0.7 else (),
    )
    client = world.script.client
    sizes: dict[int, int] = {}
    settled: list[int] = []

    def look() -> None:
        for ticket, _ in _outcomes(world):
            settled.append(ticket)
            del sizes[ticket]
        assert client.memory_held == sum(sizes.values()) <= max(limit, 50)

    for _ in range(120):
        size = draw.choice([0, 1, 9, 50])
        message: Any = OutgoingMessage(bytes(size), key=f"k{draw.randrange(6)}")
        if draw.random() < 0.2:
            message = bytes(size)
        try:
            match draw.randrange(10):
                case 0:
                    given = world.send_many([message] * draw.randint(1, 4))
                    sizes.update(dict.fromkeys(given, size))
                case 1:
                    client.push(world.script.now, world.handle)
                case 2:
                    world.pass_time(draw.choice([0.02, 0.2, 1.2]))
                case 3 | 4 if world.sends and client.links:
                    world.confirm(draw.choice(sorted(world.sends)), draw.randint(1, 4))
                case 5 if draw.random() < 0.2 and client.links:
                    world.script.lose(client.links[0])
                    world.sends.clear()
                case 6 if draw.random() < 0.1 and world.attached():
                    world.terminate(draw.choice(world.attached()))
                    world.sends.clear()
                case 7:
                    world.answer()
                case _:
                    sizes[world.send(message)] = size
        except ProducerQueueIsFull:
            pass
        except ClosedError:
            break
        look()
    client.close(world.script.now, world.handle)
    world.pass_time(40.0)
    look()
    assert not sizes
    assert sorted(settled) == list(range(len(settled)))
    assert counting.open == 0
    statistics = client.producer_statistics(world.handle)
    assert (statistics.pending, statistics.pending_bytes) == (0, 0)
    assert statistics.confirmed + statistics.failed == len(settled)


def _outcomes(world: PartitionedScript) -> list[tuple[int, Any]]:
    found: list[tuple[int, Any]] = []
    for output in world.told():
        if isinstance(output, Receipts):
            found += enumerate(output.message_ids, output.first)
        elif isinstance(output, SendFailed):
            found += [(output.first + number, output.error) for number in range(output.count)]
    return found
