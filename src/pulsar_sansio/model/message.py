"""`Message`: one received message, and `Entry`: what the messages of one stored entry have in common.

A broker stores and delivers entries; an entry is one message, or a batch of them. The values of the whole
entry (its place, producer, publish time, redelivery count) stand once, in the `Entry`. A `Message` is three
references to that and its own payload, because a consumer makes millions of them. All other values are read
from the entry's headers when the application asks for them (rules MSG-07, MSG-10).

A message is plain to the outside: it pickles to its values, without the entry it came in, and its `repr`
never shows the payload. It knows nothing of how entries are parsed or acknowledged: `Entry.acknowledgement`
belongs to the consumer that made the entry.
"""

from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol

from .encryption_context import EncryptionContext
from .errors import LocalProtocolError, SchemaDecodingError
from .message_id import MessageId
from .times import datetime_of
from .unknown_names import unknown_names

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=bytes)
else:
    from typing import TypeVar

    T = TypeVar("T")

_new_tuple = tuple.__new__


class MessageHeader(Protocol):
    """The fields of a message's own header; attribute names are those of the wire schema."""

    @property
    def properties(self) -> Sequence[tuple[str, str]]: ...
    @property
    def partition_key(self) -> str | None: ...
    @property
    def partition_key_b64_encoded(self) -> bool: ...
    @property
    def null_partition_key(self) -> bool: ...
    @property
    def ordering_key(self) -> bytes | None: ...
    @property
    def event_time(self) -> int: ...
    @property
    def sequence_id(self) -> int | None: ...
    @property
    def null_value(self) -> bool: ...


class EntryHeader(MessageHeader, Protocol):
    """The further fields of an entry's header; in a batch only these are common to its messages."""

    @property
    def producer_name(self) -> str: ...
    @property
    def publish_time(self) -> int: ...
    def encryption(self, decryption_failed: bool, /) -> EncryptionContext | None:
        """Return the encryption of the entry; None for one that was sent unencrypted."""
        ...

    @property
    def schema_version(self) -> bytes | None: ...


class BatchHeaders(Protocol):
    """The headers of a batch's messages, each parsed when it is asked for."""

    def single(self, index: int, /) -> MessageHeader: ...


class ValueDecoder(Protocol):
    """Decodes the messages that were written with one definition. It pickles."""

    def value_of(self, message: "Message[Any]") -> Any:
        """Return the value of a message. Raises `SchemaDecodingError`."""


class _Topic(NamedTuple):
    topic: str
    """Full name, with the partition's suffix if there is one."""
    partition: int
    """Index of the partition, -1 where the topic is not partitioned; it stands in every message id."""


class Source(_Topic):
    """The topic of a consumer's messages, which share one `Source`."""

    __slots__ = ()

    decoder: ValueDecoder | None = None
    """Makes values of the payloads; None where the values are the payloads."""

    def decoding(self, decoder: ValueDecoder) -> "Source":
        """Return the source of messages of this topic that `decoder` decodes."""
        source = DecodingSource(*self)
        source.decoder = decoder
        return source


class DecodingSource(Source):
    """The topic of messages that were written with one definition. It is equal to any `Source` of its
    topic."""


class Entry:
    """One stored entry as it was delivered once. A later delivery of the same entry is another `Entry`."""

    __slots__ = ("acknowledgement", "batch", "header", "position", "redelivery_count", "size", "source")

    first_chunk: tuple[int, int] | None = None
    """Ledger and entry id of the first chunk, where the message came in chunks."""
    last_index: int | None = None
    """The index of its last message in the topic; None where the broker does not say."""
    broker_publish_time: int | None = None
    """The time at which the broker got it, in milliseconds since 1970; None where the broker does not say."""

    undecrypted: bool = False
    """True where the payload is still encrypted (rule CRYPTO-06)."""

    delivery: int = 0
    """Deliveries of this entry that its consumer knows of, before this one."""

    def __init__(
        self,
        source: Source,
        position: tuple[int, int],
        header: EntryHeader,
        redelivery_count: int,
        acknowledgement: Any,
        batch: BatchHeaders | None = None,
        size: int = 0,
    ) -> None:
        self.source = source
        self.position = position
        """Ledger id and entry id."""
        self.header = header
        self.redelivery_count = redelivery_count
        self.acknowledgement = acknowledgement
        """The consumer's own record of which of these messages are acknowledged."""
        self.batch = batch
        """Headers of the batch's messages; None where the entry is one message."""
        self.size = size
        """Number of messages in the batch; 0 where the entry is one message."""


class BrokerStampedEntry(Entry):
    """An entry in front of which the broker has put its own metadata (BrokerEntryMetadata)."""

    __slots__ = ("broker_publish_time", "last_index")

    def stamp(self, broker_publish_time: int | None, last_index: int | None) -> None:
        self.broker_publish_time = broker_publish_time
        self.last_index = last_index


class RedeliveredEntry(BrokerStampedEntry):
    """A batch that was delivered to its consumer before."""

    __slots__ = ("delivery",)


class UndecryptedEntry(BrokerStampedEntry):
    """An entry that its consumer could not decrypt, and delivers as it is."""

    __slots__ = ()

    undecrypted = True


class ChunkedEntry(BrokerStampedEntry):
    """A message that came in chunks, each an entry. Its place, and the broker's metadata, are the last
    chunk's."""

    __slots__ = ("first_chunk",)


ProcessingMaker = Callable[["Message[Any]"], AbstractAsyncContextManager[Any, None]]
"""Makes the block of `Message.processing`; the adapter of an event loop has one."""

OFFICIAL_NAMES = {
    "partition_key": "key",
    "publish_timestamp": "publish_time",
    "event_timestamp": "event_time",
    "topic_name": "topic",
    "has_null_value": "a null value is message.value is None",
}
"""Attributes of the official Python client's messages, and their names in this client."""


@unknown_names(OFFICIAL_NAMES)
class Message(Generic[T]):
    """A received message, with a value of the type `T`.

    `data`: the payload as bytes. `entry` and `batch_index` (-1 where the entry is one message) say which
    message it is; applications use `message_id`.

    Consumers make it and set these three. It has no constructor: calling one would cost a third more than
    all that making a message takes.
    """

    __slots__ = ("_header", "_value", "batch_index", "data", "entry")

    _header: MessageHeader
    _value: T
    data: bytes
    entry: Entry
    batch_index: int

    @staticmethod
    def of(data: bytes, entry: Entry, batch_index: int) -> "Message[Any]":
        """Make a single message, where speed does not matter."""
        message: Message[Any] = Message()
        message.data = data
        message.entry = entry
        message.batch_index = batch_index
        return message

    @property
    def header(self) -> MessageHeader:
        """The message's own header: the single one in a batch, else the entry's. Parsed at first use."""
        try:
            return self._header
        except AttributeError:
            entry = self.entry
            header: MessageHeader = (
                entry.header if entry.batch is None else entry.batch.single(self.batch_index)
            )
            self._header = header
            return header

    @property
    def value(self) -> T | None:
        """The value that the consumer's schema makes of the payload, without a schema the payload; None for a
        null value, which compaction takes as "this key is deleted".

        It is decoded when it is looked at, once. Raises `SchemaDecodingError` for a payload that holds no
        value of the schema; the message is unharmed (rule CONS-39).
        """
        decoder = self.entry.source.decoder
        if decoder is None:
            data = self.data
            # A null value has no payload, so the header need not be parsed for any other message.
            if not data and self.header.null_value:
                return None
            return data  # type: ignore[return-value]
        try:
            return self._value
        except AttributeError:
            if self.entry.undecrypted:
                raise SchemaDecodingError("the payload is still encrypted: see encryption_context") from None
            value: T = decoder.value_of(self)
            self._value = value
            return value

    @property
    def payload(self) -> bytes | None:
        """The bytes of the message; None for a null value, which has none."""
        data = self.data
        return None if not data and self.header.null_value else data

    @property
    def message_id(self) -> MessageId:
        """The place of the message (rule MSG-01)."""
        entry = self.entry
        ledger_id, entry_id = entry.position
        # Past the constructor, which is a call more: many applications ask this of every message.
        return _new_tuple(
            MessageId,
            (ledger_id, entry_id, entry.source.partition, self.batch_index, entry.size, entry.first_chunk),
        )

    @property
    def key(self) -> str | None:
        """The key as text, None where there is none; Base64 text where `has_base64_key`."""
        return self.header.partition_key

    @property
    def has_base64_key(self) -> bool:
        """True where the producer gave the key as bytes, which travel as Base64 text."""
        return self.header.partition_key_b64_encoded

    @property
    def has_null_key(self) -> bool:
        """True where the producer gave a null key (`NULL_KEY`): that of a pair, not the lack of one."""
        return self.header.null_partition_key

    @property
    def key_bytes(self) -> bytes | None:
        """The key's bytes: decoded from Base64, or the UTF-8 of the text; None where there is no key.

        Raises `ValueError` where the producer says Base64 and the key is none.
        """
        header = self.header
        key = header.partition_key
        if key is None:
            return None
        return b64decode(key) if header.partition_key_b64_encoded else key.encode("utf-8", "surrogateescape")

    @property
    def ordering_key(self) -> bytes | None:
        """The bytes that replace the key for key-shared dispatch, None where there are none."""
        return self.header.ordering_key

    @property
    def properties(self) -> dict[str, str]:
        """The application's properties; of two with one name the last counts."""
        return dict(self.header.properties)

    @property
    def event_time(self) -> int:
        """The application's own time, milliseconds since 1970; 0 where it gave none."""
        return self.header.event_time

    @property
    def publish_time(self) -> int:
        """The producer's clock when it sent the message or its batch, milliseconds since 1970."""
        return self.entry.header.publish_time

    @property
    def publish_datetime(self) -> datetime:
        """`publish_time` as a datetime in UTC. Raises `ValueError` beyond the year 9999."""
        return datetime_of(self.publish_time)

    @property
    def event_datetime(self) -> datetime | None:
        """`event_time` as a datetime in UTC; None where the producer gave none. Raises `ValueError` beyond
        the year 9999."""
        event_time = self.event_time
        return datetime_of(event_time) if event_time else None

    @property
    def broker_publish_time(self) -> int | None:
        """The broker's clock when it got the message, in milliseconds since 1970. None where the broker does
        not say: a Pulsar says it with `exposingBrokerEntryMetadataToClientEnabled`."""
        return self.entry.broker_publish_time

    @property
    def broker_publish_datetime(self) -> datetime | None:
        """`broker_publish_time` as a datetime in UTC. Raises `ValueError` beyond the year 9999."""
        time = self.entry.broker_publish_time
        return None if time is None else datetime_of(time)

    @property
    def index(self) -> int | None:
        """The message's number in its topic, or in its partition: the broker counts all messages from 0. None
        where the broker does not say, as with `broker_publish_time`."""
        last = self.entry.last_index
        if last is None or self.batch_index < 0:
            return last
        return last - self.entry.size + 1 + self.batch_index

    @property
    def sequence_id(self) -> int:
        """The producer's number of the message."""
        sequence_id = self.header.sequence_id
        if sequence_id is not None:
            return sequence_id
        # Clients that leave it out of a batch number its messages from the batch's own id.
        return (self.entry.header.sequence_id or 0) + max(self.batch_index, 0)

    @property
    def schema_version(self) -> bytes | None:
        """The version of the topic's schema that the message was written with; None where its producer has no
        schema."""
        return self.entry.header.schema_version or None

    @property
    def producer_name(self) -> str:
        """The name of the producer, unique in its topic."""
        return self.entry.header.producer_name

    @property
    def topic(self) -> str:
        """Full name of the topic the message was received from, a partition's suffix included."""
        return self.entry.source.topic

    @property
    def encryption_context(self) -> EncryptionContext | None:
        """The encryption of the message, also of one that the client has decrypted; None for a message that
        was sent unencrypted."""
        return self.entry.header.encryption(self.entry.undecrypted)

    @property
    def redelivery_count(self) -> int:
        """Number of earlier deliveries of the entry; the broker forgets it when it restarts."""
        return self.entry.redelivery_count

    def processing(self) -> "AbstractAsyncContextManager[Message[T], None]":
        """`async with message.processing():` acknowledges the message when the block ends. It negatively
        acknowledges the message (`negative_acknowledge`) when an exception leaves the block. A cancelled
        block does neither: the broker redelivers the message when the consumer closes or reconnects, or after
        an acknowledgement timeout.

        Raises `LocalProtocolError` for a message whose consumer has no such block: one out of a pickle, or of
        a client that is driven by hand (see `Client.set_processing`).
        """
        deliveries = self.entry.acknowledgement.deliveries
        make: ProcessingMaker | None = None if deliveries is None else deliveries.tracker.processing
        if make is None:
            raise LocalProtocolError(
                f"message {self.message_id} does not know its consumer: it came out of a pickle, or the "
                "client is driven by hand; acknowledge it, or its id, there"
            )
        return make(self)

    def __repr__(self) -> str:
        return f"<Message {self.message_id} of {self.topic}, {len(self.data)} bytes>"

    def __reduce__(self) -> tuple[Any, ...]:
        header = self.header
        values = _Values(
            properties=tuple(header.properties),
            partition_key=header.partition_key,
            partition_key_b64_encoded=header.partition_key_b64_encoded,
            null_partition_key=header.null_partition_key,
            ordering_key=header.ordering_key,
            event_time=header.event_time,
            sequence_id=self.sequence_id,
            null_value=header.null_value,
            producer_name=self.producer_name,
            publish_time=self.publish_time,
            broker_publish_time=self.entry.broker_publish_time,
            last_index=self.entry.last_index,
            context=self.encryption_context,
            schema_version=self.schema_version,
        )
        return _restore, (
            self.data,
            tuple(self.message_id),
            self.topic,
            self.redelivery_count,
            tuple(values),
            self.entry.source.decoder,
        )


class Unacknowledgeable:
    """The record of a message that came out of a pickle: no consumer's; it is acknowledged by its id."""

    __slots__ = ()
    deliveries = None
    in_order = -2
    checkpoint = -2


class _Values(NamedTuple):
    """Both headers of one message as plain values."""

    properties: tuple[tuple[str, str], ...]
    partition_key: str | None
    partition_key_b64_encoded: bool
    null_partition_key: bool
    ordering_key: bytes | None
    event_time: int
    sequence_id: int
    null_value: bool
    producer_name: str
    publish_time: int
    broker_publish_time: int | None
    last_index: int | None
    context: EncryptionContext | None
    schema_version: bytes | None

    def single(self, index: int, /) -> MessageHeader:
        return self

    def encryption(self, decryption_failed: bool, /) -> EncryptionContext | None:
        return self.context


def _restore(
    data: bytes,
    message_id: tuple[int, int, int, int, int, tuple[int, int] | None],
    topic: str,
    redelivery_count: int,
    values: tuple[Any, ...],
    decoder: ValueDecoder | None,
) -> Message[Any]:
    header = _Values(*values)
    ledger_id, entry_id, partition, batch_index, size, first_chunk = message_id
    source = DecodingSource(topic, partition)
    source.decoder = decoder
    entry = (BrokerStampedEntry if first_chunk is None else ChunkedEntry)(
        source,
        (ledger_id, entry_id),
        header,
        redelivery_count,
        Unacknowledgeable(),
        header if batch_index >= 0 else None,
        size,
    )
    entry.stamp(header.broker_publish_time, header.last_index)
    if isinstance(entry, ChunkedEntry):
        entry.first_chunk = first_chunk
    return Message.of(data, entry, batch_index)
