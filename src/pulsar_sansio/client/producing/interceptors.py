"""Interceptors of a producer (rules INTC-01, PROD-29, PROD-30).

`Interception` stands between a producer and whoever is told what becomes of its messages: it keeps them until
then, and tells the interceptors first. `InterceptedIntake` shows them every message before anything else is
done with it. Neither exists where a producer has no interceptors.

All are called in the order in which they were given. What one of them raises is told by `InterceptorFailed`,
and the message goes on without it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...model.config import OutgoingMessage
from ...model.errors import InvalidMessage, LocalProtocolError, ProducerQueueIsFull, PulsarError
from ...model.interceptors import ProducerInterceptor
from ...model.message_id import EntryPosition, MessageId
from ...model.topic_name import TopicName
from ..connecting.services import ClientContext
from ..outputs import Closed, InterceptorFailed, Output, ProducerFailed, Receipts, SendFailed
from .admission import Admission
from .receipt_ids import ReceiptIds
from .send_window import Listener


class Interception:
    """One producer's. `listener`: who hears what the producer says, None for the application; `ended`: who is
    told of the producer's end."""

    def __init__(
        self,
        context: ClientContext,
        handle: int,
        topic: TopicName,
        interceptors: Sequence[ProducerInterceptor],
        listener: Listener | None,
        ended: Callable[[int, PulsarError | None], None],
    ) -> None:
        self._context = context
        self._handle = handle
        self._topic = topic
        self._interceptors = interceptors
        self._listener = listener
        self._emit = context.emit if listener is None else listener.hear
        self._ended = ended
        self._messages: dict[int, OutgoingMessage] = {}
        """By ticket: those that are not settled, as they were sent."""
        self._refused: tuple[object, OutgoingMessage, PulsarError] | None = None
        """A message that there was no room for, and what it was made into: it is expected to come again."""

    # --- the messages ---

    def before_send(self, message: object) -> OutgoingMessage:
        """What the interceptors make of a message. Raises `InvalidMessage` for what is none."""
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
        """It has a ticket now."""
        self._messages[ticket] = message

    def not_taken(self, ticket: int) -> None:
        self._messages.pop(ticket, None)

    def no_room(self, given: object, made: OutgoingMessage, error: PulsarError) -> None:
        """It was refused for want of room."""
        self._refused = given, made, error

    def give_up(self) -> None:
        """What was refused for want of room does not come again."""
        if self._refused is not None:
            _, made, error = self._refused
            self._refused = None
            self.settled(made, None, error)

    def settled(
        self, message: OutgoingMessage, message_id: MessageId | None, error: PulsarError | None
    ) -> None:
        """Tell the interceptors what became of a message."""
        for interceptor in self._interceptors:
            try:
                if interceptor.eligible(self._topic, message):
                    interceptor.on_send_acknowledgement(self._topic, message, message_id, error)
            except Exception as failure:
                self._failed(interceptor, failure)

    def _failed(self, interceptor: ProducerInterceptor, error: Exception) -> None:
        self._context.emit(InterceptorFailed(self._handle, interceptor, error))

    # --- what the producer says: see `Listener` ---

    def confirmed(
        self, ticket: int, count: int, ledger_id: int, entry_id: int, first_chunk: EntryPosition | None
    ) -> int:
        ids = ReceiptIds(self._topic.partition)
        ids.add(ledger_id, entry_id, count, first_chunk)
        self._confirmed(ticket, ids)
        if self._listener is not None:
            return self._listener.confirmed(ticket, count, ledger_id, entry_id, first_chunk)
        return ticket

    def hear(self, output: Output) -> None:
        match output:
            case Receipts(_, ticket, message_ids):
                self._confirmed(ticket, message_ids)
            case SendFailed(_, ticket, count, error):
                for number in range(ticket, ticket + count):
                    message = self._messages.pop(number, None)
                    if message is not None:
                        self.settled(message, None, error)
            case ProducerFailed() | Closed():
                self.give_up()  # at the end of the last partition that of the whole follows at once
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


class InterceptedIntake(Admission):
    """An `Admission` whose messages go through interceptors first."""

    def __init__(self, interception: Interception, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._interception = interception

    def append(self, message: bytes | OutgoingMessage) -> int:
        """There is no short path."""
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

    def send_many(self, messages: Sequence[bytes | OutgoingMessage], publish_time: int) -> range:
        """One after the other: what is wrong with one may only show after the interceptors have seen it. It
        then fails by its ticket, but for the first one, for which this raises."""
        self.check_open()
        first = self.next_ticket
        for message in messages:
            try:
                self._send_or_fail(message, publish_time, first)
            except ProducerQueueIsFull:
                break
        return range(first, self.next_ticket)

    def check_given(self, message: object, publish_time: int) -> None:
        """Nothing: the interceptors may make another one of it."""

    def refuse(self, message: bytes | OutgoingMessage, publish_time: int, error: PulsarError) -> None:
        made = self._interception.before_send(message)
        try:
            self.check(made, publish_time)
        except InvalidMessage as wrong:
            self._interception.settled(made, None, wrong)
            raise
        self._interception.settled(made, None, error)

    def take_early(self, message: bytes | OutgoingMessage, publish_time: int) -> None:
        """What came before partitions were known has been through the interceptors."""
        if isinstance(message, OutgoingMessage):
            self._interception.taken(self.next_ticket, message)
        super().take_early(message, publish_time)
