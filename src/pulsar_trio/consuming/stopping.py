"""`CurrentRun`: the run of a consumer, if there is one, and how it is stopped.

A consumer that is drained stops its run and waits for it; the run's `stop` event drains the consumer. What
draining means for receiving is in `receiving`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import trio

from pulsar_sansio import InvalidConfiguration

from ..transport.pump import Pump
from .running import Run
from .transaction_run import TransactionRun

AnyRun = Run | TransactionRun


class CurrentRun:
    """At most one run, and the tasks that wait for its end. `pump` runs the task that waits for `stop`."""

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._run: AnyRun | None = None
        self._over = trio.lowlevel.ParkingLot()

    @contextmanager
    def going_on(self, run: AnyRun, stop: trio.Event | None, drain: Callable[[], None]) -> Iterator[None]:
        """While the block runs, this is the run; `drain` is called when `stop` is set."""
        self._run = run
        scope = trio.CancelScope()
        try:
            if stop is not None and stop.is_set():
                drain()
            elif stop is not None:
                self._pump.start_task(partial(_call_when, stop, drain, scope), "pulsar stop of a run")
            yield
        finally:
            scope.cancel()
            self._run = None
            self._over.unpark_all()

    def check_can_wait(self) -> None:
        """Raise `InvalidConfiguration` where waiting for the end of the run would never end."""
        if self._run is not None and self._run.handler_tasks.have_the_current():
            raise InvalidConfiguration(
                "drain: a handler cannot wait for its own end; set the event that run was given as `stop`"
            )

    def stop(self) -> None:
        """Let it begin no more handlers."""
        if self._run is not None:
            self._run.stop()

    @property
    def described(self) -> list[str]:
        """Lines that say what the run waits for, where it can tell."""
        return [self._run.described] if isinstance(self._run, TransactionRun) else []

    async def over(self) -> None:
        """Wait until there is none."""
        while self._run is not None:
            await self._over.park()


async def _call_when(event: trio.Event, call: Callable[[], None], scope: trio.CancelScope) -> None:
    with scope:
        await event.wait()
        call()
