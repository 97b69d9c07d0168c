"""`ConsumerRequests`: an application's requests to a consumer of one topic, passed to the consumer's parts.

Each request is answered once under its id, unless `forget_request` cancels the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ...model.errors import ConnectionLost, LocalProtocolError, PulsarError
from ...model.message import ProcessingMaker
from ...model.message_id import MessageId, TopicMessageId
from ..acknowledging.ack_commands import Acknowledgeable, OneMessage, is_left
from ..acknowledging.acknowledgements import Acknowledgements
from ..attaching.attachment import Attachment
from ..attaching.explaining import route
from ..connecting.connection import Connection
from ..delivery import explaining
from ..delivery.batch_receive import BatchReceive, BatchReceiveQueue
from ..delivery.consumer_services import ConsumerServices
from ..delivery.permits import Permits
from ..delivery.receiver_queue import ReceiverQueue
from ..encryption.decryption import Decryption
from ..letter_topics.letter_topics import CopyRequest, LetterTopics
from ..outputs import RequestFailed
from ..positions.positions import Positions
from ..positions.seeking import SeekTarget, Target
from .blocked_watch import BlockedWatch
from .unsubscription import Unsubscription


@dataclass(frozen=True, slots=True, eq=False)
class ConsumerParts:
    """The parts of a consumer that carry out requests."""

    permits: Permits
    queue: ReceiverQueue
    batch_receive: BatchReceive | None
    acknowledgements: Acknowledgements
    letters: LetterTopics | None
    positions: Positions
    blocked: BlockedWatch | None
    decryption: Decryption | None


class RequestedConsumer(Protocol):
    """The consumer, as its requests see it."""

    attachment: Attachment

    @property
    def acknowledge(self) -> Callable[[Acknowledgeable], bool]: ...
    @property
    def acknowledge_cumulative(self) -> Callable[[OneMessage], None]: ...
    @property
    def negative_acknowledge(self) -> Callable[[Acknowledgeable], None]: ...

    connection: Connection | None
    """The connection that messages are taken from: set while attached, until closing begins."""
    is_positioned: bool
    """True when attached, and every seek that is under way is done."""
    is_active: bool | None
    """The state of a Failover consumer; None while the broker has not reported it."""
    end_of_topic: bool
    """The topic is terminated, and everything in it is acknowledged."""

    def unsubscribed(self, attached: object) -> None:
        """End the consumer after its subscription was removed; `attached` is the attachment that sent
        UNSUBSCRIBE. No acknowledgements are left to send (CONS-46)."""
        ...


class ConsumerRequests:
    """The requests to one consumer. Each raises `ClosedError` once the consumer is closing."""

    __slots__ = ("_ack_commands", "_consumer", "_parts", "_redelivery", "_services", "_unsubscription")

    def __init__(self, services: ConsumerServices, consumer: RequestedConsumer, parts: ConsumerParts) -> None:
        self._services = services
        self._consumer = consumer
        self._parts = parts
        self._ack_commands = parts.acknowledgements.commands
        self._redelivery = parts.acknowledgements.redelivery
        self._unsubscription = Unsubscription(services)

    def explain(self) -> list[str]:
        """Explain why the consumer delivers nothing, if so."""
        now = self._services.context.now
        lines = [route(self._consumer.attachment, now)]
        if self._consumer.connection is not None and not self._consumer.is_positioned:
            lines.append("it is being moved to its position; no message comes before that")
        blocked = self._parts.blocked
        if blocked is not None and blocked.found is not None:
            count, moment = blocked.found
            lines.append(explaining.blocked(count, now - moment))
        if self._consumer.is_active is False:
            lines.append("not the active consumer of this Failover subscription: another one is")
        decryption = self._parts.decryption
        if decryption is not None and decryption.awaited is not None:
            lines.append(f"messages wait for encryption key {decryption.awaited!r:.100} of the key reader")
        lines += explaining.permits(self._parts.permits, self._parts.queue.available)
        if blocked is not None and self._consumer.is_positioned:
            lines.append(explaining.unacknowledged(blocked.unacknowledged))
        else:
            line = f"the application has received {self._parts.queue.delivered} messages"
            if self._services.spec.durable:
                sent = self._parts.acknowledgements.grouping.ids_sent
                line += f"; {sent} acknowledgements were sent, one for a whole batch"
            lines.append(line)
        if self._parts.letters is not None and (copies := self._parts.letters.waiting):
            lines.append(f"{copies} entries wait until their copies are safe in the dead-letter topic")
        if again := len(self._redelivery.negative.positions):
            lines.append(f"{again} entries are negatively acknowledged, and asked for after their delay")
        if waiting := self._parts.acknowledgements.tracker.waiting:
            lines.append(f"{waiting} acknowledgements wait to be sent")
        if self._consumer.end_of_topic:
            lines.append("the topic is terminated and everything in it is acknowledged: no message will come")
        return lines

    def check_batch_receive(self) -> None:
        """Raise when the consumer has no batch-receive policy."""
        self._ack_commands.check_open()
        if self._parts.batch_receive is None:
            raise LocalProtocolError(f"the consumer on {self._services.topic} has no batch_receive policy")

    def batch_receive(self, request: int) -> None:
        """Emit `RequestDone(request)` when `take` would return as many messages as the policy asks for
        (CONS-41)."""
        assert self._parts.batch_receive is not None
        self._parts.batch_receive.ask(request)

    def count_for(self, whole: BatchReceive) -> None:
        """Count this consumer's messages in the batch receive of several topics."""
        assert isinstance(self._parts.queue, BatchReceiveQueue)
        self._parts.queue.count_for(whole)

    def hand_over(self) -> list[int]:
        """Return the open batch-receive requests: a consumer of the topic's partitions replaces this one.
        Position requests fail, because the partitions have to answer them."""
        self._parts.queue.leave()
        self._parts.positions.end(
            ConnectionLost(f"{self._services.topic} was found to have partitions: ask again")
        )
        return [] if self._parts.batch_receive is None else self._parts.batch_receive.waiting()

    def set_processing(self, processing: ProcessingMaker) -> None:
        """Let `Message.processing` of messages received here return what `processing(message)` returns."""
        self._parts.acknowledgements.tracker.processing = processing

    def pause(self) -> None:
        """Send no permits until `resume`; messages that the broker has permits for may still arrive
        (FLOW-06)."""
        self._ack_commands.check_open()
        self._parts.permits.pause()

    def resume(self) -> None:
        """Send permits again, including those of messages that left the queue meanwhile (FLOW-07)."""
        self._ack_commands.check_open()
        self._parts.permits.resume()

    def redeliver_unacknowledged(self) -> None:
        """Request redelivery of everything unacknowledged (REDEL-01). Raises `ClosedError` when closed."""
        self._ack_commands.check_open()
        self._redelivery.redeliver_all()

    def flush_acknowledgements(self, request: int) -> None:
        """Emit `RequestDone(request)` when the broker has confirmed all acknowledgements so far."""
        self._ack_commands.check_open()
        self._parts.acknowledgements.grouping.flush_confirmed(request)

    def reconsume_later(self, request: int, what: CopyRequest) -> None:
        """See `Client.reconsume_later`, and `Client.dead_letter` for a message without a delay."""
        self._ack_commands.check_open()
        letters = self._parts.letters
        if letters is None and what.delay is None:
            raise LocalProtocolError(
                "dead_letter: only a consumer subscribed with a DeadLetterPolicy or with retry=True can"
            )
        if letters is None or not (self._services.spec.retry or what.delay is None):
            raise LocalProtocolError("reconsume_later: only a consumer subscribed with retry=True can")
        message = what.message
        if what.cumulative:
            self._ack_commands.check_cumulative()
        self._ack_commands.check_message(message)
        ledger_id, entry_id = message.entry.position
        in_part = message.batch_index >= 0
        if is_left(message.entry):
            pass
        elif what.cumulative:  # cumulative: all before it are acknowledged too
            self._redelivery.acknowledged_through((ledger_id, entry_id - in_part))
        elif not in_part:
            self._redelivery.acknowledged(message.entry.position)
        letters.reconsume_later(request, what, partial(self._reconsumed_later, what))

    def _reconsumed_later(self, what: CopyRequest, error: PulsarError | None) -> None:
        """Acknowledge the message when its copy is stored; request the message again when the copy failed."""
        if error is not None:
            self._consumer.negative_acknowledge(what.message)
        elif what.cumulative:
            self._consumer.acknowledge_cumulative(what.message)
        else:
            self._consumer.acknowledge(what.message)

    def unsubscribe(self, request: int, force: bool) -> None:
        """Remove the subscription (rules CONS-45, CONS-46, CONS-47); `force`: even while other consumers are
        connected.

        `RequestFailed` follows when the broker refuses (the consumer continues), or when there is no
        connection.
        """
        self._ack_commands.check_open()
        connection = self._consumer.connection
        if connection is None:
            lost = ConnectionLost("unsubscribe needs a connection, and there is none at the moment")
            lost.__cause__ = self._consumer.attachment.last_error
            self._services.emit(RequestFailed(request, lost))
            return
        removed = partial(self._consumer.unsubscribed, self._consumer.attachment.state)
        self._unsubscription.send(connection, request, force, removed)

    def check_seek(self, target: SeekTarget | TopicMessageId) -> Target:
        """Return a position in this topic as a seek target. Raises `LocalProtocolError` for any other
        value."""
        self._ack_commands.check_open()
        if isinstance(target, TopicMessageId):
            target = self._ack_commands.own_id(target)
        return self._parts.positions.check(target)

    def prepare_seek(self, target: SeekTarget | TopicMessageId, inclusive: bool) -> Callable[[int], None]:
        """Check the target; return a function that begins the seek, to be called with the request's id."""
        return partial(self.seek, target=self.check_seek(target), inclusive=inclusive)

    def seek(self, request: int, target: Target, inclusive: bool) -> None:
        """Move the subscription; emit `RequestDone(request)` when no earlier message can be delivered any
        more (SEEK-01)."""
        self._parts.positions.seek(request, target, inclusive)

    def check_last_message(self) -> None:
        """Raise `LocalProtocolError` on a topic that keeps no last message."""
        self._ack_commands.check_open()
        self._parts.positions.check_memory()

    def last_message_id(self, request: int) -> None:
        """Emit `RequestDone(request, id)`; the entry id is -1 when the topic is empty."""
        self._parts.positions.last_message_id(request)

    def last_position(self, request: int, deadline: int | None = None) -> None:
        """Emit `RequestDone(request, LastPosition)`: the end of the topic, and the position of this
        subscription. `deadline`: see `LastMessage.ask`."""
        self._parts.positions.last_position(request, deadline)

    def has_message_available(self, request: int, deadline: int | None = None) -> None:
        """Emit `RequestDone(request, bool)`: True when a message follows those delivered. `deadline`: see
        `LastMessage.ask`."""
        self._parts.positions.has_message_available(request, deadline)

    def checkpoint(self) -> dict[str, MessageId]:
        """Return, by topic name, the id of the message before the next one to be delivered."""
        self._ack_commands.check_open()
        return {self._services.source.topic: self._parts.positions.checkpoint()}

    def forget_request(self, request: int) -> None:
        """Cancel the answer to this request; the request is still carried out."""
        self._parts.acknowledgements.grouping.forget(request)
        self._parts.positions.forget_request(request)
        if self._parts.letters is not None:
            self._parts.letters.forget(request)
        if self._parts.batch_receive is not None:
            self._parts.batch_receive.forget(request)
        self._unsubscription.forget(request)

    def end(self, error: PulsarError) -> None:
        """Fail the requests that wait for an answer to UNSUBSCRIBE: the consumer has ended."""
        self._unsubscription.end(error)
