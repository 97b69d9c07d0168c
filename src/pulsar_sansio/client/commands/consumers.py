"""`ConsumerCommands`: the commands of `Client` to consumers, but for those about positions
(`PositionCommands`)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import setitem
from typing import TYPE_CHECKING

from ...model.config import ConsumerSpec
from ...model.errors import InvalidConfiguration, LocalProtocolError
from ..closed_handles import ClosedHandles
from ..connecting.services import ClientContext, Services
from ..counters import ArrivalCounters
from ..letter_topics.letter_topics import later, never, with_retry_topic
from ..multi_topics.open_consumer import AnyConsumer, open_consumer
from ..outputs import Deliverable
from ..statistics import ConsumerStatistics

if TYPE_CHECKING:
    from ...model.message import Message
    from ...model.message_id import MessageId, TopicMessageId
    from ...model.processing import AckHandler
    from ..delivery.merged_queue import MergedQueue
    from ..delivery.received_entries import Messages
    from ..delivery.receiver_queue import ReceiverQueue

    Acknowledgeable = Message | MessageId | TopicMessageId


class ConsumerCommands(ABC):
    """Subscribe, and what a consumer is told and asked. What is between here and the machines is
    `Client`'s."""

    _context: ClientContext
    _services: Services
    _consumers: dict[int, AnyConsumer]
    _ends: ClosedHandles

    @abstractmethod
    def _check_open(self) -> None: ...

    @abstractmethod
    def _unknown(self, kind: str, handle: int) -> LocalProtocolError: ...

    def subscribe(self, now: int, spec: ConsumerSpec) -> int:
        """Returns the consumer's handle; `ConsumerReady` or `ConsumerFailed` follows. Raises `ClosedError`
        when the client is closed."""
        self._check_open()
        if not isinstance(spec, ConsumerSpec):
            raise InvalidConfiguration(f"subscribe takes a ConsumerSpec, not {type(spec).__name__}")
        self._context.now = now
        services = self._services
        if spec.letters is not None and services.wall_offset is None:
            raise InvalidConfiguration("dead_letter and retry: only with Client(wall_time=…)")
        spec = with_retry_topic(spec)
        handle = self._context.new_id()
        open_consumer(self._context, self._services, handle, spec, partial(setitem, self._consumers, handle))
        return handle

    def receive(self, now: int, consumer: int) -> "Message | None":
        """The next message, or None where none is there (wait for `Deliverable`, which also follows when more
        are left). A consumer with a receiver queue of size 0 asks for one then."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        self._context.now = now
        message = machine.receive()
        if message is not None:
            self._tell_of_the_rest(consumer, machine)
        return message

    def receiver(self, consumer: int) -> "ReceiverQueue | MergedQueue":
        """That consumer's queue, for who takes one message after the other.

        Its `receive()` is `receive` of that consumer at the moment told last, by `note_time` or any input,
        and raises `ClosedError` like it; no `Deliverable` follows for what it leaves. Most messages need not
        even that: they come out of its iterator `ready`, and `receive()` has only to be called when that
        ends. It then stands for another iterator.
        Ask for it after `ConsumerReady`: where the topic has partitions it is another one before.
        """
        return self._consumer(self._context.now, consumer).queue

    def acknowledger(
        self, consumer: int
    ) -> "Callable[[Acknowledgeable | Collection[Acknowledgeable]], bool]":
        """`acknowledge` of that consumer, likewise; says whether there may be outputs or an earlier
        deadline."""
        return self._consumer(self._context.now, consumer).acknowledge

    def set_ack_handler(self, consumer: int, judge: "AckHandler") -> None:
        """`Message.processing()` of that consumer's messages gives its verdicts to `judge`, which is whoever
        drives this client: an object with `acknowledge(message)` and `negative_acknowledge(message)`."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        machine.set_ack_handler(judge)

    def note_time(self, now: int, wall_time: int | None = None) -> None:
        """It is `now`. For who uses `receiver` and `acknowledger` for long without any other input; with
        `wall_time`, and so many milliseconds since 1970, where clocks are set or stand still for a while."""
        self._context.now = now
        if wall_time is not None:
            self._services.note_wall_time(wall_time)

    def take(self, now: int, consumer: int, limit: int) -> "Messages":
        """Up to `limit` messages that are there; each is made when it is looked at.

        `Deliverable` follows when some are given and more are left: an application that takes once for each
        misses none. After a `take` of 0 nothing follows: the application takes when it has room.
        """
        if type(limit) is not int or limit < 0:
            raise LocalProtocolError(f"take: a whole number of messages, not {limit!r}")
        machine = self._consumer(now, consumer)
        messages = machine.take(limit)
        if messages:
            self._tell_of_the_rest(consumer, machine)
        return messages

    def _tell_of_the_rest(self, consumer: int, machine: AnyConsumer) -> None:
        """Say `Deliverable` again where messages are left, unless it is the last thing said already: then the
        outputs of an application that takes in a loop do not grow."""
        if machine.queue.announced and machine.available():
            outputs = self._context.outputs
            rest = Deliverable(consumer)
            if not outputs or outputs[-1] != rest:
                outputs.append(rest)

    def collect(self, now: int, consumer: int) -> int:
        """Ask for as many messages together as the consumer's `batch_receive` policy calls enough:
        `RequestDone` follows when it is time to `take` them, `RequestFailed` at its end. Nobody has them
        before that: who gives up calls `abandon` with the request. Raises `LocalProtocolError` for a consumer
        without a policy."""
        machine = self._consumer(now, consumer)
        machine.check_collecting()
        request = self._context.new_id()
        machine.collect(request)
        return request

    def available(self, consumer: int) -> int:
        """How many messages `take` would give."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        return machine.available()

    def consumer_statistics(self, consumer: int) -> ConsumerStatistics:
        """What a consumer has counted so far; what it had counted at its end, of the last 1000 that have
        ended."""
        machine = self._consumers.get(consumer)
        if machine is not None:
            return machine.statistics()
        statistics = self._ends.statistics(consumer)
        if not isinstance(statistics, ConsumerStatistics):
            raise self._unknown("consumer", consumer)
        return statistics

    def subscribed_topics(self, consumer: int) -> list[str]:
        """Full names of the topics and partitions a consumer is subscribed to."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        return machine.subscribed

    def arrivals(self, consumer: int) -> ArrivalCounters:
        """What arrived for a consumer and was not delivered, by reason. It goes on counting."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        return machine.counters

    def acknowledge(
        self, now: int, consumer: int, messages: "Acknowledgeable | Collection[Acknowledgeable]"
    ) -> None:
        """One message or several are done with, by themselves or by their ids."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        self._context.now = now
        machine.acknowledge(messages)

    def acknowledge_cumulative(self, now: int, consumer: int, message: "Acknowledgeable") -> None:
        """This message and all before it are done with. Raises `LocalProtocolError` for a subscription that
        is shared (rule ACK-02)."""
        self._consumer(now, consumer).acknowledge_cumulative(message)

    def negative_acknowledge(
        self, now: int, consumer: int, messages: "Acknowledgeable | Collection[Acknowledgeable]"
    ) -> None:
        """Deliver these again, after the negative acknowledgement delay."""
        self._consumer(now, consumer).negative_acknowledge(messages)

    def pause(self, now: int, consumer: int) -> None:
        """Ask the broker for no more messages until `resume`; those that it was asked for may still come. It
        outlasts reconnects."""
        self._consumer(now, consumer).pause()

    def resume(self, now: int, consumer: int) -> None:
        """Ask for messages again."""
        self._consumer(now, consumer).resume()

    def reconsume_later(
        self,
        now: int,
        consumer: int,
        message: "Message",
        delay: float,
        publish_time: int,
        properties: Mapping[str, str] | None = None,
        *,
        cumulative: bool = False,
    ) -> int:
        """Have this message delivered again after `delay` seconds: a copy of it goes to the consumer's retry
        topic, or to the dead letters once that has happened `max_redeliver_count` times.

        `publish_time`: milliseconds since 1970, of the copy. `properties`: more of them for the copy.
        `cumulative`: all before it are done with, too, when its copy is safe. `RequestDone` follows when the
        copy is safe and the message acknowledged; `RequestFailed` where it could not be copied: it is
        redelivered then, as after a negative acknowledgement. Raises `LocalProtocolError` for a consumer
        without `retry`, for what is no message of it, and for `cumulative` on a subscription that is shared;
        `InvalidConfiguration` for a delay below 0.
        """
        machine = self._consumer(now, consumer)
        what = later(message, delay, publish_time, properties, cumulative)
        self._services.note_wall_time(publish_time)
        request = self._context.new_id()
        machine.reconsume_later(request, what)
        return request

    def dead_letter(
        self,
        now: int,
        consumer: int,
        message: "Message",
        publish_time: int,
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """Copy this message to the consumer's dead-letter topic at once, however often it was delivered.

        `publish_time`: milliseconds since 1970, of the copy. `properties`: more of them for the copy.
        `RequestDone` follows when the copy is safe and the message acknowledged; `RequestFailed` where it
        could not be copied: it is redelivered then, as after a negative acknowledgement. Raises
        `LocalProtocolError` for a consumer with neither a dead-letter policy nor `retry`, and for what is no
        message of it; `InvalidConfiguration` for properties that are no text.
        """
        machine = self._consumer(now, consumer)
        what = never(message, publish_time, properties)
        self._services.note_wall_time(publish_time)
        request = self._context.new_id()
        machine.reconsume_later(request, what)
        return request

    def redeliver_unacknowledged(self, now: int, consumer: int) -> None:
        """Deliver again, at once, everything that was delivered and not acknowledged."""
        self._consumer(now, consumer).redeliver_unacknowledged()

    def flush_acknowledgements(self, now: int, consumer: int) -> int:
        """Send the grouped acknowledgements now. `RequestDone` follows when the broker has confirmed
        everything acknowledged so far, on the next connection if this one is lost; `RequestFailed` where it
        refuses.

        Without receipts, acknowledgements sent over an earlier connection are not covered: what of them was
        lost is delivered again.
        """
        machine = self._consumer(now, consumer)
        request = self._context.new_id()
        machine.flush_acknowledgements(request)
        return request

    def unsubscribe(self, now: int, consumer: int, force: bool = False) -> int:
        """End the subscription itself. `RequestDone` and `Closed`, or `RequestFailed` follow."""
        if not isinstance(force, bool):
            raise LocalProtocolError(f"unsubscribe: force is True or False, not {force!r}")
        machine = self._consumer(now, consumer)
        request = self._context.new_id()
        machine.unsubscribe(request, force)
        return request

    def _consumer(self, now: int, consumer: int) -> AnyConsumer:
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        self._context.now = now
        return machine
