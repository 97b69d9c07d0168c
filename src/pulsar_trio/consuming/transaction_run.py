"""`TransactionRun`: a handler for batches of messages, each batch in a transaction of its own (rule TXN-02).

Each round waits for messages, opens a transaction, takes messages, and acknowledges them in it. The broker
confirms the acknowledgements before the handler begins. So the handler gets no message that is acknowledged
already, or that another open transaction acknowledges. When the handler has returned, the transaction is
committed. After anything else it is aborted, and the broker delivers the messages again.

A run takes messages only when a transaction is open. So it never holds messages that no transaction covers,
and a cancellation between two rounds loses nothing. A round begins when the transaction before it is over at
its coordinator. Otherwise later messages could overtake those of a transaction whose end is not known.

On Exclusive and Failover subscriptions a transaction acknowledges cumulatively, first the first entry it took
and then the last. The first acknowledgement is refused while another transaction acknowledges cumulatively,
and when any of the messages is acknowledged already: that is what keeps the order and prevents repetitions.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from logging import getLogger
from typing import Any, TypeAlias

import trio

from pulsar_sansio import (
    InvalidTransactionStatus,
    Message,
    MessageId,
    Messages,
    PulsarError,
    TimedOut,
    TopicMessageId,
    TransactionConflict,
    TransactionNotFound,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionTimedOut,
)

from ..client.transaction import Transaction
from .running import HandlerTasks

TransactionHandler: TypeAlias = Callable[[Sequence[Message[Any]], Transaction], Awaitable[object]]

SHORTEST_PAUSE = 0.1
"""Seconds before the messages of a failed transaction are received again; doubled while transactions with
them fail."""

LONGEST_PAUSE = 10.0

_PASSING = (
    InvalidTransactionStatus,
    TimedOut,
    TransactionConflict,
    TransactionNotFound,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionTimedOut,
)
"""Errors after which another transaction may succeed, besides those that are retryable."""

_log = getLogger("pulsar_trio.transactions")


@dataclass(frozen=True, slots=True)
class TransactionSource:
    """The calls of a consumer by which a run gets messages and transactions."""

    wait: Callable[[], Awaitable[None]]
    """Wait until messages have arrived. Raises `trio.EndOfChannel` when none will."""
    take: Callable[[int], Messages[Any]]
    """Take up to so many messages that have arrived. A batch is not divided, and may exceed the limit."""
    begin: Callable[[], Awaitable[Transaction]]
    """Open a transaction whose end is known when it is reported."""
    acknowledge: Callable[[Sequence[Message[Any]], Transaction], None]
    acknowledge_cumulative: Callable[[TopicMessageId, Transaction], None] | None
    """Acknowledge an entry and all before it. Shared and Key_Shared subscriptions have None."""


class TransactionRun:
    """One call of `Consumer.run_transactions`. `timeout`: seconds of a transaction."""

    def __init__(
        self,
        name: str,
        source: TransactionSource,
        handler: TransactionHandler,
        max_messages: int,
        timeout: float,
        stop: trio.Event | None,
    ) -> None:
        self._name = name
        self._source = source
        self._handler = handler
        self._max_messages = max_messages
        self._timeout = timeout
        self._stop = stop
        self._stopped = trio.Event()
        self._singly = 0
        """The number of messages to take one entry at a time, because a transaction with them has failed."""
        self._taken: set[tuple[str, MessageId]] = set()
        """The messages of the present round, or of the last one."""
        self._failed_before: set[tuple[str, MessageId]] = set()
        """The messages of the last failed transaction."""
        self._pause = 0.0
        """Seconds of the last rest."""
        self.described = ""
        """A line for people that says what the run waits for."""
        self.handler_tasks = HandlerTasks()

    def stop(self) -> None:
        """Open no more transactions. `run` returns when an open one is over."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """True when no more transactions are opened."""
        return self._stopped.is_set() or (self._stop is not None and self._stop.is_set())

    async def run(self) -> None:
        """Run until the topic ends, or `stop`."""
        while not self.is_stopped:
            self.described = "run_transactions waits for messages"
            try:
                await self._source.wait()
            except trio.EndOfChannel:
                return
            if self.is_stopped:
                return
            self._taken.clear()
            error = await self._round()
            if error is not None:
                await self._rest(error)

    async def _rest(self, error: Exception) -> None:
        """Wait before the next round, so that a lasting failure does not keep the broker busy.

        A conflict over other messages than before needs no rest: copies of messages that are acknowledged
        already leave the queue one after the other.
        """
        if self._taken and self._taken.isdisjoint(self._failed_before):
            self._pause = 0.0 if isinstance(error, TransactionConflict) else SHORTEST_PAUSE
        else:
            self._pause = min(max(SHORTEST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._failed_before = self._taken.copy()
        pause = self._pause
        self.described = f"run_transactions rests for {pause:g} s after {type(error).__name__}: {error}"
        with trio.move_on_after(pause):
            await self._stopped.wait()

    async def _round(self) -> Exception | None:
        """Have one transaction. Return why it failed, unless another one is useless."""
        self.described = "run_transactions waits for a transaction coordinator to open a transaction"
        expires = trio.current_time() + self._timeout
        try:
            transaction = await self._source.begin()
        except PulsarError as error:
            if not _passes(error):
                raise
            _log.warning("%s: no transaction could be opened: %s", self._name, error)
            return error
        try:
            return await self._within(transaction, expires)
        except BaseException as error:
            if transaction.is_open:
                transaction.abort_later(type(error).__name__)
            raise

    async def _within(self, transaction: Transaction, expires: float) -> Exception | None:
        """Take messages, let the handler do its work, and end the transaction."""
        limit = 0 if self.is_stopped else 1 if self._singly else self._max_messages
        messages = _each_once(self._source.take(limit))
        if not messages:  # They were taken back meanwhile, as after a lost connection.
            await self._abort(transaction)
            return None
        self._taken.update((each.topic, each.message_id) for each in messages)
        of = f"transaction {transaction.id} of {len(messages)} messages"
        self.described = f"run_transactions waits for acknowledgements in {of}"
        try:
            await self._claim(messages, transaction)
        except PulsarError as error:
            await self._abort(transaction)
            if not _passes(error):
                raise
            self._failed(messages, of, error)
            return error
        self.described = f"run_transactions waits for the handler of {of}"
        try:
            with trio.CancelScope(deadline=expires) as scope:
                await self._handler(messages, transaction)
        except Exception as error:
            _log.error("%s: the handler of %s failed", self._name, of, exc_info=error)
            await self._abort(transaction)
            self._singly = max(self._singly, len(messages))
            return error
        if scope.cancelled_caught:
            await self._abort(transaction)
            late = TransactionTimedOut(f"the handler did not return within {self._timeout:g} s")
            self._failed(messages, of, late)
            return late
        if not transaction.is_open:
            return self._ended_by_handler(len(messages), of)
        self.described = f"run_transactions waits for the commit of {of}"
        try:
            await transaction.commit()
        except PulsarError as error:
            self._failed(messages, of, error)
            return error
        self._failed_before.clear()
        self._singly = max(0, self._singly - len(messages))
        return None

    async def _claim(self, messages: Sequence[Message[Any]], transaction: Transaction) -> None:
        """Acknowledge the messages in the transaction, and wait until the broker has confirmed it."""
        cumulative = self._source.acknowledge_cumulative
        if cumulative is None:
            self._source.acknowledge(messages, transaction)
            await transaction.flush()
            return
        first = {message.topic: _entry_of(message) for message in reversed(messages)}
        last = {message.topic: _entry_of(message) for message in messages}
        for topic, message_id in first.items():
            cumulative(TopicMessageId(topic, message_id), transaction)
        await transaction.flush()
        further = [topic for topic in last if last[topic] != first[topic]]
        for topic in further:
            cumulative(TopicMessageId(topic, last[topic]), transaction)
        if further:
            await transaction.flush()

    async def _abort(self, transaction: Transaction) -> None:
        self.described = (
            f"run_transactions waits for the end of transaction {transaction.id}, which is aborted"
        )
        try:
            await transaction.abort()
        except PulsarError as error:
            _log.debug("%s: transaction %s is over: %s", self._name, transaction.id, error)

    def _ended_by_handler(self, count: int, of: str) -> Exception | None:
        """Return an error where the messages were received before: a handler that aborts is called ever more
        slowly."""
        self._singly = max(0, self._singly - count)
        if self._taken.isdisjoint(self._failed_before):
            self._failed_before = self._taken.copy()
            self._pause = 0.0
            return None
        return TransactionNotOpen(f"the handler ended {of}, and its messages were received before")

    def _failed(self, messages: Sequence[Message[Any]], of: str, error: PulsarError) -> None:
        """Say so. After these errors a smaller transaction may succeed."""
        if isinstance(error, TransactionConflict | TransactionTimedOut):
            self._singly = max(self._singly, len(messages))
        if isinstance(error, TransactionOutcomeUnknown):
            what = "is over; if it was not committed, they are received again"
        else:
            what = "was aborted; those that are not acknowledged already are received again"
        _log.warning("%s: %s %s: %s", self._name, of, what, error)


def _passes(error: PulsarError) -> bool:
    return error.retryable or isinstance(error, _PASSING)


def _each_once(messages: Messages[Any]) -> list[Message[Any]]:
    """Return the messages without the copies that a redelivery may have added."""
    return list({(each.topic, each.message_id): each for each in messages}.values())


def _entry_of(message: Message[Any]) -> MessageId:
    """Return the id of the whole entry, or of the last chunk."""
    ledger_id, entry_id, partition = message.message_id[:3]
    return MessageId(ledger_id, entry_id, partition)
