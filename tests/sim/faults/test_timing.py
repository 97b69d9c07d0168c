"""The timing of a world: timers and the store, before and after healing."""

from typing import Any

import pytest

from pulsar_sim.engine.clock import MILLISECOND, SECOND, Clock
from pulsar_sim.engine.randomness import Stream
from pulsar_sim.faults.timing import Timing


class World:
    """A clock, and the faults that were counted."""

    def __init__(self) -> None:
        self.clock = Clock(0)
        self.faults: list[str] = []

    def count_fault(self, name: str) -> None:
        self.faults.append(name)


def given(store_delay: int = 10 * MILLISECOND) -> tuple[Any, Timing]:
    world: Any = World()
    return world, Timing(world, Stream(1), store_delay)


def test_without_faults_timers_are_exact() -> None:
    world, timing = given()
    assert all(timing.wakes_at(deadline) == deadline for deadline in range(200))
    assert not any(timing.wakes_for_nothing() for _ in range(200))
    assert world.faults == []


def test_timers_are_late_and_early_as_often_as_is_drawn() -> None:
    world, timing = given()
    timing.timers_late_permille = timing.timers_early_permille = 300
    late = [each for _ in range(1000) if (each := timing.wakes_at(SECOND)) != SECOND]
    early = sum(timing.wakes_for_nothing() for _ in range(1000))
    assert 200 < len(late) < 400
    assert 200 < early < 400
    assert all(MILLISECOND <= each - SECOND <= 500 * MILLISECOND for each in late)
    assert world.faults == ["timer_late"] * len(late) + ["timer_early"] * early


def test_healing_ends_wrong_timers() -> None:
    _, timing = given()
    timing.timers_late_permille = timing.timers_early_permille = timing.stale_permille = 1000
    timing.heal()
    assert timing.wakes_at(5) == 5
    assert not timing.wakes_for_nothing()
    assert timing.stale_permille == 0


@pytest.mark.parametrize("slow", [False, True])
def test_the_store_takes_from_half_to_one_and_a_half_of_its_time(slow: bool) -> None:
    """A slow store takes up to three seconds more, until a moment."""
    world, timing = given()
    timing.slow_store_until = 100
    world.clock.now = 99 if slow else 100
    least, most = (100 * MILLISECOND, 3 * SECOND) if slow else (0, 0)
    found = [timing.store_delay() for _ in range(500)]
    assert all(5 * MILLISECOND + least <= each < 15 * MILLISECOND + most for each in found)
    assert max(found) - min(found) > 9 * MILLISECOND
