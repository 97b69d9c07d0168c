"""`ConsumerCommands`: the commands of `Client` to consumers, except those about positions
(`PositionCommands`)."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import setitem
from typing import TYPE_CHECKING, Any

from ...model.config import ConsumerSpec
from ...model.errors import InvalidConfiguration, LocalProtocolError
from ...model.transaction_id import TransactionId
from ..connecting.services import Services
from ..counters import ArrivalCounters
from ..letter_topics.letter_topics import dead_letter_request, reconsume_request, with_retry_topic
from ..multi_topics.open_consumer import AnyConsumer, open_consumer
from ..outputs import Deliverable
from ..statistics import ConsumerStatistics
from .open_handles import OpenHandles

if TYPE_CHECKING:
    from ...model.message import Message, ProcessingMaker
    from ...model.message_id import MessageId, TopicMessageId
    from ..delivery.merged_queue import MergedQueue
    from ..delivery.received_entries import Messages
    from ..delivery.receiver_queue import ReceiverQueue

    Acknowledgeable = Message[Any] | MessageId | TopicMessageId


class ConsumerCommands:
    """Opens consumers, and passes commands to them. A command to a consumer that has ended raises
    `ClosedError`."""

    __slots__ = ("_consumers", "_context", "_handles", "_services")

    def __init__(self, services: Services, handles: OpenHandles) -> None:
        self._context = services.context
        self._services = services
        self._handles = handles
        self._consumers = handles.consumers

    def subscribe(self, now: int, spec: ConsumerSpec) -> int:
        """Return the handle of a new consumer; `ConsumerReady` or `ConsumerFailed` follows. Raises
        `ClosedError` when the client is closed."""
        self._handles.check_open()
        if not isinstance(spec, ConsumerSpec):
            raise InvalidConfiguration(f"subscribe takes a ConsumerSpec, not {type(spec).__name__}")
        self._context.now = now
        services = self._services
        if spec.letters is not None:
            services.keys.check_entropy(spec.letters.encryption_keys)
            if services.wall_offset is None:
                raise InvalidConfiguration("dead_letter and retry: only with Client(wall_time=…)")
        spec = with_retry_topic(spec)
        handle = self._context.new_id()
        open_consumer(services, handle, spec, partial(setitem, self._consumers, handle))
        return handle

    def receive(self, now: int, consumer: int) -> "Message[Any] | None":
        """Return the next message, or None when the receiver queue is empty: wait for `Deliverable` then.

        `Deliverable` follows, too, when messages are left. A consumer with a receiver queue of size 0 asks
        the broker for one message.
        """
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._handles.unknown("consumer", consumer)
        self._context.now = now
        message = machine.receive()
        if message is not None:
            self._announce_rest(consumer, machine)
        return message

    def receiver(self, consumer: int) -> "ReceiverQueue | MergedQueue":
        """Return the consumer's receiver queue, for drivers that take one message at a time.

        `receive()` of the queue is `receive` of the consumer at the latest moment that the client knows, from
        any input or from `set_time`. No `Deliverable` follows for messages that it leaves. Raises
        `ClosedError` as `receive`.

        The queue's iterator `ready` is the fast path: it gives messages until a decision is needed. Call
        `receive()` when the iterator ends; the queue has another iterator then.

        Ask for the queue after `ConsumerReady`: a topic with partitions has another queue before.
        """
        return self._handles.consumer(consumer).queue

    def acknowledger(
        self, consumer: int
    ) -> "Callable[[Acknowledgeable | Collection[Acknowledgeable]], bool]":
        """Return `acknowledge` of the consumer as a callable that takes no time, as `receiver` does.

        The callable returns True when outputs or an earlier deadline may have come of it.
        """
        return self._handles.consumer(consumer).acknowledge

    def set_processing(self, consumer: int, processing: "ProcessingMaker") -> None:
        """Set the callable that gives `Message.processing()` of the consumer's messages its result.

        `processing(message)` returns an asynchronous context manager, which acknowledges or negatively
        acknowledges the message when its block ends. The driver sets it.
        """
        self._handles.consumer(consumer).set_processing(processing)

    def set_time(self, now: int, wall_time: int | None = None) -> None:
        """Set the current moment, for drivers that use `receiver` and `acknowledger` without another input.

        `wall_time`: milliseconds since 1970 at that moment. Give it when the clocks may have been set, or may
        have stood still.
        """
        self._context.now = now
        if wall_time is not None:
            self._services.record_wall_time(wall_time)

    def take(self, now: int, consumer: int, limit: int, *, whole_batches: bool = False) -> "Messages[Any]":
        """Return up to `limit` messages from the receiver queue; each is made when it is looked at.

        `whole_batches`: a batch is not divided, and may exceed the limit. A transaction should acknowledge
        whole batches, because a broker may not keep acknowledgements of a part.

        `Deliverable` follows when some messages are returned and others are left: an application that takes
        once for each `Deliverable` misses none. Nothing follows after a `take` of 0: the application takes
        when it has room.
        """
        if type(limit) is not int or limit < 0:
            raise LocalProtocolError(f"take: a whole number of messages, not {limit!r}")
        machine = self._consumer(now, consumer)
        messages = machine.take(limit, whole_batches)
        if messages:
            self._announce_rest(consumer, machine)
        return messages

    def _announce_rest(self, consumer: int, machine: AnyConsumer) -> None:
        """Emit `Deliverable` again when messages are left, unless it is the latest output already. So the
        outputs of an application that takes in a loop do not grow."""
        if machine.queue.announced and machine.available():
            outputs = self._context.outputs
            rest = Deliverable(consumer)
            if not outputs or outputs[-1] != rest:
                outputs.append(rest)

    def batch_receive(self, now: int, consumer: int) -> int:
        """Ask for as many messages together as the consumer's `batch_receive` policy calls enough.

        `RequestDone` follows when the application should `take` them; `RequestFailed` follows at the
        consumer's end. Until then the messages stay in the queue: an application that stops waiting calls
        `abandon` with the request. Raises `LocalProtocolError` for a consumer without a policy.
        """
        machine = self._consumer(now, consumer)
        machine.check_batch_receive()
        request = self._context.new_id()
        machine.batch_receive(request)
        return request

    def available(self, consumer: int) -> int:
        """Return the number of messages that `take` would return."""
        return self._handles.consumer(consumer).available()

    def consumer_statistics(self, consumer: int) -> ConsumerStatistics:
        """Return the counts of a consumer so far. The client keeps the final counts of the last 1000
        producers and consumers that have ended."""
        machine = self._consumers.get(consumer)
        if machine is not None:
            return machine.statistics()
        statistics = self._handles.closed.statistics(consumer)
        if not isinstance(statistics, ConsumerStatistics):
            raise self._handles.unknown("consumer", consumer)
        return statistics

    def subscribed_topics(self, consumer: int) -> list[str]:
        """Return the full names of the topics and partitions that a consumer is subscribed to."""
        return self._handles.consumer(consumer).subscribed

    def arrival_counters(self, consumer: int) -> ArrivalCounters:
        """Return the counters of messages that arrived for a consumer and were not delivered. They keep
        counting."""
        return self._handles.consumer(consumer).counters

    def acknowledge(
        self,
        now: int,
        consumer: int,
        messages: "Acknowledgeable | Collection[Acknowledgeable]",
        transaction: TransactionId | None = None,
    ) -> None:
        """Acknowledge one message or several, by the messages or their ids.

        `transaction`: they count as acknowledged once it is committed. A refusal of the broker fails the
        commit. Raises `TransactionNotOpen`.
        """
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._handles.unknown("consumer", consumer)
        self._context.now = now
        if transaction is None:
            machine.acknowledge(messages)
        else:
            machine.acknowledge_in(messages, self._services.transactions.get(transaction))

    def acknowledge_cumulative(
        self,
        now: int,
        consumer: int,
        message: "Acknowledgeable",
        transaction: TransactionId | None = None,
    ) -> None:
        """Acknowledge this message and all before it. Raises `LocalProtocolError` for a subscription that is
        shared (rule ACK-02). `transaction`: as in `acknowledge`."""
        machine = self._consumer(now, consumer)
        if transaction is None:
            machine.acknowledge_cumulative(message)
        else:
            machine.acknowledge_cumulative_in(message, self._services.transactions.get(transaction))

    def negative_acknowledge(
        self, now: int, consumer: int, messages: "Acknowledgeable | Collection[Acknowledgeable]"
    ) -> None:
        """Have the broker redeliver these messages after the negative acknowledgement delay."""
        self._consumer(now, consumer).negative_acknowledge(messages)

    def pause(self, now: int, consumer: int) -> None:
        """Ask the broker for no more messages until `resume`. Messages that the consumer had asked for may
        still arrive. The pause outlasts reconnects."""
        self._consumer(now, consumer).pause()

    def resume(self, now: int, consumer: int) -> None:
        """Ask for messages again."""
        self._consumer(now, consumer).resume()

    def reconsume_later(
        self,
        now: int,
        consumer: int,
        message: "Message[Any]",
        delay: float,
        publish_time: int,
        properties: Mapping[str, str] | None = None,
        *,
        cumulative: bool = False,
    ) -> int:
        """Have this message delivered again after `delay` seconds, as a copy in the consumer's retry topic.

        A message that was reconsumed later `max_redeliver_count` times goes to the dead-letter topic. The
        copy has `publish_time`, in milliseconds since 1970, and `properties` beside those of the message.
        `cumulative`: acknowledge all messages before it, too, once the copy is stored.

        `RequestDone` follows when the copy is stored and the message acknowledged. `RequestFailed` follows
        when the copy could not be stored: the message is redelivered as after a negative acknowledgement.
        Raises `LocalProtocolError` for a consumer without `retry`, for anything but a message of this
        consumer, and for `cumulative` on a subscription that is shared; `InvalidConfiguration` for a delay
        below 0.
        """
        machine = self._consumer(now, consumer)
        what = reconsume_request(message, delay, publish_time, properties, cumulative)
        request = self._context.new_id()
        machine.reconsume_later(request, what)
        self._services.record_wall_time(publish_time)
        return request

    def dead_letter(
        self,
        now: int,
        consumer: int,
        message: "Message[Any]",
        publish_time: int,
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """Copy this message to the consumer's dead-letter topic now, however often it was delivered.

        The copy has `publish_time`, in milliseconds since 1970, and `properties` beside those of the message.
        `RequestDone` follows when the copy is stored and the message acknowledged. `RequestFailed` follows
        when the copy could not be stored: the message is redelivered as after a negative acknowledgement.
        Raises `LocalProtocolError` for a consumer with neither a dead-letter policy nor `retry`, and for
        anything but a message of this consumer; `InvalidConfiguration` for properties that are no text.
        """
        machine = self._consumer(now, consumer)
        what = dead_letter_request(message, publish_time, properties)
        request = self._context.new_id()
        machine.reconsume_later(request, what)
        self._services.record_wall_time(publish_time)
        return request

    def redeliver_unacknowledged(self, now: int, consumer: int) -> None:
        """Have the broker redeliver everything now that was delivered and not acknowledged."""
        self._consumer(now, consumer).redeliver_unacknowledged()

    def flush_acknowledgements(self, now: int, consumer: int) -> int:
        """Send the grouped acknowledgements now.

        `RequestDone` follows when the broker has confirmed everything acknowledged so far, on the next
        connection if this one is lost. `RequestFailed` follows when the broker refuses. Without receipts,
        acknowledgements sent over an earlier connection are not covered: messages whose acknowledgement was
        lost are redelivered.
        """
        machine = self._consumer(now, consumer)
        request = self._context.new_id()
        machine.flush_acknowledgements(request)
        return request

    def unsubscribe(self, now: int, consumer: int, force: bool = False) -> int:
        """Remove the subscription from the topic. `RequestDone` and `Closed`, or `RequestFailed` follow."""
        if not isinstance(force, bool):
            raise LocalProtocolError(f"unsubscribe: force is True or False, not {force!r}")
        machine = self._consumer(now, consumer)
        request = self._context.new_id()
        machine.unsubscribe(request, force)
        return request

    def _consumer(self, now: int, handle: int) -> AnyConsumer:
        machine = self._handles.consumer(handle)
        self._context.now = now
        return machine
