"""The options of `open_broker` and `serve`, and their way into `BrokerConfig`, which has the defaults."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from pulsar_sansio import BrokerAuthentication, BrokerConfig, MessageRate, Policies

from ..client.options import known_options
from .machine_memory import machine_memory


class BrokerOptions(TypedDict, total=False):
    """Keywords of `open_broker` and `serve`, as in `BrokerConfig`. Without `service_url` clients are told the
    address the broker listens on. `max_stored_bytes` is half of the machine's memory by default."""

    service_url: str
    service_url_tls: str | None
    web_service_url: str | None
    web_service_url_tls: str | None
    cluster: str
    server_version: str
    proxy_through_service_url: bool
    protocol_version: int
    feature_flags: bool
    authentication: BrokerAuthentication | None
    keepalive_interval: float
    liveness_timeout: float
    max_connections: int
    max_connections_per_address: int
    max_stored_bytes: int
    entry_cache_bytes: int
    max_topics: int
    max_subscriptions_per_topic: int
    max_topics_per_namespace: int
    max_partitions_per_topic: int
    max_tenants: int
    max_namespaces_per_tenant: int
    broker_publish_rate: MessageRate | None
    broker_dispatch_rate: MessageRate | None
    max_message_size: int
    max_unsent_bytes: int
    max_pending_publishes: int
    max_producers_per_connection: int
    max_consumers_per_connection: int
    max_producers_per_address: int
    max_consumers_per_address: int
    auto_topic_creation: bool
    auto_topic_partitions: int
    auto_subscription_creation: bool
    deduplication: bool
    deduplication_inactivity: float
    deduplication_max_producers: int
    ledger_max_entries: int
    ledger_max_bytes: int
    ledger_max_time: float
    ledger_min_time: float
    keep_without_subscription: int
    cursor_flush_interval: float
    housekeeping_interval: float
    broker_entry_metadata: bool
    batch_index_acknowledgement: bool
    max_unacked_messages_per_consumer: int
    max_unacked_messages_per_subscription: int
    failover_delay: float
    entries_per_turn: int
    key_shared_look_ahead: int
    key_shared_consistent_hashing: bool
    delayed_delivery: bool
    delayed_delivery_tick: float
    delayed_delivery_strict: bool
    reached_end_of_topic: Literal["not to C++", "never"]
    transaction_coordinators: int
    max_transactions: int
    topic_list_watcher: bool
    default_policies: Policies


def broker_config(service_url: str, options: Mapping[str, Any]) -> BrokerConfig:
    given = known_options("open_broker", BrokerOptions, options)
    given.setdefault("service_url", service_url)
    given.setdefault("max_stored_bytes", machine_memory() // 2)
    return BrokerConfig(**given)
