"""Outputs of the client: imperatives to the world, past events to the application, notices for people.

Edge outputs (`Transmit`, `Deliverable`, `Writable`) come once per change from no to yes: data is pulled,
decisions are pushed. `Deliverable` comes again, too, while messages are left. One `Receipts` may complete a
thousand sends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.errors import PulsarError
from ..model.interceptors import ConsumerInterceptor, ProducerInterceptor
from ..model.message_id import MessageId
from ..model.service_url import Address

# --- to the world ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Connect:
    """Open a connection; answer with `connected` or `disconnected`."""

    link: int
    address: Address
    tls: bool


@dataclass(slots=True)
class Transmit:
    """`data_to_send(link)` has bytes to write."""

    link: int


@dataclass(slots=True)
class Disconnect:
    """Write what is left of `data_to_send(link)`, then close. The last output to mention the link."""

    link: int
    reason: str


# --- to the application ----------------------------------------------------------------------------


@dataclass(slots=True)
class ProducerReady:
    """The producer is attached for the first time.

    `last_sequence_id`: the highest id the broker knows of this name, -1 where it knows none.
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
    """Tickets `first`, `first + 1`, … are confirmed; one message id for each, made when looked at."""

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
    """The producer's window was full and has room again."""

    producer: int


@dataclass(slots=True)
class InterceptorFailed:
    """An interceptor raised `error`; the message it was about went on without it."""

    producer: int
    interceptor: ProducerInterceptor
    error: Exception


@dataclass(slots=True)
class ConsumerInterceptorFailed:
    """An interceptor of a consumer raised `error`, and was passed over."""

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
    """`receive` and `take` have messages: some have arrived where there were none, or some are left after a
    `receive` or `take`."""

    consumer: int


@dataclass(slots=True)
class ActiveChanged:
    """A Failover consumer became the active one, or ceased to be.

    `topic`: which topic or partition it is about, where the consumer has several; there another consumer may
    be the active one for each.
    """

    consumer: int
    active: bool
    topic: str | None = None


@dataclass(slots=True)
class TopicJoined:
    """A consumer of several topics, ready already, is now subscribed to this one too: a new partition, or a
    topic that a pattern has found."""

    consumer: int
    topic: str


@dataclass(slots=True)
class TopicLeft:
    """A consumer of several topics is not subscribed to this one any more; the others go on.

    `error`: why not, where nobody wanted that.
    """

    consumer: int
    topic: str
    error: PulsarError | None


@dataclass(slots=True)
class EndOfTopic:
    """The topic is terminated and everything in it is acknowledged (rule CONS-42)."""

    consumer: int


@dataclass(slots=True)
class Undecryptable:
    """An encrypted entry came, and there is no key to read it with; said for the first one of a consumer.

    Neither it nor any like it is delivered or acknowledged (failure action FAIL, CRYPTO-05): they stay in the
    subscription, for a consumer that has the key. `keys`: the names of those it was encrypted with.
    `Client.arrival_counters` counts the messages.
    """

    consumer: int
    message_id: MessageId
    keys: Sequence[str]


@dataclass(slots=True)
class LetterFailed:
    """A message could not be copied to the dead-letter topic `topic`. It stays unacknowledged and comes again
    after the negative acknowledgement delay, when that is tried anew (rule DLQ-05)."""

    consumer: int
    message_id: MessageId
    topic: str
    error: PulsarError


@dataclass(slots=True)
class TableViewReady:
    """The table view holds everything that was in its topic when it began. `topic`: as of `ConsumerReady`."""

    view: int
    topic: str


@dataclass(slots=True)
class TableViewFailed:
    """The table view was never ready and never will be."""

    view: int
    error: PulsarError


@dataclass(slots=True)
class TableChanged:
    """Keys of a table view have changed, in this order: to a value, or None where the key is gone."""

    view: int
    changes: Sequence[tuple[str, bytes | None]]


@dataclass(slots=True)
class Detached:
    """A producer or consumer lost its connection; it reconnects by itself."""

    id: int
    cause: PulsarError


@dataclass(slots=True)
class Attached:
    """A producer or consumer is connected again.

    `last_sequence_id`: what a producer of one topic or partition was told, as in `ProducerReady`. A broker
    that deduplicates drops a batch as a whole whose lowest id is not above it, so an unconfirmed batch with
    ids on both sides of it, which can only come of another producer of the same name, is lost in part.
    """

    id: int
    last_sequence_id: int | None = field(default=None, compare=False)


@dataclass(slots=True)
class RequestDone:
    """A request is answered. `result` is what its command says, else None."""

    request: int
    result: Any


@dataclass(slots=True)
class RequestFailed:
    """A request failed for good."""

    request: int
    error: PulsarError


@dataclass(slots=True)
class Closed:
    """A producer or consumer that was ready is gone; `error` is None after the user's own close."""

    id: int
    error: PulsarError | None


# --- notices: for people who watch; a driver may drop all of them ---------------------------------------


@dataclass(slots=True)
class Retrying:
    """A connection was lost, or an attempt to get one failed; the next attempt follows by itself.

    `id`: the producer, the consumer or the request. `what`: the same in words, with the topic. `retry_in`:
    nanoseconds until the next attempt. `lost`: it was attached until now; otherwise an attempt has failed.
    """

    id: int
    what: str
    error: PulsarError
    retry_in: int
    lost: bool


@dataclass(slots=True)
class LetterSent:
    """A message of a consumer was copied to the dead-letter topic `topic`; the broker has confirmed the copy.

    `message_id`: of the message; of each of several in a batch by itself.
    """

    consumer: int
    message_id: MessageId
    topic: str


@dataclass(slots=True)
class PartitionsAdded:
    """The topic of a producer has more partitions than before: `partitions` in all. Messages go to all."""

    producer: int
    partitions: int


@dataclass(slots=True)
class PartitionEnded:
    """A producer can send nothing more to one partition, `topic`, because of `error`; the others go on."""

    producer: int
    topic: str
    error: PulsarError | None


@dataclass(slots=True)
class ConsumerBlocked:
    """The broker delivers nothing more to a consumer, because too many messages are unacknowledged.

    `topic`: the topic or partition. `unacknowledged`: messages, as the broker counts them. The broker said so
    in its answer to CONSUMER_STATS, which a consumer asks for when it waits in vain.
    """

    consumer: int
    topic: str
    unacknowledged: int


@dataclass(slots=True)
class RequestSent:
    """A request was written. Said only while `Client.report_requests` is on, as is `RequestAnswered`.

    `command`: the name of its type in the protocol. `request`: its id on the wire.
    """

    link: int
    request: int
    command: str


@dataclass(slots=True)
class RequestAnswered:
    """A request was answered by the command of this name, or failed with `error`.

    `command` is "ERROR" where the broker refused, and "nothing" where the connection or the time ran out.
    """

    link: int
    request: int
    command: str
    error: PulsarError | None


Notice = (
    Retrying | LetterSent | PartitionsAdded | PartitionEnded | ConsumerBlocked | RequestSent | RequestAnswered
)

NOTICES = frozenset(
    {Retrying, LetterSent, PartitionsAdded, PartitionEnded, ConsumerBlocked, RequestSent, RequestAnswered}
)
"""The types of all notices."""

Output = (
    Connect
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
