"""The brokers of a world: one store, a table of topic owners, and the faults that hit brokers.

Owns the ownership table, which brokers may ask but do not hold. The answer may be out of date, or fail while
a topic is moving or its broker is dead. In an orderly move the old broker writes what it took and reports
that it is done. When a topic is stolen, another broker serves it while the old one still believes to own it.
The store takes records of a topic only from its owner.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pulsar_sansio.broker.broker import Broker
from pulsar_sansio.broker.owner import OtherBroker
from pulsar_sansio.broker.records import OF_ITS_OWNER, PartitionsSaved, Record, TopicDeleted, TopicSaved
from pulsar_sansio.broker.storage.store import EntryReader, StoredState
from pulsar_sansio.model.errors import ServiceNotReady
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.model.topic_name import TopicName

from ..paged_store import PagedStore
from ..profile import AUDIT, BrokerPlan
from ..randomness import Stream
from ..web.web_server import WebServer
from .broker_node import BrokerNode

if TYPE_CHECKING:
    from ..surroundings import Surroundings


RECEIPT_VERSION = 17
"""The protocol version from which a broker answers an ACK."""


ROAMING_TOPIC = "persistent://public/default/roaming"
"""The topic of the client that changes between clusters; each cluster has one of its own."""


def address(name: str) -> str:
    return f"pulsar://{name}:6650"


def tls_address(name: str) -> str:
    """Return the address of a broker for TLS."""
    return f"pulsar+ssl://{name}:6651"


class Cluster:
    """All brokers, and the state that they share."""

    far = False
    """True for the cluster that topics migrate to."""

    def __init__(self, world: "Surroundings") -> None:
        self.world = world
        self.store = PagedStore()
        self.reads_back = world.streams.stream("entry cache").chance(500)
        self._stream = self._own_stream()
        self.nodes = self._make_nodes()
        self._by_name = {node.name: node for node in self.nodes}
        self.owners = {topic: self._stream.choice(self.nodes).name for topic in self._own_topics()}
        """Each topic with its owner, the broker whose records the store takes."""
        self._before: dict[str, str] = {}
        """Each topic with its previous owner, as stale caches have it."""
        self._moving: dict[str, str] = {}
        """Each topic being released, with its next owner."""
        self._incarnations = 0
        self._last_ledger = -1
        self._names: dict[str, None] = {}
        """The names of all topics in the store."""

    def _own_stream(self) -> Stream:
        return self.world.streams.stream("cluster")

    def _make_nodes(self) -> list[BrokerNode]:
        plans = self.world.profile.brokers or [BrokerPlan()]
        return [self._node(f"broker-{index}", plan) for index, plan in enumerate(plans)]

    def _own_topics(self) -> list[str]:
        profile, names = self.world.profile, self.world.topics.names
        if profile.failover is not None:
            names = [*names, ROAMING_TOPIC]
        plan = profile.transactions
        return names if plan is None else [*names, *plan.names, *plan.letter_topics.values()]

    def _node(self, name: str, plan: BrokerPlan) -> BrokerNode:
        config = replace(
            self.world.profile.broker,
            service_url=address(name),
            service_url_tls=self.tls_address(name),
            protocol_version=plan.protocol_version,
            feature_flags=plan.feature_flags,
        )
        node = BrokerNode(self, name, config, plan.slowness)
        if self.world.profile.web is not None:
            WebServer(node, self.world.profile.web)
        return node

    def tls_address(self, name: str) -> str | None:
        """Return the address of a broker for TLS, in a world with TLS."""
        issuer = self.world.issuer
        return tls_address(name) if issuer is not None and issuer.plan.tls else None

    def _at(self, name: str) -> OtherBroker:
        return OtherBroker(address(name), self.tls_address(name))

    @property
    def several(self) -> bool:
        return len(self.nodes) > 1

    @property
    def confirms(self) -> bool:
        """True when every broker answers acknowledgements."""
        return all(node.config.protocol_version >= RECEIPT_VERSION for node in self.nodes)

    def node_of(self, topic: str) -> BrokerNode:
        """Return the owner of a topic."""
        return self._by_name[self.owners[topic]]

    def serving(self, topic: str) -> Broker | None:
        """Return the owner's broker when it holds the topic; None otherwise."""
        broker = self.node_of(topic).broker
        return broker if broker is not None and topic in broker.topics.by_name else None

    def is_moving(self, topic: str) -> bool:
        """True while the owner is about to release the topic to another broker."""
        return topic in self._moving

    def set_partitions(self, name: str, count: int) -> None:
        """Set the number of partitions; every broker knows it at once."""
        self.store.write([PartitionsSaved(name, count)])
        for topic in self.world.topics.names:
            if topic not in self.owners:
                self.owners[topic] = self._stream.choice(self.nodes).name
        for node in self.nodes:
            if node.broker is not None:
                node.broker.metadata.partitions[name] = count

    def own(self, topic: str) -> None:
        """Choose an owner for a topic that may exist from now on."""
        self.owners[topic] = self._stream.choice(self.nodes).name

    def boot(self) -> None:
        """Start the brokers that are not running."""
        for name, topic in self.world.model.partitioned.items():
            self.set_partitions(name, topic.count)
        plan = self.world.profile.transactions
        for name, partitions in ({} if plan is None else plan.partitioned).items():
            self.set_partitions(name, len(partitions))
        for node in self.nodes:
            self._boot(node)

    def keep_logs(self) -> None:
        """Give every topic an unused subscription at its beginning, so that no entry is removed."""
        for topic in self._own_topics():
            node = self.node_of(topic)
            assert node.broker is not None
            node.command(node.broker.subscription_administration.create_subscription, topic, AUDIT, EARLIEST)

    @property
    def keeps_logs(self) -> bool:
        """True when these subscriptions are durable."""
        stored = self.store.load().topics
        return all(topic in stored and AUDIT in stored[topic].cursors for topic in self._own_topics())

    def new_ledger(self, least: int) -> int:
        """Return a ledger id that is larger than all used by any broker."""
        self._last_ledger = max(self._last_ledger + 1, least)
        return self._last_ledger

    def heal(self) -> None:
        """Run all brokers, let each learn which topics it owns, and cancel pending kills."""
        for node in self.nodes:
            node.kill_pending = None
            if node.broker is None:
                node.boot()
            elif node.frozen_until:
                self.world.clock.after(0, node.thaw)
            self.world.clock.after(0, node.learn_owners)

    # --- the store, as the brokers see it -------------------------------------------------------------------

    @property
    def reader(self) -> EntryReader | None:
        """The store, for a broker that reads entries back; None for one that has all of them in memory.

        Nothing else may differ between them, so this is no part of the profile. Of several brokers none reads
        entries back: the next owner of a topic may delete them.
        """
        return self.store if self.reads_back and not self.several else None

    def load(self, node: BrokerNode) -> StoredState:
        """Return the stored state that a broker starts with, with the topics that it owns."""
        state = self.store.load() if self.reader is None else self.store.load_unread()
        if self.several:
            self._names = dict.fromkeys(state.topics)
            state.incarnation = self._incarnations
            self._incarnations += 1
            state.topics = {
                name: topic for name, topic in state.topics.items() if self.owners[name] == node.name
            }
        return state

    def write(self, node: BrokerNode, records: Sequence[Record]) -> set[str]:
        """Make durable what the broker may write; return the topics whose records are refused."""
        refused = {
            record.topic
            for record in records
            if isinstance(record, OF_ITS_OWNER) and self.owners[record.topic] != node.name
        }
        written = without(records, refused) if refused else records
        self.store.write(written)
        if self.several and self.world.topics.of_groups:
            self._announce_names(written)
        return refused

    def names(self) -> list[str]:
        """Return the existing topics, where no broker serves all of them."""
        return list(self._names) if self.several and self.world.topics.of_groups else []

    def _announce_names(self, records: Sequence[Record]) -> None:
        """Tell every running broker at once which topics were created or deleted."""
        for record in records:
            if isinstance(record, TopicSaved) and record.topic not in self._names:
                self._names[record.topic] = None
            elif isinstance(record, TopicDeleted) and record.topic in self._names:
                del self._names[record.topic]
            else:
                continue
            for node in self.nodes:
                self.world.clock.after(0, node.topic_changed, record.topic, record.topic in self._names)

    def durable(self, topic: str) -> list[tuple[tuple[int, int], bytes]]:
        """Return the entries that the store holds of a topic: position and bytes."""
        stored = self.store.load().topics.get(topic)
        return [
            ((entry.ledger_id, entry.entry_id), entry.data)
            for ledger in (stored.ledgers.values() if stored is not None else ())
            for entry in ledger.entries
        ]

    def who_serves(self, node: BrokerNode, topic: str, authoritative: bool) -> OtherBroker | None:
        """Answer a broker that does not hold the topic."""
        if topic not in self.owners:
            return None
        name = self.owners[topic]
        stream = self._stream
        rash = not self.world.healed
        if rash and topic in self._before and stream.chance(self.world.profile.stale_lookup_permille):
            name = self._before[topic]
            self.world.count_fault("lookup_out_of_date")
        if name == node.name:
            if topic in self._moving or name != self.owners[topic]:
                raise ServiceNotReady(f"{topic} is on its way")
            return None
        if self._by_name[name].broker is None and stream.chance(500):
            raise ServiceNotReady("no broker serves the topic")
        redirect = stream.chance(self.world.profile.redirect_permille)
        return OtherBroker(address(name), self.tls_address(name), redirect, stream.chance(500))

    # --- topics move ----------------------------------------------------------------------------------------

    def released(self, node: BrokerNode, topic: str) -> None:
        """A broker has released a topic."""
        target = self._by_name[self._moving.pop(topic)]
        self._assign(topic, target if target.up else node, orderly=True)

    def _assign(self, topic: str, node: BrokerNode, orderly: bool) -> None:
        """Make `node` the owner, beginning with what is durable. `orderly`: the previous owner has written
        everything it held in memory."""
        world = self.world
        self._before[topic] = self.owners[topic]
        self.owners[topic] = node.name
        world.trace.add(world.clock.now, node.name, f"serves {topic}")
        world.broker_watch.moved(topic, self._before[topic], node.name, orderly)
        if node.broker is not None:
            node.learn_owners()
            stored = self.store.load().topics.get(topic)
            if stored is not None:
                node.broker.schemas.replace(TopicName.parse(topic), self.store.load().schemas.get(topic, []))
                node.command(node.broker.ownership.adopt, topic, stored)
                world.administrator.adopted(node, topic)

    def _others(self, node: BrokerNode) -> list[BrokerNode]:
        """Return the other brokers that are up."""
        return [each for each in self.nodes if each is not node and each.up]

    # --- what faults do -------------------------------------------------------------------------------------

    def kill(self, broker: BrokerNode, keep: bool, silently: bool, down_time: int) -> bool:
        """Restart the broker, if it runs and the faults are not over."""
        if broker.broker is None or self.world.healed:
            return False
        self.restart(broker, keep, silently, down_time)
        return True

    def restart(self, broker: BrokerNode, keep: bool, silently: bool, down_time: int) -> None:
        """Kill the process, and start a new one. If it stays down for long, other brokers take its topics."""
        broker.kill(keep, silently)
        clock = self.world.clock
        clock.after(down_time, self._boot, broker)
        if self.several:
            patience = self._stream.spread(1_000_000, 2_000_000_000)
            clock.after(patience, self._take_over, broker, broker.incarnation)

    def kill_while_writing(self, broker: BrokerNode, keep: bool, down_time: int) -> bool:
        if broker.broker is None or broker.kill_pending is not None:
            return False
        broker.kill_pending = (keep, down_time)
        return True

    def kill_later(self, broker: BrokerNode, keep: bool, down_time: int) -> None:
        self.kill(broker, keep, False, down_time)

    def _boot(self, broker: BrokerNode) -> None:
        if broker.broker is None:
            broker.boot()

    def _take_over(self, dead: BrokerNode, incarnation: int) -> None:
        """Assign the topics of a dead broker to others."""
        if dead.broker is not None or dead.incarnation != incarnation:
            return
        for topic in [topic for topic, name in self.owners.items() if name == dead.name]:
            others = self._others(dead)
            if others:
                self.world.count_fault("topic_taken_over")
                self._assign(topic, self._stream.choice(others), orderly=False)
            else:
                self.world.clock.after(100_000_000, self._take_over, dead, incarnation)
                return

    def forget_moves(self, dead: BrokerNode) -> None:
        """Cancel the releases that a dead broker had begun."""
        for topic in [each for each in self._moving if self.owners[each] == dead.name]:
            del self._moving[topic]

    def _moves(self, topic: str) -> BrokerNode | None:
        """Return the owner, if it could give the topic away."""
        node = self.node_of(topic)
        if not self._others(node) or topic in self._moving or self.world.healed:
            return None
        return node if self.serving(topic) is not None else None

    def move(self, topic: str, stream: Stream, announce: str) -> bool:
        """Move the topic to another broker. `announce` says what clients are told: "where", "nothing", or
        something "wrong"."""
        node = self._moves(topic)
        if node is None or node.broker is None or not node.up:
            return False
        others = self._others(node)
        target = stream.choice(others)
        self._moving[topic] = target.name
        announced = {"where": target, "nothing": None, "wrong": stream.choice(self.nodes)}[announce]
        world = self.world
        world.trace.add(
            world.clock.now,
            node.name,
            f"releases {topic} for {target.name}, tells {announced and announced.name}",
        )
        node.command(node.broker.ownership.release, topic, announced and self._at(announced.name))
        return True

    def steal(self, topic: str, stream: Stream) -> bool:
        """Assign the topic to another broker; the previous owner finds out later."""
        node = self._moves(topic)
        if node is None:
            return False
        target = stream.choice(self._others(node))
        announced = target.name if stream.chance(500) else None
        node.stale[topic] = self._at(announced) if announced else None
        self.world.model.topics[topic].served_twice = True
        node.purge(topic)
        self._assign(topic, target, orderly=False)
        self.world.clock.after(stream.spread(1_000_000, 3_000_000_000), node.learn_owners)
        return True

    def unload(self, topic: str) -> bool:
        node = self.node_of(topic)
        broker = self.serving(topic)
        if broker is None or node.frozen_until or self.world.closing:
            return False
        self.world.trace.add(self.world.clock.now, node.name, f"unload {topic}")
        node.command(broker.topic_administration.unload, topic)
        return True


def without(records: Sequence[Any], topics: set[str]) -> list[Any]:
    """Return the records that do not belong to these topics."""
    return [record for record in records if not (isinstance(record, OF_ITS_OWNER) and record.topic in topics)]
