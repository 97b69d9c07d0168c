"""Consumers: a trio receive channel of messages, and their acknowledgement.

`receive` and `async for` take one message after the other from what has arrived, without suspending while
there is any; they yield every `TURN` messages: see `receiving`. Acknowledging is a plain call: it is grouped
and sent in the background, and always before the consumer closes.

What all kinds of subscriptions have is here; the kinds themselves are in `consumer_kinds`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Any, Generic

import trio
from trio.lowlevel import enable_ki_protection

from pulsar_sansio import (
    ArrivalCounters,
    ConsumerSpec,
    InvalidConfiguration,
    LocalProtocolError,
    Message,
    MessageId,
    Messages,
    PulsarError,
    TopicMessageId,
    unknown_names,
)
from pulsar_sansio import ConsumerStatistics as Counted
from pulsar_sansio import client_outputs as outputs

from .. import official_names, plain_calls
from ..client.endpoint import Endpoint
from ..client.position import Position, core_position, seconds
from ..client.transaction import Transaction, checked_timeout, id_of, open_transaction
from ..values import T
from .copies import copy_each
from .failures import NEGATIVE_ACKNOWLEDGE, FailureActions, FailurePolicy
from .processing import Processing
from .receiving import Receiving
from .running import Handler, Outcomes, Run, RunSource
from .stopping import AnyRun, CurrentRun
from .transaction_run import TransactionRun, TransactionSource

if TYPE_CHECKING:
    from ..client.driver import Driver

MessageOrId = Message[Any] | MessageId | TopicMessageId

_ACKNOWLEDGED = plain_calls.ACKNOWLEDGE

_log = getLogger("pulsar_trio.consumer")


@dataclass(frozen=True, slots=True)
class ConsumerStatistics:
    """`waiting`: tasks that wait for a message. `undelivered`: messages that arrived and will not be received
    here, by reason. The rest is as in `pulsar_sansio.ConsumerStatistics`, over all topics and partitions."""

    available: int
    waiting: int
    undelivered: ArrivalCounters
    messages_received: int
    bytes_received: int
    acknowledgements_sent: int
    acknowledgements_failed: int
    batches_forgotten: int


@unknown_names(official_names.CONSUMER)
class Consumer(Endpoint, trio.abc.ReceiveChannel[Message[T]], Generic[T]):
    """Made by `client.subscribe`. Use it from any task of the same `trio.run`.

    `T`: the type of `Message.value`: bytes, or the values of its schema.
    """

    _kind = "consumer"
    _by_key = False
    """True when `run` handles the messages of one key one after the other."""

    def __init__(self, driver: "Driver", handle: int, spec: ConsumerSpec) -> None:
        super().__init__(driver, handle)
        self._receiving: Receiving[T] = Receiving(driver, handle, spec, self._request)
        self._bind_machine()
        self._current_run = CurrentRun(driver)
        self._spec = spec
        self.subscription = spec.subscription
        self.active: bool | None = None
        """Failover only: whether this is the consumer that gets the messages, of several topics those of at
        least one; None until the broker says."""
        self._active_on: frozenset[str | None] = frozenset()
        self._active_changed = trio.lowlevel.ParkingLot()

    def _bind_machine(self) -> None:
        """Bind the machine's calls that are made once per message."""
        self._acknowledge: Callable[..., bool] = self._machine.acknowledger(self._handle)
        self._arrivals = self._machine.arrival_counters(self._handle)
        self._machine.set_processing(self._handle, partial(Processing, self))

    @property
    def topics(self) -> list[str]:
        """Full names of the topics and partitions it is subscribed to. With partitions, several topics or a
        pattern they come and go."""
        return [] if self._ended else self._machine.subscribed_topics(self._handle)

    # --- receiving --------------------------------------------------------------------------------------

    @enable_ki_protection
    async def receive(self, timeout_millis: None = None) -> Message[T]:
        """The next message, waiting for one where none has arrived. It takes no timeout, which other clients'
        `timeout_millis` is: that raises `WrongArguments`; use `trio.move_on_after` or `trio.fail_after`.

        Raises `trio.EndOfChannel` when the topic is terminated and everything in it is acknowledged, and
        after `drain`; `ResourceClosed` or `ResourceBroken` when the consumer is.
        """
        if timeout_millis is not None:
            raise official_names.no_timeout(timeout_millis)
        message = next(self._receiving.at_hand, None)
        if message is None:
            return await self._receiving.receive()
        return message

    @enable_ki_protection
    async def __anext__(self) -> Message[T]:
        message = next(self._receiving.at_hand, None)
        if message is None:
            try:
                return await self._receiving.receive()
            except trio.EndOfChannel:
                raise StopAsyncIteration from None
        return message

    @enable_ki_protection
    def receive_nowait(self) -> Message[T]:
        """The next message; raises `trio.WouldBlock` where none has arrived, and what `receive` raises."""
        return self._receiving.receive_nowait()

    @enable_ki_protection
    async def receive_many(self, limit: int = 1000) -> Messages[T]:
        """1 to `limit` messages: all that have arrived, waiting where none has. The fast way, and
        `acknowledge` takes what it gives as a whole. With a `batch_receive` policy it waits until there are
        as many as that calls enough, and gives no more.

        Raises what `receive` raises.
        """
        _check_count("limit", limit)
        return await self._receiving.receive_many(limit)

    async def run(
        self,
        handler: Callable[[Message[T]], Awaitable[object]],
        *,
        concurrency: int = 1,
        stop: trio.Event | None = None,
        on_failure: FailurePolicy = NEGATIVE_ACKNOWLEDGE,
    ) -> None:
        """Call `await handler(message)` for every message, and acknowledge it when the handler returns; until
        the topic ends, or the consumer is drained.

        `concurrency`: how many messages are handled at a time, 1 and more. On a key_shared subscription those
        of one key are handled one after the other even so. `stop`: when this event is set the consumer is
        drained, and `run` returns when that is done: see `drain`.

        `on_failure`: what becomes of a message whose handler raises an `Exception`: `NegativeAcknowledge()`,
        `RetryLater(delay)`, `DeadLetter()`, `Raise()`, or a function of the message and the exception that
        gives one of them. The exception is logged, or raised with `Raise()`. Where the copy for a retry or a
        dead letter fails, the message is negatively acknowledged, and `run` goes on.

        Cancellation is noticed before each handler, also where handlers never wait. Messages that are being
        handled are then left as they are: not acknowledged, and delivered again when the consumer closes.

        Meanwhile `receive` and its likes are refused (rule CONS-19), as is `run` while a task receives:
        `InvalidConfiguration`, also for an action that the consumer was not subscribed for. Raises what
        `receive`, `acknowledge` and `flush` raise, and what the function `on_failure` raises.
        """
        _check_count("concurrency", concurrency)
        actions = FailureActions(self, self._spec, on_failure)
        outcomes = Outcomes(self.acknowledge, actions.failed, self.negative_acknowledge)
        await self._handle_all(handler, outcomes, concurrency, stop)

    async def run_transactions(
        self,
        handler: Callable[[Sequence[Message[T]], Transaction], Awaitable[object]],
        *,
        max_messages: int = 100,
        timeout: float | timedelta = 60.0,
        stop: trio.Event | None = None,
    ) -> None:
        """Call `await handler(messages, transaction)` for batches of messages, each in a transaction that
        acknowledges them; until the topic ends, or the consumer is drained.

            async def handle(messages, transaction):
                for message in messages:
                    await producer.send(transformed(message.data), transaction=transaction)

        When the handler returns the transaction is committed: the messages are acknowledged and what was sent
        is delivered, both or neither. After an exception, a conflict, a lost acknowledgement or `timeout`, a
        timedelta or seconds, it is aborted. The messages are then received again, at first one entry at a
        time, after a pause of 0.1 s that doubles up to 10 s. The handler is cancelled at the timeout.

        A batch has what has arrived, 1 to `max_messages`; a batch of a producer is not divided, so it may be
        larger. With a `batch_receive` policy a run waits until there are as many as that calls enough.
        `stop`: as in `run`; the transaction that is open is finished.

        A cancelled run aborts its transaction in the background. Other receiving calls are refused meanwhile.
        Raises `LocalProtocolError` for a client without `transactions`, `NotSupported` for a cluster without
        transactions, and what `receive` and `flush` raise. Failed transactions are logged, and not raised.
        """
        _check_count("max_messages", max_messages)
        duration = checked_timeout(timeout)
        cumulative = getattr(self, "acknowledge_cumulative", None)
        receiving = self._receiving
        source = TransactionSource(
            receiving.some_arrived,
            receiving.take_whole_batches,
            partial(open_transaction, self._driver, duration, exactly_once=True),
            self.acknowledge,
            cumulative,
        )
        run = TransactionRun(repr(self), source, handler, max_messages, duration, stop)
        await self._run_to_its_end(run, handler, stop)

    async def _handle_all(
        self, handler: Handler, outcomes: Outcomes, concurrency: int, stop: trio.Event | None
    ) -> None:
        source = RunSource(self._receiving.next_message, self._receiving.rest_of_run)
        run = Run(source, outcomes, handler, concurrency, self._by_key, stop)
        await self._run_to_its_end(run, handler, stop)

    async def _run_to_its_end(self, run: AnyRun, handler: object, stop: trio.Event | None) -> None:
        if not callable(handler):
            raise InvalidConfiguration(f"handler: an async function, not {handler!r}")
        if not isinstance(stop, trio.Event | None):
            raise InvalidConfiguration(f"stop: a trio.Event or None, not {stop!r}")
        with self._receiving.by_run(), self._current_run.going_on(run, stop, self._begin_drain):
            await run.run()
        if stop is not None and run.is_stopped:
            self._begin_drain()
            await self.flush()

    async def drain(self) -> None:
        """Take nothing new, let `run` finish the handlers that have begun, and wait until the broker has
        confirmed the acknowledgements.

        From now on `receive` raises `trio.EndOfChannel`, `async for` ends, and `run` begins no more handlers
        and returns. That cannot be taken back: messages can still be acknowledged, and the consumer closed.
        Messages that have arrived and were not handled go back to the broker when the consumer closes.

        It waits for `run` and the connection without a limit: `trio.move_on_after` sets one. When cancelled,
        the consumer takes nothing new all the same; a second call waits for the rest. Raises
        `InvalidConfiguration` when called by a handler of `run`, for which it would wait for ever, and what
        `flush` raises.
        """
        self._current_run.check_can_wait()
        self._begin_drain()
        await self._current_run.over()
        await self.flush()

    def _begin_drain(self) -> None:
        if self._receiving.is_drained:
            return
        with suppress(PulsarError):  # it has ended, or is closing: its calls say so
            self._command(self._machine.pause)
        self._receiving.drain()
        self._current_run.stop()

    # --- acknowledging ----------------------------------------------------------------------------------

    @enable_ki_protection
    def acknowledge(
        self, what: MessageOrId | Sequence[MessageOrId], transaction: Transaction | None = None
    ) -> None:
        """Acknowledge a message, an id, or a list of them. A plain call, without `await`.

        They are collected and sent together, at the latest after `acknowledgement_group_time` and before the
        consumer closes; `flush` waits until the broker has confirmed them. Doing it twice is harmless.
        With a `transaction` they take effect when that is committed, and a refusal fails the commit.
        """
        if transaction is not None:
            self._acknowledge_in(what, transaction)
            return _ACKNOWLEDGED
        try:
            something_follows = self._acknowledge(what)
        except Exception as error:
            raise self._driver.own_fault(error) from error.__cause__
        if something_follows:
            self._driver.after_call()
        return _ACKNOWLEDGED

    def _acknowledge_in(self, what: MessageOrId | Sequence[MessageOrId], transaction: Transaction) -> None:
        """Let the machine collect acknowledgements; most leave nothing to do for the driver."""
        if self._ended is not None:
            self._refuse()
        driver = self._driver
        driver.tick = driver.now()
        try:
            self._machine.acknowledge(driver.tick, self._handle, what, id_of(transaction, driver))
        except Exception as error:
            raise driver.own_fault(error) from error.__cause__
        if self._outputs:
            driver.after_call()

    def negative_acknowledge(self, what: MessageOrId | Sequence[MessageOrId]) -> None:
        """Negatively acknowledge a message, an id, or a list of them.

        After `negative_acknowledgement_delay` the broker redelivers them to any consumer of the subscription.
        """
        self._command(self._machine.negative_acknowledge, what)
        return plain_calls.NEGATIVE_ACKNOWLEDGE

    def pause(self) -> None:
        """Ask the broker for no more messages until `resume`; those that it was asked for may still come."""
        self._command(self._machine.pause)
        return plain_calls.PAUSE

    def resume(self) -> None:
        """Ask for messages again. Raises `InvalidConfiguration` after `drain`."""
        if self._receiving.is_drained:
            raise InvalidConfiguration("resume: this consumer was drained, and takes nothing new any more")
        self._command(self._machine.resume)
        return plain_calls.RESUME

    async def reconsume_later(
        self,
        what: Message[Any] | Sequence[Message[Any]],
        delay: float | timedelta,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Have a message, or each of several, delivered again after `delay`, a timedelta or seconds; only
        with `retry=True`.

        Returns when a copy is safe in the retry topic, or among the dead letters once that has happened
        `max_redeliver_count` times, and the message is acknowledged. `properties`: more of them for the copy.
        Raises the reason why a message could not be copied. That message is then redelivered as after
        `negative_acknowledge`. Several messages are copied one by one; the first error is raised when all
        have been tried. When cancelled, it happens all the same.
        """
        seconds_of_delay = seconds(delay)
        publish_time = self._publish_time()
        call = self._machine.reconsume_later
        await copy_each(
            what if isinstance(what, Iterable) else [what],
            lambda message: self._asked(call, message, seconds_of_delay, publish_time, properties),
        )

    async def dead_letter(
        self, what: Message[Any] | Sequence[Message[Any]], properties: Mapping[str, str] | None = None
    ) -> None:
        """Send a message, or each of several, to the dead-letter topic, however often it was delivered; only
        with a `DeadLetterPolicy` or `retry=True`.

        Returns when a copy is safe there and the message is acknowledged. `properties`: more of them for the
        copy. Raises `LocalProtocolError` without a policy, and the reason why a message could not be copied,
        as `reconsume_later` does. That message is then redelivered as after `negative_acknowledge`. When
        cancelled, it happens all the same.
        """
        publish_time = self._publish_time()
        call = self._machine.dead_letter
        await copy_each(
            what if isinstance(what, Iterable) else [what],
            lambda message: self._asked(call, message, publish_time, properties),
        )

    def _publish_time(self) -> int:
        """Return the publish time of a copy that is made now, in milliseconds since 1970."""
        return (self._driver.now() + self._driver.wall_offset) // 1_000_000

    def redeliver_unacknowledged(self) -> None:
        """Have everything delivered again that is not acknowledged, also what has not been received yet."""
        self._command(self._machine.redeliver_unacknowledged)
        return plain_calls.REDELIVER_UNACKNOWLEDGED

    async def flush(self) -> None:
        """Send the collected acknowledgements and wait until the broker has confirmed them.

        Raises the error with which the broker refuses one. With `acknowledgement_receipts`, acknowledgements
        on their way when a connection was lost are sent again first. Without it, `flush` does not cover them:
        if they are lost, their messages are redelivered (rule ACK-09).
        """
        await self._request(self._machine.flush_acknowledgements)

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription with all it remembers, and close this consumer.

        With other consumers on the subscription the broker refuses, unless `force`.
        """
        await self._request(self._machine.unsubscribe, force)
        await self._gone.wait()

    # --- positions --------------------------------------------------------------------------------------

    async def seek(self, target: Position, *, inclusive: bool = False) -> None:
        """Move the subscription to another place in the topic: see `Position`.

        After a message, unless `inclusive`, the one behind it comes next. When it returns, nothing that was
        there before is received any more, and acknowledgements that were not sent are dropped. It concerns
        all consumers of the subscription. Raises `LocalProtocolError` for what is no place in this topic,
        what the broker refuses it with, and `TimedOut`. When cancelled, it may happen all the same.
        """
        await self._request(self._machine.seek, core_position(target), inclusive)

    async def last_message_id(self) -> MessageId:
        """The id of the topic's last message; ledger and entry are -1 where there is none. Raises
        `LocalProtocolError` where there are several topics or partitions: see `last_message_ids`."""
        ids = await self.last_message_ids()
        if len(ids) != 1:
            raise LocalProtocolError(
                f"last_message_id: one of {len(ids)} topics or partitions; last_message_ids gives all of them"
            )
        return ids[0].message_id

    async def last_message_ids(self) -> list[TopicMessageId]:
        """Return the last message id of each topic and partition there is, by their names."""
        last: MessageId | list[TopicMessageId] = await self._request(self._machine.last_message_id)
        return [TopicMessageId(self.topic, last)] if isinstance(last, MessageId) else last

    async def has_message_available(self) -> bool:
        """Tell whether another message follows those received; if so, `receive` will not wait for long."""
        if self._ended is None and self._machine.available(self._handle):
            await self._checkpoint_occasionally()
            return True
        return bool(await self._request(self._machine.has_message_available))

    def positions(self) -> dict[str, MessageId]:
        """Return the position by full topic name: the id of the message before the next one."""
        if self._ended is not None:
            self._refuse()
        return self._machine.checkpoint(self._handle)

    # --- the driver's side ------------------------------------------------------------------------------

    def _on_output(self, output: Any) -> None:
        match output:
            case outputs.Deliverable():
                self._receiving.messages_arrived()
            case outputs.ActiveChanged(_, active, topic):
                self._active_on = self._active_on - {topic} if not active else self._active_on | {topic}
                self.active = bool(self._active_on)
                self._active_changed.unpark_all()
            case outputs.TopicJoined(_, topic):
                _log.info("%r: subscribed to %s too", self, topic)
            case outputs.TopicLeft(_, topic, None):
                _log.info("%r: not subscribed to %s any more", self, topic)
            case outputs.TopicLeft(_, topic, error):
                _log.warning("%r: not subscribed to %s any more: %s", self, topic, error)
            case outputs.EndOfTopic():
                self._receiving.topic_ended()
            case outputs.Undecryptable(_, message_id, error, discarded):
                _log.warning(
                    "%r: message %s cannot be decrypted: %s; such messages are not delivered here, and %s "
                    "(statistics().undelivered counts them)",
                    self,
                    message_id,
                    error,
                    "are acknowledged" if discarded else "stay in the subscription",
                )
            case outputs.LetterFailed(_, message_id, topic, error):
                _log.warning("%r: message %s could not be copied to %s: %s", self, message_id, topic, error)
            case outputs.ConsumerReady(_, topic):
                self._receiving.bind()
                self._bind_machine()
                self.topic = topic
                self.connected = True
                self._ready.set(None)
            case outputs.ConsumerFailed(_, error):
                self._ready.set(None, error)
            case outputs.Detached():
                self._receiving.more_may_come()
                super()._on_output(output)
            case _:
                super()._on_output(output)

    def _on_end(self, error: PulsarError) -> None:
        self._receiving.end(error)
        self._acknowledge = self._refuse
        self._active_changed.unpark_all()

    # --- facts about it ---------------------------------------------------------------------------------

    def statistics(self) -> ConsumerStatistics:
        """The statistics since the consumer was opened; most read 0 once the client has released it."""
        try:
            counted = self._machine.consumer_statistics(self._handle)
        except PulsarError:  # it ended long ago
            counted = Counted()
        return ConsumerStatistics(
            0 if self._ended else counted.available,
            self._receiving.waiting,
            replace(self._arrivals),
            counted.messages_received,
            counted.bytes_received,
            counted.acknowledgements_sent,
            counted.acknowledgements_failed,
            counted.batches_forgotten,
        )

    def _waiting(self) -> list[str]:
        tasks = self._receiving.waiting
        lines = [f"{tasks} tasks wait for a message"] if tasks else []
        return lines + self._current_run.described

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.subscription!r} on {self.topic}, {self._state}>"

    @property
    def _state(self) -> str:
        """The word for texts: closed, connected or not connected."""
        return "closed" if self._ended else "connected" if self.connected else "not connected"


def _check_count(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise InvalidConfiguration(f"{name}: a whole number, 1 and more, not {value!r}")
