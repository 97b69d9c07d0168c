"""Partitioned producers under test."""

from typing import Any

from pulsar_sansio.client.outputs import (
    ProducerReady,
)
from pulsar_sansio.model.config import (
    BatchingPolicy,
    OutgoingMessage,
)
from tests.client.partitions.partitioned_script import PartitionedScript

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
