"""A broker with one client, and rules of faults in few words."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio import FaultRule
from tests.broker.peer import World

AddRule = Callable[..., FaultRule]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def add(world: World) -> AddRule:
    def add(command: str, fault: Any = "count", **options: Any) -> FaultRule:
        rule = world.broker.faults.add(world.now, command, fault, **options)
        world.pump()
        return rule

    return add
