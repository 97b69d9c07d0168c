"""Ending cleanly on Ctrl-C and on SIGTERM."""

import signal
from collections.abc import Awaitable, Callable

import trio


async def until_signal(work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` until it ends, or until SIGINT or SIGTERM, which cancels it. Its exception comes out."""
    failure: Exception | None = None
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                async for _ in signals:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            try:
                await work()
            except Exception as error:
                failure = error
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
