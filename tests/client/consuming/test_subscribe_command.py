"""SUBSCRIBE as it is made from the spec of a consumer."""

from typing import Any

import pytest

from pulsar_sansio.client.consuming.subscribe_command import subscribe_command
from pulsar_sansio.model.config import (
    ConsumerSpec,
    InitialPosition,
    KeySharedPolicy,
    ReaderSpec,
    SubscriptionType,
)
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import proto


def made(spec: ConsumerSpec, topic: str = "t") -> Any:
    return subscribe_command(
        spec,
        TopicName.parse(topic),
        "me",
        consumer_id=3,
        request_id=4,
        create_topic=False,
        epoch=5,
        schema=None,
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (SubscriptionType.EXCLUSIVE, "Exclusive"),
        (SubscriptionType.SHARED, "Shared"),
        (SubscriptionType.FAILOVER, "Failover"),
        (SubscriptionType.KEY_SHARED, "Key_Shared"),
    ],
)
def test_the_type_of_the_subscription(kind: SubscriptionType, name: str) -> None:
    command = made(ConsumerSpec("t", "s", kind))
    assert proto.CommandSubscribe.SubType.Name(command.subType) == name
    assert (command.topic, command.subscription) == ("persistent://public/default/t", "s")


def test_names_and_numbers_are_those_given() -> None:
    command = made(ConsumerSpec("t", "s", SubscriptionType.EXCLUSIVE, priority_level=2, read_compacted=True))
    assert (command.consumer_name, command.consumer_id, command.request_id) == ("me", 3, 4)
    assert (command.priority_level, command.consumer_epoch) == (2, 5)
    assert command.read_compacted
    assert command.force_topic_creation is False


def test_options_that_are_not_given_are_not_written() -> None:
    command = made(ConsumerSpec("t", "s"))
    assert command.durable
    assert not command.HasField("keySharedMeta")
    assert not command.HasField("replicate_subscription_state")
    assert command.initialPosition == proto.CommandSubscribe.InitialPosition.Latest


def test_properties_of_consumer_and_subscription_are_told_apart() -> None:
    command = made(
        ConsumerSpec(
            "t",
            "s",
            initial_position=InitialPosition.EARLIEST,
            properties={"a": "1"},
            subscription_properties={"b": "2"},
            replicate_subscription_state=True,
        )
    )
    assert [(pair.key, pair.value) for pair in command.metadata] == [("a", "1")]
    assert [(pair.key, pair.value) for pair in command.subscription_properties] == [("b", "2")]
    assert command.initialPosition == proto.CommandSubscribe.InitialPosition.Earliest
    assert command.replicate_subscription_state


def test_a_nonpersistent_topic_has_no_durable_subscription() -> None:
    assert not made(ConsumerSpec("non-persistent://public/default/t", "s"), "non-persistent://a/b/t").durable


def test_ranges_of_a_key_shared_consumer_are_sticky() -> None:
    policy = KeySharedPolicy(ranges=((0, 9), (20, 29)), allow_out_of_order=True)
    meta = made(ConsumerSpec("t", "s", SubscriptionType.KEY_SHARED, key_shared=policy)).keySharedMeta
    assert (meta.keySharedMode, meta.allowOutOfOrderDelivery) == (proto.STICKY, True)
    assert [(each.start, each.end) for each in meta.hashRanges] == [(0, 9), (20, 29)]
    split = made(ConsumerSpec("t", "s", SubscriptionType.KEY_SHARED, key_shared=KeySharedPolicy()))
    assert split.keySharedMeta.keySharedMode == proto.AUTO_SPLIT
    assert not split.keySharedMeta.hashRanges


def test_a_reader_of_some_hashes_names_them() -> None:
    reading = ReaderSpec("t", EARLIEST, key_hash_ranges=((5, 6),)).reading("x")
    command = made(reading)
    assert (command.keySharedMeta.keySharedMode, command.durable) == (proto.STICKY, False)
    assert [(each.start, each.end) for each in command.keySharedMeta.hashRanges] == [(5, 6)]
