"""Messages that wait for a definition take memory, in queues whose size follows the memory."""

import pytest

from pulsar_sansio.client.delivery.scaled_queue import ScaledPermits
from tests.client.schemas.schema_script import SchemaScript

SIZE = 4
"""Bytes of an order of the newer definition."""


class Held:
    """A scaled queue that holds an order, a batch of two, and an order of another definition."""

    def __init__(self) -> None:
        self.script = SchemaScript(auto_scaled_receiver_queue_size=True, receiver_queue_size=100)
        self.script.order(1, 1)
        self.script.orders(2, 1, 2)
        self.script.order(3, 0)

    @property
    def bytes(self) -> int:
        return self.script.client._services.received_memory.bytes_waiting


def test_a_held_message_takes_memory_until_the_application_has_it() -> None:
    held = Held()
    script = held.script
    assert held.bytes == 4 * SIZE - 1
    script.asked()
    script.answer(1)
    assert held.bytes == 4 * SIZE - 1
    assert len(script.values()) == 3
    assert held.bytes == SIZE - 1
    script.asked()
    script.answer(0)
    assert len(script.values()) == 1
    assert held.bytes == 0


@pytest.mark.parametrize("gone", ["redelivered", "reconnected", "closed"])
def test_a_held_message_that_is_dropped_takes_none(gone: str) -> None:
    held = Held()
    if gone == "redelivered":
        held.script.client.redeliver_unacknowledged(held.script.now, held.script.consumer)
    elif gone == "reconnected":
        held.script.reconnect()
    else:
        held.script.close()
    assert held.bytes == 0


def test_held_messages_make_the_queue_smaller() -> None:
    """Held messages use the memory that producers and other queues would have."""
    held = Held()
    permits = held.script.machine.permits
    assert isinstance(permits, ScaledPermits)
    permits.grow()
    before = permits.queue_size
    memory = held.script.client._services.memory
    memory.limit = memory.free = 5 * SIZE
    held.script.order(4, 1)
    assert permits.queue_size < before
