"""The client processes of a world: the limits of one client, whatever the faults."""

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_sim import World
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.nodes.client_node import ATTEMPTS_EACH, MAX_ATTEMPTS
from pulsar_sim.runs.scenarios import quiet_profile


@pytest.fixture
def world() -> World:
    """A finished world with one producer."""
    world = World(3, quiet_profile(messages=1))
    assert str(world.run()) == "seed 3 passed"
    world.hosts[0].node._recent_attempts.clear()
    return world


def connect(world: World, times: int) -> None:
    for _ in range(times):
        world.hosts[0].node._count_attempt()


def test_a_storm_of_connections_is_noticed(world: World) -> None:
    """INV-N6: connections that other clients need are no excuse."""
    stranger: Any = SimpleNamespace(host=SimpleNamespace(node=None))
    world.apps.transient_subscribers = [stranger] * MAX_ATTEMPTS
    connect(world, MAX_ATTEMPTS)
    with pytest.raises(ViolationError, match=f"opens {MAX_ATTEMPTS + 1} connections within a second"):
        connect(world, 1)


def test_a_client_with_many_producers_and_consumers_connects_more_often(world: World) -> None:
    user: Any = SimpleNamespace(host=world.hosts[0])
    world.apps.transient_subscribers = [user] * MAX_ATTEMPTS
    most = ATTEMPTS_EACH * (MAX_ATTEMPTS + 1) * len(world.topics.names)
    connect(world, most)
    with pytest.raises(ViolationError, match=f"opens {most + 1} connections within a second"):
        connect(world, 1)
