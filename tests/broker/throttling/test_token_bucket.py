"""A token bucket allows one period's tokens at once, and then as many in each period."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker.throttling.token_bucket import TokenBucket

SECOND = 1_000_000_000


def test_a_full_bucket_holds_the_tokens_of_one_period() -> None:
    bucket = TokenBucket(0, 3, SECOND)
    for _ in range(3):
        assert bucket.ready_at(0) == 0
        bucket.take(0, 1)
    assert bucket.ready_at(0) == 333_333_334


def test_a_debt_is_paid_before_the_next_token() -> None:
    bucket = TokenBucket(0, 10, SECOND)
    bucket.take(0, 100)
    assert bucket.ready_at(0) == 9_100_000_000
    assert bucket.ready_at(9_099_999_999) == 9_100_000_000
    assert bucket.ready_at(9_100_000_000) == 9_100_000_000


def test_time_without_use_gives_no_more_than_one_period() -> None:
    bucket = TokenBucket(0, 2, SECOND)
    bucket.take(100 * SECOND, 3)
    assert bucket.ready_at(100 * SECOND) == 101 * SECOND


@pytest.mark.parametrize("period", [1, SECOND, 7 * SECOND])
@given(
    rate=st.integers(1, 2**31),
    steps=st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**33)), max_size=20),
)
def test_it_counts_as_exactly_as_fractions(period: int, rate: int, steps: list[tuple[int, int]]) -> None:
    """After any history, the bucket is ready at the first whole moment at which fractions give a token."""
    bucket, now, level = TokenBucket(0, rate, period), 0, Fraction(rate)
    for pause, tokens in steps:
        now += pause
        level = min(Fraction(rate), level + Fraction(pause * rate, period)) - tokens
        bucket.take(now, tokens)
    ready = bucket.ready_at(now)
    assert level + Fraction((ready - now) * rate, period) >= 1
    assert ready == now or level + Fraction((ready - 1 - now) * rate, period) < 1
