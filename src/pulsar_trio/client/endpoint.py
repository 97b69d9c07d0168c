"""The base of producers and consumers: they get ready, end and close alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import trio

from pulsar_sansio import PulsarError, TimedOut
from pulsar_sansio import client_outputs as outputs

from ..errors import ResourceBroken, ResourceClosed, trio_error
from .driver_side import DriverSide, Outage

if TYPE_CHECKING:
    from .driver import Driver

TURN = 64
"""Messages between two checkpoints: a checkpoint costs as much as several messages."""


class PendingResult:
    """One result that is to come."""

    __slots__ = ("_event", "error", "taken", "value")

    def __init__(self) -> None:
        self._event = trio.Event()
        self.taken = False
        """True once a task has taken the answer."""
        self.value: Any = None
        self.error: PulsarError | None = None

    def set(self, value: Any, error: PulsarError | None = None) -> None:
        """Settle it; a second time changes nothing."""
        if not self._event.is_set():
            self.value, self.error = value, error and trio_error(error)
            self._event.set()

    async def get(self) -> Any:
        await self._event.wait()
        self.taken = True
        if self.error is not None:
            raise self.error.with_traceback(None)
        return self.value


class Endpoint(ABC):
    """Base of `Producer` and `Consumer`. `_kind` is its word in texts."""

    # CPython reads attributes slower where an instance's dict has 30 or more: these stay out of it.
    __slots__ = (
        "_closing",
        "_driver",
        "_ended",
        "_generation",
        "_gone",
        "_handle",
        "_machine",
        "_now",
        "_outage",
        "_outputs",
        "_ready",
        "_turn",
        "connected",
        "topic",
    )

    _kind = ""

    def __init__(self, driver: "Driver", handle: int) -> None:
        self._driver = driver
        self._machine = driver.machine
        self._handle = handle
        self._now = driver.now
        self._outputs = driver.machine.outputs
        self._generation = -1
        self._turn = TURN
        self._ended: PulsarError | None = None
        self._closing = False
        self._gone = trio.Event()
        self._ready = PendingResult()
        self.connected = False
        """True while the endpoint is attached to a broker. A detached endpoint reconnects by itself."""
        self._outage = Outage()
        self.topic = ""
        """The full name of the topic."""
        driver.sides[handle] = DriverSide(
            self, self._outage, self._on_output, self._on_crash, self._end, self._opened
        )

    # --- the driver's side ----------------------------------------------------------------------------

    def _on_output(self, output: Any) -> None:
        """An output that names this handle. Synchronous; it does not call the machine."""
        match output:
            case outputs.Attached():
                self.connected = True
            case outputs.Detached():
                self.connected = False
            case outputs.Closed():
                self._end(self._reason(output.error))

    def _on_crash(self, failure: PulsarError) -> None:
        """The machine or a task failed: nothing works from now on."""
        self._ready.set(None, failure)
        self._end(failure)

    def _reason(self, cause: PulsarError | None) -> PulsarError:
        if cause is None:
            return ResourceClosed(f"the {self._kind} of {self.topic} is closed")
        broken = ResourceBroken(
            f"the {self._kind} of {self.topic} has ended and cannot be used again: {cause}"
        )
        broken.__cause__ = cause
        return broken

    def _end(self, error: PulsarError) -> None:
        """Make every call raise `error` from here on, and wake the waiting tasks."""
        if self._ended is None:
            self._ended = error
            self.connected = False
            self._driver.sides.pop(self._handle, None)
            self._gone.set()
            self._on_end(error)

    @abstractmethod
    def _on_end(self, error: PulsarError) -> None:
        """Settle or wake what is still waiting; `error` says why it ended."""

    def _refuse(self, *_: object) -> NoReturn:
        """Stands in for the machine's calls after the end, so that they need not look for it."""
        assert self._ended is not None
        raise self._ended.with_traceback(None)

    # --- the user's side --------------------------------------------------------------------------------

    async def _checkpoint_occasionally(self) -> None:
        """Run a checkpoint once in `TURN` calls."""
        self._turn -= 1
        if self._turn <= 0:
            self._turn = TURN
            await trio.lowlevel.checkpoint()

    def _command(self, call: Callable[..., Any], *arguments: object) -> Any:
        if self._ended is not None:
            self._refuse()
        return self._driver.command(call, self._handle, *arguments)

    async def _request(self, call: Callable[..., int], *arguments: object) -> Any:
        if self._ended is not None:
            await trio.lowlevel.checkpoint_if_cancelled()
            self._refuse()
        try:
            return await self._driver.request(call, self._handle, *arguments, owner=self._handle)
        except TimedOut as error:
            if error.__cause__ is None:
                error.__cause__ = self._outage.cause
            raise

    def _asked(self, call: Callable[..., int], *arguments: object) -> AbstractContextManager[PendingResult]:
        if self._ended is not None:
            self._refuse()
        return self._driver.asked(call, self._handle, *arguments, owner=self._handle)

    def explain(self) -> str:
        """Say in a few lines for people why nothing moves, if nothing does; the wording may change.

        The lines describe the connection, or since when and why there is none, and the next attempt. They
        give the counts of pending, queued, delivered and unacknowledged messages. They say what a broker or
        this application waits for. Topics and partitions have a line each, at most ten. Properties, keys and
        payloads are left out. After the end the text says why it ended.
        """
        if self._ended is not None:
            return str(self._ended)
        text: str = self._machine.explain(self._now(), self._handle)
        return "\n".join([text, *(f"  {line}" for line in self._waiting())])

    def _waiting(self) -> list[str]:
        """Lines about tasks of the application that wait here."""
        return []

    async def _opened(self) -> None:
        """Wait until it is ready. Raises why it cannot be, and gives up on it when cancelled."""
        try:
            await self._ready.get()
        except BaseException as error:
            self._abandon()
            if self._ended is None:
                self._end(error if isinstance(error, PulsarError) else ResourceClosed("opening was given up"))
            raise

    async def aclose(self) -> None:
        """Close gracefully: what was given to it is sent and confirmed first, as far as that is possible
        within the protocol's own timeouts. Silent when it is closed or broken already. When cancelled, it is
        closed all the same, without waiting.
        """
        if self._ended is not None or self._closing:
            await trio.lowlevel.checkpoint()
            if self._ended is None:
                await self._gone.wait()
            return
        self._closing = True
        try:
            with suppress(PulsarError):  # tasks that wait for a message have been told its fate
                await self._before_closing()
            with suppress(PulsarError):  # it has ended by itself
                await self._driver.request(self._machine.close, self._handle, owner=self._handle)
        except BaseException:
            self._abandon()
            raise
        finally:
            self._end(self._reason(None))

    async def _before_closing(self) -> None:
        """Finish the work that needs an open endpoint."""
        await trio.lowlevel.checkpoint_if_cancelled()

    def _abandon(self) -> None:
        """Give the endpoint up, because no task waits for it any more."""
        if self._ended is None:
            self._driver.abandon(self._handle)
