"""The profile of a world: its size, options, workload and timing, and the faults that exist.

Owns one plan for each application, and how long a world may take to be done. It knows nothing of seeds:
`generate` draws the profile of a seed, scenarios write theirs down.
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
from .security.encryption_plan import EncryptionPlan
from .transactions_plan import TransactionsPlan

GROWN = 2.0
"""Seconds by which a growing delay grows, at most."""

LONGEST_RECONSUME_DELAY = 2.0
"""Seconds after which a message is reconsumed, at most."""

CHUNK_PATIENCE = 100.0
"""Seconds. No producer stays away that long and returns to send the rest of a chunked message."""

LONGEST_KEY_FAILURE = 10.0
"""Seconds for which a consumer remembers that it could not have a key."""

AUDIT = "audit"
"""The subscription without a consumer until the end: it keeps the whole log for the final audit."""

PRIMARY, SECONDARY = 0, 1
"""The clusters of a client with a failover."""

PROBE_TIMEOUT = 1.0
"""Seconds that a client with a failover waits for a connection."""

FAR_LEDGERS = 1_000_000
"""Ledger ids from this number on belong to the cluster that topics migrate to: its entries lie behind those
of the first cluster."""


@dataclass(slots=True)
class ProducerPlan:
    """The plan of an application that sends."""

    client: int
    topic: int
    messages: int
    batching: BatchingPolicy | None
    compression: CompressionType
    window: int
    send_timeout: float
    named: bool
    """The producer keeps its name when it is reopened."""
    rich_permille: int
    """Messages with keys, properties, event times, or an empty or null payload, per thousand."""
    largest: int
    """Bytes of the largest payload."""
    burst: int
    """Messages sent in one step, at most."""
    pause: int
    """Nanoseconds between steps, at most."""
    close_permille: int
    flush_permille: int
    partitioned: int | None = None
    """An index of a partitioned topic to send to, in place of `topic`."""
    appearing: int | None = None
    """An index in `Profile.appearances` of a topic to send to once it exists."""
    routing: str = "round_robin"
    """"round_robin", "single_partition", or "by_size", which is a function of the application."""
    hashing: HashingScheme = HashingScheme.JAVA_STRING
    lazy: bool = False
    across: int = 50_000
    """Pending messages over all partitions, at most."""
    update_interval: float | None = 60.0
    """Seconds between two requests for the number of partitions."""
    chunk_size: int = 0
    """Payload bytes of one chunk, at most; 0 disables chunking."""
    access: ProducerAccessMode = ProducerAccessMode.SHARED
    contested: bool = False
    """Another producer may want exclusive access: an application that has sent everything leaves the
    topic."""
    explicit: bool = False
    """The application chooses sequence ids, and resends under them every message not known to be stored."""
    initial: int | None = None
    """The sequence id before the first one."""
    delayed_permille: int = 0
    """Messages to be delivered later, per thousand."""
    interceptors: list[str] = field(default_factory=list)
    """Interceptors of the producer, in order: "watches", "changes", "raises"."""

    @property
    def longest_batch(self) -> int:
        """Nanoseconds that a batch stays open, at most."""
        return 0 if self.batching is None else round(self.batching.max_delay * SECOND)


@dataclass(slots=True)
class GrowthPlan:
    """Growth of a partitioned topic to `partitions`, `after` nanoseconds from the start of the
    applications."""

    after: int
    partitions: int


@dataclass(slots=True)
class PartitionedPlan:
    """A partitioned topic, beside `Profile.topics`: its partitions are topics numbered behind those."""

    partitions: int
    growth: list[GrowthPlan] = field(default_factory=list)


@dataclass(slots=True)
class ConsumerPlan:
    """The plan of an application that receives."""

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
    """Messages kept for a while before they are acknowledged, per thousand."""
    cumulative_permille: int
    """Cumulative acknowledgements per thousand, where the subscription type allows them."""
    redeliver_permille: int
    """Steps that ask for redelivery of everything unacknowledged, per thousand."""
    close_permille: int
    confirm_permille: int
    """Steps that ask to confirm the acknowledgements so far, per thousand."""
    pause: int
    take: int
    priority: int
    timeout: float = 0.0
    """The acknowledgement timeout in seconds; 0 disables it."""
    tick: float = 1.0
    """Seconds of one tick of that timeout."""
    growing: bool = False
    """The acknowledgement timeout and the negative-acknowledgement delay grow with every delivery."""
    dead_letters: int = 0
    """Redeliveries after which a message goes to the dead-letter topic; 0 disables that."""
    halt_permille: int = 0
    """Steps that pause the consumer for a while, per thousand."""
    starts_halted: bool = False
    scaled: bool = False
    """The receiver queue grows up to its size."""
    forget_permille: int = 0
    """Messages that are never acknowledged, where there is a timeout, per thousand."""
    ranges: list[list[int]] = field(default_factory=list)
    """The consumer's own key hash ranges, first and last of each. An empty list lets the broker divide the
    keys."""
    bad_every: int = 0
    """Every `bad_every`-th message of a producer fails in this application, which refuses it at each
    delivery."""
    reconsume_permille: int = 0
    """Messages that are reconsumed later, per thousand, in a group with `retry`."""
    greedy_permille: int = 0
    """Openings that ask for the whole hash range, per thousand, whichever consumer owns the keys."""

    @property
    def longest_timeout(self) -> float:
        """Seconds until the last message with an expired timeout is redelivered."""
        return 0.0 if not self.timeout else self.timeout + 3 * self.tick + (GROWN if self.growing else 0.0)


@dataclass(slots=True)
class SubscriptionPlan:
    topic: int
    kind: SubscriptionType


@dataclass(slots=True)
class TransientSubscriberPlan:
    """The plan of an application that subscribes for a while and leaves no subscription behind."""

    client: int
    topic: int
    durable: bool
    """The application creates a durable subscription and removes it; otherwise it reads without one."""
    stay: int
    """Nanoseconds of one subscription, and between two of them, at most."""
    queue: int


@dataclass(slots=True)
class SingleTopicSeekerPlan:
    """The plan of an application that seeks in one topic."""

    client: int
    topic: int
    durable: bool
    """The application has a durable subscription; otherwise it is a reader."""
    times: bool
    """Targets include times."""
    queue: int
    take: int
    pause: int
    """Nanoseconds between steps, at most."""
    seek_permille: int
    ask_permille: int
    """Steps that ask whether more is available, or for the last message, per thousand."""
    acknowledge_permille: int
    close_permille: int
    group_time: float
    compacted: bool = False
    """The application reads the compacted topic."""


@dataclass(slots=True)
class TableViewPlan:
    """The plan of an application with a table view."""

    client: int
    topic: int
    queue: int
    pause: int
    """Nanoseconds between steps, at most."""
    refresh_permille: int
    close_permille: int
    partitioned: int | None = None
    """An index of a partitioned topic to view, in place of `topic`."""
    update_interval: float = 1.0
    """Seconds between two requests for the number of partitions."""


@dataclass(slots=True)
class CompactionPlan:
    """A compaction of a topic, `after` nanoseconds from the start of the applications."""

    topic: int
    after: int


@dataclass(slots=True)
class AppearancePlan:
    """A topic that is created `after` nanoseconds from the start of the applications, whatever faults there
    are."""

    after: int
    made: bool = True
    """An administrator creates the topic before any application uses it."""
    gone_after: int = 0
    """Nanoseconds from then on until the topic is deleted; 0 means never."""
    back_after: int = 0
    """Nanoseconds from then on until a new topic of that name exists; 0 means never."""


@dataclass(slots=True)
class GroupPlan:
    """A subscription over several topics, and the applications that receive from it."""

    kind: SubscriptionType
    consumers: list[ConsumerPlan]
    """Their `topic` and `subscription` are ignored."""
    topics: list[int] = field(default_factory=list)
    """Indexes of topics without partitions."""
    partitioned: list[int] = field(default_factory=list)
    pattern: str = ""
    """In place of both lists: a pattern for the topics' local names."""
    twice: int = 0
    """The number of listed topics that are named a second time, by a short name."""
    update_interval: float = 1.0
    """Seconds between two requests for the number of partitions."""
    discovery_interval: float | None = 1.0
    """Seconds between two requests for the existing topics; None never repeats the request."""
    total_queue: int = 50_000
    """Messages prefetched over all partitions of a topic, at most."""
    retry: int = 0
    """Times that one message may be reconsumed later; 0 means never."""


@dataclass(slots=True)
class MultiTopicsSeekerPlan:
    """The plan of an application that seeks in several topics."""

    client: int
    group: GroupPlan
    """The topics; without consumers."""
    times: bool
    """Targets include times."""
    queue: int
    take: int
    pause: int
    """Nanoseconds between steps, at most."""
    seek_permille: int
    ask_permille: int
    leave_permille: int
    """Steps that remove the subscription, per thousand."""
    close_permille: int
    reads: bool = False
    """The application is a reader, without a durable subscription."""


@dataclass(slots=True)
class NonPersistentPlan:
    """The plan of an application that sends to a non-persistent topic and receives from it."""

    client: int
    reads: bool
    """The application receives as a reader."""
    queue: int
    pause: int
    """Nanoseconds between steps, at most."""
    close_permille: int
    batching: BatchingPolicy | None = None


@dataclass(slots=True)
class EndPlan:
    """A topic that is terminated, or deleted by force, `after` nanoseconds from the start of the
    applications."""

    topic: int
    after: int
    deleted: bool = False
    """The topic is created again, empty, when an application returns to it."""


@dataclass(slots=True)
class MigrationPlan:
    """A topic without partitions that migrates to another cluster, `after` nanoseconds from the start of the
    applications."""

    topic: int
    after: int


@dataclass(slots=True)
class BrokerPlan:
    """The options of one broker. All brokers share those of `Profile.broker`."""

    protocol_version: int = 21
    feature_flags: bool = True
    slowness: int = 0
    """Nanoseconds that received bytes wait, at most, before the broker reads them."""


@dataclass(slots=True)
class CredentialsPlan:
    """Brokers that authenticate every client, and the provider of credentials in each client process."""

    challenges: int = 0
    """Challenges of the broker that follow CONNECT before a client is connected."""
    lifetime: int = 0
    """Nanoseconds after which credentials expire; 0 means never."""
    refresh_interval: float = 60.0
    """Seconds that a client has to renew expired credentials."""
    delay: int = 0
    """Nanoseconds that the provider takes, at most."""
    slow_permille: int = 0
    """Questions that take up to 12 s to answer, per thousand."""
    failing_permille: int = 0
    """Questions that the provider answers with an error, per thousand."""
    forged_permille: int = 0
    """Questions that are answered with credentials that no broker accepts, per thousand."""
    expired_permille: int = 0
    """Questions that are answered with expired credentials, per thousand."""
    tls: bool = False
    """Clients connect by TLS."""
    bad_certificates_permille: int = 0
    """Connections by TLS whose peer shows an expired certificate, per thousand."""
    sni_proxy: bool = False
    """Clients connect through a proxy that routes by the server name of TLS; needs `tls`."""


@dataclass(slots=True)
class OutagePlan:
    """Every broker of one cluster is away for one client, `length` nanoseconds long."""

    after: int
    """Nanoseconds from the start of the applications."""
    length: int
    silent: bool = False
    """Nothing is refused or reset: bytes and attempts to connect are lost."""
    cluster: int = field(default=PRIMARY, repr=False)


@dataclass(slots=True)
class ControlPlan:
    """A web service that names the cluster to use."""

    changes: list[int]
    """Nanoseconds from the start of the applications: from each moment on it names the other cluster."""
    away_permille: int = 0
    """Connections that the service refuses, per thousand."""
    slow_permille: int = 0
    """Requests that take up to 12 s to answer, per thousand."""
    wrong_permille: int = 0
    """Requests whose answer names no cluster that the client may use, per thousand."""


@dataclass(slots=True)
class FailoverPlan:
    """A client that changes between two clusters, by probes or as a web service says, and its application."""

    failover_delay: float
    switch_back_delay: float
    check_interval: float
    outages: list[OutagePlan]
    pause: int
    """Nanoseconds between steps of the application, at most."""
    control: ControlPlan | None = None
    """The service that the client asks; None for a client that probes."""
    send_gap: int = 0
    """Nanoseconds between two messages on average, at least: some are left to be sent after a change."""
    last_visit: bool = False
    """After healing, the client is sent once more to a secondary cluster with messages for it."""

    @property
    def slowest_change(self) -> float:
        """Seconds from the return of the primary cluster until the client uses it again, at most."""
        return self.failover_delay + self.switch_back_delay + 4 * (self.check_interval + PROBE_TIMEOUT)

    def is_alone(self, outage: OutagePlan, length: int) -> bool:
        """True when the other cluster is there for the first `length` nanoseconds of an outage."""
        return all(
            other.cluster == outage.cluster
            or other.after >= outage.after + length
            or other.after + other.length <= outage.after
            for other in self.outages
        )

    def longest_stay(self, hosts: int) -> int:
        """Nanoseconds that the client stays in a cluster that is away, at most: one check may have begun
        before, attempts at each of `hosts` take their whole time, and the secondary is probed."""
        attempts = (3 * hosts + 2) * PROBE_TIMEOUT
        return round((self.failover_delay + 2 * self.check_interval + attempts) * SECOND)

    @property
    def over(self) -> int:
        """Nanoseconds from the start of the applications until the last outage is over, and until two seconds
        after the last change that the service names."""
        changes = [] if self.control is None else [after + 2 * SECOND for after in self.control.changes]
        return max([*changes, *(outage.after + outage.length for outage in self.outages)])


@dataclass(slots=True)
class WebPlan:
    """Brokers with web servers, which all clients ask by lookups over HTTP."""

    slow_permille: int = 0
    """Requests that take up to 12 s to answer, per thousand."""
    redirect_permille: int = 0
    """Requests that are sent to the web server of another broker, or back, per thousand."""
    failing_permille: int = 0
    """Requests that are refused for now, per thousand."""
    missing_permille: int = 0
    """Requests that are answered with 404, per thousand."""
    garbage_permille: int = 0
    """Requests whose answer has no use, per thousand."""
    cut_permille: int = 0
    """Requests whose answer ends in the middle, per thousand."""
    crowd: int = 0
    """Questions that one application asks at once, again and again."""


@dataclass(slots=True)
class SchemaPlan:
    """Topics whose producers and consumers have schemas."""

    kind: str = "avro"
    """"avro", "json", "text", or "pairs": a key of text beside a value in Avro's encoding."""
    strategy: str = "FULL"
    """The compatibility strategy of all topics."""
    bytes_permille: int = 0
    """Producers without a schema, per thousand."""
    adopting_permille: int = 0
    """Producers that adopt the definition of their topic, per thousand."""
    strange_permille: int = 0
    """Producers and consumers with a definition that the strategy may refuse, per thousand."""
    measured: bool = False
    """Half of these have a definition that all others read, and that reads few of them."""
    mixed_every: int = 0
    """One message in so many of a producer has another definition than the producer; 0 means none."""
    registrations: list[int] = field(default_factory=list)
    """Nanoseconds from the start of the applications: at each moment an administrator registers a version."""
    deleted_after: int = 0
    """Nanoseconds from the start of the applications until the versions of one topic are deleted; 0 means
    never."""
    loosened_after: int = 0
    """Nanoseconds from the start of the applications from which on every definition may follow; 0 means
    never."""


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
    """The phase with faults continues after everything is sent."""
    latency: int
    jitter: int
    cut_permille: int
    fault_gap: int
    """Nanoseconds between faults, on average; 0 disables faults."""
    faults: list[str] = field(default_factory=list)
    """Kinds of faults that may strike."""
    timers_late_permille: int = 0
    timers_early_permille: int = 0
    stale_permille: int = 0
    last_reset: int = 0
    """Nanoseconds after healing at which all wires are reset once more, 0 for never: no later event makes
    good what is lost then."""
    store_delay: int = MILLISECOND
    brokers: list[BrokerPlan] = field(default_factory=list)
    """Plans of the brokers; an empty list means one broker of the latest version."""
    all_addresses: bool = False
    """The service URL names every broker instead of the first alone."""
    redirect_permille: int = 0
    """Redirected lookups per thousand of those that reach a broker without the topic; the others are answered
    with the owner's address."""
    stale_lookup_permille: int = 0
    """Lookups per thousand of these that are answered with the previous owner."""
    transient_subscribers: list[TransientSubscriberPlan] = field(default_factory=list)
    single_topic_seekers: list[SingleTopicSeekerPlan] = field(default_factory=list)
    tables: list[TableViewPlan] = field(default_factory=list)
    compactions: list[CompactionPlan] = field(default_factory=list)
    ends: list[EndPlan] = field(default_factory=list)
    migrations: list[MigrationPlan] = field(default_factory=list)
    partitioned: list[PartitionedPlan] = field(default_factory=list)
    appearances: list[AppearancePlan] = field(default_factory=list)
    groups: list[GroupPlan] = field(default_factory=list)
    multi_topics_seekers: list[MultiTopicsSeekerPlan] = field(default_factory=list)
    nonpersistent_apps: list[NonPersistentPlan] = field(default_factory=list)
    memory_limit: int | None = None
    """Payload bytes that the producers of a client may hold together, at most."""
    create_topics: bool = True
    """Clients create topics by asking for them."""
    max_rejected_requests: int = 50
    """Refused lookups on one connection after which a client leaves it."""
    chunk_patience: float = CHUNK_PATIENCE
    """Seconds until a consumer discards a message whose chunks have not all arrived."""
    credentials: CredentialsPlan | None = None
    """None means that brokers accept every client."""
    failover: FailoverPlan | None = None
    """None means that every client stays in its cluster."""
    web: WebPlan | None = None
    """None means that clients ask over the binary protocol."""
    schemas: SchemaPlan | None = None
    """None means that all messages are bytes."""
    encryption: EncryptionPlan | None = None
    """None means that no message is encrypted."""
    transactions: TransactionsPlan | None = None
    """None means that no application has transactions."""

    @property
    def named_hosts(self) -> int:
        """The number of hosts that the service URL names."""
        return max(1, len(self.brokers)) if self.all_addresses else 1

    @property
    def messages(self) -> int:
        return sum(plan.messages for plan in self.producers)

    @property
    def polls_all_patterns(self) -> bool:
        """True when every pattern consumer also polls for topics, even if brokers report changes."""
        groups = [*self.groups, *(plan.group for plan in self.multi_topics_seekers)]
        return all(group.discovery_interval is not None for group in groups if group.pattern)

    @property
    def receivers(self) -> list[ConsumerPlan]:
        """The consumers of one topic and of several."""
        return [*self.consumers, *(plan for group in self.groups for plan in group.consumers)]

    @property
    def patience(self) -> int:
        """Nanoseconds of virtual time within which everything must be done after healing; otherwise liveness
        is violated.

        The slowest path: two keepalive intervals until a half-open link is detected, the longest backoff, an
        operation that times out once, the send timeout and the longest redelivery delay; twice, and a margin.
        """
        slowest = 2 * self.keepalive + self.max_backoff + 2 * self.operation_timeout + 5.0
        slowest += max((plan.send_timeout for plan in self.producers), default=0.0)
        slowest += max((plan.nack_delay for plan in self.receivers), default=0.0)
        slowest += max((plan.longest_timeout for plan in self.receivers), default=0.0)
        for group in [*self.groups, *(plan.group for plan in self.multi_topics_seekers)]:
            slowest += group.update_interval + (group.discovery_interval or 0.0)
        slowest += max((LONGEST_RECONSUME_DELAY * group.retry for group in self.groups), default=0.0)
        if self.credentials is not None:  # a question that was asked before healing may take its whole time
            slowest += self.operation_timeout + self.credentials.refresh_interval
        if self.encryption is not None:  # a question, and a failure of it that a consumer remembers
            slowest += self.encryption.recipients * self.operation_timeout + LONGEST_KEY_FAILURE
        if self.transactions is not None:  # a lost one is open until its timeout, and so is the last one
            slowest += 2 * self.transactions.longest_timeout + 2 * self.operation_timeout
            slowest += self.transactions.update_interval
            slowest += self.chunk_patience if self.transactions.chunk_size else 0.0
        if self.failover is not None:
            slowest += self.failover.slowest_change
            if self.failover.last_visit:
                slowest += (
                    self.failover.slowest_change + self.failover.longest_stay(self.named_hosts) / SECOND
                )
        if self.schemas is not None:  # one version after the other may be asked for in vain
            slowest += 4 * self.operation_timeout
        if any(plan.chunk_size for plan in self.producers):
            slowest += self.chunk_patience
        if self.partitioned:
            slowest += max((plan.update_interval or 0.0 for plan in self.producers), default=0.0)
            slowest += max((plan.update_interval for plan in self.tables), default=0.0)
        work = sum(plan.messages for plan in self.producers) * 50 * MILLISECOND
        if self.memory_limit is not None:  # one batch of one message may fill it until its delay has passed
            work += sum(plan.messages * plan.longest_batch for plan in self.producers)
            work += (
                self.messages * 3 * self.store_delay
            )  # until the message is durable, after the write before it
        late = max((plan.after + plan.gone_after + plan.back_after for plan in self.appearances), default=0)
        return round(2 * slowest * SECOND) + work + late
