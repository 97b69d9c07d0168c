"""Situations that a simulator worth trusting gets into: the list, and where each is seen.

Each mark is a condition on the call of one method of a machine, judged just before the call. The function's
name is the mark's name, its docstring says what happened. Owns nothing else: `coverage` replaces the methods
while it records, so that the machines know nothing of marks and pay nothing for them. A mark that no seed
reaches means that a fault or a workload is missing.

A condition must not change anything, and must not be placed on a method that is called for every message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..broker.connection import Connection as BrokerConnection
from ..broker.dispatch import SingleActive
from ..broker.dispatch_shared import KeyShared, Shared
from ..broker.producers import Deduplication, Producers
from ..broker.topic import Topic
from ..client import attachment as attaching
from ..client.acknowledger import Acknowledger
from ..client.acks import AckTracker
from ..client.arrival import Arrival
from ..client.attachment import Attachment
from ..client.connection import MAX_IDLE, Connection
from ..client.consumer import Consumer
from ..client.intake import Intake
from ..client.lookup import Lookup, LookupResponse
from ..client.permits import Permits
from ..client.producer import Producer
from ..client.redelivery import Redelivery
from ..client.requests import Requests
from ..client.window import Window
from ..core.buffers import ReceiveBuffer
from ..model.errors import BrokerError, ConnectionLost, FrameError, TimedOut
from .broker_node import BrokerNode
from .world import World

Condition: TypeAlias = "Callable[..., object]"


@dataclass(frozen=True, slots=True)
class Mark:
    """One situation."""

    name: str
    text: str
    owner: type
    method: str
    reached: Condition
    """Gets what the method gets, itself included."""


MARKS: dict[str, Mark] = {}
"""All marks, by name."""


def mark(owner: type, method: str) -> Callable[[Condition], Condition]:
    """Add a condition: true where the situation is reached with this call of `owner.method`."""

    def add(reached: Condition) -> Condition:
        name = reached.__name__.strip("_").replace("_", " ")
        if name in MARKS:
            raise ValueError(f"two marks are called {name}")
        MARKS[name] = Mark(name, " ".join((reached.__doc__ or "").split()), owner, method, reached)
        return reached

    return add


# --- the way to the broker -----------------------------------------------------------------------------


@mark(Lookup, "_answered")
def redirect_followed(lookup: Any, question: Any, _connection: Any, answer: Any) -> object:
    """A lookup was sent on to another broker."""
    limit = lookup._services.config.max_lookup_redirects
    return bool(answer.response == LookupResponse.Redirect and question.redirects < limit)


@mark(Lookup, "_answered")
def redirect_limit_hit(lookup: Any, question: Any, _connection: Any, answer: Any) -> object:
    """Brokers sent a lookup to each other until the client had enough."""
    limit = lookup._services.config.max_lookup_redirects
    return bool(answer.response == LookupResponse.Redirect and question.redirects >= limit)


@mark(Lookup, "_refusal")
def lookup_refused(*_: Any) -> object:
    """A broker refused a lookup."""
    return True


@mark(Lookup, "find")
def lookup_shared(lookup: Any, topic: Any, *_: Any) -> object:
    """Two asked for the same topic, and one lookup answered both."""
    return topic in lookup._finding


@mark(Attachment, "_attempt_failed")
def lookup_retried(attachment: Any, _error: Any) -> object:
    """A lookup failed, and is made again after a wait."""
    return isinstance(attachment.state, attaching.LookingUp)


@mark(Attachment, "_creation_timed_out")
def creation_given_up(*_: Any) -> object:
    """A producer or consumer never got ready within the operation timeout, and failed."""
    return True


@mark(Attachment, "_refused")
def opening_refused(_attachment: Any, error: Any) -> object:
    """PRODUCER or SUBSCRIBE was refused with a code."""
    return isinstance(error, BrokerError)


@mark(Attachment, "_refused")
def opening_timed_out(_attachment: Any, error: Any) -> object:
    """PRODUCER or SUBSCRIBE was not answered in time; the broker may have opened it after all."""
    return isinstance(error, TimedOut)


@mark(Attachment, "_refused")
def lost_while_opening(_attachment: Any, error: Any) -> object:
    """The connection died between PRODUCER or SUBSCRIBE and the answer."""
    return isinstance(error, ConnectionLost)


@mark(Attachment, "closed_by_broker")
def unloaded_while_opening(attachment: Any, *_: Any) -> object:
    """The broker closed what it had not yet said to be open."""
    return isinstance(attachment.state, attaching.Opening)


@mark(Attachment, "closed_by_broker")
def unloaded_while_closing(attachment: Any, *_: Any) -> object:
    """Client and broker closed the same producer or consumer at the same time."""
    return isinstance(attachment.state, attaching.Closing)


@mark(Attachment, "closed_by_broker")
def assigned_broker(_attachment: Any, _connection: Any, assigned_url: str | None, _cause: Any) -> object:
    """The broker closed a producer or consumer and named the broker to go to."""
    return assigned_url is not None


@mark(Attachment, "_back_off")
def lost_again_before_attached(attachment: Any, _cause: Any) -> object:
    """On the way back, something failed again."""
    return attachment.was_attached and not isinstance(attachment.state, attaching.Attached)


@mark(Attachment, "fail")
def ended_by_send_error(*_: Any) -> object:
    """The broker said of a message that this producer is fenced, or its topic terminated."""
    return True


# --- connections ---------------------------------------------------------------------------------------


@mark(Connection, "_keepalive")
def keepalive_timeout(connection: Any) -> object:
    """A PING was not answered; the client ended the connection."""
    return not connection._heard


@mark(Connection, "_handshake_timed_out")
def handshake_timeout(*_: Any) -> object:
    """No connection, or no answer to CONNECT, in time."""
    return True


@mark(Connection, "_is_idle_for_too_long")
def idle_connection_ended(connection: Any) -> object:
    """A connection that nobody used was ended."""
    if connection.used or connection.producers or connection.consumers or connection.pending:
        return False
    since = connection._idle_since
    return since is not None and connection._context.now - since >= MAX_IDLE


@mark(Connection, "count_rejection")
def too_many_rejections(connection: Any) -> object:
    """So many lookups were rejected on one connection that the client left it."""
    return bool(connection._rejections >= connection._services.config.max_rejected_requests)


@mark(Connection, "close")
def poisoned_connection(_connection: Any, cause: Any, **_: Any) -> object:
    """The broker sent bytes that are no frame; the client ended that one connection."""
    return isinstance(cause, FrameError)


@mark(ReceiveBuffer, "hold")
def frame_in_pieces(_buffer: Any, data: bytes, position: int) -> object:
    """A frame arrived in more than one piece."""
    return position < len(data)


@mark(Requests, "reply")
def answer_to_nothing(_requests: Any, connection: Any, command: Any) -> object:
    """An answer came to a request that had been given up, or never made."""
    return command.request_id not in connection.pending


@mark(BrokerConnection, "_keepalive_due")
def broker_keepalive_timeout(connection: Any) -> object:
    """A client did not answer a PING; the broker ended the connection."""
    return connection._awaiting_life and connection._reading


@mark(BrokerConnection, "check_liveness")
def rival_probed(*_: Any) -> object:
    """Somebody wanted the name or the place of another, and the broker asked whether that one is alive."""
    return True


@mark(BrokerConnection, "_liveness_due")
def dead_rival_found(*_: Any) -> object:
    """The one in the way did not answer, and made room."""
    return True


# --- producers -----------------------------------------------------------------------------------------


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


# --- consumers -----------------------------------------------------------------------------------------


@mark(Consumer, "open_command")
def queue_dropped(consumer: Any, *_: Any) -> object:
    """Messages waited in the client when it subscribed again; they were dropped, for they come again."""
    return consumer._ready and consumer._queue.available


@mark(Consumer, "_on_early_message")
def message_after_close(*_: Any) -> object:
    """Messages came for a consumer that was being closed."""
    return True


@mark(Permits, "give_back")
def permits_overrun(permits: Any, _messages: int) -> object:
    """The broker had sent more than it had permits for: it serves whole entries."""
    return permits.at_broker < 0


@mark(AckTracker, "batch")
def batch_came_again_partly(_tracker: Any, _place: Any, size: int, open_bits: int | None) -> object:
    """A batch was delivered of which some messages were acknowledged before."""
    return open_bits is not None and open_bits & ((1 << size) - 1) != (1 << size) - 1


@mark(Arrival, "receive")
def duplicate_dropped(arrival: Any, command: Any, *_: Any) -> object:
    """An entry came again whose acknowledgement had not been sent yet."""
    return arrival._tracker.is_duplicate((command.ledger_id, command.entry_id))


@mark(Arrival, "receive")
def outdated_epoch(_arrival: Any, command: Any, epoch: int, _limit: int) -> object:
    """A message of before the rewind came after it was asked for."""
    return command.consumer_epoch is not None and command.consumer_epoch < epoch


@mark(Acknowledger, "attach")
def cumulative_after_reconnect(acknowledger: Any, _connection: Any) -> object:
    """A cumulative acknowledgement waited for a new connection and went first on it."""
    return acknowledger._tracker._position is not None


@mark(Acknowledger, "attach")
def individual_after_reconnect(acknowledger: Any, _connection: Any) -> object:
    """Individual acknowledgements waited for a new connection and went first on it."""
    return bool(acknowledger._tracker.entries)


@mark(Consumer, "on_detached")
def batch_half_acknowledged(consumer: Any, _cause: Any) -> object:
    """The connection was lost when some messages of a batch were acknowledged and others were not."""
    records = consumer._acknowledger._tracker._batches.values()
    return any(0 < record.open_bits.bit_count() < record.size for record in records)


@mark(AckTracker, "put_back")
def acknowledgement_lost(*_: Any) -> object:
    """An ACK that asked for an answer got none, and waited again."""
    return True


@mark(Acknowledger, "_not_confirmed")
def acknowledgement_refused(_acknowledger: Any, _sent: Any, error: Any) -> object:
    """The broker refused an ACK."""
    return isinstance(error, BrokerError)


@mark(Redelivery, "_request")
def negative_acknowledgement(*_: Any) -> object:
    """Messages were asked for again by name."""
    return True


@mark(Redelivery, "redeliver_all")
def rewind_while_detached(redelivery: Any) -> object:
    """Everything was asked for again while there was no connection."""
    return redelivery._connection is None


@mark(Redelivery, "active_changed")
def rewind_repeated(redelivery: Any, active: bool) -> object:
    """A Failover consumer got its turn and had to repeat a request that may have been ignored."""
    return active and redelivery._connection is not None and redelivery.epoch > redelivery._told_epoch


@mark(Consumer, "on_active_changed")
def turn_lost(consumer: Any, active: bool) -> object:
    """A Failover consumer that had the turn lost it."""
    return bool(consumer._active and not active)


# --- brokers -------------------------------------------------------------------------------------------


@mark(SingleActive, "_change_due")
def failover_switch(dispatcher: Any) -> object:
    """A Failover subscription of several consumers went on with another one."""
    return len(dispatcher.consumers) > 1


@mark(SingleActive, "check")
def exclusive_taken(dispatcher: Any, _newcomer: Any) -> object:
    """A second consumer wanted an Exclusive subscription."""
    return not dispatcher.failover and bool(dispatcher.consumers)


@mark(Shared, "remove")
def left_with_unacknowledged(_dispatcher: Any, consumer: Any) -> object:
    """A Shared consumer left, and what it had went to others."""
    return bool(consumer.pending)


@mark(Shared, "_settle")
def unacknowledged_limit(_dispatcher: Any, holder: Any, _messages: int) -> object:
    """A consumer was cut off for holding too many unacknowledged messages."""
    return bool(holder.blocked)


@mark(KeyShared, "add")
def key_owner_changed(dispatcher: Any, _newcomer: Any) -> object:
    """Keys got another owner while the old one had messages of them."""
    return bool(dispatcher._holders)


@mark(KeyShared, "_hold")
def key_held_back(*_: Any) -> object:
    """A message waited because its key was with somebody who could not take it."""
    return True


@mark(Topic, "unload")
def unloaded_while_sending(topic: Any) -> object:
    """A topic was unloaded with messages on their way to the disk."""
    return any(producer.pending for producer in topic.producers.by_name.values())


@mark(Topic, "_roll")
def ledger_rolled(*_: Any) -> object:
    """A ledger was full and another one begun."""
    return True


@mark(BrokerNode, "kill")
def restarted_with_loss(node: Any, keep_unsynced: bool, _silently: bool) -> object:
    """A broker died with a write under way, and the write was lost."""
    return node._writing is not None and not keep_unsynced


@mark(BrokerNode, "kill")
def stored_and_never_said(node: Any, keep_unsynced: bool, _silently: bool) -> object:
    """A broker died with a write under way that had reached the disk; nobody was told."""
    return node._writing is not None and keep_unsynced


@mark(World, "count_fault")
def clock_step_while_sending(world: Any, name: str) -> object:
    """The wall clock was set while messages were unconfirmed."""
    return name == "wall_clock_set" and any(each.pending for each in world.model.producers.values())
