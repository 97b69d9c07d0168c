"""The schemas of topics. This broker has none, bytes, and the primitive types.

Schemas of primitive types are compared by their type alone. The first registration is version 0, a repeated
one returns that version, and another type is incompatible under every strategy except ALWAYS_COMPATIBLE. So
the registry holds one schema for each topic. Struct and key/value types are refused: this broker does not
parse schema definitions.
"""

from typing import TYPE_CHECKING

from ...model.errors import IncompatibleSchema, TopicNotFound
from ...model.topic_name import TopicName
from ...wire import proto
from ..records import SchemaDeleted, SchemaSaved
from ..storage.journal import Journal

if TYPE_CHECKING:
    from .registry import AnyTopic

NO_VERSION = b""
"""The schema_version of a client without a schema."""

_Schema = proto.Schema
NONE = _Schema.Type.Value("None")
PRIMITIVES = frozenset(
    (
        _Schema.String,
        _Schema.Bool,
        _Schema.Int8,
        _Schema.Int16,
        _Schema.Int32,
        _Schema.Int64,
        _Schema.Float,
        _Schema.Double,
        _Schema.Date,
        _Schema.Time,
        _Schema.Timestamp,
        _Schema.Instant,
        _Schema.LocalDate,
        _Schema.LocalTime,
        _Schema.LocalDateTime,
    )
)


def schema_message(saved: SchemaSaved) -> proto.Schema:
    """Encode a schema for the wire."""
    message = proto.Schema(name=saved.name, schema_data=saved.data, type=_Schema.Type.Name(saved.type))
    for key, value in saved.properties:
        message.properties.add(key=key, value=value)
    return message


class Schemas:
    """The schemas by base name: the partitions of a topic share one."""

    def __init__(self, journal: Journal, stored: dict[str, SchemaSaved]) -> None:
        self._saved = dict(stored)
        self._journal = journal

    def get(self, topic: TopicName, version: bytes | None) -> SchemaSaved:
        """Raises `TopicNotFound` where the topic has no such schema, `IncompatibleSchema` for an empty
        version."""
        if version == b"":
            raise IncompatibleSchema("Empty schema version")
        saved = self._present(topic)
        if saved is None or (version is not None and version != saved.version.to_bytes(8, "big")):
            raise TopicNotFound("Topic not found or no-schema")
        return saved

    def register(self, topic: TopicName, schema: proto.Schema, wall_time: int) -> bytes:
        """Return the version of the schema, registered now if the topic has none. Raises
        `IncompatibleSchema`."""
        if schema.type == NONE:
            return NO_VERSION
        self._validate(schema)
        saved = self._present(topic)
        if saved is None:
            properties = tuple((pair.key, pair.value) for pair in schema.properties)
            saved = SchemaSaved(
                str(topic.base),
                self._next_version(topic),
                schema.type,
                schema.name,
                b"",
                properties,
                wall_time,
            )
            self._save(saved)
        elif saved.type != schema.type:
            raise IncompatibleSchema(
                f"Incompatible schema: exists schema type {_Schema.Type.Name(saved.type)}, "
                f"new schema type {_Schema.Type.Name(schema.type)}"
            )
        return saved.version.to_bytes(8, "big")

    def check_consumer(self, topic: "AnyTopic", schema: proto.Schema) -> None:
        """Check the schema of a SUBSCRIBE; an idle topic registers it.

        Raises `IncompatibleSchema`.
        """
        if schema.type in (NONE, _Schema.AutoConsume):
            return
        idle = not topic.producers.by_name and not topic.consumer_count and topic.empty
        if self._present(topic.topic_name) is not None or idle:
            self.register(topic.topic_name, schema, topic.services.wall_time)
        else:
            self._validate(schema)
            raise IncompatibleSchema("Topic does not have schema to check")

    def has_room(self, topic: TopicName, most: int) -> bool:
        """True when the topic may have a schema, where `most` topics may have one."""
        return str(topic.base) in self._saved or len(self._saved) < most

    def delete(self, topic: TopicName, wall_time: int) -> int:
        """Save a version that marks the schema as deleted, and return its number."""
        if str(topic.base) not in self._saved or self._present(topic) is not None:
            version = self._next_version(topic)
            self._save(SchemaSaved(str(topic.base), version, NONE, "", b"", (), wall_time, deleted=True))
        return self._saved[str(topic.base)].version

    def _present(self, topic: TopicName) -> SchemaSaved | None:
        saved = self._saved.get(str(topic.base))
        return None if saved is None or saved.deleted else saved

    def _next_version(self, topic: TopicName) -> int:
        saved = self._saved.get(str(topic.base))
        return 0 if saved is None else saved.version + 1

    def _save(self, saved: SchemaSaved) -> None:
        self._saved[saved.topic] = saved
        self._journal.records.append(saved)

    def discard(self, topic: TopicName) -> None:
        """Discard the schema of a topic with all its versions."""
        if self._saved.pop(str(topic.base), None) is not None:
            self._journal.records.append(SchemaDeleted(str(topic.base)))

    @staticmethod
    def _validate(schema: proto.Schema) -> None:
        if schema.type not in PRIMITIVES:
            raise IncompatibleSchema(
                f"Schemas of type {_Schema.Type.Name(schema.type)} are not supported by this broker: "
                "it has bytes and the primitive types"
            )
        if schema.schema_data not in (b"", b"null"):
            raise IncompatibleSchema(
                f"Invalid schema definition data for {_Schema.Type.Name(schema.type)}: "
                "a primitive type has none"
            )
