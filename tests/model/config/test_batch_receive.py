"""`BatchReceivePolicy` checks its options, and needs at least one limit."""

from typing import Any

import pytest

from pulsar_sansio.model.config import (
    BatchReceivePolicy,
)
from pulsar_sansio.model.errors import InvalidConfiguration

BAD: list[tuple[Any, dict[str, Any], str]] = [
    (BatchReceivePolicy, {"max_messages": 0}, "max_messages"),
    (BatchReceivePolicy, {"max_bytes": 0}, "max_bytes"),
    (BatchReceivePolicy, {"timeout": -1}, "timeout"),
    (BatchReceivePolicy, {"max_bytes": None, "timeout": 0.0}, "enough"),
]


@pytest.mark.parametrize(("kind", "options", "word"), BAD)
def test_a_bad_option_is_named(kind: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidConfiguration, match=word):
        kind(**options)
