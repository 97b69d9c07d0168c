"""The tickets and ids of the partitions of one producer."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    ProducerFailed,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
    Writable,
)
from pulsar_sansio.model.config import (
    BatchingPolicy,
    OutgoingMessage,
    RoutingMode,
)
from pulsar_sansio.model.errors import (
    ClosedError,
    ProducerQueueIsFull,
)
from pulsar_sansio.model.message_id import MessageId
from tests.client.partitions.partitioned_producers import BATCHED, by_property, ready
from tests.client.partitions.partitioned_script import PartitionedScript

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
    """Two batches filled in turn: each receipt names its own tickets, ids count within the batch. Rule
    BATCH-02."""
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
