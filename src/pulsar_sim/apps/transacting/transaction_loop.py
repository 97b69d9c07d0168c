"""`TransactionLoop`: handles the messages of one consumer as `run_transactions` does (rule TXN-02).

A round opens a transaction, takes whole batches, acknowledges them in it, and waits until that is confirmed.
It sends one message for each that it took, unless that one was sent by a loop, and commits. After an error
the round is aborted, and the broker delivers the messages again.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.model.errors import TransactionNotOpen
from pulsar_sansio.model.message_id import MessageId, TopicMessageId

from ...engine.clock import MILLISECOND
from ...model.transactions.transaction_record import TransactionOutcome, TransactionRecord
from .transacting_consumer import Held, TransactingConsumer

if TYPE_CHECKING:
    from .transactor import Transactor

MOST_TAKEN = 6
"""Messages of one transaction, at most; the last batch is not divided."""

REST = 100 * MILLISECOND
"""Nanoseconds between a transaction that failed and the next one."""


class TransactionLoop:
    """The rounds of one consumer, through all its openings."""

    def __init__(self, app: "Transactor", consumer: TransactingConsumer) -> None:
        self._app = app
        self._consumer = consumer
        self._asks = False
        """A transaction is being opened."""
        self._transaction: TransactionRecord | None = None
        self._left: list[Held] = []
        """Messages that wait to be handled."""
        self._confirmed = False
        """The broker has confirmed the acknowledgements."""
        self._failed = False
        self._singly = False
        """The next transaction takes one entry, because the last one failed."""
        self._rests_until = 0

    def lose(self) -> None:
        """The process is lost."""
        self._asks = False
        self._transaction = None
        self._left.clear()

    def step(self) -> None:
        """Begin a round, or go on with it."""
        transaction = self._transaction
        if transaction is None:
            self._begin()
        elif transaction.outcome is TransactionOutcome.OPEN:
            try:
                self._go_on(transaction)
            except TransactionNotOpen:
                self._app.not_open(transaction)

    def _begin(self) -> None:
        app, consumer = self._app, self._consumer
        waits = self._asks or app.world.clock.now < self._rests_until
        if not waits and consumer.is_open and app.host.node.client.available(consumer.handle):
            self._asks = True
            app.begin(app.loop_timeout, True, self)

    def opened(self, transaction: TransactionRecord | None) -> None:
        """The transaction is open; None when it could not be opened."""
        self._asks = False
        self._transaction = transaction
        self._confirmed = self._failed = False
        if transaction is None:
            self._rest()
            return
        try:
            self._take(transaction)
        except TransactionNotOpen:
            self._app.not_open(transaction)

    def over(self, committed: bool) -> None:
        """The transaction has an end."""
        self._transaction = None
        self._left.clear()
        self._singly = not committed
        if not committed:
            self._rest()

    def _rest(self) -> None:
        self._rests_until = self._app.world.clock.now + REST

    # --- one round ------------------------------------------------------------------------------------------

    def _take(self, transaction: TransactionRecord) -> None:
        """Take messages, and acknowledge them. Raises `TransactionNotOpen`."""
        consumer = self._consumer
        taken = consumer.take_whole(1 if self._singly else MOST_TAKEN) if consumer.is_open else {}
        account = self._app.account
        self._left = list(taken)
        if not taken:
            self._failed = True
        elif consumer.kind.cumulative:
            self._acknowledge_cumulatively(transaction, list(taken))
        else:
            client, now = self._app.host.node.client, self._app.world.clock.now
            client.acknowledge(now, consumer.handle, list(taken.values()), transaction=transaction.id)
            for name, position in taken:
                account.subscriptions[name].acknowledges(position, transaction)
            self._app.flush(transaction, self._flushed)

    def _acknowledge_cumulatively(self, transaction: TransactionRecord, taken: list[Held]) -> None:
        """Acknowledge the first entry of each topic, and the last one when that is confirmed."""
        consumer, handle = self._consumer, self._consumer.handle
        first = dict(reversed(taken))
        last = dict(taken)
        for name, position in first.items():
            self._through(transaction, name, position[:2])

        def confirmed(succeeded: bool) -> None:
            further = [name for name in last if last[name][:2] != first[name][:2]]
            if not further or not succeeded:
                self._flushed(succeeded)
                return
            if not consumer.is_open or consumer.handle != handle:
                self._failed = True
                return
            try:
                for name in further:
                    self._through(transaction, name, last[name][:2])
                self._app.flush(transaction, self._flushed)
            except TransactionNotOpen:
                self._failed = True

        self._app.flush(transaction, confirmed)

    def _through(self, transaction: TransactionRecord, name: str, entry: tuple[int, int]) -> None:
        """Acknowledge an entry and all before it."""
        app, consumer = self._app, self._consumer
        account = app.account.subscriptions[name]
        whole = account.topic.rpartition("-partition-")
        partition = int(whole[2]) if whole[0] else -1
        what = TopicMessageId(account.topic, MessageId(*entry, partition))
        client, now = app.host.node.client, app.world.clock.now
        client.acknowledge_cumulative(now, consumer.handle, what, transaction=transaction.id)
        last = (*entry, app.account.size_of(account.topic, *entry) - 1)
        for _, position in app.through(transaction, consumer, name, last):
            account.acknowledges(position, transaction)

    def _flushed(self, succeeded: bool) -> None:
        self._confirmed = succeeded
        self._failed = not succeeded

    def _go_on(self, transaction: TransactionRecord) -> None:
        """Send what is due, and end the transaction when all is sent. Raises `TransactionNotOpen`."""
        if self._failed:
            self._app.end(transaction, aborts=True)
            return
        if not self._confirmed:
            return
        while self._left:
            name, position = self._left[0]
            message = self._app.account.subscriptions[name].received[position]
            if not message.is_output and not self._app.send_output(transaction):
                return
            transaction.handled.append(self._left.pop(0))
        self._app.end(transaction)
