"""`Run`: a handler for every message of a consumer, our message listener (rules LSNR-01, LSNR-04).

A run handles one message after the other, or up to `concurrency` at a time, each in a task of its own. On a
Key_Shared subscription it still handles the messages of one key one after the other. A message waits while an
earlier one of its key is being handled. No more than `concurrency` messages wait so.

A handler that returns acknowledges its message; if it raises, `failures` decides. A run notices cancellation
before each handler, also if handlers never wait. When a run is cancelled, messages that are being handled are
left as they are. Messages whose handlers have not begun are negatively acknowledged. When a run is stopped,
handlers that have begun are finished. The other messages are redelivered when the consumer closes.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import trio
from trio.lowlevel import checkpoint_if_cancelled

from pulsar_sansio import Message, PulsarError

Handler: TypeAlias = Callable[[Message[Any]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class RunSource:
    """The source of the messages of a run."""

    receive: Callable[[], Awaitable[Message[Any]]]
    """Gives the next message."""
    at_hand: Callable[[], Iterator[Message[Any]]]
    """Gives those behind it that need only be taken: the fast path for one handler at a time."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The calls by which a run settles its messages."""

    handled: Callable[[Message[Any]], object]
    """The handler has returned."""
    failed: Callable[[Message[Any], Exception], Awaitable[None]]
    """The handler has raised."""
    not_begun: Callable[[list[Message[Any]]], object]
    """No handler has begun with these, and none will."""


class HandlerTasks:
    """Tells the tasks of a run's handlers from other tasks. The task that makes it calls the handlers, or
    opens the nursery of their tasks."""

    def __init__(self) -> None:
        self._task = trio.lowlevel.current_task()
        self._nurseries = set(self._task.child_nurseries)
        """Nurseries that were open when the run began: their tasks are not the handlers'."""

    def have_the_current(self) -> bool:
        """True when the current task is a handler of the run, or was started by one."""
        task = trio.lowlevel.current_task()
        nursery = None
        while task is not self._task:
            nursery = task.parent_nursery
            if nursery is None:
                return False
            task = nursery.parent_task
        return nursery not in self._nurseries


class Run:
    """One call of `Consumer.run`. `by_key`: keep the order of each key. `stop`: an event that stops it."""

    def __init__(
        self,
        source: RunSource,
        outcomes: Outcomes,
        handler: Handler,
        concurrency: int,
        by_key: bool,
        stop: trio.Event | None,
    ) -> None:
        self._source = source
        self._outcomes = outcomes
        self._handler = handler
        self._concurrency = concurrency
        self._by_key = by_key
        self._stop = stop
        self._stopped = False
        self._cancelled = False
        """With one message at a time, True after a cancellation: each message is a checkpoint then."""
        self._running = 0
        self._room = trio.lowlevel.ParkingLot()
        self._waiting: dict[object, deque[Message[Any]]] = {}
        """Messages whose handlers have not begun, by key. Every key with a running handler has an entry."""
        self._waiting_count = 0
        """Messages that wait behind others of their key."""
        self._failure: BaseException | None = None
        self.handler_tasks = HandlerTasks()

    def stop(self) -> None:
        """Begin no more handlers. `run` returns when those that have begun have ended."""
        self._stopped = True
        self._room.unpark_all()

    @property
    def is_stopped(self) -> bool:
        """True when no more handlers begin. The event counts from the moment at which a handler sets it."""
        return self._stopped or (self._stop is not None and self._stop.is_set())

    async def run(self) -> None:
        """Run until the topic ends, or `stop`. Raises what receiving, acknowledging and `failed` raise."""
        if self._concurrency == 1:
            await self._one_at_a_time()
        else:
            await self._several()

    async def _one_at_a_time(self) -> None:
        """The nursery has one task, which notices cancellation: asking trio before each handler costs a
        quarter of the rate at which handlers that do nothing are called.
        """
        async with trio.open_nursery() as nursery:
            await nursery.start(self._notice_cancellation)
            try:
                await self._one_after_the_other()
            except BaseException as error:
                self._fail(nursery, error)
            else:
                nursery.cancel_scope.cancel()
        self._raise_failure()

    async def _notice_cancellation(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Wait until the run is cancelled. trio calls `noticed` before the call that cancels returns."""

        def noticed(_: object) -> trio.lowlevel.Abort:
            self._cancelled = True
            return trio.lowlevel.Abort.SUCCEEDED

        task_status.started()
        await trio.lowlevel.wait_task_rescheduled(noticed)

    async def _one_after_the_other(self) -> None:
        handler, source, outcomes = self._handler, self._source, self._outcomes
        handled, stop = outcomes.handled, self._stop
        await checkpoint_if_cancelled()
        while not self.is_stopped:
            try:
                first = await source.receive()
            except trio.EndOfChannel:
                return
            for message in chain((first,), source.at_hand()):
                try:
                    await handler(message)
                except Exception as error:
                    await outcomes.failed(message, error)
                else:
                    handled(message)
                if self._stopped or (stop is not None and stop.is_set()):
                    return
                if self._cancelled:
                    await checkpoint_if_cancelled()  # before the next message is taken

    # --- several at a time ------------------------------------------------------------------------------

    async def _several(self) -> None:
        try:
            async with trio.open_nursery() as nursery:
                try:
                    await self._start_tasks(nursery)
                except (PulsarError, KeyboardInterrupt) as error:
                    self._fail(nursery, error)
        finally:
            self._release_waiting()
        self._raise_failure()

    def _raise_failure(self) -> None:
        """Raise the first error as itself, and not in a group of the nursery."""
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure

    def _fail(self, nursery: trio.Nursery, error: BaseException) -> None:
        """End everything; the first error is raised, also where the run is cancelled meanwhile."""
        if self._failure is None:
            self._failure = error
            nursery.cancel_scope.shield = True
            nursery.cancel_scope.cancel()

    async def _start_tasks(self, nursery: trio.Nursery) -> None:
        with suppress(trio.EndOfChannel):  # handlers that have begun are brought to their end
            while await self._has_room():
                await checkpoint_if_cancelled()
                message = await self._source.receive()
                key = _key_of(message) if self._by_key else None
                if key is None:
                    key = message
                elif key in self._waiting:
                    self._waiting[key].append(message)
                    self._waiting_count += 1
                    continue
                self._running += 1
                self._waiting[key] = deque([message])
                nursery.start_soon(self._work, nursery, key)

    async def _has_room(self) -> bool:
        """Wait until another message may be received. False when the run is stopped."""
        while not self.is_stopped and max(self._running, self._waiting_count) >= self._concurrency:
            await self._room.park()
        return not self.is_stopped

    async def _work(self, nursery: trio.Nursery, key: object) -> None:
        """Handle a message and those that come behind it."""
        waiting = self._waiting[key]
        while not self.is_stopped:
            await checkpoint_if_cancelled()
            try:
                await self._handle(waiting.popleft())
            except (Exception, KeyboardInterrupt, SystemExit) as error:
                self._fail(nursery, error)
                return
            self._room.unpark()
            if not waiting:
                del self._waiting[key]
                self._running -= 1
                return
            self._waiting_count -= 1

    async def _handle(self, message: Message[Any]) -> None:
        try:
            await self._handler(message)
        except Exception as error:
            await self._outcomes.failed(message, error)
        else:
            self._outcomes.handled(message)

    def _release_waiting(self) -> None:
        """No handler has begun with these."""
        left = [message for waiting in self._waiting.values() for message in waiting]
        if left and not self.is_stopped:
            with suppress(PulsarError):  # if the consumer has ended, they are redelivered anyhow
                self._outcomes.not_begun(left)


def _key_of(message: Message[Any]) -> object | None:
    """Return the key by which a Key_Shared subscription chooses the consumer; None without a key."""
    return message.key if message.ordering_key is None else message.ordering_key
