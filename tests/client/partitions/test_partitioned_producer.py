"""One producer over several partitions: opening, tickets, growth, ends."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Detached,
    ProducerFailed,
    Receipts,
    RequestDone,
    SendFailed,
    Writable,
)
from pulsar_sansio.client.partitions.partition_producer import PartitionStatistics
from pulsar_sansio.client.partitions.partitioned_producer import PartitionedProducer
from pulsar_sansio.client.statistics import ProducerStatistics, SendLatency
from pulsar_sansio.model.config import (
    BatchingPolicy,
    OutgoingMessage,
    RoutingMode,
)
from pulsar_sansio.model.errors import (
    BrokerError,
    ClosedError,
    ConnectionLost,
    InvalidMessage,
    MessageTooLarge,
    ProducerQueueIsFull,
    ServerError,
    TopicTerminated,
)
from pulsar_sansio.model.interceptors import ProducerInterceptor
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import proto
from tests.client.partitions.partitioned_producers import BATCHED, SWITCH, by_property, ready
from tests.client.partitions.partitioned_script import TOPIC, PartitionedScript
from tests.client.script import Script

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


def test_a_send_that_waits_for_room_in_a_partition_that_ends_is_woken() -> None:
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
    producer = world.script.client._handles.producers[world.handle]
    assert isinstance(producer, PartitionedProducer)
    partition = producer._sender.partitions[0]
    assert partition is not None
    assert isinstance(partition.detached, ConnectionLost)
    world.refuse = {0: proto.TopicTerminatedError}
    world.pass_time(1.0)
    assert world.told() == [Attached(world.handle)]
    assert partition.detached is None
    assert partition.end is not None


def test_close_closes_all_and_says_so_once() -> None:
    """Rules PART-14 and GAP-10."""
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
    """Rule PART-01."""
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
