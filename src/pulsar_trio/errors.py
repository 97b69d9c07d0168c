"""Errors of the adapter: the core's closed error joined to trio's, mistakes of a program's first hour, and
the one for a bug of our own.

The core's errors know nothing of trio. A program catches the errors of this module with
`except trio.ClosedResourceError` as well as with `except ClosedError`.
"""

import trio

from pulsar_sansio import ClosedError, LocalProtocolError, PulsarError


class ResourceClosed(ClosedError, trio.ClosedResourceError):
    """The client, producer or consumer was closed by your own program."""


class ResourceBroken(ClosedError, trio.BrokenResourceError):
    """The producer or consumer ended by itself and can never work again; `__cause__` says why."""


class InternalError(PulsarError):
    """A bug of this library: a machine or a background task failed. `__cause__` is what happened.

    Nothing of the client or broker works after it. Messages that were confirmed are stored; those that
    were not may or may not be.
    """


class StoreFailed(PulsarError):
    """The store of a broker cannot write or read; `__cause__` says why. The broker has ended: it may confirm
    nothing that is not durable.
    """


class NotEntered(LocalProtocolError, AttributeError, TypeError):
    """`open_client(…)`, `client.subscribe(…)` or the like was used without `async with`; the text has the
    line to write."""


class NotAwaitable(LocalProtocolError, TypeError):
    """A plain call, which does not wait, was awaited; the text says what waits."""


class NotInTrio(LocalProtocolError, RuntimeError):
    """The program does not run in trio: it was started by `asyncio.run`, or by nothing."""


def trio_error(error: PulsarError) -> PulsarError:
    """The same error, a core's `ClosedError` as its subclass that trio's users expect."""
    if type(error) is ClosedError:
        closed = ResourceClosed(str(error))
        closed.__cause__ = error.__cause__
        return closed
    return error
