"""Non-persistent topics store nothing: a message that cannot be delivered at once is dropped.

Messages have no ids (0:0 on the wire), acknowledgements change nothing, and there is no redelivery and no
cursor. A subscription still chooses a consumer by its type (TOPIC-06).
"""

from bisect import insort
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...model.errors import ConsumerBusy, ServiceNotReady
from ...model.topic_name import TopicName
from ...wire import MessageMetadata, Send
from ..dispatching.consumer import Consumer, SubType
from ..dispatching.key_hash import Sticky, sticky_key
from ..dispatching.key_ring import Selector, automatic
from ..dispatching.single_active import ConflictingConsumer
from ..policies import Policies
from ..records import EntryAdded
from ..throttling.topic_rates import TopicRates
from .producing.producer import Producer
from .producing.producers import Producers, going_away
from .producing.publish_checks import check_message

if TYPE_CHECKING:
    from ..owner import OtherBroker
    from ..services import BrokerServices


class NonPersistentSubscription:
    """A subscription without a cursor. It is its own dispatcher, since there is nothing to read again."""

    durable = False
    moves_to = None
    backlog = 0
    expired = 0
    expired_at = -1
    advanced_at = -1
    properties = ()
    throttle = None
    """Dispatch rates hold for persistent topics only, as in the Java broker."""

    def __init__(self, topic: "NonPersistentTopic", name: str) -> None:
        self.topic = topic
        self.name = name
        self.kind: int | None = None
        self.consumers: list[Consumer] = []
        self.selector: Selector = automatic(topic.services.config)
        self.dropped = 0
        """Messages for which no consumer was available."""
        self._out_before = (0, 0)
        """Messages and bytes delivered to consumers that have been removed."""
        self.flowed_at = -1
        """The moment of the last FLOW (ns); -1 is never."""
        self._turn = 0
        self._active: Consumer | None = None
        """Exclusive and Failover: the consumer that receives the messages; None until one is chosen."""
        self.dispatcher: NonPersistentSubscription = self

    # --- consumers ------------------------------------------------------------------------------------

    def check(self, newcomer: Consumer, durable: bool) -> None:
        """Raise the refusal that `newcomer` gets. `durable` is ignored."""
        if not self.consumers:
            self.topic.check_first_key_shared(newcomer)
            return
        if newcomer.kind != self.kind:
            raise ConsumerBusy("Subscription is of different type")
        if newcomer.kind == SubType.Exclusive:
            raise ConflictingConsumer(self.consumers[0])
        if newcomer.kind == SubType.Key_Shared:
            if newcomer.sticky != isinstance(self.selector, Sticky):
                raise ConsumerBusy("Subscription is of different type of key shared mode")
            if isinstance(self.selector, Sticky):
                self.selector.check(newcomer.sticky_ranges)
        limit = self.topic.policies.max_consumers_per_subscription
        if limit and len(self.consumers) >= limit:
            raise ConsumerBusy("Subscription reached max consumers limit")

    def add(self, consumer: Consumer) -> None:
        if not self.consumers:
            self.kind = consumer.kind
            self.selector = Sticky() if consumer.sticky else automatic(self.topic.services.config)
        consumer.subscription = self
        self._active = None
        insort(self.consumers, consumer, key=lambda each: each.priority)
        self.selector.add(consumer)

    def remove(self, consumer: Consumer) -> None:
        consumer.closed = True
        if consumer not in self.consumers:
            return
        self.consumers.remove(consumer)
        self._active = None
        self.selector.remove(consumer)
        messages, size = self._out_before
        self._out_before = messages + consumer.messages_out, size + consumer.bytes_out
        if not self.consumers and self.topic.subscriptions.pop(self.name, None) is not None:
            _, _, messages, size = self.counters()
            messages_before, size_before = self.topic.out_of_deleted
            self.topic.out_of_deleted = messages_before + messages, size_before + size

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in (always 0), messages and bytes out."""
        messages, size = self._out_before
        for consumer in self.consumers:
            messages, size = messages + consumer.messages_out, size + consumer.bytes_out
        return 0, 0, messages, size

    # --- dispatch -------------------------------------------------------------------------------------

    def deliver(self, data: bytes, messages: int, metadata: MessageMetadata) -> None:
        """Deliver to the consumer whose turn it is, or drop the messages."""
        consumer = self._choose(metadata)
        if consumer is None or not consumer.available:
            self.dropped += messages
        else:
            consumer.deliver(EntryAdded(self.topic.name, 0, 0, messages, 0, data), messages)
            consumer.unacked = 0

    def _choose(self, metadata: MessageMetadata) -> Consumer | None:
        if self.kind == SubType.Key_Shared:
            return self.selector.owner(self.selector.slot_of(sticky_key(metadata)))
        if self.kind != SubType.Shared:
            if self._active is None:
                best = [each for each in self.consumers if each.priority == self.consumers[0].priority]
                self._active = min(best, key=lambda each: each.name)
            return self._active
        count = len(self.consumers)
        for step in range(count):
            consumer = self.consumers[(self._turn + step) % count]
            if consumer.available:
                self._turn = (self._turn + step + 1) % count
                return consumer
        return None

    def grant(self, consumer: Consumer, permits: int) -> None:
        consumer.flowed = True
        consumer.flowed_at = self.flowed_at = consumer.connection.context.now
        consumer.permits += permits

    # --- without effect here --------------------------------------------------------------------------

    def acknowledge(self, consumer: Consumer, ids: list[tuple[int, int, int | None]]) -> None:
        """Do nothing: no message is stored."""

    def acknowledge_cumulative(
        self, consumer: Consumer, ledger_id: int, entry_id: int, ack_set: int | None
    ) -> None:
        """Do nothing: no message is stored."""

    def redeliver(self, consumer: Consumer, ids: list[tuple[int, int]], epoch: int | None) -> None:
        """Do nothing: no message is stored."""

    def on_subscribed(self, consumer: Consumer) -> None:
        """Do nothing: clients are not told of the active consumer."""

    def wake(self, consumer: Consumer) -> None:
        """Do nothing: `deliver` looks at every consumer."""

    def dispatch(self) -> None:
        """Do nothing: no message waits."""

    def check_end_of_topic(self) -> None:
        """Do nothing: non-persistent topics are not terminated."""

    def unacked(self, consumer: Consumer) -> int:
        return 0

    def confirm(self, effect: Callable[[], None]) -> None:
        effect()

    # --- end ------------------------------------------------------------------------------------------

    def unsubscribe(self, consumer: Consumer, force: bool) -> None:
        """Detach the consumer; with `force`, disconnect the others."""
        consumer.connection.detach_consumer(consumer)
        if force:
            self.unload()

    def unload(self, moved_to: "OtherBroker | None" = None) -> None:
        """Disconnect all consumers, and send them to another broker where that is known."""
        for consumer in list(self.consumers):
            consumer.connection.close_consumer(consumer, moved_to)

    def delete(self) -> None:
        """Disconnect all consumers; they may subscribe again."""
        self.unload()


class NonPersistentTopic:
    """One non-persistent topic, which exists while it has clients."""

    persistent = False
    terminated_at = None
    lost = False
    empty = True
    deduplication = None

    def __init__(self, services: "BrokerServices", name: TopicName, policies: Policies) -> None:
        self.services = services
        self.topic_name = name
        self.name = str(name)
        self.partition = name.partition
        self.policies = policies
        self.rates = TopicRates(services.context, policies, services.publish_limiter)
        self.producers = Producers(self, None)
        self.subscriptions: dict[str, NonPersistentSubscription] = {}
        self.closing = False
        self.messages_in = 0
        self.bytes_in = 0
        self.out_of_deleted = (0, 0)
        """Messages and bytes delivered by subscriptions that have been deleted."""

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in, messages and bytes out."""
        messages, size = self.out_of_deleted
        for subscription in self.subscriptions.values():
            _, _, more, bytes_out = subscription.counters()
            messages, size = messages + more, size + bytes_out
        return self.messages_in, self.bytes_in, messages, size

    def save(self) -> None:
        """Do nothing: the topic is not stored."""

    def set_policies(self, policies: Policies) -> None:
        self.policies = policies
        self.rates.apply(policies)

    def check_first_key_shared(self, newcomer: Consumer) -> None:
        """Raise the refusal that the first consumer of a subscription gets for its hash ranges."""
        if newcomer.kind == SubType.Key_Shared and newcomer.sticky:
            Sticky().check(newcomer.sticky_ranges)

    def publish(self, producer: Producer, send: Send) -> bool:
        """Deliver to every subscription, and confirm at once. Raises the refusal."""
        if self.closing:
            raise ServiceNotReady("The topic is being closed")
        data, messages, metadata = check_message(
            self.policies, self.name, send, producer.connection.metadata_decoder
        )
        if self.rates.limits_publishing:
            self.rates.charge(producer.connection, messages, len(data))
        self.messages_in += messages
        self.bytes_in += len(data)
        producer.messages_in += messages
        producer.bytes_in += len(data)
        for subscription in list(self.subscriptions.values()):
            subscription.deliver(data, messages, metadata)
        producer.pending += 1
        producer.connection.pending_publishes += 1
        producer.connection.confirm_send(producer, send.sequence_id, send.highest_sequence_id, 0, 0)
        return True

    def last_sequence_id(self, name: str) -> int:
        return -1

    migrated_to = None
    """Only persistent topics move to other clusters."""

    def subscribe(self, name: str, mark_delete: int, durable: bool) -> NonPersistentSubscription:
        subscription = NonPersistentSubscription(self, name)
        self.subscriptions[name] = subscription
        return subscription

    @property
    def consumer_count(self) -> int:
        return sum(len(subscription.consumers) for subscription in self.subscriptions.values())

    def detach_producer(self, producer: Producer) -> None:
        self.producers.detach(producer)

    def unload(self) -> None:
        """Disconnect all producers and consumers."""
        self.rates.close()
        self.rates = TopicRates(self.services.context, self.policies, self.services.publish_limiter)
        self.producers.disconnect_all(going_away())
        for subscription in list(self.subscriptions.values()):
            subscription.unload()

    def delete(self) -> None:
        self.closing = True
        self.unload()
