"""Worlds with key ranges are drawn, every key has an owner, and the checks notice keys at wrong consumers."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from pulsar_sansio.broker.dispatching.key_hash import Sticky
from pulsar_sim.engine.failures import Outcome
from pulsar_sim.engine.profile import Profile
from pulsar_sim.engine.randomness import Streams
from pulsar_sim.generate import draw
from pulsar_sim.model import key_ranges as sticky
from pulsar_sim.world.world import World


@cache
def with_sticky_keys(count: int) -> list[tuple[int, Profile]]:
    found = ((seed, draw(Streams(seed))) for seed in range(2000))
    return [each for each in found if any(plan.ranges for plan in each[1].consumers)][:count]


def test_every_key_has_one_consumer() -> None:
    for _, profile in with_sticky_keys(20)[:4]:
        ranges = sorted(each for plan in profile.consumers for each in plan.ranges)
        assert ranges[0][0] == 0
        assert ranges[-1][1] == sticky.HASHES - 1
        assert all(one[1] + 1 == other[0] for one, other in pairwise(ranges))


def test_hashes_are_those_of_the_broker() -> None:
    for number in range(20):
        key = f"key-{number}"
        assert sticky.slot_of(key) == Sticky.slot_of(key.encode())


def test_they_pass() -> None:
    for seed, profile in with_sticky_keys(20)[:4]:
        report = World(seed, profile).run()
        assert report.outcome is Outcome.PASSED, str(report)


def run_until_noticed() -> str:
    for seed, profile in with_sticky_keys(20):
        consumers = [replace(plan, greedy_permille=300 if plan.ranges else 0) for plan in profile.consumers]
        report = World(seed, replace(profile, consumers=consumers)).run()
        if report.rule == "SUBT-08":
            return report.text
    raise AssertionError("no check notices")


def test_ranges_that_overlap_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sticky, "check", lambda self, ranges: None)
    assert "some of its keys" in run_until_noticed()


def test_keys_in_wrong_hands_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def owner(self: Any, slot: int) -> Any:
        return self._ranges[0][2] if self._ranges else None

    monkeypatch.setattr(Sticky, "owner", owner)
    assert "not its own" in run_until_noticed()
