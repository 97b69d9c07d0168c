"""Specs check themselves: one clear error that names the option and what is allowed."""

import dataclasses
import pickle
from typing import Any

import pytest

from pulsar_sansio.model.config import (
    BatchingPolicy,
    BatchReceivePolicy,
    ClientConfig,
    CompressionType,
    ConsumerSpec,
    DeadLetterPolicy,
    KeySharedPolicy,
    OutgoingMessage,
    ProducerSpec,
    RedeliveryBackoff,
    SubscriptionType,
)
from pulsar_sansio.model.errors import InvalidConfiguration, InvalidMessage, InvalidTopicName
from pulsar_sansio.model.message_id import EARLIEST

URL = "pulsar://localhost"
BAD: list[tuple[Any, dict[str, Any], str]] = [
    (ClientConfig, {"service_url": "x"}, "service URL"),
    (ClientConfig, {"service_url": URL, "operation_timeout": 0}, "operation_timeout"),
    (ClientConfig, {"service_url": URL, "keepalive_interval": float("nan")}, "keepalive_interval"),
    (ClientConfig, {"service_url": URL, "connect_timeout": "10"}, "connect_timeout"),
    (ClientConfig, {"service_url": URL, "connections_per_broker": 0}, "connections_per_broker"),  # POOL-03
    (ClientConfig, {"service_url": URL, "max_lookup_redirects": -1}, "max_lookup_redirects"),
    (ClientConfig, {"service_url": URL, "initial_backoff": 2.0, "max_backoff": 1.0}, "max_backoff"),
    (ClientConfig, {"service_url": URL, "listener_name": " "}, "listener_name"),
    (ClientConfig, {"service_url": URL, "max_partitions": 0}, "max_partitions"),
    (ProducerSpec, {"topic": "a/b"}, "topic name"),
    (ProducerSpec, {"topic": "x", "name": ""}, "name"),
    (ProducerSpec, {"topic": "x", "send_timeout": -1}, "send_timeout"),
    (ProducerSpec, {"topic": "x", "max_pending_messages": 0}, "max_pending_messages"),
    (ProducerSpec, {"topic": "x", "max_pending_messages": True}, "max_pending_messages"),
    (ProducerSpec, {"topic": "x", "batching": True}, "batching"),
    (ProducerSpec, {"topic": "x", "compression": 1}, "compression"),
    (ProducerSpec, {"topic": "x", "initial_sequence_id": 2**63}, "initial_sequence_id"),
    (ProducerSpec, {"topic": "x", "properties": {"a": 1}}, "properties"),
    (ConsumerSpec, {"topic": "x", "subscription": " "}, "subscription"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "subscription_type": "shared"}, "subscription_type"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "receiver_queue_size": -1}, "receiver_queue_size"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "durable": 1}, "durable"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "start_message_id": EARLIEST}, "start_message_id"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "priority_level": -1}, "priority_level"),
    (
        ConsumerSpec,
        {"topic": "x", "subscription": "s", "subscription_properties": 1},
        "subscription_properties",
    ),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "replicate_subscription_state": 1}, "replicate"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "key_shared": ((0, 1),)}, "key_shared"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "key_shared": KeySharedPolicy()}, "on a shared one"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "batch_receive": 5}, "batch_receive"),
    (
        ConsumerSpec,
        {"topic": "x", "subscription": "s", "receiver_queue_size": 0, "batch_receive": BatchReceivePolicy()},
        "batch_receive",
    ),
    (
        ConsumerSpec,
        {
            "topic": "x",
            "subscription": "s",
            "receiver_queue_size": 0,
            "auto_scaled_receiver_queue_size": True,
        },
        "auto_scaled",
    ),
    (
        ConsumerSpec,
        {
            "topic": "x",
            "subscription": "s",
            "subscription_type": SubscriptionType.SHARED,
            "read_compacted": True,
        },
        "read_compacted",
    ),  # CLIENT-14
    (
        ConsumerSpec,
        {
            "topic": "non-persistent://a/b/x",
            "subscription": "s",
            "subscription_type": SubscriptionType.EXCLUSIVE,
            "read_compacted": True,
        },
        "persistent topic",
    ),
    (BatchReceivePolicy, {"max_messages": 0}, "max_messages"),
    (BatchReceivePolicy, {"max_bytes": 0}, "max_bytes"),
    (BatchReceivePolicy, {"timeout": -1}, "timeout"),
    (BatchReceivePolicy, {"max_bytes": None, "timeout": 0.0}, "enough"),
    (KeySharedPolicy, {"ranges": ()}, "ranges"),
    (KeySharedPolicy, {"ranges": [(0, 1)]}, "ranges"),
    (KeySharedPolicy, {"ranges": ((0, 65536),)}, "65536"),
    (KeySharedPolicy, {"ranges": ((5, 4),)}, "first <= last"),
    (KeySharedPolicy, {"ranges": ((0, True),)}, "ranges"),
    (KeySharedPolicy, {"ranges": (0, 1)}, "ranges"),
    (KeySharedPolicy, {"ranges": ((50, 60), (0, 50))}, "overlap"),
    (KeySharedPolicy, {"ranges": ((0, 1),) * 10_001}, "10000"),
    (KeySharedPolicy, {"allow_out_of_order": 1}, "allow_out_of_order"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "acknowledgement_timeout": -1}, "timeout: seconds"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "acknowledgement_timeout": 0.5}, "tick of 1 s"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "acknowledgement_timeout_tick": 0}, "timeout_tick"),
    (
        ConsumerSpec,
        {"topic": "x", "subscription": "s", "acknowledgement_timeout_backoff": RedeliveryBackoff()},
        "only with acknowledgement_timeout",
    ),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "negative_acknowledgement_delay": -0.1}, "delay"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "negative_acknowledgement_backoff": 1.0}, "Backoff"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "dead_letter": 3}, "dead_letter"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "retry": 1}, "retry"),
    (DeadLetterPolicy, {"max_redeliver_count": 0}, "max_redeliver_count"),
    (DeadLetterPolicy, {"max_redeliver_count": 1, "topic": "a/b"}, "topic name"),
    (DeadLetterPolicy, {"max_redeliver_count": 1, "retry_topic": ""}, "topic name"),
    (DeadLetterPolicy, {"max_redeliver_count": 1, "initial_subscription": " "}, "initial_subscription"),
    (ProducerSpec, {"topic": "x", "initial_subscription": ""}, "initial_subscription"),
    (RedeliveryBackoff, {"min_delay": -1.0}, "min_delay"),
    (RedeliveryBackoff, {"min_delay": 10.0, "max_delay": 5.0}, "max_delay"),
    (RedeliveryBackoff, {"multiplier": 1.0}, "multiplier"),
    (RedeliveryBackoff, {"multiplier": float("nan")}, "multiplier"),
    (BatchingPolicy, {"max_messages": 0}, "max_messages"),
    (BatchingPolicy, {"max_bytes": 0}, "max_bytes"),
    (BatchingPolicy, {"max_delay": 61}, "max_delay"),
    (BatchingPolicy, {"by_key": "yes"}, "by_key"),
    (ClientConfig, {"service_url": URL, "memory_limit": 0}, "memory_limit"),
    (ProducerSpec, {"topic": "x", "initial_sequence_id": 2**63 - 1}, "initial_sequence_id"),
]


@pytest.mark.parametrize(("kind", "options", "word"), BAD)
def test_a_bad_option_is_named(kind: Any, options: dict[str, Any], word: str) -> None:
    """Rule ERR-01."""
    with pytest.raises(InvalidConfiguration, match=word):
        kind(**options)


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [
        (RedeliveryBackoff(), (10, 20, 40, 80, 160, 320, 600)),
        (RedeliveryBackoff(1.0, 3.0, 1.5), (1, 1.5, 2.25, 3)),
        (RedeliveryBackoff(5.0, 5.0), (5,)),
        (RedeliveryBackoff(0.0, 100.0), (0,)),
    ],
)
def test_the_delays_of_a_backoff(backoff: RedeliveryBackoff, seconds: tuple[float, ...]) -> None:
    assert backoff.delays() == tuple(round(each * 1_000_000_000) for each in seconds)


def test_the_topic_of_a_producer_is_checked_before_its_options() -> None:
    """Rule CLIENT-09."""
    with pytest.raises(InvalidTopicName):
        ProducerSpec("a/b", name="")


def test_a_bad_topic_is_an_invalid_topic_name() -> None:
    """Rule ERR-02."""
    with pytest.raises(InvalidTopicName):
        ConsumerSpec("a/b", "s")


def test_specs_are_frozen_and_picklable() -> None:
    """Rule CLIENT-26."""
    for spec in (
        ClientConfig(URL),
        ProducerSpec("x", compression=CompressionType.ZSTD),
        ConsumerSpec("x", "s", SubscriptionType.SHARED),
    ):
        assert pickle.loads(pickle.dumps(spec)) == spec
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(spec, dataclasses.fields(spec)[0].name, "y")


BAD_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"payload": "text"}, "payload"),
    ({"payload": 7}, "payload"),
    ({"payload": b"", "key": 7}, "key"),
    ({"payload": b"", "properties": {"a": 1}}, "properties"),
    ({"payload": b"", "properties": {1: "a"}}, "properties"),
    ({"payload": b"", "ordering_key": "k"}, "ordering_key"),
    ({"payload": b"", "event_time": -1}, "event_time"),
    ({"payload": b"", "event_time": 1.5}, "event_time"),
    ({"payload": b"", "sequence_id": 2**63}, "sequence_id"),
    ({"payload": b"", "event_time": 2**63}, "event_time"),
    ({"payload": b"", "sequence_id": -1}, "sequence_id"),
    ({"payload": b"", "sequence_id": True}, "sequence_id"),
    ({"payload": b"", "deliver_at": -1}, "deliver_at"),
    ({"payload": b"", "deliver_at": 2**63}, "deliver_at"),
    ({"payload": b"", "properties": [("a", "b")]}, "properties"),
    ({"payload": b"", "replicate_to": "us-west"}, "replicate_to"),
    ({"payload": b"", "replicate_to": ("us-west", 7)}, "replicate_to"),
    ({"payload": b"", "replicate_to": ("us-west", " ")}, "replicate_to"),
]


@pytest.mark.parametrize(("options", "word"), BAD_MESSAGES)
def test_a_bad_message_is_refused_before_anything_is_sent(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidMessage, match=word):
        OutgoingMessage(**options)


def test_bytes_like_payloads_are_copied() -> None:
    buffer = bytearray(b"abc")
    message = OutgoingMessage(buffer)
    buffer[0] = 0
    assert message.payload == b"abc"
    assert OutgoingMessage(memoryview(b"abc")).payload == b"abc"


def test_a_message_does_not_show_its_payload() -> None:
    assert repr(OutgoingMessage(b"secret", key="k")) == "<OutgoingMessage 6 bytes, key='k'>"
    assert repr(OutgoingMessage(None)) == "<OutgoingMessage null, key=None>"
