"""`Receiving`: how the application's tasks get the messages of one consumer.

It owns the messages at hand, the tasks that wait, and the reasons for which nothing more is received: a run
that gets all messages, a drain, the end of the topic, the end of the consumer. A task takes a message after
its last point of cancellation, so a cancelled task loses nothing. One task is woken for what has arrived; it
wakes the next one if it leaves something. Acknowledging is not its concern.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn

import trio

from pulsar_sansio import ConsumerSpec, InvalidConfiguration, Message, Messages, PulsarError

from ..client.endpoint import TURN
from ..values import T

if TYPE_CHECKING:
    from ..client.driver import Driver


class Receiving(Generic[T]):
    """The tasks and the messages at hand of one consumer. `request`: the consumer's way to ask the machine
    and wait for its answer."""

    __slots__ = (
        "_arrived",
        "_batch_receivers",
        "_by_run",
        "_driver",
        "_end_of_topic",
        "_ended",
        "_handle",
        "_has_batch_policy",
        "_machine",
        "_one_by_one",
        "_outputs",
        "_queue",
        "_request",
        "_take",
        "_turn",
        "at_hand",
        "is_drained",
    )

    def __init__(
        self, driver: "Driver", handle: int, spec: ConsumerSpec, request: Callable[..., Awaitable[Any]]
    ) -> None:
        self._driver = driver
        self._machine = driver.machine
        self._outputs = driver.machine.outputs
        self._handle = handle
        self._request = request
        self._turn = TURN
        """Messages until the next checkpoint."""
        self._ended: PulsarError | None = None
        self.at_hand: Iterator[Message[T]] = iter(())
        """Messages that need only be taken; see `pulsar_sansio.Client.receiver`."""
        self._arrived = trio.lowlevel.ParkingLot()
        """The tasks that wait for a message."""
        self._batch_receivers: set[trio.CancelScope] = set()
        """The tasks that wait for a batch to satisfy the batch receive policy, each by its cancel scope."""
        self._has_batch_policy = spec.batch_receive is not None
        self._one_by_one = spec.acknowledgement_timeout > 0
        """True when each message is delivered singly, because its acknowledgement timeout runs from then."""
        self._by_run = False
        """True while a run receives all messages."""
        self.is_drained = False
        """True after `drain`: nothing more is received."""
        self._end_of_topic = False
        self.bind()

    def bind(self) -> None:
        """Bind the machine's calls; with partitions they are others than those of one topic."""
        self._queue: Any = self._machine.receiver(self._handle)
        self._take: Callable[[int], Messages[Any]] = self._queue.take

    @property
    def waiting(self) -> int:
        """The number of tasks that wait for messages."""
        return len(self._arrived) + len(self._batch_receivers)

    # --- for the application's tasks --------------------------------------------------------------------

    async def receive(self) -> Message[T]:
        """Return the next message where none is at hand. Raises as `Consumer.receive`."""
        self._check_not_by_run()
        return await self.next_message()

    def receive_nowait(self) -> Message[T]:
        """Return the next message. Raises as `Consumer.receive_nowait`."""
        self._check_not_by_run()
        message = self._next()
        if message is None:
            if self._end_of_topic or self.is_drained:
                raise trio.EndOfChannel
            raise trio.WouldBlock
        return message

    async def receive_many(self, limit: int) -> Messages[T]:
        """Return 1 to `limit` messages. Raises as `Consumer.receive`."""
        self._check_not_by_run()
        if self._turn <= 0:
            self._turn = TURN
            await trio.lowlevel.checkpoint()
        if self._has_batch_policy and not self.is_drained:
            await self._batch_receive()
        driver = self._driver
        driver.tick = driver.now()
        while True:
            self._machine.set_time(driver.tick)
            try:
                messages = self._take(limit)
            except Exception as error:
                raise driver.own_fault(error) from error.__cause__
            if self._outputs:
                driver.after_urgent_call()
            elif self._has_batch_policy:  # the time of the next task that collects may end before all else
                driver.after_quiet_call()
            if messages:
                self._turn -= len(messages)
                self._pass_on()
                return messages
            if self._has_batch_policy and not (self._end_of_topic or self.is_drained):
                await self._batch_receive()  # what was there is gone: taken back, or by another task
            else:
                await self._wait()

    # --- for a run --------------------------------------------------------------------------------------

    @contextmanager
    def by_run(self) -> Iterator[None]:
        """Refuse `receive` and its likes while the block runs. Raises `InvalidConfiguration` during another
        run and while a task waits, and what `receive` raises after the end of the consumer."""
        if self._ended is not None:
            self._refuse()
        self._check_not_by_run()
        if self.waiting:
            raise InvalidConfiguration("run is not possible while a task waits in receive")
        self._by_run = True
        self.at_hand = iter(())
        try:
            yield
        finally:
            self._by_run = False

    async def next_message(self) -> Message[T]:
        """Return the next message where none is at hand, also to a run."""
        self._turn -= 1 if self._one_by_one or self._by_run else self._queue.run_length or 1
        if self._turn <= 0:
            self._turn = TURN
            await trio.lowlevel.checkpoint()
            self._driver.refresh_time()
        message = self._next()
        while message is None:
            await self._wait()
            message = self._next()
            self._pass_on()
        return message

    def rest_of_run(self) -> Iterator[Message[T]]:
        """Return the messages at hand, for a task that alone receives from this consumer."""
        if self._one_by_one or self.is_drained:
            return iter(())
        self._turn -= self._queue.run_length
        ready: Iterator[Message[T]] = self._queue.ready
        return ready

    async def some_arrived(self) -> None:
        """Wait until messages have arrived, or those that the policy calls enough."""
        if self._turn <= 0:
            self._turn = TURN
            await trio.lowlevel.checkpoint()
        if self._has_batch_policy and not self.is_drained:
            await self._batch_receive()
        while True:
            if self._ended is not None:
                self._refuse()
            if not self.is_drained and self._machine.available(self._handle):
                return
            self._queue.want()
            if self._outputs:
                self._driver.after_call()
            await self._wait()

    def take_whole_batches(self, limit: int) -> Messages[T]:
        """Take messages that have arrived; the last batch is not divided."""
        if self._ended is not None:
            self._refuse()
        messages: Messages[T] = self._driver.command(
            partial(self._machine.take, whole_batches=True), self._handle, limit
        )
        self._turn -= len(messages)
        return messages

    # --- what the consumer tells ------------------------------------------------------------------------

    def messages_arrived(self) -> None:
        """Wake a task: there are messages again."""
        self._arrived.unpark()

    def topic_ended(self) -> None:
        """The topic has no more messages."""
        self._end_of_topic = True
        self._arrived.unpark_all()

    def more_may_come(self) -> None:
        """Forget that the topic has ended; the machine says so again where it still has."""
        self._end_of_topic = False

    def drain(self) -> None:
        """Receive nothing more. That cannot be taken back."""
        self.is_drained = True
        self.at_hand = iter(())
        if self._ended is None:
            self._take = _nothing
        self._arrived.unpark_all()
        for scope in self._batch_receivers:
            scope.cancel()

    def end(self, error: PulsarError) -> None:
        """Make every call raise `error`, because the consumer has ended."""
        self._ended = error
        self.at_hand = iter(())
        self._take = self._refuse
        self._arrived.unpark_all()

    # --- taking and waiting -----------------------------------------------------------------------------

    def _refuse(self, *_: object) -> NoReturn:
        assert self._ended is not None
        raise self._ended.with_traceback(None)

    def _check_not_by_run(self) -> None:
        if self._by_run:
            raise InvalidConfiguration("receive is not possible while run gets the messages of this consumer")

    def _next(self) -> Message[T] | None:
        """The next message where a run of them may have ended; see `pulsar_sansio`'s `Client.receiver`."""
        if self._ended is not None:
            self._refuse()
        if self.is_drained:
            return None
        queue = self._queue
        if self._one_by_one:
            self._driver.refresh_time()
        try:
            message: Message[T] | None = queue.receive()
        except Exception as error:
            raise self._driver.own_fault(error) from error.__cause__
        if not (self._one_by_one or self._by_run):
            self.at_hand = queue.ready
        if self._outputs:
            self._driver.after_call()
        return message

    async def _wait(self) -> None:
        """Wait until messages may have arrived. It has taken nothing, so cancelling it loses nothing."""
        if self._end_of_topic or self.is_drained:
            await trio.lowlevel.checkpoint()
            raise trio.EndOfChannel
        self._turn = TURN
        await self._arrived.park()

    async def _batch_receive(self) -> None:
        """Wait until the policy calls it enough, or `drain`. It has taken nothing, so cancelling it loses
        nothing."""
        scope = trio.CancelScope()
        self._batch_receivers.add(scope)
        try:
            with scope:
                await self._request(self._machine.batch_receive)
        except PulsarError:
            if self._ended is not None:
                self._refuse()
            raise
        finally:
            self._batch_receivers.discard(scope)

    def _pass_on(self) -> None:
        """One task is woken for what has arrived; it wakes another one if it leaves something."""
        if self._arrived and self._ended is None:
            if self._machine.available(self._handle):
                self._arrived.unpark()
            else:
                self._queue.want()
                if self._outputs:
                    self._driver.after_call()


def _nothing(limit: int) -> Messages[Any]:
    """Stands in for the queue's `take` while a consumer is being drained."""
    return Messages([])
