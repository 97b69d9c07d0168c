"""`RoamingApp`: sends and receives while its client changes between two clusters."""

from typing import TYPE_CHECKING

from pulsar_sansio import StatsOptions
from pulsar_sansio.client.outputs import (
    Closed,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    SendFailed,
)
from pulsar_sansio.model.config import ConsumerSpec, InitialPosition, ProducerSpec, SubscriptionType
from pulsar_sansio.model.errors import ClosedError

from ...engine.clock import MILLISECOND
from ...engine.failures import ViolationError
from ...engine.nodes.client_node import ClientNode
from ...engine.nodes.cluster import ROAMING_TOPIC, Cluster
from ...engine.profile import PRIMARY, SECONDARY, OutagePlan
from ...model.positions.single_topic_position import TransientSubscription
from ...model.records.consumer_record import ConsumerRecord
from ...model.records.topic_record import TopicRecord
from ...model.roaming_account import RoamingAccount
from ..transient_app import ReceivingApp
from .roaming_process import RoamingNode, RoamingProcess

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

BACKLOGS = StatsOptions(publishers=False, consumers=False)
"""The statistics of backlogs alone, without those of each producer and consumer."""

MOST_SENT = 300
"""Messages that the application sends, at most."""

MOST_PENDING = 10

REST = 50 * MILLISECOND
"""Nanoseconds between two looks at the clusters when everything seems to be done."""


class RoamingProducer:
    """One producer of the application. It has no send timeout: a message fails with its producer only."""

    def __init__(self, app: "RoamingApp", generation: int) -> None:
        self._app = app
        self.generation = generation
        self.ready = False
        self.pending: dict[int, bytes] = {}
        """Payloads by ticket."""
        self.has_failed = False
        """True when a message has failed: then the producer has ended, and says so next."""
        self.handle = 0

    def on_output(self, output: Output) -> None:
        if isinstance(output, ProducerReady):
            self.ready = True
        elif isinstance(output, Receipts):
            self.check()
            for ticket, found in enumerate(output.message_ids, output.first):
                self._app.account.confirms((found.ledger_id, found.entry_id), self.pending.pop(ticket))
        elif isinstance(output, SendFailed):
            for ticket in range(output.first, output.first + output.count):
                del self.pending[ticket]
            self.has_failed = True
        elif isinstance(output, (ProducerFailed, Closed)):
            self._app.has_lost(self)

    def check(self) -> None:
        """INV-F4: no message fails as long as its producer is open."""
        if self.has_failed:
            raise ViolationError("INV-F4", f"a message of producer {self.generation} failed, and it is open")


class RoamingApp(ReceivingApp[ConsumerRecord]):
    """The application of the roaming client: one producer and one consumer of one topic."""

    def __init__(self, world: "Surroundings", host: RoamingProcess) -> None:
        super().__init__(world, "roamer between clusters", 0, host.index, host.plan.pause)
        self._watch = host.watch
        self._plan = host.plan
        self.account = RoamingAccount(ROAMING_TOPIC)
        self._topic = TopicRecord(ROAMING_TOPIC, deduplication=False)
        self._producer: RoamingProducer | None = None
        self._producers = 0
        self._began = world.clock.now
        self._over = world.clock.now + host.plan.over
        self._last_outage = OutagePlan(0, 0)
        """The primary cluster is away for a visit to the secondary one after healing."""
        for outage in host.plan.outages:
            world.clock.after(outage.after, self._outage, outage)

    @property
    def outages_are_over(self) -> bool:
        return self.world.clock.now >= self._over

    @property
    def done(self) -> bool:
        """True when all is confirmed, the client is in its primary cluster, and has read what it has to."""
        return self._watch.home == PRIMARY and self._is_settled and self._leaves_nothing

    @property
    def _is_settled(self) -> bool:
        """True when all is confirmed, and the client has read the log of the cluster where it has to be."""
        producer = self._producer
        return (
            self.state == "open"
            and self.attached
            and self._watch.is_home
            and producer is not None
            and producer.ready
            and not producer.pending
            and self._is_read(self._watch.home)
        )

    @property
    def _leaves_nothing(self) -> bool:
        """True when no message waits in the secondary cluster, in a world in which the client goes there."""
        return not self._plan.last_visit or self._is_read(SECONDARY)

    def check_rest(self, *clusters: Cluster) -> None:
        """INV-F4 at rest: each cluster has what it confirmed, and the open producer has lost nothing."""
        self._watch.check_rest(self.world.clock.now)
        if self._producer is not None:
            self._producer.check()
        for cluster in clusters:
            self.account.check_log(cluster.far, cluster.durable(ROAMING_TOPIC))
        self.account.check_duplicates([cluster.durable(ROAMING_TOPIC) for cluster in clusters])

    def _is_read(self, cluster: int) -> bool:
        """True when every message of a cluster is received and acknowledged there."""
        clusters = self.world.clusters
        found = clusters[0] if cluster == PRIMARY else clusters[-1]
        broker = found.serving(ROAMING_TOPIC)
        entries = found.durable(ROAMING_TOPIC)
        if broker is None or not self.account.is_read(entries):
            return False
        subscriptions = broker.topic_administration.stats(ROAMING_TOPIC, BACKLOGS)["subscriptions"]
        return "roaming" not in subscriptions or not subscriptions["roaming"]["backlog"]

    # --- outages --------------------------------------------------------------------------------------------

    def _outage(self, outage: OutagePlan) -> None:
        if self.world.healed:
            return
        self.world.count_fault("cluster_away" if outage.cluster == PRIMARY else "secondary_away")
        clock, stay = self.world.clock, self._plan.longest_stay(self.world.profile.named_hosts)
        self._take_away(outage)
        clock.after(outage.length, self._watch.outages.ends, outage)
        if self._plan.is_alone(outage, stay):
            clock.after(stay, self._check_left, outage, self.host.node)

    def _take_away(self, outage: OutagePlan) -> None:
        node = self.host.node
        assert isinstance(node, RoamingNode)
        which = "primary" if outage.cluster == PRIMARY else "secondary"
        self.world.trace.add(self.world.clock.now, node.name, f"the {which} cluster is away: {outage}")
        self._watch.outages.begins(outage)
        node.cut(outage)

    def _check_left(self, outage: OutagePlan, node: ClientNode) -> None:
        """INV-F2, for a client that nothing else disturbs."""
        calm = not self.world.profile.faults and node is self.host.node and self.host.closing is None
        self._watch.check_left(outage, calm)

    def _visit(self) -> None:
        """After healing, send the client to a secondary cluster with messages for it, and back."""
        watch = self._watch
        if self._is_settled and watch.home == SECONDARY:
            watch.home = PRIMARY
            watch.outages.ends(self._last_outage)
        elif self._is_settled and not self._leaves_nothing:
            watch.home = SECONDARY
            if self._plan.control is None:
                self._take_away(self._last_outage)

    # --- one consumer and one producer ----------------------------------------------------------------------

    def open(self) -> None:
        if not self._may_open():
            return
        world = self.world
        self.incarnation += 1
        name = f"roaming.{self.incarnation}"
        subscription = TransientSubscription(self._topic, "roaming", durable=True)
        spec = ConsumerSpec(
            ROAMING_TOPIC,
            subscription.name,
            subscription_type=SubscriptionType.SHARED,
            consumer_name=name,
            initial_position=InitialPosition.EARLIEST,
        )
        self.record = ConsumerRecord(name, subscription, spec)
        self._opened(self.host.node.client.subscribe(world.clock.now, spec))

    def _open_producer(self) -> None:
        self._producers += 1
        spec = ProducerSpec(ROAMING_TOPIC, batching=None, send_timeout=0.0)
        self._producer = producer = RoamingProducer(self, self._producers)
        producer.handle = self.host.node.client.open_producer(self.world.clock.now, spec)
        self.host.routes[producer.handle] = producer

    def has_lost(self, producer: RoamingProducer) -> None:
        if self._producer is producer:
            self._producer = None

    def lose(self) -> None:
        super().lose()
        if self.host.closing is not None:  # the whole process is lost
            self._producer = None

    # --- steps ----------------------------------------------------------------------------------------------

    def _step(self, turn: int) -> None:
        if not self._may_step(turn):
            return
        self._receive()
        producer = self._producer
        if producer is None:
            self._open_producer()
        elif producer.ready and not self.world.healed and self._may_send(producer):
            self._send(producer)
        self.host.node.pump()
        if self.world.healed:
            self._visit()
        if not (self.world.healed and self.done):
            self._later()
        elif self._plan.last_visit:  # the secondary cluster may still write what it took before the change
            self.world.clock.after(REST, self._step, self._turn)

    def _may_send(self, producer: RoamingProducer) -> bool:
        sent = len(self.account.sent)
        is_time = sent * self._plan.send_gap <= self.world.clock.now - self._began
        return is_time and len(producer.pending) < MOST_PENDING and sent < MOST_SENT

    def _send(self, producer: RoamingProducer) -> None:
        world = self.world
        payload = self.account.sends(producer.generation)
        try:
            ticket = self.host.node.client.send(world.clock.now, producer.handle, payload, world.wall_time())
        except ClosedError:
            return
        producer.pending[ticket] = payload

    def _receive(self) -> None:
        client, now = self.host.node.client, self.world.clock.now
        while messages := client.take(now, self.handle, 100):
            for message in messages:
                found = message.message_id
                self.account.receives((found.ledger_id, found.entry_id), message.data)
            client.acknowledge(now, self.handle, messages)
