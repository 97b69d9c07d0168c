"""`RedeliveryBackoff` and `DeadLetterPolicy` check their options; the delays of a backoff."""

from typing import Any

import pytest

from pulsar_sansio.model.config import (
    DeadLetterPolicy,
    RedeliveryBackoff,
)
from pulsar_sansio.model.errors import InvalidConfiguration

BAD: list[tuple[Any, dict[str, Any], str]] = [
    (DeadLetterPolicy, {"max_redeliver_count": 0}, "max_redeliver_count"),
    (DeadLetterPolicy, {"max_redeliver_count": 1, "topic": "a/b"}, "topic name"),
    (DeadLetterPolicy, {"max_redeliver_count": 1, "retry_topic": ""}, "topic name"),
    (DeadLetterPolicy, {"max_redeliver_count": 1, "initial_subscription": " "}, "initial_subscription"),
    (RedeliveryBackoff, {"min_delay": -1.0}, "min_delay"),
    (RedeliveryBackoff, {"min_delay": 10.0, "max_delay": 5.0}, "max_delay"),
    (RedeliveryBackoff, {"multiplier": 1.0}, "multiplier"),
    (RedeliveryBackoff, {"multiplier": float("nan")}, "multiplier"),
]


@pytest.mark.parametrize(("kind", "options", "word"), BAD)
def test_a_bad_option_is_named(kind: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidConfiguration, match=word):
        kind(**options)


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [
        (RedeliveryBackoff(), (10, 20, 40, 80, 160, 320, 600)),
        (RedeliveryBackoff(1.0, 3.0, 1.5), (1, 1.5, 2.25, 3)),
        (RedeliveryBackoff(5.0, 5.0), (5,)),
        (RedeliveryBackoff(0.0, 100.0), (0,)),
    ],
)
def test_the_delays_of_a_backoff(backoff: RedeliveryBackoff, seconds: tuple[float, ...]) -> None:
    assert backoff.delays() == tuple(round(each * 1_000_000_000) for each in seconds)
