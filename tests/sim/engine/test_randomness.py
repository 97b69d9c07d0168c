"""Streams of randomness: equal for equal seeds and names, independent, and within their ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sim.engine.randomness import Stream, Streams

seeds = st.integers(0, 2**63 - 1)


def draws(stream: Stream) -> list[int]:
    return [stream.below(1000) for _ in range(20)]


@given(seeds)
def test_a_stream_is_a_function_of_seed_and_name(seed: int) -> None:
    first, second = Streams(seed), Streams(seed)
    first.stream("other").bits(32)
    assert draws(first.stream("network")) == draws(second.stream("network"))
    assert draws(first.stream("network")) != draws(first.stream("faults"))
    assert draws(first.stream("network")) != draws(Streams(seed + 1).stream("network"))
    assert 0 <= first.seed_of("client") < 2**63


def test_the_draws_of_a_seed_never_change() -> None:
    """A recorded seed names a world for good; other numbers here make every one of them another world."""
    stream = Streams(7).stream("network")
    assert Streams(7).seed_of("network") == 2_286_550_752_164_072_450
    assert [stream.below(1000) for _ in range(5)] == [958, 654, 643, 852, 983]
    assert stream.spread(1, 10**9) == 225_753_526
    items = list("abcdef")
    stream.shuffle(items)
    assert "".join(items) == "fecadb"


@given(seeds, st.integers(1, 2**70))
def test_numbers_stay_below_their_limit(seed: int, limit: int) -> None:
    stream = Stream(seed)
    assert all(0 <= stream.below(limit) < limit for _ in range(20))


@given(seeds, st.integers(-50, 50), st.integers(0, 3))
def test_both_ends_of_a_range_are_drawn(seed: int, low: int, more: int) -> None:
    stream = Stream(seed)
    assert {stream.between(low, low + more) for _ in range(200)} == set(range(low, low + more + 1))


@given(seeds, st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_spread_stays_in_its_range(seed: int, low: int, more: int) -> None:
    stream = Stream(seed)
    assert all(low <= stream.spread(low, low + more) <= low + more for _ in range(50))


def test_a_spread_draws_small_numbers_as_often_as_large_ones() -> None:
    stream = Stream(1)
    drawn = [stream.spread(1, 1_000_000) for _ in range(2000)]
    below = [sum(number < 10**power for number in drawn) for power in (1, 2, 3, 4, 5)]
    assert all(300 * power < count < 450 * power for power, count in enumerate(below, 1))


@pytest.mark.parametrize(("permille", "drawn"), [(0, {False}), (1000, {True}), (500, {False, True})])
def test_a_chance_is_in_a_thousand(permille: int, drawn: set[bool]) -> None:
    stream = Stream(3)
    assert {stream.chance(permille) for _ in range(200)} == drawn


@given(seeds)
def test_an_item_without_weight_is_never_drawn(seed: int) -> None:
    stream = Stream(seed)
    found = [stream.weighted([("never", 0), ("often", 9), ("seldom", 1), ("never", 0)]) for _ in range(200)]
    assert set(found) <= {"often", "seldom"}
    assert found.count("often") > found.count("seldom")


@given(seeds, st.lists(st.integers(), max_size=10))
def test_shuffling_keeps_every_item(seed: int, items: list[int]) -> None:
    shuffled = list(items)
    Stream(seed).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_shuffling_gives_every_order() -> None:
    stream = Stream(5)
    found = set()
    for _ in range(200):
        items = list("abc")
        stream.shuffle(items)
        found.add("".join(items))
    assert found == {"abc", "acb", "bac", "bca", "cab", "cba"}
