"""`Admission`: checks the messages of a producer and accepts as many as the limits allow.

It owns the tickets, the checks of messages, and the limits of unconfirmed messages and bytes. Accepted
messages go to `UnsealedMessages`, or, where they need not wait, at once to the `EntryBuilder`, which owns
sequence ids and frames.

`append` is the fast path for messages that join the open batch without filling it. `send` has a fast path for
payloads of a producer that does not batch.
"""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate

from ...model.config import CompressionType, OutgoingMessage
from ...model.errors import (
    ClosedError,
    InvalidMessage,
    LocalProtocolError,
    MemoryBufferIsFull,
    MessageTooLarge,
    ProducerQueueIsFull,
    PulsarError,
    TransactionNotOpen,
)
from ...model.transaction_id import TransactionId
from ..connecting.connection import Connection
from ..memory import payload_size
from ..outputs import Writable
from .producer_services import ProducerServices
from .send_encoder import SendEncoder, encode_member
from .send_window import SendWindow
from .unsealed_messages import UnsealedMessage, UnsealedMessages

MAX_PUBLISH_TIME = 2**63 - 1


def in_transaction(
    messages: Sequence[bytes | OutgoingMessage], transaction: TransactionId | None
) -> Sequence[bytes | OutgoingMessage]:
    """Return messages of which the payloads are in a transaction; None for none."""
    if transaction is None:
        return messages
    return [
        OutgoingMessage(message, transaction=transaction) if isinstance(message, bytes) else message
        for message in messages
    ]


class Admission:
    """Accepts the messages of one producer."""

    def __init__(self, services: ProducerServices, window: SendWindow) -> None:
        self._unsealed = UnsealedMessages(services, window, self)
        self.schemas = self._unsealed.schemas
        """The versions of the schemas that messages have."""
        self.entry_builder = self._unsealed.entry_builder
        """The receiver of accepted messages."""
        self.ended: PulsarError | None = None
        """The reason for accepting no more messages; None while open."""
        self.was_full = False
        """A send was refused for lack of room; `Writable` is owed."""
        self.waits_for_memory = False
        """The last refusal was due to the client's memory limit."""
        self._single_encoder: SendEncoder | None = None
        """The encoder of the fast path; None unless payloads are sent one by one, without chunking."""
        self._emit = services.emit
        self._handle = services.handle
        self._spec = services.spec
        self._window = window
        self._memory = services.client.memory
        self._transactions = services.client.transactions
        self._overhead = 0 if services.encryption is None else services.encryption.overhead
        """Bytes that encryption adds to a payload."""
        self._max_message_size = services.client.config.max_message_size - self._overhead
        """The limit in bytes until a broker announces its own."""
        self._limit = services.spec.max_pending_messages
        self._next_ticket = 0
        self._batch = self.entry_builder.batch
        self._append_member = self.entry_builder.append_member
        window.on_settled = self.settled

    # --- taking messages ---

    def send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Accept a message and return its ticket.

        Raises, having changed nothing: `ClosedError`, `ProducerQueueIsFull`, `MessageTooLarge`,
        `InvalidMessage`.
        """
        if self._single_encoder is None:
            ticket = self.append(message)
            if ticket >= 0:
                return ticket
        return self._send(message, publish_time)

    def append(self, message: bytes | OutgoingMessage, transaction: TransactionId | None = None) -> int:
        """Add a message to the open batch, unless the message would fill the batch; return its ticket.

        `transaction`: that of a payload. Returns -1, having changed nothing, for a message that needs `send`.
        An open batch takes messages only while its transaction does, which ends the batch with itself.
        """
        batch = self._batch
        if type(message) is bytes and (space := batch.space - len(message)) > 0:
            if transaction is None and batch.room > 0:
                batch.room -= 1
            elif transaction is not None and batch.transaction_room > 0 and transaction == batch.shared[2]:
                batch.transaction_room -= 1
            else:
                return -1
            batch.space = space
            batch.run.append(message)
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            return ticket
        if type(message) is OutgoingMessage and not batch.run:
            if batch.room > 0:
                appended = self._append_member(message)
            else:
                appended = batch.transaction_room > 0 and self.entry_builder.append_member_in(message)
            if appended:
                ticket = self._next_ticket
                self._next_ticket = ticket + 1
                return ticket
        return -1

    def send_many(
        self,
        messages: Sequence[bytes | OutgoingMessage],
        publish_time: int,
        transaction: TransactionId | None = None,
    ) -> range:
        """Accept messages in order, as many as the limits allow, and return their tickets.

        `transaction`: that of the payloads among them. Raises like `send`, having accepted none, except that
        a full window only shortens the range.
        """
        self.check_open()
        first = self._next_ticket
        room = self._room()
        if len(messages) > room:
            self.wait_for_room()
            messages = messages[: max(room, 0)]  # unsealed messages may exceed one partition's limit
        bare = set(map(type, messages)) <= {bytes}
        if not bare:
            messages = in_transaction(messages, transaction)
            for message in messages:
                self.check_given(message, publish_time)
        elif messages:
            if transaction is not None:
                self._transactions.get(transaction)
            self._check_size(max(map(len, messages)))  # type: ignore[arg-type]
        fitting = self._memory.fitting(self._handle, messages)
        taken = messages[:fitting] if fitting < len(messages) else messages
        self._memory.turn = self._handle
        try:
            if bare:
                self._send_payloads(taken, publish_time, transaction)  # type: ignore[arg-type]
            else:
                for message in taken:
                    self._send_or_fail(message, publish_time, first)
        finally:
            self._memory.turn = 0
        if fitting < len(messages):
            self._wait_for_memory(messages[fitting])
        return range(first, self._next_ticket)

    def _send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        encoder = self._single_encoder
        memory = self._memory
        if (
            encoder is not None
            and type(message) is bytes
            and (size := len(message)) <= self._max_message_size
            and self._window.messages < self._limit
            and size <= memory.free
            and not memory.blocked
            and type(publish_time) is int
            and 0 <= publish_time <= MAX_PUBLISH_TIME
        ):
            entry_builder = self.entry_builder
            sequence_id = entry_builder.next_sequence_id
            frame = encoder.single(message, sequence_id, publish_time)
            memory.free -= size
            entry_builder.next_sequence_id = sequence_id + 1
            ticket = self._next_ticket
            self._next_ticket = ticket + 1
            entry_builder.pend(ticket, 1, sequence_id, None, frame, size)
            return ticket
        self.check_open()
        if self._room() <= 0:
            self.wait_for_room()
            raise ProducerQueueIsFull(
                f"producer {self._handle}: {self._limit} messages are unconfirmed (max_pending_messages)"
            )
        self.check(message, publish_time)
        ticket = self._next_ticket
        size = payload_size(message)
        if not memory.take(self._handle, size, self._memory_free):
            self._wait_for_memory(message)
            raise MemoryBufferIsFull(
                f"producer {self._handle}: payloads of {memory.held} bytes are unconfirmed, there is no room "
                f"for {size} more (memory_limit of the client: {memory.limit})"
            )
        try:
            if not isinstance(message, bytes) and message.transaction is not None:
                self._window.join(ticket, self._transactions.get(message.transaction))
            unsealed = self._unsealed
            if self.entry_builder.encoder is None or unsealed.messages or not unsealed.can_seal(message):
                if not isinstance(message, bytes) and (message.key is not None or message.properties):
                    # raises for text without a UTF-8 form, while the caller listens
                    encode_member(message, 0)
                self.take_unsealed(message, publish_time)
                unsealed.hold_first()
            else:
                unsealed.seal(message, ticket, publish_time)
                self._next_ticket = ticket + 1
        except LocalProtocolError:
            self._window.leave(ticket)
            memory.release(size)
            raise
        return ticket

    def _send_payloads(
        self, payloads: Sequence[bytes], publish_time: int, transaction: TransactionId | None
    ) -> None:
        """Accept checked payloads that fit the window."""
        first = self._next_ticket
        position = 0
        batch = self._batch
        while position < len(payloads):
            room = batch.room
            if transaction is not None:
                room = batch.transaction_room if batch.shared[2] == transaction else 0
            taken = min(room, len(payloads) - position)
            if taken > 0:
                chunk = payloads[position : position + taken]
                space = batch.space
                size = sum(map(len, chunk))
                if size >= space:
                    sizes = accumulate(map(len, chunk))
                    taken = next(index for index, together in enumerate(sizes) if together >= space)
                    chunk = chunk[:taken]
                    size = sum(map(len, chunk))
                batch.run.extend(chunk)
                if transaction is None:
                    batch.room -= taken
                else:
                    batch.transaction_room -= taken
                batch.space = space - size
                self._next_ticket += taken
                position += taken
            if position < len(payloads):
                message: bytes | OutgoingMessage = payloads[position]
                if transaction is not None:
                    message = OutgoingMessage(payloads[position], transaction=transaction)
                self._send_or_fail(message, publish_time, first)
                position += 1

    def _send_or_fail(self, message: bytes | OutgoingMessage, publish_time: int, first: int) -> None:
        """Accept one of several messages.

        An `InvalidMessage` from sealing is raised for the first message; a later message fails by its ticket.
        So does one of a transaction that is not open, which interceptors hide from the checks before.
        """
        try:
            self._send(message, publish_time)
        except (InvalidMessage, TransactionNotOpen) as error:
            if self._next_ticket == first:
                raise
            self._join_transaction(message)
            self._fail_untaken(error)

    def _fail_untaken(self, error: PulsarError) -> None:
        """Give a ticket to a message that cannot be sealed, and fail that ticket."""
        ticket = self._next_ticket
        self._next_ticket = ticket + 1
        self._window.fail(ticket, 1, error)
        self.settled()

    def check_open(self) -> None:
        """Raise `ClosedError` unless messages can still be accepted."""
        if self.ended is not None:
            error = ClosedError(str(self.ended))
            error.__cause__ = self.ended
            raise error

    def _room(self) -> int:
        """Return the number of messages that fit (rules PROD-02, PROD-33)."""
        return self._limit - self.pending

    @property
    def pending(self) -> int:
        """The number of messages accepted and not settled."""
        return self.entry_builder.pending + len(self._unsealed.messages)

    @property
    def limit(self) -> int:
        """The maximum of `pending`."""
        return self._limit

    @property
    def open_bytes(self) -> int:
        """The payload bytes of messages that are not sealed."""
        return self.entry_builder.size + self._unsealed.size

    def wait_for_room(self) -> None:
        """Emit `Writable` once there is room, because a send was refused."""
        self.was_full = self._window.watched = True
        self.waits_for_memory = False

    def _wait_for_memory(self, message: bytes | OutgoingMessage) -> None:
        """Emit `Writable` once the client's memory has room for the message, because a send was refused."""
        self._memory.wait(self._handle, payload_size(message), self._memory_free)
        self.was_full = self.waits_for_memory = True

    def _memory_free(self) -> None:
        """The client's memory has room again; the window may still be full."""
        self.waits_for_memory = False
        self._window.watched = True
        self._announce_room()

    def _announce_room(self) -> None:
        if self.was_full and not self.waits_for_memory and self.ended is None and self._room() > 0:
            self.was_full = False
            self._emit(Writable(self._handle))

    def check(self, message: object, publish_time: int) -> None:
        """Raise `InvalidMessage` for errors that show without sealing (rules PROD-35, BATCH-13)."""
        if type(publish_time) is not int or not 0 <= publish_time <= MAX_PUBLISH_TIME:
            raise InvalidMessage(f"publish_time: milliseconds since 1970, not {publish_time!r}")
        if isinstance(message, bytes):
            self._check_size(len(message))
        elif not isinstance(message, OutgoingMessage):
            raise InvalidMessage(f"a message is bytes or an OutgoingMessage, not {type(message).__name__}")
        else:
            self._check_size(len(message.payload or b""))

    def check_given(self, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Check a message and its transaction as the application gave them; interceptors may defer that."""
        self.check(message, publish_time)
        if not isinstance(message, bytes) and message.transaction is not None:
            self._transactions.get(message.transaction)

    def refuse(self, message: bytes | OutgoingMessage, publish_time: int, error: PulsarError) -> None:
        """Refuse a message with `error`, which ended the producer.

        Raises `InvalidMessage` if the message is invalid anyway.
        """
        self.check(message, publish_time)

    def _check_size(self, size: int) -> None:
        if size <= self._max_message_size:
            return
        if self._spec.batching is None and (
            self._spec.chunking or self._spec.compression is not CompressionType.NONE
        ):
            return  # the encoder checks the compressed size, or the number of chunks
        raise MessageTooLarge(f"the payload has {size} bytes, the broker accepts {self._max_message_size}")

    # --- messages that cannot be sealed yet ---

    def take_unsealed(self, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Keep a checked message until it can be sealed."""
        ticket = self._next_ticket
        self._unsealed.add(ticket, message, publish_time)
        self._next_ticket = ticket + 1

    def take_over(self, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Keep a message that another producer has taken. Its transaction, if open, waits for it here."""
        self._join_transaction(message)
        self.take_unsealed(message, publish_time)

    def _join_transaction(self, message: bytes | OutgoingMessage) -> None:
        """Have the open transaction of the next message wait for its outcome."""
        if not isinstance(message, bytes) and message.transaction is not None:
            transaction = self._transactions.open.get(message.transaction)
            if transaction is not None:
                self._window.join(self._next_ticket, transaction)

    def hand_over(self) -> deque[UnsealedMessage]:
        """Return the unsealed messages, for another producer to send."""
        return self._unsealed.hand_over()

    def push(self) -> None:
        """Send now what can be sent; see `UnsealedMessages.push`."""
        self._unsealed.push()

    @property
    def push_end(self) -> int:
        """Unsealed messages with lower tickets are sent as soon as they are sealed."""
        return self._unsealed.push_end

    # --- calls of the producer ---

    def attached(
        self,
        connection: Connection,
        name: str,
        producer_id: int,
        last_sequence_id: int,
        schema_version: bytes,
    ) -> None:
        """Pass the attachment to `EntryBuilder.attached`. The caller seals the unsealed messages."""
        self.entry_builder.attached(connection, name, producer_id, last_sequence_id, schema_version)
        self._max_message_size = connection.max_message_size - self._overhead
        self._unsealed.attached(connection)

    def seal_unsealed(self) -> None:
        """Seal the unsealed messages in order, with their tickets, up to one that has to wait."""
        self._unsealed.seal_all()

    def open_fast_path(self) -> None:
        """Let payloads be sent without further checks, where each is an entry of its own."""
        spec, inside = self._spec, self._unsealed.in_transactions
        if spec.batching is None and not spec.chunking and self.ended is None and not inside:
            self._single_encoder = self.entry_builder.encoder

    def close_fast_path(self) -> None:
        """Let every payload wait behind the unsealed messages."""
        self._single_encoder = None

    def end(self, error: PulsarError) -> None:
        """Accept no more messages; the first error given is the reason."""
        self.ended = self.ended or error
        self._single_encoder = None
        self.schemas.close()
        self._memory.detach(self._handle, self._memory_free)

    def fail(self, error: PulsarError) -> None:
        """Fail every message that is not sealed (rule PROD-27)."""
        self._unsealed.fail(error)

    # --- settling ---

    @property
    def next_ticket(self) -> int:
        """The ticket of the next message."""
        return self._next_ticket

    def settled(self) -> None:
        """Tickets were settled: emit `Writable` if there is room, and answer completed flushes."""
        unsealed = self._unsealed
        if unsealed.is_sealing:
            unsealed.settled_meanwhile = True
            return
        self._announce_room()
        waiting = self._window.settle_flushes(self.oldest_unsettled())
        held = bool(unsealed.messages) and self.entry_builder.encoder is not None
        if held and not self.entry_builder.pending:
            unsealed.seal_all()
        self._window.watched = waiting or self.was_full or held
        if self._memory.blocked:
            self._memory.notify()

    def oldest_unsettled(self) -> int:
        """Return a ticket below which every ticket is settled."""
        if self._window.entries:
            return self._window.entries[0].oldest
        if self.entry_builder.count:
            return self.entry_builder.first_ticket
        unsealed = self._unsealed.messages
        return unsealed[0][0] if unsealed else self._next_ticket
