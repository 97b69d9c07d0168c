"""Outputs of the client: imperatives to the driver, past events for the application, notices for people.

The client emits an edge output (`Transmit`, `Deliverable`, `Writable`) once per change from no to yes: data
is pulled, decisions are pushed. It emits `Deliverable` again while messages are left. One `Receipts` may
complete a thousand sends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.errors import PulsarError
from ..model.interceptors import ConsumerInterceptor, ProducerInterceptor
from ..model.message_id import MessageId
from ..model.service_url import Address

# --- to the world ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Connect:
    """Open a connection; answer with `connected` or `disconnected`.

    `tls_name`: None for a connection without TLS. Otherwise the server name of the TLS handshake; the peer's
    certificate must be for that name. Answer with `connected` only when the certificate is verified.
    """

    link: int
    address: Address
    tls_name: str | None


@dataclass(slots=True)
class CredentialsWanted:
    """The link needs credentials; answer with `provide_credentials` or `refuse_credentials`.

    `broker`: the broker that the credentials are for. `method`: `ClientConfig.authentication_method`.
    `challenge`: the broker's data of one step of a method
    that has several; None for the first step and when the broker asks for new credentials. Those must be
    fetched anew, because the broker found the last ones expired.
    """

    link: int
    broker: Address
    method: str
    challenge: bytes | None = field(repr=False)


@dataclass(slots=True)
class EncryptionKeyWanted:
    """A producer or consumer needs a key; answer with `provide_encryption_key` or `refuse_encryption_key`.

    `reader`: the `crypto_key_reader` of its spec, which the client only passes on. `key`: the name of the
    key. `metadata`: what the producer of a message wrote of its public key; empty where `private` is False.
    Names and metadata of private keys come from any producer of the topic.
    """

    request: int
    reader: object
    key: str
    metadata: Mapping[str, str]
    private: bool


@dataclass(slots=True)
class Transmit:
    """`data_to_send(link)` has bytes to write."""

    link: int


@dataclass(slots=True)
class Disconnect:
    """Write the rest of `data_to_send(link)`, then close. No later output mentions the link.

    `credentials_refused`: the broker did not accept the credentials that the driver brought for this link. A
    driver that keeps credentials must not bring them again (INV-N10).
    """

    link: int
    reason: str
    credentials_refused: bool = False


# --- to the application ----------------------------------------------------------------------------


@dataclass(slots=True)
class ProducerReady:
    """The producer is attached for the first time.

    `last_sequence_id`: the highest id that the broker knows of this name; -1 for none.
    """

    producer: int
    name: str
    last_sequence_id: int
    topic: str


@dataclass(slots=True)
class ProducerFailed:
    """The producer was never attached and never will be."""

    producer: int
    error: PulsarError


@dataclass(slots=True)
class Receipts:
    """Tickets `first`, `first + 1`, … are confirmed. Each has one message id, made when it is read."""

    producer: int
    first: int
    message_ids: Sequence[MessageId]


@dataclass(slots=True)
class SendFailed:
    """Tickets `first` to `first + count - 1` failed."""

    producer: int
    first: int
    count: int
    error: PulsarError


@dataclass(slots=True)
class Writable:
    """The producer had refused a message for lack of room, and has room again."""

    producer: int


@dataclass(slots=True)
class InterceptorFailed:
    """An interceptor raised `error`; its message was handled without the interceptor."""

    producer: int
    interceptor: ProducerInterceptor
    error: Exception


@dataclass(slots=True)
class ConsumerInterceptorFailed:
    """An interceptor of a consumer raised `error`, and was skipped."""

    consumer: int
    interceptor: ConsumerInterceptor
    error: Exception


@dataclass(slots=True)
class ConsumerReady:
    """The consumer is subscribed for the first time."""

    consumer: int
    topic: str


@dataclass(slots=True)
class ConsumerFailed:
    """The consumer was never subscribed and never will be."""

    consumer: int
    error: PulsarError


@dataclass(slots=True)
class Deliverable:
    """`receive` and `take` have messages: the first have arrived, or some are left after a `receive` or
    `take`."""

    consumer: int


@dataclass(slots=True)
class ActiveChanged:
    """A Failover consumer became the active one, or ceased to be.

    `topic`: the topic or partition, for a consumer of several; each may have another active consumer.
    """

    consumer: int
    active: bool
    topic: str | None = None


@dataclass(slots=True)
class TopicJoined:
    """A consumer of several topics that is ready is now subscribed to another topic: a new partition, or a
    topic that its pattern matches."""

    consumer: int
    topic: str


@dataclass(slots=True)
class TopicLeft:
    """A consumer of several topics is no longer subscribed to one topic; the others go on.

    `error`: the reason; None when the topic does not match the pattern any more.
    """

    consumer: int
    topic: str
    error: PulsarError | None


@dataclass(slots=True)
class EndOfTopic:
    """The topic is terminated, and all its messages are acknowledged (rule CONS-42)."""

    consumer: int


@dataclass(slots=True)
class Undecryptable:
    """An encrypted entry arrived that the consumer cannot decrypt; emitted for the first one of a consumer.

    `error`: why; it names the keys that were wanted. `discarded`: True when such entries are acknowledged
    (failure action DISCARD). Otherwise they are neither delivered nor acknowledged (FAIL, CRYPTO-05), and
    stay in the subscription for a consumer that has the key. `Client.arrival_counters` counts the messages.
    """

    consumer: int
    message_id: MessageId
    error: PulsarError
    discarded: bool


@dataclass(slots=True)
class LetterFailed:
    """A message could not be copied to the dead-letter topic `topic`.

    The message stays unacknowledged. It is redelivered after the negative acknowledgement delay, and copied
    then (rule DLQ-05).
    """

    consumer: int
    message_id: MessageId
    topic: str
    error: PulsarError


@dataclass(slots=True)
class TableViewReady:
    """The table view has everything that its topic had when the view began. `topic`: see `ConsumerReady`."""

    view: int
    topic: str


@dataclass(slots=True)
class TableViewFailed:
    """The table view was never ready and never will be."""

    view: int
    error: PulsarError


@dataclass(slots=True)
class TableChanged:
    """Keys of a table view have changed, in this order: to a value, or to None for a removed key."""

    view: int
    changes: Sequence[tuple[Any, bytes | None]]
    """Keys are text, or of the schema of keys."""


@dataclass(slots=True)
class Detached:
    """A producer or consumer lost its connection; it reconnects by itself."""

    id: int
    cause: PulsarError


@dataclass(slots=True)
class Attached:
    """A producer or consumer is connected again.

    `last_sequence_id`: the highest id that the broker knows of this name, for a producer of one topic or
    partition. A broker that deduplicates drops a whole batch when its lowest id is not above that. An
    unconfirmed batch with ids on both sides of it is therefore lost in part. Such a batch can only come of
    another producer with this name.
    """

    id: int
    last_sequence_id: int | None = field(default=None, compare=False)


@dataclass(slots=True)
class RequestDone:
    """A request is answered. `result`: the value that the command documents, or None."""

    request: int
    result: Any


@dataclass(slots=True)
class RequestFailed:
    """A request failed for good."""

    request: int
    error: PulsarError


@dataclass(slots=True)
class Closed:
    """A producer or consumer that was ready has ended; `error` is None after the application's own close."""

    id: int
    error: PulsarError | None


# --- notices: for people; a driver may drop all of them --------------------------------------------------


@dataclass(slots=True)
class Retrying:
    """A connection was lost, or an attempt to connect failed; the client tries again by itself.

    `id`: the producer, consumer or request. `what`: its description, with the topic. `retry_in`: nanoseconds
    until the next attempt. `lost`: True when a connection was lost, False when an attempt failed.
    """

    id: int
    what: str
    error: PulsarError
    retry_in: int
    lost: bool


@dataclass(slots=True)
class LetterSent:
    """A message of a consumer was copied to the dead-letter topic `topic`; the broker has confirmed the copy.

    `message_id`: the id of the message. Each message of a batch has an output of its own.
    """

    consumer: int
    message_id: MessageId
    topic: str


@dataclass(slots=True)
class PartitionsAdded:
    """The topic of a producer has more partitions: `partitions` in all. Messages go to all of them."""

    producer: int
    partitions: int


@dataclass(slots=True)
class PartitionEnded:
    """A producer can send nothing more to one partition, `topic`, because of `error`; the others go on."""

    producer: int
    topic: str
    error: PulsarError | None


@dataclass(slots=True)
class EncryptionKeysFailed:
    """A producer could not renew its data key, because of `error`, and tries again by itself.

    `retry_in`: nanoseconds. `in_clear`: True when the producer has no data key, and sends messages that are
    not encrypted (`ProducerCryptoFailureAction.SEND`). Otherwise it goes on with its last one.
    """

    producer: int
    error: PulsarError
    retry_in: int
    in_clear: bool


@dataclass(slots=True)
class ConsumerBlocked:
    """The broker delivers nothing more to a consumer, because too many messages are unacknowledged.

    `topic`: the topic or partition. `unacknowledged`: messages, as the broker counts them. The broker reports
    both in its answer to CONSUMER_STATS. A consumer sends that command when no message arrives for long.
    """

    consumer: int
    topic: str
    unacknowledged: int


@dataclass(slots=True)
class ServiceUrlSwitched:
    """The client's `failover` changed the service URL from `old` to `new`; every connection ends.

    `reason`: why, in words.
    """

    old: str
    new: str
    reason: str


@dataclass(slots=True)
class FailoverFailed:
    """The client's `failover` could choose no cluster, because of `error`; the service URL stays.

    No other cluster is available, or the web service did not answer with one that the client may use.
    """

    error: PulsarError


@dataclass(slots=True)
class RequestSent:
    """A request was written. Emitted only while `Client.report_requests` is on, like `RequestAnswered`.

    `command`: the name of its type in the protocol. `request`: its id on the wire. A request over HTTP has
    "GET" and the path, without the query, and 0: it is alone on its link.
    """

    link: int
    request: int
    command: str


@dataclass(slots=True)
class RequestAnswered:
    """A request was answered by the command of this name, or failed with `error`.

    `command` is "ERROR" when the broker refused, and "nothing" when the connection was lost or the operation
    timeout expired. Over HTTP it is "HTTP" and the status. A PRODUCER that waits for exclusive
    access is answered twice.
    """

    link: int
    request: int
    command: str
    error: PulsarError | None


Notice = (
    Retrying
    | LetterSent
    | PartitionsAdded
    | PartitionEnded
    | EncryptionKeysFailed
    | ConsumerBlocked
    | ServiceUrlSwitched
    | FailoverFailed
    | RequestSent
    | RequestAnswered
)

NOTICES = frozenset(
    {
        Retrying,
        LetterSent,
        PartitionsAdded,
        PartitionEnded,
        EncryptionKeysFailed,
        ConsumerBlocked,
        ServiceUrlSwitched,
        FailoverFailed,
        RequestSent,
        RequestAnswered,
    }
)
"""The types of all notices."""

Output = (
    Connect
    | CredentialsWanted
    | EncryptionKeyWanted
    | Transmit
    | Disconnect
    | ProducerReady
    | ProducerFailed
    | Receipts
    | SendFailed
    | Writable
    | InterceptorFailed
    | ConsumerInterceptorFailed
    | ConsumerReady
    | ConsumerFailed
    | Deliverable
    | ActiveChanged
    | TopicJoined
    | TopicLeft
    | EndOfTopic
    | Undecryptable
    | LetterFailed
    | TableViewReady
    | TableViewFailed
    | TableChanged
    | Detached
    | Attached
    | RequestDone
    | RequestFailed
    | Closed
    | Notice
)
