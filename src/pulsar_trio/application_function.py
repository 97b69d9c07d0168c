"""`ApplicationFunction`: a function of the application that the client asks for a value, plain or async.

`Threads` keeps functions that wait away from trio's thread, and few at a time.
"""

from collections.abc import Callable
from inspect import isawaitable, iscoroutinefunction
from typing import TypeVar

import trio

from pulsar_sansio import CredentialsFailed, InvalidConfiguration

ResultT = TypeVar("ResultT")

MAX_THREADS = 4
"""Threads that one function or file has at a time. It may never return, and a thread cannot be ended: it must
not take those of the application and of the resolver, too."""


class Threads:
    """The threads for one function or file of the application."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(MAX_THREADS)

    async def run(self, function: Callable[[], ResultT]) -> ResultT:
        """Call the function in a thread. A cancellation leaves the thread to itself."""
        return await trio.to_thread.run_sync(function, abandon_on_cancel=True, limiter=self._limiter)


class ApplicationFunction:
    """A function of the application. One that is not async runs in a thread."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._threads = Threads()

    async def call(self, *arguments: object) -> object:
        """Return the result. Any exception of the function is raised unchanged."""
        function = self._function
        if iscoroutinefunction(function):
            return await function(*arguments)
        [found] = await self._threads.run(
            lambda: [function(*arguments)]
        )  # trio takes no bare coroutine of a thread
        return await found if isawaitable(found) else found


def described(error: Exception, source: str = "the provider") -> str:
    """Return the text of an exception of the application where it cannot hold a secret, else its type."""
    of_the_system = isinstance(error, OSError) and error.errno is not None  # no library's error of HTTP
    if of_the_system or isinstance(error, (CredentialsFailed, InvalidConfiguration)):
        return str(error)
    return f"{source} raised {type(error).__name__}"
