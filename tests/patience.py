"""The time that tests wait for an event that has to come."""

import trio

PATIENCE = 300.0
"""Seconds: longer than a busy machine stands still, so what takes longer is stuck."""


async def give_up() -> None:
    """Beside a test: ends it when it has been waiting for that long."""
    await trio.sleep(PATIENCE)
    raise TimeoutError(f"the test did not end in {PATIENCE:g} s")
