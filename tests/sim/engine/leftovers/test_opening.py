"""Clients that open something are not at rest."""

from pulsar_sim.engine.leftovers.opening import is_opening
from tests.client.partitions.partitioned_producers import ready


def test_a_client_opens_what_its_broker_has_closed() -> None:
    """INV-L1 at rest: one of two partitions waits for its next attempt, and then has a connection again."""
    world = ready(2)
    client = world.script.client
    assert not is_opening(client)
    world.close_by_broker(0)
    assert is_opening(client)
    world.pass_time(1.0)
    assert not is_opening(client)
