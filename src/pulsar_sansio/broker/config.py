"""`BrokerConfig`: every option and every limit of the broker, in one place.

Durations are float seconds; machines convert them to integer nanoseconds once, when they are created.
Defaults are those of the Java broker unless the option says otherwise.
"""

from dataclasses import dataclass, fields

from ..model.errors import InvalidConfiguration
from ..model.service_url import ServiceUrl
from ..model.topic_name import is_text
from .policies import MessageRate, Policies
from .security.broker_authentication import BrokerAuthentication

DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024

NO_POLICIES = Policies()
"""Policies of which none is set."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Options of one broker, checked when created. Raises `InvalidConfiguration`, which names the option.

    Identity
        `service_url`: the address that clients connect to; `service_url_tls`: for TLS, or None.
        `web_service_url`: `http://host:port` of the administration over HTTP, or None where there is none;
        `web_service_url_tls`: `https://host:port`, or None.
        `protocol_version`: the highest that the broker speaks, 12 to 21; the lower of both sides' is used.
        `feature_flags`: False announces none, as older brokers do.
        `cluster`: first part of generated producer names. `server_version`: free text in CONNECTED.
        `proxy_through_service_url`: tell clients to reach the broker through the address they used, for
        brokers behind a port forward (LOOKUP-07).
    Security
        `authentication`: how clients prove their roles; None accepts every client and ignores credentials.
    Connections
        `keepalive_interval`: seconds between probes; also the time a handshake may take.
        `liveness_timeout`: seconds that a connection has to answer when a new client claims its name.
        `max_connections`: more are refused. `max_message_size`: bytes of one message.
        `max_connections_per_address`: connections of one IP address. `max_producers_per_address`,
        `max_consumers_per_address`: of one IP address on one topic. 0 is no limit, as in the Java broker.
        `max_unsent_bytes`: bytes waiting for one peer; above it the broker neither dispatches to the peer
        nor reads from it. `max_pending_publishes`: messages of one connection that are not yet durable;
        above it the broker does not read from the connection.
        `max_producers_per_connection`, `max_consumers_per_connection`: more get TooManyRequests.
    Topics
        `auto_topic_creation`, `auto_topic_partitions`: whether an unknown topic is created when a client
        uses it, and its number of partitions (0: not partitioned). `auto_subscription_creation`: whether
        an unknown subscription is created when a client uses it.
        `deduplication`: the default for topics whose policies do not set it.
        `deduplication_inactivity`: seconds after which the sequence ids of an absent producer are discarded.
        `deduplication_max_producers`: absent producers of one topic whose sequence ids are kept. Beyond it
        the producer absent longest is discarded; the Java broker saves so many.
        `ledger_max_entries`, `ledger_max_bytes`, `ledger_max_time`: limits at which the next ledger is
        opened, the last one in seconds. None counts before `ledger_min_time` seconds, 600 in the Java broker.
        Whole ledgers are removed once every subscription has acknowledged them.
        `keep_without_subscription`: bytes kept of a topic without subscriptions, while there is room for
        messages. The Java broker needs no such option: its ledgers are large and live for ten minutes at
        least.
        `max_stored_bytes`: bytes of memory for the entries of all topics, each counted with 350 bytes more
        than its own. At a message beyond it the producers of the topic are closed, as by a Java broker whose
        bookies are full, and new ones get PersistenceError until a tenth is free. The last entry may exceed
        the limit. 0 is no limit.
        `entry_cache_bytes`: bytes of memory for entries that a store on disk has, too, counted in the same
        way. Beyond it the broker discards those that it used least recently, and reads them back when it
        needs them. It is half of `max_stored_bytes` at most. A `MemoryStore` keeps all entries in memory.
        `max_topics`, `max_subscriptions_per_topic`: clients cannot create more. The Java broker has no such
        limit by default.
        `max_topics_per_namespace`: the default for namespaces whose policies do not set it, each partition
        counted. `max_partitions_per_topic`: of new topics and of those that grow. `max_tenants`,
        `max_namespaces_per_tenant`: administrators cannot create more. 0 is no limit for these four.
        `broker_publish_rate`, `broker_dispatch_rate`: of all topics together, beside their policies; None is
        no limit. Only persistent topics are dispatched at a rate.
        `cursor_flush_interval`: seconds an unconfirmed acknowledgement may wait before it is written.
        `housekeeping_interval`: seconds between checks of expiry, retention and all that depends on time.
    Subscriptions
        `broker_entry_metadata`: send broker entry metadata to clients that can read it: the index of each
        message in its topic and the time the broker received it. Off by default, as in the Java broker.
        `batch_index_acknowledgement`: store the acknowledged messages of a batch (Pulsar 4.2: on).
        `max_unacked_messages_per_consumer`, `max_unacked_messages_per_subscription`: of Shared and
        Key_Shared; 0 is no limit.
        `failover_delay`: seconds between the choice of an active consumer and the first message to it.
        `entries_per_turn`: entries a Shared consumer gets before the next one's turn.
        `delayed_delivery`, `delayed_delivery_tick`: the defaults for topics whose policies do not set them
        (see `Policies`). `delayed_delivery_strict`: no message is delivered before its time, whatever the
        tick.
        `key_shared_look_ahead`: entries a Key_Shared subscription holds back before it stops reading.
        `key_shared_consistent_hashing`: divide keys among consumers by a ring, as Pulsar does; otherwise
        by halving ranges.
        `reached_end_of_topic`: "not to C++" sends REACHED_END_OF_TOPIC to clients of protocol 21, "never"
        to none. The C++ client, which announces 20, drops its connection on it. The Go client announces 20,
        too, and would accept it.
        `transaction_coordinators`: how many clients find, 0 to 1,024; 0 is a broker without transactions. The
        Java broker has none by default, and 16 where they are enabled; one node needs one.
        `max_transactions`: more are refused. The Java broker has no such limit by default.
        `topic_list_watcher`: whether clients may watch lists of topics; otherwise clients poll.
        `default_policies`: policies used where neither the topic nor its namespace sets them. A policy that
        is an option above is refused here.
    """

    service_url: str = "pulsar://127.0.0.1:6650"
    service_url_tls: str | None = None
    web_service_url: str | None = None
    web_service_url_tls: str | None = None
    cluster: str = "standalone"
    server_version: str = "pulsar-trio"
    proxy_through_service_url: bool = False
    protocol_version: int = 21
    feature_flags: bool = True

    authentication: BrokerAuthentication | None = None

    keepalive_interval: float = 30.0
    liveness_timeout: float = 5.0
    max_connections: int = 10_000
    max_connections_per_address: int = 0
    max_message_size: int = DEFAULT_MAX_MESSAGE_SIZE
    max_unsent_bytes: int = 2 * 1024 * 1024
    max_pending_publishes: int = 1000
    max_producers_per_connection: int = 10_000
    max_consumers_per_connection: int = 10_000
    max_producers_per_address: int = 0
    max_consumers_per_address: int = 0

    auto_topic_creation: bool = True
    auto_topic_partitions: int = 0
    auto_subscription_creation: bool = True
    deduplication: bool = False
    deduplication_inactivity: float = 6 * 3600.0
    deduplication_max_producers: int = 10_000
    ledger_max_entries: int = 50_000
    ledger_max_bytes: int = 16 * 1024 * 1024
    ledger_max_time: float = 4 * 3600.0
    ledger_min_time: float = 0.0
    keep_without_subscription: int = 128 * 1024 * 1024
    max_stored_bytes: int = 0
    entry_cache_bytes: int = 64 * 1024 * 1024
    max_topics: int = 100_000
    max_subscriptions_per_topic: int = 10_000
    max_topics_per_namespace: int = 0
    max_partitions_per_topic: int = 0
    max_tenants: int = 0
    max_namespaces_per_tenant: int = 0
    broker_publish_rate: MessageRate | None = None
    broker_dispatch_rate: MessageRate | None = None
    cursor_flush_interval: float = 0.1
    housekeeping_interval: float = 60.0

    broker_entry_metadata: bool = False
    batch_index_acknowledgement: bool = True
    max_unacked_messages_per_consumer: int = 50_000
    max_unacked_messages_per_subscription: int = 200_000
    failover_delay: float = 1.0
    entries_per_turn: int = 20
    key_shared_look_ahead: int = 2000
    key_shared_consistent_hashing: bool = False
    delayed_delivery: bool = True
    delayed_delivery_tick: float = 1.0
    delayed_delivery_strict: bool = False
    reached_end_of_topic: str = "not to C++"
    transaction_coordinators: int = 1
    max_transactions: int = 10_000
    topic_list_watcher: bool = True
    default_policies: Policies = NO_POLICIES

    @property
    def effective_entry_cache_bytes(self) -> int:
        """`entry_cache_bytes`, with room left for messages where `max_stored_bytes` is small."""
        if not self.max_stored_bytes:
            return self.entry_cache_bytes
        return min(self.entry_cache_bytes, self.max_stored_bytes // 2)

    def policies(self) -> Policies:
        """The lowest level of policies: no field is None except where None means "off"."""
        return self.default_policies.over(
            Policies(
                deduplication=self.deduplication,
                auto_topic_creation=self.auto_topic_creation,
                auto_topic_partitions=self.auto_topic_partitions,
                auto_subscription_creation=self.auto_subscription_creation,
                max_unacked_messages_per_consumer=self.max_unacked_messages_per_consumer,
                max_unacked_messages_per_subscription=self.max_unacked_messages_per_subscription,
                max_topics=self.max_topics_per_namespace,
                max_producers=0,
                max_consumers=0,
                max_consumers_per_subscription=0,
                message_ttl=0,
                retention_time=0,
                retention_size=0,
                encryption_required=False,
                delayed_delivery=self.delayed_delivery,
                delayed_delivery_tick=self.delayed_delivery_tick,
                delayed_delivery_max=0,
                compaction_threshold=0,
                schema_compatibility="FULL",
                schema_auto_update=True,
                schema_validation_enforced=False,
            )
        )

    def __post_init__(self) -> None:
        ServiceUrl.of_broker(self.service_url)
        if self.service_url_tls is not None:
            ServiceUrl.of_broker(self.service_url_tls)
        web = self.web_service_url
        if web is not None and not (isinstance(web, str) and web.startswith("http://")):
            raise InvalidConfiguration(f"web_service_url: http://host:port or None, not {web!r}")
        web = self.web_service_url_tls
        if web is not None and not (isinstance(web, str) and web.startswith("https://")):
            raise InvalidConfiguration(f"web_service_url_tls: https://host:port or None, not {web!r}")
        for name in ("cluster", "server_version"):
            if not is_text(value := getattr(self, name)) or not value.strip():
                raise InvalidConfiguration(f"{name}: text that is not blank, not {value!r}")
        for name in (
            "proxy_through_service_url",
            "feature_flags",
            "auto_topic_creation",
            "auto_subscription_creation",
            "deduplication",
            "broker_entry_metadata",
            "batch_index_acknowledgement",
            "key_shared_consistent_hashing",
            "delayed_delivery",
            "delayed_delivery_strict",
            "topic_list_watcher",
        ):
            if not isinstance(value := getattr(self, name), bool):
                raise InvalidConfiguration(f"{name}: True or False, not {value!r}")
        for name in ("keepalive_interval", "liveness_timeout", "housekeeping_interval", "ledger_max_time"):
            self._check(name, getattr(self, name), 0.001, 10.0 * 365 * 86_400)
        for name in (
            "cursor_flush_interval",
            "failover_delay",
            "deduplication_inactivity",
            "delayed_delivery_tick",
            "ledger_min_time",
        ):
            self._check(name, getattr(self, name), 0.0, 10.0 * 365 * 86_400)
        for name in (
            "max_connections",
            "max_pending_publishes",
            "max_producers_per_connection",
            "max_consumers_per_connection",
            "max_topics",
            "max_subscriptions_per_topic",
            "deduplication_max_producers",
            "ledger_max_entries",
            "entries_per_turn",
            "key_shared_look_ahead",
            "max_transactions",
        ):
            self._check(name, getattr(self, name), 1, 2**31 - 1)
        self._check("transaction_coordinators", self.transaction_coordinators, 0, 1024)
        self._check("protocol_version", self.protocol_version, 12, 21)
        self._check("max_message_size", self.max_message_size, 1024, 2**31 - 1 - 10_240)
        self._check("max_unsent_bytes", self.max_unsent_bytes, 1024, 2**40)
        self._check("keep_without_subscription", self.keep_without_subscription, 0, 2**40)
        self._check("max_stored_bytes", self.max_stored_bytes, 0, 2**50)
        self._check("entry_cache_bytes", self.entry_cache_bytes, 0, 2**50)
        self._check("ledger_max_bytes", self.ledger_max_bytes, 1024, 2**40)
        self._check("auto_topic_partitions", self.auto_topic_partitions, 0, 10_000)
        for name in (
            "max_connections_per_address",
            "max_producers_per_address",
            "max_consumers_per_address",
            "max_topics_per_namespace",
            "max_partitions_per_topic",
            "max_tenants",
            "max_namespaces_per_tenant",
            "max_unacked_messages_per_consumer",
            "max_unacked_messages_per_subscription",
        ):
            self._check(name, getattr(self, name), 0, 2**31 - 1)
        authentication = self.authentication
        if authentication is not None and not isinstance(authentication, BrokerAuthentication):
            raise InvalidConfiguration(
                f"authentication: a BrokerAuthentication or None, not {type(authentication).__name__}"
            )
        for name in ("broker_publish_rate", "broker_dispatch_rate"):
            rate = getattr(self, name)
            if rate is not None and (not isinstance(rate, MessageRate) or rate.relative):
                raise InvalidConfiguration(f"{name}: an absolute MessageRate or None, not {rate!r:.200}")
        if not isinstance(self.default_policies, Policies):
            raise InvalidConfiguration(f"default_policies: Policies, not {self.default_policies!r:.200}")
        for option in fields(self):
            if getattr(self.default_policies, option.name, None) is not None:
                raise InvalidConfiguration(f"default_policies: {option.name} is an option of its own")
        if self.reached_end_of_topic not in ("not to C++", "never"):
            raise InvalidConfiguration(
                f"reached_end_of_topic: 'not to C++' or 'never', not {self.reached_end_of_topic!r}"
            )

    @staticmethod
    def _check(name: str, value: object, minimum: float, maximum: float) -> None:
        whole = isinstance(minimum, int)
        if (
            isinstance(value, bool)
            or not isinstance(value, int if whole else (int, float))
            or not minimum <= value <= maximum
        ):
            kind = "a whole number" if whole else "seconds"
            raise InvalidConfiguration(f"{name}: {kind} from {minimum:g} to {maximum:g}, not {value!r}")
