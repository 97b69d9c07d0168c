"""Messages for partitions that have ended, are full, detached, or not open."""

import gc

import pytest

from pulsar_sansio.client.outputs import Detached, ProducerReady, RequestFailed
from pulsar_sansio.client.partitions.partition_producer import Partition
from pulsar_sansio.model.config import BatchingPolicy, OutgoingMessage, RoutingMode
from pulsar_sansio.model.errors import ClosedError, ConnectionLost, TopicTerminated, TransactionNotOpen
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import proto
from tests.client.partitions.partitioned_producers import by_property, ready
from tests.client.partitions.partitioned_script import TOPIC, PartitionedScript
from tests.client.script import WALL, Command
from tests.client.transactions.transaction_script import TransactionScript


def test_when_the_last_one_is_open_and_another_one_is_not_any_more_the_reason_is_told() -> None:
    world = PartitionedScript(2)
    world.ignore = {1}
    world.answer()
    world.ignore = {0}
    world.close_by_broker(0)
    world.open_after_all(0)
    opened, detached = world.told()
    assert opened == ProducerReady(world.handle, "p-1", 0, TOPIC)
    assert isinstance(detached, Detached)
    assert isinstance(detached.cause, ConnectionLost)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_closing_producer_takes_no_messages_and_opens_nothing(lazy: bool) -> None:
    world = ready(2, lazy_start=lazy)
    world.answer_closes = False
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    opened = len(world.asked)
    for messages in ([], [b"x"] * 4):
        with pytest.raises(ClosedError):
            world.send_many(messages)
    world.answer()
    assert len(world.asked) == opened


def test_payloads_in_batches_to_a_partition_that_has_ended_fail() -> None:
    """A batch fails as single messages do, and the other partition goes on."""
    world = ready(
        2, batching=BatchingPolicy(max_delay=0.001), routing=RoutingMode.SINGLE_PARTITION, lazy_start=False
    )
    world.send(b"where")
    world.pass_time(0.01)
    (index,) = world.stored
    world.terminate(index)
    world.told()
    assert world.send_many([b"a", b"b"]) == range(1, 3)
    failed = world.settled()
    assert {ticket: type(error) for ticket, error in failed.items()} == dict.fromkeys((1, 2), TopicTerminated)


def test_what_comes_behind_a_message_without_room_is_not_looked_at() -> None:
    """The next attempt, when there is room, tells what is wrong with the message."""
    world = ready(2, routing=by_property, max_pending_messages=1)
    assert world.send_many([b"0", b"1", b"0", 5]) == range(2)


def test_the_appender_gives_minus_one_for_a_key_that_it_does_not_know() -> None:
    world = ready(2, batching=BatchingPolicy(max_delay=60.0))
    append = world.script.client.appender(world.handle)
    message = OutgoingMessage(b"x", key="k")
    assert append(message) == -1
    assert world.script.client.send(world.script.now, world.handle, message, WALL) == 0
    assert append(message) == 1


def test_partitions_that_could_not_be_opened_are_not_kept() -> None:
    """The application tries again and again, and the producer flushes nothing."""
    world = PartitionedScript(2, routing=by_property, lazy_start=True).answer()
    world.refuse = {1: proto.NotAllowedError}

    def kept() -> int:
        gc.collect()
        return sum(isinstance(each, Partition) for each in gc.get_objects())

    before = kept()
    for _ in range(5):
        world.send(b"1")
        world.answer()
    world.send(b"0")
    world.pass_time(100.0)
    assert kept() == before


def test_messages_are_taken_only_if_their_transactions_are_open() -> None:
    producer = PartitionedScript(batching=BatchingPolicy(max_delay=1.0))
    producer.answer()
    over = OutgoingMessage(b"b", transaction=TransactionId(0, 99))
    with pytest.raises(TransactionNotOpen):
        producer.send_many([b"a", over])
    assert producer.send(b"c") == 0


@pytest.mark.parametrize("as_many", [False, True])
def test_a_message_for_an_ended_partition_fails_the_commit(as_many: bool) -> None:
    """INV-T1"""
    script = TransactionScript()
    id_ = script.begin()
    producer = PartitionedScript(2, script=script, routing=lambda _, __: 0)
    producer.answer()
    producer.terminate(0)
    message = OutgoingMessage(b"a", transaction=id_)
    if as_many:
        producer.send_many([message])
    else:
        producer.send(message)
    request = script.commit(id_)
    assert script.answer(Command.END_TXN).txn_action == proto.ABORT
    [failed] = [each for each in script.said() if isinstance(each, RequestFailed)]
    assert failed.request == request
