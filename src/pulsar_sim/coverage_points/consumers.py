"""Marks of consumers."""

from typing import Any

from pulsar_sansio.client.acknowledging.ack_grouping import AckGrouping
from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.acknowledging.redelivery import Redelivery
from pulsar_sansio.client.arrival.arrival import Arrival
from pulsar_sansio.client.arrival.chunk_assembly import ChunkAssembly
from pulsar_sansio.client.arrival.delivery_start import DeliveryStart
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.delivery.scaled_queue import ScaledPermits
from pulsar_sansio.client.delivery.zero_queue import ZeroQueuePermits
from pulsar_sansio.client.letter_topics.letter_topics import LetterTopics
from pulsar_sansio.client.positions.seeking import Seeking
from pulsar_sansio.model.errors import BrokerError

from .coverage_point import coverage_point


@coverage_point(Consumer, "open_command")
def queue_dropped(consumer: Any, *_: Any) -> object:
    """Messages waited in the client when it subscribed again; they were dropped, and are redelivered."""
    return consumer._ready and consumer._queue.available


@coverage_point(Consumer, "_on_early_message")
def message_after_close(*_: Any) -> object:
    """Messages came for a consumer that was being closed."""
    return True


@coverage_point(Permits, "give_back")
def permits_overrun(permits: Any, _messages: int) -> object:
    """The broker had sent more than it had permits for: it serves whole entries."""
    return permits.at_broker < 0


@coverage_point(AckTracker, "batch")
def batch_redelivered_partly(_tracker: Any, _place: Any, size: int, open_bits: Any, _stamp: Any) -> object:
    """A batch was delivered of which some messages were acknowledged before."""
    return open_bits is not None and open_bits & ((1 << size) - 1) != (1 << size) - 1


@coverage_point(Arrival, "receive")
def duplicate_dropped(arrival: Any, command: Any, *_: Any) -> object:
    """An entry was redelivered while its acknowledgement had not been sent yet."""
    return arrival._tracker.is_duplicate((command.ledger_id, command.entry_id))


@coverage_point(Arrival, "receive")
def outdated_epoch(_arrival: Any, command: Any, epoch: int, *_: Any) -> object:
    """A message of before the rewind came after it was asked for."""
    return command.consumer_epoch is not None and command.consumer_epoch < epoch


@coverage_point(AckGrouping, "attach")
def cumulative_after_reconnect(acknowledger: Any, _connection: Any) -> object:
    """A cumulative acknowledgement waited for a new connection and went first on it."""
    return acknowledger._tracker._position is not None


@coverage_point(AckGrouping, "attach")
def individual_after_reconnect(acknowledger: Any, _connection: Any) -> object:
    """Individual acknowledgements waited for a new connection and went first on it."""
    return bool(acknowledger._tracker.entries)


@coverage_point(Consumer, "on_detached")
def batch_half_acknowledged(consumer: Any, _cause: Any) -> object:
    """The connection was lost when some messages of a batch were acknowledged and others were not."""
    records = consumer._acknowledgements.tracker._batches.values()
    return any(0 < record.open_bits.bit_count() < record.size for record in records)


@coverage_point(AckTracker, "put_back")
def acknowledgement_lost(*_: Any) -> object:
    """An ACK that asked for an answer got none, and waited again."""
    return True


@coverage_point(AckGrouping, "_not_confirmed")
def acknowledgement_refused(_acknowledger: Any, _sent: Any, error: Any) -> object:
    """The broker refused an ACK."""
    return isinstance(error, BrokerError)


@coverage_point(Redelivery, "_request")
def negative_acknowledgement(*_: Any) -> object:
    """Messages were asked for again by name."""
    return True


@coverage_point(Redelivery, "redeliver_all")
def rewind_while_detached(redelivery: Any) -> object:
    """Everything was asked for again while there was no connection."""
    return redelivery._connection is None


@coverage_point(Redelivery, "active_changed")
def rewind_repeated(redelivery: Any, active: bool) -> object:
    """A Failover consumer got its turn and had to repeat a request that may have been ignored."""
    return active and redelivery._connection is not None and redelivery.epoch > redelivery._subscribed_epoch


@coverage_point(Consumer, "on_active_changed")
def turn_lost(consumer: Any, active: bool) -> object:
    """A Failover consumer that had the turn lost it."""
    return bool(consumer.is_active and not active)


@coverage_point(DeliveryStart, "resume_after")
def reader_resumed(*_: Any) -> object:
    """A subscription without memory went on behind what had been delivered."""
    return True


@coverage_point(Consumer, "unsubscribed")
def unsubscribed(*_: Any) -> object:
    """A subscription was removed by its consumer."""
    return True


@coverage_point(Consumer, "unsubscribed")
def unsubscribed_and_lost(consumer: Any, attached: object) -> object:
    """The broker removed a subscription whose consumer was on its way somewhere else, or there."""
    return consumer.attachment.state is not attached


@coverage_point(Consumer, "on_end_of_topic")
def end_of_topic(*_: Any) -> object:
    """A consumer was told that its topic has ended."""
    return True


# --- redelivery, dead letters, flow, positions --------------------------------------------------------------


@coverage_point(Redelivery, "_timed_out")
def timed_out(*_: Any) -> object:
    """The client asked for messages again that the application had not acknowledged in time."""
    return True


@coverage_point(LetterTopics, "dead_letter")
def dead_letter(*_: Any) -> object:
    """An entry came once too often."""
    return True


@coverage_point(LetterTopics, "dead_letter")
def dead_letter_redelivered(letters: Any, messages: Any) -> object:
    """An entry was redelivered while it was being copied."""
    return messages[0].entry.position in letters._pending_copies


@coverage_point(LetterTopics, "detach")
def lost_while_copying(letters: Any) -> object:
    """The connection was lost while dead letters were on their way."""
    return bool(letters._pending_copies)


@coverage_point(Permits, "attach")
def attached_while_paused(permits: Any, _grant: Any) -> object:
    """A paused consumer came back, and granted nothing."""
    return permits.paused


@coverage_point(ZeroQueuePermits, "attach")
def wish_over_a_reconnect(permits: Any, _grant: Any) -> object:
    """An application waited for a message without prefetching when the connection was lost."""
    return permits.wanted


@coverage_point(ScaledPermits, "grow")
def queue_grown(*_: Any) -> object:
    """A queue has become larger."""
    return True


@coverage_point(Seeking, "attach")
def sought_again(seeking: Any, _connection: Any) -> object:
    """A SEEK whose answer was lost was sent again."""
    return seeking.current is not None and not seeking._answered and seeking.sent_on is not None


@coverage_point(Seeking, "seek")
def seek_waits(seeking: Any, *_: Any) -> object:
    """The application asked for a seek before the last seek was done."""
    return seeking.current is not None


@coverage_point(Seeking, "_timed_out")
def seek_timed_out(*_: Any) -> object:
    """A seek was not done in time."""
    return True


# --- messages in chunks ------------------------------------------------------------------------------------


@coverage_point(ChunkAssembly, "_begin")
def first_chunk_redelivered(_chunks: Any, _uuid: Any, before: Any, *_: Any) -> object:
    """A message in chunks was begun anew, because its producer or a broker had to begin again."""
    return before is not None


@coverage_point(ChunkAssembly, "_expire")
def chunks_given_up(chunks: Any) -> object:
    """Chunks that make no message were acknowledged after their time."""
    oldest = next(iter(chunks._incomplete.values()), None)
    return oldest is not None and oldest.since + chunks._expiry <= chunks._context.now
