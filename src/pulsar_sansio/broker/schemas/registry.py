"""`Schemas`: the schemas of topics with their versions. The partitions of a topic share them.

Versions are numbered from 0. Deleting a schema adds a version that marks the end of those before it, so that
no number is used again.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...model.errors import IncompatibleSchema, TopicNotFound
from ...model.schema import SchemaInfo, SchemaType
from ...model.topic_name import TopicName
from ...wire import proto
from ..policies import Policies
from ..records import SchemaDeleted, SchemaSaved
from ..storage.journal import Journal
from .strategies import SchemaStrategy
from .validation import equal, validate

if TYPE_CHECKING:
    from ..topics.registry import AnyTopic

MAX_VERSIONS = 1000
MAX_VERSIONS_SIZE = 16 * 1024 * 1024
"""Limits of the versions of one topic, in number and bytes: the broker keeps all that clients register."""

_Type = proto.Schema.Type


def schema_message(saved: SchemaSaved, topic: TopicName) -> proto.Schema:
    """Encode a schema for the wire. As in the Java broker, its name is that of the topic."""
    name = f"{topic.namespace_name}/{topic.base.local}"
    message = proto.Schema(name=name, schema_data=saved.data, type=_Type.Name(saved.type))
    for key, value in saved.properties:
        message.properties.add(key=key, value=value)
    return message


def info_of(schema: proto.Schema) -> SchemaInfo:
    """Return a schema of the wire. Raises `IncompatibleSchema` for a type that this version does not know."""
    try:
        kind = SchemaType(schema.type)
    except ValueError:
        raise IncompatibleSchema(f"schema type {schema.type} is not known") from None
    pairs = tuple((pair.key, pair.value) for pair in schema.properties)
    return SchemaInfo(kind, schema.name, schema.schema_data, pairs)


class Schemas:
    """The versions by base name of the topic, those with marks of deletion included."""

    def __init__(self, journal: Journal, stored: dict[str, list[SchemaSaved]]) -> None:
        self._saved = {topic: list(versions) for topic, versions in stored.items()}
        self._journal = journal

    # --- reading ----------------------------------------------------------------------------------------

    def get(self, topic: TopicName, version: bytes | None) -> SchemaSaved:
        """Return one version; None is the latest. Raises `TopicNotFound` where the topic has no such schema,
        `IncompatibleSchema` for an empty version."""
        if version == b"":
            raise IncompatibleSchema("Empty schema version")
        for saved in reversed(self.versions(topic)):
            if version in (None, saved.version.to_bytes(8, "big")):
                return saved
        raise TopicNotFound("Topic not found or no-schema")

    def versions(self, topic: TopicName) -> list[SchemaSaved]:
        """Return the versions since the schema was deleted last, the latest one last."""
        versions = self._saved.get(str(topic.base), [])
        begin = 1 + max((index for index, each in enumerate(versions) if each.deleted), default=-1)
        return versions[begin:]

    def version_of(self, topic: TopicName, schema: proto.Schema) -> int:
        """Return the number of the version that equals a schema; -1 for none. Raises `IncompatibleSchema` for
        a definition that is none of its type."""
        info = info_of(schema)
        validate(info)
        found = self._find(topic, info)
        return -1 if found is None else found.version

    def _find(self, topic: TopicName, info: SchemaInfo) -> SchemaSaved | None:
        return next(
            (saved for saved in reversed(self.versions(topic)) if equal(saved_info(saved), info)), None
        )

    # --- registering ------------------------------------------------------------------------------------

    def register(self, topic: TopicName, schema: proto.Schema, policies: Policies, wall_time: int) -> bytes:
        """Return the version of the schema, registered now unless the topic has an equal one.

        Raises `IncompatibleSchema` for a wrong definition, or where the topic's policies allow no new version
        or its strategy refuses this one (rule SCHEMA-11). `policies`: those that count for the topic.
        """
        info = info_of(schema)
        validate(info)
        found = self._find(topic, info)
        if found is None:
            if not policies.schema_auto_update:
                raise IncompatibleSchema("Schema not found and schema auto updating is disabled.")
            self.check(topic, info, policies)
            found = self._add(topic, info, wall_time)
        return found.version.to_bytes(8, "big")

    def check(self, topic: TopicName, info: SchemaInfo, policies: Policies) -> None:
        """Raise `IncompatibleSchema` where the strategy refuses the schema as the next version."""
        _strategy(policies).check(info, [saved_info(saved) for saved in self.versions(topic)])

    def check_producer(self, topic: TopicName, policies: Policies) -> None:
        """Raise `IncompatibleSchema` for a producer without a schema, where the topic's policies ask for
        one."""
        if policies.schema_validation_enforced and self.versions(topic):
            raise IncompatibleSchema(
                "Producers cannot connect or send message without a schema to topics with a schema when "
                "SchemaValidationEnforced is enabled"
            )

    def check_consumer(self, topic: "AnyTopic", schema: proto.Schema) -> None:
        """Check the schema of a SUBSCRIBE; an idle topic registers it.

        Raises `IncompatibleSchema`.
        """
        info = info_of(schema)
        if info.type is SchemaType.AUTO_CONSUME:
            return
        name, policies = topic.topic_name, topic.policies
        validate(info)
        versions = [saved_info(saved) for saved in self.versions(name)]
        idle = not topic.producers.by_name and not topic.consumer_count and topic.empty
        if not versions:
            if not idle:
                raise IncompatibleSchema("Topic does not have schema to check")
            self.register(name, schema, policies, topic.services.wall_time)
            return
        _strategy(policies).check_reader(info, versions)

    def _add(self, topic: TopicName, info: SchemaInfo, wall_time: int) -> SchemaSaved:
        present = self._saved.get(str(topic.base), [])
        size = sum(len(each.data) for each in present) + len(info.data)
        if len(present) >= MAX_VERSIONS or size > MAX_VERSIONS_SIZE:
            raise IncompatibleSchema(
                f"{len(present)} versions of the schema with {size} bytes; allowed are {MAX_VERSIONS} and "
                f"{MAX_VERSIONS_SIZE}: delete the schema with force"
            )
        data = b"" if info.data == b"null" else info.data
        saved = SchemaSaved(
            str(topic.base), len(present), info.type, info.name, data, info.properties, wall_time
        )
        self._save(saved)
        return saved

    def replace(self, topic: TopicName, versions: Sequence[SchemaSaved]) -> None:
        """Take the versions that the store has of a topic, which another broker has served before."""
        self._saved.pop(str(topic.base), None)
        if versions:
            self._saved[str(topic.base)] = list(versions)

    # --- deleting ---------------------------------------------------------------------------------------

    def has_room(self, topic: TopicName, most: int) -> bool:
        """True when the topic may have a schema, where `most` topics may have one."""
        return str(topic.base) in self._saved or len(self._saved) < most

    def delete(self, topic: TopicName, wall_time: int) -> int:
        """Save a version that marks the schema as deleted, and return its number."""
        name = str(topic.base)
        versions = self._saved.get(name, [])
        if not versions or not versions[-1].deleted:
            none = int(SchemaType.NONE)
            self._save(SchemaSaved(name, len(versions), none, "", b"", (), wall_time, deleted=True))
        return self._saved[name][-1].version

    def discard(self, topic: TopicName) -> None:
        """Discard the schema of a topic with all its versions."""
        if self._saved.pop(str(topic.base), None) is not None:
            self._journal.records.append(SchemaDeleted(str(topic.base)))

    def _save(self, saved: SchemaSaved) -> None:
        self._saved.setdefault(saved.topic, []).append(saved)
        self._journal.records.append(saved)


def saved_info(saved: SchemaSaved) -> SchemaInfo:
    """Return a version as its client registered it."""
    return SchemaInfo(SchemaType(saved.type), saved.name, saved.data, saved.properties)


def _strategy(policies: Policies) -> SchemaStrategy:
    return SchemaStrategy(policies.schema_compatibility)
