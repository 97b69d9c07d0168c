"""What people ask for: frozen specs of a client, a producer, a consumer and a message.

Durations are float seconds, as everywhere in trio; a machine turns them into integer nanoseconds once,
when it takes the spec. Every spec checks itself when it is made and raises `InvalidConfiguration`
naming the option, what was given and what is allowed. Defaults are those of the Java client (rules
CFG-001 to CFG-232) unless the option says otherwise.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, TypeAlias

from .errors import InvalidConfiguration, InvalidMessage
from .interceptors import ProducerInterceptor
from .message_id import MessageId
from .service_url import ServiceUrl
from .topic_name import TopicName

MAX_DURATION = 10.0 * 365 * 86_400
"""Seconds. Longer than any sensible timer, short enough for 64-bit nanoseconds."""

MAX_UINT63 = 2**63 - 1


class CompressionType(IntEnum):
    """Codec of a payload (enum CompressionType of the wire schema)."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4


class SubscriptionType(Enum):
    """How a subscription shares its messages among its consumers (rules SUBT-01 to SUBT-08)."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"
    FAILOVER = "failover"
    KEY_SHARED = "key_shared"

    @property
    def cumulative(self) -> bool:
        """Whether cumulative acknowledgement is legal (rule ACK-02)."""
        return self in (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)


class InitialPosition(Enum):
    """Where a subscription begins that did not exist before."""

    LATEST = "latest"
    EARLIEST = "earliest"


class ProducerAccessMode(Enum):
    """Who else may send to the topic while this producer does (exchanges of PRODUCER; rules BROKER-33 to
    BROKER-36)."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    """Nobody; opening fails with `ProducerFenced` where somebody is there already."""
    WAIT_FOR_EXCLUSIVE = "wait_for_exclusive"
    """Nobody; opening waits, for ever, until it is this producer's turn. Messages given early wait with it:
    `send_timeout` counts from then on."""
    EXCLUSIVE_WITH_FENCING = "exclusive_with_fencing"
    """Nobody; whoever is there already or waits is sent away for good. Brokers since 2.11."""


class RoutingMode(Enum):
    """Where a message of a partitioned topic goes (rules ROUTE-01 to ROUTE-05). In both modes a message with
    a key goes where its key's hash says."""

    ROUND_ROBIN = "round_robin"
    """Without a key: all partitions in turn. A producer that batches stays with one for ten times the
    batching delay, so that batches fill; one that does not goes on with every message."""
    SINGLE_PARTITION = "single_partition"
    """Without a key: one partition, drawn when the producer is made."""


class HashingScheme(Enum):
    """How a key becomes a number; its remainder by the number of partitions is the partition (ROUTE-08)."""

    JAVA_STRING = "java_string"
    """The default of the Java client: `String.hashCode`, over UTF-16."""
    MURMUR3_32 = "murmur3_32"
    """The same in every client that has it."""
    BOOST = "boost"
    """What the official C++ and Python clients do when nothing else is said, in 64-bit builds."""


def seconds_to_ns(seconds: float) -> int:
    """Float seconds as integer nanoseconds; the only place where durations are converted."""
    return round(seconds * 1_000_000_000)


# --- checks ----------------------------------------------------------------------------------------


def _integer(name: str, value: object, minimum: int, maximum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidConfiguration(f"{name}: a whole number from {minimum} to {maximum}, not {value!r}")


def _duration(name: str, value: object, minimum: float = 0.0, maximum: float = MAX_DURATION) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value <= maximum:
        raise InvalidConfiguration(f"{name}: seconds from {minimum:g} to {maximum:g}, not {value!r}")


def _instance(name: str, value: object, kind: Any, words: str) -> None:
    if not isinstance(value, kind):
        raise InvalidConfiguration(f"{name}: {words}, not {value!r}")


def _optional_text(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise InvalidConfiguration(f"{name}: text that is not blank, or None, not {value!r}")


def _text_mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) and isinstance(item, str) for key, item in value.items()
    ):
        raise InvalidConfiguration(f"{name}: a mapping of text to text")


def _host_names(name: str, value: object) -> None:
    """Port, scheme and blanks are refused: they would never match, and nobody would know why."""
    if not isinstance(value, tuple) or not all(map(_is_host_name, value)):
        raise InvalidConfiguration(
            f"{name}: a tuple of host names, or suffixes such as '.example.com', without scheme and port, "
            f"not {value!r}"
        )


def _is_host_name(host: object) -> bool:
    """An IPv6 address has at least two colons, a name none."""
    return (
        isinstance(host, str)
        and host.strip(".") != ""
        and host.count(":") != 1
        and not any(character in "/,@[]" or character.isspace() for character in host)
    )


# --- specs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BatchingPolicy:
    """When an open batch is sent: at whichever of the three limits comes first.

    `max_messages` 1 to 100 000; `max_bytes` 1 to 64 MiB, counting payloads (rule BATCH-03);
    `max_delay` in seconds, 0 (send as soon as the adapter next writes) to 60.
    `by_key`: a batch for each key (or ordering key), for Key_Shared subscriptions, which give a batch to one
    consumer as a whole. The limits count for all open batches together, which are sent together. Order is
    kept among the messages of a key. An entry shows the highest sequence id of its messages only: a producer
    that resumes from the broker's last sequence id may miss messages of other keys, so for exactly-once by
    sequence ids use ordinary batches.
    """

    max_messages: int = 1000
    max_bytes: int = 128 * 1024
    max_delay: float = 0.001
    by_key: bool = False

    def __post_init__(self) -> None:
        _integer("batching.max_messages", self.max_messages, 1, 100_000)
        _integer("batching.max_bytes", self.max_bytes, 1, 64 * 1024 * 1024)
        _duration("batching.max_delay", self.max_delay, maximum=60.0)
        _instance("batching.by_key", self.by_key, bool, "True or False")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Options of one client.

    `operation_timeout`: seconds for any request, for creating a producer and for subscribing.
    `keepalive_interval`: seconds between probes; a peer silent for two of them is dropped.
    `connect_timeout`: seconds for opening a connection, handshake included.
    `connections_per_broker`: 1 to 64.
    `max_lookup_redirects`: redirects followed by one lookup.
    `max_pending_lookups`: lookups in flight on one connection; more wait their turn (rule CONN-14).
    `max_rejected_requests`: rejections within 60 s after which a connection is replaced (rule CONN-15).
    `initial_backoff`, `max_backoff`: seconds between attempts to reconnect.
    `max_message_size`: bytes; used until the broker announces its own limit.
    `memory_limit`: bytes of payload that all producers together hold in messages that are neither confirmed
    nor failed, 64 MiB as in the Java client; None for no limit. A single larger message is taken when nothing
    else is held. Metadata does not count, nor does what compression saves.
    `listener_name`: which of a broker's advertised listeners lookups ask for; None for its default.
    `max_announced_message_size`: bytes; the largest limit that a broker is believed. One frame of that size
    may be held in memory, whoever sends it; frames above it end the connection.
    `max_partitions`: the most partitions that a topic is believed to have; more is an error.
    `broker_hosts`: the hosts that a broker may send this client to, in answers to lookups and when it closes
    a producer or consumer: `"broker-1.example.com"` is that host, `".example.com"` every host whose name ends
    so, an IP address itself. The hosts of the service URL are always among them. None allows every host, as
    other Pulsar clients do: whoever can answer a lookup then chooses who is connected to and told the
    credentials.
    """

    service_url: str
    operation_timeout: float = 30.0
    keepalive_interval: float = 30.0
    connect_timeout: float = 10.0
    connections_per_broker: int = 1
    max_lookup_redirects: int = 20
    max_pending_lookups: int = 5000
    max_rejected_requests: int = 50
    initial_backoff: float = 0.1
    max_backoff: float = 60.0
    max_message_size: int = 5 * 1024 * 1024
    max_announced_message_size: int = 64 * 1024 * 1024
    listener_name: str | None = None
    memory_limit: int | None = 64 * 1024 * 1024
    max_partitions: int = 10_000
    broker_hosts: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        ServiceUrl.parse(self.service_url)
        _duration("operation_timeout", self.operation_timeout, minimum=0.001)
        _duration("keepalive_interval", self.keepalive_interval, minimum=0.001)
        _duration("connect_timeout", self.connect_timeout, minimum=0.001)
        _integer("connections_per_broker", self.connections_per_broker, 1, 64)
        _integer("max_lookup_redirects", self.max_lookup_redirects, 0, 100)
        _integer("max_pending_lookups", self.max_pending_lookups, 1, 50_000)
        _integer("max_rejected_requests", self.max_rejected_requests, 1, 1_000_000)
        _duration("initial_backoff", self.initial_backoff, minimum=0.001)
        _duration("max_backoff", self.max_backoff, minimum=self.initial_backoff)
        _integer("max_message_size", self.max_message_size, 1024, 2**31 - 1 - 10_240)
        _integer("max_announced_message_size", self.max_announced_message_size, 1024, 2**31 - 1 - 10_240)
        _optional_text("listener_name", self.listener_name)
        if self.memory_limit is not None:
            _integer("memory_limit", self.memory_limit, 1, MAX_UINT63)
        _integer("max_partitions", self.max_partitions, 1, 2**31 - 1)
        if self.broker_hosts is not None:
            _host_names("broker_hosts", self.broker_hosts)


CustomRouter: TypeAlias = Callable[["OutgoingMessage", int], int]
"""Given a message and the number of partitions, the index of one of them."""


@dataclass(frozen=True, slots=True)
class ProducerSpec:
    """Options of one producer.

    `name`: unique on the topic; None lets the broker choose.
    `send_timeout`: seconds until an unconfirmed message fails; 0 never (rule PROD-47).
    `max_pending_messages`: unconfirmed messages, 1 to 1 000 000; unlike the Java client's default there is
    always a limit, because memory is bounded.
    `batching`: a policy, or None to send every message by itself.
    `initial_sequence_id`: the last sequence id already used; the first message gets the next one
    (rule PROD-04). None continues from what the broker knows.
    `compression`: codec of every payload; a batch is compressed as a whole (rule BATCH-06).
    `properties`: what the broker shows of the producer beside its name (rule PROD-09).
    `chunking`: send a message that is larger than the broker accepts in chunks, each an entry by itself; only
    without batching and on a persistent topic. `chunk_max_message_size`: bytes of payload in one chunk, 1 and
    more, where that is less than what the broker accepts; None for as much as fits.
    `access_mode`: whether others may send to the topic. A producer that loses exclusive access, to one that
    fences it or while it was away, ends for good with `ProducerFenced`.
    `interceptors`: see `ProducerInterceptor`; called in this order for every message.

    What counts for partitioned topics only:

    `routing`: a `RoutingMode`, or a function that is given the message, as an `OutgoingMessage`, and the
    number of partitions, and gives the partition's index; it may be asked about one message more than once.
    `hashing`: where keys go. Producers that share keys should share it.
    `lazy_start`: open the producer of a partition when its first message comes; one of them, where a message
    without a key would go now, is opened at once. Only with shared access.
    `max_pending_messages_across_partitions`: divided by the number of partitions it limits
    `max_pending_messages` of each (rule PART-02), 1 to 10 000 000.
    `partitions_update_interval`: seconds between two questions whether there are more partitions, 0.001 and
    more; None never asks.
    """

    topic: str
    name: str | None = None
    send_timeout: float = 30.0
    max_pending_messages: int = 10_000
    batching: BatchingPolicy | None = BatchingPolicy()
    compression: CompressionType = CompressionType.NONE
    initial_sequence_id: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    chunking: bool = False
    chunk_max_message_size: int | None = None
    interceptors: tuple[ProducerInterceptor, ...] = ()
    access_mode: ProducerAccessMode = ProducerAccessMode.SHARED
    routing: RoutingMode | CustomRouter = RoutingMode.ROUND_ROBIN
    hashing: HashingScheme = HashingScheme.JAVA_STRING
    lazy_start: bool = False
    max_pending_messages_across_partitions: int = 50_000
    partitions_update_interval: float | None = 60.0

    def __post_init__(self) -> None:
        TopicName.parse(self.topic)
        _optional_text("name", self.name)
        _duration("send_timeout", self.send_timeout)
        _integer("max_pending_messages", self.max_pending_messages, 1, 1_000_000)
        _instance("batching", self.batching, (BatchingPolicy, type(None)), "a BatchingPolicy or None")
        _instance("compression", self.compression, CompressionType, "a CompressionType")
        if self.initial_sequence_id is not None:
            _integer("initial_sequence_id", self.initial_sequence_id, -1, MAX_UINT63 - 1)
        _text_mapping("properties", self.properties)
        if isinstance(self.routing, type) or not (
            isinstance(self.routing, RoutingMode) or callable(self.routing)
        ):
            raise InvalidConfiguration(
                f"routing: a RoutingMode or a function of message and number of partitions, "
                f"not {self.routing!r}"
            )
        _instance("hashing", self.hashing, HashingScheme, "a HashingScheme")
        if not isinstance(self.interceptors, tuple) or not all(
            isinstance(each, ProducerInterceptor) for each in self.interceptors
        ):
            raise InvalidConfiguration(
                f"interceptors: a tuple of ProducerInterceptor, not {self.interceptors!r}"
            )
        _instance("chunking", self.chunking, bool, "True or False")
        if self.chunking and self.batching is not None:
            raise InvalidConfiguration("chunking: only with batching=None; a batch is never cut into chunks")
        if self.chunking and not TopicName.parse(self.topic).persistent:
            raise InvalidConfiguration(f"chunking: only on a persistent topic, not on {self.topic}")
        if self.chunk_max_message_size is not None:
            _integer("chunk_max_message_size", self.chunk_max_message_size, 1, 2**31 - 1)
        _instance("access_mode", self.access_mode, ProducerAccessMode, "a ProducerAccessMode")
        _instance("lazy_start", self.lazy_start, bool, "True or False")
        if self.lazy_start and self.access_mode is not ProducerAccessMode.SHARED:
            raise InvalidConfiguration(
                f"lazy_start: False with access_mode {self.access_mode.value}, which is had on all "
                "partitions or on none"
            )
        _integer(
            "max_pending_messages_across_partitions",
            self.max_pending_messages_across_partitions,
            1,
            10_000_000,
        )
        if self.partitions_update_interval is not None:
            _duration("partitions_update_interval", self.partitions_update_interval, minimum=0.001)


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """Options of one consumer of one topic.

    `consumer_name`: None makes a random one that stays the same over reconnects (rule CONS-03).
    `receiver_queue_size`: messages granted to the broker at a time, 1 to 1 000 000.
    `acknowledgement_group_time`: seconds for which acknowledgements are collected; 0 sends each at once.
    `acknowledgement_group_size`: as soon as so many are collected they are sent, 1 to 1 000 000.
    `acknowledgement_receipts`: ask the broker to confirm acknowledgements.
    `batch_index_acknowledgement`: send which messages of a batch are acknowledged. Nothing in the protocol
    tells whether a broker keeps them; one that does not delivers the whole batch again.
    `negative_acknowledgement_delay`: seconds until a negatively acknowledged message is asked for again.
    `initial_position`: used when the subscription does not exist yet.
    `durable`: False makes a subscription that vanishes with its last consumer.
    `start_message_id`: where a non-durable subscription begins; the message itself is skipped unless
    `start_message_id_inclusive`.
    `priority_level`: 0 is served first (Shared and Failover).
    `properties`: what the broker shows of the consumer beside its name.

    Messages that come in chunks:

    `max_pending_chunked_messages`: incomplete ones kept at a time, 1 to 10 000; for one more the oldest is
    dropped, one that cannot be completed any more rather than another. `acknowledge_dropped_chunks`: its
    chunks are acknowledged then, and it is lost; without, they stay unacknowledged and come again when the
    consumer reconnects.
    `max_chunked_message_size`: bytes, compressed and not; larger ones stay unacknowledged. Together with the
    number above it bounds the memory for incomplete messages.
    `incomplete_chunked_message_timeout`: seconds after which the chunks of a message that is not complete are
    acknowledged; 0 never.
    """

    topic: str
    subscription: str
    subscription_type: SubscriptionType = SubscriptionType.EXCLUSIVE
    consumer_name: str | None = None
    receiver_queue_size: int = 1000
    acknowledgement_group_time: float = 0.1
    acknowledgement_group_size: int = 1000
    acknowledgement_receipts: bool = False
    batch_index_acknowledgement: bool = False
    negative_acknowledgement_delay: float = 60.0
    initial_position: InitialPosition = InitialPosition.LATEST
    durable: bool = True
    start_message_id: MessageId | None = None
    start_message_id_inclusive: bool = False
    priority_level: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    max_pending_chunked_messages: int = 10
    acknowledge_dropped_chunks: bool = False
    max_chunked_message_size: int = 128 * 1024 * 1024
    incomplete_chunked_message_timeout: float = 60.0

    def __post_init__(self) -> None:
        TopicName.parse(self.topic)
        if not isinstance(self.subscription, str) or not self.subscription.strip():
            raise InvalidConfiguration(f"subscription: a name that is not blank, not {self.subscription!r}")
        _instance("subscription_type", self.subscription_type, SubscriptionType, "a SubscriptionType")
        _optional_text("consumer_name", self.consumer_name)
        _integer("receiver_queue_size", self.receiver_queue_size, 1, 1_000_000)
        _duration("acknowledgement_group_time", self.acknowledgement_group_time, maximum=3600.0)
        _integer("acknowledgement_group_size", self.acknowledgement_group_size, 1, 1_000_000)
        _duration("negative_acknowledgement_delay", self.negative_acknowledgement_delay)
        _instance("initial_position", self.initial_position, InitialPosition, "an InitialPosition")
        for name in (
            "acknowledgement_receipts",
            "batch_index_acknowledgement",
            "durable",
            "start_message_id_inclusive",
            "acknowledge_dropped_chunks",
        ):
            _instance(name, getattr(self, name), bool, "True or False")
        _instance("start_message_id", self.start_message_id, (MessageId, type(None)), "a MessageId or None")
        if self.durable and self.start_message_id is not None:
            raise InvalidConfiguration(
                "start_message_id: only with durable=False; a durable subscription has its cursor"
            )
        _integer("priority_level", self.priority_level, 0, 2**31 - 1)
        _integer("max_pending_chunked_messages", self.max_pending_chunked_messages, 1, 10_000)
        _integer("max_chunked_message_size", self.max_chunked_message_size, 1024, 2**31 - 1)
        _duration("incomplete_chunked_message_timeout", self.incomplete_chunked_message_timeout)
        _text_mapping("properties", self.properties)


NO_REPLICATION = ("__local__",)
"""For `replicate_to`: the message stays in the cluster it is sent to."""


def _clusters(value: object) -> tuple[str, ...]:
    if isinstance(value, (tuple, list)) and all(isinstance(name, str) and name.strip() for name in value):
        return tuple(value)
    raise InvalidMessage(f"replicate_to: a tuple of names of clusters, not {value!r}")


class OutgoingMessage:
    """A message to send: payload and what goes with it.

    `key`: text for routing, compaction and key-shared dispatch; bytes travel, and are routed, as their Base64
    text, and `has_base64_key` tells them from text. `ordering_key`: bytes that replace the key
    for key-shared dispatch. `event_time`: milliseconds since 1970, the application's own. `sequence_id`: the
    application's own id; it is sent as given and does not move the producer's counter (rule PROD-38).
    `deliver_at`: milliseconds since 1970 before which a shared subscription does not get it.
    `replicate_to`: names of the clusters it is replicated to, `NO_REPLICATION` for none but its own; empty
    for what the namespace says. Messages of different ones do not share a batch, which has but one list.
    A `payload` of None is a null value, which compaction takes as "delete this key".

    Raises `InvalidMessage` for a field of a wrong type or out of range.
    """

    __slots__ = (
        "deliver_at",
        "event_time",
        "has_base64_key",
        "key",
        "ordering_key",
        "payload",
        "properties",
        "replicate_to",
        "sequence_id",
    )

    def __init__(
        self,
        payload: bytes | bytearray | memoryview | None,
        *,
        key: str | bytes | None = None,
        properties: Mapping[str, str] | None = None,
        ordering_key: bytes | None = None,
        event_time: int = 0,
        sequence_id: int | None = None,
        deliver_at: int | None = None,
        replicate_to: Sequence[str] = (),
    ) -> None:
        if payload is not None and type(payload) is not bytes:
            if not isinstance(payload, (bytes, bytearray, memoryview)):
                raise InvalidMessage(f"payload: bytes or None, not {type(payload).__name__}")
            payload = bytes(payload)
        self.has_base64_key = False
        if key is not None and not isinstance(key, str):
            if not isinstance(key, bytes):
                raise InvalidMessage(f"key: text, bytes or None, not {type(key).__name__}")
            key = b64encode(key).decode("ascii")
            self.has_base64_key = True
        if properties:
            if type(properties) is not dict and not isinstance(properties, Mapping):
                raise InvalidMessage(f"properties: a mapping of text to text, not {properties!r}")
            for name, value in properties.items():
                if not isinstance(name, str) or not isinstance(value, str):
                    raise InvalidMessage(
                        f"properties: names and values are text, not {type(name).__name__} and "
                        f"{type(value).__name__}"
                    )
        if ordering_key is not None and not isinstance(ordering_key, bytes):
            raise InvalidMessage(f"ordering_key: bytes or None, not {type(ordering_key).__name__}")
        for what, number in (
            ("event_time", event_time),
            ("sequence_id", sequence_id),
            ("deliver_at", deliver_at),
        ):
            if number is not None and (type(number) is not int or not 0 <= number <= MAX_UINT63):
                raise InvalidMessage(f"{what}: a whole number from 0 to {MAX_UINT63}, not {number!r}")
        self.payload: bytes | None = payload
        self.key: str | None = key
        """As text: Base64 of a key of bytes."""
        self.properties = properties
        self.ordering_key = ordering_key
        self.event_time = event_time
        self.sequence_id = sequence_id
        self.deliver_at = deliver_at
        self.replicate_to = _clusters(replicate_to) if replicate_to else ()

    def __repr__(self) -> str:
        size = "null" if self.payload is None else f"{len(self.payload)} bytes"
        return f"<OutgoingMessage {size}, key={self.key!r}>"
