"""The frozen specs by which an application describes a client, a producer, a consumer and a message.

Durations are float seconds, as everywhere in trio. A machine turns them into integer nanoseconds once,
when it takes the spec. Every spec checks itself when it is made. It raises `InvalidConfiguration`, which
names the option, the given value and the allowed values. Defaults are those of the Java client
unless the option says otherwise (table CFG of docs/rules.md).
"""

from .batch_receive import BatchReceivePolicy
from .checks import MAX_DURATION, MAX_UINT63, nanoseconds_of
from .client import ClientConfig
from .consumer import ConsumerSpec, InitialPosition, SubscriptionType
from .failover import AutoFailover, ControlledFailover
from .key_shared import KeySharedPolicy
from .outgoing import NO_REPLICATION, NULL_KEY, NullKey, OutgoingFields, OutgoingMessage
from .pattern import TopicDomain, TopicsPattern
from .producer import (
    BatchingPolicy,
    CompressionType,
    CustomRouter,
    HashingScheme,
    ProducerAccessMode,
    ProducerSpec,
    RoutingMode,
)
from .reader import ReaderSpec, ReadingSpec, Start
from .redelivery import DeadLetterPolicy, RedeliveryBackoff
from .table_view import TableViewSpec

__all__ = [
    "MAX_DURATION",
    "MAX_UINT63",
    "NO_REPLICATION",
    "NULL_KEY",
    "NullKey",
    "AutoFailover",
    "BatchReceivePolicy",
    "BatchingPolicy",
    "ClientConfig",
    "CompressionType",
    "ControlledFailover",
    "ConsumerSpec",
    "DeadLetterPolicy",
    "CustomRouter",
    "HashingScheme",
    "InitialPosition",
    "KeySharedPolicy",
    "OutgoingFields",
    "OutgoingMessage",
    "ProducerAccessMode",
    "ProducerSpec",
    "ReaderSpec",
    "ReadingSpec",
    "RedeliveryBackoff",
    "RoutingMode",
    "Start",
    "SubscriptionType",
    "TableViewSpec",
    "TopicDomain",
    "TopicsPattern",
    "nanoseconds_of",
]
