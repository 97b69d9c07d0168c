"""`ProducerSpec`: the options of a producer, its batching policy, and the enums that they choose from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, TypeAlias

from ..encryption import ProducerCryptoFailureAction, check_recipients
from ..errors import InvalidConfiguration
from ..interceptors import ProducerInterceptor
from ..schema import Schema, SchemaType
from ..topic_name import TopicName
from .checks import MAX_UINT63, duration, instance, integer, optional_text, text_mapping
from .outgoing import OutgoingMessage


class CompressionType(IntEnum):
    """Codec of a payload (enum CompressionType of the wire schema)."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4


class ProducerAccessMode(Enum):
    """The access of other producers to the topic while this producer is open (exchanges of PRODUCER; rules
    BROKER-34, BROKER-35, BROKER-36)."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"
    """No other producer may send; opening fails with `ProducerFenced` where another producer is open
    already."""
    WAIT_FOR_EXCLUSIVE = "wait_for_exclusive"
    """No other producer may send; opening waits without a limit until it is this producer's turn. Messages
    sent early wait with it: `send_timeout` counts from its turn on. A Pulsar broker gives a producer that
    stopped waiting its turn for a moment. It refuses an exclusive producer that is opened just then, once,
    with `ProducerFenced`."""
    EXCLUSIVE_WITH_FENCING = "exclusive_with_fencing"
    """No other producer may send; the broker fences open and waiting producers for good. Brokers since
    2.11."""


class RoutingMode(Enum):
    """The choice of a partition for each message (rules ROUTE-01, ROUTE-02). In both modes the hash of a
    message's key chooses the partition, where it has a key."""

    ROUND_ROBIN = "round_robin"
    """Without a key: all partitions in turn. A producer that batches stays with one for ten times the
    batching delay, so that batches fill; one that does not goes on with every message."""
    SINGLE_PARTITION = "single_partition"
    """Without a key: one partition, drawn when the producer is made."""


class HashingScheme(Enum):
    """The hash of a key; its remainder by the number of partitions is the partition (ROUTE-08)."""

    JAVA_STRING = "java_string"
    """The default of the Java client: `String.hashCode`, over UTF-16."""
    MURMUR3_32 = "murmur3_32"
    """This hash is the same in every client that has it."""
    BOOST = "boost"
    """The default of the official C++ and Python clients, in 64-bit builds."""


@dataclass(frozen=True, slots=True)
class BatchingPolicy:
    """Three limits of an open batch; the producer sends it when the first limit is reached.

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
        integer("batching.max_messages", self.max_messages, 1, 100_000)
        integer("batching.max_bytes", self.max_bytes, 1, 64 * 1024 * 1024)
        duration("batching.max_delay", self.max_delay, maximum=60.0)
        instance("batching.by_key", self.by_key, bool, "True or False")


CustomRouter: TypeAlias = Callable[[OutgoingMessage, int], int]
"""A function that takes a message and the number of partitions and returns the index of one of them."""


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
    `properties`: text that the broker shows of the producer beside its name (rule PROD-09).
    `chunking`: send a message that is larger than the broker accepts in chunks, each an entry by itself; only
    without batching and on a persistent topic. `chunk_max_message_size`: bytes of payload in one chunk, 1 and
    more, where that is less than what the broker accepts; None for as much as fits.
    `access_mode`: the access of other producers to the topic. A producer that loses exclusive access, to one
    that fences it or while it was disconnected, ends for good with `ProducerFenced`.
    `initial_subscription`: a subscription that the topic gets, from its beginning, if it has none of that
    name.
    `interceptors`: see `ProducerInterceptor`; called in this order for every message.
    `encryption_keys`: the names of the public keys for whose holders the messages are encrypted, 1 to 64;
    none sends unencrypted messages. `crypto_key_reader`: what brings these keys; the driver says what it
    takes (see `EncryptionKeyWanted`). `crypto_failure_action`: what happens while a key cannot be had.
    `schema`: the schema that the producer registers, or has the broker check against the topic's; None for
    bytes. The messages are payloads even so: `Client.encoder` makes them of values.

    These options count for partitioned topics only:

    `routing`: a `RoutingMode`, or a function that is given the message, as an `OutgoingMessage`, and the
    number of partitions, and gives the partition's index; it may be asked about one message more than once.
    `hashing`: the hash that chooses the partition of a key. Producers that share keys should share it.
    `lazy_start`: open the producer of a partition when its first message comes; one of them, where a message
    without a key would go now, is opened at once. Only with shared access.
    `max_pending_messages_across_partitions`: divided by the number of partitions it limits
    `max_pending_messages` of each (rule PART-02), 1 to 10 000 000.
    `partitions_update_interval`: seconds between two requests for the number of partitions, 0.001 and
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
    initial_subscription: str | None = None
    interceptors: tuple[ProducerInterceptor, ...] = ()
    encryption_keys: tuple[str, ...] = ()
    crypto_key_reader: object = None
    crypto_failure_action: ProducerCryptoFailureAction = ProducerCryptoFailureAction.FAIL
    schema: Schema[Any] | None = None
    access_mode: ProducerAccessMode = ProducerAccessMode.SHARED
    routing: RoutingMode | CustomRouter = RoutingMode.ROUND_ROBIN
    hashing: HashingScheme = HashingScheme.JAVA_STRING
    lazy_start: bool = False
    max_pending_messages_across_partitions: int = 50_000
    partitions_update_interval: float | None = 60.0

    def __post_init__(self) -> None:
        TopicName.parse(self.topic)
        optional_text("name", self.name)
        optional_text("initial_subscription", self.initial_subscription)
        duration("send_timeout", self.send_timeout)
        integer("max_pending_messages", self.max_pending_messages, 1, 1_000_000)
        instance("batching", self.batching, (BatchingPolicy, type(None)), "a BatchingPolicy or None")
        instance("compression", self.compression, CompressionType, "a CompressionType")
        if self.initial_sequence_id is not None:
            integer("initial_sequence_id", self.initial_sequence_id, -1, MAX_UINT63 - 1)
        text_mapping("properties", self.properties)
        if isinstance(self.routing, type) or not (
            isinstance(self.routing, RoutingMode) or callable(self.routing)
        ):
            raise InvalidConfiguration(
                f"routing: a RoutingMode or a function of message and number of partitions, "
                f"not {self.routing!r}"
            )
        instance("hashing", self.hashing, HashingScheme, "a HashingScheme")
        if not isinstance(self.interceptors, tuple) or not all(
            isinstance(each, ProducerInterceptor) for each in self.interceptors
        ):
            raise InvalidConfiguration(
                f"interceptors: a tuple of ProducerInterceptor, not {self.interceptors!r}"
            )
        check_recipients(self.encryption_keys, self.crypto_key_reader, self.crypto_failure_action)
        instance("schema", self.schema, (Schema, type(None)), "a Schema or None")
        if self.schema is not None and self.schema.info.type is SchemaType.AUTO_CONSUME:
            raise InvalidConfiguration("schema: AUTO_CONSUME only reads; a producer may take AutoPublish")
        instance("chunking", self.chunking, bool, "True or False")
        if self.chunking and self.batching is not None:
            raise InvalidConfiguration("chunking: only with batching=None; a batch is never cut into chunks")
        if self.chunking and not TopicName.parse(self.topic).persistent:
            raise InvalidConfiguration(f"chunking: only on a persistent topic, not on {self.topic}")
        if self.chunk_max_message_size is not None:
            integer("chunk_max_message_size", self.chunk_max_message_size, 1, 2**31 - 1)
        instance("access_mode", self.access_mode, ProducerAccessMode, "a ProducerAccessMode")
        instance("lazy_start", self.lazy_start, bool, "True or False")
        if self.lazy_start and self.access_mode is not ProducerAccessMode.SHARED:
            raise InvalidConfiguration(
                f"lazy_start: False with access_mode {self.access_mode.value}, which is had on all "
                "partitions or on none"
            )
        integer(
            "max_pending_messages_across_partitions",
            self.max_pending_messages_across_partitions,
            1,
            10_000_000,
        )
        if self.partitions_update_interval is not None:
            duration("partitions_update_interval", self.partitions_update_interval, minimum=0.001)
