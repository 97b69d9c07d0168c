"""Errors, sorted by the party at fault.

* `LocalProtocolError`: the caller asked for something illegal. It is raised by the call itself, and
  nothing has changed.
* `RemoteProtocolError`: the peer broke the protocol. It never comes out of `receive_data`; it kills
  one link and is reported as that link's cause of death.
* `BrokerError`: a well-formed refusal, with the broker's code.
* `SecurityError`: TLS or the credentials of this client do not fit the peer.
* `TimedOut`, `ConnectionLost`, `ClosedError`: no party is at fault.

Every error has `retryable`: True where the same call may succeed later without a change by the
caller. The retryable codes of the broker are those of the Java client (rules HAND-14, GAP-04).
"""

from enum import IntEnum
from typing import ClassVar


class ServerError(IntEnum):
    """The broker's failure codes (enum ServerError of the wire schema)."""

    UnknownError = 0
    MetadataError = 1
    PersistenceError = 2
    AuthenticationError = 3
    AuthorizationError = 4
    ConsumerBusy = 5
    ServiceNotReady = 6
    ProducerBlockedQuotaExceededError = 7
    ProducerBlockedQuotaExceededException = 8
    ChecksumError = 9
    UnsupportedVersionError = 10
    TopicNotFound = 11
    SubscriptionNotFound = 12
    ConsumerNotFound = 13
    TooManyRequests = 14
    TopicTerminatedError = 15
    ProducerBusy = 16
    InvalidTopicName = 17
    IncompatibleSchema = 18
    ConsumerAssignError = 19
    TransactionCoordinatorNotFound = 20
    InvalidTxnStatus = 21
    NotAllowedError = 22
    TransactionConflict = 23
    TransactionNotFound = 24
    ProducerFenced = 25


class PulsarError(Exception):
    """Base of every error this project raises or reports."""

    retryable: ClassVar[bool] = False


# --- the caller's mistakes -----------------------------------------------------------------------


class LocalProtocolError(PulsarError):
    """The caller asked for something illegal; nothing has changed."""


class InvalidConfiguration(LocalProtocolError, ValueError):
    """An option is wrong, missing or contradicts another; the text names it and what is allowed."""


class WrongArguments(InvalidConfiguration, TypeError):
    """A call has an argument that does not exist, or lacks one; the text names the right one."""


class UnknownName(LocalProtocolError, AttributeError):
    """An attribute that does not exist here; the text names the right one."""


class InvalidServiceUrl(InvalidConfiguration):
    """The service URL cannot be used; the text says which part and what is allowed."""


class InvalidTopicName(InvalidConfiguration):
    """The topic name is malformed (rule TOPIC-01), or the broker says so."""

    code = ServerError.InvalidTopicName


class InvalidMessage(LocalProtocolError, ValueError):
    """The message cannot be sent as it is: a field of a wrong type or out of range."""


class MessageTooLarge(InvalidMessage):
    """The message is larger than the broker accepts (rule PROD-35); the text has both sizes."""


class ProducerQueueIsFull(LocalProtocolError):
    """No room for another unconfirmed message (rule PROD-33). Wait for receipts, then try again."""

    retryable = True


class MemoryBufferIsFull(ProducerQueueIsFull):
    """The payloads of unconfirmed messages fill the client's `memory_limit` (rule PROD-59).

    Wait for receipts, then try again.
    """


class TableViewTooLarge(PulsarError):
    """The keys and values of a table view have outgrown its `max_size`; it has ended."""


class ClosedError(LocalProtocolError):
    """The client, producer or consumer is closed, or can never work again; the text says why."""


class TransactionNotOpen(LocalProtocolError):
    """The transaction is being committed or aborted, or has ended: nothing can join it."""


# --- the peer's mistakes -------------------------------------------------------------------------


class RemoteProtocolError(PulsarError):
    """The peer broke the protocol. Its link is closed; attached producers and consumers reconnect."""

    retryable = True


class FrameError(RemoteProtocolError):
    """A frame is too large, truncated, or not a Pulsar frame at all."""


class ChecksumMismatch(RemoteProtocolError):
    """The CRC32C of a frame with a payload is not that of its bytes: the frame was damaged on its way."""


class DecompressionFailed(RemoteProtocolError):
    """A payload cannot be decompressed, or not to the size it promised."""


class UncompressedSizeCorrupted(DecompressionFailed):
    """A payload promises more bytes than the limit allows; nothing was allocated for it."""


class SchemaDecodingError(PulsarError, ValueError):
    """A payload holds no value of the schema, or was written with a definition that the schema cannot read.

    The message itself is unharmed: its bytes are in `Message.data`, and it can be acknowledged, negatively
    acknowledged or copied to the dead-letter topic.
    """


class SchemaUnavailable(SchemaDecodingError):
    """The definition that a message was written with could not be had: the broker has none of that version,
    or did not answer. The message was delivered even so, with its bytes."""


class TooManyPartitions(RemoteProtocolError):
    """A topic is said to have more partitions than `ClientConfig.max_partitions` allows."""

    retryable = False


class BrokerAddressRefused(RemoteProtocolError):
    """A broker names another broker that this client may not go to: see `ClientConfig.broker_hosts`, and
    a scheme other than the service URL's. Nothing was sent there."""

    retryable = False


# --- TLS and credentials -------------------------------------------------------------------------


class SecurityError(PulsarError):
    """A secure connection cannot be made. The text says what is wrong and what to do.

    Opening a producer or consumer fails at once, unless the error is retryable. One that was connected before
    tries again: certificates and tokens are replaced while it runs.
    """


class TlsError(SecurityError):
    """The TLS handshake failed. Nothing of the Pulsar protocol was sent, credentials least of all."""


class CertificateExpired(TlsError):
    """The validity of the peer's certificate has ended or has not begun."""


class CertificateSelfSigned(TlsError):
    """The peer's certificate is self-signed and not in the trust store."""


class CertificateAuthorityUnknown(TlsError):
    """The authority that issued the peer's certificate is not in the trust store."""


class CertificateNameMismatch(TlsError):
    """The peer's certificate is not for the host that the client connects to."""


class ClientCertificateRefused(TlsError):
    """The peer asks for a client certificate, and got none or one that it does not accept."""


class TlsHandshakeEnded(TlsError):
    """The peer ended the connection during the TLS handshake. A port without TLS does that, and a broker that
    stops does it, too; so the client tries again."""

    retryable = True


class TlsProtocolMismatch(TlsError, FrameError):
    """One side speaks TLS and the other does not, or they have no TLS version in common."""

    retryable = False


class CredentialsFailed(SecurityError):
    """The provider of this client's credentials failed or took too long; its error is the `__cause__`."""


class CryptoError(PulsarError):
    """A message cannot be encrypted or decrypted: a key cannot be read or used, or the payload was changed.

    The text names the key that was wanted, where there is one (rule ERR-12).
    """


# --- refusals by the broker ----------------------------------------------------------------------


_ADVICE_BY_WORDS = (
    # The same codes are used for several things; these words say more than the code.
    ("namespace not found", "create the namespace first: a client does not"),
    ("policies not found", "create the namespace first: a client does not"),
    ("tenant not found", "create the tenant first: a client does not"),
    ("has fewer partitions", "use a partition that exists, or the topic by its own name"),
    ("reached max", "close one of them, or have the limit raised"),
)


def _advice(text: str) -> str:
    """Advice that the broker's words call for, whatever its code; an empty text where there is none."""
    lower = text.lower()
    return next((advice for words, advice in _ADVICE_BY_WORDS if words in lower), "")


class BrokerError(PulsarError):
    """The broker refused. `code` is its reason, `text` its words.

    Use `broker_error(code, text)` to get the class that belongs to a code.
    """

    code: ServerError = ServerError.UnknownError
    retryable = True
    advice: ClassVar[str] = ""

    def __init__(self, text: str, code: ServerError | None = None) -> None:
        if code is not None:
            self.code = code
        self.text = text
        advice = _advice(text) or self.advice
        super().__init__(f"{self.code.name}: {text}" + (f" ({advice})" if advice else ""))

    def __reduce__(self) -> tuple[type["BrokerError"], tuple[str, ServerError]]:
        return type(self), (self.text, self.code)


class MetadataError(BrokerError):
    """The broker could not use its metadata, or those of the consumer are invalid (rule BROKER-03)."""

    code = ServerError.MetadataError


class PersistenceError(BrokerError):
    """The broker could not store the message, or does not know yet whether it is stored (rule BROKER-40)."""

    code = ServerError.PersistenceError


class AuthenticationError(BrokerError):
    """The broker does not accept the credentials."""

    code = ServerError.AuthenticationError
    advice = "give the client the credentials that this broker accepts"


class AuthorizationError(BrokerError):
    """The role of this client may not do that."""

    code = ServerError.AuthorizationError
    retryable = False
    advice = "the role lacks the permission; ask the namespace's administrator"


class ConsumerBusy(BrokerError):
    """The subscription has another consumer that excludes this one (rules SUBT-02, GAP-19)."""

    code = ServerError.ConsumerBusy
    retryable = False
    advice = "close the other consumer, or use another subscription kind or name"


class ServiceNotReady(BrokerError):
    """The broker does not serve the topic now (rules BROKER-05, BROKER-12, BROKER-16)."""

    code = ServerError.ServiceNotReady


class ProducerBlockedQuotaExceeded(BrokerError):
    """The topic's backlog quota is exceeded; `code` tells which of the two policies answered."""

    code = ServerError.ProducerBlockedQuotaExceededError
    advice = "consume the backlog or raise the quota"


class ChecksumRefused(BrokerError):
    """The broker found a wrong checksum in a message it was sent."""

    code = ServerError.ChecksumError
    retryable = False


class UnsupportedVersion(BrokerError):
    """The broker does not serve the protocol version of this client (rule BROKER-14)."""

    code = ServerError.UnsupportedVersionError
    retryable = False


class TopicNotFound(BrokerError):
    """The topic does not exist, and may not be created automatically."""

    code = ServerError.TopicNotFound
    retryable = False
    advice = "create the topic, or allow automatic creation"


class SubscriptionNotFound(BrokerError):
    """The durable subscription does not exist, and may not be created automatically (rule BROKER-08)."""

    code = ServerError.SubscriptionNotFound
    retryable = False
    advice = "create the subscription, or allow automatic creation"


class ConsumerNotFound(BrokerError):
    """The broker does not know the consumer that a command names."""

    code = ServerError.ConsumerNotFound


class TooManyRequests(BrokerError):
    """Too many producers, consumers or lookups on one connection, or too many requests at the broker."""

    code = ServerError.TooManyRequests


class TopicTerminated(BrokerError):
    """The topic was terminated: its last message is stored."""

    code = ServerError.TopicTerminatedError
    retryable = False
    advice = "the topic takes no more messages; what it holds can still be read"


class ProducerBusy(BrokerError):
    """Another producer has this name, or holds the topic for itself (rules PROD-55, BROKER-34)."""

    code = ServerError.ProducerBusy
    retryable = False
    advice = "another producer holds this name or the topic; choose another name or close that one"


class TopicNameRefused(BrokerError):
    """The broker finds the topic name malformed."""

    code = ServerError.InvalidTopicName
    retryable = False


class IncompatibleSchema(BrokerError):
    """The broker refuses the schema (rule ERR-15)."""

    code = ServerError.IncompatibleSchema
    retryable = False


class ConsumerAssignError(BrokerError):
    """The dispatcher refuses the key ranges of a Key_Shared consumer (rule BROKER-24)."""

    code = ServerError.ConsumerAssignError
    retryable = False
    advice = "the key ranges are empty, overlap, or belong to another consumer"


class NotAllowed(BrokerError):
    """The broker does not allow that for this topic or subscription type (rules BROKER-11, BROKER-14)."""

    code = ServerError.NotAllowedError
    retryable = False


class ProducerFenced(BrokerError):
    """Another producer has taken exclusive access, or has it already (rules ERR-14, PROD-55)."""

    code = ServerError.ProducerFenced
    retryable = False
    advice = "another producer took exclusive access; this one can never send again"


class TransactionCoordinatorNotFound(BrokerError):
    """The coordinator of a transaction is not ready, or has moved to another broker."""

    code = ServerError.TransactionCoordinatorNotFound


class TransactionRefused(BrokerError):
    """The base of the refusals of a command in a transaction."""

    retryable = False


class TransactionConflict(TransactionRefused):
    """The message is acknowledged already, or another open transaction acknowledges it."""

    code = ServerError.TransactionConflict
    advice = "abort this transaction: the message belongs to another one, or is done"


class TransactionNotFound(TransactionRefused):
    """The coordinator does not know the transaction: it has ended, or belongs to another role."""

    code = ServerError.TransactionNotFound


class InvalidTransactionStatus(TransactionRefused):
    """The transaction is not in a state that allows the command."""

    code = ServerError.InvalidTxnStatus


_CLASS_BY_CODE: dict[ServerError, type[BrokerError]] = {
    **{kind.code: kind for kind in BrokerError.__subclasses__() if kind is not TransactionRefused},
    **{kind.code: kind for kind in TransactionRefused.__subclasses__()},
    ServerError.ProducerBlockedQuotaExceededException: ProducerBlockedQuotaExceeded,
}


MAX_TEXT = 4096
"""Characters kept of a broker's text. Errors are kept, logged and shown, so their size has a limit."""


def broker_error(code: int, text: str) -> BrokerError:
    """Return the error for a broker's code; a code this version does not know becomes UnknownError."""
    text = text[:MAX_TEXT]
    try:
        known = ServerError(code)
    except ValueError:
        return BrokerError(f"{text} (code {code})")
    return _CLASS_BY_CODE.get(known, BrokerError)(text, known)


# --- no party at fault ---------------------------------------------------------------------------


class TimedOut(PulsarError):
    """A deadline of the protocol passed: an operation's, or a message's send timeout.

    After a send timeout the message may nevertheless have been stored (rule PROD-47).
    """

    retryable = True


class TransactionTimedOut(PulsarError):
    """The coordinator aborted a transaction, because it was open for longer than its timeout."""


class TransactionOutcomeUnknown(PulsarError):
    """The coordinator did not answer the request to commit a transaction: it may be committed or aborted."""


class ConnectionLost(PulsarError):
    """The link ended while something was waiting on it, or could not be opened."""

    retryable = True


class NotSupported(PulsarError):
    """This version of the client cannot do what was asked; the text names it."""


class TooManyRedirects(PulsarError):
    """Brokers sent a lookup from one to the next without an end (GAP-25)."""

    retryable = True
