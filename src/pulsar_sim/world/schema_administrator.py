"""The administrator of schemas: the first version of every topic, further ones, deletions, and the strategy.

Owns these commands. Every topic has one definition from the beginning, so that consumers with a schema may
subscribe. The strategy is a policy of the namespace, which each broker is told when it boots.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.broker.admin_errors import NotApplicable

from ..engine.clock import MILLISECOND
from ..engine.profile import SchemaPlan
from ..model.schemas.definition import COMPATIBLE, PLAIN, Definition
from ..model.schemas.questions import whole
from ..model.schemas.topic_schemas import TopicSchemas
from ..model.schemas.versions import ANY

if TYPE_CHECKING:
    from ..engine.nodes.broker_node import BrokerNode
    from .world import World

NAMESPACE = "public/default"

AGAIN = 100 * MILLISECOND
"""Nanoseconds after which a command is repeated that found no broker."""

_TYPES = {"avro": "AVRO", "json": "JSON", "text": "STRING", "pairs": "KEY_VALUE"}


class SchemaAdministrator:
    """The administrator of the schemas of a world, which has some."""

    def __init__(self, world: "World", plan: SchemaPlan, schemas: TopicSchemas) -> None:
        self._world = world
        self._plan = plan
        self._schemas = schemas
        self._stream = world.streams.stream("administrator of schemas")

    def booted(self, node: "BrokerNode") -> None:
        assert node.broker is not None
        set_policy = node.broker.administration.set_policy
        node.command(set_policy, NAMESPACE, "schema_compatibility", self._schemas.strategy)

    def start(self) -> None:
        """Plan the commands of the run."""
        clock, plan = self._world.clock, self._plan
        definitions = (PLAIN,) if plan.kind == "text" else COMPATIBLE
        for after in plan.registrations:
            clock.after(after, self._register_one, self._stream.choice(definitions))
        if plan.deleted_after:
            clock.after(plan.deleted_after, self._delete, self._stream.choice(self._world.topics.names))
        if plan.loosened_after:
            clock.after(plan.loosened_after, self._loosen)

    def register_first(self) -> None:
        """Give every topic its first definition, where it has none."""
        for topic in dict.fromkeys(whole(name) for name in self._world.topics.names):
            self._register(topic, PLAIN)

    def _register_one(self, definition: Definition) -> None:
        if not self._world.healed:
            self._world.count_fault("schema_registered")
            self._register(whole(self._stream.choice(self._world.topics.names)), definition)

    def _register(self, topic: str, definition: Definition) -> None:
        node = self._node_of(topic)
        if node is None or node.broker is None:
            self._world.clock.after(AGAIN, self._register, topic, definition)
            return
        self._world.trace.add(self._world.clock.now, node.name, f"registers {definition.name} for {topic}")
        self._schemas.versions.try_out(topic, definition)
        info = self._schemas.schemas[definition].info
        arguments = topic, _TYPES[self._plan.kind], self._text(definition), dict(info.properties)
        try:
            node.command(node.broker.schema_administration.register_schema, *arguments)
        except NotApplicable:
            self._schemas.versions.refused(topic, definition)

    def _text(self, definition: Definition) -> str:
        """Return the definition as an administrator writes it."""
        if self._plan.kind == "text":
            return ""
        return f'{{"key": "", "value": {definition.text}}}' if self._plan.kind == "pairs" else definition.text

    def _delete(self, topic: str) -> None:
        """Delete all versions of a topic, and give it its first definition again."""
        node = self._node_of(whole(topic))
        if self._world.healed:
            return
        if node is None or node.broker is None:
            self._world.clock.after(AGAIN, self._delete, topic)
            return
        self._world.count_fault("schema_deleted")
        self._world.trace.add(self._world.clock.now, node.name, f"deletes the schema of {whole(topic)}")
        self._schemas.versions.delete(whole(topic), self._world.clock.now)
        node.command(node.broker.schema_administration.delete_schema, whole(topic))
        self._register(whole(topic), PLAIN)

    def _loosen(self) -> None:
        """Let every definition follow from now on."""
        self._schemas.strategy = ANY
        self._world.count_fault("strategy_loosened")
        for node in self._world.brokers:
            if node.broker is not None:
                self.booted(node)

    def _node_of(self, topic: str) -> "BrokerNode | None":
        """Return the broker that serves the topic, or its first partition; None while there is none."""
        cluster = self._world.cluster
        name = topic if topic in cluster.owners else f"{topic}-partition-0"
        node = cluster.node_of(name)
        return node if node.up and not cluster.is_moving(name) else None
