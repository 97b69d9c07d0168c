"""Marks of producers."""

from typing import Any

from pulsar_sansio.broker.serving.connection import Connection as BrokerConnection
from pulsar_sansio.broker.topics.producing.deduplication import Deduplication
from pulsar_sansio.broker.topics.producing.producers import Producers
from pulsar_sansio.client.memory import MemoryLimit
from pulsar_sansio.client.partitions.partitioned_producer import PartitionedProducer
from pulsar_sansio.client.producing.admission import Admission
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.client.producing.send_window import SendWindow
from pulsar_sansio.client.producing.unsealed_messages import UnsealedMessages

from .coverage_point import coverage_point


@coverage_point(Producer, "_send_again")
def resent_after_reconnect(producer: Any, _connection: Any) -> object:
    """Unconfirmed messages were sent again over a new connection."""
    return bool(producer._window.entries)


@coverage_point(Deduplication, "is_duplicate")
def resent_message_known(known: Any, name: str, sequence_id: int, _highest: int) -> object:
    """A message was sent again that the broker had stored, and was not stored twice."""
    return sequence_id <= known.persisted.get(name, -1)


@coverage_point(SendWindow, "on_receipt")
def receipt_for_nothing(window: Any, _connection: Any, receipt: Any) -> object:
    """A receipt came for a message that was settled already: a repetition, or one that had timed out."""
    entries = window.entries
    return not entries or receipt.sequence_id < entries[0].sequence_id


@coverage_point(SendWindow, "on_receipt")
def receipt_out_of_turn(window: Any, _connection: Any, receipt: Any) -> object:
    """A receipt came for a message while an older one was unconfirmed."""
    entries = window.entries
    return bool(entries) and receipt.sequence_id > entries[0].sequence_id


@coverage_point(Admission, "settled")
def window_full(admission: Any) -> object:
    """No room for another message, and then room again."""
    return admission.was_full and admission.ended is None and admission._room() > 0


@coverage_point(UnsealedMessages, "seal_all")
def sent_before_ready(unsealed: Any) -> object:
    """Messages were given to a producer before it had a name."""
    return bool(unsealed.messages)


@coverage_point(Producer, "_timed_out")
def send_timeout(*_: Any) -> object:
    """A message was not confirmed within the send timeout."""
    return True


@coverage_point(Producer, "on_send_error")
def send_refused(*_: Any) -> object:
    """SEND_ERROR: the broker did not store a message."""
    return True


@coverage_point(Producer, "_recover_checksum")
def checksum_recovery(*_: Any) -> object:
    """The broker got damaged bytes, and everything was sent again."""
    return True


@coverage_point(Producer, "on_detached")
def flush_over_reconnect(producer: Any, _cause: Any) -> object:
    """The application waited for a flush when the connection was lost."""
    return bool(producer._window._flushes)


@coverage_point(Producer, "on_closed")
def closed_with_unconfirmed(producer: Any) -> object:
    """A producer was closed before the broker had confirmed everything."""
    return bool(producer._window.entries)


@coverage_point(Producers, "_check_name")
def producer_name_taken(producers: Any, newcomer: Any) -> object:
    """A producer came back while the broker still had it on a connection it believed alive."""
    return newcomer.name in producers.by_name


@coverage_point(BrokerConnection, "closed_recently")
def sent_to_unloaded_producer(connection: Any, producer_id: int) -> object:
    """A SEND crossed the broker's CLOSE_PRODUCER."""
    return connection._closed_producers.get(producer_id, -1) > connection.context.now


# --- partitions, chunks, access ----------------------------------------------------------------------------


@coverage_point(PartitionedProducer, "_partitions_known")
def topic_grew(whole: Any, partitions: int) -> object:
    """A producer learned of more partitions."""
    return partitions > len(whole._sender.partitions)


@coverage_point(PartitionedProducer, "_partitions_known")
def fewer_partitions_not_believed(whole: Any, partitions: int) -> object:
    """A broker knew of fewer partitions than a producer has."""
    return partitions < len(whole._sender.partitions)


@coverage_point(PartitionedProducer, "_start_later")
def partition_started_by_its_first_message(*_: Any) -> object:
    """A lazy producer opened a partition because a message went there."""
    return True


@coverage_point(SendWindow, "on_receipt")
def receipt_of_a_chunk_said_twice(window: Any, _connection: Any, receipt: Any) -> object:
    """The receipt of one chunk came twice, and the next chunk waited for its own."""
    entries = window.entries
    return (
        window._first_chunk is not None
        and bool(entries)
        and receipt.sequence_id == entries[0].sequence_id
        and receipt.ledger_id is not None
        and (receipt.ledger_id, receipt.entry_id) <= window._newest_chunk
    )


@coverage_point(Producer, "_send_again")
def sent_again_from_within_a_message(producer: Any, _connection: Any) -> object:
    """Some chunks of a message were confirmed before the connection was lost, the others are sent again."""
    return producer._window._first_chunk is not None


@coverage_point(Producers, "_fence_all")
def producers_fenced_out(producers: Any) -> object:
    """A producer fenced out the producers of a topic."""
    return bool(producers.by_name)


@coverage_point(BrokerConnection, "grant_waiting_producer")
def waited_for_exclusive_access(*_: Any) -> object:
    """A producer that waited for exclusive access got the topic."""
    return True


@coverage_point(Producers, "_check_epoch")
def came_back_too_late(producers: Any, newcomer: Any) -> object:
    """A producer with exclusive access came back after another producer had it."""
    epoch, now = newcomer.topic_epoch, producers.topic_epoch
    return epoch is not None and now is not None and epoch < now


@coverage_point(MemoryLimit, "wait")
def memory_full(*_: Any) -> object:
    """A producer found no room in its client's memory."""
    return True
