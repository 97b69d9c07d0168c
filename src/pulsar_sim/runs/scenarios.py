"""Canonical scenarios: short conversations in good weather, always the same, one feature each.

This module owns the conversations. A sweep cuts, delays and reorders them at every place there is. So each is
as short as its feature allows. A scenario sets everything that a seed would draw: features not named here are
off. They run as worlds like any other, with the same invariants and the same liveness.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from typing import Any

from pulsar_sansio.model.config import BatchingPolicy, CompressionType, SubscriptionType
from pulsar_sansio.wire import proto

from ..engine.clock import MILLISECOND, SECOND
from ..engine.failures import Outcome
from ..engine.network import Wire
from ..engine.profile import (
    BrokerPlan,
    ConsumerPlan,
    EndPlan,
    MigrationPlan,
    PartitionedPlan,
    ProducerPlan,
    Profile,
    SubscriptionPlan,
    TransientSubscriberPlan,
)
from ..engine.randomness import Streams
from ..engine.transactions_plan import TransactionsPlan
from ..generate import draw
from ..world.world import SeedReport, World

T = proto.BaseCommand

SEED = 1
"""The seed of every scenario; it decides the small pauses between an application's steps."""


def quiet_profile(
    *,
    producers: int = 1,
    consumers: int = 0,
    clients: int = 1,
    kind: SubscriptionType = SubscriptionType.EXCLUSIVE,
    messages: int = 4,
) -> Profile:
    """One topic, good weather, everything optional off; consumers share one subscription, and are spread
    over the clients."""
    profile = draw(Streams(SEED), faults=False, messages=1)
    profile.create_topics = True
    profile.clients, profile.topics = clients, 1
    profile.broker = replace(
        type(profile.broker)(service_url=profile.broker.service_url),
        keepalive_interval=1.0,
        liveness_timeout=0.5,
        cursor_flush_interval=0.01,
        failover_delay=0.05,
    )
    profile.brokers, profile.all_addresses = [], False
    profile.redirect_permille = profile.stale_lookup_permille = 0
    profile.transient_subscribers, profile.ends, profile.partitioned, profile.migrations = [], [], [], []
    profile.single_topic_seekers = []
    profile.encryption = profile.transactions = None
    profile.deduplication = False
    profile.keepalive, profile.operation_timeout, profile.max_backoff = 1.0, 2.0, 0.2
    profile.connections_per_broker = 1
    profile.run_time, profile.lingers = SECOND, True
    profile.latency, profile.jitter, profile.cut_permille = MILLISECOND, 0, 0
    profile.store_delay = MILLISECOND
    profile.subscriptions = [SubscriptionPlan(0, kind)] if consumers else []
    profile.producers = [plain_producer(profile.producers[0], messages) for _ in range(producers)]
    consumer = draw(Streams(SEED), faults=False).consumers[0]
    profile.consumers = [
        plain_consumer(consumer, (clients - 1 + index) % clients) for index in range(consumers)
    ]
    return profile


PLAIN_DELIVERY: dict[str, Any] = {
    each.name: each.default for each in fields(ProducerPlan) if each.default is not MISSING
}
"""No partitions, no chunks, shared access."""


def plain_producer(drawn: ProducerPlan, messages: int) -> ProducerPlan:
    return replace(
        drawn,
        client=0,
        topic=0,
        messages=messages,
        batching=None,
        compression=CompressionType.NONE,
        window=100,
        send_timeout=0.0,
        named=False,
        rich_permille=0,
        largest=16,
        burst=2,
        pause=4 * MILLISECOND,
        close_permille=0,
        flush_permille=0,
        **PLAIN_DELIVERY,
    )


def plain_consumer(drawn: ConsumerPlan, client: int) -> ConsumerPlan:
    return replace(
        drawn,
        client=client,
        topic=0,
        subscription=0,
        queue=10,
        receipts=False,
        batch_index=False,
        group_time=0.01,
        group_size=1000,
        nack_delay=0.1,
        nack_permille=0,
        keep_permille=0,
        cumulative_permille=0,
        redeliver_permille=0,
        close_permille=0,
        confirm_permille=0,
        pause=4 * MILLISECOND,
        take=3,
        priority=0,
    )


class ScenarioWorld(World):
    """A world that follows a scenario: `script` runs when the applications begin."""

    def __init__(self, scenario: "Scenario", keep_trace: bool = False) -> None:
        self._scenario = scenario
        self._triggers: list[tuple[int, int, Callable[[], Any]]] = []
        self._written: dict[int, int] = {}
        super().__init__(SEED, scenario.profile(), keep_trace)

    def when_written(self, kind: int, number: int, action: Callable[[], Any]) -> None:
        """Do something as soon as that many frames of a kind were written."""
        self._triggers.append((kind, number, action))

    def reset_everything(self) -> None:
        """All connections are lost, once."""
        self.trace.add(self.clock.now, "fault", "reset")
        for wire in list(self.network.wires.values()):
            wire.reset()

    def _set_phase(self, phase: str) -> None:
        super()._set_phase(phase)
        if phase == "run":
            self._written.clear()
            self.clock.after(1, self._scenario.script, self)

    def _wrote(self, wire: Wire, to_broker: bool, kind: int, command: Any) -> bytes | None:
        instead = super()._wrote(wire, to_broker, kind, command)
        if self._triggers:
            count = self._written[kind] = self._written.get(kind, 0) + 1
            for wanted, number, action in self._triggers:
                if wanted == kind and number == count:
                    self.clock.after(0, action)
        return instead


def _nothing(_: ScenarioWorld) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Scenario:
    """A conversation that can be held again and again."""

    name: str
    text: str
    profile: Callable[[], Profile]
    script: Callable[[ScenarioWorld], None] = _nothing
    small: bool = False
    """Few enough events to try every order of them."""


SCENARIOS: dict[str, Scenario] = {}
"""All, by name."""


def must_pass(report: SeedReport, scenario: Scenario) -> None:
    """Raise `ValueError` when an undisturbed scenario failed."""
    if report.outcome is not Outcome.PASSED:
        raise ValueError(f"{scenario.name} fails by itself: {report.rule}: {report.text}")


def scenario(
    script: Callable[[ScenarioWorld], None] = _nothing, *, small: bool = False
) -> Callable[[Callable[[], Profile]], Callable[[], Profile]]:
    def add(profile: Callable[[], Profile]) -> Callable[[], Profile]:
        name = profile.__name__.replace("_", "-")
        SCENARIOS[name] = Scenario(name, " ".join((profile.__doc__ or "").split()), profile, script, small)
        return profile

    return add


# --- what scripts do --------------------------------------------------------------------------------------


def _unload_at_second_send(world: ScenarioWorld) -> None:
    world.when_written(T.SEND, 2, lambda: world.cluster.unload(world.topics.names[0]))


def _unload_at_second_message(world: ScenarioWorld) -> None:
    world.when_written(T.MESSAGE, 2, lambda: world.cluster.unload(world.topics.names[0]))


def _redirect_twice(world: ScenarioWorld) -> None:
    world.misbehaviour.arm("lookup_redirected", 2)


def _close_both(world: ScenarioWorld) -> None:
    world.when_written(T.SEND_RECEIPT, 2, lambda: world.apps.producers[0].close_and_reopen())
    world.when_written(T.MESSAGE, 3, lambda: world.apps.consumers[0].close_and_reopen())


def _close_producer(world: ScenarioWorld) -> None:
    world.when_written(T.SEND, 1, lambda: world.apps.producers[0].close_and_reopen())


def _reset_at_second_send(world: ScenarioWorld) -> None:
    world.when_written(T.SEND, 2, world.reset_everything)


def _reset_at_acknowledgement(world: ScenarioWorld) -> None:
    world.when_written(T.ACK, 1, world.reset_everything)


def _move(world: ScenarioWorld, announce: str) -> None:
    stream = world.streams.stream("move")
    world.when_written(T.SEND, 2, lambda: world.cluster.move(world.topics.names[0], stream, announce))


def _steal(world: ScenarioWorld) -> None:
    stream = world.streams.stream("steal")
    world.when_written(T.SEND, 2, lambda: world.cluster.steal(world.topics.names[0], stream))


def _end_the_second_partition(world: ScenarioWorld) -> None:
    topic = world.topics.names[2]
    world.when_written(T.PARTITIONED_METADATA_RESPONSE, 1, lambda: world.administrator.create(topic))
    world.when_written(T.LOOKUP_RESPONSE, 1, lambda: world.administrator.end(topic))


# --- the scenarios ------------------------------------------------------------------------------------------


@scenario(small=True)
def produce_single() -> Profile:
    """A producer sends messages one by one, and flushes."""
    profile = quiet_profile(messages=3)
    profile.producers[0] = replace(profile.producers[0], flush_permille=500)
    return profile


@scenario()
def produce_batch_compressed() -> Profile:
    """A producer sends compressed batches of messages with keys and properties."""
    profile = quiet_profile(messages=8)
    profile.producers[0] = replace(
        profile.producers[0],
        batching=BatchingPolicy(max_messages=4, max_bytes=4096, max_delay=0.002),
        compression=CompressionType.ZLIB,
        rich_permille=500,
        burst=8,
    )
    return profile


@scenario()
def produce_deduplicated() -> Profile:
    """A named producer with a window of three sends to a topic that drops duplicates."""
    profile = quiet_profile(messages=6)
    profile.deduplication = True
    profile.broker = replace(profile.broker, deduplication=True)
    profile.producers[0] = replace(profile.producers[0], named=True, window=3, burst=3)
    return profile


@scenario(small=True)
def consume_exclusive() -> Profile:
    """One producer, one consumer, acknowledgements in groups."""
    return quiet_profile(consumers=1, messages=3)


@scenario()
def consume_shared() -> Profile:
    """Two consumers of two clients share; their queues are of one message."""
    profile = quiet_profile(consumers=2, clients=2, kind=SubscriptionType.SHARED, messages=6)
    profile.consumers = [replace(plan, queue=1, group_time=0.0) for plan in profile.consumers]
    return profile


@scenario()
def consume_failover() -> Profile:
    """Two consumers of two clients, one of them active."""
    return quiet_profile(consumers=2, clients=2, kind=SubscriptionType.FAILOVER, messages=5)


@scenario()
def consume_key_shared() -> Profile:
    """Two consumers share by key."""
    profile = quiet_profile(consumers=2, clients=2, kind=SubscriptionType.KEY_SHARED, messages=8)
    profile.producers[0] = replace(profile.producers[0], rich_permille=1000)
    return profile


@scenario()
def acknowledge_cumulatively() -> Profile:
    """Batches, acknowledged up to a message."""
    profile = quiet_profile(consumers=1, messages=8)
    profile.producers[0] = replace(
        profile.producers[0], batching=BatchingPolicy(max_messages=4, max_delay=0.002), burst=8
    )
    profile.consumers[0] = replace(profile.consumers[0], cumulative_permille=1000)
    return profile


@scenario()
def acknowledge_parts_of_batches() -> Profile:
    """Batches, acknowledged message by message in any order, on a Shared subscription."""
    profile = quiet_profile(consumers=1, kind=SubscriptionType.SHARED, messages=8)
    profile.producers[0] = replace(
        profile.producers[0], batching=BatchingPolicy(max_messages=4, max_delay=0.002), burst=8
    )
    profile.consumers[0] = replace(
        profile.consumers[0], batch_index=True, keep_permille=500, group_time=0.0, receipts=True, take=1
    )
    return profile


@scenario()
def acknowledge_with_receipts() -> Profile:
    """Acknowledgements that are confirmed, and an application that waits for it."""
    profile = quiet_profile(consumers=1, kind=SubscriptionType.SHARED, messages=4)
    profile.consumers[0] = replace(profile.consumers[0], receipts=True, confirm_permille=500)
    return profile


@scenario()
def refuse_messages() -> Profile:
    """Half of the messages are refused and redelivered."""
    profile = quiet_profile(consumers=1, kind=SubscriptionType.SHARED, messages=6)
    profile.consumers[0] = replace(profile.consumers[0], nack_permille=500, nack_delay=0.05)
    return profile


@scenario()
def ask_for_everything_again() -> Profile:
    """An exclusive consumer keeps messages for a while and asks for all of them again."""
    profile = quiet_profile(consumers=1, messages=4)
    profile.consumers[0] = replace(profile.consumers[0], keep_permille=600, redeliver_permille=400, queue=2)
    return profile


@scenario(_unload_at_second_send, small=True)
def unload_while_sending() -> Profile:
    """The broker gives the topic away in the middle of a burst."""
    profile = quiet_profile(messages=5)
    profile.producers[0] = replace(profile.producers[0], burst=5)
    return profile


@scenario(_unload_at_second_message)
def unload_while_receiving() -> Profile:
    """The broker gives the topic away while messages are on their way and acknowledgements wait."""
    return quiet_profile(consumers=1, kind=SubscriptionType.SHARED, messages=5)


@scenario(_redirect_twice)
def lookup_redirected() -> Profile:
    """The lookups of a producer and a consumer are redirected."""
    return quiet_profile(consumers=1, messages=2)


@scenario()
def lookup_through_a_proxy() -> Profile:
    """The broker is reached through the service URL."""
    profile = quiet_profile(consumers=1, messages=2)
    profile.broker = replace(profile.broker, proxy_through_service_url=True)
    return profile


@scenario(_close_both)
def close_and_open_again() -> Profile:
    """A named producer and a consumer are closed in the middle and opened again."""
    profile = quiet_profile(consumers=1, messages=6)
    profile.deduplication = True
    profile.broker = replace(profile.broker, deduplication=True)
    profile.producers[0] = replace(profile.producers[0], named=True)
    return profile


@scenario(_close_producer, small=True)
def close_while_sending() -> Profile:
    """A producer is closed with messages under way."""
    profile = quiet_profile(messages=3)
    profile.producers[0] = replace(profile.producers[0], burst=3)
    return profile


@scenario(_reset_at_second_send, small=True)
def reset_while_sending() -> Profile:
    """The connection is lost in the middle of a burst."""
    profile = quiet_profile(messages=3)
    profile.producers[0] = replace(profile.producers[0], burst=3)
    return profile


@scenario(_reset_at_acknowledgement, small=True)
def reset_while_acknowledging() -> Profile:
    """The connection is lost while an acknowledgement is under way."""
    return quiet_profile(consumers=1, kind=SubscriptionType.SHARED, messages=2)


@scenario()
def unsubscribe() -> Profile:
    """A subscription is made, read from, and removed by its consumer."""
    profile = quiet_profile(messages=3)
    profile.transient_subscribers = [
        TransientSubscriberPlan(client=0, topic=0, durable=True, stay=20 * MILLISECOND, queue=2)
    ]
    return profile


@scenario()
def read_without_a_subscription() -> Profile:
    """A consumer reads everything, and nothing is kept of it."""
    profile = quiet_profile(messages=4)
    profile.transient_subscribers = [
        TransientSubscriberPlan(client=0, topic=0, durable=False, stay=SECOND, queue=2)
    ]
    return profile


@scenario()
def terminate() -> Profile:
    """A topic is ended between two messages: the producer is refused, the consumer reads to the end."""
    profile = quiet_profile(consumers=1, messages=6)
    profile.ends = [EndPlan(0, 15 * MILLISECOND)]
    return profile


@scenario(_end_the_second_partition, small=True)
def one_partition_cannot_be_opened() -> Profile:
    """The second of three partitions has ended when a producer opens them: it leaves the others and fails."""
    profile = quiet_profile(messages=1)
    profile.partitioned = [PartitionedPlan(3)]
    profile.producers[0] = replace(profile.producers[0], partitioned=0)
    return profile


@scenario()
def migrate() -> Profile:
    """A topic goes on in another cluster while it is used: producer and consumer follow."""
    profile = quiet_profile(consumers=1, messages=6)
    profile.migrations = [MigrationPlan(0, 15 * MILLISECOND)]
    return profile


def _two_brokers(**shape: Any) -> Profile:
    profile = quiet_profile(**shape)
    profile.brokers = [BrokerPlan(), BrokerPlan()]
    profile.redirect_permille = 1000
    return profile


@scenario(partial(_move, announce="where"))
def move_to_a_given_address() -> Profile:
    """A topic goes to another broker in the middle of a burst; its clients are told which."""
    profile = _two_brokers(consumers=1, messages=5)
    profile.producers[0] = replace(profile.producers[0], burst=5)
    return profile


@scenario(partial(_move, announce="nothing"))
def move_without_an_address() -> Profile:
    """The topic moves unannounced: clients have to find out, and their lookups are redirected."""
    return _two_brokers(consumers=1, kind=SubscriptionType.SHARED, messages=4)


@scenario(_steal)
def stale_owner() -> Profile:
    """A broker goes on with a topic that another one serves, until the store refuses its records."""
    return _two_brokers(consumers=1, messages=5)


def _in_transactions(**plan: Any) -> Profile:
    """A world with a message of another application, and one topic with transactions."""
    profile = quiet_profile(messages=1)
    profile.lingers = False
    profile.transactions = TransactionsPlan(topics=1, transactions=1, pause=4 * MILLISECOND, **plan)
    return profile


@scenario()
def commit_a_transaction() -> Profile:
    """A message is received, and others are sent, in one transaction."""
    return _in_transactions(messages=1)


@scenario()
def abort_a_transaction() -> Profile:
    """An exclusive consumer receives again what it acknowledged up to a message, in batches."""
    return _in_transactions(
        messages=2,
        kinds=[SubscriptionType.EXCLUSIVE],
        abort_permille=1000,
        cumulative_permille=1000,
        batching=BatchingPolicy(max_messages=2, max_delay=0.002),
    )


@scenario()
def two_transactions_at_once() -> Profile:
    """Two transactions of two coordinators acknowledge on one subscription, of two consumers."""
    profile = _in_transactions(messages=2, at_once=2, consumers=2)
    assert profile.transactions is not None
    profile.transactions.transactions = 2
    profile.broker = replace(profile.broker, transaction_coordinators=2)
    return profile
