"""A pump's tasks under a block of user code, invisible.

The nursery is never seen. An exception of the block leaves it unchanged, not in a group of one, also when an
outer scope is cancelled at the same moment. A failure in the background that no call has raised yet is raised
when the block is left.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol, TypeVar

import trio

from ..errors import InternalError
from .pump import Pump


class Closable(Protocol):
    async def aclose(self) -> None: ...


ClosableT = TypeVar("ClosableT", bound=Closable)


@asynccontextmanager
async def background(pump: Pump, close: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run the pump while the block runs; then `close`, then stop the pump."""
    of_the_block: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                with trio.CancelScope(shield=True):  # in a cancelled one `start` would wait for ever
                    await nursery.start(pump.run)
                try:
                    yield
                except BaseException as error:
                    if _only_cancelled(error):
                        raise  # it belongs to a scope, and the nursery's own may be the one
                    of_the_block = error
                finally:
                    await close()
            finally:
                pump.stop()
    except BaseException as error:
        if not _only_cancelled(error):
            raise InternalError(f"a background task of pulsar-trio failed: {error!r}") from error
        if of_the_block is None:
            raise
    if of_the_block is not None:
        try:
            raise of_the_block
        finally:
            del of_the_block
    if pump.failure is not None:
        raise pump.failure.with_traceback(None)


@asynccontextmanager
async def closing(resource: ClosableT) -> AsyncIterator[ClosableT]:
    """Close the resource when the block is left; what the block raised counts, not a cancelled closing."""
    try:
        yield resource
    except BaseException:
        with suppress(trio.Cancelled):  # the scope's next checkpoint cancels again
            await resource.aclose()
        raise
    await resource.aclose()


def _only_cancelled(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_only_cancelled, error.exceptions))
    return isinstance(error, trio.Cancelled)
