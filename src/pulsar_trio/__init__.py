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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pulsar_sansio import (
    EARLIEST,
    LATEST,
    NO_REPLICATION,
    NULL_KEY,
    AuthenticationError,
    AuthorizationError,
    AutoFailover,
    BatchingPolicy,
    BatchReceivePolicy,
    BrokerAddressRefused,
    BrokerError,
    CertificateAuthorityUnknown,
    CertificateExpired,
    CertificateNameMismatch,
    CertificateSelfSigned,
    ChecksumMismatch,
    ChecksumRefused,
    ClientCertificateRefused,
    ClosedError,
    CompressionType,
    ConnectionLost,
    ConsumerAssignError,
    ConsumerBusy,
    ConsumerCryptoFailureAction,
    ConsumerInterceptor,
    ConsumerNotFound,
    ControlledFailover,
    CredentialsFailed,
    CryptoError,
    DeadLetterPolicy,
    DecompressionFailed,
    EncryptionContext,
    EncryptionKey,
    EncryptionKeyInfo,
    FrameError,
    HashingScheme,
    IncompatibleSchema,
    InitialPosition,
    InvalidConfiguration,
    InvalidMessage,
    InvalidServiceUrl,
    InvalidTopicName,
    InvalidTransactionStatus,
    KeySharedPolicy,
    LocalProtocolError,
    MemoryBufferIsFull,
    Message,
    MessageId,
    Messages,
    MessageTooLarge,
    MetadataError,
    NotAllowed,
    NotSupported,
    NullKey,
    OutgoingMessage,
    PartitionStatistics,
    PersistenceError,
    ProducerAccessMode,
    ProducerBlockedQuotaExceeded,
    ProducerBusy,
    ProducerCryptoFailureAction,
    ProducerFenced,
    ProducerInterceptor,
    ProducerQueueIsFull,
    PulsarError,
    RedeliveryBackoff,
    RemoteProtocolError,
    RoutingMode,
    SchemaDecodingError,
    SchemaUnavailable,
    Secret,
    SecurityError,
    ServerError,
    ServiceNotReady,
    SubscriptionNotFound,
    SubscriptionType,
    TableViewTooLarge,
    TimedOut,
    TlsError,
    TlsHandshakeEnded,
    TlsProtocolMismatch,
    TooManyPartitions,
    TooManyRedirects,
    TooManyRequests,
    TopicDomain,
    TopicMessageId,
    TopicNameRefused,
    TopicNotFound,
    TopicsPattern,
    TopicTerminated,
    TransactionConflict,
    TransactionCoordinatorNotFound,
    TransactionId,
    TransactionNotFound,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionRefused,
    TransactionTimedOut,
    UncompressedSizeCorrupted,
    UnknownName,
    UnsupportedVersion,
    WrongArguments,
    decode_message_id,
    did_you_mean,
    encode_message_id,
)
from pulsar_security import ServerTls, TlsConfig

from . import official_names
from .client.client import Client, ClientStatistics, open_client
from .client.options import Kind
from .client.service_url_source import ServiceUrlProvider
from .client.table_view import TableView
from .client.transaction import Transaction
from .consuming.consumer import Consumer, ConsumerStatistics
from .consuming.consumer_kinds import (
    ExclusiveConsumer,
    FailoverConsumer,
    KeySharedConsumer,
    SharedConsumer,
)
from .consuming.failures import (
    DeadLetter,
    FailurePolicy,
    NegativeAcknowledge,
    OnFailure,
    Raise,
    RetryLater,
)
from .consuming.reader import Reader
from .errors import (
    InternalError,
    NotAwaitable,
    NotEntered,
    NotInTrio,
    ResourceBroken,
    ResourceClosed,
    StoreFailed,
)
from .producing.producer import Producer, ProducerStatistics
from .producing.receipts import Receipt
from .security.authentication import Authentication, Basic, CredentialSteps, MutualTls, Token
from .security.oauth2 import OAuth2

if TYPE_CHECKING:
    from pulsar_sansio import (
        AlreadyExists,
        AuthenticationProvider,
        BasicProvider,
        BrokerAuthentication,
        CertificateProvider,
        Challenge,
        FaultRule,
        Identity,
        InUse,
        MemoryStore,
        NotApplicable,
        NotFound,
        Store,
    )
    from pulsar_store import (
        NotAStore,
        SqliteStore,
        StoreDamaged,
        StoreError,
        StoreFull,
        StoreInUse,
        StoreNotWritable,
        StoreTooNew,
    )

    from .broker.embedded_broker import EmbeddedBroker
    from .broker.server import open_broker, serve
    from .security.provider_file import HtpasswdFile
    from .security.token_provider import TokenProvider

__all__ = [
    "CertificateAuthorityUnknown",
    "CertificateExpired",
    "CertificateNameMismatch",
    "CertificateSelfSigned",
    "ClientCertificateRefused",
    "CredentialsFailed",
    "CryptoError",
    "ConsumerCryptoFailureAction",
    "EncryptionContext",
    "EncryptionKey",
    "EncryptionKeyInfo",
    "ProducerCryptoFailureAction",
    "Secret",
    "SchemaDecodingError",
    "SchemaUnavailable",
    "SecurityError",
    "TlsError",
    "TlsHandshakeEnded",
    "TlsProtocolMismatch",
    "Authentication",
    "Basic",
    "CredentialSteps",
    "MutualTls",
    "OAuth2",
    "Token",
    "ServerTls",
    "AuthenticationProvider",
    "BasicProvider",
    "BrokerAuthentication",
    "CertificateProvider",
    "Challenge",
    "FaultRule",
    "Identity",
    "TokenProvider",
    "HtpasswdFile",
    "TlsConfig",
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
    "Transaction",
    "EmbeddedBroker",
    "ClientStatistics",
    "ProducerStatistics",
    "ConsumerStatistics",
    # values
    "Kind",
    "ServiceUrlProvider",
    "Message",
    "MessageId",
    "TopicDomain",
    "TopicMessageId",
    "TopicsPattern",
    "OutgoingMessage",
    "AutoFailover",
    "BatchingPolicy",
    "ControlledFailover",
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
    "EARLIEST",
    "LATEST",
    "NO_REPLICATION",
    "NULL_KEY",
    "NullKey",
    "HashingScheme",
    "ProducerAccessMode",
    "RoutingMode",
    "PartitionStatistics",
    "MemoryStore",
    "SqliteStore",
    "Store",
    "encode_message_id",
    "decode_message_id",
    "Messages",
    # to be overridden
    "ProducerInterceptor",
    "ConsumerInterceptor",
    # errors
    "AlreadyExists",
    "AuthenticationError",
    "AuthorizationError",
    "BrokerAddressRefused",
    "BrokerError",
    "ChecksumMismatch",
    "ChecksumRefused",
    "ClosedError",
    "ConnectionLost",
    "ConsumerAssignError",
    "ConsumerBusy",
    "ConsumerNotFound",
    "DecompressionFailed",
    "FrameError",
    "IncompatibleSchema",
    "InternalError",
    "InvalidConfiguration",
    "InvalidMessage",
    "InvalidServiceUrl",
    "InvalidTopicName",
    "LocalProtocolError",
    "MemoryBufferIsFull",
    "MessageTooLarge",
    "MetadataError",
    "NotFound",
    "NotAllowed",
    "NotAwaitable",
    "NotEntered",
    "NotInTrio",
    "NotSupported",
    "PersistenceError",
    "ProducerBlockedQuotaExceeded",
    "ProducerBusy",
    "ProducerFenced",
    "ProducerQueueIsFull",
    "PulsarError",
    "RemoteProtocolError",
    "ResourceBroken",
    "ResourceClosed",
    "ServerError",
    "ServiceNotReady",
    "InUse",
    "NotAStore",
    "StoreDamaged",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreInUse",
    "StoreNotWritable",
    "StoreTooNew",
    "SubscriptionNotFound",
    "TableViewTooLarge",
    "TimedOut",
    "TooManyPartitions",
    "TooManyRedirects",
    "TooManyRequests",
    "TopicNameRefused",
    "TopicNotFound",
    "TopicTerminated",
    "InvalidTransactionStatus",
    "TransactionConflict",
    "TransactionCoordinatorNotFound",
    "TransactionNotFound",
    "TransactionNotOpen",
    "TransactionOutcomeUnknown",
    "TransactionRefused",
    "TransactionTimedOut",
    "TransactionId",
    "UncompressedSizeCorrupted",
    "UnknownName",
    "UnsupportedVersion",
    "WrongArguments",
    "NotApplicable",
]


if not TYPE_CHECKING:
    _BROKER = {
        "EmbeddedBroker": ".broker.embedded_broker",
        "HtpasswdFile": ".security.provider_file",
        "TokenProvider": ".security.token_provider",
        "NotAStore": "pulsar_store",
        "SqliteStore": "pulsar_store",
        "StoreDamaged": "pulsar_store",
        "StoreError": "pulsar_store",
        "StoreFull": "pulsar_store",
        "StoreInUse": "pulsar_store",
        "StoreNotWritable": "pulsar_store",
        "StoreTooNew": "pulsar_store",
        "open_broker": ".broker.server",
        "serve": ".broker.server",
    }
    """Names of the broker's adapter and of the store on disk, by module."""

    def __getattr__(name: str) -> Any:
        """Names of the broker are loaded when one of them is asked for first: a client needs none. Names of
        the official client raise an error with ours."""
        if name in __all__:
            module = import_module(_BROKER.get(name, "pulsar_sansio"), __name__)
            value = globals()[name] = getattr(module, name)
            return value
        hint = official_names.MODULE.get(name)
        if hint is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise UnknownName(f"pulsar_trio has no {name!r}; {did_you_mean(hint)}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
