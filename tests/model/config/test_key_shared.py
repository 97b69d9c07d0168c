"""`KeySharedPolicy` checks its ranges of hashes."""

from typing import Any

import pytest

from pulsar_sansio.model.config import (
    KeySharedPolicy,
)
from pulsar_sansio.model.errors import InvalidConfiguration

BAD: list[tuple[Any, dict[str, Any], str]] = [
    (KeySharedPolicy, {"ranges": ()}, "ranges"),
    (KeySharedPolicy, {"ranges": [(0, 1)]}, "ranges"),
    (KeySharedPolicy, {"ranges": ((0, 65536),)}, "65536"),
    (KeySharedPolicy, {"ranges": ((5, 4),)}, "first <= last"),
    (KeySharedPolicy, {"ranges": ((0, True),)}, "ranges"),
    (KeySharedPolicy, {"ranges": (0, 1)}, "ranges"),
    (KeySharedPolicy, {"ranges": ((50, 60), (0, 50))}, "overlap"),
    (KeySharedPolicy, {"ranges": ((0, 1),) * 10_001}, "10000"),
    (KeySharedPolicy, {"allow_out_of_order": 1}, "allow_out_of_order"),
]


@pytest.mark.parametrize(("kind", "options", "word"), BAD)
def test_a_bad_option_is_named(kind: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidConfiguration, match=word):
        kind(**options)
