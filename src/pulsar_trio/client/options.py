"""The options of `open_client`, `create_producer` and `subscribe`, and their way into the core's specs.

The defaults stand in the specs of the core and nowhere else. The client accepts words for enums, as in
`kind="shared"`. It refuses a wrong word with the list of right ones.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from secrets import randbits
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, cast

from pulsar_sansio import (
    AutoFailover,
    BatchingPolicy,
    BatchReceivePolicy,
    ClientConfig,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerInterceptor,
    ConsumerSpec,
    ControlledFailover,
    CustomRouter,
    DeadLetterPolicy,
    HashingScheme,
    InitialPosition,
    InvalidConfiguration,
    KeySharedPolicy,
    MessageId,
    ProducerAccessMode,
    ProducerCryptoFailureAction,
    ProducerInterceptor,
    ProducerSpec,
    ReaderSpec,
    RedeliveryBackoff,
    RoutingMode,
    ServiceUrl,
    SubscriptionType,
    TableViewSpec,
    TopicsPattern,
)
from pulsar_sansio.schemas import schema_of
from pulsar_security import TlsConfig

from ..official_names import word_meant, wrong_argument
from ..security.authentication import Authentication, MutualTls
from ..security.identity import ClientIdentity
from ..security.key_reader import KeyReader, KeySource
from ..values import schema_option
from .service_url_source import ServiceUrlProvider, ServiceUrlSource

Topics: TypeAlias = str | Sequence[str] | re.Pattern[str] | TopicsPattern
"""The topics of a consumer: one topic, several, or all those of a namespace that match."""

EnumT = TypeVar("EnumT", bound=Enum)

Kind: TypeAlias = Literal["shared", "key_shared", "exclusive", "failover"]
"""The words for a `SubscriptionType`."""

TEN_YEARS = 10 * 365 * 86_400
"""Seconds: the longest time that anything may take."""


class ClientOptions(TypedDict, total=False):
    """Keywords of `open_client`, as in `ClientConfig`. `tls` and `authentication` make its identity."""

    operation_timeout: float
    keepalive_interval: float
    connect_timeout: float
    connections_per_broker: int
    max_lookup_redirects: int
    max_pending_lookups: int
    max_rejected_requests: int
    initial_backoff: float
    max_backoff: float
    max_message_size: int
    max_announced_message_size: int
    transactions: bool
    listener_name: str | None
    memory_limit: int | None
    max_partitions: int
    broker_hosts: tuple[str, ...] | None
    create_topics: bool
    sni_proxy: str | None
    failover: AutoFailover | ControlledFailover | None
    tls: TlsConfig
    authentication: Authentication | None


class ProducerOptions(TypedDict, total=False):
    """Keywords of `create_producer`, as in `ProducerSpec`. `compression`, `access_mode`, `routing`,
    `hashing` and `crypto_failure_action` may be words: "lz4", "exclusive", "single_partition", "murmur3_32",
    "send".

    `crypto_key_reader`: returns public keys; see `KeySource` and `KeyReader`.

    `when_full`: applies to `send`, `send_many` and `enqueue` when the window or the client's memory is full.
    They "wait" for room, in the order of their calls, or "fail" with `ProducerQueueIsFull` at once."""

    name: str | None
    send_timeout: float
    max_pending_messages: int
    batching: BatchingPolicy | None
    compression: CompressionType | Literal["none", "lz4", "zlib", "zstd", "snappy"]
    initial_sequence_id: int | None
    properties: Mapping[str, str]
    initial_subscription: str | None
    chunking: bool
    chunk_max_message_size: int | None
    access_mode: (
        ProducerAccessMode | Literal["shared", "exclusive", "wait_for_exclusive", "exclusive_with_fencing"]
    )
    routing: RoutingMode | CustomRouter | Literal["round_robin", "single_partition"]
    hashing: HashingScheme | Literal["java_string", "murmur3_32", "boost"]
    lazy_start: bool
    max_pending_messages_across_partitions: int
    partitions_update_interval: float | None
    interceptors: tuple[ProducerInterceptor, ...]
    encryption_keys: tuple[str, ...]
    crypto_key_reader: KeySource | None
    crypto_failure_action: ProducerCryptoFailureAction | Literal["fail", "send"]
    when_full: Literal["wait", "fail"]


class ConsumerOptions(TypedDict, total=False):
    """Keywords of `subscribe`, as in `ConsumerSpec`. `initial_position` may be "earliest" or "latest",
    `crypto_failure_action` "fail", "discard" or "consume".

    `crypto_key_reader`: returns private keys; see `KeySource` and `KeyReader`."""

    consumer_name: str | None
    receiver_queue_size: int
    auto_scaled_receiver_queue_size: bool
    start_paused: bool
    batch_receive: BatchReceivePolicy | None
    interceptors: tuple[ConsumerInterceptor, ...]
    acknowledgement_group_time: float
    acknowledgement_group_size: int
    acknowledgement_receipts: bool
    batch_index_acknowledgement: bool
    negative_acknowledgement_delay: float
    negative_acknowledgement_backoff: RedeliveryBackoff | None
    acknowledgement_timeout: float
    acknowledgement_timeout_tick: float
    acknowledgement_timeout_backoff: RedeliveryBackoff | None
    dead_letter: DeadLetterPolicy | None
    retry: bool
    initial_position: InitialPosition | Literal["earliest", "latest"]
    durable: bool
    start_message_id: MessageId | None
    start_message_id_inclusive: bool
    start_message_rollback: float
    read_compacted: bool
    priority_level: int
    properties: Mapping[str, str]
    subscription_properties: Mapping[str, str]
    replicate_subscription_state: bool
    key_shared: KeySharedPolicy | None
    crypto_key_reader: KeySource | None
    crypto_failure_action: ConsumerCryptoFailureAction | Literal["fail", "discard", "consume"]
    max_pending_chunked_messages: int
    acknowledge_dropped_chunks: bool
    max_chunked_message_size: int
    incomplete_chunked_message_timeout: float
    max_total_receiver_queue_size: int
    partitions_update_interval: float | None


class ReaderOptions(TypedDict, total=False):
    """Keywords of `create_reader`, as in `ReaderSpec`; for encryption see `ConsumerOptions`."""

    start_inclusive: bool
    name: str | None
    subscription: str | None
    subscription_prefix: str
    read_compacted: bool
    receiver_queue_size: int
    properties: Mapping[str, str]
    max_pending_chunked_messages: int
    max_chunked_message_size: int
    incomplete_chunked_message_timeout: float
    partitions_update_interval: float | None
    key_hash_ranges: tuple[tuple[int, int], ...] | None
    crypto_key_reader: KeySource | None
    crypto_failure_action: ConsumerCryptoFailureAction | Literal["fail", "discard", "consume"]


class TableViewOptions(TypedDict, total=False):
    """Keywords of `create_table_view`, as in `TableViewSpec`; for encryption see `ConsumerOptions`."""

    name: str | None
    subscription_prefix: str
    receiver_queue_size: int
    max_size: int
    partitions_update_interval: float | None
    crypto_key_reader: KeySource | None
    crypto_failure_action: ConsumerCryptoFailureAction | Literal["fail", "discard"]


def url_source(provider: ServiceUrlProvider, options: Mapping[str, Any]) -> ServiceUrlSource:
    """Return the object that asks the provider. Raises `InvalidConfiguration`."""
    if options.get("failover") is not None:
        raise InvalidConfiguration("failover: the provider of the service URL chooses the cluster")
    return ServiceUrlSource(provider)


def client_config(url: str, options: Mapping[str, Any]) -> ClientConfig:
    """Raises `InvalidServiceUrl` or `InvalidConfiguration`."""
    given = known_options("open_client", ClientOptions, options)
    given.pop("tls", None)  # see `client_identity`
    authentication = given.pop("authentication", None)
    if authentication is not None:
        if not isinstance(authentication, Authentication):
            raise InvalidConfiguration(
                "authentication: a Token, Basic, MutualTls or another Authentication, "
                f"not {type(authentication).__name__}"
            )
        given["authentication_method"] = authentication.method
    return ClientConfig(url, **given)


def client_identity(config: ClientConfig, options: Mapping[str, Any]) -> ClientIdentity:
    """Read the files of `tls`. Raises `InvalidConfiguration` for one that cannot be used."""
    tls, authentication = options.get("tls"), options.get("authentication")
    encrypts = ServiceUrl.parse(config.service_url).tls
    if tls is not None and not isinstance(tls, TlsConfig):
        raise InvalidConfiguration(f"tls: a TlsConfig, not {type(tls).__name__}")
    if isinstance(authentication, MutualTls) and not (encrypts and _shows_certificate(tls)):
        raise InvalidConfiguration(
            "MutualTls needs a service URL of pulsar+ssl:// or https://, and "
            "tls=TlsConfig(certificate=…, key=…)"
        )
    if tls is None and encrypts:
        tls = TlsConfig()
    return ClientIdentity(tls, authentication)


def _shows_certificate(tls: TlsConfig | None) -> bool:
    return tls is not None and (tls.certificate is not None or tls.context is not None)


def checked_interval(seconds: object) -> float | None:
    """`statistics_interval`: from a tenth of a second to ten years, or None."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.1 <= seconds <= TEN_YEARS:
        raise InvalidConfiguration(
            f"statistics_interval: None or a number of seconds, at least 0.1, not {seconds!r}"
        )
    return float(seconds)


def checked_seed(seed: object) -> int:
    """Given, or drawn."""
    if seed is None:
        return randbits(64)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InvalidConfiguration(f"seed: a whole number or None, not {seed!r}")
    return seed


def version_bytes(version: object) -> bytes:
    """Return the version of a schema as brokers write it. Raises `InvalidConfiguration`."""
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version < 2**63:
        raise InvalidConfiguration(f"version: a whole number of at least 0, not {version!r:.100}")
    return version.to_bytes(8, "big")


def producer_spec(topic: str, options: Mapping[str, Any], schema: Any = None) -> ProducerSpec:
    given = known_options("create_producer", ProducerOptions, options)
    given.pop("when_full", None)  # see `waits_when_full`
    if "compression" in given:
        given["compression"] = word("compression", given["compression"], CompressionType)
    if "access_mode" in given:
        given["access_mode"] = word("access_mode", given["access_mode"], ProducerAccessMode)
    if "hashing" in given:
        given["hashing"] = word("hashing", given["hashing"], HashingScheme)
    _encryption(given, ProducerCryptoFailureAction)
    if "routing" in given and not callable(given["routing"]):
        given["routing"] = word("routing", given["routing"], RoutingMode)
    return ProducerSpec(topic, schema=schema_option(schema), **given)


def _encryption(given: dict[str, Any], actions: type[Enum]) -> dict[str, Any]:
    """Make of the options for encryption what a spec takes: a `KeyReader`, and a failure action."""
    if "crypto_failure_action" in given:
        given["crypto_failure_action"] = word(
            "crypto_failure_action", given["crypto_failure_action"], actions
        )
    if given.get("crypto_key_reader") is not None:
        given["crypto_key_reader"] = KeyReader(given["crypto_key_reader"])
    return given


def waits_when_full(options: Mapping[str, Any]) -> bool:
    """Tell whether the producer waits for room; the machine never does."""
    given = options.get("when_full", "wait")
    if given not in ("wait", "fail"):
        meant = word_meant(given, ("wait", "fail"))
        raise InvalidConfiguration(f"when_full: one of 'wait', 'fail', not {given!r}{meant}")
    return bool(given == "wait")


def consumer_spec(
    topic: Topics,
    subscription: str,
    options: Mapping[str, Any],
    kind: SubscriptionType | Kind | None = None,
    schema: Any = None,
) -> ConsumerSpec:
    """`kind`: None for the default, which is that of `ConsumerSpec`."""
    given = _encryption(known_options("subscribe", ConsumerOptions, options), ConsumerCryptoFailureAction)
    policy = given.get("dead_letter")
    if isinstance(policy, DeadLetterPolicy) and policy.crypto_key_reader is not None:
        given["dead_letter"] = replace(
            policy, crypto_key_reader=KeyReader(cast(KeySource, policy.crypto_key_reader))
        )
    if "initial_position" in given:
        given["initial_position"] = word("initial_position", given["initial_position"], InitialPosition)
    if isinstance(topic, re.Pattern):
        topic = TopicsPattern.of(topic)
    elif not isinstance(topic, TopicsPattern):
        topic = _topics(topic)
    if kind is not None:
        given["subscription_type"] = word("kind", kind, SubscriptionType)
    return ConsumerSpec(topic, subscription, schema=schema_option(schema), **given)


def reader_spec(
    topic: str | Sequence[str], start: Mapping[str, Any], options: Mapping[str, Any], schema: Any = None
) -> ReaderSpec:
    given = _encryption(known_options("create_reader", ReaderOptions, options), ConsumerCryptoFailureAction)
    return ReaderSpec(_topics(topic), **start, schema=schema_option(schema), **given)


def table_view_spec(
    topic: str | Sequence[str], options: Mapping[str, Any], schema: Any = None, key_schema: Any = None
) -> TableViewSpec:
    given = _encryption(
        known_options("create_table_view", TableViewOptions, options), ConsumerCryptoFailureAction
    )
    keys = None if key_schema is None else schema_of(key_schema)
    return TableViewSpec(_topics(topic), schema=schema_option(schema), key_schema=keys, **given)


def _topics(topic: str | Sequence[str]) -> str | tuple[str, ...]:
    """The topic or topics for a spec. The spec refuses values that are neither text nor iterable."""
    return topic if isinstance(topic, str) or not isinstance(topic, Iterable) else tuple(topic)


def word(option: str, given: object, kind: type[EnumT]) -> EnumT:
    """The member of an enum, given itself or its name in lower case."""
    if isinstance(given, kind):
        return given
    if isinstance(given, str):
        for member in kind:
            if member.name.lower() == given:
                return member
    words = [member.name.lower() for member in kind]
    allowed = ", ".join(map(repr, words))
    raise InvalidConfiguration(f"{option}: one of {allowed}, not {given!r}{word_meant(given, words)}")


_ARGUMENTS = {
    "open_client": ("seed", "statistics_interval"),
    "create_producer": ("schema",),
    "subscribe": ("kind", "schema"),
    "create_reader": ("schema",),
    "create_table_view": ("schema", "key_schema"),
}
"""The parameters of a function besides its options."""


def known_options(function: str, allowed: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a function. Raises an error for a name that is not among them."""
    for name in options:
        if name not in allowed.__annotations__:
            raise wrong_argument(function, name, [*allowed.__annotations__, *_ARGUMENTS.get(function, ())])
    return dict(options)
