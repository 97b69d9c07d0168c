"""`UnsealedMessages`: the accepted messages of a producer that cannot be sealed yet, in their order.

Before its first attachment a producer has no name to seal messages with. A message with a schema of its own
waits for the version of that schema. All messages behind a waiting one wait with it. Messages inside and
outside of transactions wait for each other's receipts. While a transaction joins the topic, its messages are
sealed and held, and those of others wait. Sealed messages go to the `EntryBuilder`, which owns sequence ids
and frames.

When the application waits for the receipts of messages, or for the transaction of them, they are sent as soon
as they are sealed: their batch does not wait for others (PROD-28).
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from ...model.config import OutgoingMessage, nanoseconds_of
from ...model.errors import InvalidMessage, PulsarError, TransactionNotOpen
from ...model.schema import SchemaInfo
from ...model.transaction_id import TransactionId
from ..connecting.connection import Connection
from ..memory import payload_size
from ..transactions.transaction import Transaction
from .entry_builder import EntryBuilder
from .message_schemas import MessageSchemas
from .producer_services import ProducerServices
from .send_window import SendWindow

UnsealedMessage: TypeAlias = tuple[int, bytes | OutgoingMessage, int, int]
"""A message that cannot be sealed yet: its ticket, the message, its publish time, and the time at which the
producer took it."""


class SealingOwner(Protocol):
    """The `Admission` that the messages come from."""

    def check(self, message: object, publish_time: int) -> None:
        """Raise `InvalidMessage` for a message that the present broker does not accept."""

    @property
    def next_ticket(self) -> int:
        """The ticket of the next message."""
        ...

    def settled(self) -> None:
        """Tickets were settled."""

    def open_fast_path(self) -> None:
        """Payloads may be sealed without asking here."""

    def close_fast_path(self) -> None:
        """Every message has to come here."""


class UnsealedMessages:
    """The unsealed messages of one producer, and what they wait for."""

    __slots__ = (
        "_batches",
        "_context",
        "_in_batches",
        "_joining",
        "_memory",
        "_owner",
        "_send_timeout",
        "_timer",
        "_topic",
        "_transactions",
        "_window",
        "entry_builder",
        "in_transactions",
        "is_sealing",
        "messages",
        "opened_at",
        "push_end",
        "schemas",
        "settled_meanwhile",
    )

    def __init__(self, services: ProducerServices, window: SendWindow, owner: SealingOwner) -> None:
        self.schemas = MessageSchemas(services, self.seal_all, self._schema_refused)
        """The versions of the schemas that messages have."""
        self.entry_builder = EntryBuilder(services, window, self.schemas)
        """The receiver of the messages that can be sealed."""
        self.messages: deque[UnsealedMessage] = deque()
        """The messages; the admission reads it for each message, and changes nothing in it."""
        self.push_end = 0
        """Messages with lower tickets are sent as soon as they are sealed."""
        self.in_transactions = False
        """The last sealed message was in a transaction."""
        self.is_sealing = False
        """The unsealed messages are being sealed."""
        self.settled_meanwhile = False
        """Tickets were settled while messages were being sealed."""
        self.opened_at: int | None = None
        """The time of the first attachment: the send timeout counts from then at the earliest."""
        self._context = services.context
        self._send_timeout = nanoseconds_of(services.spec.send_timeout)
        self._timer = services.context.deadlines.slot(self._check_timeout)
        self._window = window
        self._owner = owner
        self._memory = services.client.memory
        self._transactions = services.client.transactions
        self._topic = str(services.topic)
        self._batches = services.spec.batching is not None
        self._joining: Transaction | None = None
        """The transaction that is being told of the topic, and whose entries are held."""
        self._in_batches: set[TransactionId] = set()
        """The open transactions whose messages may be in open batches."""

    @property
    def size(self) -> int:
        """The payload bytes of the messages that wait."""
        return sum(payload_size(message) for _, message, *_ in self.messages)

    # --- one message ---

    def add(self, ticket: int, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Keep a checked message until it can be sealed."""
        self.messages.append((ticket, message, publish_time, self._context.now))

    def hold_first(self) -> None:
        """Ask for what the first message waits for, which was just added to none; send those before it."""
        if len(self.messages) == 1 and self.entry_builder.encoder is not None:
            self.seal_all()

    def seal(self, message: bytes | OutgoingMessage, ticket: int, publish_time: int) -> None:
        """Pass a message to the entry builder. Raises `InvalidMessage` as `EntryBuilder.take`."""
        self.entry_builder.take(message, ticket, publish_time)
        id_ = None if isinstance(message, bytes) else message.transaction
        inside = id_ is not None
        if id_ is not None and id_ not in self._in_batches and self._batches:
            self._in_batches.add(id_)
            transaction = self._transactions.open[id_]
            transaction.before_end(partial(self._close_batch_of, id_))
            transaction.before_abort(partial(self._fail_batch_of, id_))
            transaction.at_end(partial(self._transaction_ended, id_))
        if inside != self.in_transactions:
            self.in_transactions = inside
            self._owner.close_fast_path()
            self._owner.open_fast_path()

    def can_seal(self, message: bytes | OutgoingMessage) -> bool:
        """Tell whether the version of the message's schema is known, and its transaction has the topic or is
        the one that joins it. While one joins it, no other message can be sealed.

        A broker may store messages of transactions later than others that come behind them. So messages in
        and outside of transactions wait for each other's receipts (seen with a real broker).
        """
        inside = not isinstance(message, bytes) and message.transaction is not None
        if inside != self.in_transactions and self.entry_builder.pending:
            return False
        if not inside and self._joining is not None:
            return False
        if isinstance(message, bytes):
            return True
        if message.schema is not None and self.schemas.version(message.schema) is None:
            return False
        id_ = message.transaction
        if id_ is None:
            return True
        transaction = self._transactions.open.get(id_)
        if transaction is None or transaction.is_over:
            return False
        if self._joining is not None:
            return transaction is self._joining
        return transaction.has_topic(self._topic)

    def _hold(self, ticket: int, message: bytes | OutgoingMessage, taken_at: int) -> None:
        """Ask for what this message waits for, the first that cannot be sealed; send those before it."""
        self._owner.close_fast_path()
        self.entry_builder.close_batch()
        inside = not isinstance(message, bytes) and message.transaction is not None
        if isinstance(message, bytes) or (inside != self.in_transactions and self.entry_builder.pending):
            self._window.watched = True  # `Admission.settled` goes on
            return
        if message.schema is not None and self.schemas.version(message.schema) is None:
            self.schemas.register(message.schema)
            if self._send_timeout:
                assert self.opened_at is not None
                timeout_at = max(taken_at, self.opened_at) + self._send_timeout
                self._timer.set(max(timeout_at, self._context.now))
            return
        id_ = message.transaction
        if id_ is None:
            return  # `_joined` goes on
        transaction = self._transactions.open.get(id_)
        if transaction is None or transaction.is_over:
            error = TransactionNotOpen(f"transaction {id_} has ended")
            self._fail_where(lambda message: message.transaction == id_, error)
        elif self._joining is None:
            self._joining = transaction
            self._window.held_from = ticket
            transaction.join_topic(self._topic, partial(self._joined, id_))

    # --- all of them ---

    def attached(self, connection: Connection) -> None:
        """Register schemas over this connection. The caller seals the messages."""
        if self.opened_at is None:
            self.opened_at = self._context.now
        self.schemas.attached(connection)

    def seal_all(self) -> None:
        """Seal the messages in order, with their tickets, up to one that has to wait.

        Messages that fail meanwhile are settled together at the end, however many they are.
        """
        if self.is_sealing:
            return  # the loop of the outer call goes on
        self.is_sealing = True
        while self.messages:
            ticket, message, publish_time, taken_at = self.messages[0]
            if not self.can_seal(message):
                self._hold(ticket, message, taken_at)
                if self.messages and self.messages[0][0] == ticket and not self.can_seal(message):
                    break
                continue
            self.messages.popleft()
            try:
                self._owner.check(message, publish_time)
                self.seal(message, ticket, publish_time)
            except InvalidMessage as error:  # too large for this broker
                self._memory.free += payload_size(message)
                self._window.fail(ticket, 1, error)
                self._owner.settled()
        self.is_sealing = False
        if self._batch_is_complete():
            self.entry_builder.close_batch()
        if not self.messages and self._joining is None:
            self._owner.open_fast_path()
        if self.settled_meanwhile:
            self.settled_meanwhile = False
            self._owner.settled()

    def _batch_is_complete(self) -> bool:
        """Tell whether the open batch should not wait for more messages: it is awaited, or the next ticket
        does not follow its tickets, as a message behind it has failed."""
        entry_builder = self.entry_builder
        if not entry_builder.count:
            return False
        first = entry_builder.first_ticket
        if first < self.push_end or first + entry_builder.count != self._owner.next_ticket:
            return True
        id_ = entry_builder.transaction
        transaction = None if id_ is None else self._transactions.open.get(id_)
        return transaction is not None and transaction.is_awaited

    def push(self) -> None:
        """Send the open batch now, and the messages that wait as soon as they can be sealed (PROD-28)."""
        self.entry_builder.close_batch()
        if self.messages:
            self.push_end = self.messages[-1][0] + 1

    def fail(self, error: PulsarError) -> None:
        """Fail all messages that are not sealed, also those in open batches (rule PROD-27)."""
        self._window.fail_held(error)
        self.entry_builder.fail(error)
        self.schemas.close()
        self._timer.clear()
        unsealed, self.messages = self.messages, deque()
        self._memory.free += sum(payload_size(message) for _, message, *_ in unsealed)
        while unsealed:
            ticket = unsealed.popleft()[0]
            count = 1
            while unsealed and unsealed[0][0] == ticket + count:
                unsealed.popleft()
                count += 1
            self._window.fail(ticket, count, error)
        self.seal_all()

    def hand_over(self) -> deque[UnsealedMessage]:
        """Return the messages, for another producer to send."""
        unsealed, self.messages = self.messages, deque()
        return unsealed

    # --- what they wait for ---

    def _check_timeout(self) -> None:
        """The first message waits for the version of its schema since the send timeout began (PROD-47)."""
        if self.messages and self.schemas.wanted is not None:
            self._window.time_out()

    def _joined(self, id_: TransactionId, error: PulsarError | None) -> None:
        """The transaction has the topic, or cannot have it."""
        self._joining = None
        if error is None:
            self.entry_builder.write_held()
        else:
            self._window.fail_held(error)
            self._window.held_from = None
            self.entry_builder.fail(error)
            self._fail_where(lambda message: message.transaction == id_, error)
        self.seal_all()

    def _schema_refused(self, refused: SchemaInfo, error: PulsarError) -> None:
        """Fail the messages of this schema that wait, and go on with the others."""
        self._fail_where(lambda message: message.schema is not None and message.schema.info == refused, error)
        self.seal_all()

    def _fail_where(self, wrong: Callable[[OutgoingMessage], bool], error: PulsarError) -> None:
        """Fail the messages that cannot be sent, and keep the others."""
        unsealed, self.messages = self.messages, deque()
        for each in unsealed:
            ticket, message, *_ = each
            if isinstance(message, bytes) or not wrong(message):
                self.messages.append(each)
            else:
                self._memory.free += payload_size(message)
                self._window.fail(ticket, 1, error)
        self._owner.settled()

    def _close_batch_of(self, id_: TransactionId) -> None:
        """Send the transaction's messages in open batches, for which its end waits."""
        if self.entry_builder.transaction == id_:
            self.entry_builder.close_batch()

    def _transaction_ended(self, id_: TransactionId, _committed: bool) -> None:
        self._in_batches.remove(id_)
        self._fail_batch_of(id_)

    def _fail_batch_of(self, id_: TransactionId) -> None:
        """Fail messages of the transaction that an open batch still has: its timeout ended it before."""
        if self.entry_builder.transaction == id_:
            self.entry_builder.fail(TransactionNotOpen(f"transaction {id_} has ended"))
            self._owner.settled()
