"""Apache Pulsar for trio: `open_client` for applications, `open_broker` for tests and development.

The protocol is in `pulsar_sansio`; here are sockets, tasks and time.
"""

from pulsar_sansio import (
    BatchingPolicy,
    CompressionType,
    InitialPosition,
    Message,
    MessageId,
    OutgoingMessage,
    PulsarError,
    SubscriptionType,
)

from .client import Client, ClientStatistics, open_client
from .consumer import (
    Consumer,
    ConsumerStatistics,
    ExclusiveConsumer,
    FailoverConsumer,
    KeySharedConsumer,
    SharedConsumer,
)
from .errors import InternalError, ResourceBroken, ResourceClosed, StoreFailed
from .producer import Producer, ProducerStatistics
from .receipts import Receipt
from .server import EmbeddedBroker, open_broker, serve

__all__ = [
    # the way in
    "open_client",
    "open_broker",
    "serve",
    # what they give
    "Client",
    "Producer",
    "Receipt",
    "Consumer",
    "ExclusiveConsumer",
    "FailoverConsumer",
    "SharedConsumer",
    "KeySharedConsumer",
    "EmbeddedBroker",
    "ClientStatistics",
    "ProducerStatistics",
    "ConsumerStatistics",
    # values
    "Message",
    "MessageId",
    "OutgoingMessage",
    "BatchingPolicy",
    "CompressionType",
    "InitialPosition",
    "SubscriptionType",
    # errors
    "PulsarError",
    "ResourceClosed",
    "ResourceBroken",
    "InternalError",
    "StoreFailed",
]
