"""`ReaderSpec`: the options of a reader; and `ReadingSpec`, the consumer that it is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..encryption import ConsumerCryptoFailureAction
from ..errors import InvalidConfiguration
from ..message_id import EARLIEST, LATEST, MessageId, is_message_id
from ..schema import Schema
from .checks import MAX_UINT63, duration, instance, message_id, optional_text
from .consumer import ConsumerSpec, SubscriptionType
from .key_shared import check_ranges
from .topics import names_of

Start = MessageId | int | Mapping[str, MessageId]
"""The place at which a reader begins: behind a message; or with the first message published at a time
(milliseconds since 1970) or later; or behind one message for each topic, by its full name. A topic that is
not named is read from its earliest message."""


@dataclass(frozen=True, slots=True)
class ReadingSpec(ConsumerSpec):
    """A consumer that reads: its subscription ends with it, and it acknowledges by itself the messages that
    the application receives. `positions`: for each topic by its full name the message behind which it begins.
    `start_time`: instead, the first message published then (milliseconds since 1970) or later. For the other
    options see `ReaderSpec`."""

    positions: Mapping[str, MessageId] = field(default_factory=dict)
    start_time: int | None = None
    key_hash_ranges: tuple[tuple[int, int], ...] | None = None
    raw_batches: bool = False


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """Options of a reader (rules READER-01, READER-02).

    `start`: see `Start`; `EARLIEST` and `LATEST` are the ends of the topic. `start_inclusive`: begin with the
    message of `start` itself; at `LATEST` that is the last one there is. `start_rollback`: instead of
    `start`, with the first message published since so long ago: seconds, the broker counts whole ones.
    `name`: of the reader, shown by the broker; None makes a random one.
    `subscription`: its name; None makes one up that begins with `subscription_prefix`.
    `read_compacted`: get only the last message of each key from the compacted part of the topic.
    `key_hash_ranges`: only the messages whose key has a hash in one of these ranges, as in
    `KeySharedPolicy.ranges`; several readers share a topic so. The broker looks at whole batches: producers
    have to batch by key (`BatchingPolicy.by_key`).
    `raw_batches`: the application gets each batch in one piece. This serves an application that takes batches
    apart better by itself, or does not need all of a batch. The items of `Messages` are `ReceivedBatch`s
    whose `entry.batch` is a `RawBatch`. Messages that the compactor has taken out of a batch are still in
    it. Batches and messages that inflate to more than 32 times their size on the wire stay compressed until
    the application reads them. A waiting one so takes at most 32 times its size on the wire. Reading a
    malformed one raises `FrameError` or `DecompressionFailed`.

    The other options are those of `ConsumerSpec`. The reader reads new partitions, added while it reads, from
    their first message, wherever it began.
    """

    topic: str | tuple[str, ...]
    start: Start | None = None
    start_inclusive: bool = False
    start_rollback: float = 0.0
    name: str | None = None
    subscription: str | None = None
    subscription_prefix: str = "reader"
    read_compacted: bool = False
    receiver_queue_size: int = 1000
    properties: Mapping[str, str] = field(default_factory=dict)
    max_pending_chunked_messages: int = 10
    max_chunked_message_size: int = 128 * 1024 * 1024
    incomplete_chunked_message_timeout: float = 60.0
    partitions_update_interval: float | None = 60.0
    key_hash_ranges: tuple[tuple[int, int], ...] | None = None
    raw_batches: bool = False
    schema: Schema[Any] | None = None
    crypto_key_reader: object = None
    crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL

    def __post_init__(self) -> None:
        if self.key_hash_ranges is not None:
            check_ranges("key_hash_ranges", self.key_hash_ranges)
        instance("raw_batches", self.raw_batches, bool, "True or False")
        optional_text("subscription", self.subscription)
        instance("subscription_prefix", self.subscription_prefix, str, "text")
        start = self.start
        duration("start_rollback", self.start_rollback)
        if (start is None) is (not self.start_rollback):
            raise InvalidConfiguration("start, start_rollback: one of them, and not both")
        if isinstance(start, bool) or not isinstance(start, MessageId | int | Mapping | None):
            raise InvalidConfiguration(f"start: a message id, a time or a checkpoint, not {start!r}")
        if isinstance(start, int) and not 0 <= start <= MAX_UINT63:
            raise InvalidConfiguration(f"start: milliseconds since 1970, not {start}")
        if isinstance(start, Mapping) and not all(map(is_message_id, start.values())):
            raise InvalidConfiguration("start: a mapping of names of topics to message ids")
        if isinstance(start, MessageId):
            message_id("start", start)
            self._check_whose(start)
        if self.start_inclusive and not isinstance(start, MessageId):
            raise InvalidConfiguration("start_inclusive: only with a message id to start at")
        self.reading("name")

    def _check_whose(self, start: MessageId) -> None:
        """Refuse an id for several topics or another partition: an id is of one topic, or of one
        partition."""
        names = names_of(self.topic)
        if start in (EARLIEST, LATEST) or (len(names) == 1 and start.partition in (-1, names[0].partition)):
            return
        raise InvalidConfiguration(
            f"start: {start} is of one topic or partition; for several, a mapping of names to message ids"
        )

    def reading(self, made_up: str) -> ReadingSpec:
        """Return the spec of the reader's consumer; `made_up`: letters for the name of its subscription.
        Raises `InvalidConfiguration`."""
        start = self.start
        position = start if isinstance(start, MessageId) else EARLIEST
        return ReadingSpec(
            self.topic,
            self.subscription or f"{self.subscription_prefix}-{made_up}",
            SubscriptionType.EXCLUSIVE,
            consumer_name=self.name,
            receiver_queue_size=self.receiver_queue_size,
            acknowledgement_group_time=0.0,
            durable=False,
            start_message_id=None if self.start_rollback else position,
            start_message_id_inclusive=self.start_inclusive,
            start_message_rollback=self.start_rollback,
            read_compacted=self.read_compacted,
            properties=self.properties,
            max_pending_chunked_messages=self.max_pending_chunked_messages,
            max_chunked_message_size=self.max_chunked_message_size,
            incomplete_chunked_message_timeout=self.incomplete_chunked_message_timeout,
            partitions_update_interval=self.partitions_update_interval,
            positions=dict(start) if isinstance(start, Mapping) else {},
            start_time=start if isinstance(start, int) else None,
            key_hash_ranges=self.key_hash_ranges,
            raw_batches=self.raw_batches,
            schema=self.schema,
            crypto_key_reader=self.crypto_key_reader,
            crypto_failure_action=self.crypto_failure_action,
        )
