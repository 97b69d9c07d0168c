"""Queues whose size follows the application, and the memory there is."""

from typing import Any

import pytest

from pulsar_sansio.client.delivery.scaled_queue import ScaledPermits
from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType
from pulsar_sansio.wire import MessageCommand
from tests.client.broker_script import ConsumerScript, Script, entry_bytes


class Scaled(ConsumerScript):
    """A consumer of a client with a limit of memory."""

    def __init__(self, maximum: int, memory_limit: int | None, **spec: Any) -> None:
        Script.__init__(self, memory_limit=memory_limit)
        self.spec = ConsumerSpec(
            "t", "s", receiver_queue_size=maximum, auto_scaled_receiver_queue_size=True, **spec
        )
        self.consumer = self.client.subscribe(self.now, self.spec)
        self.pump()


def started(maximum: int, *, memory_limit: int | None = None, **spec: Any) -> ConsumerScript:
    script = Scaled(maximum, memory_limit, **spec)
    script.accept()
    script.outputs()
    return script


def granted(s: ConsumerScript) -> int:
    return sum(command.message_permits for name, command in s.frames() if name == "FLOW")


class Flow:
    """A broker that sends as much as it may."""

    def __init__(self, s: ConsumerScript, payload: bytes = b"m") -> None:
        self.s = s
        self.payload = payload
        self.next_entry = 0
        self.permits = granted(s)

    def send(self, count: int) -> None:
        assert count <= self.permits
        for _ in range(count):
            self.s.message(self.next_entry, self.payload)
            self.next_entry += 1
        self.permits += granted(self.s) - count

    def receive_all(self) -> int:
        """Receive until nothing is there, and once more."""
        count = 0
        while self.s.receive() is not None:
            count += 1
        self.permits += granted(self.s)
        return count


def test_it_begins_with_one_and_doubles_while_the_application_is_faster() -> None:
    flow = Flow(started(8))
    sizes = []
    for _ in range(6):
        sizes.append(flow.permits)
        flow.send(flow.permits)
        flow.receive_all()
    assert sizes == [1, 2, 4, 8, 8, 8]


def test_it_doubles_where_messages_are_taken_together_too() -> None:
    flow = Flow(started(8))
    sizes = []
    for _ in range(5):
        sizes.append(flow.permits)
        flow.send(flow.permits)
        while flow.s.take():
            pass
        flow.permits += granted(flow.s)
    assert sizes == [1, 2, 4, 8, 8]


def test_it_does_not_grow_while_the_broker_has_permits_left() -> None:
    flow = Flow(started(8))
    flow.send(1)
    flow.receive_all()
    assert flow.permits == 2
    flow.send(1)
    flow.receive_all()
    assert flow.permits == 2


def test_nor_by_looking_often() -> None:
    s = started(8)
    flow = Flow(s)
    for _ in range(5):
        assert s.receive() is None
    flow.send(1)
    for _ in range(5):
        flow.receive_all()
    assert flow.permits == 2


def test_nor_when_the_memory_is_three_quarters_full() -> None:
    s = started(8, memory_limit=100)
    other = s.client.subscribe(s.now, s.spec)
    s.accept()
    granted(s)
    Second(s, other).message(0, b"x" * 75)
    flow = Flow(s)
    flow.permits = 1
    flow.send(1)
    flow.receive_all()
    assert flow.permits == 1


class Second:
    """The second consumer of a client."""

    def __init__(self, s: ConsumerScript, consumer: int) -> None:
        self.s = s
        self.consumer = consumer

    def message(self, entry: int, payload: bytes) -> None:
        stored = entry_bytes(payload, sequence_id=entry)
        self.s.bytes(MessageCommand(1, 1, entry, payload=stored).encode())
        self.s.pump()

    def take(self) -> int:
        return len(self.s.client.take(self.s.now, self.consumer, 100))


def test_what_waits_nearly_fills_the_memory_and_the_queues_become_smaller() -> None:
    s = started(8, memory_limit=1000)
    flow = Flow(s)
    for _ in range(4):
        flow.send(flow.permits)
        flow.receive_all()
    assert flow.permits == 8
    other = Second(s, s.client.subscribe(s.now, s.spec))
    s.accept()
    granted(s)
    other.message(0, b"x" * 960)
    flow.send(8)
    flow.receive_all()
    assert flow.permits == 4
    other.take()
    granted(s)
    flow.send(4)
    flow.receive_all()
    assert flow.permits == 8


def test_a_smaller_queue_takes_back_what_is_not_with_the_broker() -> None:
    permits = ScaledPermits(16, 1)
    told: list[int] = []
    permits.attach(told.append)
    for _ in range(4):
        permits.grow()
    assert (sum(told), permits.queue_size) == (16, 16)
    permits.shrink()
    assert (permits.queue_size, permits.until_report) == (8, 12)
    for _ in range(8):
        permits.charge(1, 1)
        permits.give_back(1)
    assert sum(told) == 16
    assert permits.at_broker == permits.queue_size == 8
    for _ in range(5):
        permits.shrink()
    assert permits.queue_size == 1


@pytest.mark.parametrize("how", ["receive", "take", "close", "redeliver", "lose"])
def test_no_byte_is_held_when_nothing_waits(how: str) -> None:
    s = started(100)
    memory = s.client._services.received_memory
    flow = Flow(s, b"12345")
    for _ in range(4):
        flow.send(flow.permits)
        flow.receive_all()
    flow.send(flow.permits)
    s.batch(flow.next_entry, 3)
    assert memory.bytes_waiting == 5 * 16 + 3 * len("17.0")
    s.receive()
    if how == "receive":
        flow.receive_all()
    elif how == "take":
        s.take(2)
        s.take(5)
        s.take()
    elif how == "close":
        s.close()
    elif how == "redeliver":
        s.redeliver()
    else:
        s.reconnect()
    assert memory.bytes_waiting == 0


def test_what_is_taken_back_for_redelivery_is_not_counted_any_more() -> None:
    s = started(100, subscription_type=SubscriptionType.SHARED, acknowledgement_timeout=5.0)
    memory = s.client._services.received_memory
    flow = Flow(s)
    for _ in range(4):
        flow.send(flow.permits)
        flow.receive_all()
    s.batch(100, 4)
    s.batch(101, 2)
    s.message(102, b"1234567")
    s.receive()
    s.pass_time(7_000_000_000)
    assert memory.bytes_waiting == 2 * len("101.0") + 7
    assert [message.data for message in s.take()] == [b"101.0", b"101.1", b"1234567"]
    assert memory.bytes_waiting == 0


def test_a_limit_there_is_not_is_never_full() -> None:
    s = started(8, memory_limit=None)
    assert s.client._services.received_memory.usage == 0.0
