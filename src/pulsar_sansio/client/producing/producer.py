"""`Producer`: one producer of one topic, from opening to closing.

A producer owns an attachment and the three stations of a message: the `Admission` accepts a message, the
`EntryBuilder` makes entries, and the `SendWindow` keeps each entry until its receipt. The producer resends
after a reconnect, handles the broker's errors, and ends by timeout, refusal or close. Each ticket is settled
exactly once, by `Receipts` or `SendFailed`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...model.config import OutgoingMessage, ProducerSpec, nanoseconds_of
from ...model.errors import (
    ChecksumMismatch,
    ClosedError,
    ConnectionLost,
    MessageTooLarge,
    PulsarError,
    RemoteProtocolError,
    SchemaDecodingError,
    ServerError,
    TimedOut,
    TopicNotFound,
    TransactionNotOpen,
    broker_error,
)
from ...model.schema import Schema
from ...model.topic_name import TopicName
from ...wire import encode_command, proto
from ..attaching.attachment import Attachment
from ..attaching.explaining import route
from ..connecting.connection import Connection
from ..connecting.refusal_policy import Decision
from ..connecting.services import Services
from ..encryption.entry_encryption import EntryEncryption
from ..outputs import Attached, Closed, Detached, ProducerFailed, ProducerReady
from ..schemas.schema_question import QUESTION_VERSION, SchemaQuestion, VersionedSchema
from ..statistics import ProducerStatistics, SendLatency
from ..transactions.transaction import Transaction
from . import explaining
from .admission import Admission
from .interceptors import InterceptedAdmission, ProducerInterception
from .producer_services import ProducerListener, ProducerServices
from .registration import Registration
from .send_encoder import is_intact
from .send_window import Flush, SendWindow
from .unsealed_messages import UnsealedMessage

Command = proto.BaseCommand


@dataclass(slots=True)
class Handover:
    """The state of a producer at the moment at which its topic turns out to have partitions."""

    wire_id: int
    """The unused producer id, for the first partition's producer."""
    unsealed: Sequence[UnsealedMessage]
    next_ticket: int
    push_end: int
    """Messages with lower tickets are sent as soon as they are sealed."""
    flushes: Sequence[Flush]
    was_full: bool
    """A send was refused for lack of room; `Writable` is owed."""
    waits_for_memory: bool
    """The producer has a position in the line for the client's memory."""
    settled: Callable[[OutgoingMessage, None, PulsarError], None] | None
    """Reports the failure of an unsealed message to the interceptors; None without interceptors."""
    give_up_at: int | None
    """The time at which opening fails; None if opening has no deadline."""
    transactions: Mapping[int, Transaction]
    """The tickets of messages in transactions."""


class Producer:
    """One producer of one topic. The root sets `context.now` before it calls a method.

    `listener`: receives all outputs in place of the application.
    """

    kind: Literal["producer"] = "producer"
    open_reply: ClassVar[int] = Command.PRODUCER_SUCCESS

    def __init__(
        self,
        client: Services,
        handle: int,
        wire_id: int,
        spec: ProducerSpec,
        listener: ProducerListener | None = None,
    ) -> None:
        self.handle = handle
        self.wire_id = wire_id
        self.spec = spec
        self.topic = topic = TopicName.parse(spec.topic)
        ended = client.ended if listener is None else listener.ended
        interception: ProducerInterception | None = None
        if spec.interceptors:
            listener = interception = ProducerInterception(
                client.context, handle, topic, spec.interceptors, listener, ended
            )
            ended = interception.ended
        self._interception = interception
        self._encryption = EntryEncryption(client, handle, spec) if spec.encryption_keys else None
        self._services = services = ProducerServices(
            client, handle, wire_id, spec, topic, listener, self._encryption
        )
        self._emit = services.emit
        send_timeout = nanoseconds_of(spec.send_timeout)
        # The attachment makes one attempt just before messages begin to time out (rule HAND-07).
        mandatory_stop = max(100_000_000, send_timeout - 100_000_000) if send_timeout else 0
        self.attachment = Attachment(client, topic, self, mandatory_stop=mandatory_stop, ended=ended)
        self._registration = Registration(services)
        self._was_ready = False
        self._reason: PulsarError | None = None
        """The cause of a close that the application did not ask for; else None."""
        self._window = SendWindow(services, self._timed_out)
        self._admission = (
            Admission(services, self._window)
            if interception is None
            else InterceptedAdmission(interception, services, self._window)
        )
        self._entry_builder = self._admission.entry_builder
        self.on_receipt = self._window.on_receipt
        self.send = self._admission.send
        self.append = self._admission.append
        self.send_many = self._admission.send_many
        self.discard_flush = self._window.discard_flush

    def start(self, open_producer: Callable[[], None]) -> None:
        """Call `open_producer`, which starts the attachment, once the producer can encrypt (rule PROD-05).
        Call once."""
        if self._encryption is None:
            open_producer()
        else:
            self._encryption.begin(open_producer, self.attachment.fail)

    @property
    def admission(self) -> Admission:
        """The receiver of messages; a partitioned producer sends to it directly."""
        return self._admission

    def statistics(self) -> ProducerStatistics:
        admission, window = self._admission, self._window
        pending, entry_builder = admission.pending, admission.entry_builder
        return ProducerStatistics(
            entry_builder.messages_sent,
            entry_builder.bytes_sent,
            entry_builder.batches,
            entry_builder.batched,
            admission.next_ticket - window.failed - pending,
            window.failed,
            pending,
            admission.open_bytes + sum(entry.size for entry in window.entries),
            0 if self._encryption is None else self._encryption.failures,
            SendLatency.of(window.latencies),
        )

    def last_sequence_id(self) -> int:
        """Return the highest sequence id that the broker has confirmed; see `Client.last_sequence_id`."""
        return self._window.last_sequence_id

    @property
    def latencies(self) -> Sequence[int]:
        """The latencies of the latest entries, in nanoseconds."""
        return self._window.latencies

    def explain(self) -> list[str]:
        """Describe what the producer waits for."""
        now, memory = self._services.context.now, self._services.client.memory
        held = explaining.window(self._admission, self._window, memory, self.spec.send_timeout, now)
        waits = [] if self._encryption is None else explaining.keys(self._encryption.awaited)
        held += explaining.schema(self._admission.schemas.wanted)
        held += [] if self._encryption is None else self._encryption.explain()
        return [*(waits or [route(self.attachment, now)]), *held]

    @property
    def described(self) -> str:
        """The producer and its topic in words, for error texts."""
        return self._registration.described

    # --- partitioned topics ---

    def take_name(self, name: str) -> None:
        """Open under this name, which the broker gave to another partition's producer."""
        self._registration.name = name

    def take_schema(self, schema: Schema[Any] | None) -> None:
        """Register this schema, which another partition's producer may have adopted, and adopt none."""
        self._registration.schema = schema
        self._registration.is_known = True

    def hand_over(self) -> Handover:
        """Return all messages and flushes, for a partitioned producer to send."""
        if self._interception is not None:
            self._interception.give_up()
        self._stop_encrypting()
        return Handover(
            self.wire_id,
            self._admission.hand_over(),
            self._admission.next_ticket,
            self._admission.push_end,
            self._window.hand_over_flushes(),
            self._admission.was_full,
            self._admission.waits_for_memory,
            None if self._interception is None else self._interception.settled,
            self.attachment.gives_up_at,
            self._window.hand_over_transactions(),
        )

    # --- commands of the application ---

    def push(self) -> None:
        """Send the open batch now, and messages that wait as soon as they can be sealed (rule PROD-28)."""
        self._admission.check_open()
        self._admission.push()

    def flush(self, request: int) -> None:
        """Send the open batch now, and answer when every ticket given so far is settled (rule PROD-49)."""
        self.push()
        self._window.flush(request, self._admission.next_ticket)
        self._admission.settled()

    def close(self, reason: PulsarError | None = None, once_answered: bool = False) -> None:
        """Accept no more messages, and close.

        Sealed messages may still be confirmed until the broker answers. Unsealed messages fail now, with
        `reason` or a `ClosedError` (rules PROD-50, PROD-51, PROD-52). `once_answered`: see
        `Attachment.close`.
        """
        if self._admission.ended is not None:
            return
        self._reason = reason
        error = reason or ClosedError(f"producer {self.handle} on {self.topic} is closed")
        self._admission.end(error)
        self._admission.fail(error)
        self._admission.settled()
        self.attachment.close(once_answered)

    # --- the broker's errors about messages ---

    def on_send_error(self, connection: Connection, command: Any) -> None:
        """SEND_ERROR came; rule CONN-09 gives the consequence of each code."""
        error = broker_error(command.error, command.message)
        match error.code:
            case ServerError.TopicTerminatedError | ServerError.ProducerFenced:
                self.attachment.fail(error)
            case ServerError.NotAllowedError | ServerError.TransactionNotFound | ServerError.InvalidTxnStatus:
                entry = self._window.named(command.sequence_id)
                if entry is not None:
                    self._window.fail_entry(entry, error)
            case ServerError.ChecksumError:
                self._recover_checksum(connection, command.sequence_id, error)
            case _:
                lost = ConnectionLost(f"the broker could not store a message: {error}")
                lost.__cause__ = error
                connection.close(lost)

    def _recover_checksum(self, connection: Connection, sequence_id: int, error: PulsarError) -> None:
        """The broker got damaged bytes (rule PROD-44): fail an entry damaged in memory, else resend."""
        entries = self._window.entries
        if not entries:
            return
        head = entries[0]
        if self._window.named(sequence_id) is head and not is_intact(head.frame):
            damaged = ChecksumMismatch(f"message {head.sequence_id} was damaged in memory before it was sent")
            damaged.__cause__ = error
            self._window.fail_entry(head, damaged)
            return
        # The broker may have stored later entries and would confirm them out of order, so the producer
        # resends everything over a new connection.
        lost = ConnectionLost(f"message {sequence_id} was damaged on the way: {error}")
        lost.__cause__ = error
        connection.close(lost)

    # --- timeout and failure ---

    def _timed_out(self) -> None:
        """The oldest entry timed out: fail every message, including the open batch (rule PROD-47)."""
        lost = self.attachment.last_error
        why = f"; the producer is not connected: {lost}" if lost is not None else ""
        error = TimedOut(
            f"a message was not confirmed within the send timeout of {self.spec.send_timeout:g} s; it "
            f"may have been stored nevertheless{why}"
        )
        error.__cause__ = lost
        self._fail_everything(error)

    def _fail_everything(self, error: PulsarError) -> None:
        """Fail entries, batch and unsealed messages, in the order of their tickets (rules PROD-26,
        PROD-27)."""
        self._window.fail_all(error)
        self._admission.fail(error)
        self._admission.settled()

    # --- calls of the attachment: see `AttachmentOwner` ---

    def ask_first(
        self, connection: Connection, proceed: Callable[[], None], failed: Callable[[PulsarError], None]
    ) -> SchemaQuestion | None:
        """Ask for the topic's definition, for a schema that adopts it (rule CLIENT-10). An older broker has
        none to adopt."""
        registration = self._registration
        schema = registration.schema
        old = connection.protocol_version < QUESTION_VERSION
        if schema is None or not schema.adopts or registration.is_known or old:
            return None

        def adopt(topic: VersionedSchema | None) -> None:
            try:
                registration.schema = schema.adopted(None if topic is None else topic.info)
            except SchemaDecodingError as error:
                self.attachment.give_up(error)
                return
            except Exception as cause:  # the code of an application's own schema
                wrong = SchemaDecodingError(f"{schema!r:.100} cannot adopt the definition of {self.topic}")
                wrong.__cause__ = cause
                self.attachment.give_up(wrong)
                return
            proceed()

        def not_known(error: PulsarError) -> None:
            if isinstance(error, TopicNotFound):
                adopt(None)
            else:
                failed(error)

        return SchemaQuestion(self._services.client, connection, self.topic, None, adopt, not_known)

    @property
    def schema(self) -> Schema[Any] | None:
        """The schema of the payloads: that of the spec, or what it has adopted of the topic; None for
        bytes."""
        return self._registration.schema

    def open_command(self, request_id: int, connection: Connection) -> bytes:
        return encode_command(
            Command.PRODUCER, self._registration.command(request_id, connection.protocol_version)
        )

    def close_command(self, request_id: int) -> bytes:
        command = proto.CommandCloseProducer(producer_id=self.wire_id, request_id=request_id)
        return encode_command(Command.CLOSE_PRODUCER, command)

    positioned: ClassVar[bool] = True

    def has_to_wait(self, reply: Any) -> bool:
        return self._registration.has_to_wait(reply)

    def on_opened(self, connection: Connection, reply: Any) -> None:
        """PRODUCER_SUCCESS came: adopt name and ids, and resend after a reconnect (rules PROD-18,
        PROD-46)."""
        name = self._registration.name or reply.producer_name
        if not name or (reply.HasField("producer_ready") and not reply.producer_ready):
            what = (
                "gave the producer no name"
                if not name
                else "made a producer wait for exclusive access that does not wait for it"
            )
            connection.close(RemoteProtocolError(f"the broker {what}"))
            return
        schema_version = self._registration.accepted(name, reply)
        last_sequence_id = max(reply.last_sequence_id, -1)
        self._window.last_sequence_id = max(self._window.last_sequence_id, last_sequence_id)
        if self._was_ready:
            self._admission.attached(connection, name, self.wire_id, last_sequence_id, schema_version)
            self._send_again(connection)
            self._admission.seal_unsealed()
            self._emit(Attached(self.handle, last_sequence_id))
        else:
            self._was_ready = True
            self._emit(ProducerReady(self.handle, name, last_sequence_id, str(self.topic)))
            self._admission.attached(connection, name, self.wire_id, last_sequence_id, schema_version)
            self._admission.seal_unsealed()

    def _send_again(self, connection: Connection) -> None:
        """Resend every unconfirmed entry in order, with unchanged bytes (rule PROD-46).

        An entry over the broker's limit fails instead; resending it would end every connection. An entry of
        a transaction that is over fails, too: a Pulsar broker would store it, and deliver nothing behind it.
        A written entry of a transaction with `exactly_once` fails because it may be stored already. Messages
        held behind an entry that fails are sealed, and written once, with all others.
        """
        for entry in self._window.entries_to_send_once():
            self._window.fail_entry(entry, ConnectionLost("a message of a transaction may be stored or not"))
        encoder = self._entry_builder.encoder
        assert encoder is not None
        for entry in [entry for entry in self._window.entries if not encoder.fits(entry.frame)]:
            limit = connection.max_message_size
            error = MessageTooLarge(f"the broker that serves the topic now accepts only {limit} bytes")
            self._window.fail_entry(entry, error)
        for entry, transaction in self._window.of_transactions_that_are_over():
            self._window.fail_entry(entry, TransactionNotOpen(f"transaction {transaction.id} has ended"))
        self._entry_builder.send_again(connection)

    def on_open_refused(self, error: PulsarError) -> Decision:
        """Fail all pending messages if the quota policy demands an exception (rule PROD-21)."""
        if getattr(error, "code", None) is ServerError.ProducerBlockedQuotaExceededException:
            self._fail_everything(error)
        return Decision.DEFAULT

    def on_detached(self, cause: PulsarError) -> None:
        self._entry_builder.connection = None
        self._admission.schemas.detached()
        if self._was_ready and self._admission.ended is None:
            self._emit(Detached(self.handle, cause))

    def on_failed(self, error: PulsarError) -> None:
        self._end(error)
        self._emit(Closed(self.handle, error) if self._was_ready else ProducerFailed(self.handle, error))

    def on_closed(self) -> None:
        closed = self._reason or ClosedError(
            f"producer {self.handle} on {self.topic} was closed before it was confirmed"
        )
        self._end(closed)
        if self._was_ready:
            self._emit(Closed(self.handle, None))
        else:  # the application may wait for `ProducerReady`
            self._emit(ProducerFailed(self.handle, closed))

    def _end(self, error: PulsarError) -> None:
        """Settle every ticket and every flush (rules PROD-51, PROD-52)."""
        self._entry_builder.connection = None
        self._stop_encrypting()
        self._admission.end(error)
        self._fail_everything(error)

    def _stop_encrypting(self) -> None:
        if self._encryption is not None:
            self._encryption.close()
