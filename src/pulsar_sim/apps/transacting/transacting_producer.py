"""`TransactingProducer`: one producer of the application with transactions."""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Detached,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    SendFailed,
)
from pulsar_sansio.model.config import OutgoingMessage, ProducerSpec
from pulsar_sansio.model.errors import ClosedError, ProducerQueueIsFull, TransactionNotOpen

from ...model.transactions.transaction_record import SentMessage, TransactionRecord

if TYPE_CHECKING:
    from .transactor import Transactor

WINDOW = 20


class TransactingProducer:
    """One producer. It has no send timeout: a message fails with its transaction or its producer only."""

    def __init__(self, app: "Transactor", topic: str, number: int) -> None:
        self._app = app
        self.topic = topic
        self.number = number
        """The number among all producers of the application."""
        self.ready = False
        self.detached = False
        """True between a lost connection and the next one."""
        self.closing = False
        self.pending: dict[int, SentMessage] = {}
        """Messages without an outcome, by ticket."""
        chunk_size = app.plan.chunk_size
        spec = ProducerSpec(
            topic,
            batching=app.plan.batching,
            send_timeout=0.0,
            max_pending_messages=WINDOW,
            chunking=bool(chunk_size),
            chunk_max_message_size=chunk_size or None,
        )
        self.handle = app.host.node.client.open_producer(app.world.clock.now, spec)
        app.host.routes[self.handle] = self

    def send(self, transaction: TransactionRecord | None, is_output: bool = False) -> bool:
        """Send one message; False when the producer cannot take it. Raises `TransactionNotOpen`."""
        app = self._app
        key: str | None = f"k{app.stream.below(3)}"
        share = app.plan.payload_permille
        if share and transaction is not None and app.options.chance(share):
            key = None
        chunk_size = app.plan.chunk_size
        chunks = app.options.weighted([(1, 3), (2, 2), (3, 1), (6, 1)]) if chunk_size else 1
        message = app.account.sends(self.topic, self.number, key, transaction, chunks, chunk_size)
        message.is_output = is_output
        id_ = None if transaction is None else transaction.id
        world = app.world
        client, now, wall = app.host.node.client, world.clock.now, world.wall_time()
        try:
            if key is not None:
                outgoing = OutgoingMessage(message.payload, key=key, transaction=id_)
                ticket = client.send(now, self.handle, outgoing, wall)
            else:
                ticket = client.appender(self.handle)(message.payload, id_)
                if ticket < 0:
                    tickets = client.send_many(now, self.handle, [message.payload], wall, id_)
                    if not tickets:
                        raise ProducerQueueIsFull("the window is full")
                    ticket = tickets[0]
        except (ProducerQueueIsFull, ClosedError):
            app.account.withdraw(message)
            return False
        except TransactionNotOpen:
            app.account.withdraw(message)
            raise
        self.pending[ticket] = message
        return True

    def close(self) -> None:
        """Close the producer; the application opens another one."""
        host = self._app.host
        self.closing = True
        request = host.node.client.close(self._app.world.clock.now, self.handle)
        host.routes[request] = self

    def lose(self) -> None:
        """The producer or its process is gone: what is pending may be stored or not."""
        for message in self.pending.values():
            message.outcome = "failed"
        self.pending.clear()

    @property
    def done(self) -> bool:
        """True when nothing of the producer is under way."""
        return self.ready and not self.detached and not self.pending

    def on_output(self, output: Output) -> None:
        if isinstance(output, ProducerReady):
            self.ready = True
        elif isinstance(output, (Attached, Detached)):
            self.detached = isinstance(output, Detached)
        elif isinstance(output, Receipts):
            for ticket, found in enumerate(output.message_ids, output.first):
                position = (found.ledger_id, found.entry_id, max(found.batch_index, 0))
                message = self.pending.pop(ticket)
                stored = None if found.ledger_id < 0 else position
                self._app.account.confirms(message, stored, found.partition)
        elif isinstance(output, SendFailed):
            for ticket in range(output.first, output.first + output.count):
                self.pending.pop(ticket).outcome = "failed"
        elif isinstance(output, (ProducerFailed, Closed)):
            self.lose()
            self._app.has_lost(self)
