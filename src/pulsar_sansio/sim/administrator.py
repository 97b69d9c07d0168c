"""The administrator of a world: gives topics more partitions, ends them for good, or deletes them under
everybody's feet; or sends them to another cluster.

Owns what was asked of which topic and what was answered. What a deleted topic held may be gone: nobody can
demand it any more, and who comes back finds an empty one. A topic that is terminated takes nothing more:
producers are told so, and every consumer is told when it has acknowledged all there is. The command is given
again when the weather is good, because a broker that died may have forgotten it.
"""

from typing import TYPE_CHECKING

from .clock import MILLISECOND
from .cluster import FAR_BROKER, address
from .profile import EndPlan
from .violations import ViolationError

if TYPE_CHECKING:
    from .broker_node import BrokerNode
    from .records import Place, Position
    from .world import World


class Administrator:
    """One, for all topics."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self._plans: list[EndPlan] = world.profile.ends
        self.migrated: dict[str, None] = {}
        """Topics that have been told to go on in the other cluster."""
        self._asked: set[str] = set()
        self.ends: dict[str, Position] = {}
        """Topics that have ended and stay so: the last entry's position."""

    def start(self) -> None:
        for plan in self._plans:
            act = self._delete if plan.deleted else self._end
            self.world.clock.after(plan.after, act, self.world.topics[plan.topic])
        for migration in self.world.profile.migrations:
            self.world.clock.after(migration.after, self._migrate, self.world.topics[migration.topic])
        for name, partitioned in zip(self.world.partitioned, self.world.profile.partitioned, strict=True):
            for growth in partitioned.growth:
                self.world.clock.after(growth.after, self._grow, name, growth.partitions)

    def booted(self, node: "BrokerNode") -> None:
        """Where topics are deleted, so is the subscription that keeps a log whole, new partitions have none,
        nor have topics in the cluster to which they migrate: everything is retained."""
        if any(plan.deleted for plan in self._plans) or self.world.partitioned or node.cluster.far:
            assert node.broker is not None
            node.command(node.broker.set_policy, "public/default", "retention_time", -1.0)
        for topic in self.migrated:
            self.adopted(node, topic)

    def adopted(self, node: "BrokerNode", topic: str) -> None:
        """That a topic has migrated is kept with the cluster, not with the broker that was told so: whoever
        serves the topic from now on knows it."""
        broker = node.broker
        if (
            topic in self.migrated
            and not node.cluster.far
            and broker is not None
            and topic in broker.all_topics
        ):
            node.command(broker.migrate, topic, address(FAR_BROKER))
            self.world.broker_watch.goes_far(node.name, topic)

    def heal(self) -> None:
        """Whatever was ended is ended now, for good."""
        for topic in sorted(self._asked):
            self.world.clock.after(0, self._end_for_good, topic)
        for topic in self.world.topics[self.world.profile.topics :]:
            self.world.clock.after(0, self._create, topic)

    def has_ended(self, topic: str) -> bool:
        """Whether anybody may be told that it has."""
        return topic in self._asked

    def check(self, topic: str, found: "list[Place]") -> None:
        """BROKER-43: nothing was stored behind the end."""
        end = self.ends.get(topic)
        if end is not None and found and found[-1][:2] > end:
            raise ViolationError("BROKER-43", f"{topic} was ended at {end} and holds {found[-1]}")

    @property
    def done(self) -> bool:
        return self._asked == set(self.ends)

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
        self.world.add_partitions(name, partitions)
        self.world.cluster.set_partitions(name, partitions)

    def _create(self, topic: str) -> None:
        """A partition that nobody has used is there all the same."""
        cluster = self.world.cluster
        node = cluster.node_of(topic)
        if cluster.serving(topic) is not None:
            return
        if node.up and node.broker is not None and not cluster.is_moving(topic):
            node.command(node.broker.create_topic, topic)
        else:
            self.world.clock.after(10 * MILLISECOND, self._create, topic)

    def _terminate(self, topic: str) -> "Position | None":
        cluster = self.world.cluster
        broker, node = cluster.serving(topic), cluster.node_of(topic)
        if broker is None or not node.up:
            return None
        self.world.trace.add(self.world.clock.now, node.name, f"terminate {topic}")
        self._asked.add(topic)
        self.world.model.topics[topic].ended = True
        last = node.command(broker.terminate, topic)
        return last.ledger_id, last.entry_id

    def _end(self, topic: str) -> None:
        if self.world.healed or topic in self._asked:
            return
        if self._terminate(topic) is None:
            self.world.clock.after(100 * MILLISECOND, self._end, topic)
        else:
            self.world.count_fault("topic_terminated")

    def _delete(self, topic: str) -> None:
        cluster = self.world.cluster
        broker, node = cluster.serving(topic), cluster.node_of(topic)
        if self.world.healed:
            return
        if broker is None or not node.up:
            self.world.clock.after(100 * MILLISECOND, self._delete, topic)
            return
        last = broker.internal_stats(topic)["ledgers"][-1]["ledgerId"]
        self.world.model.topics[topic].gone = last
        self.world.count_fault("topic_deleted")
        self.world.trace.add(self.world.clock.now, node.name, f"delete {topic}")
        node.command(broker.delete_topic, topic, True)

    def _end_for_good(self, topic: str) -> None:
        end = self._terminate(topic)
        if end is None:
            self.world.clock.after(10 * MILLISECOND, self._end_for_good, topic)
        else:
            self.ends[topic] = end
