"""Bugs of connections: links, keepalive, requests, lookup, attachments, backoff, closing."""

from typing import Any

from pulsar_sansio.client.attaching import attachment as attachment_module
from pulsar_sansio.client.attaching import attachment_states as states
from pulsar_sansio.client.attaching.attachment import Attachment
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.connecting.links import Links
from pulsar_sansio.client.connecting.lookup_queue import LookupQueue
from pulsar_sansio.client.connecting.pool import Pool
from pulsar_sansio.client.connecting.refusal_policy import Decision
from pulsar_sansio.client.connecting.requests import Requests
from pulsar_sansio.client.lookup.binary_lookup import BinaryLookup
from pulsar_sansio.core.backoff import Backoff
from pulsar_sansio.core.buffers import ReceiveBuffer
from pulsar_sansio.model.errors import BrokerError, ConnectionLost
from pulsar_sansio.wire import FrameReader, encode_command, proto

from .planted_bug import Patches, bug, nothing
from .preconditions import general as needs

# --- keepalive -------------------------------------------------------------------------------------------


@bug(
    "BUG-098",
    caught_by=("INV-N5", "INV-N7"),
    needs=[needs.fault("half_open", "silent_to_client", "partition")],
)
def silence_never_noticed(patches: Patches) -> None:
    """The client keeps a silent peer for ever: it counts earlier PINGs of the peer as answers."""

    def keepalive(original: Any, self: Any) -> None:
        self._has_received = True
        original(self)

    patches.around(Connection, "_keepalive", keepalive)


@bug("BUG-098", caught_by=("INV-N7",), needs=[needs.fault("pong_lost")])
def only_pongs_are_signs_of_life(patches: Patches) -> None:
    """The client drops a peer that sends, because none of its commands is a PONG."""

    def receive(original: Any, self: Any, data: bytes) -> None:
        has_received = self._has_received
        original(self, data)
        self._has_received = has_received or self.ponged
        self.ponged = False

    def on_pong(self: Any, command: Any) -> None:
        self.ponged = True

    def opened(original: Any, self: Any) -> None:
        self.ponged = False
        original(self)

    patches.around(Connection, "receive", receive)
    patches.around(Connection, "opened", opened)
    patches.replace(Connection, "_on_pong", on_pong)


@bug("own", caught_by=("INV-N7",))
def dropped_before_it_was_asked(patches: Patches) -> None:
    """The client drops a peer after one interval, before it has sent a PING."""

    def keepalive(original: Any, self: Any) -> None:
        self._has_received = False
        original(self)

    patches.around(Connection, "_keepalive", keepalive)


@bug("own", caught_by=("INV-N7",))
def pings_not_answered(patches: Patches) -> None:
    """The client does not answer a PING with a PONG."""
    patches.replace(Connection, "_on_ping", nothing)


@bug(
    "BUG-052",
    caught_by=("INV-N7", "WIRE-17"),
    needs=[needs.fault("extra_ping"), needs.fault("stall", "slow_reader", "broker_frozen")],
)
def pongs_dropped_by_a_slow_writer(patches: Patches) -> None:
    """The client drops a PONG when the connection has other bytes to write."""

    def on_ping(original: Any, self: Any, command: Any) -> None:
        if not self.unwritten:
            original(self, command)

    patches.around(Connection, "_on_ping", on_ping)


# --- links -----------------------------------------------------------------------------------------------


@bug("BUG-111", caught_by=("INV-N5", "INV-P1", "INV-N11", "INV-L1"), needs=[needs.reconnects])
def dead_connection_reused(patches: Patches) -> None:
    """A dead connection stays in the pool, and the next request for a connection gets it."""

    def ended(original: Any, self: Any, connection: Any, cause: Any, *, already_gone: bool) -> None:
        keys = [key for key, other in self._connections.items() if other is connection]
        original(self, connection, cause, already_gone=already_gone)
        if connection.was_ready:
            for key in keys:
                self._connections[key] = connection
                connection.ready = True

    patches.around(Pool, "ended", ended)


@bug("own", caught_by=("CHECK-01", "INV-N1"))
def connection_used_before_connected(patches: Patches) -> None:
    """The pool provides a connection before the broker has answered CONNECT."""

    def opened(original: Any, self: Any) -> None:
        original(self)
        self.protocol_version = 21
        self._services.pool.became_ready(self)

    patches.around(Connection, "opened", opened)


@bug("own", caught_by=("INV-N11",))
def links_left_open_by_the_close(patches: Patches) -> None:
    """Closing the client does not close its connections."""
    patches.replace(Links, "close_all", nothing)


@bug("own", caught_by=("INV-N9", "INV-N5", "INV-C5", "INV-N7", "INV-C3"))
def rest_of_a_segment_forgotten(patches: Patches) -> None:
    """The client forgets the bytes after the last whole frame of a segment."""

    def hold(original: Any, self: Any, whole: bytes, position: int) -> None:
        original(self, whole, len(whole))

    patches.around(ReceiveBuffer, "hold", hold)


@bug("BUG-112", caught_by=("exception",), needs=[needs.fault("unknown_command")])
def unknown_command_crashes(patches: Patches) -> None:
    """A command of a later version of the protocol crashes the client."""

    def frames(original: Any, self: Any, data: Any) -> Any:
        for frame in original(self, data):
            if frame[1] is None:
                raise KeyError(frame[0])
            yield frame

    patches.around(FrameReader, "frames", frames)


@bug("BUG-112", caught_by=("exception",), needs=[needs.fault("stray_push", "stray_reply")])
def frames_for_closed_handles_crash(patches: Patches) -> None:
    """A close command for a producer or consumer that is gone crashes the client."""

    def closed_by_broker(original: Any, self: Any, owner: Any, command: Any) -> None:
        if owner is None:
            raise KeyError(command)
        original(self, owner, command)

    patches.around(Connection, "_closed_by_broker", closed_by_broker)


# --- requests --------------------------------------------------------------------------------------------


@bug(
    "BUG-108", caught_by=("INV-N5", "INV-P1", "INV-N11", "INV-A3"), needs=[needs.fault("request_unanswered")]
)
def requests_never_time_out(patches: Patches) -> None:
    """A request without an answer waits for ever."""

    def expire(self: Any) -> None:
        self._timeouts.slot.set(self._context.now + 1_000_000_000)

    patches.replace(Requests, "_expire", expire)


@bug("BUG-108", caught_by=("INV-N5", "INV-N1", "INV-N11"), needs=[needs.reconnects])
def requests_survive_their_connection(patches: Patches) -> None:
    """The client does not fail the requests on a connection that died."""
    patches.replace(Requests, "fail_all", nothing)


@bug(
    "BUG-108",
    caught_by=("INV-N1", "INV-N9", "INV-P10", "INV-N2", "CHECK-57", "exception"),
    needs=[needs.fault("stray_reply", "reply_late")],
)
def an_answer_completes_another_request(patches: Patches) -> None:
    """An answer to no pending request completes the oldest one."""

    def reply(original: Any, self: Any, connection: Any, command: Any) -> None:
        if command.request_id not in connection.pending and connection.pending:
            command.request_id = next(iter(connection.pending))
        original(self, connection, command)

    patches.around(Requests, "reply", reply)


@bug("BUG-110", caught_by=("exception", "INV-N1"), needs=[needs.fault("reply_late", "request_unanswered")])
def cancelled_requests_answered(patches: Patches) -> None:
    """A cancelled request still receives its late answer."""
    patches.replace(Requests, "cancel", nothing)


# --- lookup ----------------------------------------------------------------------------------------------


@bug("BUG-101", caught_by=("INV-N8",), needs=[needs.fault("lookup_redirected")])
def authoritative_not_carried_over(patches: Patches) -> None:
    """The lookup after a redirect is not authoritative, although the redirect said so."""

    def step(original: Any, self: Any, question: Any, address: Any) -> None:
        question.authoritative = False
        original(self, question, address)

    patches.around(BinaryLookup, "_step", step)


@bug("BUG-101", caught_by=("INV-N8",), needs=[needs.fault("lookup_redirected_for_ever")])
def redirects_followed_for_ever(patches: Patches) -> None:
    """The client does not count the redirects of a lookup."""

    def step(original: Any, self: Any, question: Any, address: Any) -> None:
        question.redirects = 0
        original(self, question, address)

    patches.around(BinaryLookup, "_step", step)


@bug("own", caught_by=("INV-N5", "INV-P1"))
def lookups_do_not_release_their_turn(patches: Patches) -> None:
    """An answered lookup does not pass its turn on to a waiting lookup."""

    def init(original: Any, self: Any, limit: int) -> None:
        original(self, 2)

    patches.around(LookupQueue, "__init__", init)
    patches.replace(LookupQueue, "answered", nothing)


@bug("BUG-099", caught_by=("INV-N9",), needs=[needs.fault("lookup_refused")])
def a_refused_lookup_ends_the_connection(patches: Patches) -> None:
    """A lookup that the broker refuses for now ends the connection, which other producers and consumers
    share."""

    def count_rejection(self: Any) -> None:
        self.close(ConnectionLost("a lookup was rejected"))

    patches.replace(Connection, "count_rejection", count_rejection)


# --- attachments -----------------------------------------------------------------------------------------


@bug("BUG-094", caught_by=("INV-N5", "INV-P1", "INV-L1"), needs=[needs.reconnects])
def loss_not_noticed(patches: Patches) -> None:
    """A producer or consumer does not notice the death of its connection, and believes that it is still
    attached."""
    patches.replace(Attachment, "lost", nothing)


@bug("BUG-094", caught_by=("INV-P10", "INV-N2", "INV-N5"), needs=[needs.unloads])
def unload_not_noticed(patches: Patches) -> None:
    """A producer or consumer that the broker closed believes that it is still open."""
    patches.replace(Attachment, "closed_by_broker", nothing)


@bug("BUG-094", caught_by=("INV-N5",), needs=[needs.fault("producer_refused", "subscribe_refused")])
def reconnect_forgotten_after_a_refusal(patches: Patches) -> None:
    """When the broker refuses an attempt to reconnect, the client makes no other attempt."""

    def refused(original: Any, self: Any, error: Any) -> None:
        original(self, error)
        if self.was_attached:
            self._retry_at.clear()

    patches.around(Attachment, "_refused", refused)


@bug(
    "BUG-094",
    caught_by=("INV-N5",),
    needs=[needs.detaches, needs.fault("lookup_refused", "connect_refused", "connect_then_reset")],
)
def reconnect_forgotten_after_a_failed_lookup(patches: Patches) -> None:
    """When the lookup or the connection of a reconnect fails, the client makes no other attempt."""

    def attempt_failed(original: Any, self: Any, error: Any) -> None:
        original(self, error)
        if self.was_attached:
            self._retry_at.clear()

    patches.around(Attachment, "_attempt_failed", attempt_failed)


@bug("BUG-094", caught_by=("INV-N5", "INV-C3", "INV-N9"))
def registered_too_late(patches: Patches) -> None:
    """The client registers a producer or consumer too late: after it has processed the bytes that follow the
    broker's confirmation."""
    late: dict[Connection, list[Any]] = {}

    def opened(original: Any, self: Any, reply: Any) -> None:
        state = self.state
        original(self, reply)
        if isinstance(state, states.Opening) and isinstance(self.state, states.Attached):
            state.connection.unregister(self._owner)
            late.setdefault(state.connection, []).append(self._owner)

    def receive(original: Any, self: Any, data: bytes) -> None:
        owners = late.pop(self, [])
        original(self, data)
        for owner in owners:
            if isinstance(owner.attachment.state, states.Attached):
                self.register(owner)

    patches.around(Attachment, "_opened", opened)
    patches.around(Connection, "receive", receive)


@bug("BUG-094", caught_by=("INV-N4", "INV-N5", "exception"), needs=[needs.reconnects])
def reconnect_decided_twice(patches: Patches) -> None:
    """A retry that is due does not end the attempt under way, so that two attempts overlap."""

    def lost(original: Any, self: Any, connection: Any, cause: Any) -> None:
        original(self, connection, cause)
        if self._retry_at.when is not None:
            self._give_up_at.set(self._retry_at.when + 1)

    def creation_timed_out(original: Any, self: Any) -> None:
        if self.was_attached:
            self._retry()
        else:
            original(self)

    patches.around(Attachment, "lost", lost)
    patches.around(Attachment, "_creation_timed_out", creation_timed_out)


@bug(
    "BUG-100",
    caught_by=("INV-N9", "INV-N5", "INV-P1"),
    needs=[needs.detaches, needs.fault("producer_refused", "subscribe_refused")],
)
def retryable_taken_for_fatal(patches: Patches) -> None:
    """An error that says "try again" ends a producer or consumer that was attached before."""

    def decide(original: Any, error: Any, was_attached: bool) -> Any:
        if was_attached and isinstance(error, BrokerError):
            return Decision.FAIL
        return original(error, was_attached)

    patches.around(attachment_module, "decide", decide)


@bug("BUG-095", caught_by=("INV-N4", "INV-N5", "INV-N11"), needs=[needs.fault("opening_abandoned")])
def left_at_the_broker_by_a_close_while_opening(patches: Patches) -> None:
    """A close while PRODUCER or SUBSCRIBE is under way does not tell the broker."""

    def close(original: Any, self: Any, *how: Any) -> None:
        state = self.state
        if isinstance(state, states.Opening):
            self._services.requests.cancel(state.connection, state.request_id)
            self._send_close(state.connection)
            state.connection.unwritten.pop()
            self._services.requests.cancel(state.connection, self.state.request_id)
            self._closed(None)
        else:
            original(self, *how)

    patches.around(Attachment, "close", close)


@bug(
    "BUG-095",
    caught_by=("CHECK-55", "CHECK-23", "INV-N4", "INV-N5"),
    needs=[needs.fault("opened_too_late")],
)
def left_at_the_broker_by_a_timeout(patches: Patches) -> None:
    """An attempt that timed out succeeds later. It leaves a producer or consumer at the broker that no client
    has."""
    patches.replace(Attachment, "_close_without_waiting", nothing)


@bug(
    "BUG-096",
    caught_by=("CHECK-55", "CHECK-23", "INV-N4"),
    needs=[needs.unloads],
)
def attached_a_second_time_while_attached(patches: Patches) -> None:
    """The end of any connection makes all producers and consumers reconnect. Those attached to another
    connection do not leave it first."""

    def lost(original: Any, self: Any, connection: Any, cause: Any) -> None:
        if isinstance(self.state, states.Attached):
            original(self, self.state.connection, cause)

    def ended(original: Any, self: Any, connection: Any, cause: Any, *, already_gone: bool) -> None:
        original(self, connection, cause, already_gone=already_gone)
        for other in list(self._connections.values()):
            for owner in [*other.producers.values(), *other.consumers.values()]:
                owner.attachment.lost(connection, cause)

    patches.around(Attachment, "lost", lost)
    patches.around(Pool, "ended", ended)


@bug("BUG-102", caught_by=("INV-N6",), needs=[needs.fault("connect_refused", "broker_killed")])
def no_backoff(patches: Patches) -> None:
    """Attempts follow each other without a wait."""

    def following(self: Any, now: int) -> int:
        return 0

    patches.replace(Backoff, "next", following)


@bug("BUG-102", caught_by=("INV-N6",), needs=[needs.fault("connect_refused", "broker_killed")])
def backoff_reset_by_every_attempt(patches: Patches) -> None:
    """The wait does not grow, because every attempt counts as a success."""

    def following(original: Any, self: Any, now: int) -> int:
        wait = int(original(self, now))
        self.reset()
        return wait // 20

    patches.around(Backoff, "next", following)


# --- closing ---------------------------------------------------------------------------------------------


@bug("BUG-109", caught_by=("INV-N5", "INV-N11", "INV-L1"), needs=[needs.reconnects])
def close_hangs_when_the_connection_dies(patches: Patches) -> None:
    """A close whose answer is lost with the connection never ends."""

    def closed(original: Any, self: Any, answer: object) -> None:
        if not isinstance(answer, Exception):
            original(self, answer)

    patches.around(Attachment, "_closed", closed)


@bug("BUG-109", caught_by=("INV-N5", "INV-N11", "INV-N4"), needs=[needs.detaches])
def close_hangs_during_backoff(patches: Patches) -> None:
    """Closing a producer or consumer that waits for its next attempt to connect does nothing."""

    def close(original: Any, self: Any, *how: Any) -> None:
        if isinstance(self.state, (states.Attached, states.Opening, states.Closing)) or not self.was_attached:
            original(self, *how)

    patches.around(Attachment, "close", close)


@bug("own", caught_by=("CHECK-61", "INV-N4"))
def consumer_closed_as_a_producer(patches: Patches) -> None:
    """The client sends CLOSE_PRODUCER for consumers, too."""

    def send_close(original: Any, self: Any, connection: Any) -> None:
        owner = self._owner

        def close_command(request_id: int) -> bytes:
            command = proto.CommandCloseProducer(producer_id=owner.wire_id, request_id=request_id)
            return encode_command(proto.BaseCommand.CLOSE_PRODUCER, command)

        owner.close_command = close_command
        original(self, connection)

    patches.around(Attachment, "_send_close", send_close)
