"""SUBSCRIBE of a consumer of one topic, made from its spec; `positions` adds the start position."""

from collections.abc import Mapping

from ...model.config import (
    ConsumerSpec,
    InitialPosition,
    KeySharedPolicy,
    ReadingSpec,
    SubscriptionType,
)
from ...model.topic_name import TopicName
from ...wire import proto

_SubType = proto.CommandSubscribe.SubType
_Position = proto.CommandSubscribe.InitialPosition

_SUBSCRIPTION_TYPES = {
    SubscriptionType.EXCLUSIVE: _SubType.Exclusive,
    SubscriptionType.SHARED: _SubType.Shared,
    SubscriptionType.FAILOVER: _SubType.Failover,
    SubscriptionType.KEY_SHARED: _SubType.Key_Shared,
}
_INITIAL_POSITIONS = {
    InitialPosition.LATEST: _Position.Latest,
    InitialPosition.EARLIEST: _Position.Earliest,
}


def subscribe_command(
    spec: ConsumerSpec,
    topic: TopicName,
    name: str,
    *,
    consumer_id: int,
    request_id: int,
    create_topic: bool,
    epoch: int,
    schema: proto.Schema | None,
) -> proto.CommandSubscribe:
    """`name`: the consumer's name, given or generated. A non-persistent topic has no durable
    subscriptions."""
    command = proto.CommandSubscribe(
        topic=str(topic),
        subscription=spec.subscription,
        subType=_SUBSCRIPTION_TYPES[spec.subscription_type],
        consumer_id=consumer_id,
        request_id=request_id,
        consumer_name=name,
        priority_level=spec.priority_level,
        durable=spec.durable and topic.persistent,
        metadata=_key_values(spec.properties),
        read_compacted=spec.read_compacted,
        initialPosition=_INITIAL_POSITIONS[spec.initial_position],
        force_topic_creation=create_topic,
        subscription_properties=_key_values(spec.subscription_properties),
        consumer_epoch=epoch,
    )
    if spec.replicate_subscription_state:
        command.replicate_subscription_state = True
    if schema is not None:
        command.schema.CopyFrom(schema)
    if spec.key_shared is not None:
        command.keySharedMeta.CopyFrom(_key_shared_meta(spec.key_shared))
    elif isinstance(spec, ReadingSpec) and spec.key_hash_ranges is not None:
        command.keySharedMeta.CopyFrom(_key_shared_meta(KeySharedPolicy(spec.key_hash_ranges)))
    return command


def _key_values(properties: Mapping[str, str]) -> list[proto.KeyValue]:
    return [proto.KeyValue(key=key, value=value) for key, value in properties.items()]


def _key_shared_meta(policy: KeySharedPolicy) -> proto.KeySharedMeta:
    meta = proto.KeySharedMeta(
        keySharedMode=proto.AUTO_SPLIT if policy.ranges is None else proto.STICKY,
        allowOutOfOrderDelivery=policy.allow_out_of_order,
    )
    for first, last in policy.ranges or ():
        meta.hashRanges.add(start=first, end=last)
    return meta
