"""`LetterTopics`: dead-letter copies and copies to be reconsumed later.

Both are copies in another topic, with properties that name the original, and both are stored before the
original is acknowledged. A message whose redelivery count exceeds the policy's maximum never reaches the
application. `DeadLetterSorter` removes it on its way to the queue, and it keeps its permits until its copy is
stored. A message whose copy failed is requested again after the delay of a negative acknowledgement, and
keeps its permits until then. So the consumer never holds more messages than fit into its queue.

The broker counts deliveries of entries. Each message of a batch has its own count (`delivery_counts`): a
batch may be delivered in part and copied in part. Each message is acknowledged when its own copy is stored.

An entry with copies under way may be redelivered meanwhile, over a new connection for example; each message
is still copied once. A copy may exist twice when its consumer was closed before the copy was confirmed
(DLQ-07).

All of this is a convention among clients: the properties are those of the Java client, and the broker knows
nothing of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ...model.config import (
    ConsumerSpec,
    DeadLetterPolicy,
    OutgoingMessage,
    ProducerSpec,
    nanoseconds_of,
)
from ...model.config.checks import duration, properties_of_message
from ...model.config.topics import names_of
from ...model.errors import ClosedError, ConnectionLost, InvalidConfiguration, PulsarError
from ...model.message import Message
from ...model.message_id import EntryPosition, MessageId
from ...model.schema import Schema, SchemaInfo
from ...model.topic_name import TopicName
from ..acknowledging.acknowledgements import Acknowledgements
from ..acknowledging.redelivery import NegativeAcknowledgements
from ..delivery.consumer_services import ConsumerServices
from ..delivery.permits import Permits
from ..outputs import LetterFailed, LetterSent, RequestDone, RequestFailed
from ..schemas.decoding_sources import DecodingSources
from .copy_producer import MAX_IN_FLIGHT
from .copy_producers import CopyProducers
from .delivery_counts import DeliveryCounts

_DELAY_TIME = "DELAY_TIME"
_ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
_ORIGIN_MESSAGE_ID_MISSPELT = "ORIGIN_MESSAGE_IDY_TIME"
"""The misspelt property of old clients, which they still read."""
_REAL_SUBSCRIPTION = "REAL_SUBSCRIPTION"
_REAL_TOPIC = "REAL_TOPIC"
_RECONSUMED = "RECONSUMETIMES"

LEAST_WAIT = 1_000_000_000
"""The minimum time before a failed copy is tried again, in nanoseconds, however short the delay of negative
acknowledgements is. No application is involved that could slow the retries down."""

_RANDOM_LETTERS = 5
"""Random letters at the end of a dead-letter producer's name: a producer that is opened anew does not collide
with its predecessor."""


def with_retry_topic(spec: ConsumerSpec) -> ConsumerSpec:
    """Return the spec with the topics that a consumer with `retry` subscribes to: its own, and the retry
    topic (RETRY-02). The names of the retry and dead-letter topics derive from the first topic, and are fixed
    here.

    Raises `InvalidConfiguration` for a queue of size 0, for a retry or dead-letter topic that is one of the
    consumer's topics, and for a pattern, which must describe all topics of the subscription.
    """
    policy = spec.letters
    if not spec.retry or policy is None:
        return spec
    names = names_of(spec.topic)
    if not names:
        raise InvalidConfiguration(
            "retry: only with named topics; a pattern would leave the retry topic without a consumer"
        )
    policy = policy.named(names[0], spec.subscription)
    assert policy.retry_topic is not None
    return replace(spec, topic=(*map(str, names), policy.retry_topic), dead_letter=policy)


def origin(message: Message, topic: str, subscription: str) -> dict[str, str]:
    """Return the properties of a copy: the message's own, and those that name the original. A copy of a copy
    keeps the properties of the first original."""
    message_id = str(message.message_id)
    return {
        _ORIGIN_MESSAGE_ID: message_id,
        _ORIGIN_MESSAGE_ID_MISSPELT: message_id,
        _REAL_SUBSCRIPTION: subscription,
        _REAL_TOPIC: topic,
        **message.properties,
    }


def copy_of(
    message: Message, properties: Mapping[str, str], deliver_at: int | None = None
) -> OutgoingMessage:
    """Copy value, keys and event time unchanged; sort the properties by name, as Java does."""
    copy = OutgoingMessage(
        message.payload,
        properties=dict(sorted(properties.items())),
        ordering_key=message.ordering_key,
        deliver_at=deliver_at,
    )
    copy.event_time = message.event_time
    copy.key = message.key
    copy.has_base64_key = message.has_base64_key
    copy.has_null_key = message.has_null_key
    return copy


def times_reconsumed(properties: Mapping[str, str]) -> int:
    """Return the number of times the message was reconsumed; 0 when its properties contain no such number."""
    text = properties.get(_RECONSUMED, "")
    return int(text) if len(text) < 10 and text.isascii() and text.isdecimal() else 0


class CopyRequest(NamedTuple):
    """A message to be reconsumed later, or to be dead-lettered at once."""

    message: Message
    delay: int | None
    """Milliseconds; None dead-letters the message, whatever its counts are."""
    publish_time: int
    properties: Mapping[str, str]
    """Additional properties for the copy."""
    cumulative: bool
    """True when all messages before it are acknowledged once the copy is stored."""


def reconsume_request(
    message: Message, delay: float, publish_time: int, properties: Mapping[str, str] | None, cumulative: bool
) -> CopyRequest:
    """Return the request of an application. Raises `InvalidConfiguration` for a delay that is not a number of
    seconds from 0, and for properties that are not text."""
    duration("delay", delay)
    properties_of_message("properties", properties or {})
    return CopyRequest(
        message, nanoseconds_of(delay) // 1_000_000, publish_time, properties or {}, cumulative
    )


def dead_letter_request(
    message: Message, publish_time: int, properties: Mapping[str, str] | None
) -> CopyRequest:
    """Return an application's request for a dead letter. Raises `InvalidConfiguration` for properties that
    are not text."""
    properties_of_message("properties", properties or {})
    return CopyRequest(message, None, publish_time, properties or {}, cumulative=False)


class PendingCopy:
    """Messages of an entry on their way to the dead-letter topic."""

    __slots__ = ("acknowledged", "failed", "left", "permits", "redelivery_count", "why")

    def __init__(self, redelivery_count: int) -> None:
        self.redelivery_count = redelivery_count
        self.left: set[int] = set()
        """Indexes of messages whose copies have no outcome yet. When the set is empty, a copy has failed and
        the entry waits to be requested."""
        self.failed = 0
        """Messages whose copies have failed, as bits."""
        self.permits = 0
        """Permits to return when all copies have an outcome: the cost of the entry on the present
        connection."""
        self.why: tuple[MessageId, PulsarError] | None = None
        """The id of the first message whose copy has failed, and the error."""
        self.acknowledged = False
        """True when the application has acknowledged the entry, which it received before with a lower
        count."""


class LetterTopics:
    """The dead-letter and retry copies of one consumer."""

    __slots__ = (
        "_acknowledgements",
        "_pending_copies",
        "_context",
        "_dead",
        "_emit",
        "_failed",
        "_later",
        "_moves",
        "_permits",
        "_requests",
        "_services",
        "_sources",
        "_slot",
        "_subscription",
        "_topic",
        "policy",
        "tries",
    )

    def __init__(
        self,
        services: ConsumerServices,
        policy: DeadLetterPolicy,
        permits: Permits,
        acknowledgements: Acknowledgements,
        sources: DecodingSources | None,
    ) -> None:
        context, client, spec = services.context, services.client, services.spec
        self._topic = services.topic
        self._subscription = spec.subscription
        self.policy = policy.named(self._topic, spec.subscription)
        self._services = services
        self._emit = services.emit
        self._permits = permits
        self._acknowledgements = acknowledgements
        self._sources = sources
        self._context = context
        self._failed = NegativeAcknowledgements(spec)
        """Entries to request again."""
        self._slot = context.deadlines.slot(self._ask_again)
        assert self.policy.topic is not None
        assert self.policy.retry_topic is not None
        dead, later = TopicName.parse(self.policy.topic), TopicName.parse(self.policy.retry_topic)

        def dead_producer(schema: Schema[Any] | None) -> ProducerSpec:
            letters = context.rng.letters(_RANDOM_LETTERS)
            return self._producer(
                dead,
                f"{self._topic}-{spec.subscription}-{services.name}-{letters}-DLQ",
                self.policy.initial_subscription,
                schema,
            )

        self._dead = CopyProducers(client, dead_producer)
        self._later = CopyProducers(client, lambda schema: self._producer(later, None, None, schema))
        self.tries = DeliveryCounts()
        self._pending_copies: dict[EntryPosition, PendingCopy] = {}
        self._requests: set[int] = set()
        """Requests that wait for a copy."""
        self._moves = 0
        """The number of times the subscription was moved: copies begun before the last seek acknowledge
        nothing."""

    def _producer(
        self,
        topic: TopicName,
        name: str | None,
        initial_subscription: str | None,
        schema: Schema[Any] | None,
    ) -> ProducerSpec:
        """Return the spec of a producer of copies. Copies are encrypted only if the policy says so (as in
        Java, where the application may set the options of these producers)."""
        return ProducerSpec(
            str(topic),
            name=name,
            batching=None,
            max_pending_messages=MAX_IN_FLIGHT,
            chunking=topic.persistent,
            initial_subscription=initial_subscription,
            schema=schema,
            encryption_keys=self.policy.encryption_keys,
            crypto_key_reader=self.policy.crypto_key_reader,
        )

    # --- dead letters ----------------------------------------------------------------------------

    def dead_letter(self, messages: Sequence[Message]) -> None:
        """Dead-letter these messages of one entry, which have just arrived beyond the redelivery limit
        (DLQ-03, DLQ-04)."""
        entry = messages[0].entry
        self._services.counters.dead_letters += len(messages)
        pending = self._pending_copies.get(entry.position)
        if pending is None:
            self._pending_copies[entry.position] = pending = PendingCopy(entry.redelivery_count)
            self._acknowledgements.commands.watch(True)
        elif not pending.left:  # its copies have failed, and the entry waits to be requested
            pending.permits += len(messages)
            return
        pending.permits += len(messages)
        publish_time = self._services.client.wall_time()
        new = [message for message in messages if message.batch_index not in pending.left]
        pending.left.update(message.batch_index for message in new)
        for message in new:
            post = partial(self._post, pending, message, publish_time)
            version, definition = message.schema_version, self._definition_of(message)
            if self._sources is None or not version or definition is not None:
                post(definition)
            else:
                self._sources.define(version, post, partial(self._not_defined, post, pending, message))

    def _post(
        self, pending: PendingCopy, message: Message, publish_time: int, definition: SchemaInfo | None
    ) -> None:
        """Send the copy of a dead letter, unless its entry was forgotten meanwhile."""
        if self._pending_copies.get(message.entry.position) is pending:
            settled = partial(self._copied, pending, message)
            self._dead.post(definition, partial(self._dead_letter, message), publish_time, settled)

    def _not_defined(
        self, post: Callable[[None], None], pending: PendingCopy, message: Message, error: PulsarError
    ) -> None:
        """Copy the bytes alone when the broker does not have the definition; try again after a lost
        connection."""
        if isinstance(error, ConnectionLost):
            self._copied(pending, message, error)
        else:
            post(None)

    @property
    def waiting(self) -> int:
        """The number of entries whose copies are not stored yet; they hold permits until then."""
        return len(self._pending_copies)

    def _dead_letter(self, message: Message) -> OutgoingMessage:
        return copy_of(message, origin(message, message.topic, self._subscription))

    def _copied(self, pending: PendingCopy, message: Message, error: PulsarError | None) -> None:
        """Record the outcome of one copy; the last outcome settles the entry (DLQ-05)."""
        position = message.entry.position
        if self._pending_copies.get(position) is not pending:
            return
        pending.left.discard(message.batch_index)
        if error is not None:
            pending.failed |= 1 << max(message.batch_index, 0)
            if pending.why is None:
                pending.why = message.message_id, error
        else:
            assert self.policy.topic is not None
            self._emit(LetterSent(self._services.handle, message.message_id, self.policy.topic))
        if error is None and (pending.left or pending.failed):
            self._acknowledgements.commands.copied(message)
            if self._pending_copies.get(position) is not pending:  # the entry was settled before
                return
        if pending.left:
            return
        if not pending.failed or pending.acknowledged:
            self._finish(pending, message)
            return
        assert self.policy.topic is not None
        assert pending.why is not None
        message_id, why = pending.why
        self._emit(LetterFailed(self._services.handle, message_id, self.policy.topic, why))
        if pending.permits:
            now = self._context.now
            self._failed.add_after_delay(position, pending.redelivery_count, now, LEAST_WAIT)
            self._schedule()
        else:  # the broker redelivers an entry of an earlier connection unasked
            self._forget(position)

    def _finish(self, pending: PendingCopy, last: Message) -> None:
        """Finish an entry: all copies are stored, or the application has acknowledged the entry."""
        self._forget(last.entry.position)
        if not pending.acknowledged:
            self._acknowledgements.commands.copied(last)
        self._permits.give_back(pending.permits)

    def _forget(self, position: EntryPosition) -> PendingCopy:
        """Forget the entry and cancel its request."""
        pending = self._pending_copies.pop(position)
        self._acknowledgements.commands.watch(bool(self._pending_copies))
        return pending

    def acknowledged(self, position: EntryPosition) -> None:
        """Record that the application has acknowledged the entry, so that it is not requested."""
        self.tries.discard(position)
        pending = self._pending_copies.get(position)
        if pending is None:
            return
        if pending.left:
            pending.acknowledged = True
            return
        self._failed.discard(position)
        self._schedule()
        self._permits.give_back(self._forget(position).permits)

    def acknowledged_through(self, last: EntryPosition) -> None:
        """Record that the application has acknowledged this entry and all before it."""
        for position in [position for position in self._pending_copies if position <= last]:
            self.acknowledged(position)

    def _schedule(self) -> None:
        when = self._failed.next()
        if when is None:
            self._slot.clear()
        else:
            self._slot.set(max(when, self._context.now))

    def _ask_again(self) -> None:
        pending_copies = {
            position: self._forget(position) for position in self._failed.take(self._context.now)
        }
        self._acknowledgements.redelivery.not_copied(
            {position: pending.failed for position, pending in pending_copies.items()}
        )
        self._permits.give_back(sum(pending.permits for pending in pending_copies.values()))
        self._schedule()

    # --- later -----------------------------------------------------------------------------------

    def reconsume_later(
        self,
        request: int,
        what: CopyRequest,
        on_outcome: Callable[[PulsarError | None], None],
    ) -> None:
        """Copy the message to the retry topic, which delivers it after its delay. Copy it to the dead-letter
        topic when it has no delay, or was reconsumed as often as the policy allows. When the copy is stored,
        `on_outcome(None)` and `RequestDone` follow, otherwise `on_outcome(error)` and `RequestFailed`
        (RETRY-01, RETRY-03)."""
        box, write = self._dead_letter_of(what) if what.delay is None else self._retry_of(what, what.delay)
        self._requests.add(request)
        dead = what.message.message_id if box is self._dead else None
        settled = partial(self._reconsumed_later, request, on_outcome, self._moves, dead)
        box.post(self._definition_of(what.message), write, what.publish_time, settled)

    def _definition_of(self, message: Message[Any]) -> SchemaInfo | None:
        """Return the definition that a message was written with. Return None for a message without a version,
        for a consumer of bytes, and where the consumer does not know the definition."""
        schema, version = self._services.spec.schema, message.schema_version
        if schema is None or version is None:
            return None
        if self._sources is None:
            return schema.info
        return self._services.client.schemas.find(self._topic, version)

    def _dead_letter_of(self, what: CopyRequest) -> tuple[CopyProducers, Callable[[], OutgoingMessage]]:
        """Give the copy the properties of a message that exceeded the redelivery limit."""
        message = what.message
        properties = {**origin(message, message.topic, self._subscription), **what.properties}
        return self._dead, partial(copy_of, message, properties)

    def _retry_of(self, what: CopyRequest, delay: int) -> tuple[CopyProducers, Callable[[], OutgoingMessage]]:
        message = what.message
        properties = {**origin(message, str(self._topic.base), self._subscription), **what.properties}
        times = times_reconsumed(properties) + 1
        properties[_RECONSUMED] = str(times)
        properties[_DELAY_TIME] = str(delay)
        if times > self.policy.max_redeliver_count:
            return self._dead, partial(copy_of, message, properties)
        deliver_at = what.publish_time + delay if delay else None
        return self._later, partial(copy_of, message, properties, deliver_at)

    def _reconsumed_later(
        self,
        request: int,
        on_outcome: Callable[[PulsarError | None], None],
        moves: int,
        dead: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        """Record the outcome of a copy. `dead`: the message's id, for a copy in the dead-letter topic."""
        if dead is not None and error is None:
            assert self.policy.topic is not None
            self._emit(LetterSent(self._services.handle, dead, self.policy.topic))
        if moves == self._moves:
            on_outcome(error)
        outcome = RequestDone(request, None) if error is None else RequestFailed(request, error)
        if request in self._requests:
            self._requests.discard(request)
            self._emit(outcome)

    def forget(self, request: int) -> None:
        """Drop a request that was cancelled; its copy is still sent."""
        self._requests.discard(request)

    # --- ends ------------------------------------------------------------------------------------

    def detach(self) -> None:
        """Void the permits of the lost connection; an acknowledgement may be lost with it. Copies go on
        (DLQ-08)."""
        self._forget_failed()
        for pending in self._pending_copies.values():
            pending.permits = 0
            pending.acknowledged = False

    def _forget_failed(self) -> None:
        """Drop the entries to request again: the broker redelivers them unasked."""
        self._slot.clear()
        for position in self._failed.positions:
            self._forget(position)
        self._failed.clear()

    def drop(self) -> None:
        """Let copies under way acknowledge no original: the subscription was moved."""
        self._forget_failed()
        self.tries.clear()
        self._pending_copies.clear()
        self._moves += 1
        self._acknowledgements.commands.watch(False)

    def close(self) -> None:
        """Close the producers; the originals of copies under way stay unacknowledged."""
        self.drop()
        self._dead.close()
        self._later.close()
        error = ClosedError(f"the consumer on {self._topic} was closed before the copy was safe")
        for request in sorted(self._requests):
            self._emit(RequestFailed(request, error))
        self._requests.clear()
