"""Backoff: doubling waits with jitter, bounded, and one attempt before messages time out."""

import pytest

from pulsar_sansio.core.backoff import Backoff
from pulsar_sansio.core.rng import Rng

MS = 1_000_000


def waits(backoff: Backoff, count: int, now: int = 0) -> list[int]:
    found = []
    for _ in range(count):
        wait = backoff.next(now)
        now += wait
        found.append(wait)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_waits_double_up_to_the_maximum_within_five_per_cent(seed: int) -> None:
    """Rule GAP-05. Rule HAND-07."""
    found = waits(Backoff(100 * MS, 60_000 * MS, Rng(seed)), 14)
    expected = [min(100 * 2**step, 60_000) * MS for step in range(14)]
    for wait, middle in zip(found, expected, strict=True):
        assert middle * 95 // 100 <= wait <= middle * 105 // 100
    assert found != expected  # there is jitter


def test_the_same_seed_gives_the_same_waits() -> None:
    first, second, other = (waits(Backoff(MS, 60_000 * MS, Rng(seed)), 5) for seed in (3, 3, 4))
    assert first == second != other


def test_success_begins_again() -> None:
    backoff = Backoff(100 * MS, 60_000 * MS, Rng(1))
    waits(backoff, 5)
    backoff.reset()
    assert backoff.next(0) <= 105 * MS


def test_one_wait_is_cut_short_at_the_mandatory_stop() -> None:
    """Rule GAP-05."""
    stop = 29_900 * MS
    backoff = Backoff(100 * MS, 60_000 * MS, Rng(1), mandatory_stop=stop)
    moments = []
    now = 0
    for _ in range(12):
        now += backoff.next(now)
        moments.append(now)
    assert stop in moments
    assert moments[moments.index(stop) + 1] > stop + 40_000 * MS  # only once
