"""The consumers' frames on the clients' ends: permits, acknowledgements and requests for redelivery.

Owns the permits of each consumer on each wire, as its client sees them. A client grants no more than the
queue takes, and acknowledges and asks for redelivery only as the application said. `client_frames` owns the
wires and the consumers open on each.
"""

from collections.abc import Callable
from typing import Any

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import Ack, Flow, MessageCommand, proto, unpack_payload

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.profile import FAR_LEDGERS
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.entry import StoredEntry
from ..model.records.message_position import Position
from ..model.records.subscription_record import SubscriptionRecord


class ConsumerEnd:
    """A consumer id on one wire."""

    __slots__ = (
        "arrived",
        "asked",
        "asked_first",
        "chunks",
        "closed",
        "dismissed",
        "far",
        "granted",
        "handle",
        "held_from",
        "held_version",
        "queue",
        "ready",
        "record",
    )

    def __init__(self, record: ConsumerRecord, handle: int, far: bool) -> None:
        self.record = record
        self.far = far
        """The wire leads to the cluster that topics migrate to."""
        self.handle = handle
        self.queue = record.spec.receiver_queue_size
        self.ready = False
        self.closed = False
        self.dismissed = False
        """The broker has closed the consumer."""
        self.granted = 0
        self.asked = 0
        """Requests for the last message."""
        self.asked_first = -1
        """Virtual time of the first of them."""
        self.arrived = 0
        """Messages arrived, without those masked by an ack set."""
        self.held_from: int | None = None
        """Messages that had arrived before the first that waits for its definition; None while none waits."""
        self.held_version = b""
        """The version that this message waits for."""
        self.chunks: dict[Position, int] = {} if record.spec.durable else record.chunks
        """Arrival time of each chunk. For a durable consumer they are those of this connection; a reader
        keeps those of earlier connections."""


def wrote_flow(consumer: ConsumerEnd, command: Flow, waiting: Callable[[], int]) -> None:
    """INV-C6, INV-C13: never more permits than the queue has room for. `waiting` returns the number of
    messages still in the queue."""
    if command.message_permits <= 0:
        raise ViolationError("INV-C13", f"{consumer.record.name}: FLOW of {command.message_permits}")
    record = consumer.record
    if record.halted:
        raise ViolationError("INV-C13", f"{record.name}: FLOW while it is paused")
    consumer.granted += command.message_permits
    if not consumer.queue:
        if consumer.granted - consumer.arrived > 1 or not record.wanting:
            raise ViolationError("INV-C13", f"{record.name}: FLOW without a waiting application")
        return
    in_queue = waiting()
    if consumer.granted - consumer.arrived + in_queue > consumer.queue:
        raise ViolationError(
            "INV-C6",
            f"{consumer.record.name}: granted {consumer.granted}, arrived "
            f"{consumer.arrived}, waiting {in_queue}: "
            f"more than a queue of {consumer.queue}",
        )


def wrote_ack(consumer: ConsumerEnd, command: Ack, now: int) -> None:
    """INV-C4: the client acknowledges only what the application acknowledged."""
    subscription = consumer.record.subscription
    name = consumer.record.name
    if not subscription.topic.persistent:
        raise ViolationError("INV-C4", f"{name}: acknowledges where nothing is kept")
    if command.validation_error == proto.CommandAck.DecryptionError:
        _wrote_discard(consumer, command)
        return
    consumer.record.ids_acknowledged += len(command.message_ids)
    if command.validation_error is not None:
        raise ViolationError("INV-C2", f"{name}: reports validation error {command.validation_error}")
    if consumer.far and not consumer.granted and any(each[0] < FAR_LEDGERS for each in command.message_ids):
        raise ViolationError("INV-N13", f"{name}: acknowledges messages of another cluster")
    if command.ack_type == proto.CommandAck.Cumulative:
        if not subscription.kind.cumulative:
            raise ViolationError("INV-C4", f"{name}: cumulative acknowledgement on {subscription.kind.value}")
        for ledger, entry_id, bits in command.message_ids:
            position = (ledger, entry_id)
            entry = subscription.topic.log.get(position)
            size = len(entry.messages) if entry is not None else 1
            upto = size - 1
            if bits == 0:  # an entry with nothing left open has no ack set
                raise ViolationError("INV-C4", f"{name}: acknowledges up to {position} with an empty set")
            if bits:
                upto = (bits & -bits).bit_length() - 2
            message_position = (*position, upto)
            for copied in [each for each in subscription.copied if each <= message_position]:
                subscription.acknowledge_copied(copied[:2])
            if (
                entry_id >= 0
                and message_position > subscription.cumulative
                and not subscription.all_up_to(message_position)
            ):
                raise ViolationError("INV-C4", f"{name}: acknowledges up to {message_position} by itself")
        return
    for ledger, entry_id, bits in command.message_ids:
        position = (ledger, entry_id)
        entry = subscription.topic.log.get(position)
        if entry is None:
            raise ViolationError("INV-C4", f"{name}: acknowledges {position}, which is not in the log")
        if entry.chunk is not None:
            _check_chunk(consumer, subscription, position, now)
            continue
        if subscription.copied:
            subscription.acknowledge_copied(position)
        still_open = subscription.open_bits(position)
        read = not consumer.record.spec.durable and position <= consumer.record.floor[:2]
        if still_open & ~(bits or 0) and not read:  # messages before a reader's start id are ignored
            raise ViolationError(
                "INV-C4",
                f"{name}: acknowledges {position} set {bits}; the application left {still_open:b} open",
            )


def _wrote_discard(consumer: ConsumerEnd, command: Ack) -> None:
    """INV-E3: the client acknowledges a message that it cannot decrypt, as it was told to (CRYPTO-05)."""
    record = consumer.record
    for ledger, entry_id, _ in command.message_ids:
        if not record.withheld.may_discard((ledger, entry_id)):
            raise ViolationError("INV-E3", f"{record.name}: discards {(ledger, entry_id)} without a cause")
        record.subscription.discards((ledger, entry_id))


def _check_chunk(
    consumer: ConsumerEnd, subscription: SubscriptionRecord, position: Position, now: int
) -> None:
    """INV-C11: a chunk is acknowledged with its message. It is acknowledged alone only when another copy of
    it exists, when its uuid has another message, or when its time is over."""
    topic = subscription.topic
    sent, chunk = topic.log[position].source, topic.log[position].chunk
    assert chunk is not None
    for last, parts in topic.complete_chunks(sent).items():
        if position in parts:
            if (*last, 0) in subscription.copied:
                subscription.acknowledge_copied(last)
            if not subscription.open_bits(last):
                return
    record = consumer.record
    if not record.spec.durable and position <= record.floor[:2]:
        return
    chunks = [each.chunk for each in topic.log.values() if each.chunk is not None]
    copies = [each for each in chunks if (each.uuid, each.number) == (chunk.uuid, chunk.number)]
    others = [each.source for each in topic.log.values() if each.chunk and each.chunk.uuid == chunk.uuid]
    arrived = [consumer.chunks[each] for each, _ in sent.chunks if each in consumer.chunks]
    waited = now - min(arrived, default=now)
    limit = round(record.spec.incomplete_chunked_message_timeout * SECOND)
    if len(copies) < 2 and others.count(sent) == len(others) and waited < limit:
        raise ViolationError(
            "INV-C11",
            f"{record.name}: acknowledges {position}, chunk {chunk.number} of {sent}, by itself",
        )
    subscription.useless_chunks.add(position)
    if topic.log[position].messages:
        subscription.acknowledged.add((*position, 0))


def wrote_redeliver(consumer: ConsumerEnd, command: Any, now: int) -> None:
    """INV-C9: the client asks only for entries that were negatively acknowledged or timed out, never too
    early, and never with an empty list by mistake."""
    record = consumer.record
    redelivery_timing = record.redelivery_timing
    if record.subscription.kind.cumulative:
        if record.requests_to_rewind:
            record.requests_to_rewind -= 1
            if redelivery_timing.any_due(now):  # the timeout may be the cause, and the request still be due
                record.rewinds += 1
        elif record.refused and redelivery_timing.any_refusal_is_due(now):
            record.refused.clear()
        elif redelivery_timing.any_due(now) or record.withheld.any_due(now):
            record.rewinds += 1  # a copy under way may still fail, and cause another request
        elif record.copies_to_fail:
            record.copies_to_fail -= 1
        else:
            raise ViolationError(
                "INV-C9", f"{record.name}: asks for redelivery without a cause, or too early"
            )
        redelivery_timing.clear()
        return
    if not command.message_ids:
        if not record.redeliver_all:
            raise ViolationError(
                "INV-C9", f"{record.name}: asks for redelivery of everything without a cause"
            )
        redelivery_timing.clear()
        return
    asked = {(each.ledgerId, each.entryId) for each in command.message_ids}
    for position in asked:
        if record.withheld.is_due(position, now):  # chunks that were decrypted wait for this one
            continue
        missing = set(record.subscription.topic.chunks_of(position)) - asked
        if missing:
            raise ViolationError(
                "INV-C9", f"{record.name}: asks for {position}, and not for the chunks {missing}"
            )
    for each in command.message_ids:
        position = (each.ledgerId, each.entryId)
        if record.withheld.is_due(position, now):
            redelivery_timing.asked_for(position)
            record.asked_again.add(position)
            if record.subscription.keys is not None:
                record.subscription.keys.asked_for(position)
            continue
        refused = position in record.refused
        due = redelivery_timing.is_due(position, now) or (
            refused and redelivery_timing.refusal_is_due(position, now)
        )
        blocking = set() if position in record.uncopied else record.deliveries.blocking(position, now)
        if blocking and not redelivery_timing.is_due(position, now):
            raise ViolationError(
                "INV-C9", f"{record.name}: asks for {position} while {sorted(blocking)} of it are not settled"
            )
        if not due and position not in record.uncopied:
            again = "once more than it was told" if position in record.nacked else "by itself"
            how = "too early" if refused else again
            raise ViolationError("INV-C9", f"{record.name}: asks for {position} {how}")
        record.refused.discard(position)
        redelivery_timing.asked_for(position)
        record.asked_again.add(position)
        if record.subscription.keys is not None:
            record.subscription.keys.asked_for(position)


def check_redelivery(consumer: ConsumerEnd, now: int) -> None:
    """INV-C9: a consumer asks in time for what is due. On Failover only the active consumer asks."""
    record = consumer.record
    if record.closed or record.removed or record.kind is SubscriptionType.FAILOVER:
        return
    for position in record.redelivery_timing.forgotten(now):
        if record.subscription.open_bits(position) and not record.deliveries.may_wait(position, now):
            raise ViolationError("INV-C9", f"{record.name}: does not ask for {position}, which is long due")


def wrote_last_message_id(consumer: ConsumerEnd, now: int) -> None:
    """INV-N6: a refused request is not repeated again and again. Beside the application's requests, the
    client itself may ask once a second for its position."""
    consumer.asked += 1
    if consumer.asked_first < 0:
        consumer.asked_first = now
    its_own = 1 + (now - consumer.asked_first) // SECOND
    if consumer.asked > consumer.record.questions + its_own:
        raise ViolationError("INV-N6", f"{consumer.record.name}: asks for the last message too often")


def got_message(consumer: ConsumerEnd, command: MessageCommand, now: int) -> None:
    """An entry arrives: it costs permits, and is no longer awaited."""
    position = (command.ledger_id, command.entry_id)
    consumer.record.asked_again.discard(position)
    if consumer.record.subscription.named_by_client and not (consumer.closed or consumer.dismissed):
        consumer.record.subscription.arrived(position)
    entry = consumer.record.subscription.topic.log.get(position)
    if entry is not None:
        size = entry.size
        if entry.chunk is not None:
            consumer.chunks.setdefault(position, now)
        masked = command.ack_set
        if entry.sealed is not None:
            changed = not command.payload.endswith(entry.payload)
            consumer.record.withheld.arrived(position, entry, changed, now)
        if not (consumer.closed or consumer.dismissed):
            record, count = consumer.record, command.redelivery_count
            record.redelivery_timing.arrived(position)
            dead = record.deliveries.came(position, size, masked, count, entry.chunk is None, now)
            if dead:
                record.too_often[position] = record.too_often.get(position, 0) | dead
        consumer.arrived += size_of(entry, masked)
    elif not consumer.record.subscription.topic.persistent:
        consumer.arrived += unpack_payload(command.payload).metadata.num_messages_in_batch or 1


def size_of(entry: StoredEntry, masked: int | None) -> int:
    """Return the messages of an entry, without those that its ack set masks."""
    return entry.size if masked is None else (masked & ((1 << entry.size) - 1)).bit_count()


def held_back(consumer: ConsumerEnd, waiting: int) -> int:
    """Return the permits that the client has not granted again although the messages are gone; `waiting`
    messages are still in the client."""
    return consumer.queue - (consumer.granted - consumer.arrived) - waiting
