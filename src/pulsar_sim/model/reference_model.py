"""The reference model: requests and answers of applications, and what the log must therefore hold.

Owns the truth of a world: every message submitted, every position of every topic's log, the deliveries and
acknowledgements of each subscription (`records`). Applications' calls and frames on the wires feed it, never
the inside of a machine, and it shares no code with either. `client_frames` and `broker_frames` feed it from
the two ends of the wires.

Invariants are named as in the catalogue of the simulator's guide: P of producers, C of consumers, N of
connections.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from pulsar_sansio.model.config import RoutingMode
from pulsar_sansio.model.errors import (
    ClosedError,
    ConnectionLost,
    NotAllowed,
    ProducerFenced,
    PulsarError,
    TimedOut,
    TopicTerminated,
)
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId

from ..engine.failures import ViolationError
from ..engine.profile import AUDIT, FAR_LEDGERS
from .delivered_fields import check_fields
from .multi_topics_subscriptions import GroupRecord
from .partitioned_topics import PartitionedTopic, hash_of
from .records.consumer_record import ConsumerRecord
from .records.entry import StoredEntry
from .records.message_position import BEFORE_ALL, MessagePosition, Position
from .records.producer_record import ProducerRecord
from .records.sent import Sent, identities
from .records.topic_record import TopicRecord
from .retry_requests import RetryRequests
from .schemas.topic_schemas import TopicSchemas

DELAY_TICK = 1000 + 1
"""Milliseconds by which a delayed message may be delivered early: brokers count in seconds, and round the
time."""

EXCUSES = (TimedOut, ConnectionLost, ClosedError)
"""Errors with which a send may fail although the message is sound: its outcome is unknown."""


class ReferenceModel:
    """All records of a world, and the checks of answers to applications."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicRecord] = {}
        """All topics, including partitions."""
        self.partitioned: dict[str, PartitionedTopic] = {}
        self.same: dict[tuple[int, int], list[Sent]] = {}
        """The submissions of each message, by application and the sequence id that it chose."""
        self.epochs: dict[tuple[str, int], ProducerRecord] = {}
        """The producer with exclusive access, by topic and epoch."""
        self.receipts_lost = False
        """Receipts were lost: a client takes the receipt of one chunk for that of the chunk before."""
        self.refuses_sends = False
        """A broker has refused a message as not allowed."""
        self.by_identity: dict[bytes | str, Sent] = {}
        self.producers: dict[str, ProducerRecord] = {}
        self.consumers: dict[str, ConsumerRecord] = {}
        self.nonpersistent: dict[str, TopicRecord] = {}
        """Non-persistent topics."""
        self.groups: dict[str, GroupRecord] = {}
        """Consumers of several topics, by name."""
        self.copy_topics: set[str] = set()
        """Dead-letter and retry topics."""
        self.retry_topics: dict[str, None] = {}
        """Retry topics alone."""
        self.retry_requests = RetryRequests()
        """Messages that applications reconsume later."""
        self.schemas: TopicSchemas | None = None
        """The schemas of producers and consumers; None where all messages are bytes."""
        self.confirmed = 0
        self.failed = 0
        self.delivered = 0
        self.acknowledged = 0

    # --- producers ---

    def submit(self, sent: Sent, ticket: int, now: int) -> None:
        """The client accepted a message."""
        record = sent.producer
        expected = record.next_ticket
        if expected is not None and ticket != expected:
            raise ViolationError("INV-P1", f"{record.tag}: ticket {ticket} where {expected} was next")
        record.next_ticket = ticket + 1
        sent.ticket = ticket
        sent.sent_at = now
        record.pending[ticket] = sent
        record.sent.append(sent)
        if isinstance(record.topic, TopicRecord):
            sent.topic = record.topic
        elif sent.key is None:
            sent.turn = record.turns
            record.turns += 1
        over = len(record.pending) > record.spec.max_pending_messages and record.late_pending > record.window
        if over and not record.topic.ended:  # a message to an ended partition fails at once
            raise ViolationError(
                "INV-P7",
                f"{record.tag}: {len(record.pending)} messages pending, the window is {record.window}",
            )

    def routed(self, sent: Sent, topic: TopicRecord) -> None:
        """A message is written to a partition: check the routing (ROUTE-02, ROUTE-04, ROUTE-05, ROUTE-06)."""
        record = sent.producer
        whole = record.topic
        if sent.topic is not None or isinstance(whole, TopicRecord):
            raise ViolationError("PART-01", f"{sent} is written to {topic.name}, its place is elsewhere")
        sent.topic = topic
        index = whole.index_of(topic)
        routing = record.spec.routing
        counts = whole.believed  # any of them: a batch may have been begun before the topic grew
        if not isinstance(routing, RoutingMode):
            self._right(sent, index, counts, len(sent.payload or b""), "ROUTE-06")
        elif sent.key is not None:
            self._right(sent, index, counts, hash_of(record.spec.hashing, sent.key), "ROUTE-02")
        elif routing is RoutingMode.SINGLE_PARTITION:
            if record.start is None:
                record.start = index
            if record.start != index:
                raise ViolationError("ROUTE-05", f"{sent} goes to partition {index}, not {record.start}")
        elif record.spec.batching is None and len(whole.believed) == 1:
            if record.start is None:
                record.start = (index - sent.turn) % whole.count
            if (record.start + sent.turn) % whole.count != index:
                raise ViolationError("ROUTE-04", f"{sent} goes to partition {index}, out of turn")

    @staticmethod
    def _right(sent: Sent, index: int, counts: Sequence[int], number: int, rule: str) -> None:
        if not any(number % count == index for count in counts):
            raise ViolationError(
                rule, f"{sent} goes to partition {index}, not {[number % count for count in counts]}"
            )

    def announce(self, sent: Sent) -> None:
        """A message is about to be passed to the client: it may be seen on any wire from now on."""
        for identity in identities(sent):
            self.by_identity[identity] = sent

    def withdraw(self, sent: Sent) -> None:
        """The client did not accept the message."""
        for identity in identities(sent):
            self.by_identity.pop(identity, None)

    def _settle(self, record: ProducerRecord, ticket: int, outcome: str) -> Sent:
        sent = record.pending.pop(ticket, None)
        if sent is None:
            known = record.next_ticket is not None and ticket < record.next_ticket
            what = "a second time" if known else "without ever having been sent"
            raise ViolationError("INV-P1", f"{record.tag}: ticket {ticket} is {outcome} {what}")
        sent.outcome = outcome
        return sent

    def receipts(self, record: ProducerRecord, first: int, message_ids: Sequence[MessageId]) -> None:
        """INV-P1, INV-P2, INV-P9: the client reports that tickets from `first` on are stored."""
        if not len(message_ids):
            raise ViolationError("INV-P1", f"{record.tag}: receipts for nothing")
        for ticket, message_id in enumerate(message_ids, first):
            sent = self._settle(record, ticket, "confirmed")
            self.confirmed += 1
            ledger, entry_id, partition, index = message_id[:4]
            if ledger == -1 and entry_id == -1:
                if not record.topic.deduplication:
                    raise ViolationError("INV-P9", f"{sent}: no message id, and no deduplication")
                continue
            message_position = (ledger, entry_id, max(index, 0))
            if sent.topic is None or not self._holds(sent.topic, message_id, sent):
                raise ViolationError(
                    "INV-P2", f"{sent}: confirmed as {message_id}, where the log does not hold it"
                )
            whole = record.topic
            if partition != (-1 if isinstance(whole, TopicRecord) else whole.index_of(sent.topic)):
                raise ViolationError("INV-P9", f"{sent}: id {message_id} names another partition")
            lane = record.lane(sent.topic)
            if message_position <= lane.last_position and not record.by_key:
                raise ViolationError("INV-P9", f"{sent}: id {message_id} is not above {lane.last_position}")
            lane.last_position = message_position

    def _holds(self, topic: TopicRecord, message_id: MessageId, sent: Sent) -> bool:
        """True when the log has the message under that id."""
        ledger, entry_id, _, index, size = message_id[:5]
        entry = topic.log.get((ledger, entry_id))
        if entry is None:
            return False
        if entry.chunk is not None:  # when the message was resent, it may be complete without this chunk
            first = message_id.first_chunk
            return (
                entry.source is sent
                and entry.chunk.number == entry.chunk.total - 1
                and first is not None
                and (first == (-1, -1) or self.receipts_lost or (first, 0) in sent.chunks)
            )
        message_position = max(index, 0)
        return (
            message_position < len(entry.messages)
            and entry.messages[message_position] is sent
            and message_id.first_chunk is None
            and (index < 0 or size in (0, len(entry.messages)))
        )

    def send_failed(self, record: ProducerRecord, first: int, count: int, error: PulsarError) -> None:
        """INV-P1: the client gave up on tickets, for a reason that exists."""
        if count < 1:
            raise ViolationError("INV-P1", f"{record.tag}: failure of {count} messages")
        for ticket in range(first, first + count):
            sent = self._settle(record, ticket, "refused" if isinstance(error, NotAllowed) else "failed")
            self.failed += 1
            if record.ready_at is None:
                continue  # the message fails with its producer, whatever the reason
            if not isinstance(error, EXCUSES) and not self._is_reason(record, error):
                raise ViolationError("INV-P1", f"{sent} failed with {type(error).__name__}: {error}")
            may_time_out = (
                record.spec.send_timeout or record.spec.lazy_start or self._has_no_version(record, error)
            )
            if isinstance(error, TimedOut) and not may_time_out:
                raise ViolationError("INV-P1", f"{sent} timed out, but its producer has no send timeout")

    def _is_reason(self, record: ProducerRecord, error: PulsarError) -> bool:
        """True when there is a reason for such an error."""
        return (
            (record.topic.ended and isinstance(error, TopicTerminated))
            or (record.contested and isinstance(error, ProducerFenced))
            or (self.refuses_sends and isinstance(error, NotAllowed))
            or self._has_no_version(record, error)
            or record.spec.lazy_start  # its partition could not be opened, whatever the reason
        )

    def _has_no_version(self, record: ProducerRecord, error: PulsarError) -> bool:
        """True when the schema of a message could not be registered with the topic, which gave this error."""
        return self.schemas is not None and self.schemas.registrations.is_reason(record.topic.name, error)

    def flushed(self, record: ProducerRecord, request: int) -> None:
        """INV-P8: a flush ends once, after every message submitted before it has an outcome."""
        tickets = record.flushes.pop(request, None)
        if tickets is None:
            raise ViolationError("INV-P8", f"{record.tag}: flush {request} is answered twice")
        if any(ticket in record.pending for ticket in tickets):
            raise ViolationError("INV-P8", f"{record.tag}: flush {request} is done before its messages are")

    def check_timeouts(self, now: int, slack: int) -> None:
        """INV-P1: no message is pending longer than the send timeout and a tick. It may wait as long for the
        version of a schema before, its own or that of one before it."""
        for record in self.producers.values():
            if (
                record.spec.send_timeout
                and record.pending
                and record.ready_at is not None
                and not record.closed
                and not record.spec.lazy_start  # a lazy partition's timeout begins when it is open
            ):
                oldest, timeout = next(iter(record.pending.values())), round(record.spec.send_timeout * 1e9)
                since = max(oldest.sent_at, record.ready_at)
                if self.schemas is not None:
                    waited_until = self.schemas.registrations.waited_until(record.topic.name)
                    since = max(since, min(waited_until, since + timeout))
                if now - since > timeout + slack:
                    raise ViolationError("INV-P1", f"{oldest} is pending for longer than the send timeout")

    # --- consumers ---

    def whole_of(self, partition: str) -> PartitionedTopic | None:
        """Return the partitioned topic of a partition; None for another topic."""
        return self.partitioned.get(partition.partition("-partition-")[0])

    def deliver(
        self, consumer: ConsumerRecord, message: Message, now: int, wall_time: int
    ) -> MessagePosition:
        """INV-C2, INV-C3, INV-C10, INV-C14, INV-C19: the application takes a message, at `now` in nanoseconds
        and `wall_time` in milliseconds."""
        subscription = consumer.subscription
        topic = subscription.topic
        if consumer.closed:
            raise ViolationError("INV-C14", f"{consumer.name} is closed and gives a message")
        message_id = message.message_id
        ledger, entry_id, _, index, _, first_chunk = message_id
        message_position = (ledger, entry_id, max(index, 0))
        entry = topic.log.get((ledger, entry_id))
        messages = entry and (entry.messages or subscription.reassembled(message_position[:2], first_chunk))
        if entry is None or not messages or message_position[2] >= len(messages):
            raise ViolationError(
                "INV-C2", f"{consumer.name}: {message_position} is not in the log of {topic.name}"
            )
        sent = messages[message_position[2]]
        if (message.value if self.schemas is None else message.payload) != sent.payload:
            raise ViolationError(
                "INV-C2", f"{consumer.name}: {message_position} has another payload than {sent}"
            )
        self._check_opened(consumer, message, entry, now)
        if self.schemas is not None:
            self.schemas.check_value(consumer, message, sent, message_position[:2])
        if entry.chunk is not None and (first_chunk, 0) not in sent.chunks:
            raise ViolationError("INV-C11", f"{consumer.name}: {message_id} has no such first chunk")
        check_fields(consumer.name, topic.name, message, entry, sent)
        deliveries, count = consumer.deliveries, message.redelivery_count
        if deliveries.is_dead(message_position, count):
            raise ViolationError(
                "INV-C10", f"{consumer.name}: {message_position} is delivered, and is a dead letter"
            )
        if deliveries.is_known(message_position):
            raise ViolationError(
                "INV-C19", f"{consumer.name}: {message_position} is delivered, and is acknowledged"
            )
        deliveries.delivered(message_position, count, now)
        if consumer.asked_again and message_position[:2] in consumer.asked_again:
            raise ViolationError(
                "INV-C9",
                f"{consumer.name}: {message_position} is delivered although it was negatively acknowledged",
            )
        if sent.deliver_at is not None:
            early = sent.deliver_at - DELAY_TICK - wall_time
            if early > 0 and not subscription.kind.cumulative:
                raise ViolationError("DELAY-01", f"{consumer.name}: {sent} is delivered {early} ms early")
        if subscription.kind.cumulative:
            subscription.check_order(consumer, message_position)
        delivered = subscription.delivered
        if subscription.keys is not None and sent.key is not None and message_position not in delivered:
            overtaken = subscription.keys.overtaken(sent.key, message_position)
            if overtaken is not None:
                raise ViolationError(
                    "INV-C12",
                    f"{consumer.name}: {message_position} has the key {sent.key!r}; {overtaken} never came",
                )
        delivered[message_position] = delivered.get(message_position, 0) + 1
        self.delivered += 1
        return message_position

    @staticmethod
    def _check_opened(consumer: ConsumerRecord, message: Message, entry: StoredEntry, now: int) -> None:
        """INV-E3: a message of an encrypted entry says so, and that the client has decrypted it."""
        sealed, context = entry.sealed, message.encryption_context
        if (sealed is None) is not (context is None):
            raise ViolationError("INV-E3", f"{consumer.name}: {message.message_id} has {context}")
        if sealed is not None and context is not None:
            if context.decryption_failed or context.param != sealed.nonce:
                raise ViolationError("INV-E3", f"{consumer.name}: {message.message_id} has {context}")
            consumer.withheld.opened(message.message_id[:2], sealed, now)

    def deliver_sealed(self, consumer: ConsumerRecord, message: Message, now: int) -> list[MessagePosition]:
        """INV-E3: the application takes an entry as it is, because it could not be decrypted. Return its
        messages."""
        subscription, position = consumer.subscription, message.message_id[:2]
        entry = subscription.topic.log.get(position)
        sealed = None if entry is None else entry.sealed
        if entry is None or sealed is None or not consumer.withheld.may_deliver(position):
            raise ViolationError("INV-E3", f"{consumer.name}: {position} is delivered as it is")
        context = message.encryption_context
        changed = consumer.withheld.is_changed(position)
        if not changed and (
            message.data != sealed.ciphertext
            or context is None
            or not context.decryption_failed
            or context.param != sealed.nonce
            or tuple(key.value for key in context.keys) != sealed.wrapped
        ):
            raise ViolationError("INV-E3", f"{consumer.name}: {position} is delivered, and was changed")
        if subscription.kind.cumulative:
            subscription.check_order(consumer, (*position, 0))
        found = [(*position, index) for index in range(len(entry.messages))]
        consumer.deliveries.delivered_whole(position)
        for each in found:
            consumer.deliveries.delivered(each, message.redelivery_count, now)
            subscription.delivered[each] = subscription.delivered.get(each, 0) + 1
            self.delivered += 1
        if found:
            consumer.floor = max(consumer.floor, found[-1])
        return found

    def acknowledge(self, consumer: ConsumerRecord, message_position: MessagePosition, now: int) -> None:
        if consumer.refused:
            self._no_longer_refused(consumer, message_position[:2])
        consumer.redelivery_timing.acknowledged(
            consumer.subscription.topic.chunks_of(message_position[:2]), message_position[2]
        )
        consumer.deliveries.acknowledged(message_position, now)
        acknowledged = consumer.subscription.acknowledged
        if message_position not in acknowledged:
            acknowledged.add(message_position)
            self.acknowledged += 1

    def acknowledge_cumulative(self, consumer: ConsumerRecord, message_position: MessagePosition) -> None:
        subscription = consumer.subscription
        if message_position > subscription.cumulative:
            before, acknowledged = subscription.cumulative, subscription.acknowledged
            order, log = subscription.topic.order, subscription.topic.log
            for position in order[bisect_left(order, before[:2]) : bisect_right(order, message_position[:2])]:
                for index in range(len(log[position].messages)):
                    each = (*position, index)
                    if before < each <= message_position and each not in acknowledged:
                        self.acknowledged += 1
            subscription.cumulative = message_position
        if consumer.refused:
            for position in [each for each in consumer.refused if each <= message_position[:2]]:
                if position < message_position[:2] or subscription.topic.log[position].chunk is not None:
                    consumer.refused.remove(position)
            self._no_longer_refused(consumer, message_position[:2])
        consumer.redelivery_timing.acknowledged_through(message_position[:2], message_position[2])

    @staticmethod
    def _no_longer_refused(consumer: ConsumerRecord, position: Position) -> None:
        """The message is acknowledged: its entry must not be asked for. A batch stays uncertain, because each
        delivery counts."""
        refused = consumer.refused
        topic = consumer.subscription.topic
        if position in refused and len(topic.log[position].messages) == 1:
            refused.difference_update(topic.chunks_of(position))

    def negative_acknowledge(
        self, consumer: ConsumerRecord, message_position: MessagePosition, count: int, now: int
    ) -> None:
        """`count`: the redelivery count of the message, as far as the call tells it."""
        positions = consumer.subscription.topic.chunks_of(message_position[:2])
        consumer.redelivery_timing.refused(positions, message_position[2], count, now)
        consumer.deliveries.settled(message_position, now)
        consumer.nacked.update(positions)
        consumer.refused.update(positions)
        consumer.rewinds += 1

    # --- the end ---

    def check_log(self, topic: TopicRecord, audited: Sequence[MessagePosition]) -> None:
        """Compare the finished history of one topic with the messages of a fresh reader (INV-P1, INV-P2,
        INV-P3, INV-P4, INV-P5, INV-C1)."""
        found = dict.fromkeys(audited)
        if len(found) != len(audited):
            raise ViolationError("INV-C3", f"{topic.name}: a fresh reader got a message twice")
        if list(audited) != sorted(audited):
            raise ViolationError("INV-C3", f"{topic.name}: a fresh reader got messages out of order")
        for position, entry in topic.log.items():
            for index in range(len(entry.messages)):
                if (*position, index) not in found and position[0] > topic.gone:
                    raise ViolationError("INV-P2", f"{topic.name}: {(*position, index)} is gone from the log")
        for record in self.producers.values():
            if record.topic is topic or topic.name in record.lanes:
                self._check_producer(record, topic)
        self._check_same(topic)
        self._check_epochs(topic)
        for subscription in topic.subscriptions.values():
            if subscription.name == AUDIT:
                continue
            missing = subscription.missing()
            if missing:
                raise ViolationError(
                    "INV-C1", f"{topic.name}/{subscription.name}: {missing[:5]} never acknowledged"
                )
            if subscription.kind.cumulative:
                continue
            for message_position in audited:
                if (
                    message_position not in subscription.delivered
                    and message_position[0] > topic.gone
                    and message_position[:2] not in subscription.useless_chunks
                    and message_position[:2] not in subscription.discarded
                    and not subscription.is_incomplete(message_position[:2])
                ):
                    raise ViolationError(
                        "INV-C1", f"{topic.name}/{subscription.name}: {message_position} never delivered"
                    )

    def _check_same(self, topic: TopicRecord) -> None:
        """INV-P4, INV-P5: a message resent under its own sequence id is stored at most once, certainly if any
        attempt was confirmed, and in the order of the ids. If an attempt was refused without its producer
        hearing in time, and later ids were stored, the broker takes the next attempt for a duplicate and
        confirms it all the same."""
        refusals = {"refused", "failed"} if self.refuses_sends else {"refused"}
        last: dict[int, MessagePosition] = {}
        for (app, number), attempts in sorted(self.same.items(), key=lambda item: item[0]):
            if attempts[0].producer.topic is not topic:
                continue
            message_positions = [
                message_position for sent in attempts for message_position in sent.message_positions
            ]
            outcomes = {sent.outcome for sent in attempts}
            if len(message_positions) > 1 and topic.deduplication:
                raise ViolationError("INV-P4", f"{attempts[0]}: id {number} lies at {message_positions}")
            if not message_positions and "confirmed" in outcomes and not outcomes & refusals:
                raise ViolationError("INV-P2", f"{attempts[0]}: id {number} is confirmed and not in the log")
            if message_positions and message_positions[0] <= last.get(app, BEFORE_ALL):
                raise ViolationError("INV-P3", f"{attempts[0]}: id {number} lies behind a later one")
            last[app] = max(message_positions, default=last.get(app, BEFORE_ALL))

    @staticmethod
    def _check_epochs(topic: TopicRecord) -> None:
        """INV-P11: a producer whose exclusive access has ended stores nothing more under its epoch."""
        highest = -1
        for position in topic.order:
            entry = topic.sends[topic.log[position].payload]
            if not entry.epochs:
                continue
            last = entry.epochs[-1]
            if last < highest:
                tag = entry.source.producer.tag
                raise ViolationError(
                    "INV-P11", f"{tag} with epoch {last} stored {position}, behind epoch {highest}"
                )
            highest = min(epoch for epoch in entry.epochs if epoch >= highest)

    @staticmethod
    def _check_producer(record: ProducerRecord, topic: TopicRecord) -> None:
        if record.pending:
            raise ViolationError("INV-P1", f"{record.tag}: {len(record.pending)} messages never settled")
        last: dict[str | None, MessagePosition] = {}
        by_key = record.by_key
        for sent in record.sent:
            message_positions = sent.message_positions
            excused = record.explicit or (sent.topic is not None and sent.topic.is_torn(sent))
            if sent.outcome == "confirmed" and not message_positions and not excused:
                raise ViolationError("INV-P2", f"{sent} is confirmed and not in the log")
            if not message_positions or sent.topic is not topic:
                continue
            first = min(message_positions)
            row = sent.key if by_key else None
            if first <= last.get(row, BEFORE_ALL):
                raise ViolationError(
                    "INV-P3", f"{sent} lies at {first}, behind a later message of its producer"
                )
            last[row] = first
            there = [
                message_position[0] >= FAR_LEDGERS
                for message_position in message_positions
                if message_position[0] > topic.gone
            ]
            if (
                len(there) > len(set(there)) and record.topic.deduplication
            ):  # a cluster knows nothing of the other
                raise ViolationError("INV-P4", f"{sent} lies at {message_positions}, with deduplication")
            if len(message_positions) > sent.wires:
                raise ViolationError(
                    "INV-P4", f"{sent} lies at {message_positions}, was written on {sent.wires} attachments"
                )
