"""Several brokers over one store: which topics this one serves, and how they come and go.

One `Broker` is one node and knows of no other. Who runs several (a simulator, an embedder with a cluster of
their own) decides which topic is served where, and owes each broker four things: the answer to `owner`, the
topics that it is to serve (`adopt`), the news when it is to stop, in good order (`release`) or because
somebody else serves the topic already and the store takes no more of its records (`lose`), and which topics
there are, whoever serves them (`topic_made`, `topic_gone`), as clients ask any broker for the topics of a
namespace. A broker that was given no `owner` serves whatever it is asked for.

Policies, partitions and schemas are not owned by anybody; to keep the brokers' copies of them alike is the
embedder's business, too. Ledger ids are unique within a topic, not over the brokers.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ...model.errors import LocalProtocolError
from ...model.topic_name import TopicName
from ..outputs import Released
from ..storage.store import StoredTopic
from ..topics.producers import Producer
from ..topics.registry import AnyTopic
from ..topics.topic import Topic
from .parts import Parts

if TYPE_CHECKING:
    from ..serving.connection import Connection
    from ..topics.nonpersistent import NonPersistentSubscription
    from ..topics.subscription import Subscription


@dataclass(frozen=True, slots=True)
class OtherBroker:
    """Another broker: it serves a topic, or knows more about who does.

    `service_url`, `service_url_tls`: its addresses. `redirect`: a client that asks where the topic is asks
    again there (LOOKUP-06), with the flag `authoritative`; else it is told to connect there.
    """

    service_url: str
    service_url_tls: str | None = None
    redirect: bool = False
    authoritative: bool = True


class Owner(Protocol):
    """Who serves a topic that this broker does not hold."""

    def __call__(self, topic: str, authoritative: bool) -> OtherBroker | None:
        """None: this broker does; the topic exists nowhere yet, and it may make it.

        `topic` is a full name, `authoritative` what a lookup said. Raises `ServiceNotReady` when there is
        nobody to be named.
        """
        ...


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

    # --- what an embedder commands --------------------------------------------------------------------

    def adopt(self, now: int, topic: str, stored: StoredTopic) -> None:
        """Serve a persistent topic that the store holds, and which no other broker can write any more.

        Raises `LocalProtocolError` when it is served here or is still being released.
        """
        self._context.now = now
        name = TopicName.parse(topic)
        if str(name) in self._topics.by_name or str(name) in self._topics.releasing:
            raise LocalProtocolError(f"topic {name} is served here")
        self._parts.services.ledger_ids.reserve(stored.ledgers)
        self._topics.restore(name, stored)
        self._settle()

    def release(self, now: int, topic: str, moved_to: OtherBroker | None = None) -> None:
        """Stop serving a topic: everybody is sent away, to `moved_to` if that is known already.

        What was taken is confirmed as ever. `Released` says when all of it is durable. Raises
        `LocalProtocolError` where it is not served.
        """
        self._context.now = now
        found = self._served(topic)
        del self._topics.by_name[found.name]
        self._topics.releasing.add(found.name)
        found.closing = True
        if isinstance(found, Topic):
            found.compaction.stop()
        for producer in [*found.producers.by_name.values(), *found.producers.waiting]:
            producer.connection.close_producer(producer, moved_to)
        self._disconnect_consumers(found, moved_to)
        self._journal.flush_cursors()

        def gone() -> None:
            self._topics.releasing.discard(found.name)
            if not (isinstance(found, Topic) and found.lost):
                self._context.emit(Released(found.name))

        self.detach(found)
        self._journal.confirm(gone)
        self._settle()

    def lose(self, now: int, topic: str, moved_to: OtherBroker | None = None) -> None:
        """The topic is served elsewhere already: what of it is not durable is forgotten, never confirmed.

        So is what one of that name has left that was released or deleted here. Everybody is sent away. To be
        called before `persisted` of the write whose records of this topic the store refused.
        """
        self._context.now = now
        name = str(TopicName.parse(topic))
        self._journal.discard_topic(name)
        lost = [each for each in self._departed if each.name == name]
        found = self._topics.by_name.pop(name, None)
        if found is not None:
            found.closing = True
            if isinstance(found, Topic):
                found.compaction.stop()
                lost.append(found)
        for each in lost:
            each.lost = True
        # Who was fenced out, and is not drained yet, is known to its connection alone.
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
        """A topic, or a partition, is there now, wherever it is served: it is in lists from now on, and who
        watches them is told."""
        self._context.now = now
        self._topics.names.add(str(TopicName.parse(topic)))
        self._settle()

    def topic_gone(self, now: int, topic: str) -> None:
        """It was deleted."""
        self._context.now = now
        self._topics.names.remove(str(TopicName.parse(topic)))
        self._settle()

    def detach(self, topic: AnyTopic) -> None:
        """It is not served here any more; what was taken of it is confirmed when it is durable."""
        if isinstance(topic, Topic):
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
