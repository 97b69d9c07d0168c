"""Apache Pulsar for trio: `open_client` for applications, `open_broker` for tests and development.

The protocol is in `pulsar_sansio`; here are sockets, tasks and time.

What holds for every public name:

* An async function yields whenever it waits, and otherwise at least once in 64 messages: a checkpoint for
  each call, trio's own rule, would cost more than the message does. So `send` and `receive` in a loop are
  cancelled within 64 messages, not at once; `run` notices it before each handler. What cannot wait is a plain
  function: `acknowledge`, `enqueue_nowait`, `receive_nowait`, `Receipt.done`.
* There are no timeout parameters; use `trio.fail_after`. The options that are called timeouts are the
  protocol's own.
* A cancelled `receive` leaves the message in the queue. `send` is `enqueue` and then `wait`: a message whose
  `enqueue` has returned is sent, whatever is cancelled afterwards.
* An exception of a block leaves `async with` as itself. Failures in the background are raised by the calls
  that wait for them, or by the next one.
* What is closed raises `ResourceClosed`, what has ended by itself `ResourceBroken`: `ClosedError` and trio's
  error of that name in one. `aclose` twice is silent.
* All time is `trio.current_time()`, so a `MockClock` drives every timer.
"""

from pulsar_sansio import (
    BatchingPolicy,
    BatchReceivePolicy,
    CompressionType,
    ConsumerInterceptor,
    DeadLetterPolicy,
    InitialPosition,
    KeySharedPolicy,
    Message,
    MessageId,
    OutgoingMessage,
    ProducerInterceptor,
    PulsarError,
    RedeliveryBackoff,
    SubscriptionType,
    TopicDomain,
    TopicMessageId,
    TopicsPattern,
)

from .client import Client, ClientStatistics, open_client
from .consumer import Consumer, ConsumerStatistics
from .consumer_kinds import ExclusiveConsumer, FailoverConsumer, KeySharedConsumer, SharedConsumer
from .errors import InternalError, ResourceBroken, ResourceClosed, StoreFailed
from .failures import DeadLetter, FailurePolicy, NegativeAcknowledge, OnFailure, Raise, RetryLater
from .producer import Producer, ProducerStatistics
from .reader import Reader
from .receipts import Receipt
from .server import EmbeddedBroker, open_broker, serve
from .table_view import TableView

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
    "Reader",
    "TableView",
    "EmbeddedBroker",
    "ClientStatistics",
    "ProducerStatistics",
    "ConsumerStatistics",
    # values
    "Message",
    "MessageId",
    "TopicDomain",
    "TopicMessageId",
    "TopicsPattern",
    "OutgoingMessage",
    "BatchingPolicy",
    "BatchReceivePolicy",
    "CompressionType",
    "DeadLetterPolicy",
    "InitialPosition",
    "KeySharedPolicy",
    "RedeliveryBackoff",
    "SubscriptionType",
    # for `Consumer.run`
    "NegativeAcknowledge",
    "RetryLater",
    "DeadLetter",
    "Raise",
    "OnFailure",
    "FailurePolicy",
    # to be overridden
    "ProducerInterceptor",
    "ConsumerInterceptor",
    # errors
    "PulsarError",
    "ResourceClosed",
    "ResourceBroken",
    "InternalError",
    "StoreFailed",
]
