"""`RoamingApp`: sends and receives while its client changes between two clusters."""

from typing import TYPE_CHECKING

from pulsar_sansio import StatsOptions
from pulsar_sansio.client.outputs import (
    Closed,
    Deliverable,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
)
from pulsar_sansio.model.config import ConsumerSpec, InitialPosition, ProducerSpec, SubscriptionType
from pulsar_sansio.model.errors import ClosedError

from ...engine.failures import ViolationError
from ...engine.nodes.cluster import ROAMING_TOPIC, Cluster
from ...engine.profile import OutagePlan
from ...model.positions.single_topic_position import TransientSubscription
from ...model.records.consumer_record import ConsumerRecord
from ...model.records.topic_record import TopicRecord
from ...model.roaming_account import RoamingAccount
from ..transient_app import SteppingApp
from .roaming_process import RoamingNode, RoamingProcess

if TYPE_CHECKING:
    from ...engine.surroundings import Surroundings

BACKLOGS = StatsOptions(publishers=False, consumers=False)
"""The statistics of backlogs alone, without those of each producer and consumer."""

MOST_SENT = 300
"""Messages that the application sends, at most."""

MOST_PENDING = 10


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


class RoamingApp(SteppingApp[ConsumerRecord]):
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
        for outage in host.plan.outages:
            world.clock.after(outage.after, self._outage, outage)

    @property
    def outages_are_over(self) -> bool:
        return self.world.clock.now >= self._over

    @property
    def done(self) -> bool:
        """True when all is confirmed, the client is in its primary cluster, and has read that log."""
        producer = self._producer
        return (
            self.state == "open"
            and self.attached
            and self._watch.is_home
            and producer is not None
            and producer.ready
            and not producer.pending
            and self._is_read()
        )

    def check_rest(self, *clusters: Cluster) -> None:
        """INV-F4 at rest: each cluster has what it confirmed, and the open producer has lost nothing."""
        if self._producer is not None:
            self._producer.check()
        for cluster in clusters:
            self.account.check_log(cluster.far, cluster.durable(ROAMING_TOPIC))
        self.account.check_duplicates([cluster.durable(ROAMING_TOPIC) for cluster in clusters])

    def _is_read(self) -> bool:
        """True when every message of the primary cluster is received and acknowledged there."""
        cluster = self.world.cluster
        broker = cluster.serving(ROAMING_TOPIC)
        if broker is None or not self.account.is_read(cluster.durable(ROAMING_TOPIC)):
            return False
        stats = broker.topic_administration.stats(ROAMING_TOPIC, BACKLOGS)
        return not stats["subscriptions"]["roaming"]["backlog"]

    # --- outages --------------------------------------------------------------------------------------------

    def _outage(self, outage: OutagePlan) -> None:
        node = self.host.node
        if not self._watch.outages.begins(outage):
            return
        assert isinstance(node, RoamingNode)
        self.world.count_fault("cluster_away")
        self.world.trace.add(self.world.clock.now, node.name, f"the primary cluster is away: {outage}")
        clock = self.world.clock
        clock.after(outage.length, self._watch.outages.ends, outage)
        clock.after(self._plan.longest_stay(self.world.profile.named_hosts), self._check_left, outage, node)
        node.cut(outage.silent)

    def _check_left(self, outage: OutagePlan, node: RoamingNode) -> None:
        """INV-F2, for a client that nothing else disturbs."""
        calm = not self.world.profile.faults and node is self.host.node and self.host.closing is None
        self._watch.check_left(outage, calm)

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
        if self.state == "open" and not (self.world.healed and self.done):
            self._later()

    def _may_send(self, producer: RoamingProducer) -> bool:
        return len(producer.pending) < MOST_PENDING and len(self.account.sent) < MOST_SENT

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

    # --- outputs --------------------------------------------------------------------------------------------

    def _is_ready(self) -> None:
        self._later()

    def _is_attached_again(self) -> None:
        self._later()

    def _answered(self, output: RequestDone) -> None:
        """Do nothing: the end of the consumer is the answer to its close."""

    def _not_answered(self, output: RequestFailed) -> None:
        """Do nothing: the end of the consumer is the answer to its close."""

    def _on_other_output(self, output: Output) -> bool:
        if isinstance(output, Deliverable) and self.world.healed:
            self._later()
        return isinstance(output, Deliverable)
