"""Ending cleanly on Ctrl-C, on SIGTERM and with the process that started the command."""

import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALLED = 128
"""Added to a signal's number, it is the exit code of a command that the signal ended, as a shell gives it."""

INTERRUPTED = SIGNALLED + signal.SIGINT
"""The exit code of a command that Ctrl-C ended: 130."""


async def until_signal(work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` until it ends, or until SIGINT or SIGTERM, which cancels it. Its exception comes out.

    A signal that the process ignores stays ignored.
    """
    import trio  # commands without an event loop use this module, too

    observed = _observed()
    if not observed:
        await work()
        return
    with trio.open_signal_receiver(*observed) as signals:

        async def one() -> None:
            async for _ in signals:
                return

        await _unless(one, work)


async def until_eof(work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` until it ends, or until standard input ends, which cancels it. Its exception comes out.

    The input ends with the process that started this one, however that ends.
    """
    import trio

    async def eof() -> None:
        # A read of `sys.stdin` would hold its lock, and so stop the interpreter from ending.
        while await trio.to_thread.run_sync(os.read, 0, 4096, abandon_on_cancel=True):
            pass

    await _unless(eof, work)


async def _unless(event: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[object]]) -> None:
    """Run `work` until it ends, or until `event` returns, which cancels it. Its exception comes out."""
    import trio

    failure: Exception | None = None
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            await event()
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        try:
            await work()
        except Exception as error:
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _observed() -> list[signal.Signals]:
    """Signals that end a command: those that the process does not ignore, as it does under `nohup`."""
    return [
        number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN
    ]


class Interruption:
    """The request of a signal to end a command that has something to show by then.

    True as soon as there is a request. A command looks at it wherever it could end.
    """

    def __init__(self) -> None:
        self._signal: int | None = None

    def __bool__(self) -> bool:
        return self._signal is not None

    @property
    def exit_code(self) -> int:
        """The exit code that a shell gives: 130 for SIGINT, 143 for SIGTERM. Call it only after a request."""
        assert self._signal is not None
        return SIGNALLED + self._signal

    def note(self, number: int, _: FrameType | None) -> None:
        """The handler. The second signal raises `KeyboardInterrupt`: the command takes long to look."""
        if self._signal is not None:
            raise KeyboardInterrupt
        self._signal = number


@contextmanager
def interruption() -> Iterator[Interruption]:
    """Within the block SIGINT and SIGTERM are requests to end it; a second signal ends it at once.

    A signal that the process ignores stays ignored. For the main thread.
    """
    asked = Interruption()
    before = {number: signal.signal(number, asked.note) for number in _observed()}
    try:
        yield asked
    except KeyboardInterrupt:
        if not asked:  # it was raised by something else
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
