"""What an administrator does with topics: create, grow, unload, terminate, delete, list, look inside.

The part of `Administration` that knows topics; its rules are the same. A partitioned topic is only a name
over its partitions (TOPIC-03): what is done to it is done to each of them.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...core.context import Context
from ...model.errors import InvalidConfiguration, InvalidTopicName, TopicNameRefused, TopicNotFound
from ...model.message_id import MessageId
from ...model.service_url import ServiceUrl
from ...model.topic_name import TopicName
from ..admin_errors import AlreadyExists, InUse, LimitReached, NotApplicable, NotFound
from ..config import BrokerConfig
from ..outputs import Output
from ..policies import Policies
from ..rates import Rates
from ..records import GrantsSaved, MigratedTo, PartitionsSaved, PropertiesSaved
from ..serving.lookups import parse_topic
from ..storage.journal import Journal
from ..topics.schemas import Schemas
from ..topics.topic import Topic
from .inspection import StatsOptions, internal_stats, sum_of_stats, topic_stats
from .subscription_admin import (
    StoredMessage,
    SubscriptionAdministration,
    stored_message,
    text_pairs,
)

if TYPE_CHECKING:
    from ..broker import AnyTopic

MAX_PARTITIONS = 10_000
"""More is taken for a slip of the pen."""

NO_ROOM_FOR_TOPICS = "Exceed maximum number of topics in namespace."


class TopicAdministration(SubscriptionAdministration):
    """The administrator's commands that name a topic."""

    config: BrokerConfig
    context: Context[Output]
    journal: Journal
    schemas: Schemas
    defaults: Policies
    policies: dict[str, Policies]
    partitions: dict[str, int]
    properties: dict[str, tuple[tuple[str, str], ...]]
    grants: dict[str, GrantsSaved]
    rates: Rates
    all_topics: "dict[str, AnyTopic]"
    _leaving: set[str]

    if TYPE_CHECKING:

        def _settle(self) -> None: ...
        def effective_policies(self, topic: TopicName) -> Policies: ...
        def make_topic(self, name: TopicName) -> AnyTopic: ...
        def topic_for_use(self, name: TopicName, create: bool) -> AnyTopic: ...
        def partitions_for(self, topic: TopicName, create: bool) -> int: ...
        def has_room(self, namespace: str, count: int) -> bool: ...
        def topic_names(self, namespace: str) -> list[str]: ...
        def _depart(self, topic: AnyTopic) -> None: ...

    # --- making and growing ---------------------------------------------------------------------------

    def create_topic(self, now: int, topic: str, properties: Mapping[str, str] | None = None) -> None:
        """A topic without partitions, or a missing partition of a topic that has them.

        Raises `AlreadyExists`, `NotFound` without the namespace, `LimitReached`, `InvalidConfiguration` for
        the name of a partition that cannot be or for properties that are not text.
        """
        self.context.now = now
        name = self._new_name(topic)
        index = name.partition
        if index >= 0 and index >= self.partitions.get(str(name.base), 0):
            raise InvalidConfiguration(f"{topic} is named like a partition, and {name.base} has no such one")
        pairs = text_pairs(properties)
        self._check_limit(name, 1)
        self.make_topic(name)
        self._save_properties(name, pairs)
        self._settle()

    def create_partitioned_topic(
        self, now: int, topic: str, partitions: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """A topic of `partitions` (1 to 10 000) partitions, which are created too."""
        self.context.now = now
        name = self._new_name(topic)
        self._check_partitions(partitions)
        if name.partition >= 0:
            raise InvalidConfiguration(f"{topic} is itself the name of a partition")
        pairs = text_pairs(properties)
        self._check_limit(name, partitions)
        self._create_partitions(name, partitions)
        self._save_properties(name, pairs)
        self._settle()

    def update_partitions(self, now: int, topic: str, partitions: int) -> None:
        """More partitions; fewer is not possible. Raises `NotFound`, `InvalidConfiguration`."""
        self.context.now = now
        name = TopicName.parse(topic)
        present = self.partitions.get(str(name))
        if present is None:
            raise NotFound(f"{name} is no partitioned topic")
        self._check_partitions(partitions)
        if partitions <= present:
            raise InvalidConfiguration(f"partitions: more than the {present} there are, not {partitions}")
        self._create_partitions(name, partitions)
        self._settle()

    def _new_name(self, topic: str) -> TopicName:
        try:
            name = parse_topic(topic)
        except TopicNameRefused as error:
            raise InvalidTopicName(error.text) from None
        self._check_namespace(name.namespace_name)
        if str(name) in self.all_topics or str(name) in self.partitions or str(name) in self._leaving:
            raise AlreadyExists(f"topic {name} exists")
        return name

    def _check_limit(self, name: TopicName, count: int) -> None:
        if not self.has_room(name.namespace_name, count):
            raise LimitReached(NO_ROOM_FOR_TOPICS)

    def _check_namespace(self, namespace: str) -> None:
        if not isinstance(namespace, str) or namespace not in self.policies or "://" in namespace:
            raise NotFound(f"no namespace {namespace}")

    @staticmethod
    def _check_partitions(partitions: int) -> None:
        if (
            isinstance(partitions, bool)
            or not isinstance(partitions, int)
            or not 1 <= partitions <= MAX_PARTITIONS
        ):
            raise InvalidConfiguration(f"partitions: 1 to {MAX_PARTITIONS}, not {partitions!r}")

    def _create_partitions(self, name: TopicName, partitions: int) -> None:
        """New partitions of a topic get the subscriptions that the present ones have."""
        first = self.all_topics.get(str(name.partition_name(0)))
        self.partitions[str(name)] = partitions
        self.journal.records.append(PartitionsSaved(str(name), partitions))
        for index in range(partitions):
            partition = name.partition_name(index)
            if str(partition) in self.all_topics or str(partition) in self._leaving:
                continue
            made = self.make_topic(partition)
            if isinstance(made, Topic) and isinstance(first, Topic):
                for subscription in first.subscriptions.values():
                    if subscription.durable:
                        made.subscribe(subscription.name, made.log.first - 1, True, subscription.properties)

    # --- properties -----------------------------------------------------------------------------------

    def topic_properties(self, topic: str) -> dict[str, str]:
        """Give the properties that an administrator keeps with the topic. Raises `NotFound`."""
        return dict(self.properties.get(self._existing(topic), ()))

    def update_topic_properties(self, now: int, topic: str, properties: Mapping[str, str]) -> None:
        """Set these and keep the others. Raises `NotFound`, `InvalidConfiguration`."""
        self._change_properties(now, self._existing(topic), properties)

    def remove_topic_property(self, now: int, topic: str, key: str) -> None:
        """Nothing happens where there is none of that key. Raises `NotFound`."""
        self._change_properties(now, self._existing(topic), {}, (key,))

    def namespace_properties(self, namespace: str) -> dict[str, str]:
        """Raises `NotFound`."""
        self._check_namespace(namespace)
        return dict(self.properties.get(namespace, ()))

    def update_namespace_properties(self, now: int, namespace: str, properties: Mapping[str, str]) -> None:
        """Set these and keep the others. Raises `NotFound`, `InvalidConfiguration`."""
        self._check_namespace(namespace)
        self._change_properties(now, namespace, properties)

    def remove_namespace_properties(self, now: int, namespace: str, key: str | None = None) -> None:
        """None removes all. Nothing happens where there is none of that key. Raises `NotFound`."""
        present = self.namespace_properties(namespace)
        self._change_properties(now, namespace, {}, present if key is None else (key,))

    def _change_properties(
        self, now: int, scope: str, changed: Mapping[str, str], removed: Iterable[str] = ()
    ) -> None:
        self.context.now = now
        properties = {**dict(self.properties.get(scope, ())), **changed}
        for key in removed:
            properties.pop(key, None)
        pairs = text_pairs(properties)
        self.properties[scope] = pairs
        if not pairs:
            del self.properties[scope]
        self.journal.records.append(PropertiesSaved(scope, pairs))
        self._settle()

    def _save_properties(self, name: TopicName, pairs: tuple[tuple[str, str], ...]) -> None:
        if pairs:
            self.properties[str(name)] = pairs
            self.journal.records.append(PropertiesSaved(str(name), pairs))

    # --- single entries -------------------------------------------------------------------------------

    def read_entry(self, topic: str, ledger_id: int, entry_id: int) -> StoredMessage:
        """A durable entry by its id.

        Raises `NotFound`, or `NotApplicable` for partitioned and non-persistent topics.
        """
        found = self._persistent_topic(topic)
        offset = found.log.exact(ledger_id, entry_id)
        if offset is None or offset >= found.log.durable_end:
            raise NotFound(f"no entry {ledger_id}:{entry_id} in {topic}")
        return stored_message(found, offset)

    def examine(self, topic: str, number: int, *, from_end: bool) -> StoredMessage:
        """The `number`th durable entry, from 1, of those kept; the nearest one where there are fewer.

        Raises `NotFound` for an empty topic too, or `NotApplicable` as `read_entry`.
        """
        found = self._persistent_topic(topic)
        first, end = found.log.first, found.log.durable_end
        if first >= end:
            raise NotFound(f"no entries in {topic}")
        offset = end - number if from_end else first + number - 1
        return stored_message(found, min(max(offset, first), end - 1))

    def message_id_at(self, topic: str, publish_time: int) -> MessageId:
        """The first durable entry published at or after `publish_time` (ms since 1970), else the next one.

        Raises `NotFound`, or `NotApplicable` as `read_entry`.
        """
        found = self._persistent_topic(topic)
        ledger_id, entry_id = found.log.position(found.log.find_publish_time(publish_time))
        return MessageId(ledger_id, entry_id, found.partition)

    # --- finding --------------------------------------------------------------------------------------

    def _existing(self, topic: str) -> str:
        """The full name of a topic, partitioned or not. Raises `NotFound`."""
        name = str(TopicName.parse(topic))
        if name not in self.all_topics and name not in self.partitions:
            raise NotFound(f"no topic {name}")
        return name

    def _topic(self, topic: str) -> "AnyTopic":
        """Raises `NotFound`, or `NotApplicable` for a partitioned one."""
        name = self._existing(topic)
        if name in self.partitions:
            raise NotApplicable(f"{name} is partitioned: name one of its partitions")
        return self.all_topics[name]

    def _persistent_topic(self, topic: str) -> Topic:
        found = self._topic(topic)
        if not isinstance(found, Topic):
            raise NotApplicable(f"{found.name} is not persistent")
        return found

    def _topics_of(self, topic: str) -> "list[AnyTopic]":
        """The topic, or every partition of it that is there. Raises `NotFound`."""
        name = self._existing(topic)
        if name not in self.partitions:
            return [self.all_topics[name]]
        base = TopicName.parse(name)
        names = [str(base.partition_name(index)) for index in range(self.partitions[name])]
        return [self.all_topics[each] for each in names if each in self.all_topics]

    def topics(self, namespace: str) -> list[str]:
        """Full names of the namespace's topics, partitions one by one. Raises `NotFound`."""
        self._check_namespace(namespace)
        return self.topic_names(namespace)

    def partitioned_topics(self, namespace: str) -> list[str]:
        """Full names of the namespace's partitioned topics. Raises `NotFound`."""
        self._check_namespace(namespace)
        return sorted(name for name in self.partitions if TopicName.parse(name).namespace_name == namespace)

    def topic_partitions(self, topic: str) -> int:
        """How many partitions; 0 for a topic without. Raises `NotFound`."""
        return self.partitions.get(self._existing(topic), 0)

    # --- unloading and ending -------------------------------------------------------------------------

    def unload(self, now: int, topic: str) -> None:
        """Send producers and consumers away; they come back and find what is durable (GAP-37)."""
        self.context.now = now
        for each in self._topics_of(topic):
            each.unload()
        self._settle()

    def terminate(self, now: int, topic: str) -> MessageId:
        """No more messages. The id of the last one; of an empty topic it is its ledger's and -1.

        Raises `NotFound`, or `NotApplicable` for partitioned and non-persistent topics.
        """
        self.context.now = now
        only = self._persistent_topic(topic)
        only.terminate()
        self._settle()
        ledger_id, entry_id = only.log.position(only.log.end - 1)
        return MessageId(ledger_id, entry_id, only.partition)

    def compact(self, now: int, topic: str) -> None:
        """Begin to compact a topic, or each of its partitions that does not do so already.

        Raises `NotFound`, `NotApplicable` for a topic that is not persistent, `InUse` where all of it is
        being compacted.
        """
        self.context.now = now
        found = self._topics_of(topic)
        persistent = [each for each in found if isinstance(each, Topic)]
        if len(persistent) != len(found):
            raise NotApplicable(f"{topic} is not persistent")
        idle = [each for each in persistent if not each.compaction.running]
        if persistent and not idle:
            raise InUse(f"{topic} is being compacted")
        for each in idle:
            each.compaction.start()
        self._settle()

    def compaction_status(self, topic: str) -> tuple[str, str]:
        """NOT_RUN, RUNNING, SUCCESS or ERROR since the broker serves the topic, and the reason of an error.

        Raises `NotFound`, or `NotApplicable` for partitioned and non-persistent topics.
        """
        compaction = self._persistent_topic(topic).compaction
        return compaction.status, compaction.last_error

    def migrate(
        self, now: int, topic: str, service_url: str | None, service_url_tls: str | None = None
    ) -> None:
        """The topic, or each of its partitions, goes on in the cluster of these service URLs.

        Producers are sent there at once, each subscription's consumers when they have acknowledged everything
        that is here; whoever comes later, too. Copying what is not acknowledged is not done, nor asked for.
        Raises `NotFound`, `NotApplicable` for non-persistent topics, `InvalidServiceUrl`,
        `InvalidConfiguration` where neither URL is given.
        """
        self.context.now = now
        if service_url is None and service_url_tls is None:
            raise InvalidConfiguration("service_url, service_url_tls: one of them at least")
        for url in (service_url, service_url_tls):
            if url is not None:
                ServiceUrl.parse(url)
        topics = [each for each in self._topics_of(topic) if isinstance(each, Topic)]
        if not topics:
            raise NotApplicable(f"{topic} is not persistent")
        for each in topics:
            each.migrate(MigratedTo(service_url, service_url_tls))
        self._settle()

    def delete_topic(self, now: int, topic: str, force: bool = False) -> None:
        """Away with the topic, partitions and all.

        Raises `NotFound`, or `InUse` while producers or consumers are connected, unless `force`.
        """
        self.context.now = now
        topics = self._topics_of(topic)
        if not force:
            for each in topics:
                connected = len(each.producers.by_name) + each.consumer_count
                if connected:
                    raise InUse(f"Topic has {connected} connected producers/consumers")
        name = self._existing(topic)
        for each in topics:
            each.delete()
            del self.all_topics[each.name]
            self._depart(each)
            self._forget_scope(each.name)
        if self.partitions.pop(name, None):
            self.journal.records.append(PartitionsSaved(name, 0))
            self._forget_scope(name)
        if TopicName.parse(topic).partition < 0:
            self.schemas.forget(TopicName.parse(topic))
        self._settle()

    def _forget_scope(self, scope: str) -> None:
        """Forget everything that is kept for a namespace or topic, which is deleted."""
        self.policies.pop(scope, None)
        self.properties.pop(scope, None)
        self.grants.pop(scope, None)

    # --- looking --------------------------------------------------------------------------------------

    def stats(self, topic: str, options: StatsOptions | None = None) -> dict[str, Any]:
        """As `GET …/stats`. Raises `NotFound`, or `NotApplicable` for a partitioned topic."""
        return topic_stats(self._topic(topic), self.rates, options or StatsOptions())

    def partitioned_stats(
        self, topic: str, options: StatsOptions | None = None, per_partition: bool = True
    ) -> dict[str, Any]:
        """As `GET …/partitioned-stats`: the sum, and with `per_partition` each one's.

        Raises `NotFound`, `NotApplicable`.
        """
        name = self._partitioned(topic)
        each = {
            found.name: topic_stats(found, self.rates, options or StatsOptions())
            for found in self._topics_of(name)
        }
        summed = sum_of_stats(list(each.values()))
        summed["metadata"] = self._partitions_metadata(name)
        summed["partitions"] = each if per_partition else {}
        return summed

    def internal_stats(self, topic: str) -> dict[str, Any]:
        """As `GET …/internalStats`: ledgers and cursors.

        Raises `NotFound`, or `NotApplicable` for a partitioned topic.
        """
        return internal_stats(self._topic(topic))

    def partitioned_internal_stats(self, topic: str) -> dict[str, Any]:
        """As `GET …/partitioned-internalStats`. Raises `NotFound`, `NotApplicable`."""
        name = self._partitioned(topic)
        partitions = {found.name: internal_stats(found) for found in self._topics_of(name)}
        return {"metadata": self._partitions_metadata(name), "partitions": partitions}

    def _partitioned(self, topic: str) -> str:
        name = self._existing(topic)
        if name not in self.partitions:
            raise NotApplicable(f"{name} is not partitioned")
        return name

    def _partitions_metadata(self, name: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"partitions": self.partitions[name], "deleted": False}
        if name in self.properties:
            metadata["properties"] = dict(self.properties[name])
        return metadata

    def partitions_metadata(self, topic: str) -> dict[str, Any]:
        """As `GET …/partitions`. Raises `NotFound`."""
        name = self._existing(topic)
        return (
            self._partitions_metadata(name)
            if name in self.partitions
            else {"partitions": 0, "deleted": False}
        )

    def partitions_for_use(self, now: int, topic: str) -> dict[str, Any]:
        """`partitions_metadata` for who is going to use the topic: made first, if policies say so (WIRE-03).

        Raises `NotFound`.
        """
        self.context.now = now
        name = TopicName.parse(topic)
        self._check_namespace(name.namespace_name)
        try:
            partitions = self.partitions_for(name, True)
        except TopicNotFound as error:
            raise NotFound(error.text) from None
        self._settle()
        if partitions:
            return self._partitions_metadata(str(name))
        return {"partitions": 0, "deleted": False}

    def last_message_id(self, topic: str) -> MessageId:
        """Of the last durable entry; of an empty topic its ledger's and -1.

        Raises `NotFound`, or `NotApplicable` for a partitioned or non-persistent topic.
        """
        found = self._persistent_topic(topic)
        ledger_id, entry_id = found.log.position(found.log.durable_end - 1)
        return MessageId(ledger_id, entry_id, found.partition)
