"""The administrator of a world: adds partitions to topics, terminates or deletes topics in use, and migrates
topics to another cluster.

Owns the commands for each topic and their answers. The entries of a deleted topic may be gone, so no check
demands them; an application that returns finds an empty topic. A terminated topic takes no message: producers
are told so, and every consumer is told once it has acknowledged everything. The administrator repeats the
command after healing, because a broker that died may have forgotten it.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.broker.admin_errors import InUse

from ..engine.clock import MILLISECOND
from ..engine.failures import ViolationError
from ..engine.nodes.cluster import address
from ..engine.nodes.far_cluster import FAR_BROKER
from ..engine.profile import EndPlan
from ..model.positions.multi_topics_position import MultiTopicsSoughtSubscription
from .schema_administrator import SchemaAdministrator

if TYPE_CHECKING:
    from ..engine.nodes.broker_node import BrokerNode
    from ..model.records.message_position import MessagePosition, Position
    from .world import World


class Administrator:
    """The administrator of all topics."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self._plans: list[EndPlan] = world.profile.ends
        self.migrated: dict[str, None] = {}
        """Topics that were told to migrate to the other cluster."""
        self._asked: set[str] = set()
        self.vanished: dict[str, None] = {}
        """Topics that are deleted and must not exist now."""
        self.ever_vanished: dict[str, None] = {}
        """Topics that were ever deleted, including those created again."""
        self._expected = len(world.profile.appearances)
        """The number of topics still to be created."""
        self._to_vanish = sum(plan.gone_after > 0 for plan in world.profile.appearances)
        self._to_recreate = sum(plan.back_after > 0 for plan in world.profile.appearances)
        self.schemas: SchemaAdministrator | None = None
        if world.profile.schemas is not None and world.model.schemas is not None:
            self.schemas = SchemaAdministrator(world, world.profile.schemas, world.model.schemas)
        self.ends: dict[str, Position] = {}
        """Topics that stay terminated, each with the position of its last entry."""

    def start(self) -> None:
        if self.schemas is not None:
            self.schemas.start()
        for plan in self._plans:
            act = self._delete if plan.deleted else self.end
            self.world.clock.after(plan.after, act, self.world.topics.names[plan.topic])
        for compaction in self.world.profile.compactions:
            self.world.clock.after(compaction.after, self._compact, self.world.topics.names[compaction.topic])
        for migration in self.world.profile.migrations:
            self.world.clock.after(migration.after, self._migrate, self.world.topics.names[migration.topic])
        for name, partitioned in zip(
            self.world.topics.partitioned, self.world.profile.partitioned, strict=True
        ):
            for growth in partitioned.growth:
                self.world.clock.after(growth.after, self._grow, name, growth.partitions)
        for index, appearance in enumerate(self.world.profile.appearances):
            self.world.clock.after(appearance.after, self._appear, index)

    def booted(self, node: "BrokerNode") -> None:
        """Retain all entries where the audit subscription does not keep them: in worlds with deleted topics
        or new partitions, and in the cluster that topics migrate to."""
        profile = self.world.profile
        deleted = any(plan.deleted for plan in self._plans)
        if deleted or self.world.topics.partitioned or profile.appearances or node.cluster.far:
            assert node.broker is not None
            node.command(node.broker.administration.set_policy, "public/default", "retention_time", -1.0)
        for topic in self.migrated:
            self.adopted(node, topic)
        if self.schemas is not None:
            self.schemas.booted(node)

    def adopted(self, node: "BrokerNode", topic: str) -> None:
        """Tell the broker that the topic has migrated. The cluster keeps that fact, not the broker that was
        told: each later owner learns it."""
        broker = node.broker
        if (
            topic in self.migrated
            and not node.cluster.far
            and broker is not None
            and topic in broker.topics.by_name
        ):
            far, far_tls = address(FAR_BROKER), node.cluster.tls_address(FAR_BROKER)
            node.command(broker.topic_administration.migrate, topic, far, far_tls)
            self.world.broker_watch.migrates(node.name, topic)

    def heal(self) -> None:
        """Repeat the commands, so that their effects last."""
        for topic in sorted(self._asked):
            self.world.clock.after(0, self._end_for_good, topic)
        for topic in self.world.topics.names[self.world.profile.topics :]:
            if topic not in self.vanished:
                self.world.clock.after(0, self.create, topic)
        for topic in self.vanished:
            self.world.clock.after(0, self._keep_deleted, topic)
        if self.schemas is not None:
            self.world.clock.after(0, self.schemas.register_first)

    def has_ended(self, topic: str) -> bool:
        """True when clients may be told that the topic has ended."""
        return topic in self._asked

    def check(self, topic: str, found: "list[MessagePosition]") -> None:
        """BROKER-43: nothing is stored behind the end."""
        end = self.ends.get(topic)
        if end is not None and found and found[-1][:2] > end:
            raise ViolationError("BROKER-43", f"{topic} was ended at {end} and holds {found[-1]}")

    @property
    def done(self) -> bool:
        to_come = self._expected or self._to_vanish or self._to_recreate
        return self._asked == set(self.ends) and not to_come

    def _migrate(self, topic: str) -> None:
        cluster = self.world.cluster
        node = cluster.node_of(topic)
        if self.world.healed:
            return
        if cluster.serving(topic) is None or not node.up:
            self.world.clock.after(100 * MILLISECOND, self._migrate, topic)
            return
        self.world.count_fault("topic_migrated")
        self.world.trace.add(self.world.clock.now, node.name, f"migrate {topic}")
        self.migrated[topic] = None
        self.adopted(node, topic)

    def _grow(self, name: str, partitions: int) -> None:
        if self.world.healed:
            return
        self.world.count_fault("partitions_added")
        self.world.trace.add(self.world.clock.now, "administrator", f"{name} has {partitions} partitions")
        self.world.topics.add_partitions(name, partitions)
        for app in self.world.apps.transient:
            app.expect_partitions()
        self.world.cluster.set_partitions(name, partitions)

    def _appear(self, index: int) -> None:
        """Create a topic, by this command or by the first application that uses it."""
        world, plan = self.world, self.world.profile.appearances[index]
        name = world.topics.appearing(index)
        self._expected -= 1
        world.count_fault("topic_appeared")
        world.trace.add(world.clock.now, "administrator", f"{name} comes into being")
        world.topics.add(name)
        world.cluster.own(name)
        if plan.made or world.healed:
            self.create(name)
        for app in world.apps.producers:
            if app.plan.appearing == index:
                app.start()
        if plan.gone_after:
            world.clock.after(plan.gone_after, self._vanish, name, index)

    def _vanish(self, topic: str, index: int) -> None:
        """Delete a topic for good, after its applications have left it."""
        world = self.world
        for app in world.apps.producers:
            if app.plan.appearing == index:
                app.retire()
        node, broker = world.cluster.node_of(topic), world.cluster.serving(topic)
        if broker is None or not node.up or world.cluster.is_moving(topic):
            world.clock.after(100 * MILLISECOND, self._vanish, topic, index)
            return
        world.count_fault("topic_vanished")
        self._to_vanish -= 1
        self.vanished[topic] = self.ever_vanished[topic] = None
        self._keep_deleted(topic)
        back_after = world.profile.appearances[index].back_after
        if back_after:
            world.clock.after(back_after, self._create_again, topic, index)

    def _create_again(self, topic: str, index: int) -> None:
        """Create a new topic of that name."""
        world = self.world
        del self.vanished[topic]
        self._to_recreate -= 1
        world.count_fault("topic_recreated")
        world.trace.add(world.clock.now, "administrator", f"{topic} is created anew")
        if world.profile.appearances[index].made or world.healed:
            self.create(topic)
        for app in world.apps.producers:
            if app.plan.appearing == index:
                app.send_all_again()

    def _keep_deleted(self, topic: str) -> None:
        """Delete the topic whenever it exists: a broker that died has forgotten the deletion, or a frame in
        flight has created the topic again."""
        world = self.world
        cluster = world.cluster
        broker, node = cluster.serving(topic), cluster.node_of(topic)
        if world.closing or topic not in self.vanished:
            return
        if world.cluster.is_moving(topic):
            world.clock.after(100 * MILLISECOND, self._keep_deleted, topic)
            return
        if broker is not None and node.up:
            self._learn(topic)
            world.model.topics[topic].gone = broker.topic_administration.internal_stats(topic)["ledgers"][-1][
                "ledgerId"
            ]
            world.trace.add(world.clock.now, node.name, f"delete {topic}")
            node.command(broker.topic_administration.delete_topic, topic, True)
            for subscription in world.model.topics[topic].subscriptions.values():
                if isinstance(subscription, MultiTopicsSoughtSubscription):
                    subscription.may_be_gone()
        if world.healed:
            world.clock.after(100 * MILLISECOND, self._keep_deleted, topic)

    def create(self, topic: str) -> None:
        """Create a topic or partition, even one that no application has used."""
        if topic in self.vanished:
            return
        cluster = self.world.cluster
        node = cluster.node_of(topic)
        if cluster.serving(topic) is not None:
            return
        if node.up and node.broker is not None and not cluster.is_moving(topic):
            node.command(node.broker.topic_administration.create_topic, topic)
        else:
            self.world.clock.after(10 * MILLISECOND, self.create, topic)

    def _terminate(self, topic: str) -> "Position | None":
        cluster = self.world.cluster
        broker, node = cluster.serving(topic), cluster.node_of(topic)
        if broker is None or not node.up:
            return None
        self.world.trace.add(self.world.clock.now, node.name, f"terminate {topic}")
        self._asked.add(topic)
        self.world.model.topics[topic].ended = True
        last = node.command(broker.topic_administration.terminate, topic)
        return last.ledger_id, last.entry_id

    def end(self, topic: str) -> None:
        if self.world.healed or topic in self._asked:
            return
        if self._terminate(topic) is None:
            self.world.clock.after(100 * MILLISECOND, self.end, topic)
        else:
            self.world.count_fault("topic_terminated")

    def _delete(self, topic: str) -> None:
        cluster = self.world.cluster
        broker, node = cluster.serving(topic), cluster.node_of(topic)
        if self.world.healed:
            return
        if broker is None or not node.up or cluster.is_moving(topic):
            self.world.clock.after(100 * MILLISECOND, self._delete, topic)
            return
        self._learn(topic)
        last = broker.topic_administration.internal_stats(topic)["ledgers"][-1]["ledgerId"]
        self.world.model.topics[topic].gone = last
        self.world.count_fault("topic_deleted")
        self.world.trace.add(self.world.clock.now, node.name, f"delete {topic}")
        node.command(broker.topic_administration.delete_topic, topic, True)

    def _learn(self, topic: str) -> None:
        """Record everything durable before any of it is deleted, including entries that a broker confirmed
        without a position (duplicates)."""
        record = self.world.model.topics[topic]
        for position, payload in self.world.cluster.durable(topic):
            record.stored(position, record.sends[payload])

    def _compact(self, topic: str) -> None:
        """Compact a topic. Record what is durable then; table views may miss what goes (INV-C17, INV-C18)."""
        world, cluster = self.world, self.world.cluster
        broker, node = cluster.serving(topic), cluster.node_of(topic)
        if world.healed:
            return
        if broker is None or not node.up:
            world.clock.after(100 * MILLISECOND, self._compact, topic)
            return
        record = world.model.topics[topic]
        ledger, entry = broker.topic_administration.internal_stats(topic)["lastConfirmedEntry"].split(":")
        self._learn(topic)
        world.trace.add(world.clock.now, node.name, f"compact {topic} up to {ledger}:{entry}")
        try:
            node.command(broker.topic_administration.compact, topic)
        except InUse:
            return
        record.compacted.begins((int(ledger), int(entry)))  # not when the compaction does not begin
        for table in world.apps.tables:
            if record in table.parts:
                table.compaction_begins()
        world.count_fault("topic_compacted")

    def _end_for_good(self, topic: str) -> None:
        end = self._terminate(topic)
        if end is None:
            self.world.clock.after(10 * MILLISECOND, self._end_for_good, topic)
        else:
            self.ends[topic] = end
