"""What a world is: its size, options, workload, weather, and which faults exist.

Owns the plans, one for each who acts, and how long a world with them may take to be done. It knows nothing of
seeds: `draws` makes the profile of one, scenarios write theirs down.
"""

from dataclasses import dataclass, field

from pulsar_sansio.broker.config import BrokerConfig
from pulsar_sansio.model.config import (
    BatchingPolicy,
    CompressionType,
    HashingScheme,
    ProducerAccessMode,
    SubscriptionType,
)

from .clock import MILLISECOND, SECOND

GROWN = 2.0
"""Seconds by which a growing delay grows, at most."""

LONGEST_PUT_OFF = 2.0
"""Seconds for which a message is put off, at most."""

CHUNK_PATIENCE = 100.0
"""Seconds. No producer stays away for that long and comes back to send the rest of a message."""

AUDIT = "audit"
"""The subscription that has no consumer until the end: it keeps the whole log, to be read then."""

FAR_LEDGERS = 1_000_000
"""Ledger ids from here on are those of the cluster that topics migrate to: what a topic holds there lies
behind what it held before."""


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
    appearing: int | None = None
    """Sends to this one of `Profile.appearances`, once it is there."""
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
    ranges: list[list[int]] = field(default_factory=list)
    """Hashes of keys that it takes, and no others: first and last of each range. Nothing lets the broker
    divide the keys."""
    bad_every: int = 0
    """Every so-many-th message of a producer is one that it can never process, and refuses."""
    put_off_permille: int = 0
    """How many messages it wants later, in a group with `retry`."""
    greedy_permille: int = 0
    """How often it asks for all of them, whoever has them."""

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
    compacted: bool = False
    """Reads what compaction has left."""


@dataclass(slots=True)
class TablePlan:
    """One who has a table view."""

    client: int
    topic: int
    queue: int
    pause: int
    """Nanoseconds between steps, at most."""
    refresh_permille: int
    close_permille: int
    partitioned: int | None = None
    """Of this partitioned topic, and not of `topic`."""
    update_interval: float = 1.0
    """Seconds between two questions for the number of partitions."""


@dataclass(slots=True)
class CompactionPlan:
    """A topic that is compacted, so many nanoseconds after applications begin."""

    topic: int
    after: int


@dataclass(slots=True)
class AppearancePlan:
    """A topic that comes into being so many nanoseconds after applications begin, in whatever weather."""

    after: int
    made: bool = True
    """By an administrator, before anybody uses it."""
    gone_after: int = 0
    """Nanoseconds from then on until it is deleted; 0 for never."""
    back_after: int = 0
    """Nanoseconds from then on until there is a new one of that name; 0 for never."""


@dataclass(slots=True)
class GroupPlan:
    """A subscription over several topics, and the applications that receive from it."""

    kind: SubscriptionType
    consumers: list[ConsumerPlan]
    """Their `topic` and `subscription` mean nothing."""
    topics: list[int] = field(default_factory=list)
    """Those without partitions, by number."""
    partitioned: list[int] = field(default_factory=list)
    pattern: str = ""
    """In place of both: all topics whose own names match."""
    twice: int = 0
    """So many of the list are named a second time, in short."""
    update_interval: float = 1.0
    """Seconds between two questions for the number of partitions."""
    discovery_interval: float | None = 1.0
    """Seconds between two questions for the topics that there are; None never asks again."""
    total_queue: int = 50_000
    """Messages prefetched over all partitions of a topic, at most."""
    retry: int = 0
    """How often a message may be put off, to come again later; 0 is never."""


@dataclass(slots=True)
class TouristPlan:
    """One who moves about in several topics."""

    client: int
    group: GroupPlan
    """Which topics; without consumers."""
    times: bool
    """Goes to moments, too."""
    queue: int
    take: int
    pause: int
    """Nanoseconds between steps, at most."""
    seek_permille: int
    ask_permille: int
    leave_permille: int
    """Of the steps, how many remove the subscription."""
    close_permille: int
    reads: bool = False
    """Has no subscription that remembers where it is."""


@dataclass(slots=True)
class WhisperPlan:
    """One who sends to a non-persistent topic, and listens there."""

    client: int
    reads: bool
    """As a reader."""
    queue: int
    pause: int
    """Nanoseconds between steps, at most."""
    close_permille: int
    batching: BatchingPolicy | None = None


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
    tables: list[TablePlan] = field(default_factory=list)
    compactions: list[CompactionPlan] = field(default_factory=list)
    ends: list[EndPlan] = field(default_factory=list)
    migrations: list[MigrationPlan] = field(default_factory=list)
    partitioned: list[PartitionedPlan] = field(default_factory=list)
    appearances: list[AppearancePlan] = field(default_factory=list)
    groups: list[GroupPlan] = field(default_factory=list)
    tourists: list[TouristPlan] = field(default_factory=list)
    whispers: list[WhisperPlan] = field(default_factory=list)
    memory_limit: int | None = None
    create_topics: bool = True
    """Whether clients bring topics into being by asking for them."""
    """Bytes of payload that the producers of a client hold together, at most."""
    max_rejected_requests: int = 50
    """Lookups refused on one connection after which a client leaves it."""
    chunk_patience: float = CHUNK_PATIENCE
    """Seconds until a consumer gives up on a message of which not all chunks have come."""

    @property
    def messages(self) -> int:
        return sum(plan.messages for plan in self.producers)

    @property
    def polls_all_patterns(self) -> bool:
        """Whoever has a pattern asks which topics there are, also when brokers tell it."""
        groups = [*self.groups, *(plan.group for plan in self.tourists)]
        return all(group.discovery_interval is not None for group in groups if group.pattern)

    @property
    def receivers(self) -> list[ConsumerPlan]:
        """Of one topic or of several."""
        return [*self.consumers, *(plan for group in self.groups for plan in group.consumers)]

    @property
    def patience(self) -> int:
        """Nanoseconds of virtual time within which everything is done after healing, or liveness is violated.

        The slowest path there is: two keepalive intervals until a half-open link is found out, the longest
        backoff, an operation that times out once, the send timeout and the longest redelivery delay; twice,
        and a little.
        """
        slowest = 2 * self.keepalive + self.max_backoff + 2 * self.operation_timeout + 5.0
        slowest += max((plan.send_timeout for plan in self.producers), default=0.0)
        slowest += max((plan.nack_delay for plan in self.receivers), default=0.0)
        slowest += max((plan.longest_timeout for plan in self.receivers), default=0.0)
        for group in [*self.groups, *(plan.group for plan in self.tourists)]:
            slowest += group.update_interval + (group.discovery_interval or 0.0)
        slowest += max((LONGEST_PUT_OFF * group.retry for group in self.groups), default=0.0)
        if any(plan.chunk_size for plan in self.producers):
            slowest += self.chunk_patience
        if self.partitioned:
            slowest += max((plan.update_interval or 0.0 for plan in self.producers), default=0.0)
            slowest += max((plan.update_interval for plan in self.tables), default=0.0)
        work = sum(plan.messages for plan in self.producers) * 50 * MILLISECOND
        if self.memory_limit is not None:  # one batch of one message may fill it, until its time is over
            work += sum(plan.messages * plan.longest_batch for plan in self.producers)
            work += self.messages * 3 * self.store_delay  # until it is durable, after the write before it
        late = max((plan.after + plan.gone_after + plan.back_after for plan in self.appearances), default=0)
        return round(2 * slowest * SECOND) + work + late
