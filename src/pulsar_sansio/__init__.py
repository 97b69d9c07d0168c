"""Apache Pulsar as a program that never waits.

Bytes, commands and the time go in; bytes, news and the next deadline come out. There is no socket, clock,
thread or log here: any program with a socket and a clock can drive `Client`.

    from pulsar_sansio import Client, ClientConfig, ProducerSpec, client_outputs as outputs

    client = Client(clock(), ClientConfig(service_url="pulsar://localhost:6650"), seed=1)
    producer = client.open_producer(clock(), ProducerSpec(topic="demo"))
    while (output := client.next_output()) is not None:
        match output:
            case outputs.Connect(link, address, tls_name): ...  # open it, then client.connected
            case outputs.Transmit(link): ...                # write client.data_to_send(link)
            case outputs.Receipts(producer, first, message_ids): ...

The names below are the public ones; everything else may change.
"""

from typing import TYPE_CHECKING, Any

from .client import outputs as client_outputs
from .client.client import Client
from .client.counters import ArrivalCounters
from .client.delivery.received_entries import Messages, ReceivedBatch, ReceivedSingles
from .client.partitions.partition_producer import PartitionStatistics
from .client.partitions.routing import hash_key
from .client.positions.last_message import LastPosition
from .client.statistics import ConsumerStatistics, ProducerStatistics, SendLatency
from .model.checkpoint import decode_checkpoint, encode_checkpoint
from .model.config import (
    NO_REPLICATION,
    NULL_KEY,
    AutoFailover,
    BatchingPolicy,
    BatchReceivePolicy,
    ClientConfig,
    CompressionType,
    ConsumerSpec,
    ControlledFailover,
    CustomRouter,
    DeadLetterPolicy,
    HashingScheme,
    InitialPosition,
    KeySharedPolicy,
    NullKey,
    OutgoingFields,
    OutgoingMessage,
    ProducerAccessMode,
    ProducerSpec,
    ReaderSpec,
    RedeliveryBackoff,
    RoutingMode,
    SubscriptionType,
    TableViewSpec,
    TopicDomain,
    TopicsPattern,
    nanoseconds_of,
)
from .model.encryption import (
    ConsumerCryptoFailureAction,
    EncryptionKeyInfo,
    ProducerCryptoFailureAction,
)
from .model.encryption_context import EncryptionContext, EncryptionKey
from .model.errors import (
    AuthenticationError,
    AuthorizationError,
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
    ConnectionLost,
    ConsumerAssignError,
    ConsumerBusy,
    ConsumerNotFound,
    CredentialsFailed,
    CryptoError,
    DecompressionFailed,
    FrameError,
    IncompatibleSchema,
    InvalidConfiguration,
    InvalidMessage,
    InvalidServiceUrl,
    InvalidTopicName,
    InvalidTransactionStatus,
    LocalProtocolError,
    MemoryBufferIsFull,
    MessageTooLarge,
    MetadataError,
    NotAllowed,
    NotSupported,
    PersistenceError,
    ProducerBlockedQuotaExceeded,
    ProducerBusy,
    ProducerFenced,
    ProducerQueueIsFull,
    PulsarError,
    RemoteProtocolError,
    SchemaDecodingError,
    SchemaUnavailable,
    SecurityError,
    ServerError,
    ServiceNotReady,
    SubscriptionNotFound,
    TableViewTooLarge,
    TimedOut,
    TlsError,
    TlsHandshakeEnded,
    TlsProtocolMismatch,
    TooManyPartitions,
    TooManyRedirects,
    TooManyRequests,
    TopicNameRefused,
    TopicNotFound,
    TopicTerminated,
    TransactionConflict,
    TransactionCoordinatorNotFound,
    TransactionNotFound,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionRefused,
    TransactionTimedOut,
    UncompressedSizeCorrupted,
    UnknownName,
    UnsupportedVersion,
    WrongArguments,
    broker_error,
)
from .model.interceptors import ConsumerInterceptor, ProducerInterceptor
from .model.message import Message
from .model.message_id import EARLIEST, LATEST, MessageId, TopicMessageId
from .model.secret import Secret
from .model.service_url import Address, ServiceUrl
from .model.times import datetime_of, milliseconds_of
from .model.topic_name import TopicName
from .model.transaction_id import TransactionId
from .model.unknown_names import did_you_mean, unknown_names
from .wire.message_ids import decode_message_id, encode_message_id
from .wire.messages.raw_batch import RawBatch
from .wire.uniform.member_template import MemberTemplate, member_template

if TYPE_CHECKING:
    from .broker import (
        ACTIONS,
        BACKLOG_QUOTA_POLICIES,
        INACTIVE_TOPIC_MODES,
        SCHEMA_STRATEGIES,
        SCHEMA_TYPES,
        SUBSCRIPTION_TYPES,
        AlreadyExists,
        AuthenticationProvider,
        BacklogQuota,
        BasicProvider,
        Broker,
        BrokerAuthentication,
        BrokerConfig,
        CertificateProvider,
        Challenge,
        FaultKind,
        FaultRule,
        Identity,
        InactiveTopics,
        InUse,
        LimitReached,
        MemoryStore,
        MessageRate,
        NotApplicable,
        NotFound,
        Policies,
        StatsOptions,
        Store,
        StoredLedger,
        StoredMessage,
        StoredState,
        StoredTopic,
        StoredTransaction,
        SubscribeRate,
        SubscriptionRates,
        TopicOverview,
        WantedState,
    )
    from .broker import outputs as broker_outputs
    from .broker import records as broker_records

__all__ = [
    # outputs, a namespace for each side, and the records of a store
    "broker_outputs",
    "broker_records",
    "client_outputs",
    # the broker
    "ACTIONS",
    "BACKLOG_QUOTA_POLICIES",
    "INACTIVE_TOPIC_MODES",
    "SCHEMA_STRATEGIES",
    "SCHEMA_TYPES",
    "SUBSCRIPTION_TYPES",
    "AlreadyExists",
    "BacklogQuota",
    "Broker",
    "BrokerConfig",
    "AuthenticationProvider",
    "BasicProvider",
    "BrokerAuthentication",
    "CertificateProvider",
    "Challenge",
    "FaultKind",
    "FaultRule",
    "Identity",
    "InactiveTopics",
    "LimitReached",
    "MemoryStore",
    "MessageRate",
    "NotFound",
    "Policies",
    "StoredMessage",
    "StatsOptions",
    "InUse",
    "Store",
    "StoredLedger",
    "StoredState",
    "StoredTopic",
    "StoredTransaction",
    "TopicOverview",
    "SubscribeRate",
    "SubscriptionRates",
    "WantedState",
    "NotApplicable",
    # the root
    "Client",
    "ArrivalCounters",
    # what people ask for
    "NO_REPLICATION",
    "NULL_KEY",
    "NullKey",
    "AutoFailover",
    "BatchingPolicy",
    "BatchReceivePolicy",
    "ClientConfig",
    "CompressionType",
    "ControlledFailover",
    "ConsumerSpec",
    "ConsumerStatistics",
    "DeadLetterPolicy",
    "CustomRouter",
    "HashingScheme",
    "InitialPosition",
    "KeySharedPolicy",
    "OutgoingFields",
    "OutgoingMessage",
    "ProducerAccessMode",
    "ConsumerInterceptor",
    "ProducerInterceptor",
    "ProducerSpec",
    "ReaderSpec",
    "RedeliveryBackoff",
    "RoutingMode",
    "SubscriptionType",
    "TableViewSpec",
    "TableViewTooLarge",
    "TopicDomain",
    "TopicsPattern",
    "hash_key",
    "nanoseconds_of",
    # what people hold
    "EARLIEST",
    "LATEST",
    "Address",
    "ReceivedBatch",
    "LastPosition",
    "Message",
    "Messages",
    "MessageId",
    "PartitionStatistics",
    "ProducerStatistics",
    "SendLatency",
    "ServiceUrl",
    "ReceivedSingles",
    "TopicMessageId",
    "TopicName",
    "RawBatch",
    "MemberTemplate",
    "member_template",
    "datetime_of",
    "decode_checkpoint",
    "decode_message_id",
    "encode_checkpoint",
    "encode_message_id",
    "milliseconds_of",
    # how other clients call it
    "did_you_mean",
    "unknown_names",
    # what goes wrong
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
    "InvalidConfiguration",
    "InvalidMessage",
    "InvalidServiceUrl",
    "InvalidTopicName",
    "LocalProtocolError",
    "MemoryBufferIsFull",
    "MessageTooLarge",
    "MetadataError",
    "NotAllowed",
    "NotSupported",
    "PersistenceError",
    "ProducerBlockedQuotaExceeded",
    "ProducerBusy",
    "ProducerFenced",
    "ProducerQueueIsFull",
    "PulsarError",
    "RemoteProtocolError",
    "ServerError",
    "ServiceNotReady",
    "SubscriptionNotFound",
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
    "broker_error",
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
    "SchemaDecodingError",
    "SchemaUnavailable",
    "SecurityError",
    "TlsError",
    "TlsHandshakeEnded",
    "TlsProtocolMismatch",
    "Secret",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Names of the broker are loaded when one of them is asked for first: a client needs none."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import broker

        value = globals()[name] = getattr(broker, name.removeprefix("broker_"))
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
