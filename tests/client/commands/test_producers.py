"""`ProducerCommands`: each command finds its producer, or refuses without any effect."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.outputs import ProducerReady, Receipts, RequestDone
from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec, SubscriptionType
from pulsar_sansio.model.errors import ClosedError, InvalidConfiguration, LocalProtocolError
from pulsar_sansio.wire import proto
from tests.client.commands.unknown_number import refuse_unknown_number
from tests.client.script import WALL, Command, Script, frame_error, frame_receipt, frame_success

COMMANDS: dict[str, Callable[[Client, int, int], Any]] = {
    "send": lambda client, now, handle: client.send(now, handle, b"x", WALL),
    "send_many": lambda client, now, handle: client.send_many(now, handle, [b"x"], WALL),
    "push": lambda client, now, handle: client.push(now, handle),
    "flush": lambda client, now, handle: client.flush(now, handle),
    "appender": lambda client, now, handle: client.appender(handle),
    "last_sequence_id": lambda client, now, handle: client.last_sequence_id(handle),
    "producer_statistics": lambda client, now, handle: client.producer_statistics(handle),
    "partition_statistics": lambda client, now, handle: client.partition_statistics(handle),
}
commands = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())


@commands
def test_a_number_that_was_never_given_is_refused_without_effect(
    command: Callable[[Client, int, int], Any],
) -> None:
    refuse_unknown_number(command, "producer")


@commands
def test_a_consumer_is_no_producer(command: Callable[[Client, int, int], Any]) -> None:
    script = Script()
    consumer = script.client.subscribe(script.now, ConsumerSpec("demo", "s", SubscriptionType.SHARED))
    with pytest.raises(LocalProtocolError):
        command(script.client, script.now, consumer)


@commands
def test_a_producer_that_failed_is_closed_with_the_cause(command: Callable[[Client, int, int], Any]) -> None:
    script = Script()
    producer = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(asked.request_id, proto.AuthorizationError, "not yours"))
    script.said()
    if command is COMMANDS["producer_statistics"]:
        assert command(script.client, script.now, producer).messages_sent == 0
        return
    with pytest.raises(ClosedError, match="not yours"):
        command(script.client, script.now, producer)


def test_statistics_outlive_the_producer() -> None:
    script = Script()
    producer, link = script.ready_producer(batching=None)
    script.client.send(script.now, producer, b"x", WALL)
    script.sent(link, Command.SEND)
    script.feed(link, frame_receipt(0))
    script.client.close(script.now, producer)
    close = script.sent(link, Command.CLOSE_PRODUCER)
    script.feed(link, frame_success(close.request_id))
    assert script.client.producer_statistics(producer).messages_sent == 1


def test_a_flush_is_done_when_everything_before_it_is_settled() -> None:
    script = Script()
    producer, link = script.ready_producer(batching=None)
    script.client.send(script.now, producer, b"x", WALL)
    request = script.client.flush(script.now, producer)
    script.sent(link, Command.SEND)
    script.feed(link, frame_receipt(0))
    receipts, done = script.said()
    assert isinstance(receipts, Receipts)
    assert done == RequestDone(request, None)


def test_tickets_count_from_0_for_each_producer() -> None:
    script = Script()
    first, link = script.ready_producer(batching=None)
    second, _ = script.ready_producer(batching=None, link=link, name="p-2")
    assert [script.client.send(script.now, first, b"x", WALL) for _ in range(2)] == [0, 1]
    assert script.client.send_many(script.now, second, [b"x", b"y"], WALL) == range(2)


def test_partition_statistics_exist_for_partitions_only() -> None:
    """A producer whose topic turns out to have partitions is replaced under its number."""
    script = Script()
    plain, link = script.ready_producer()
    assert script.client.partition_statistics(plain) == []
    several = script.client.open_producer(script.now, ProducerSpec(topic="parts"))
    assert script.client.partition_statistics(several) == []
    script.check_partitions(link, 2)
    found = script.client.partition_statistics(several)
    assert [each.topic.rpartition("/")[2] for each in found] == ["parts-partition-0", "parts-partition-1"]


def test_push_sends_the_open_batch_now() -> None:
    """An application that waits for a receipt does not wait for more messages."""
    script = Script()
    producer, link = script.ready_producer()
    script.client.send(script.now, producer, b"x", WALL)
    assert script.commands(link) == []
    script.client.push(script.now, producer)
    script.sent(link, Command.SEND)


@pytest.mark.parametrize("spec", [None, "demo", ConsumerSpec("demo", "s", SubscriptionType.SHARED)])
def test_anything_but_a_producer_spec_is_refused(spec: object) -> None:
    script = Script()
    with pytest.raises(InvalidConfiguration, match=f"a ProducerSpec, not {type(spec).__name__}"):
        script.client.open_producer(script.now, cast(Any, spec))
    assert script.said() == []


def test_a_ready_producer_gives_its_callables() -> None:
    script = Script()
    producer, _ = script.ready_producer()
    append = script.client.appender(producer)
    assert script.client.last_sequence_id(producer)() == -1
    assert append(b"x") == -1, "no batch is open"
    script.client.send(script.now, producer, b"x", WALL)
    assert append(b"y") == 1
    assert not [output for output in script.said() if isinstance(output, ProducerReady)]
