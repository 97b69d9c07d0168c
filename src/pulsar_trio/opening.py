"""`Opening`, the result of `open_client`, `open_broker`, `create_producer` and the like.

It is an asynchronous context manager and nothing else. A program that forgets `async with`, and uses it as
though it were the client or the producer, gets an error that shows the line to write.
"""

import inspect
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeVar

import trio

from pulsar_sansio import WrongArguments, did_you_mean

from .errors import NotEntered, NotInTrio
from .official_names import OPTIONS

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)


class Opening(AbstractAsyncContextManager[T_co, None], Generic[T_co]):
    """Not open yet: `async with` opens it, gives what was opened, and closes that at the end of the block.

    Entering it outside of trio raises `NotInTrio`; a second time is an error, as with any of them. One that
    is never entered has done nothing, and warns (`RuntimeWarning`) when it is thrown away.
    """

    def __init__(self, manager: AbstractAsyncContextManager[T_co], example: str) -> None:
        self._manager = manager
        self._example = example
        self._entered = False

    async def __aenter__(self) -> T_co:
        self._entered = True
        if not trio.lowlevel.in_trio_run():
            raise NotInTrio(
                "pulsar_trio needs trio: start the program with trio.run(main). "
                "For asyncio see docs/embedding.md"
            )
        return await self._manager.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._manager.__aexit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<{self._name}(…), to be entered: {self._example}>"

    @property
    def _name(self) -> str:
        return self._example.removeprefix("async with ").partition("(")[0]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise self._misused(f"has no {name!r} before it is entered")

        def __await__(self) -> NoReturn:
            raise self._misused("is not awaited")

        def __enter__(self) -> NoReturn:
            raise self._misused("is entered with 'async with', not with 'with'")

        def __exit__(self, *_: object) -> None: ...

        def __aiter__(self) -> NoReturn:
            raise self._misused("is not iterated over")

        def __del__(self) -> None:
            if not self.__dict__.get("_entered", True):
                self._entered = True
                warnings.warn(str(self._misused("was never entered")), RuntimeWarning, stacklevel=2)

    def _misused(self, problem: str) -> NotEntered:
        self._entered = True  # one complaint is enough
        return NotEntered(f"{self._name}(…) {problem}; write: {self._example}")


def opening(example: str) -> Callable[[Callable[P, AsyncIterator[T_co]]], Callable[P, Opening[T_co]]]:
    """Decorator for an asynchronous generator that opens, yields and closes something. `example`: the line
    that a program should have. A call with wrong arguments raises `WrongArguments`."""

    def decorate(function: Callable[P, AsyncIterator[T_co]]) -> Callable[P, Opening[T_co]]:
        manager = asynccontextmanager(function)
        signature = inspect.signature(function)

        @wraps(function)
        def begin(*arguments: P.args, **options: P.kwargs) -> Opening[T_co]:
            try:
                opened = manager(*arguments, **options)
            except TypeError:  # of the arguments: the function itself runs when it is entered
                try:
                    signature.bind(*arguments, **options)
                except TypeError as error:
                    raise _wrong_call(function.__name__, error, options) from None
                raise
            return Opening(opened, example)

        return begin

    return decorate


def _wrong_call(function: str, error: TypeError, options: dict[str, Any]) -> WrongArguments:
    """`error`: what Python says of the arguments."""
    official = OPTIONS.get(function, {})
    hints = [
        f"there is no option {name!r}; {did_you_mean(official[name])}" for name in options if name in official
    ]
    return WrongArguments(f"{function}: {'; '.join([str(error), *hints])}")
