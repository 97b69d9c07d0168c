"""Marks of producers."""

from typing import Any

from ...broker.connection import Connection as BrokerConnection
from ...broker.producers import Deduplication, Producers
from ...client.intake import Intake
from ...client.producer import Producer
from ...client.window import Window
from .mark import mark


@mark(Producer, "_send_again")
def resent_after_reconnect(producer: Any, _connection: Any) -> object:
    """Unconfirmed messages were sent again over a new connection."""
    return bool(producer._window.entries)


@mark(Deduplication, "is_duplicate")
def resent_message_known(known: Any, name: str, sequence_id: int, _highest: int) -> object:
    """A message was sent again that the broker had stored, and was not stored twice."""
    return sequence_id <= known.persisted.get(name, -1)


@mark(Deduplication, "is_duplicate")
def duplicate_undecided(known: Any, name: str, sequence_id: int, _highest: int) -> object:
    """A message was sent again while the first copy was on its way to the disk."""
    return known.persisted.get(name, -1) < sequence_id <= known.pushed.get(name, -1)


@mark(Window, "on_receipt")
def receipt_for_nothing(window: Any, _connection: Any, receipt: Any) -> object:
    """A receipt came for a message that was settled already: a repetition, or one that had timed out."""
    entries = window.entries
    return not entries or receipt.sequence_id < entries[0].sequence_id


@mark(Window, "on_receipt")
def receipt_out_of_turn(window: Any, _connection: Any, receipt: Any) -> object:
    """A receipt came for a message while an older one was unconfirmed."""
    entries = window.entries
    return bool(entries) and receipt.sequence_id > entries[0].sequence_id


@mark(Intake, "settled")
def window_full(intake: Any) -> object:
    """No room for another message, and then room again."""
    return intake.was_full and intake.ended is None and intake._room() > 0


@mark(Intake, "_take_early")
def sent_before_ready(intake: Any, _sealer: Any) -> object:
    """Messages were given to a producer before it had a name."""
    return bool(intake._early)


@mark(Producer, "_timed_out")
def send_timeout(*_: Any) -> object:
    """A message was not confirmed within the send timeout."""
    return True


@mark(Producer, "on_send_error")
def send_refused(*_: Any) -> object:
    """SEND_ERROR: the broker did not store a message."""
    return True


@mark(Producer, "_recover_checksum")
def checksum_recovery(*_: Any) -> object:
    """The broker got damaged bytes, and everything was sent again."""
    return True


@mark(Producer, "on_detached")
def flush_over_reconnect(producer: Any, _cause: Any) -> object:
    """Somebody waited for a flush when the connection was lost."""
    return bool(producer._window._flushes)


@mark(Producer, "on_closed")
def closed_with_unconfirmed(producer: Any) -> object:
    """A producer was closed before the broker had confirmed everything."""
    return bool(producer._window.entries)


@mark(Producers, "_check_name")
def producer_name_taken(producers: Any, newcomer: Any) -> object:
    """A producer came back while the broker still had it on a connection it believed alive."""
    return newcomer.name in producers.by_name


@mark(BrokerConnection, "closed_lately")
def sent_to_unloaded_producer(connection: Any, producer_id: int) -> object:
    """A SEND crossed the broker's CLOSE_PRODUCER."""
    return connection._closed_producers.get(producer_id, -1) > connection.context.now
