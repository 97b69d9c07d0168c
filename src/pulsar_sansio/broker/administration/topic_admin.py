"""`TopicAdministration`: create, grow, unload, terminate, compact, migrate, delete, list and inspect topics.

A partitioned topic is only a name over its partitions (TOPIC-03): a command for it applies to each of them.
"""

from collections.abc import Mapping
from typing import Any

from ...model.errors import InvalidConfiguration, InvalidTopicName, TopicNameRefused, TopicNotFound
from ...model.message_id import MessageId
from ...model.service_url import ServiceUrl
from ...model.topic_name import TopicName
from ..admin_errors import AlreadyExists, InUse, LimitReached, NotApplicable, NotFound
from ..rates import Rates
from ..records import MigratedTo, PartitionsSaved
from ..serving.lookups import parse_topic, text_pairs
from ..topics import quotas
from ..topics.registry import NO_ROOM_FOR_TOPICS, AnyTopic
from ..topics.topic import Topic
from .inspection import (
    StatsOptions,
    TopicOverview,
    internal_stats,
    sum_of_stats,
    topic_overview,
    topic_stats,
)
from .ownership import Ownership
from .parts import Parts
from .stored_message import StoredMessage, stored_message
from .wanted_state import WantedState

MAX_PARTITIONS = 10_000
"""The number of partitions that a topic may have; a larger number is taken for a mistake."""


class TopicAdministration:
    """Commands that name a topic."""

    def __init__(self, parts: Parts, rates: Rates, ownership: Ownership) -> None:
        self._parts = parts
        self._context = parts.services.context
        self._journal = parts.services.journal
        self._metadata = parts.metadata
        self._topics = parts.topics
        self._settle = parts.settle
        self._rates = rates
        self._ownership = ownership

    # --- creation and growth --------------------------------------------------------------------------

    def create_topic(self, now: int, topic: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a topic without partitions, or a missing partition of a partitioned topic.

        Raises `AlreadyExists`, `NotFound` where the namespace does not exist, `LimitReached`, and
        `InvalidConfiguration` for the name of a partition beyond the last one or for properties that are not
        text.
        """
        self._context.now = now
        name = self._new_name(topic)
        index = name.partition
        if index >= 0 and index >= self._metadata.partitions.get(str(name.base), 0):
            raise InvalidConfiguration(f"{topic} is named like a partition, and {name.base} has no such one")
        pairs = text_pairs(properties)
        self._check_limit(name, 1)
        self._topics.make(name)
        self._save_properties(name, pairs)
        self._settle()

    def create_partitioned_topic(
        self, now: int, topic: str, partitions: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic of `partitions` (1 to 10 000) partitions, and the partitions themselves."""
        self._context.now = now
        name = self._new_name(topic)
        self._check_partitions(partitions)
        if name.partition >= 0:
            raise InvalidConfiguration(f"{topic} is itself the name of a partition")
        pairs = text_pairs(properties)
        self._check_limit(name, partitions)
        self._topics.create_partitions(name, partitions)
        self._save_properties(name, pairs)
        self._settle()

    def _save_properties(self, name: TopicName, pairs: tuple[tuple[str, str], ...]) -> None:
        if pairs:
            self._metadata.set_properties(str(name), pairs)

    def update_partitions(self, now: int, topic: str, partitions: int) -> None:
        """Add partitions; the number cannot shrink. Raises `NotFound`, `InvalidConfiguration`."""
        self._context.now = now
        name = TopicName.parse(topic)
        present = self._metadata.partitions.get(str(name))
        if present is None:
            raise NotFound(f"{name} is no partitioned topic")
        self._check_partitions(partitions)
        if partitions <= present:
            raise InvalidConfiguration(f"partitions: more than the {present} there are, not {partitions}")
        self._topics.create_partitions(name, partitions)
        self._settle()

    def create_missing_partitions(self, now: int, topic: str) -> None:
        """Create the partitions that are missing. Raises `NotFound` unless the topic is partitioned, or
        `LimitReached` where the namespace has no room for them."""
        self._context.now = now
        name = TopicName.parse(topic)
        present = self._metadata.partitions.get(str(name))
        if present is None:
            raise NotFound(f"{name} is no partitioned topic")
        wanted = (str(name.partition_name(index)) for index in range(present))
        self._check_limit(name, sum(each not in self._topics.names for each in wanted))
        self._topics.create_partitions(name, present)
        self._settle()

    def _new_name(self, topic: str) -> TopicName:
        try:
            name = parse_topic(topic)
        except TopicNameRefused as error:
            raise InvalidTopicName(error.text) from None
        self._metadata.require_namespace(name.namespace_name)
        if (
            str(name) in self._topics.by_name
            or str(name) in self._metadata.partitions
            or str(name) in self._topics.releasing
        ):
            raise AlreadyExists(f"topic {name} exists")
        return name

    def _check_limit(self, name: TopicName, count: int) -> None:
        if not self._topics.has_room(name.namespace_name, count):
            raise LimitReached(NO_ROOM_FOR_TOPICS)

    def _check_partitions(self, partitions: int) -> None:
        most = self._parts.services.config.max_partitions_per_topic or MAX_PARTITIONS
        most = min(most, MAX_PARTITIONS)
        if isinstance(partitions, bool) or not isinstance(partitions, int) or not 1 <= partitions <= most:
            raise InvalidConfiguration(f"partitions: 1 to {most}, not {partitions!r}")

    # --- single entries -------------------------------------------------------------------------------

    def read_entry(self, topic: str, ledger_id: int, entry_id: int) -> StoredMessage:
        """Return a durable entry by its id.

        Raises `NotFound`, or `NotApplicable` for partitioned and non-persistent topics.
        """
        found = self._parts.persistent_topic(topic)
        offset = found.log.exact(ledger_id, entry_id)
        if offset is None or offset >= found.log.durable_end:
            raise NotFound(f"no entry {ledger_id}:{entry_id} in {topic}")
        return stored_message(found, offset)

    def examine(self, topic: str, number: int, *, from_end: bool) -> StoredMessage:
        """Return the `number`th durable entry, from 1; the nearest one where fewer are stored.

        Raises `NotFound` also for an empty topic, and `NotApplicable` for partitioned and non-persistent
        topics.
        """
        found = self._parts.persistent_topic(topic)
        first, end = found.log.first, found.log.durable_end
        if first >= end:
            raise NotFound(f"no entries in {topic}")
        offset = end - number if from_end else first + number - 1
        return stored_message(found, min(max(offset, first), end - 1))

    def message_id_at(self, topic: str, publish_time: int) -> MessageId:
        """Return the id of the first durable entry published at or after `publish_time` (ms since 1970).

        Where there is none, it is the id that the next entry gets. Raises `NotFound`, or `NotApplicable` for
        partitioned and non-persistent topics.
        """
        found = self._parts.persistent_topic(topic)
        ledger_id, entry_id = found.log.position(found.log.find_publish_time(publish_time))
        return MessageId(ledger_id, entry_id, found.partition)

    # --- listing ------------------------------------------------------------------------------------------

    def served(self) -> list[str]:
        """Return the full names of all topics that this broker serves, each partition among them."""
        return list(self._topics.by_name)

    def served_namespaces(self) -> list[str]:
        """Return the namespaces whose topics this broker serves, sorted."""
        return sorted({topic.topic_name.namespace_name for topic in self._topics.by_name.values()})

    def overviews(self) -> list[TopicOverview]:
        """Return the numbers of all topics that this broker serves."""
        return [topic_overview(topic, self._rates) for topic in self._topics.by_name.values()]

    def topics(self, namespace: str) -> list[str]:
        """Return the full names of the namespace's topics, each partition by itself. Raises `NotFound`."""
        self._metadata.require_namespace(namespace)
        return self._topics.names.listed(namespace)

    def has_or_may_create(self, topic: str) -> bool:
        """True for a topic that exists, and for one that a client may create. Raises `NotFound` where the
        namespace does not exist."""
        name = TopicName.parse(topic)
        self._metadata.require_namespace(name.namespace_name)
        return self._topics.has_or_may_create(name)

    def partitioned_topics(self, namespace: str) -> list[str]:
        """Return the full names of the namespace's partitioned topics. Raises `NotFound`."""
        self._metadata.require_namespace(namespace)
        return self._metadata.partitioned_topics(namespace)

    def topic_partitions(self, topic: str) -> int:
        """Return the number of partitions; 0 for a topic without. Raises `NotFound`."""
        return self._metadata.partitions.get(self._parts.existing(topic), 0)

    # --- unloading, ending, compaction ----------------------------------------------------------------

    def unload(self, now: int, topic: str) -> None:
        """Disconnect producers and consumers; they reconnect to the topic with its durable state (GAP-37)."""
        self._context.now = now
        for each in self._parts.topics_of(topic):
            each.unload()
        self._settle()

    def terminate(self, now: int, topic: str) -> MessageId:
        """End a topic for producers, and return the id of its last message.

        The entry id is -1 where the topic is empty. Raises `NotFound`, or `NotApplicable` for partitioned and
        non-persistent topics.
        """
        self._context.now = now
        only = self._parts.persistent_topic(topic)
        only.terminate()
        self._settle()
        ledger_id, entry_id = only.log.position(only.log.end - 1)
        return MessageId(ledger_id, entry_id, only.partition)

    def compact(self, now: int, topic: str) -> None:
        """Begin to compact a topic, or each of its partitions that is not being compacted.

        Raises `NotFound`, `NotApplicable` for a topic that is not persistent, `InUse` where all of it is
        being compacted.
        """
        self._context.now = now
        found = self._parts.topics_of(topic)
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
        """Return NOT_RUN, RUNNING, SUCCESS or ERROR, and the reason of an error.

        The status counts from the moment the broker serves the topic. Raises `NotFound`, or `NotApplicable`
        for partitioned and non-persistent topics.
        """
        compaction = self._parts.persistent_topic(topic).compaction
        return compaction.status, compaction.last_error

    def migrate(
        self, now: int, topic: str, service_url: str | None, service_url_tls: str | None = None
    ) -> None:
        """Move the topic, or each of its partitions, to the cluster of these service URLs.

        Producers are sent there at once, the consumers of a subscription once they have acknowledged all
        entries here. Clients that connect later are sent there, too. Entries that are not acknowledged are
        not copied. Raises `NotFound`, `NotApplicable` for non-persistent topics, `InvalidServiceUrl`,
        `InvalidConfiguration` where neither URL is given.
        """
        self._context.now = now
        if service_url is None and service_url_tls is None:
            raise InvalidConfiguration("service_url, service_url_tls: one of them at least")
        for url in (service_url, service_url_tls):
            if url is not None:
                ServiceUrl.of_broker(url)
        topics = [each for each in self._parts.topics_of(topic) if isinstance(each, Topic)]
        if not topics:
            raise NotApplicable(f"{topic} is not persistent")
        for each in topics:
            each.migrate(MigratedTo(service_url, service_url_tls))
        self._settle()

    def delete_topic(self, now: int, topic: str, force: bool = False) -> None:
        """Delete the topic with all its partitions.

        Raises `NotFound`, or `InUse` while producers or consumers are connected, unless `force`.
        """
        self._context.now = now
        topics = self._parts.topics_of(topic)
        if not force:
            for each in topics:
                connected = len(each.producers.by_name) + each.consumer_count
                if connected:
                    raise InUse(f"Topic has {connected} connected producers/consumers")
        name = self._parts.existing(topic)
        for each in topics:
            self._delete(each)
        if self._metadata.partitions.pop(name, None):
            self._journal.records.append(PartitionsSaved(name, 0))
            self._metadata.discard(name)
        if TopicName.parse(topic).partition < 0:
            self._parts.schemas.discard(TopicName.parse(topic))
        self._settle()

    def _delete(self, topic: AnyTopic) -> None:
        topic.delete()
        del self._topics.by_name[topic.name]
        self._ownership.detach(topic)
        self._metadata.discard(topic.name)

    def enforce_backlog_quotas(self, now: int) -> None:
        """Check the backlog quotas of all topics, as housekeeping does."""
        self._context.now = now
        for topic in list(self._topics.by_name.values()):
            if isinstance(topic, Topic):
                quotas.enforce(topic)
        self._settle()

    def delete_inactive(self) -> None:
        """Delete the topics that were inactive for as long as their policies say.

        A partitioned topic keeps its number of partitions, and a client's use creates a partition again, as
        in the Java broker.
        """
        for topic in list(self._topics.by_name.values()):
            if isinstance(topic, Topic) and topic.inactivity.is_over():
                self._delete(topic)
                if topic.partition < 0:
                    self._parts.schemas.discard(topic.topic_name)

    # --- inspection -----------------------------------------------------------------------------------

    def differences(self, wanted: WantedState) -> str:
        """Return the numbers that differ from the wanted ones, for people; an empty text for none."""
        return wanted.differences(self._topics.by_name.values())

    def stats(self, topic: str, options: StatsOptions | None = None) -> dict[str, Any]:
        """Return the answer to `GET …/stats`. Raises `NotFound`; `NotApplicable` for a partitioned topic."""
        return topic_stats(self._parts.topic(topic), self._rates, options or StatsOptions())

    def partitioned_stats(
        self, topic: str, options: StatsOptions | None = None, per_partition: bool = True
    ) -> dict[str, Any]:
        """Return the answer to `GET …/partitioned-stats`: the sum, and each partition's with `per_partition`.

        Raises `NotFound`, `NotApplicable`.
        """
        name = self._partitioned(topic)
        each = {
            found.name: topic_stats(found, self._rates, options or StatsOptions())
            for found in self._parts.topics_of(name)
        }
        summed = sum_of_stats(list(each.values()))
        summed["metadata"] = self._partitions_metadata(name)
        summed["partitions"] = each if per_partition else {}
        return summed

    def internal_stats(self, topic: str) -> dict[str, Any]:
        """Return the answer to `GET …/internalStats`: ledgers and cursors.

        Raises `NotFound`, or `NotApplicable` for a partitioned topic.
        """
        return internal_stats(self._parts.topic(topic))

    def partitioned_internal_stats(self, topic: str) -> dict[str, Any]:
        """Return the answer to `GET …/partitioned-internalStats`. Raises `NotFound`, `NotApplicable`."""
        name = self._partitioned(topic)
        partitions = {found.name: internal_stats(found) for found in self._parts.topics_of(name)}
        return {"metadata": self._partitions_metadata(name), "partitions": partitions}

    def _partitioned(self, topic: str) -> str:
        name = self._parts.existing(topic)
        if name not in self._metadata.partitions:
            raise NotApplicable(f"{name} is not partitioned")
        return name

    def _partitions_metadata(self, name: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"partitions": self._metadata.partitions[name], "deleted": False}
        if name in self._metadata.properties:
            metadata["properties"] = dict(self._metadata.properties[name])
        return metadata

    def partitions_metadata(self, topic: str) -> dict[str, Any]:
        """Return the answer to `GET …/partitions`. Raises `NotFound`."""
        name = self._parts.existing(topic)
        return (
            self._partitions_metadata(name)
            if name in self._metadata.partitions
            else {"partitions": 0, "deleted": False}
        )

    def partitions_for_use(self, now: int, topic: str) -> dict[str, Any]:
        """Return `partitions_metadata`; the topic is created first where policies say so (WIRE-03).

        Raises `NotFound`.
        """
        self._context.now = now
        name = TopicName.parse(topic)
        self._metadata.require_namespace(name.namespace_name)
        try:
            partitions = self._topics.partitions_for(name, True)
        except TopicNotFound as error:
            raise NotFound(error.text) from None
        self._settle()
        if partitions:
            return self._partitions_metadata(str(name))
        return {"partitions": 0, "deleted": False}

    def last_message_id(self, topic: str) -> MessageId:
        """Return the id of the last durable entry; the entry id is -1 where the topic is empty.

        Raises `NotFound`, or `NotApplicable` for a partitioned or non-persistent topic.
        """
        found = self._parts.persistent_topic(topic)
        ledger_id, entry_id = found.log.position(found.log.durable_end - 1)
        return MessageId(ledger_id, entry_id, found.partition)
