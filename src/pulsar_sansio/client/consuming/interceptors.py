"""Interceptors of a consumer (rules INTC-02, INTC-03, INTC-04).

`InterceptedQueue` passes every delivered message through them. `InterceptedAckCommands` tells them about the
application's acknowledgements, and about entries that are requested again. A consumer without interceptors
has neither object.

All interceptors are called in the order in which they were given. An exception of one is reported by
`ConsumerInterceptorFailed` and changes nothing else.
"""

from collections.abc import Callable, Collection, Sequence
from operator import length_hint
from typing import Any

from ...model.errors import LocalProtocolError, PulsarError
from ...model.interceptors import ConsumerInterceptor
from ...model.message import Message
from ...model.message_id import EntryPosition, MessageId, TopicMessageId
from ..acknowledging.ack_commands import AckCommands, Acknowledgeable, OneMessage
from ..delivery.consumer_services import ConsumerServices
from ..delivery.permits import Permits
from ..delivery.received_entries import Messages, ReceivedBatch
from ..delivery.receiver_queue import ReceiverQueue
from ..outputs import ConsumerInterceptorFailed
from ..transactions.transaction import Transaction


class ConsumerInterception:
    """Calls the interceptors of one consumer."""

    __slots__ = ("_emit", "_handle", "_interceptors", "_source", "_topic")

    def __init__(self, services: ConsumerServices) -> None:
        self._handle = services.handle
        self._topic = services.topic
        self._source = services.source
        self._interceptors = services.spec.interceptors
        self._emit = services.emit

    def before_consume(self, message: Message) -> Message:
        """Return the message as the interceptors have changed it."""
        for interceptor in self._interceptors:
            try:
                message = _checked(interceptor, interceptor.before_consume(self._topic, message))
            except Exception as error:
                self._failed(interceptor, error)
        return message

    def acknowledged(self, message_ids: Sequence[MessageId], error: PulsarError | None) -> None:
        for message_id in message_ids:
            for interceptor in self._interceptors:
                try:
                    interceptor.on_acknowledge(self._topic, message_id, error)
                except Exception as failure:
                    self._failed(interceptor, failure)

    def acknowledged_cumulatively(self, message_id: MessageId, error: PulsarError | None) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledge_cumulative(self._topic, message_id, error)
            except Exception as failure:
                self._failed(interceptor, failure)

    def negatively_acknowledged(self, positions: Collection[EntryPosition]) -> None:
        """Report entries that are requested now because the application negatively acknowledged them."""
        message_ids = self._ids(positions)
        for interceptor in self._interceptors:
            try:
                interceptor.on_negative_acknowledgements_send(self._topic, message_ids)
            except Exception as failure:
                self._failed(interceptor, failure)

    def timed_out(self, positions: Collection[EntryPosition]) -> None:
        """Report entries that are requested now because the application did not acknowledge them in time."""
        message_ids = self._ids(positions)
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement_timeout_send(self._topic, message_ids)
            except Exception as failure:
                self._failed(interceptor, failure)

    def _ids(self, positions: Collection[EntryPosition]) -> tuple[MessageId, ...]:
        return tuple(MessageId(*position, self._source.partition) for position in positions)

    def _failed(self, interceptor: ConsumerInterceptor, error: Exception) -> None:
        self._emit(ConsumerInterceptorFailed(self._handle, interceptor, error))


def _checked(interceptor: ConsumerInterceptor, message: object) -> Message:
    if not isinstance(message, Message):
        raise TypeError(
            f"{type(interceptor).__name__}.before_consume gives a Message, not {type(message).__name__}"
        )
    if not (hasattr(message, "data") and hasattr(message, "entry") and hasattr(message, "batch_index")):
        raise TypeError(
            f"{type(interceptor).__name__}.before_consume gives a Message without data, entry or batch_index"
        )
    return message


class InterceptedQueue(ReceiverQueue):
    """A queue whose messages pass through interceptors one by one when they are delivered."""

    def __init__(self, permits: Permits, *, interception: ConsumerInterception, **others: Any) -> None:
        super().__init__(permits, **others)
        self._interception = interception

    def _begin(self) -> None:
        super()._begin()
        self._messages = map(self._interception.before_consume, self._messages)
        self._begin_run()

    def take(self, limit: int, whole_batches: bool = False) -> Messages:
        """Take the messages one by one; there is no fast path for messages that arrived together."""
        self._check_open()
        messages: list[Message] = []
        left = min(limit, self.available)
        while left > 0:
            message = self.receive()
            assert message is not None
            messages.append(message)
            left -= 1
            if whole_batches and not left and isinstance(self._current, ReceivedBatch):
                left = length_hint(self._left)
        return Messages([messages] if messages else [])


class InterceptedAckCommands:
    """Passes acknowledgement commands to interceptors, with the error of a refused command (INTC-03).

    Interceptors are called before the command can be sent.
    """

    __slots__ = ("_interception", "_ack_commands")

    def __init__(self, ack_commands: AckCommands, interception: ConsumerInterception) -> None:
        self._ack_commands = ack_commands
        self._interception = interception

    def acknowledge(self, what: Acknowledgeable) -> bool:
        self._tell(self._ack_commands.acknowledge, what)
        return True  # an exception of an interceptor is an output

    def acknowledge_in(self, what: Acknowledgeable, transaction: Transaction) -> None:
        """Tell the interceptors now, as of other acknowledgements; the transaction may be aborted."""
        self._tell(lambda given: self._ack_commands.acknowledge_in(given, transaction), what)

    def acknowledge_cumulative(self, what: OneMessage) -> None:
        self._tell_cumulative(self._ack_commands.acknowledge_cumulative, what)

    def acknowledge_cumulative_in(self, what: OneMessage, transaction: Transaction) -> None:
        """Tell the interceptors as `acknowledge_in` does."""
        self._tell_cumulative(
            lambda given: self._ack_commands.acknowledge_cumulative_in(given, transaction), what
        )

    def _tell(self, acknowledge: Callable[[Any], object], what: Acknowledgeable) -> None:
        given = what if isinstance(what, OneMessage | Messages) else _listed(what)
        try:
            acknowledge(given)
        except LocalProtocolError as error:
            self._interception.acknowledged(_ids_of(given), error)
            raise
        self._interception.acknowledged(_ids_of(given), None)

    def _tell_cumulative(self, acknowledge: Callable[[OneMessage], None], what: OneMessage) -> None:
        error: LocalProtocolError | None = None
        try:
            acknowledge(what)
        except LocalProtocolError as refused:
            error = refused
        for message_id in _ids_of(what):
            self._interception.acknowledged_cumulatively(message_id, error)
        if error is not None:
            raise error


def _listed(what: Any) -> Any:
    """Return an iterable as a list; leave other values for the acknowledgement commands to refuse."""
    try:
        return list(what)
    except TypeError:
        return what


def _ids_of(given: object) -> list[MessageId]:
    several = [given] if isinstance(given, OneMessage) else given
    if not isinstance(several, list | Messages):
        return []
    named = (Message, TopicMessageId)
    ids = (each.message_id if isinstance(each, named) else each for each in several)
    return [each for each in ids if isinstance(each, MessageId)]
