"""What a seed is: a world drawn at random — its size, options, workload, weather and which faults exist.

Owns every range that is drawn, in one place. Swarm testing: each seed has a random subset of the fault kinds
and its own densities, because a world in which everything goes wrong at once hides what one fault alone
would show.
"""

from dataclasses import dataclass, field, replace

from ..broker.config import BrokerConfig
from ..model.config import (
    BatchingPolicy,
    CompressionType,
    HashingScheme,
    ProducerAccessMode,
    SubscriptionType,
)
from .clock import MICROSECOND, MILLISECOND, SECOND
from .consumer_draws import draw_dead_letters, draw_flow, draw_roamers, draw_timeouts
from .faults import FAULTS, LATER_FAULTS, RARE_FAULTS
from .streams import Stream, Streams

MOST_FAULTS = 40
"""Of one seed, about: a long storm shows no more than a short one, and costs as much as many other seeds."""

GROWN = 2.0
"""Seconds by which a growing delay grows, at most."""

CHUNK_PATIENCE = 100.0
"""Seconds. No producer stays away for that long and comes back to send the rest of a message."""

LONGEST_STAY = 20 * SECOND
"""How long the phase with faults lasts, at most, where it goes on when everything is sent."""


@dataclass(slots=True)
class ProducerPlan:
    """One application that sends."""

    client: int
    topic: int
    messages: int
    batching: BatchingPolicy | None
    compression: CompressionType
    window: int
    send_timeout: float
    named: bool
    """Keeps its name over close and open."""
    rich_permille: int
    """How many messages carry keys, properties, event times, or an empty or null payload."""
    largest: int
    """Bytes of the largest payload."""
    burst: int
    """Messages sent in one step, at most."""
    pause: int
    """Nanoseconds between steps, at most."""
    close_permille: int
    flush_permille: int
    partitioned: int | None = None
    """Sends to this partitioned topic, and not to `topic`."""
    routing: str = "round_robin"
    """Or "single_partition", or "by_size", a function of the application."""
    hashing: HashingScheme = HashingScheme.JAVA_STRING
    lazy: bool = False
    across: int = 50_000
    """Pending messages over all partitions, at most."""
    update_interval: float | None = 60.0
    """Seconds between two questions for the number of partitions."""
    chunk_size: int = 0
    """Bytes of payload in one chunk, at most; 0 sends nothing in chunks."""
    access: ProducerAccessMode = ProducerAccessMode.SHARED
    contested: bool = False
    """Somebody may want the topic for himself: who has sent everything leaves it."""
    explicit: bool = False
    """Gives its messages sequence ids of their own, and sends again under the same ids what it does not know
    to be stored."""
    initial: int | None = None
    """The sequence id before the first one."""
    delayed_permille: int = 0
    """How many messages are to be delivered later."""
    interceptors: list[str] = field(default_factory=list)
    """What stands in the way of every message, in this order: "watches", "changes", "raises"."""

    @property
    def longest_batch(self) -> int:
        """Nanoseconds that a batch stays open, at most."""
        return 0 if self.batching is None else round(self.batching.max_delay * SECOND)


@dataclass(slots=True)
class GrowthPlan:
    """So many partitions there are, so many nanoseconds after applications begin."""

    after: int
    partitions: int


@dataclass(slots=True)
class PartitionedPlan:
    """A topic with partitions, beside `Profile.topics`: each is one of its own, numbered behind those."""

    partitions: int
    growth: list[GrowthPlan] = field(default_factory=list)


@dataclass(slots=True)
class ConsumerPlan:
    """One application that receives."""

    client: int
    topic: int
    subscription: int
    queue: int
    receipts: bool
    batch_index: bool
    group_time: float
    group_size: int
    nack_delay: float
    nack_permille: int
    keep_permille: int
    """How many messages are kept for a while before they are acknowledged."""
    cumulative_permille: int
    """Of the acknowledgements, where the subscription's type allows them."""
    redeliver_permille: int
    """Of the steps, how many ask for everything unacknowledged again."""
    close_permille: int
    confirm_permille: int
    """Of the steps, how many wait for confirmation of the acknowledgements so far."""
    pause: int
    take: int
    priority: int
    timeout: float = 0.0
    """Seconds after which what was not judged comes again; 0 is never."""
    tick: float = 1.0
    """Seconds in which that is counted."""
    growing: bool = False
    """Both, this timeout and the delay of what is refused, grow with every delivery."""
    dead_letters: int = 0
    """What comes more often again goes to a topic of dead letters; 0 is never."""
    halt_permille: int = 0
    """Of the steps, how many ask for nothing more for a while."""
    starts_halted: bool = False
    scaled: bool = False
    """The queue grows up to its size."""
    forget_permille: int = 0
    """How many messages are never judged, where there is a timeout."""

    @property
    def longest_timeout(self) -> float:
        """Seconds until the last one that was forgotten comes again."""
        return 0.0 if not self.timeout else self.timeout + 3 * self.tick + (GROWN if self.growing else 0.0)


@dataclass(slots=True)
class SubscriptionPlan:
    topic: int
    kind: SubscriptionType


@dataclass(slots=True)
class VisitorPlan:
    """One who subscribes for a while and leaves nothing behind."""

    client: int
    topic: int
    durable: bool
    """Makes a subscription and removes it; else reads without one."""
    stay: int
    """Nanoseconds of a visit, and between two of them, at most."""
    queue: int


@dataclass(slots=True)
class RoamerPlan:
    """One who moves about in a topic."""

    client: int
    topic: int
    durable: bool
    """Has a subscription that remembers where it is; else it is a reader."""
    times: bool
    """Goes to moments, too."""
    queue: int
    take: int
    pause: int
    """Nanoseconds between steps, at most."""
    seek_permille: int
    ask_permille: int
    """Of the steps, how many ask whether there is more, or for the last message."""
    acknowledge_permille: int
    close_permille: int
    group_time: float


@dataclass(slots=True)
class EndPlan:
    """A topic that is terminated, or deleted by force, so many nanoseconds after applications begin."""

    topic: int
    after: int
    deleted: bool = False
    """It comes into being again when somebody comes back to it, and is empty."""


@dataclass(slots=True)
class MigrationPlan:
    """A topic without partitions that goes on in another cluster, so many nanoseconds after applications
    begin."""

    topic: int
    after: int


@dataclass(slots=True)
class BrokerPlan:
    """What one broker is like. All share the options of `Profile.broker`."""

    protocol_version: int = 21
    feature_flags: bool = True
    slowness: int = 0
    """Nanoseconds that bytes wait, at most, until the broker reads them."""


@dataclass(slots=True)
class Profile:
    """Everything drawn for one seed."""

    clients: int
    topics: int
    subscriptions: list[SubscriptionPlan]
    producers: list[ProducerPlan]
    consumers: list[ConsumerPlan]
    broker: BrokerConfig
    deduplication: bool
    keepalive: float
    operation_timeout: float
    max_backoff: float
    connections_per_broker: int
    run_time: int
    """Nanoseconds of the phase with faults, at most."""
    lingers: bool
    """The phase with faults goes on when everything is sent."""
    latency: int
    jitter: int
    cut_permille: int
    fault_gap: int
    """Nanoseconds between faults, on average; 0 is no faults."""
    faults: list[str] = field(default_factory=list)
    """Kinds that may happen."""
    timers_late_permille: int = 0
    timers_early_permille: int = 0
    stale_permille: int = 0
    last_reset: int = 0
    """Nanoseconds after healing at which all wires are reset once more, 0 for never: what is lost then is
    not made good by anything that follows."""
    store_delay: int = MILLISECOND
    brokers: list[BrokerPlan] = field(default_factory=list)
    """None named is one of the latest kind."""
    all_addresses: bool = False
    """The service URL names every broker, not the first alone."""
    redirect_permille: int = 0
    """Of the lookups that meet a broker that does not serve the topic, how many are redirected; the others
    are told at once where to connect."""
    stale_lookup_permille: int = 0
    """Of the same, how many hear who served the topic before."""
    visitors: list[VisitorPlan] = field(default_factory=list)
    roamers: list[RoamerPlan] = field(default_factory=list)
    ends: list[EndPlan] = field(default_factory=list)
    migrations: list[MigrationPlan] = field(default_factory=list)
    partitioned: list[PartitionedPlan] = field(default_factory=list)
    memory_limit: int | None = None
    """Bytes of payload that the producers of a client hold together, at most."""
    max_rejected_requests: int = 50
    """Lookups refused on one connection after which a client leaves it."""
    chunk_patience: float = CHUNK_PATIENCE
    """Seconds until a consumer gives up on a message of which not all chunks have come."""

    @property
    def messages(self) -> int:
        return sum(plan.messages for plan in self.producers)

    @property
    def patience(self) -> int:
        """Nanoseconds of virtual time within which everything is done after healing, or liveness is violated.

        The slowest path there is: two keepalive intervals until a half-open link is found out, the longest
        backoff, an operation that times out once, the send timeout and the longest redelivery delay; twice,
        and a little.
        """
        slowest = 2 * self.keepalive + self.max_backoff + 2 * self.operation_timeout + 5.0
        slowest += max((plan.send_timeout for plan in self.producers), default=0.0)
        slowest += max((plan.nack_delay for plan in self.consumers), default=0.0)
        slowest += max((plan.longest_timeout for plan in self.consumers), default=0.0)
        if any(plan.chunk_size for plan in self.producers):
            slowest += self.chunk_patience
        if self.partitioned:
            slowest += max(plan.update_interval or 0.0 for plan in self.producers)
        work = sum(plan.messages for plan in self.producers) * 50 * MILLISECOND
        if self.memory_limit is not None:  # one batch of one message may fill it, until its time is over
            work += sum(plan.messages * plan.longest_batch for plan in self.producers)
            work += self.messages * 3 * self.store_delay  # until it is durable, after the write before it
        return round(2 * slowest * SECOND) + work


def draw(streams: Streams, faults: bool = True, messages: int | None = None) -> Profile:
    """The profile of a seed. `messages`: about how many are sent, in place of what would be drawn.

    What is drawn is about how many entries a producer makes, because an entry is what costs time, whatever it
    holds: who makes large batches sends more messages.
    """
    draw = streams.stream("profile")
    clients = draw.weighted([(1, 6), (2, 6), (3, 4), (4, 3), (5, 1), (6, 1), (7, 1), (8, 1)])
    topics = draw.weighted([(1, 5), (2, 3), (3, 1)])
    subscriptions = [
        SubscriptionPlan(topic, draw.choice(list(SubscriptionType)))
        for topic in range(topics)
        for _ in range(draw.weighted([(1, 6), (2, 3)]))
    ]
    deduplication = draw.chance(400)
    broker = BrokerConfig(
        service_url="pulsar://broker-0:6650",
        deduplication=deduplication,
        keepalive_interval=draw.between(1, 10) * 1.0,
        liveness_timeout=draw.between(1, 4) * 1.0,
        ledger_max_entries=draw.choice([3, 10, 50, 50_000]),
        cursor_flush_interval=draw.choice([0.0, 0.01, 0.1, 1.0]),
        batch_index_acknowledgement=draw.chance(600),
        failover_delay=draw.choice([0.0, 0.05, 1.0]),
        entries_per_turn=draw.choice([1, 2, 20]),
        max_unacked_messages_per_consumer=draw.choice([50_000, 50_000, 100]),
        topic_list_watcher=False,  # no world has consumers of patterns
    )
    profile = Profile(
        clients=clients,
        topics=topics,
        subscriptions=subscriptions,
        producers=[],
        consumers=[],
        broker=broker,
        deduplication=deduplication,
        keepalive=draw.between(1, 10) * 1.0,
        operation_timeout=draw.between(2, 10) * 1.0,
        max_backoff=draw.choice([0.2, 1.0, 3.0]),
        connections_per_broker=draw.weighted([(1, 4), (2, 1)]),
        run_time=draw.spread(2, 60) * SECOND,
        lingers=streams.stream("lingers").chance(200),
        latency=draw.spread(20, 20_000) * MICROSECOND,
        jitter=draw.choice([0, 100 * MICROSECOND, 5 * MILLISECOND]),
        cut_permille=draw.choice([0, 20, 200]),
        fault_gap=0,
        store_delay=draw.spread(50, 20_000) * MICROSECOND,
    )
    total = messages if messages is not None else draw.spread(16, 96)
    count = draw.between(1, 3)
    for index in range(count):
        sender = _producer(draw, profile, max(1, total // count))
        if index < topics:
            sender.topic = index  # a topic that nobody sends to shows little
        if messages is None:
            sender.messages *= _usual_batch(sender)
        profile.producers.append(sender)
    for index, plan in enumerate(subscriptions):
        several = plan.kind is not SubscriptionType.EXCLUSIVE
        for _ in range(draw.weighted([(1, 3), (2, 2), (3, 1)] if several else [(1, 5), (2, 1)])):
            profile.consumers.append(_consumer(draw, profile, index))
    if profile.lingers:
        profile.run_time = min(profile.run_time, LONGEST_STAY)
    if faults:
        _draw_faults(draw, profile)
    _draw_brokers(streams.stream("brokers"), profile)
    _draw_visitors(streams.stream("visitors"), profile)
    ends = streams.stream("ends")
    if ends.chance(80):
        profile.ends.append(EndPlan(ends.below(topics), ends.spread(10 * MILLISECOND, 10 * SECOND)))
    elif len(profile.brokers) == 1 and ends.chance(80):
        # Ledger ids are unique over one broker's restarts only. Somebody has to come back to the topic.
        topic = profile.producers[0].topic
        profile.ends.append(EndPlan(topic, ends.spread(10 * MILLISECOND, 10 * SECOND), deleted=True))
    if not any(plan.deleted for plan in profile.ends):  # nobody knows then what was on it
        _draw_partitions(streams.stream("partitions"), profile)
        _draw_chunks(streams.stream("chunks"), profile)
        _draw_access(streams.stream("access"), profile)
        _draw_identities(streams.stream("sequence ids"), profile)
    _draw_batches_by_key(streams.stream("batches by key"), profile)
    _draw_delays(streams.stream("delays"), profile)
    memory = streams.stream("memory")
    # Who keeps a topic for himself may wait for memory that others hold who wait for the topic.
    if memory.chance(120) and not any(plan.contested for plan in profile.producers):
        profile.memory_limit = memory.choice([100, 1000, 20_000])
    if profile.fault_gap:
        more = streams.stream("more faults")
        profile.faults = sorted(profile.faults + [kind for kind in LATER_FAULTS if more.chance(500)])
    draw_special(streams, profile, faults)
    draw_timeouts(streams.stream("timeouts"), profile)
    draw_flow(streams.stream("flow"), profile)
    draw_dead_letters(streams.stream("dead letters"), profile)
    draw_roamers(streams.stream("roamers"), profile)
    return profile


def _draw_partitions(draw: Stream, profile: Profile) -> None:
    """A partitioned topic, and who sends to it; perhaps somebody who reads one of its partitions."""
    if not draw.chance(180):
        return
    plan = PartitionedPlan(draw.weighted([(1, 1), (2, 4), (3, 4), (4, 2)]))
    profile.partitioned.append(plan)
    count = plan.partitions
    for _ in range(draw.weighted([(0, 4), (1, 4), (2, 1)])):
        count += draw.between(1, 2)
        plan.growth.append(GrowthPlan(draw.spread(10 * MILLISECOND, 10 * SECOND), count))
    plan.growth.sort(key=lambda growth: growth.partitions)
    at = 0
    for growth in plan.growth:
        at = growth.after = max(at + MILLISECOND, growth.after)
    first = draw.below(len(profile.producers))
    for index, producer in enumerate(profile.producers):
        if index == first or draw.chance(600):
            producer.partitioned = 0
            producer.routing = draw.choice(["round_robin", "round_robin", "single_partition", "by_size"])
            producer.hashing = draw.choice([HashingScheme.JAVA_STRING, HashingScheme.MURMUR3_32])
            producer.lazy = draw.chance(300)
            producer.across = draw.choice([50_000, 50_000, 100, 5])
            producer.update_interval = draw.choice([1.0, 2.0, 5.0])
            producer.rich_permille = draw.choice([0, 500, 1000])
            if draw.chance(300):
                producer.messages = max(4, producer.messages // _usual_batch(producer))
                producer.batching = None
    for index in range(plan.partitions):
        if draw.chance(250):
            profile.subscriptions.append(
                SubscriptionPlan(profile.topics + index, draw.choice(list(SubscriptionType)))
            )
            profile.consumers.append(_consumer(draw, profile, len(profile.subscriptions) - 1))


def _draw_identities(draw: Stream, profile: Profile) -> None:
    """Sequence ids that applications choose. Who sends again does so message by message: a broker drops a
    batch of which it has the first message, with whatever else is in it."""
    for plan in profile.producers:
        if profile.deduplication and plan.partitioned is None and draw.chance(250):
            plan.explicit = plan.named = True
            plan.messages = max(4, plan.messages // _usual_batch(plan))
            plan.batching = None
        elif not plan.named and draw.chance(100):
            plan.initial = draw.choice([-1, 0, 7, 2**40])


def _draw_delays(draw: Stream, profile: Profile) -> None:
    """Where clocks are not set: who is an hour behind waits for an hour."""
    for plan in profile.producers:
        if draw.chance(100) and "wall_clock_set" not in profile.faults:
            plan.delayed_permille = draw.choice([50, 300])


def _draw_batches_by_key(draw: Stream, profile: Profile) -> None:
    for plan in profile.producers:
        if plan.batching is not None and draw.chance(120):
            plan.batching = replace(plan.batching, by_key=True)
            plan.rich_permille = draw.choice([500, 1000])


def _draw_chunks(draw: Stream, profile: Profile) -> None:
    """Who sends in chunks sends less, so that a seed has about as many entries as others."""
    if not draw.chance(150):
        return
    topic = profile.producers[0].topic
    for producer in profile.producers:
        if draw.chance(600):
            if draw.chance(500):  # several on one topic
                producer.topic = topic
            producer.messages = max(4, producer.messages // _usual_batch(producer))
            producer.batching = None
            producer.chunk_size = draw.choice([20, 100, 100, 1000])
            producer.largest = producer.chunk_size * draw.between(1, 8)
            producer.burst = min(producer.burst, 16)


def _draw_access(draw: Stream, profile: Profile) -> None:
    """A topic that some want for themselves."""
    plain = [plan for plan in profile.producers if plan.partitioned is None]
    if len(plain) < 2 or not draw.chance(200):
        return
    topic = draw.choice(plain).topic
    modes = [mode for mode in ProducerAccessMode if mode is not ProducerAccessMode.SHARED]
    fencing = False
    for plan in plain:
        plan.topic = topic
        plan.contested = True
        plan.access = ProducerAccessMode.SHARED if draw.chance(150) else draw.choice(modes)
        if plan.access is ProducerAccessMode.EXCLUSIVE_WITH_FENCING:
            if fencing:  # two would fence each other for ever
                plan.access = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
            fencing = True


def _draw_visitors(draw: Stream, profile: Profile) -> None:
    for _ in range(draw.weighted([(0, 7), (1, 2), (2, 1)])):
        profile.visitors.append(
            VisitorPlan(
                client=draw.below(profile.clients),
                topic=draw.below(profile.topics),
                durable=draw.chance(500),
                stay=draw.spread(20 * MILLISECOND, 3 * SECOND),
                queue=draw.choice([1, 10, 100, 1000]),
            )
        )


def _draw_brokers(draw: Stream, profile: Profile) -> None:
    """How many there are, and what each is like."""
    for _ in range(draw.weighted([(1, 6), (2, 3), (3, 1)])):
        plan = BrokerPlan()
        if draw.chance(400):
            plan.protocol_version = draw.choice([20, 19, 17, 16, 15, 12])
        plan.feature_flags = plan.protocol_version >= 19 and draw.chance(800)
        if draw.chance(100):
            plan.slowness = draw.spread(100 * MICROSECOND, 20 * MILLISECOND)
        profile.brokers.append(plan)
    profile.all_addresses = draw.chance(500)
    profile.redirect_permille = draw.choice([0, 500, 1000])
    profile.stale_lookup_permille = draw.choice([0, 0, 200])


def _producer(draw: Stream, profile: Profile, messages: int) -> ProducerPlan:
    batching = None
    if draw.chance(900):
        batching = BatchingPolicy(
            max_messages=draw.choice([2, 8, 20, 20]),
            max_bytes=draw.choice([500, 4096, 128 * 1024]),
            max_delay=draw.choice([0.0, 0.001, 0.02, 0.5]),
        )
    return ProducerPlan(
        client=draw.below(profile.clients),
        topic=draw.below(profile.topics),
        messages=messages,
        batching=batching,
        compression=draw.weighted(
            [
                (CompressionType.NONE, 6),
                (CompressionType.LZ4, 1),
                (CompressionType.ZLIB, 1),
                (CompressionType.ZSTD, 1),
                (CompressionType.SNAPPY, 1),
            ]
        ),
        window=draw.choice([1, 10, 50, 200, 10_000, 10_000, 10_000]),
        send_timeout=draw.choice([0.0, 0.0, 3.0, 10.0, 30.0]),
        named=draw.chance(400),
        rich_permille=draw.choice([0, 0, 100, 500]),
        largest=draw.choice([16, 200, 2000]),
        burst=draw.choice([4, 16, 48]),
        pause=draw.spread(MILLISECOND, SECOND),
        close_permille=draw.choice([0, 0, 10, 50]),
        flush_permille=draw.choice([0, 50, 300]),
    )


def _usual_batch(plan: ProducerPlan) -> int:
    """About how many messages will be in an entry."""
    batching = plan.batching
    if batching is None:
        return 1
    fitting = batching.max_bytes // (plan.largest // 2 + 10)
    return max(1, min(batching.max_messages, (plan.burst + 1) // 2, plan.window, fitting))


def _consumer(draw: Stream, profile: Profile, subscription: int) -> ConsumerPlan:
    topic = profile.subscriptions[subscription].topic
    queue = draw.choice([1, 2, 5, 10, 10, 100, 1000])
    if draw.chance(800):
        # In entries: a queue that is smaller than one asks for more after every few messages.
        queue *= max((_usual_batch(plan) for plan in profile.producers if plan.topic == topic), default=1)
    return ConsumerPlan(
        client=draw.below(profile.clients),
        topic=topic,
        subscription=subscription,
        queue=queue,
        receipts=draw.chance(400),
        batch_index=draw.chance(500),
        group_time=draw.choice([0.0, 0.01, 0.01, 0.1, 0.1, 0.1, 1.0]),
        group_size=draw.choice([2, 20, 1000]),
        nack_delay=draw.choice([0.0, 0.1, 1.0]),
        nack_permille=draw.choice([0, 0, 20, 50, 200]),
        keep_permille=draw.choice([0, 0, 100, 500]),
        cumulative_permille=draw.choice([0, 100, 1000]),
        redeliver_permille=draw.choice([0, 0, 20]),
        close_permille=draw.choice([0, 0, 10, 50]),
        confirm_permille=draw.choice([0, 50, 200]),
        pause=draw.spread(MILLISECOND, SECOND),
        take=draw.choice([1, 5, 100, 100]),
        priority=draw.choice([0, 0, 0, 1]),
    )


def _draw_faults(draw: Stream, profile: Profile) -> None:
    if draw.chance(50):
        return
    often = draw.spread(20 * MILLISECOND, 5 * SECOND)
    profile.fault_gap = max(often, profile.run_time // MOST_FAULTS)
    kinds = [kind for kind in FAULTS if kind not in LATER_FAULTS + RARE_FAULTS]
    draw.shuffle(kinds)
    profile.faults = sorted(kinds[: draw.between(1, len(kinds))])
    profile.timers_late_permille = draw.choice([0, 0, 20, 300])
    profile.timers_early_permille = draw.choice([0, 0, 20, 300])
    profile.stale_permille = draw.choice([0, 300])
    profile.last_reset = draw.choice([0, 0, draw.spread(MILLISECOND, SECOND)])


from .rarities import draw_special  # noqa: E402  what it draws are the plans above
