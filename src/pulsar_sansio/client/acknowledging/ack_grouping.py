"""`AckGrouping`: when acknowledgements are sent, and whether they arrived.

Acknowledgements are grouped by time and by number (rules ACK-12, ACK-15). They wait while there is no
connection, and go first on the next one (ACK-16, ACK-17): before any permit, so that the broker does not
redeliver acknowledged messages. A subscription that is not durable begins anew with each connection; there,
waiting acknowledgements are dropped.

With receipts every ACK asks for an answer, and an ACK that is lost with its connection waits again. A
confirmed flush is answered when the broker has confirmed everything acknowledged so far. Without receipts,
the ACKs of such a flush still ask for an answer. The broker handles the commands of a connection in order, so
that answer also covers ACKs sent before on the same connection.

`ack_tracker` decides the content of an ACK.
"""

from ...model.config import nanoseconds_of
from ...model.errors import ConnectionLost, PulsarError, broker_error
from ...model.message_id import EntryPosition
from ...wire import CUMULATIVE, INDIVIDUAL, encode_ack, proto
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..outputs import RequestDone, RequestFailed
from .ack_tracker import AckContent, AckTracker
from .taken_messages import AckId

SEVERAL_IDS_VERSION = 12
"""Protocol version from which an ACK may carry several ids (ACK-10)."""

RECEIPT_VERSION = 17
"""Protocol version from which the broker answers an ACK."""

_ACK_RESPONSE = proto.BaseCommand.ACK_RESPONSE


class UnansweredAck:
    """An ACK that asks for an answer and has none yet."""

    __slots__ = ("ack", "after_flush", "connection", "request_id")

    def __init__(self, ack: AckContent, connection: Connection, after_flush: bool) -> None:
        self.ack = ack
        self.connection = connection
        self.request_id = -1
        self.after_flush = after_flush
        """True when the ACK has content acknowledged after the last flush request."""


class AckFlush:
    """A flush request that is not answered yet."""

    __slots__ = ("awaited", "request", "waiting")

    def __init__(self, request: int) -> None:
        self.request = request
        self.awaited: set[UnansweredAck] = set()
        """ACKs whose answers the flush waits for."""
        self.waiting = False
        """True when some acknowledgements of the flush have to be sent (again) on the next connection."""


class AckGrouping:
    """Acknowledgements of one consumer on their way to the broker."""

    __slots__ = (
        "_after_flush",
        "_connection",
        "_context",
        "_durable",
        "_emit",
        "_flushes",
        "_group_size",
        "_group_time",
        "_last_sent",
        "_receipts",
        "_refusal",
        "_requests",
        "_slot",
        "_tracker",
        "_unconfirmed",
        "_wanted",
        "_wire_id",
        "flush_at",
        "ids_refused",
        "ids_sent",
    )

    def __init__(self, services: ConsumerServices, tracker: AckTracker) -> None:
        spec = services.spec
        self._context = context = services.context
        self._emit = services.emit
        self._requests = services.client.requests
        self._wire_id = services.wire_id
        self._tracker = tracker
        self._wanted = services.topic.persistent
        """False when the broker has no use for acknowledgements of the topic (ACK-13)."""
        self._durable = spec.durable
        self._receipts = spec.acknowledgement_receipts
        self._group_time = nanoseconds_of(spec.acknowledgement_group_time)
        self._group_size = spec.acknowledgement_group_size
        self._slot = context.deadlines.slot(self.flush)
        self.flush_at = 0
        """While fewer ids than this wait, another one changes nothing, because the timer is running."""
        self.ids_sent = 0
        self.ids_refused = 0
        self._connection: Connection | None = None
        self._unconfirmed: dict[UnansweredAck, None] = {}
        self._last_sent: AckContent | None = None
        """The last ACK on this connection that asked for no answer, until a later one is answered."""
        self._flushes: list[AckFlush] = []
        self._after_flush = False
        """True when something waits that was acknowledged after the last flush request."""
        self._refusal: PulsarError | None = None
        """The reason why the broker refused an ACK that no flush waited for; the next flush fails with it."""

    # --- what waits ------------------------------------------------------------------------------

    def something_waits(self) -> None:
        """Send the tracker's new acknowledgements now, or start the timer."""
        tracker = self._tracker
        self._after_flush = True
        if not self._wanted:
            tracker.discard_waiting()
        elif self._connection is None:
            pass
        elif self._group_time == 0 or tracker.waiting >= self._group_size:
            self.flush()
        elif not self.flush_at:
            self.flush_at = self._group_size
            self._slot.set(self._context.now + self._group_time)

    def flush(self) -> None:
        """Send the waiting acknowledgements, if there is a connection."""
        self._stop_timer()
        connection = self._connection
        if connection is not None:
            self._send_waiting(connection, self._receipts)

    def _stop_timer(self) -> None:
        self._slot.clear()
        self.flush_at = 0

    def discard(self, position: EntryPosition, validation_error: int) -> None:
        """Tell the broker, at once, that this entry cannot be used (CONS-29)."""
        connection = self._connection
        assert connection is not None  # the entry has just arrived over it
        connection.write(encode_ack(self._wire_id, INDIVIDUAL, [(*position, None)], validation_error))

    # --- attachment ------------------------------------------------------------------------------

    def attach(self, connection: Connection) -> None:
        """Send the waiting acknowledgements over the new connection, before any message can arrive."""
        self._connection = connection
        if not self._durable:
            self._tracker.discard_waiting()
        waiting = [flush for flush in self._flushes if flush.waiting]
        sent = self._send_waiting(connection, self._receipts or bool(waiting))
        for flush in waiting:
            flush.waiting = False
            flush.awaited.update(sent)
            self._settle(flush)

    def leave_cluster(self) -> None:
        """Drop the waiting acknowledgements: the next connection leads to another cluster. A broker reports
        the migration when it has all acknowledgements, and positions name other messages in the other
        cluster."""
        self._tracker.leave_cluster()
        for flush in [flush for flush in self._flushes if flush.waiting]:
            flush.waiting = False
            self._settle(flush)

    def detach(self, cause: PulsarError) -> None:
        """Let unanswered ACKs wait again: the connection is lost, or the broker closed the consumer."""
        for sent in list(self._unconfirmed):
            self._requests.cancel(sent.connection, sent.request_id)
            self._not_confirmed(sent, cause)
        self._connection = None
        self._tracker.forget_sent()
        self._last_sent = None
        self._stop_timer()
        if not self._durable:
            self._tracker.discard_waiting()

    def drop(self, error: PulsarError | None = None) -> None:
        """Drop all acknowledgements, waiting or unanswered: the subscription was moved, and flushes are done.
        `error`: the subscription may have been moved; flushes fail with it, because unconfirmed messages are
        redelivered then."""
        self._stop_timer()
        self._forget_unconfirmed()
        self._tracker.discard_waiting()
        self._tracker.forget_sent()
        self._tracker.moved()
        self._last_sent = None
        if error is not None:
            self._fail_flushes(error)
        for flush in list(self._flushes):
            flush.awaited.clear()
            flush.waiting = False
            self._settle(flush)

    def end(self, error: PulsarError) -> None:
        """Fail every flush: the consumer has ended."""
        self._connection = None
        self._stop_timer()
        self._forget_unconfirmed()
        self._tracker.discard_waiting()
        self._fail_flushes(error)

    def _forget_unconfirmed(self) -> None:
        """Ignore the answers to all unanswered ACKs."""
        for sent in self._unconfirmed:
            self._requests.cancel(sent.connection, sent.request_id)
        self._unconfirmed.clear()

    # --- confirmation ----------------------------------------------------------------------------

    def flush_confirmed(self, request: int) -> None:
        """Send the waiting acknowledgements; emit `RequestDone(request)` when the broker has confirmed all of
        them so far."""
        if self._refusal is not None:
            self._emit(RequestFailed(request, self._refusal))
            self._refusal = None
            return
        flush = AckFlush(request)
        self._after_flush = False
        connection = self._connection
        if connection is not None:
            self._stop_timer()
            self._send_waiting(connection, True)
            if self._last_sent is not None:
                self._send_again(connection, self._last_sent)
            flush.awaited.update(self._unconfirmed)
        elif self._tracker.waiting:
            flush.waiting = True
        self._flushes.append(flush)
        self._settle(flush)

    def forget(self, request: int) -> None:
        """Drop a flush request that was cancelled."""
        self._flushes = [flush for flush in self._flushes if flush.request != request]

    def _settle(self, flush: AckFlush) -> None:
        if not flush.awaited and not flush.waiting:
            self._flushes.remove(flush)
            self._emit(RequestDone(flush.request, None))

    def _fail_flushes(self, error: PulsarError) -> None:
        for flush in self._flushes:
            self._fail(flush, error)
        self._flushes.clear()

    def _fail(self, flush: AckFlush, error: PulsarError) -> None:
        self._emit(RequestFailed(flush.request, error))

    def _send_again(self, connection: Connection, ack: AckContent) -> None:
        """Send the last id of an ACK once more, to get an answer. Repeating it is harmless. Without an answer
        all of the ACK may be lost, and all of it waits again: a last chunk without the others makes no
        message."""
        self._ask(connection, ack, ack.ids[-1:])

    def _confirmed(self, sent: UnansweredAck) -> None:
        del self._unconfirmed[sent]
        for flush in list(self._flushes):
            flush.awaited.discard(sent)
            self._settle(flush)

    def _not_confirmed(self, sent: UnansweredAck, error: PulsarError) -> None:
        del self._unconfirmed[sent]
        flushes = [flush for flush in self._flushes if sent in flush.awaited]
        if isinstance(error, ConnectionLost) and self._durable:
            self._tracker.put_back(sent.ack)
            self._after_flush = self._after_flush or sent.after_flush
            for flush in flushes:
                flush.awaited.discard(sent)
                flush.waiting = True
            return
        self.ids_refused += len(sent.ack.ids)
        # The application may acknowledge a refused position again, so it no longer counts as sent.
        self._tracker.forget_sent()
        for flush in flushes:
            self._flushes.remove(flush)
            self._fail(flush, error)
        if (not flushes or sent.after_flush) and not isinstance(error, ConnectionLost):
            self._refusal = error

    # --- frames ----------------------------------------------------------------------------------

    def _send_waiting(self, connection: Connection, confirm: bool) -> list[UnansweredAck]:
        """Send everything that waits; return the ACKs that will be answered."""
        sent: list[UnansweredAck] = []
        single = connection.protocol_version < SEVERAL_IDS_VERSION
        for ack in self._tracker.drain():
            for part in _one_by_one(ack) if single else (ack,):
                answered = self._send(connection, part, confirm)
                if answered is not None:
                    sent.append(answered)
        self._after_flush = False
        return sent

    def _send(self, connection: Connection, ack: AckContent, confirm: bool) -> UnansweredAck | None:
        if not confirm or connection.protocol_version < RECEIPT_VERSION:
            kind = INDIVIDUAL if ack.position is None else CUMULATIVE
            self.ids_sent += len(ack.ids)
            connection.write(encode_ack(self._wire_id, kind, ack.ids))
            if connection.protocol_version >= RECEIPT_VERSION:
                self._last_sent = ack
            return None
        return self._ask(connection, ack, ack.ids)

    def _ask(self, connection: Connection, ack: AckContent, ids: list[AckId]) -> UnansweredAck:
        """Send these ids of an ACK and ask for an answer; if the connection is lost first, the whole ACK
        waits again."""
        kind = INDIVIDUAL if ack.position is None else CUMULATIVE
        self.ids_sent += len(ids)
        sent = UnansweredAck(ack, connection, self._after_flush)
        self._unconfirmed[sent] = None
        self._last_sent = None
        sent.request_id = self._requests.send(
            connection,
            lambda request_id: encode_ack(self._wire_id, kind, ids, None, request_id),
            lambda reply: self._answered(sent, reply),
            lambda error: self._not_confirmed(sent, error),
            reply=_ACK_RESPONSE,
        )
        return sent

    def _answered(self, sent: UnansweredAck, reply: proto.CommandAckResponse) -> None:
        if reply.HasField("error"):
            self._not_confirmed(sent, broker_error(reply.error, reply.message))
        else:
            self._confirmed(sent)


def _one_by_one(ack: AckContent) -> list[AckContent]:
    records = {record.position: record for record in ack.records}
    return [
        AckContent(
            ack.position, [id_], [records[id_[:2]]] if id_[2] is not None and id_[:2] in records else []
        )
        for id_ in ack.ids
    ]
