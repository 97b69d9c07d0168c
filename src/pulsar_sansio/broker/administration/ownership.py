"""`Ownership`: which topics one broker of several serves, where all have one store.

One `Broker` is one node and knows of no other. An embedder that runs several decides which node serves each
topic. It answers `Owner`, and tells each broker which topics to serve (`adopt`) and when to stop. The stop is
either orderly (`release`) or because another broker serves the topic already and the store refuses records
(`lose`). Clients may ask any broker for the topics of a namespace, so each broker is told which topics exist
(`topic_made`, `topic_gone`). A broker without an `Owner` serves every topic.

Policies, partitions and schemas have no owner: the embedder keeps the brokers' copies of them equal. Ledger
ids are unique within a topic, not over all brokers.
"""

from typing import TYPE_CHECKING

from ...model.errors import LocalProtocolError
from ...model.topic_name import TopicName
from ..outputs import Released
from ..owner import OtherBroker
from ..storage.store import StoredTopic
from ..topics.producing.producer import Producer
from ..topics.registry import AnyTopic
from ..topics.topic import Topic
from .parts import Parts

if TYPE_CHECKING:
    from ..serving.connection import Connection
    from ..topics.nonpersistent import NonPersistentSubscription
    from ..topics.subscription import Subscription


class Ownership:
    """The commands of an embedder that divides topics among several brokers."""

    def __init__(self, parts: Parts, links: "dict[int, Connection]") -> None:
        self._parts = parts
        self._context = parts.services.context
        self._journal = parts.services.journal
        self._topics = parts.topics
        self._settle = parts.settle
        self._links = links
        self._departed: dict[Topic, None] = {}
        """Topics that were released or deleted, and have entries that are not durable yet."""

    # --- commands of the embedder ---------------------------------------------------------------------

    def adopt(self, now: int, topic: str, stored: StoredTopic) -> None:
        """Serve a persistent topic that the store holds, and that no other broker can write any more.

        Raises `LocalProtocolError` while the topic is served here or is still being released.
        """
        self._context.now = now
        name = TopicName.parse(topic)
        if str(name) in self._topics.by_name or str(name) in self._topics.releasing:
            raise LocalProtocolError(f"topic {name} is served here")
        self._parts.services.ledger_ids.reserve(stored.ledgers)
        self._topics.restore(name, stored)
        self._settle()

    def release(self, now: int, topic: str, moved_to: OtherBroker | None = None) -> None:
        """Stop serving a topic. Its clients are disconnected, and sent to `moved_to` where that is given.

        Messages that were accepted are confirmed once durable; then `Released` follows. Raises
        `LocalProtocolError` where the topic is not served.
        """
        self._context.now = now
        found = self._served(topic)
        del self._topics.by_name[found.name]
        self._topics.releasing.add(found.name)
        found.closing = True
        found.rates.close()
        if isinstance(found, Topic):
            found.compaction.stop()
        for producer in [*found.producers.by_name.values(), *found.producers.waiting]:
            producer.connection.close_producer(producer, moved_to)
        self._disconnect_consumers(found, moved_to)
        self._journal.flush_cursors()

        def durable() -> None:
            self._topics.releasing.discard(found.name)
            if not (isinstance(found, Topic) and found.lost):
                self._context.emit(Released(found.name))

        self.detach(found)
        self._journal.confirm(durable)
        self._settle()

    def lose(self, now: int, topic: str, moved_to: OtherBroker | None = None) -> None:
        """Stop serving a topic that another broker serves already. Entries that are not durable are never
        confirmed.

        This holds for topics of that name that were released or deleted here, too. All clients are
        disconnected. To be called before `persisted` of the write whose records of this topic the store
        refused.
        """
        self._context.now = now
        name = str(TopicName.parse(topic))
        self._journal.discard_topic(name)
        lost = [each for each in self._departed if each.name == name]
        found = self._topics.by_name.pop(name, None)
        if found is not None:
            found.closing = True
            found.rates.close()
            if isinstance(found, Topic):
                found.compaction.stop()
                found.discard()
                lost.append(found)
        for each in lost:
            each.lost = True
        # Only its connection knows a fenced producer that still waits for receipts.
        for connection in list(self._links.values()):
            for producer in list(connection.producers.values()):
                if isinstance(producer, Producer) and (producer.topic is found or producer.topic in lost):
                    connection.close_producer_now(producer, moved_to)
        if found is not None:
            self._disconnect_consumers(found, moved_to)
        for each in lost:
            each.discard_pending()
        self._journal.discard_topic(name)
        self._settle()

    def topic_made(self, now: int, topic: str) -> None:
        """Record that a topic, or a partition, exists on some broker. Clients list it, and watchers are
        notified."""
        self._context.now = now
        self._topics.names.add(str(TopicName.parse(topic)))
        self._settle()

    def topic_gone(self, now: int, topic: str) -> None:
        """Record that a topic was deleted."""
        self._context.now = now
        self._topics.names.remove(str(TopicName.parse(topic)))
        self._settle()

    def detach(self, topic: AnyTopic) -> None:
        """Record that a topic is not served here any more. Its accepted messages are confirmed once they are
        durable."""
        if isinstance(topic, Topic):
            topic.discard()
            self._departed[topic] = None
            self._journal.confirm(lambda: self._departed.pop(topic))

    @staticmethod
    def _disconnect_consumers(topic: AnyTopic, moved_to: OtherBroker | None) -> None:
        subscriptions: list[Subscription | NonPersistentSubscription] = list(topic.subscriptions.values())
        for subscription in subscriptions:
            subscription.unload(moved_to)

    def _served(self, topic: str) -> AnyTopic:
        found = self._topics.by_name.get(str(TopicName.parse(topic)))
        if found is None:
            raise LocalProtocolError(f"no topic {topic} is served here")
        return found
