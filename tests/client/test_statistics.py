"""The counts of a producer."""

import pytest

from pulsar_sansio.client.statistics import ProducerStatistics, SendLatency, together
from pulsar_sansio.model.config import BatchingPolicy, OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import LocalProtocolError
from tests.client.partitions.partitioned_script import PartitionedScript
from tests.client.producing.sender import Sender
from tests.client.script import frame_receipt


def statistics(of: Sender) -> ProducerStatistics:
    return of.script.client.producer_statistics(of.handle)


def test_messages_and_bytes_are_counted_when_written_and_again_when_sent_again() -> None:
    """A resent message counts again (STATS-02)."""
    sender = Sender()
    sender.send(bytes(10))
    sender.send(OutgoingMessage(None))
    assert statistics(sender) == ProducerStatistics(2, 10, pending=2, pending_bytes=10)
    sender.reattach()
    assert statistics(sender) == ProducerStatistics(4, 20, pending=2, pending_bytes=10)
    sender.script.lose(sender.link)
    sender.send(b"waits")
    assert statistics(sender) == ProducerStatistics(4, 20, pending=3, pending_bytes=15)


def test_every_message_is_confirmed_failed_or_pending_once() -> None:
    """A message that times out counts as failed once (STATS-04). Rule STATS-05."""
    sender = Sender(spec=ProducerSpec(topic="demo", batching=None, send_timeout=1.0))
    for _ in range(5):
        sender.send(b"12")
    sender.script.feed(sender.link, frame_receipt(0), frame_receipt(1))
    found = statistics(sender)
    assert (found.confirmed, found.failed, found.pending, found.pending_bytes) == (2, 0, 3, 6)
    sender.script.advance(1.5)
    found = statistics(sender)
    assert (found.confirmed, found.failed, found.pending, found.pending_bytes) == (2, 3, 0, 0)


@pytest.mark.parametrize("by_key", [False, True])
def test_batches(by_key: bool) -> None:
    policy = BatchingPolicy(max_messages=4, max_delay=5.0, by_key=by_key)
    sender = Sender(spec=ProducerSpec(topic="demo", batching=policy))
    for _ in range(7):
        sender.send(b"123")
    found = statistics(sender)
    assert (found.batches, found.batched_messages) == (1, 4)
    assert (found.messages_sent, found.bytes_sent) == (4, 12)
    assert (found.pending, found.pending_bytes) == (7, 21)


def test_latency_is_from_closing_an_entry_to_its_receipt() -> None:
    """Rule PROD-03."""
    sender = Sender()
    assert statistics(sender).latency is None
    for number in range(4):
        sender.send(b"x")
        sender.script.advance(0.001 * (number + 1))
        sender.script.feed(sender.link, frame_receipt(number))
        sender.script.drain()
    assert statistics(sender).latency == SendLatency(4, 0.003, 0.004, 0.004, 0.004, 0.004, 0.004)


def test_of_receipts_that_come_together_the_first_counts() -> None:
    sender = Sender()
    sender.send(b"1")
    sender.script.advance(0.5)
    sender.send(b"2")
    sender.script.advance(0.5)
    sender.script.feed(sender.link, frame_receipt(0), frame_receipt(1))
    latency = statistics(sender).latency
    assert latency is not None
    assert (latency.samples, latency.maximum) == (1, 1.0)


def test_the_latest_are_kept() -> None:
    sender = Sender()
    for number in range(1500):
        sender.send(b"x")
        sender.script.feed(sender.link, frame_receipt(number))
        sender.script.said()
    latency = statistics(sender).latency
    assert latency is not None
    assert latency.samples == 1024


def test_percentiles() -> None:
    millisecond = 1_000_000
    latency = SendLatency.of(range(0, 1000 * millisecond, millisecond))
    assert latency == SendLatency(1000, 0.5, 0.75, 0.95, 0.99, 0.999, 0.999)


def test_a_producer_that_has_ended_is_remembered() -> None:
    sender = Sender()
    sender.send(b"1")
    sender.script.client.close(sender.script.now, sender.handle)
    sender.script.lose(sender.link)
    found = statistics(sender)
    assert (found.messages_sent, found.failed, found.pending) == (1, 1, 0)
    with pytest.raises(LocalProtocolError):
        sender.script.client.producer_statistics(99)


def test_partitions_are_summed() -> None:
    """Messages that no partition has taken count, too."""
    world = PartitionedScript(3)
    world.answer()
    for _ in range(7):
        world.send(b"12")
    world.answer()
    world.confirm(0)
    world.terminate(1)
    world.answer()
    for _ in range(3):
        world.send(b"34")
    found = world.script.client.producer_statistics(world.handle)
    parts = world.script.client.partition_statistics(world.handle)
    assert found.confirmed == sum(part.confirmed for part in parts)
    assert found.failed == sum(part.failed for part in parts) + 1
    assert found.confirmed + found.failed + found.pending == 10
    assert found.pending_bytes == 2 * found.pending
    assert found.latency is not None


def test_a_sum_of_nothing_is_nothing() -> None:
    assert together([], ()) == ProducerStatistics()
