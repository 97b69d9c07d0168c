"""`Attachment`: finds the broker of a producer or consumer, opens there, and reconnects after a loss.

An attachment owns the partition check, the lookup, the connection, PRODUCER or SUBSCRIBE, the backoff, and
CLOSE. The owner (`AttachmentOwner`) decides what is sent or delivered while attached.

`attachment_states` has the states and the moves between them. The first attempt to become attached and
positioned has a deadline (rule PROD-07); later attempts have none.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.backoff import Backoff
from ...core.callbacks import ignore
from ...model.errors import NotSupported, PulsarError, RemoteProtocolError, TimedOut
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ..connecting.connection import Connection
from ..connecting.refusal_policy import Decision, decide, not_ready
from ..connecting.services import Services
from ..outputs import Retrying
from . import attachment_states as states
from .attachment_owner import AttachmentOwner
from .attachment_states import TRANSITIONS, AttachmentInput, AttachmentState
from .redirection import Redirection

if TYPE_CHECKING:
    pass


class Attachment:
    """Connects one producer or consumer to its broker.

    `mandatory_stop`: nanoseconds after the first backoff at which one attempt is always made; 0 for none
    (rule HAND-07). `ended(handle, error)`: called at the end in place of `Services.ended`.
    """

    def __init__(
        self,
        services: Services,
        topic: TopicName,
        owner: AttachmentOwner,
        *,
        mandatory_stop: int = 0,
        ended: Callable[[int, PulsarError | None], None] | None = None,
    ) -> None:
        context = services.context
        self.state: AttachmentState = states.Idle()
        self.was_attached = False
        self.on_partitioned: Callable[[int], None] | None = None
        """Called with the number of partitions when the topic is partitioned, as the attachment's last act.
        When None, the attachment of a partitioned topic fails."""
        self._ended = ended or services.ended
        self._context = context
        self._services = services
        self._topic = topic
        self._owner = owner
        self._not_partitioned = False
        self.redirection = Redirection(services)
        durations = services.durations
        self._backoff = Backoff(durations.initial_backoff, durations.max_backoff, context.rng, mandatory_stop)
        self._retry_at = context.deadlines.slot(self._retry)
        self._give_up_at = context.deadlines.slot(self._creation_timed_out)
        self.last_error: PulsarError | None = None
        """The cause of the last loss or failed attempt; None while attached."""
        self.since = self.down_since = context.now
        """The time of the last change of `state`, and of the last loss (or of construction)."""

    # --- commands ---

    def start(self) -> None:
        """Start with the partition check. Call once."""
        self._give_up_at.set(self._context.now + self._services.durations.operation_timeout)
        self._check_partitions(AttachmentInput.START)

    def start_as_partition(self, give_up_at: int | None) -> None:
        """Start with the lookup, because the topic is a partition. Call once.

        Opening fails at `give_up_at`; when None, after one operation timeout from now.
        """
        self._give_up_at.set(give_up_at or self._context.now + self._services.durations.operation_timeout)
        self._partitions_known(0)

    @property
    def gives_up_at(self) -> int | None:
        """The time at which opening fails.

        None once the owner is positioned, or while the broker queues the producer for exclusive access.
        """
        return self._give_up_at.when

    @property
    def asked(self) -> Address | None:
        """The address to ask for the topic; None when a connection to that address is ready."""
        address = self.redirection.cluster or self._services.addresses.service_address
        return None if self._services.links.is_ready(address) else address

    @property
    def next_attempt_at(self) -> int | None:
        """The time of the next attempt; None unless the attachment is backing off."""
        return self._retry_at.when

    def close(self, once_answered: bool = False) -> None:
        """Close. The owner's `on_closed` follows, now or when the broker has answered.

        `once_answered`: a first opening first waits for the broker's answer or the operation timeout (rule
        PART-04), because the application may reopen at once under the name in use. A broker confirms CLOSE
        of a producer that is still opening, and removes that producer silently once opened.
        """
        match self.state:
            case states.Attached(connection):
                self._send_close(connection)
            case states.Opening(connection, request) if once_answered and self._give_up_at.when is not None:
                self._move(AttachmentInput.LEAVE, states.Leaving(connection, request))
            case states.Opening(connection, request_id):
                self._services.requests.cancel(connection, request_id)
                self._send_close(connection)
            case states.Closing() | states.Closed() | states.Failed():
                pass
            case _:
                self.end()

    def end(self) -> None:
        """Close without a command: the broker knows already (UNSUBSCRIBE), or no broker is involved."""
        self._depart(AttachmentInput.CLOSE, states.Closed())
        self._over()
        self._owner.on_closed()
        self._ended(self._owner.handle, None)

    def fail(self, error: PulsarError) -> None:
        """Fail permanently because the broker refused a message (topic terminated, producer fenced), or
        before the start because the owner cannot be opened.

        While closing, do nothing: the close goes on.
        """
        if TRANSITIONS.allows(self.state, AttachmentInput.GIVE_UP):
            self._give_up(error)

    def give_up(self, error: PulsarError) -> None:
        """Fail permanently because of a request's outcome, and send CLOSE in case the broker has the owner
        open."""
        if isinstance(self.state, states.Attached):
            self._close_without_waiting(self.state.connection)
        self.fail(error)

    def position_failed(self, error: PulsarError) -> None:
        """The owner is attached but could not reach its start position.

        A first opening fails. After that, the failure is retried by the rules for a refused SUBSCRIBE.
        """
        state = self.state
        was_ready = self._give_up_at.when is None
        if was_ready and isinstance(state, states.Attached) and decide(error, True) is Decision.RETRY:
            self._close_without_waiting(state.connection)
            self._detached(error)
            self._back_off(error)
        else:
            self.give_up(error)

    # --- connecting ---

    def _check_partitions(self, event: AttachmentInput) -> None:
        state = states.CheckingPartitions()
        self._move(event, state)
        state.query = self._services.lookup.partitions(
            self._topic, self._partitions_known, self._attempt_failed
        )

    def _partitions_known(self, partitions: int) -> None:
        if partitions > 0 and self.on_partitioned is not None:
            self._depart(AttachmentInput.PARTITIONED, states.Closed())
            self.on_partitioned(partitions)
            self._over()
            return
        if partitions > 0:
            first = self._topic.partition_name(0)
            why = f"topic {self._topic} has {partitions} partitions, and here it has to be one without"
            self._give_up(NotSupported(f"{why}; use one partition by its name, {first} for the first"))
            return
        self._not_partitioned = True
        self._look_up(AttachmentInput.NOT_PARTITIONED)

    def _look_up(self, event: AttachmentInput) -> None:
        state = states.LookingUp()
        self._move(event, state)
        state.query = self._services.lookup.find(
            self._topic, self._found, self._attempt_failed, self.redirection.cluster
        )

    def _found(self, logical: Address, physical: Address) -> None:
        self._connect(AttachmentInput.FOUND, logical, physical)

    def _connect(self, event: AttachmentInput, logical: Address, physical: Address) -> None:
        state = states.Connecting()
        self._depart(event, state)
        state.waiter = self._services.pool.get(logical, physical, self._connected, self._attempt_failed)

    def _connected(self, connection: Connection) -> None:
        state = self.state
        assert isinstance(state, states.Connecting)
        proceed = partial(self._open_on, connection)
        state.question = self._owner.ask_first(connection, proceed, self._attempt_failed)
        if state.question is None:
            proceed()

    def _open_on(self, connection: Connection) -> None:
        owner = self._owner
        state = states.Opening(connection, -1)
        self._move(AttachmentInput.CONNECTED, state)
        # Register before the command leaves, so that a loss in between reaches the owner (HAND-11).
        connection.register(owner)
        state.request_id = self._services.requests.send(
            connection,
            lambda request_id: owner.open_command(request_id, connection),
            self._opened,
            self._refused,
            reply=owner.open_reply,
        )

    def _opened(self, reply: Any) -> None:
        state = self.state
        assert isinstance(state, states.Opening)
        connection = state.connection
        if isinstance(state, states.Leaving):
            self._send_close(connection)
            return
        if self._owner.has_to_wait(reply):
            self._queue(state)
            return
        attached = states.Attached(connection)
        self._move(AttachmentInput.OPENED, attached)
        self._owner.on_opened(connection, reply)
        if self.state is attached:  # else the answer was invalid, and the owner closed the connection
            self.was_attached = True
            if self._owner.positioned:
                self.on_positioned()

    def on_positioned(self) -> None:
        """The owner has reached its start position (`AttachmentOwner.positioned`)."""
        self._backoff.reset()
        self.last_error = None
        self._give_up_at.clear()

    def _queue(self, state: states.Opening) -> None:
        """Wait without a limit until the broker grants exclusive access."""
        if not isinstance(state, states.Queued):
            self._move(AttachmentInput.QUEUED, states.Queued(state.connection, state.request_id))
            self._give_up_at.clear()
        self._services.requests.wait_on(
            state.connection, state.request_id, self._opened, self._refused, reply=self._owner.open_reply
        )

    # --- failures ---

    def _refused(self, error: PulsarError) -> None:
        """PRODUCER or SUBSCRIBE was refused, timed out, or its connection died."""
        state = self.state
        assert isinstance(state, states.Opening)
        if isinstance(error, TimedOut):
            self._close_without_waiting(state.connection)
        if isinstance(state, states.Leaving):
            self.end()
            return
        decision = self._owner.on_open_refused(error)
        if decision is Decision.DEFAULT:
            decision = decide(error, self.was_attached)
        if decision is Decision.FAIL:
            self._give_up(error)
        else:
            self._back_off(error)

    def _attempt_failed(self, error: PulsarError) -> None:
        """The lookup or the connection failed. After a first attachment, always retry (HAND-06)."""
        if not self.was_attached and decide(error, False) is Decision.FAIL:
            self._give_up(error)
        else:
            self._back_off(error)

    def _back_off(self, cause: PulsarError) -> None:
        lost = isinstance(self.state, states.Attached)
        self._depart(AttachmentInput.RETRY, states.BackingOff(cause))
        self.redirection.waited()
        now = self._context.now
        wait = self._backoff.next(now)
        self._retry_at.set(now + wait)
        self._report_retry(cause, wait, lost)

    def _report_retry(self, cause: PulsarError, wait: int, lost: bool) -> None:
        self.last_error = cause
        self._context.emit(Retrying(self._owner.handle, self._owner.described, cause, wait, lost))

    def _retry(self) -> None:
        if self._not_partitioned:
            self._look_up(AttachmentInput.LOOK_UP_AGAIN)
        else:
            self._check_partitions(AttachmentInput.CHECK_AGAIN)

    def _creation_timed_out(self) -> None:
        """The first opening did not succeed within the operation timeout (rules PROD-07, PROD-25)."""
        if isinstance(self.state, states.Opening):
            self._services.requests.cancel(self.state.connection, self.state.request_id)
            self._close_without_waiting(self.state.connection)
        if isinstance(self.state, states.Leaving):
            self.end()
            return
        seconds = self._services.config.operation_timeout
        self.give_up(not_ready(f"{self._owner.kind} on {self._topic}", seconds, self.last_error))

    def _give_up(self, error: PulsarError) -> None:
        self._depart(AttachmentInput.GIVE_UP, states.Failed(error))
        self._over()
        self._owner.on_failed(error)
        self._ended(self._owner.handle, error)

    def lost(self, connection: Connection, cause: PulsarError) -> None:
        """The connection died. Ignored unless the attachment uses that connection (HAND-08).

        Opening and closing learn of the loss by their requests, which fail.
        """
        if isinstance(self.state, states.Attached) and self.state.connection is connection:
            self._detached(cause)
            self._back_off(cause)

    def migrated(self, url: str) -> None:
        """TOPIC_MIGRATED came; the next attempt asks the named cluster (`Redirection`)."""
        self.redirection.migrated(url)

    def closed_by_broker(self, connection: Connection, assigned_url: str | None, cause: PulsarError) -> None:
        """CLOSE_PRODUCER or CLOSE_CONSUMER came from the broker (GAP-37).

        Reconnect at once to the broker named in the command, else after a backoff and a new lookup.
        """
        lost = isinstance(self.state, states.Attached)
        match self.state:
            case states.Attached():
                self._detached(cause)
            case states.Leaving():
                self.end()
                return
            case states.Opening(_, request_id):
                self._services.requests.cancel(connection, request_id)
            case states.Closing(_, request_id):
                self._services.requests.cancel(connection, request_id)
                self._closed(None)
                return
            case _:
                raise AssertionError("registered with a connection that it does not use")
        try:
            route = self.redirection.assigned(assigned_url, connection)
        except RemoteProtocolError as error:
            self._back_off(error)  # the next lookup finds the broker instead
            return
        if route is None:
            self._back_off(cause)
        else:
            self._connect(AttachmentInput.ASSIGNED, *route)
            self._report_retry(cause, 0, lost)

    def _detached(self, cause: PulsarError) -> None:
        self.down_since = self._context.now
        self._owner.on_detached(cause)

    # --- closing ---

    def _send_close(self, connection: Connection) -> None:
        state = states.Closing(connection, -1)
        self._move(AttachmentInput.SEND_CLOSE, state)
        self._over()
        state.request_id = self._services.requests.send(
            connection, self._owner.close_command, self._closed, self._closed
        )

    def _closed(self, _answer: object) -> None:
        """Closed, by any answer, a timeout, or the loss of the connection (PROD-53, CONS-51)."""
        self._depart(AttachmentInput.ANSWERED, states.Closed())
        self._owner.on_closed()
        self._ended(self._owner.handle, None)

    def _close_without_waiting(self, connection: Connection) -> None:
        """Send CLOSE in case the broker opened the owner, and ignore the answer."""
        self._services.requests.send(connection, self._owner.close_command, ignore, ignore)

    def _over(self) -> None:
        """Clear both timers."""
        self._retry_at.clear()
        self._give_up_at.clear()

    # --- moving ---

    def _depart(self, event: AttachmentInput, following: AttachmentState) -> None:
        """Enter the next state, after cancelling the requests and registrations of the current state."""
        TRANSITIONS.check(self.state, event, following)
        match self.state:
            case states.CheckingPartitions(query) | states.LookingUp(query) if query is not None:
                query.cancel()
            case states.Connecting(waiter, question):
                if waiter is not None:
                    waiter.cancel()
                if question is not None:
                    question.cancel()
            case states.Opening(connection, request_id) | states.Closing(connection, request_id):
                self._services.requests.cancel(connection, request_id)
                connection.unregister(self._owner)
            case states.Attached(connection):
                connection.unregister(self._owner)
            case _:
                pass
        self.state = following
        self.since = self._context.now

    def _move(self, event: AttachmentInput, following: AttachmentState) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following
        self.since = self._context.now
