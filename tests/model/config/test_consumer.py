"""`ConsumerSpec` checks its options, also those that exclude one another."""

import dataclasses
import pickle
from typing import Any

import pytest

from pulsar_sansio.model.config import (
    BatchReceivePolicy,
    ConsumerSpec,
    KeySharedPolicy,
    RedeliveryBackoff,
    SubscriptionType,
)
from pulsar_sansio.model.errors import InvalidConfiguration, InvalidTopicName
from pulsar_sansio.model.message_id import EARLIEST

BAD: list[tuple[Any, dict[str, Any], str]] = [
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
    (ConsumerSpec, {"topic": "x", "subscription": "s", "dead_letter": 3}, "dead_letter"),
    (ConsumerSpec, {"topic": "x", "subscription": "s", "retry": 1}, "retry"),
]


@pytest.mark.parametrize(("kind", "options", "word"), BAD)
def test_a_bad_option_is_named(kind: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidConfiguration, match=word):
        kind(**options)


def test_a_bad_topic_is_an_invalid_topic_name() -> None:
    """Rule ERR-02."""
    with pytest.raises(InvalidTopicName):
        ConsumerSpec("a/b", "s")


def test_it_is_frozen_and_can_be_pickled() -> None:
    """Rule CLIENT-26."""
    spec = ConsumerSpec("x", "s", SubscriptionType.SHARED)
    assert pickle.loads(pickle.dumps(spec)) == spec
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(spec, dataclasses.fields(spec)[0].name, "y")
