"""`SchemaAdministration`: register, read, compare and delete the schemas of topics."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...model.errors import IncompatibleSchema, InvalidConfiguration, TopicNotFound
from ...model.schema import SchemaType
from ...model.topic_name import TopicName
from ...wire import proto
from ..admin_errors import LimitReached, NotApplicable, NotFound
from ..records import SchemaSaved
from ..schemas.key_value_text import pair_definition, pair_text
from ..schemas.registry import info_of, saved_info
from ..schemas.validation import validate
from ..serving.lookups import text_pairs
from .parts import Parts

SCHEMA_TYPES: dict[int, str] = {
    int(kind): kind.name for kind in SchemaType if kind not in (SchemaType.AUTO_CONSUME, SchemaType.EXTERNAL)
}
"""Number of a schema type that can be registered -> its name in Pulsar's HTTP interface."""


class SchemaAdministration:
    """Commands for the schema of a topic, which need not exist."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._context = parts.services.context
        self._metadata = parts.metadata
        self._settle = parts.settle

    def schema(self, topic: str, version: int | None = None) -> dict[str, Any]:
        """Return the answer to `GET …/schema`; None is the latest version. Raises `NotFound`."""
        try:
            wanted = None if version is None else version.to_bytes(8, "big")
            return _shown(self._parts.schemas.get(TopicName.parse(topic), wanted))
        except (TopicNotFound, OverflowError):
            raise NotFound(f"no schema of {topic}") from None

    def schema_versions(self, topic: str) -> list[dict[str, Any]]:
        """Return all versions of a topic's schema as `schema` does, the first one first."""
        return [_shown(saved) for saved in self._parts.schemas.versions(TopicName.parse(topic))]

    def register_schema(
        self,
        now: int,
        topic: str,
        kind: str,
        data: str = "",
        properties: Mapping[str, str] | None = None,
        as_client: bool = False,
    ) -> int:
        """Return the version of this schema, which is registered where the topic has no equal one.

        The topic need not exist. Its policies need not allow clients to register versions, unless the schema
        is registered `as_client`. `kind`: a name of `SCHEMA_TYPES`. `data`: the definition as HTTP has it, of
        KEY_VALUE a JSON object with `key` and `value`. Raises `NotFound` where the namespace does not exist,
        `InvalidConfiguration` for a wrong definition, `LimitReached`, or `NotApplicable` where the strategy
        of the topic, or its policies, refuse it.
        """
        self._context.now = now
        name = self._name_for_schema(topic)
        schema = self._schema(kind, data, properties)
        policies = self._metadata.effective_policies(name)
        if not as_client:
            policies = replace(policies, schema_auto_update=True)
        try:
            version = self._parts.schemas.register(name, schema, policies, self._parts.services.wall_time)
        except IncompatibleSchema as error:
            raise NotApplicable(error.text) from None
        self._settle()
        return int.from_bytes(version, "big")

    def schema_version_of(
        self, topic: str, kind: str, data: str = "", properties: Mapping[str, str] | None = None
    ) -> int:
        """Return the number of the version that equals this schema; -1 for none. Raises as
        `register_schema`."""
        name = self._name_for_schema(topic)
        return self._parts.schemas.version_of(name, self._schema(kind, data, properties))

    def is_schema_compatible(
        self, topic: str, kind: str, data: str = "", properties: Mapping[str, str] | None = None
    ) -> tuple[bool, str]:
        """Tell whether this schema may be the next version, and give the strategy that says so. Raises as
        `register_schema`."""
        name = self._name_for_schema(topic)
        policies = self._metadata.effective_policies(name)
        schema = self._schema(kind, data, properties)
        try:
            if self._parts.schemas.version_of(name, schema) < 0:
                self._parts.schemas.check(name, info_of(schema), policies)
        except IncompatibleSchema:
            return False, str(policies.schema_compatibility)
        return True, str(policies.schema_compatibility)

    def _schema(self, kind: str, data: str, properties: Mapping[str, str] | None) -> proto.Schema:
        """Return a schema for the wire. Raises `InvalidConfiguration` for a definition that is none."""
        if kind not in SCHEMA_TYPES.values():
            raise InvalidConfiguration(
                f"type of a schema: {', '.join(SCHEMA_TYPES.values())}; not {kind!r:.100}"
            )
        schema = proto.Schema(name="", type=proto.Schema.Type.Name(SchemaType[kind]))
        for key, value in text_pairs(properties):
            schema.properties.add(key=key, value=value)
        try:
            is_pair = kind == SchemaType.KEY_VALUE.name
            schema.schema_data = pair_definition(data) if is_pair else data.encode(errors="replace")
            validate(info_of(schema))
        except IncompatibleSchema as error:
            raise InvalidConfiguration(error.text) from None
        return schema

    def delete_schema(self, now: int, topic: str, force: bool = False) -> int:
        """Save a version without a schema, and return its number. With `force`, discard all versions and
        return -1.

        Raises `NotFound` where the namespace does not exist, `LimitReached`.
        """
        self._context.now = now
        version = -1
        if force:
            name = TopicName.parse(topic)
            self._metadata.require_namespace(name.namespace_name)
            self._parts.schemas.discard(name)
        else:
            name = self._name_for_schema(topic)
            version = self._parts.schemas.delete(name, self._parts.services.wall_time)
        self._settle()
        return version

    def _name_for_schema(self, topic: str) -> TopicName:
        """Parse the name of a topic that need not exist. Only `BrokerConfig.max_topics` bounds the number of
        schemas.

        Raises `NotFound` where the namespace does not exist, `LimitReached`.
        """
        name = TopicName.parse(topic)
        self._metadata.require_namespace(name.namespace_name)
        most = self._parts.services.config.max_topics
        if not self._parts.schemas.has_room(name, most):
            raise LimitReached(f"schemas: {most} topics have one; delete some with force")
        return name


def _shown(saved: SchemaSaved) -> dict[str, Any]:
    info = saved_info(saved)
    is_pair = info.type is SchemaType.KEY_VALUE
    return {
        "version": saved.version,
        "type": SCHEMA_TYPES[saved.type],
        "timestamp": saved.timestamp,
        "data": pair_text(info) if is_pair else saved.data.decode(errors="replace"),
        "properties": dict(saved.properties),
    }
