"""The one source of randomness."""

import pytest

from pulsar_sansio.core.rng import Rng


def test_the_numbers_of_a_seed_never_change() -> None:
    """Stored traces depend on them; getrandbits of a seed is the same on every version of Python."""
    rng = Rng(42)
    assert [rng.getrandbits(16) for _ in range(4)] == [41905, 7296, 1639, 48598]


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 64])
def test_below_gives_every_number_under_the_limit(limit: int) -> None:
    rng = Rng(1)
    assert {rng.below(limit) for _ in range(1000)} == set(range(limit))


def test_around_stays_within_the_percentage() -> None:
    rng = Rng(1)
    found = {rng.around(100, 5) for _ in range(1000)}
    assert found == set(range(95, 106))
    assert rng.around(0, 5) == 0


def test_letters() -> None:
    text = Rng(1).letters(50)
    assert len(text) == 50
    assert text.isalnum()
    assert text == text.lower() == Rng(1).letters(50)
