"""`SchemaVersions`: the definitions that the topics of a client have, by version (rule SCHEMA-07).

A version of a topic never changes, so a definition is fetched once and kept while a consumer of the topic is
open. Consumers that need one version at the same time share the question. The partitions of a topic share its
versions.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from ...model.errors import PulsarError
from ...model.schema import SchemaInfo
from ...model.topic_name import TopicName
from ..connecting.connection import Connection
from ..connecting.services import Services
from .schema_question import SchemaQuestion, VersionedSchema

MAX_VERSIONS = 100
"""Definitions that are kept of one topic. Topics have few; a producer may claim any version, and a claim that
the broker denies is not kept."""

MAX_DEFINITION_BYTES = 16 * 1024 * 1024
"""Bytes of definitions that are kept of one topic."""


@dataclass(slots=True, eq=False)
class Asker:
    """A consumer's interest in one version. One of the callbacks is called, once, unless it is cancelled."""

    known: Callable[[SchemaInfo], None]
    failed: Callable[[PulsarError], None]
    cancelled: bool = False

    def cancel(self) -> None:
        """Prevent both callbacks."""
        self.cancelled = True


@dataclass(slots=True, eq=False)
class TopicVersions:
    """The definitions of one topic, those used last at the end, and the questions in flight."""

    topic: TopicName
    users: int = 0
    known: OrderedDict[bytes, SchemaInfo] = field(default_factory=OrderedDict)
    size: int = 0
    """The bytes of the definitions in `known`."""
    asked: dict[bytes, list[Asker]] = field(default_factory=dict)

    def keep(self, version: bytes, info: SchemaInfo) -> None:
        """Keep a definition, and drop those that were used longest ago beyond the limits."""
        present = self.known.pop(version, None)
        self.known[version] = info
        self.size += len(info.data) - (0 if present is None else len(present.data))
        while len(self.known) > MAX_VERSIONS or (self.size > MAX_DEFINITION_BYTES and len(self.known) > 1):
            _, dropped = self.known.popitem(last=False)
            self.size -= len(dropped.data)


class SchemaVersions:
    """The definitions of all topics that have consumers with a schema."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._topics: dict[str, TopicVersions] = {}

    def join(self, topic: TopicName) -> TopicVersions:
        """Return the definitions of a topic, for one more consumer of it or of a partition."""
        whole = topic.base
        versions = self._topics.setdefault(str(whole), TopicVersions(whole))
        versions.users += 1
        return versions

    def leave(self, versions: TopicVersions) -> None:
        """Forget the definitions of a topic that has no such consumer any more, when its last question is
        over: until then a new consumer shares it."""
        versions.users -= 1
        self._forget_unused(versions)

    def _forget_unused(self, versions: TopicVersions) -> None:
        name = str(versions.topic)
        if not versions.users and not versions.asked and self._topics.get(name) is versions:
            del self._topics[name]

    def get(self, versions: TopicVersions, version: bytes) -> SchemaInfo | None:
        """Return a definition that is known."""
        info = versions.known.get(version)
        if info is not None:
            versions.known.move_to_end(version)
        return info

    def find(self, topic: TopicName, version: bytes) -> SchemaInfo | None:
        """Return a definition of a topic or partition that is known, without asking for it."""
        versions = self._topics.get(str(topic.base))
        return None if versions is None else versions.known.get(version)

    def ask(
        self,
        versions: TopicVersions,
        version: bytes,
        connection: Connection,
        known: Callable[[SchemaInfo], None],
        failed: Callable[[PulsarError], None],
    ) -> Asker:
        """Ask for a definition over this connection, or join the question that another consumer has asked."""
        asker = Asker(known, failed)
        askers = versions.asked.get(version)
        if askers is not None:
            askers.append(asker)
            return asker
        versions.asked[version] = [asker]

        def answered(found: VersionedSchema) -> None:
            versions.keep(version, found.info)
            for each in versions.asked.pop(version):
                if not each.cancelled:
                    each.known(found.info)
            self._forget_unused(versions)

        def not_answered(error: PulsarError) -> None:
            for each in versions.asked.pop(version):
                if not each.cancelled:
                    each.failed(error)
            self._forget_unused(versions)

        SchemaQuestion(self._services, connection, versions.topic, version, answered, not_answered)
        return asker
