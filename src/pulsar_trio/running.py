"""`Run`: a handler for every message of a consumer, our message listener (rules LSNR-01 to LSNR-04).

One message is handled after the other, or up to `concurrency` at a time, each in a task of its own. On a
Key_Shared subscription the messages of one key are handled one after the other all the same: what comes while
an earlier one is being handled waits for it, and no more than `concurrency` messages wait so.

A handler that returns acknowledges its message; one that raises gives it back, and the error is logged. What
is being handled when the run is cancelled is left as it is; what was still waiting is given back.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING, TypeAlias

import trio

from pulsar_sansio import Message, PulsarError

if TYPE_CHECKING:
    from .consumer import Consumer

Handler: TypeAlias = Callable[[Message], Awaitable[object]]

_log = getLogger(__name__)


class Run:
    """One call of `Consumer.run`. `receive` gives the next message; `at_hand()` those behind it that need
    only be taken, the short way for one after the other; `by_key`: keep the order of each key."""

    def __init__(
        self,
        consumer: "Consumer",
        receive: Callable[[], Awaitable[Message]],
        at_hand: Callable[[], Iterable[Message]],
        handler: Handler,
        concurrency: int,
        by_key: bool,
    ) -> None:
        self._consumer = consumer
        self._receive = receive
        self._at_hand = at_hand
        self._handler = handler
        self._concurrency = concurrency
        self._by_key = by_key
        self._running = 0
        self._room = trio.lowlevel.ParkingLot()
        self._waiting: dict[object, deque[Message]] = {}
        """By key, of every key that a message is being handled of: those behind it."""
        self._waiting_count = 0

    async def run(self) -> None:
        """Until the topic ends; raises what receiving or acknowledging raises."""
        with suppress(trio.EndOfChannel):
            if self._concurrency == 1:
                await self._one_after_the_other()
            else:
                await self._several()

    async def _one_after_the_other(self) -> None:
        handler, acknowledge = self._handler, self._consumer.acknowledge
        while True:
            await self._handle(await self._receive())
            for message in self._at_hand():
                try:
                    await handler(message)
                except Exception:
                    self._failed(message)
                else:
                    acknowledge(message)

    async def _handle(self, message: Message) -> None:
        try:
            await self._handler(message)
        except Exception:
            self._failed(message)
        else:
            self._consumer.acknowledge(message)

    def _failed(self, message: Message) -> None:
        _log.exception("%r: the handler failed at message %s", self._consumer, message.message_id)
        self._consumer.negative_acknowledge(message)

    # --- several at a time ------------------------------------------------------------------------------

    async def _several(self) -> None:
        failure: PulsarError | None = None
        try:
            async with trio.open_nursery() as nursery:
                try:
                    await self._start_tasks(nursery)
                except PulsarError as error:
                    failure = error
                    nursery.cancel_scope.cancel()
        except* PulsarError as errors:  # a task could not give its verdict: the consumer has ended
            failure = _first(errors)
        finally:
            self._give_back_what_waits()
        if failure is not None:
            raise failure.with_traceback(None)

    async def _start_tasks(self, nursery: trio.Nursery) -> None:
        try:
            while True:
                while max(self._running, self._waiting_count) >= self._concurrency:
                    await self._room.park()
                message = await self._receive()
                key = _key_of(message) if self._by_key else None
                if key is not None and key in self._waiting:
                    self._waiting[key].append(message)
                    self._waiting_count += 1
                    continue
                self._running += 1
                nursery.start_soon(self._work, message, message if key is None else key)
                self._waiting[message if key is None else key] = deque()
        except trio.EndOfChannel:
            return  # what is being handled is brought to its end

    async def _work(self, message: Message, key: object) -> None:
        """Handle a message and those that come behind it."""
        waiting = self._waiting
        while True:
            await self._handle(message)
            self._room.unpark()
            if not waiting[key]:
                del waiting[key]
                self._running -= 1
                return
            message = waiting[key].popleft()
            self._waiting_count -= 1

    def _give_back_what_waits(self) -> None:
        """Nobody has begun with these."""
        left = [message for waiting in self._waiting.values() for message in waiting]
        with suppress(PulsarError):  # if it has ended, they come again anyhow
            if left:
                self._consumer.negative_acknowledge(left)


def _key_of(message: Message) -> object | None:
    """What decides where a Key_Shared subscription delivers a message; None where nothing does."""
    return message.key if message.ordering_key is None else message.ordering_key


def _first(errors: BaseExceptionGroup[PulsarError]) -> PulsarError:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
