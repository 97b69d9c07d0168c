"""Interceptors of a producer (rules INTC-01, PROD-29, PROD-30).

`ProducerInterception` stands between a producer and its listener or the application. It keeps each message
until the outcome, and reports the outcome to the interceptors first. `InterceptedAdmission` passes every
message through the interceptors before any check. A producer without interceptors has neither object.

Interceptors are called in the order in which the application gave them. An exception of an interceptor is
reported by `InterceptorFailed`, and the message continues without that interceptor.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...model.config import OutgoingMessage
from ...model.errors import InvalidMessage, LocalProtocolError, ProducerQueueIsFull, PulsarError
from ...model.interceptors import ProducerInterceptor
from ...model.message_id import EntryPosition, MessageId
from ...model.topic_name import TopicName
from ...model.transaction_id import TransactionId
from ..connecting.services import ClientContext
from ..outputs import Closed, InterceptorFailed, Output, ProducerFailed, Receipts, SendFailed
from .admission import Admission
from .producer_services import ProducerListener
from .receipt_ids import ReceiptIds


class ProducerInterception:
    """The interceptors of one producer.

    `listener`: the receiver of the producer's outputs; None for the application. `ended(handle, error)`:
    called at the producer's end.
    """

    def __init__(
        self,
        context: ClientContext,
        handle: int,
        topic: TopicName,
        interceptors: Sequence[ProducerInterceptor],
        listener: ProducerListener | None,
        ended: Callable[[int, PulsarError | None], None],
    ) -> None:
        self._context = context
        self._handle = handle
        self._topic = topic
        self._interceptors = interceptors
        self._listener = listener
        self._emit = context.emit if listener is None else listener.on_output
        self._ended = ended
        self._messages: dict[int, OutgoingMessage] = {}
        """Unsettled messages by ticket, as sent."""
        self._refused: tuple[object, OutgoingMessage, PulsarError] | None = None
        """A message refused for lack of room, its intercepted form, and the error.

        The application is expected to send this message again.
        """

    # --- the messages ---

    def before_send(self, message: object) -> OutgoingMessage:
        """Return the intercepted form of a message. Raises `InvalidMessage` for a value of another type."""
        if self._refused is not None and self._refused[0] is message:
            made = self._refused[1]
            self._refused = None
            return made
        self.give_up()
        if isinstance(message, bytes):
            message = OutgoingMessage(message)
        elif not isinstance(message, OutgoingMessage):
            raise InvalidMessage(f"a message is bytes or an OutgoingMessage, not {type(message).__name__}")
        for interceptor in self._interceptors:
            try:
                if interceptor.eligible(self._topic, message):
                    message = _checked(interceptor, interceptor.before_send(self._topic, message))
            except Exception as error:
                self._failed(interceptor, error)
        return message

    def taken(self, ticket: int, message: OutgoingMessage) -> None:
        """Keep an accepted message under its ticket."""
        self._messages[ticket] = message

    def not_taken(self, ticket: int) -> None:
        self._messages.pop(ticket, None)

    def no_room(self, given: object, made: OutgoingMessage, error: PulsarError) -> None:
        """Keep a message that was refused for lack of room."""
        self._refused = given, made, error

    def give_up(self) -> None:
        """Fail the refused message, because the application does not send it again."""
        if self._refused is not None:
            _, made, error = self._refused
            self._refused = None
            self.settled(made, None, error)

    def settled(
        self, message: OutgoingMessage, message_id: MessageId | None, error: PulsarError | None
    ) -> None:
        """Report the outcome of a message to the interceptors."""
        for interceptor in self._interceptors:
            try:
                if interceptor.eligible(self._topic, message):
                    interceptor.on_send_acknowledgement(self._topic, message, message_id, error)
            except Exception as failure:
                self._failed(interceptor, failure)

    def _failed(self, interceptor: ProducerInterceptor, error: Exception) -> None:
        self._context.emit(InterceptorFailed(self._handle, interceptor, error))

    # --- outputs of the producer: see `ProducerListener` ---

    def confirmed(
        self, ticket: int, count: int, ledger_id: int, entry_id: int, first_chunk: EntryPosition | None
    ) -> int:
        ids = ReceiptIds(self._topic.partition)
        ids.add(ledger_id, entry_id, count, first_chunk)
        self._confirmed(ticket, ids)
        if self._listener is not None:
            return self._listener.confirmed(ticket, count, ledger_id, entry_id, first_chunk)
        return ticket

    def on_output(self, output: Output) -> None:
        match output:
            case Receipts(_, ticket, message_ids):
                self._confirmed(ticket, message_ids)
            case SendFailed(_, ticket, count, error):
                for number in range(ticket, ticket + count):
                    message = self._messages.pop(number, None)
                    if message is not None:
                        self.settled(message, None, error)
            case ProducerFailed() | Closed():
                self.give_up()  # the end of the last partition precedes that of the partitioned producer
        self._emit(output)

    def ended(self, handle: int, error: PulsarError | None) -> None:
        self._ended(handle, error)

    def _confirmed(self, ticket: int, message_ids: Sequence[MessageId]) -> None:
        for number, message_id in enumerate(message_ids, ticket):
            self.settled(self._messages.pop(number), message_id, None)


def _checked(interceptor: ProducerInterceptor, message: object) -> OutgoingMessage:
    if isinstance(message, OutgoingMessage):
        return message
    raise TypeError(
        f"{type(interceptor).__name__}.before_send gives an OutgoingMessage, not {type(message).__name__}"
    )


class InterceptedAdmission(Admission):
    """An `Admission` that passes messages through interceptors first."""

    def __init__(self, interception: ProducerInterception, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._interception = interception
        self._refused: OutgoingMessage | None = None
        """A message that `send_many` has made of a payload and refused for lack of room."""

    def append(self, message: bytes | OutgoingMessage, transaction: TransactionId | None = None) -> int:
        """Return -1: intercepted messages have no fast path."""
        return -1

    def _send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        interception = self._interception
        made = interception.before_send(message)
        ticket = self.next_ticket
        interception.taken(ticket, made)
        try:
            return super()._send(made, publish_time)
        except ProducerQueueIsFull as error:
            interception.not_taken(ticket)
            interception.no_room(message, made, error)
            raise
        except LocalProtocolError as error:
            interception.not_taken(ticket)
            interception.settled(made, None, error)
            raise

    def send_many(
        self,
        messages: Sequence[bytes | OutgoingMessage],
        publish_time: int,
        transaction: TransactionId | None = None,
    ) -> range:
        """Accept messages one by one, because an error may show only after interception.

        Such an error is raised for the first message; a later message fails by its ticket.
        """
        self.check_open()
        first = self.next_ticket
        for given in messages:
            message = given
            if transaction is not None and isinstance(given, bytes):
                message = self._within(given, transaction)
            try:
                self._send_or_fail(message, publish_time, first)
            except ProducerQueueIsFull:
                if message is not given and isinstance(message, OutgoingMessage):
                    self._refused = message
                break
        return range(first, self.next_ticket)

    def _within(self, payload: bytes, transaction: TransactionId) -> OutgoingMessage:
        """Return a payload in a transaction: the message of before, if that was refused for lack of room."""
        refused, self._refused = self._refused, None
        if refused is not None and refused.payload is payload and refused.transaction == transaction:
            return refused
        return OutgoingMessage(payload, transaction=transaction)

    def check_given(self, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Check nothing: interceptors may replace the message."""

    def refuse(self, message: bytes | OutgoingMessage, publish_time: int, error: PulsarError) -> None:
        made = self._interception.before_send(message)
        try:
            self.check(made, publish_time)
        except InvalidMessage as wrong:
            self._interception.settled(made, None, wrong)
            raise
        self._interception.settled(made, None, error)

    def take_unsealed(self, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """Keep a message that the interceptors have seen, from before the partitions were known."""
        if isinstance(message, OutgoingMessage):
            self._interception.taken(self.next_ticket, message)
        super().take_unsealed(message, publish_time)
