"""Waiting in tests for what nobody announces."""

from collections.abc import Callable

import trio


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds; ten seconds at most."""
    with trio.fail_after(10):
        while True:
            if condition():
                return
            await trio.sleep(0.001)
