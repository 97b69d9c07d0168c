"""A command for the number of a producer or consumer that the client never gave."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError
from tests.client.script import Script


def refuse_unknown_number(command: Callable[[Client, int, int], Any], kind: str) -> None:
    """Assert that the command is refused, and that neither the client's time nor anything else changes."""
    script = Script()
    with pytest.raises(LocalProtocolError, match=f"no {kind} has the id 77") as caught:
        command(script.client, script.now + 5, 77)
    assert not isinstance(caught.value, ClosedError)
    assert script.client._context.now == script.now
    assert script.said() == []
