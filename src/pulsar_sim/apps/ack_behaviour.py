"""Applications that receive: they acknowledge messages, negatively acknowledge them, reconsume them later,
keep or forget them.

Owns the acknowledgements of one application and the confirmations that its client owes it; the reference
model records each. `consumer_app` owns the consumer and its life.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from pulsar_sansio.client.outputs import Output
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId, TopicMessageId

from ..engine.failures import ViolationError
from ..engine.profile import LONGEST_RECONSUME_DELAY, ConsumerPlan
from ..model.multi_topics_subscriptions import GroupRecord
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.message_position import MessagePosition
from ..model.retry_requests import RetryRequest
from .client_process import ClientProcess

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


MOST_REFUSALS, MOST_WITH_LETTERS = 10, 30
"""Negative acknowledgements of one application; the second number counts where dead letters exist. An
application that refuses a third of all messages for ever receives large batches again and again, which shows
nothing new."""

Taken: TypeAlias = tuple[ConsumerRecord, MessagePosition]
"""A message that an application has taken: the consumer's record of its topic, and the message's position
there."""


class AckBehaviour(ABC):
    """The acknowledgements of one application, through as many consumers as the application opens."""

    def __init__(self, world: "Surroundings", index: int, plan: ConsumerPlan) -> None:
        self.world = world
        self.index = index
        self.plan = plan
        self.host: ClientProcess = world.hosts[plan.client]
        self.stream = world.streams.stream(f"consumer {index}")
        self.incarnation = 0
        self.record: ConsumerRecord | GroupRecord | None = None
        self.handle = 0
        self.state = "idle"
        self.attached = False
        self.kept: dict[Taken, Message] = {}
        """Messages taken and neither acknowledged nor negatively acknowledged yet."""
        self.confirmations: dict[int, list[Taken]] = {}
        """Requests to confirm, each with the messages acknowledged since the request before."""
        self._acknowledged: list[Taken] = []
        """Messages acknowledged by the current consumer and not yet covered by a request to confirm."""
        self._on_this_connection: list[Taken] = []
        """Messages acknowledged since the consumer was attached."""
        self._reconsuming: dict[int, RetryRequest] = {}
        """Requests to reconsume a message later."""
        self._refusals_left = MOST_WITH_LETTERS if plan.dead_letters else MOST_REFUSALS

    @abstractmethod
    def on_output(self, output: Output) -> None:
        """Take an output about the application's consumer or about one of its requests."""

    @property
    def waits(self) -> bool:
        """True while a request of the application has no answer."""
        return bool(self.confirmations or self._reconsuming)

    # --- the record that a message belongs to: with one topic, the consumer's own ---------------------------

    @property
    def records(self) -> list[ConsumerRecord]:
        """The records of the topics that the application is subscribed to."""
        return [self.record] if isinstance(self.record, ConsumerRecord) else []

    def _record_of(self, message: Message) -> ConsumerRecord:
        assert isinstance(self.record, ConsumerRecord)
        return self.record

    def _id_of(self, message: Message) -> MessageId | TopicMessageId:
        """Return the id by which the consumer knows the message."""
        return message.message_id

    # --- acknowledgements -------------------------------------------------------------------------------

    def _decide(self, messages: list[Message]) -> None:
        plan, stream, model = self.plan, self.stream, self.world.model
        record = self.record
        assert record is not None
        client, now = self.host.node.client, self.world.clock.now
        cumulative = record.kind.cumulative
        rash = self.world.rash
        wall_time = self.world.wall_time()
        all_taken: list[Taken] = []
        for message in messages:
            of_topic = self._record_of(message)
            all_taken.append((of_topic, model.deliver(of_topic, message, now, wall_time)))
        if plan.timeout:
            self._start_timeouts(all_taken, messages)
        for taken, message in zip(all_taken, messages, strict=True):
            self.kept.pop(taken, None)
            if self._is_acknowledged(taken):
                self._acknowledge(taken)
                client.acknowledge(now, self.handle, message)
            elif rash and plan.bad_every and self._is_bad(taken):
                model.negative_acknowledge(*taken, message.redelivery_count, now)
                client.negative_acknowledge(now, self.handle, message)
                self.host.node.pump()
            elif rash and self._refusals_left and stream.chance(plan.nack_permille):
                self._refusals_left -= 1
                by_message = stream.chance(500)
                model.negative_acknowledge(*taken, message.redelivery_count if by_message else 0, now)
                client.negative_acknowledge(now, self.handle, message if by_message else self._id_of(message))
                self.host.node.pump()  # the request for redelivery is seen before the next decision
                if stream.chance(200):
                    self.kept[taken] = message  # it is acknowledged later after all
            elif rash and plan.reconsume_permille and stream.chance(plan.reconsume_permille):
                self._reconsume_later(taken, message)
            elif rash and stream.chance(plan.keep_permille):
                self.kept[taken] = message
            elif (
                rash and plan.forget_permille and self._refusals_left and stream.chance(plan.forget_permille)
            ):
                self._refusals_left -= 1
            elif cumulative and stream.chance(plan.cumulative_permille):
                self._acknowledge_cumulative(taken, message)
            else:
                by_message = stream.chance(800)
                self._acknowledge(taken)
                client.acknowledge(now, self.handle, message if by_message else self._id_of(message))

    def _acknowledge_undecrypted(self, messages: Iterable[Message]) -> None:
        """Acknowledge entries that are delivered as they are."""
        client, now = self.host.node.client, self.world.clock.now
        for message in messages:
            record = self._record_of(message)
            for each in self.world.model.deliver_sealed(record, message, now):
                self.kept.pop((record, each), None)
                self._acknowledge((record, each))
            client.acknowledge(now, self.handle, message)

    @staticmethod
    def _is_acknowledged(taken: Taken) -> bool:
        """True when the client assembled the message from chunks that were left over."""
        record, message_position = taken
        return not record.subscription.topic.log[message_position[:2]].messages

    def _is_bad(self, taken: Taken) -> bool:
        """True when the application's handler fails for the message at each delivery."""
        record, message_position = taken
        sent = record.subscription.topic.log[message_position[:2]].messages[message_position[2]]
        return sent.number % self.plan.bad_every == 0

    def _reconsume_later(self, taken: Taken, message: Message) -> None:
        """Reconsume the message later, as a copy. When the copy fails, the client negatively acknowledges the
        message."""
        record, message_position = taken
        if record.closed or not self._refusals_left:
            self.kept[taken] = message
            return
        self._refusals_left -= 1
        world = self.world
        delay = self.stream.choice([0, 0, 50, 300, round(LONGEST_RECONSUME_DELAY * 1000)])
        in_order = record.subscription.kind.cumulative
        cumulative = in_order and self.stream.chance(500)
        asked = world.model.retry_requests.reconsume_later(
            record, message_position, str(message.message_id), delay, cumulative
        )
        chunks = record.subscription.topic.chunks_of(message_position[:2])
        record.uncopied.update(chunks)
        record.redelivery_timing.reconsume_later(chunks, message.batch_index >= 0, cumulative)
        if cumulative:
            self._forget_kept_up_to(taken)
        if in_order:  # a failed copy rewinds the whole subscription
            record.rewinds += 1
            record.copies_to_fail += 1
        client, now = self.host.node.client, world.clock.now
        request = client.reconsume_later(
            now, self.handle, message, delay / 1000, world.wall_time(), cumulative=cumulative
        )
        self.host.routes[request] = self
        self._reconsuming[request] = asked
        what = f"{message_position} and be done with all before it" if cumulative else str(message_position)
        world.trace.add(now, self.host.node.name, f"reconsume {what} later, by {delay} ms: {request}")
        self.host.node.pump()

    def _check_reconsumed(self, request: int) -> None:
        """INV-C10: the message's copy is stored, and a cumulative acknowledgement then covers all messages
        before it."""
        asked = self._reconsuming.pop(request, None)
        if asked is None:
            return
        record, message_position = asked.record, asked.message_position
        if not asked.is_safe():
            raise ViolationError(
                "INV-C10",
                f"{record.name}: {message_position} is to be reconsumed later, and no copy is stored",
            )
        if asked.cumulative:
            self._acknowledged += [(record, each) for each in record.subscription.through(message_position)]

    def _start_timeouts(self, all_taken: list[Taken], messages: list[Message]) -> None:
        """Start the acknowledgement timeout of these messages."""
        for (record, message_position), message in zip(all_taken, messages, strict=True):
            topic, position = record.subscription.topic, message_position[:2]
            size = len(topic.log[position].messages)
            count, now = message.redelivery_count, self.world.clock.now
            record.redelivery_timing.delivered(
                topic.chunks_of(position), size, message_position[2], count, now
            )

    def _acknowledge(self, taken: Taken) -> None:
        if taken[0].closed:  # its topic has left: acknowledgements have no effect
            return
        self.world.model.acknowledge(*taken, self.world.clock.now)
        self._acknowledged.append(taken)
        if self.attached:
            self._on_this_connection.append(taken)

    def _acknowledge_cumulative(self, taken: Taken, message: Message) -> None:
        record, message_position = taken
        if not record.closed:
            self.world.model.acknowledge_cumulative(record, message_position)
            record.deliveries.acknowledged_through(message_position, self.world.clock.now)
            self._acknowledged.append(taken)
        self._forget_kept_up_to(taken)
        self.host.node.client.acknowledge_cumulative(self.world.clock.now, self.handle, message)

    def _forget_kept_up_to(self, taken: Taken) -> None:
        record, message_position = taken
        for kept in [each for each in self.kept if each[0] is record and each[1] <= message_position]:
            del self.kept[kept]

    def _finish_kept(self) -> None:
        """Acknowledge the kept messages, in any order."""
        record = self.record
        assert record is not None
        if not self.kept:
            return
        kept = list(self.kept.items())
        self.kept.clear()
        self.stream.shuffle(kept)
        for taken, _ in kept:
            self._acknowledge(taken)
        self.host.node.client.acknowledge(self.world.clock.now, self.handle, [message for _, message in kept])

    def confirm(self) -> bool:
        """Ask the client to report when the acknowledgements so far are sent and, with receipts,
        confirmed."""
        if self.state != "open" or self.host.closing is not None:
            return False
        node = self.host.node
        request = node.client.flush_acknowledgements(self.world.clock.now, self.handle)
        self.confirmations[request] = self._acknowledged
        self._acknowledged = []
        self.host.routes[request] = self
        node.pump()
        return True

    def redeliver(self) -> bool:
        if self.state != "open" or self.host.closing is not None:
            return False
        for record in self.records:
            record.rewinds += 1
            record.redeliver_all += 1
            record.requests_to_rewind += 1
            if record.subscription.keys is not None:
                record.subscription.keys.asked_for_everything()
        node = self.host.node
        self.world.trace.add(self.world.clock.now, node.name, f"redeliver {self.handle}")
        node.client.redeliver_unacknowledged(self.world.clock.now, self.handle)
        left = node.client.available(self.handle)
        assert self.record is not None
        # A Failover consumer that is not the active one asks for nothing.
        if left and self.record.kind is not SubscriptionType.FAILOVER:
            raise ViolationError("INV-C8", f"{self.handle} asks for everything again, and keeps {left}")
        node.pump()
        return True

    def _refuse(self, messages: list[Message]) -> None:
        """Negatively acknowledge all messages that were taken together, in one call."""
        client, now, wall_time = self.host.node.client, self.world.clock.now, self.world.wall_time()
        model = self.world.model
        all_taken = [
            (record, model.deliver(record, message, now, wall_time))
            for message in messages
            for record in [self._record_of(message)]
        ]
        if self.plan.timeout:
            self._start_timeouts(all_taken, messages)
        refused: list[Message] = []
        for taken, message in zip(all_taken, messages, strict=True):
            self.kept.pop(taken, None)
            if self._is_acknowledged(taken):
                self._acknowledge(taken)
                client.acknowledge(now, self.handle, message)
            else:
                model.negative_acknowledge(*taken, message.redelivery_count, now)
                refused.append(message)
        client.negative_acknowledge(now, self.handle, refused)
        self.host.node.pump()

    def _check_acknowledged(self, all_taken: list[Taken]) -> None:
        by_topic: dict[ConsumerRecord, list[MessagePosition]] = {}
        for record, message_position in all_taken:
            by_topic.setdefault(record, []).append(message_position)
        for record, message_positions in by_topic.items():
            self.world.broker_watch.check_acknowledged(record, message_positions)
