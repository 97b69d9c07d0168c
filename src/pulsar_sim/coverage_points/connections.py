"""Marks of the way to the broker, and of connections."""

from typing import Any

from pulsar_sansio.broker.serving.connection import Connection as BrokerConnection
from pulsar_sansio.broker.serving.keep_alive import KeepAlive
from pulsar_sansio.client.attaching import attachment_states as states
from pulsar_sansio.client.attaching.attachment import Attachment
from pulsar_sansio.client.connecting.connection import MAX_IDLE, Connection
from pulsar_sansio.client.connecting.requests import Requests
from pulsar_sansio.client.lookup.binary_lookup import BinaryLookup, LookupResponse
from pulsar_sansio.client.lookup.lookup import Lookup
from pulsar_sansio.core.buffers import ReceiveBuffer
from pulsar_sansio.model.errors import BrokerError, ConnectionLost, FrameError, TimedOut

from .coverage_point import coverage_point


@coverage_point(BinaryLookup, "_answered")
def redirect_followed(lookup: Any, question: Any, _connection: Any, answer: Any) -> object:
    """A lookup was sent on to another broker."""
    limit = lookup._services.config.max_lookup_redirects
    return bool(answer.response == LookupResponse.Redirect and question.redirects < limit)


@coverage_point(BinaryLookup, "_answered")
def redirect_limit_hit(lookup: Any, question: Any, _connection: Any, answer: Any) -> object:
    """Brokers sent a lookup to each other until the client had enough."""
    limit = lookup._services.config.max_lookup_redirects
    return bool(answer.response == LookupResponse.Redirect and question.redirects >= limit)


@coverage_point(BinaryLookup, "_refusal")
def lookup_refused(*_: Any) -> object:
    """A broker refused a lookup."""
    return True


@coverage_point(Lookup, "find")
def lookup_shared(lookup: Any, topic: Any, *_: Any) -> object:
    """Two asked for the same topic, and one lookup answered both."""
    return (topic, None) in lookup._finding


@coverage_point(Attachment, "_attempt_failed")
def lookup_retried(attachment: Any, _error: Any) -> object:
    """A lookup failed, and is made again after a wait."""
    return isinstance(attachment.state, states.LookingUp)


@coverage_point(Attachment, "_creation_timed_out")
def creation_given_up(*_: Any) -> object:
    """A producer or consumer never got ready within the operation timeout, and failed."""
    return True


@coverage_point(Attachment, "_refused")
def opening_refused(_attachment: Any, error: Any) -> object:
    """PRODUCER or SUBSCRIBE was refused with a code."""
    return isinstance(error, BrokerError)


@coverage_point(Attachment, "_refused")
def opening_timed_out(_attachment: Any, error: Any) -> object:
    """PRODUCER or SUBSCRIBE was not answered in time; the broker may have opened it after all."""
    return isinstance(error, TimedOut)


@coverage_point(Attachment, "_refused")
def lost_while_opening(_attachment: Any, error: Any) -> object:
    """The connection died between PRODUCER or SUBSCRIBE and the answer."""
    return isinstance(error, ConnectionLost)


@coverage_point(Attachment, "_opened")
def opened_after_another_failed(attachment: Any, _reply: Any) -> object:
    """One of several could not be opened, and what was on its way for this one was waited for."""
    return isinstance(attachment.state, states.Leaving)


@coverage_point(Attachment, "closed_by_broker")
def unloaded_while_opening(attachment: Any, *_: Any) -> object:
    """The broker closed what it had not yet said to be open."""
    return isinstance(attachment.state, states.Opening)


@coverage_point(Attachment, "closed_by_broker")
def unloaded_while_closing(attachment: Any, *_: Any) -> object:
    """Client and broker closed the same producer or consumer at the same time."""
    return isinstance(attachment.state, states.Closing)


@coverage_point(Attachment, "closed_by_broker")
def assigned_broker(_attachment: Any, _connection: Any, assigned_url: str | None, _cause: Any) -> object:
    """The broker closed a producer or consumer and named the broker to go to."""
    return assigned_url is not None


@coverage_point(Attachment, "_back_off")
def lost_again_before_attached(attachment: Any, _cause: Any) -> object:
    """On the way back, something failed again."""
    return attachment.was_attached and not isinstance(attachment.state, states.Attached)


@coverage_point(Attachment, "fail")
def ended_by_send_error(*_: Any) -> object:
    """The broker said of a message that this producer is fenced, or its topic terminated."""
    return True


# --- connections ----------------------------------------------------------------------------------------


@coverage_point(Connection, "_keepalive")
def keepalive_timeout(connection: Any) -> object:
    """A PING was not answered; the client ended the connection."""
    return not connection._has_received


@coverage_point(Connection, "_handshake_timed_out")
def handshake_timeout(*_: Any) -> object:
    """No connection, or no answer to CONNECT, in time."""
    return True


@coverage_point(Connection, "_is_idle_for_too_long")
def idle_connection_ended(connection: Any) -> object:
    """The client closed a connection that was idle."""
    if connection.used or connection.producers or connection.consumers or connection.pending:
        return False
    since = connection._idle_since
    return since is not None and connection._context.now - since >= MAX_IDLE


@coverage_point(Connection, "count_rejection")
def too_many_rejections(connection: Any) -> object:
    """The broker rejected as many lookups on one connection as make the client leave it."""
    return bool(connection._rejections >= connection._services.config.max_rejected_requests)


@coverage_point(Connection, "close")
def poisoned_connection(_connection: Any, cause: Any, **_: Any) -> object:
    """The broker sent bytes that are no frame; the client ended that one connection."""
    return isinstance(cause, FrameError)


@coverage_point(ReceiveBuffer, "clear")
def frame_in_pieces(buffer: Any) -> object:
    """A frame arrived in more than one piece."""
    return len(buffer._pieces) > 1


@coverage_point(Requests, "reply")
def answer_to_nothing(_requests: Any, connection: Any, command: Any) -> object:
    """An answer came to a request that had been given up, or never made."""
    return command.request_id not in connection.pending


@coverage_point(KeepAlive, "_due")
def broker_keepalive_timeout(keep_alive: Any) -> object:
    """A client did not answer a PING; the broker ended the connection."""
    return keep_alive.awaited and keep_alive._connection.reading


@coverage_point(BrokerConnection, "check_liveness")
def rival_probed(*_: Any) -> object:
    """A peer claimed the name or rank of another, and the broker checked that the other is alive."""
    return True


@coverage_point(KeepAlive, "_probe_due")
def dead_rival_found(*_: Any) -> object:
    """The one in the way did not answer, and made room."""
    return True
