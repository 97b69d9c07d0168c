"""`OutgoingMessage`: a message that an application sends, its payload and its metadata."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, TypedDict

from ..errors import InvalidMessage
from ..schema import Schema, SchemaType
from ..times import milliseconds_or_same
from ..transaction_id import TransactionId
from .checks import MAX_UINT63

NO_REPLICATION = ("__local__",)
"""For `replicate_to`: the message stays in the cluster it is sent to."""


class NullKey(Enum):
    """The type of `NULL_KEY`."""

    NULL_KEY = "NULL_KEY"


NULL_KEY = NullKey.NULL_KEY
"""For `key`: the null key of a pair whose key is the message's key. A message without a key has none."""


def _clusters(value: object) -> tuple[str, ...]:
    if isinstance(value, (tuple, list)) and all(isinstance(name, str) and name.strip() for name in value):
        return tuple(value)
    raise InvalidMessage(f"replicate_to: a tuple of names of clusters, not {value!r}")


def _schema(value: object) -> Schema[Any]:
    if not isinstance(value, Schema):
        raise InvalidMessage(f"schema: a Schema or None, not {type(value).__name__}")
    if value.adopts or value.info.type is SchemaType.AUTO_CONSUME:
        raise InvalidMessage(f"schema: {value!r:.100} has no definition that a message could have")
    return value


def _number(name: str, number: object, words: str) -> int:
    if type(number) is not int or not 0 <= number <= MAX_UINT63:
        raise InvalidMessage(f"{name}: {words}, not {number!r}")
    return number


def _time(name: str, given: object) -> int:
    """Milliseconds since 1970."""
    milliseconds = milliseconds_or_same(name, given, InvalidMessage)
    return _number(name, milliseconds, f"a datetime or milliseconds since 1970, 0 to {MAX_UINT63}")


class OutgoingFields(TypedDict, total=False):
    """The keywords of `OutgoingMessage` that any payload may have."""

    key: str | bytes | NullKey | None
    properties: Mapping[str, str] | None
    ordering_key: bytes | None
    event_time: int | datetime
    sequence_id: int | None
    deliver_at: int | datetime | None
    replicate_to: Sequence[str]


class OutgoingMessage:
    """A message to send: its payload and its metadata.

    `key`: text for routing, compaction and key-shared dispatch; bytes travel, and are routed, as their Base64
    text, and `has_base64_key` tells them from text. `ordering_key`: bytes that replace the key
    for key-shared dispatch. `event_time`: the application's own time. `sequence_id`: the
    application's own id; it is sent as given and does not move the producer's counter (rule PROD-38).
    `deliver_at`: the time before which the broker does not deliver it to a shared subscription.
    Times are datetimes with a time zone, or milliseconds since 1970; the attributes are milliseconds.
    `replicate_to`: names of the clusters that the broker replicates it to; `NO_REPLICATION` for none but its
    own; empty for the namespace's setting. A batch has one list, so messages with different lists do not
    share a batch. `schema`: the schema of the payload, where it is not the producer's; the producer registers
    it before it sends the message. Messages of different schemas do not share a batch either.
    `transaction`: the open transaction of the message, which is delivered when that is committed; a batch has
    messages of one transaction.
    A `payload` of None is a null value (a tombstone), which compaction takes as "delete this key". A
    bytearray or memoryview is copied at once, so the application may change it afterwards.

    Raises `InvalidMessage` for a field of a wrong type or out of range.
    """

    __slots__ = (
        "deliver_at",
        "event_time",
        "has_base64_key",
        "has_null_key",
        "key",
        "ordering_key",
        "payload",
        "properties",
        "replicate_to",
        "schema",
        "sequence_id",
        "transaction",
    )

    def __init__(
        self,
        payload: bytes | bytearray | memoryview | None,
        *,
        key: str | bytes | NullKey | None = None,
        properties: Mapping[str, str] | None = None,
        ordering_key: bytes | None = None,
        event_time: int | datetime = 0,
        sequence_id: int | None = None,
        deliver_at: int | datetime | None = None,
        replicate_to: Sequence[str] = (),
        schema: Schema[Any] | None = None,
        transaction: TransactionId | None = None,
    ) -> None:
        if payload is not None and type(payload) is not bytes:
            if not isinstance(payload, (bytes, bytearray, memoryview)):
                raise InvalidMessage(f"payload: bytes or None, not {type(payload).__name__}")
            payload = bytes(payload)
        self.has_base64_key = self.has_null_key = False
        if key is not None and not isinstance(key, str):
            if key is NULL_KEY:
                key = None
                self.has_null_key = True
            elif isinstance(key, bytes):
                key = b64encode(key).decode("ascii")
                self.has_base64_key = True
            else:
                raise InvalidMessage(f"key: text, bytes, NULL_KEY or None, not {type(key).__name__}")
        if properties:
            if type(properties) is not dict and not isinstance(properties, Mapping):
                raise InvalidMessage(f"properties: a mapping of text to text, not {properties!r}")
            for name, value in properties.items():
                if not isinstance(name, str) or not isinstance(value, str):
                    raise InvalidMessage(
                        f"properties: names and values are text, not {type(name).__name__} and "
                        f"{type(value).__name__}"
                    )
        if ordering_key is not None and not isinstance(ordering_key, bytes):
            raise InvalidMessage(f"ordering_key: bytes or None, not {type(ordering_key).__name__}")
        if type(event_time) is not int or event_time or sequence_id is not None or deliver_at is not None:
            event_time = _time("event_time", event_time)
            if sequence_id is not None:
                _number("sequence_id", sequence_id, f"a whole number from 0 to {MAX_UINT63}")
            if deliver_at is not None:
                deliver_at = _time("deliver_at", deliver_at)
        self.payload: bytes | None = payload
        self.key: str | None = key
        """As text: Base64 of a key of bytes."""
        self.properties = properties
        self.ordering_key = ordering_key
        self.event_time: int = event_time
        self.sequence_id = sequence_id
        self.deliver_at: int | None = deliver_at
        self.replicate_to = _clusters(replicate_to) if replicate_to else ()
        self.schema = None if schema is None else _schema(schema)
        if transaction is not None and not isinstance(transaction, TransactionId):
            raise InvalidMessage(f"transaction: a TransactionId or None, not {type(transaction).__name__}")
        self.transaction = transaction

    def __repr__(self) -> str:
        size = "null" if self.payload is None else f"{len(self.payload)} bytes"
        return f"<OutgoingMessage {size}, key={self.key!r}>"
