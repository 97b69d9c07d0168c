"""The pump: runs a machine of the core with trio's sockets, clock and tasks.

A `Pump` owns the root machine, its links and its one timer. Everything that touches the machine is
synchronous code, so there are no locks; tasks only wait for sockets and for time. It makes no protocol
decision: it does what the machine's outputs say. The subclasses add the parts of a client or of a broker.

The tasks run shielded, in a nursery of their own, until `stop`. So a user's cancellation never touches a
socket, and cleanup inside a cancelled scope still has a connection to use. The tasks never raise.

One loop, in `pump`, does what the outputs say, and nothing that it calls pumps: the depth of the stack does
not grow with the number of links. An exception of one link's socket or task ends that link alone, and is
logged. An exception of the machine is a broken invariant: it is logged, kept as an `InternalError`, and
`_on_crash` raises it in every waiting task.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from logging import getLogger
from math import inf
from time import perf_counter, perf_counter_ns, time_ns
from typing import Any, Protocol

import trio

from pulsar_sansio import PulsarError, TlsError

from ..errors import InternalError, StoreFailed
from .link import READ_SIZE, Link
from .link_failures import LinkFailures

_log = getLogger("pulsar_trio.pump")


class Machine(Protocol):
    """The calls that the root machines of client and broker share."""

    @property
    def has_output(self) -> bool: ...
    def receive_data(self, now: int, link: int, data: bytes) -> None: ...
    def receive_eof(self, now: int, link: int) -> None: ...
    def disconnected(self, now: int, link: int, reason: str | TlsError) -> None: ...
    def handle_deadline(self, now: int) -> None: ...
    def next_output(self) -> Any: ...
    def data_to_send(self, link: int) -> Sequence[bytes]: ...
    def next_deadline(self) -> int | None: ...


class Pump(ABC):
    """Base of the two drivers. `machine` is set by the subclass; `actions` maps output types to methods."""

    machine: Machine
    wall_offset: int
    """Nanoseconds to add to `now` for the time since 1970; taken when the machine is listened to."""

    def __init__(self) -> None:
        self.now, self._clock_offset = _clock()
        self.actions: dict[type, Callable[[Any], None]] = {}
        self.buffer = memoryview(bytearray(READ_SIZE))
        self.links: dict[int, Link] = {}
        self.unwritten: list[Link] = []
        self.failure: PulsarError | None = None
        self.stopped = False
        self._pumping = False
        self._link_failures = LinkFailures()
        self.tick = self.now()
        """The last moment the machine was told. Good enough for calls that only need time not to go back."""
        self.generation = 0
        """Counts the times the machine was listened to."""
        self._live_links = 0
        self._drained = trio.Event()
        self._timer_at: float = inf
        self._timer = trio.CancelScope()
        self._scope = trio.CancelScope(shield=True)
        self._nursery: trio.Nursery | None = None

    # --- synchronous: between the machine and the tasks -----------------------------------------------

    def pump(self) -> None:
        """Do what the machine says until it is quiet, then set the timer.

        What is due at the moment it was told is done at once: two turns of the event loop would cost more.
        Links with something to write are noted; `write_now` or `wake_writers` has to follow.
        A machine that has failed is not obeyed any more, also when `take` met the failure in this loop.
        """
        if self._pumping:
            return  # the loop that runs goes on until the machine is quiet
        self._pumping = True
        self.generation += 1
        self.wall_offset = time_ns() - self.now()
        machine, actions = self.machine, self.actions
        try:
            while True:
                while self.failure is None and (output := machine.next_output()) is not None:
                    actions[type(output)](output)
                if self.failure is not None:
                    return
                deadline = machine.next_deadline()
                if deadline is None or deadline > self.tick:
                    break
                machine.handle_deadline(self.tick)
        finally:
            self._pumping = False
        self._set_timer(deadline)

    def set_timer(self) -> None:
        """Move the timer if the machine's next deadline is earlier than what it is set to.

        A later one is left alone: the timer then wakes once too often, which costs less than
        moving it for every batch.
        """
        self._set_timer(self.machine.next_deadline())

    def _set_timer(self, deadline: int | None) -> None:
        if deadline is not None and deadline < self._timer_at:
            self._timer_at = deadline
            self._timer.deadline = self._seconds(deadline)

    def write_now(self) -> None:
        """Write what the noted links have, without waiting."""
        while self.unwritten:
            link = self.unwritten.pop()
            try:
                link.write_now()
            except Exception as error:
                self._fail_link(link, error)

    def wake_writers(self) -> None:
        """Let the writer tasks write: several small writes of one caller become one."""
        while self.unwritten:
            self.unwritten.pop().transmit()

    def fact(self, report: Callable[..., None], *arguments: object) -> None:
        """Tell the machine a fact about the world and do what follows from it."""
        if self.failure is not None:
            return
        try:
            self.tick = self.now()
            report(self.tick, *arguments)
            self.pump()
            self.write_now()
        except Exception as error:
            self.crash(error)

    def crash(self, cause: Exception) -> PulsarError:
        """Log and keep the first impossible exception, raise it in every waiting task, and stop the tasks."""
        if self.failure is None:
            self.failure = cause if isinstance(cause, StoreFailed) else _internal_error(cause)
            _log.critical("%s", self.failure, exc_info=cause)
            self._on_crash(self.failure)
            self.stop()
        return self.failure

    @abstractmethod
    def _on_crash(self, failure: PulsarError) -> None:
        """Tell every waiting task that the machine has failed."""

    def on_transmit(self, output: Any) -> None:
        link = self.links.get(output.link)
        if link is not None:
            self.unwritten.append(link)

    def on_disconnect(self, output: Any) -> None:
        link = self.links.pop(output.link, None)
        if link is not None:
            try:
                link.finish()
            except Exception as error:
                self._fail_link(link, error)

    def take(self, number: int) -> Sequence[bytes]:
        """Give the bytes that link `number` is to write. Raises nothing: a failure of the machine ends all.

        The machine may have more outputs then, as a peer that reads makes room. A loop that runs already
        takes them; else this call does, and the writer tasks write what follows.
        A machine that has failed gives nothing.
        """
        if self.failure is not None:
            return ()
        try:
            chunks = self.machine.data_to_send(number)
            if self.machine.has_output and not self._pumping:
                self.pump()
                self.wake_writers()
        except Exception as error:
            self.crash(error)
            return ()
        return chunks

    def _fail_link(self, link: Link, error: Exception) -> None:
        """End one link for an exception of its socket or task; its task tells the machine."""
        link.fail(self._link_failures.log(error))

    # --- tasks ----------------------------------------------------------------------------------------

    def start_link(
        self, number: int, link: Link, task: Callable[[], Awaitable[str | TlsError]], name: str
    ) -> None:
        """Run `task`, the whole life of a link, in the background. It gives the reason of the link's end."""
        if self._nursery is not None and not self.stopped:
            self.links[number] = link
            self._live_links += 1
            self._nursery.start_soon(self._run_link, number, link, task, name=name)

    def _tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the tasks that run until the pump stops, by name."""
        return {"pulsar timer": self._run_timer}

    def start_task(self, task: Callable[[], Awaitable[None]], name: str) -> None:
        """Run `task` in the background until `stop`. Nothing works without it: its failure ends all."""
        assert self._nursery is not None
        self._nursery.start_soon(self._guarded, task, name=name)

    def start_peer(self, task: Callable[[], Awaitable[None]], name: str) -> None:
        """Run `task`, which serves one peer, in the background. Its failure is logged and ends only it."""
        assert self._nursery is not None
        self._nursery.start_soon(self._serve_peer, task, name=name)

    async def serve_link(self, number: int, link: Link) -> str | TlsError:
        """Read and write an open link to its end; gives the reason, or "" if the machine asked for it."""
        machine = self.machine
        return await link.run(
            lambda data: self.fact(machine.receive_data, number, data),
            lambda: self.fact(machine.receive_eof, number),
        )

    @trio.lowlevel.enable_ki_protection
    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run timer and links until `stop`. Raises nothing of its own."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for name, task in self._tasks().items():
                    self.start_task(task, name)
                task_status.started()
        self.stopped = True
        self._link_failures.log_rest()

    def stop(self) -> None:
        """End all tasks at once and close all sockets."""
        self.stopped = True
        self._scope.cancel()
        self._drained.set()

    async def drained(self) -> None:
        """Wait until no link is left; ending ones do so by themselves within `link.LINGER`."""
        while self._live_links and not self.stopped:
            if self._drained.is_set():  # else other tasks wait for it, too
                self._drained = trio.Event()
            await self._drained.wait()

    @trio.lowlevel.enable_ki_protection
    async def _run_link(self, number: int, link: Link, task: Callable[[], Awaitable[str | TlsError]]) -> None:
        """A link to its end. The machine is told of every end that it did not ask for."""
        reason: str | TlsError = ""
        try:
            with _failures_to(partial(self._fail_link, link)), link.scope:
                reason = await task()
            if self.links.pop(number, None) is not None:
                self.fact(self.machine.disconnected, number, link.failure or reason or "the link ended")
        finally:
            self._live_links -= 1
            self._drained.set()

    @trio.lowlevel.enable_ki_protection
    async def _serve_peer(self, task: Callable[[], Awaitable[None]]) -> None:
        with _failures_to(self._link_failures.log):
            await task()

    @trio.lowlevel.enable_ki_protection
    async def _guarded(self, task: Callable[[], Awaitable[None]]) -> None:
        with _failures_to(self.crash):
            await task()

    async def _run_timer(self) -> None:
        while True:
            with trio.CancelScope(deadline=self._seconds(self._timer_at)) as self._timer:
                await trio.sleep_forever()
            self._timer_at = inf
            self.fact(self.machine.handle_deadline)

    def _seconds(self, deadline: float) -> float:
        """A deadline as trio has it; a microsecond late, so that rounding never makes it early."""
        return (deadline + 1_000) / 1_000_000_000 + self._clock_offset


@contextmanager
def _failures_to(handle: Callable[[Exception], object]) -> Iterator[None]:
    """Give a failure of the block to `handle`, and let a cancellation go on.

    A nursery that fails while it is cancelled raises both in one group; each part goes its own way.
    """
    try:
        yield
    except Exception as error:
        handle(error)
    except BaseExceptionGroup as group:
        failed, rest = group.split(Exception)
        if failed is not None:
            handle(failed)
        if rest is not None:
            raise rest from None


def _internal_error(cause: Exception) -> InternalError:
    error = InternalError(
        f"a bug in pulsar-trio, please report it with the traceback that was logged: {cause!r}"
    )
    error.__cause__ = cause
    return error


def _clock() -> tuple[Callable[[], int], float]:
    """Return the clock of the machine's nanoseconds, and the seconds by which trio's clock is ahead of it.

    A `MockClock` is asked itself, and so drives every timer. Trio's own is `perf_counter` plus an offset, and
    asking that counter costs a message a third of what asking the clock does.
    """
    clock = trio.lowlevel.current_clock()
    offset = getattr(clock, "offset", None)
    if isinstance(offset, float) and abs(clock.current_time() - offset - perf_counter()) < 0.001:
        return perf_counter_ns, offset
    return lambda: int(clock.current_time() * 1_000_000_000), 0.0
