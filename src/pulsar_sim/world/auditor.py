"""The auditor: a client of the simulator's own that is told nothing of faults.

Owns a subscription without consumers until the end, which keeps every log from being trimmed. At the end a
fresh reader reads each log from the beginning, and its messages are the truth. The auditor follows topics
that migrate.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import (
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    Output,
    RequestDone,
    RequestFailed,
)
from pulsar_sansio.model.config import ConsumerSpec, InitialPosition, SubscriptionType
from pulsar_sansio.model.message import Message

from ..apps.key_readers import decrypting
from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.nodes.client_node import ClientNode
from ..engine.profile import AUDIT
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.message_position import MessagePosition

if TYPE_CHECKING:
    from .world import World


class Auditor:
    """A client of the simulator's own: keeps every log from being trimmed, and reads it at the end."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.found: dict[str, list[MessagePosition]] = {topic: [] for topic in world.topics.names}
        self._topics: dict[int, str] = {}
        self._waiting = len(world.topics.names)
        self._closing: int | None = None
        self._closed = False
        self._last_news = world.clock.now
        self.node = ClientNode(world, name, world.client_config, self)
        for topic in world.topics.names:
            consumer_name = f"{name}.{topic.rpartition('/')[2]}"
            spec = ConsumerSpec(
                topic=topic,
                subscription=AUDIT,
                subscription_type=SubscriptionType.EXCLUSIVE,
                consumer_name=consumer_name,
                initial_position=InitialPosition.EARLIEST,
                max_pending_chunked_messages=1000,
                incomplete_chunked_message_timeout=world.profile.chunk_patience,
                **decrypting(world, consumer_name),
            )
            subscription = world.model.topics[topic].subscriptions[AUDIT]
            world.model.consumers[consumer_name] = ConsumerRecord(consumer_name, subscription, spec)
            handle = self.node.client.subscribe(world.clock.now, spec)
            world.client_watch.handles[consumer_name] = handle
            self._topics[handle] = topic
        self.node.pump()

    @property
    def is_ready(self) -> bool:
        return not self._waiting

    def ready(self) -> bool:
        return not self._waiting

    def complete(self) -> bool:
        """True when every known entry was read, and no message arrived for a while."""
        if self._waiting or self.world.clock.now < self._last_news + 2 * SECOND:
            return False
        topics = self.world.model.topics
        return all(len(found) >= topics[name].expected for name, found in self.found.items())

    def close(self) -> None:
        self._closing = self.node.client.close(self.world.clock.now, None)
        self.node.pump()

    def closed(self) -> bool:
        return self._closed

    def _acknowledge(self, consumer: int, topic: str, last: Message) -> None:
        """Acknowledge everything read. A migrated topic continues in the other cluster: the broker sends a
        consumer there once it has acknowledged everything here."""
        ledger, entry, _, index = last.message_id[:4]
        self.world.model.topics[topic].subscriptions[AUDIT].cumulative = (ledger, entry, max(index, 0))
        self.node.client.acknowledge_cumulative(self.world.clock.now, consumer, last.message_id)

    def on_output(self, output: Output) -> None:
        if isinstance(output, ConsumerReady):
            self._waiting -= 1
        elif isinstance(output, Deliverable):
            client, now = self.node.client, self.world.clock.now
            while messages := client.take(now, output.consumer, 1000):
                self._last_news = now
                found = self.found[self._topics[output.consumer]]
                topic = self._topics[output.consumer]
                if topic in self.world.administrator.migrated:
                    self._acknowledge(output.consumer, topic, messages[-1])
                for message in messages:
                    ledger, entry, _, index = message.message_id[:4]
                    found.append((ledger, entry, max(index, 0)))
        elif (
            isinstance(output, Detached) and self._topics[output.id] not in self.world.administrator.migrated
        ):
            raise ViolationError("INV-N7", f"{self.node.name} lost a sound connection: {output.cause}")
        elif isinstance(output, (ConsumerFailed, RequestFailed)):
            raise ViolationError("INV-N5", f"{self.node.name}: {output.error}")
        elif isinstance(output, RequestDone) and output.request == self._closing:
            self._closed = True
