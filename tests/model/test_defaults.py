"""The defaults of all options, as the table of options in docs/rules.md has them."""

from dataclasses import MISSING, fields
from inspect import signature
from typing import Any

import pytest

from pulsar_sansio.broker.config import BrokerConfig
from pulsar_sansio.broker.policies import Policies
from pulsar_sansio.model.config import (
    BatchingPolicy,
    BatchReceivePolicy,
    ClientConfig,
    CompressionType,
    ConsumerSpec,
    HashingScheme,
    InitialPosition,
    OutgoingMessage,
    ProducerAccessMode,
    ProducerSpec,
    ReaderSpec,
    RoutingMode,
    SubscriptionType,
    TopicsPattern,
)
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_trio import open_client

CLIENT = ClientConfig("pulsar://localhost")
PRODUCER = ProducerSpec("t")
CONSUMER = ConsumerSpec("t", "s")
READER = ReaderSpec("t", EARLIEST)
MESSAGE = OutgoingMessage(b"")

DEFAULTS: list[tuple[Any, str, object]] = [
    (CLIENT, "operation_timeout", 30.0),  # CFG-005.
    (CLIENT, "connections_per_broker", 1),  # CFG-009.
    (CLIENT, "max_pending_lookups", 5000),  # CFG-015.
    (CLIENT, "max_rejected_requests", 50),  # CFG-017.
    (CLIENT, "keepalive_interval", 30.0),  # CFG-018.
    (CLIENT, "connect_timeout", 10.0),  # CFG-019, POOL-11.
    (CLIENT, "memory_limit", 64 * 1024 * 1024),  # CFG-021.
    (CLIENT, "initial_backoff", 0.1),  # CFG-022.
    (CLIENT, "max_backoff", 60.0),  # CFG-023.
    (CLIENT, "create_topics", True),  # CFG-232.
    (PRODUCER, "name", None),  # CFG-102.
    (PRODUCER, "send_timeout", 30.0),  # CFG-103.
    (PRODUCER, "max_pending_messages", 10_000),  # CFG-104.
    (PRODUCER, "max_pending_messages_across_partitions", 50_000),  # CFG-105.
    (PRODUCER, "routing", RoutingMode.ROUND_ROBIN),  # CFG-107, CFG-110.
    (PRODUCER, "hashing", HashingScheme.JAVA_STRING),  # CFG-108.
    (PRODUCER, "compression", CompressionType.NONE),  # CFG-109.
    (PRODUCER, "batching", BatchingPolicy()),  # CFG-111.
    (BatchingPolicy(), "max_delay", 0.001),  # CFG-115.
    (BatchingPolicy(), "max_messages", 1000),  # CFG-116.
    (BatchingPolicy(), "max_bytes", 128 * 1024),  # CFG-117, BATCH-10.
    (PRODUCER, "initial_sequence_id", None),  # CFG-118.
    (PRODUCER, "properties", {}),  # CFG-119.
    (PRODUCER, "interceptors", ()),  # CFG-120.
    (PRODUCER, "partitions_update_interval", 60.0),  # CFG-121.
    (PRODUCER, "chunking", False),  # CFG-122.
    (PRODUCER, "access_mode", ProducerAccessMode.SHARED),  # CFG-123.
    (CONSUMER, "subscription_type", SubscriptionType.SHARED),  # CFG-204.
    (CONSUMER, "durable", True),  # CFG-205.
    (CONSUMER, "initial_position", InitialPosition.LATEST),  # CFG-206.
    (CONSUMER, "receiver_queue_size", 1000),  # CFG-207.
    (CONSUMER, "max_total_receiver_queue_size", 50_000),  # CFG-208.
    (CONSUMER, "acknowledgement_group_time", 0.1),  # CFG-209, ACK-24.
    (CONSUMER, "acknowledgement_group_size", 1000),  # GAP-30.
    (CONSUMER, "acknowledgement_timeout", 0.0),  # CFG-210.
    (CONSUMER, "acknowledgement_timeout_tick", 1.0),  # CFG-211, GAP-12.
    (CONSUMER, "negative_acknowledgement_delay", 60.0),  # CFG-212.
    (CONSUMER, "dead_letter", None),  # CFG-213.
    (CONSUMER, "retry", False),  # CFG-214.
    (CONSUMER, "priority_level", 0),  # CFG-215.
    (CONSUMER, "consumer_name", None),  # CFG-216.
    (CONSUMER, "read_compacted", False),  # CFG-221.
    (TopicsPattern("a/b/.*"), "discovery_interval", 60.0),  # CFG-222.
    (CONSUMER, "interceptors", ()),  # CFG-225.
    (CONSUMER, "partitions_update_interval", 60.0),  # CFG-226.
    (CONSUMER, "batch_receive", None),  # CFG-227.
    (BatchReceivePolicy(), "max_messages", None),
    (BatchReceivePolicy(), "max_bytes", 10 * 1024 * 1024),
    (BatchReceivePolicy(), "timeout", 0.1),
    (CONSUMER, "replicate_subscription_state", False),  # CFG-228.
    (CONSUMER, "key_shared", None),  # CFG-230.
    (CONSUMER, "start_message_rollback", 0.0),  # CFG-231.
    (MESSAGE, "key", None),  # CFG-401.
    (MESSAGE, "properties", None),  # CFG-403.
    (MESSAGE, "event_time", 0),  # CFG-404.
    (MESSAGE, "sequence_id", None),  # CFG-405.
    (MESSAGE, "replicate_to", ()),  # CFG-406, CFG-407.
    (BrokerConfig(), "auto_topic_creation", True),  # CFG-501.
    (BrokerConfig(), "auto_topic_partitions", 0),
    (BrokerConfig(), "auto_subscription_creation", True),  # CFG-502.
    (BrokerConfig(), "max_unacked_messages_per_consumer", 50_000),  # CFG-503.
    (BrokerConfig(), "max_unacked_messages_per_subscription", 200_000),
    (Policies(), "subscription_types", None),  # CFG-506: None allows all.
    (BrokerConfig(), "housekeeping_interval", 60.0),  # CFG-508.
    (Policies(), "retention_time", None),  # CFG-510.
    (Policies(), "retention_size", None),  # CFG-511.
    (Policies(), "message_ttl", None),  # CFG-512.
    (BrokerConfig(), "ledger_max_entries", 50_000),  # GAP-23.
    (BrokerConfig(), "ledger_max_bytes", 16 * 1024 * 1024),
]


@pytest.mark.parametrize(("made", "option", "default"), DEFAULTS)
def test_a_default(made: Any, option: str, default: object) -> None:
    """Rule GAP-38."""
    assert getattr(made, option) == default


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        (ClientConfig, {"service_url"}),
        (ProducerSpec, {"topic"}),  # CFG-101.
        (ConsumerSpec, {"topic", "subscription"}),  # CFG-201, CFG-203.
        (ReaderSpec, {"topic"}),  # CFG-301; the start may be `start_rollback` instead (CFG-302).
    ],
)
def test_the_options_without_a_default(kind: Any, required: set[str]) -> None:
    missing = {each.name for each in fields(kind) if each.default is each.default_factory is MISSING}
    assert missing == required


def test_there_is_no_option_for_threads_and_one_for_the_time_of_requests() -> None:
    """Rules CFG-007 and CFG-020."""
    names = [each.name for each in fields(ClientConfig)]
    assert not [name for name in names if "thread" in name]
    assert [name for name in names if "timeout" in name] == ["operation_timeout", "connect_timeout"]


def test_statistics_are_not_logged_by_default() -> None:
    """Rule CFG-006."""
    assert signature(open_client).parameters["statistics_interval"].default is None
