"""Waiting in tests for events that no call announces."""

from collections.abc import Callable

import trio

from tests.patience import PATIENCE


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds."""
    with trio.fail_after(PATIENCE):
        while True:
            if condition():
                return
            await trio.sleep(0.001)
