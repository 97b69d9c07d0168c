"""`Attachment`: how a producer or a consumer finds its broker, opens there, loses it and comes back.

Shared by both (rules HAND-01 to HAND-14). It owns the way: partition check,
lookup, connection, PRODUCER or SUBSCRIBE, backoff, CLOSE. It refuses to know what is sent or delivered once
attached; that is its owner's (`AttachmentOwner`).

                    ┌────────────────────────── backing off ◄─────────────────────┐ any failure, any loss
                    ▼                                                             │
    idle ─► checking partitions ─► looking up ─► connecting ─► opening ─► attached ┤
                                                     ▲                            │
                                                     └──── assigned by the broker ┘

From everywhere there is a way to `Closed` (the user's; `Leaving` is on it, for a part of a whole that has
failed) and, while something may still fail for good, to `Failed`. Until it was attached once, and in its
place, there is a deadline (rule PROD-07); afterwards it tries for ever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ...core.backoff import Backoff
from ...core.transitions import Transitions
from ...model.errors import NotSupported, PulsarError, RemoteProtocolError, TimedOut
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ..outputs import Retrying
from .attachment_owner import AttachmentOwner
from .connection import Connection
from .lookup import Query
from .pool import Waiter
from .redirection import Redirection
from .refusal_policy import Decision, decide, not_ready
from .services import ClientContext, Services


@dataclass(slots=True)
class Idle:
    """Not started."""


@dataclass(slots=True)
class CheckingPartitions:
    query: Query | None = None


@dataclass(slots=True)
class LookingUp:
    query: Query | None = None


@dataclass(slots=True)
class Connecting:
    waiter: Waiter | None = None


@dataclass(slots=True)
class Opening:
    """PRODUCER or SUBSCRIBE is on its way."""

    connection: Connection
    request_id: int


@dataclass(slots=True)
class Queued(Opening):
    """Opened by the broker, which lets it wait for its turn and will answer the same request once more."""


@dataclass(slots=True)
class Leaving(Opening):
    """Nobody wants it any more. It is closed as soon as the broker has answered, or when the time is over."""


@dataclass(slots=True)
class Attached:
    connection: Connection


@dataclass(slots=True)
class BackingOff:
    cause: PulsarError


@dataclass(slots=True)
class Closing:
    """CLOSE_PRODUCER or CLOSE_CONSUMER is on its way."""

    connection: Connection
    request_id: int


@dataclass(slots=True)
class Closed:
    """The user closed it."""


@dataclass(slots=True)
class Failed:
    error: PulsarError


State = (
    Idle
    | CheckingPartitions
    | LookingUp
    | Connecting
    | Opening
    | Queued
    | Leaving
    | Attached
    | BackingOff
    | Closing
    | Closed
    | Failed
)


class Input(Enum):
    """What can happen to an attachment."""

    START = auto()
    NOT_PARTITIONED = auto()
    PARTITIONED = auto()
    """Somebody else goes on, with a way for each partition."""
    FOUND = auto()
    CONNECTED = auto()
    OPENED = auto()
    QUEUED = auto()
    RETRY = auto()
    """The attempt failed or the attachment was lost; another attempt follows after a wait."""
    ASSIGNED = auto()
    """The broker closed it and named the broker to go to."""
    CHECK_AGAIN = auto()
    LOOK_UP_AGAIN = auto()
    GIVE_UP = auto()
    LEAVE = auto()
    """Close; what the broker is asked for is answered first."""
    CLOSE = auto()
    """Close; no broker needs to be told."""
    TELL_BROKER = auto()
    """Close; the broker is told and its answer waited for."""
    ANSWERED = auto()
    """The broker answered the close, or cannot any more."""


TRANSITIONS = Transitions(
    "attachment",
    {
        (Idle, Input.START): CheckingPartitions,
        (Idle, Input.NOT_PARTITIONED): LookingUp,
        (Idle, Input.CLOSE): Closed,
        (CheckingPartitions, Input.NOT_PARTITIONED): LookingUp,
        (CheckingPartitions, Input.PARTITIONED): Closed,
        (CheckingPartitions, Input.RETRY): BackingOff,
        (CheckingPartitions, Input.GIVE_UP): Failed,
        (CheckingPartitions, Input.CLOSE): Closed,
        (LookingUp, Input.FOUND): Connecting,
        (LookingUp, Input.RETRY): BackingOff,
        (LookingUp, Input.GIVE_UP): Failed,
        (LookingUp, Input.CLOSE): Closed,
        (Connecting, Input.CONNECTED): Opening,
        (Connecting, Input.RETRY): BackingOff,
        (Connecting, Input.GIVE_UP): Failed,
        (Connecting, Input.CLOSE): Closed,
        (Opening, Input.OPENED): Attached,
        (Opening, Input.QUEUED): Queued,
        (Opening, Input.RETRY): BackingOff,
        (Opening, Input.ASSIGNED): Connecting,
        (Opening, Input.GIVE_UP): Failed,
        (Opening, Input.LEAVE): Leaving,
        (Opening, Input.TELL_BROKER): Closing,
        (Queued, Input.OPENED): Attached,
        (Queued, Input.RETRY): BackingOff,
        (Queued, Input.ASSIGNED): Connecting,
        (Queued, Input.GIVE_UP): Failed,
        (Queued, Input.TELL_BROKER): Closing,
        (Leaving, Input.TELL_BROKER): Closing,
        (Leaving, Input.CLOSE): Closed,
        (Attached, Input.RETRY): BackingOff,
        (Attached, Input.ASSIGNED): Connecting,
        (Attached, Input.GIVE_UP): Failed,
        (Attached, Input.TELL_BROKER): Closing,
        (Attached, Input.CLOSE): Closed,
        (BackingOff, Input.CHECK_AGAIN): CheckingPartitions,
        (BackingOff, Input.LOOK_UP_AGAIN): LookingUp,
        (BackingOff, Input.GIVE_UP): Failed,
        (BackingOff, Input.CLOSE): Closed,
        (Closing, Input.ANSWERED): Closed,
    },
)


class Attachment:
    """One producer's or consumer's way to its broker.

    `mandatory_stop`: nanoseconds after the first wait at which one attempt is made in any case; 0 for none
    (rule HAND-07). `ended`: told of the end instead of the root.
    """

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        topic: TopicName,
        owner: AttachmentOwner,
        *,
        mandatory_stop: int = 0,
        ended: Callable[[int, PulsarError | None], None] | None = None,
    ) -> None:
        self.state: State = Idle()
        self.was_attached = False
        self.on_partitioned: Callable[[int], None] | None = None
        """Told the number of partitions where the topic turns out to have any, as the last thing that happens
        here. Without it the attachment fails then."""
        self._ended = ended or services.ended
        self._context = context
        self._services = services
        self._topic = topic
        self._owner = owner
        self._not_partitioned = False
        self.directions = Redirection(services)
        durations = services.durations
        self._backoff = Backoff(durations.initial_backoff, durations.max_backoff, context.rng, mandatory_stop)
        self._retry_at = context.deadlines.slot(self._retry)
        self._give_up_at = context.deadlines.slot(self._creation_timed_out)
        self.last_error: PulsarError | None = None
        """The reason of the last loss or failed attempt; None while the attachment is attached."""
        self.since = self.down_since = context.now
        """The moments of the last change of `state`, and of the last loss (or of the beginning)."""

    # --- commands ---

    def start(self) -> None:
        """Begin; once."""
        self._give_up_at.set(self._context.now + self._services.durations.operation_timeout)
        self._check_partitions(Input.START)

    def start_as_partition(self, give_up_at: int | None) -> None:
        """Begin; once. The topic is known to be a partition, and whoever waits for it does so until the
        moment `give_up_at`, or from now on."""
        self._give_up_at.set(give_up_at or self._context.now + self._services.durations.operation_timeout)
        self._partitions_known(0)

    @property
    def gives_up_at(self) -> int | None:
        """The moment at which opening fails; None where it is not opening for the first time, or was made to
        wait."""
        return self._give_up_at.when

    @property
    def asked(self) -> Address | None:
        """The address that is asked for the topic, while no connection to it is ready; None where one is."""
        address = self.directions.cluster or self._services.lookup.service_address
        return None if self._services.pool.is_ready(address) else address

    @property
    def next_attempt_at(self) -> int | None:
        """The moment of the next attempt; None unless it waits for one."""
        return self._retry_at.when

    def close(self, once_answered: bool = False) -> None:
        """The owner's `on_closed` follows, now or when the broker has answered.

        `once_answered`: what is opening for the first time is answered first, or its time is over (rule
        PART-04), because the next attempt may come at once and needs the place. A broker confirms the close
        of what it is still opening, and takes it away when it has opened it, without a word.
        """
        match self.state:
            case Attached(connection):
                self._tell_broker(connection)
            case Opening(connection, request_id) if once_answered and self._give_up_at.when is not None:
                self._move(Input.LEAVE, Leaving(connection, request_id))
            case Opening(connection, request_id):
                self._services.requests.cancel(connection, request_id)
                self._tell_broker(connection)
            case Closing() | Closed() | Failed():
                pass
            case _:
                self.end()

    def end(self) -> None:
        """Closed without asking the broker: it knows already (UNSUBSCRIBE), or there is none."""
        self._depart(Input.CLOSE, Closed())
        self._over()
        self._owner.on_closed()
        self._ended(self._owner.handle, None)

    def fail(self, error: PulsarError) -> None:
        """Ended for good by what the broker said of a message (terminated, fenced). While closing, the close
        goes on instead."""
        if TRANSITIONS.allows(self.state, Input.GIVE_UP):
            self._give_up(error)

    def give_up(self, error: PulsarError) -> None:
        """The same for what came of a request: the broker, which may have it open, is told."""
        if isinstance(self.state, Attached):
            self._close_without_waiting(self.state.connection)
        self.fail(error)

    def misplaced(self, error: PulsarError) -> None:
        """The owner is attached and cannot get to where it has to be. Who waits for it to be ready is told;
        once it was, that is retried as a refusal of SUBSCRIBE is."""
        state = self.state
        was_ready = self._give_up_at.when is None
        if was_ready and isinstance(state, Attached) and decide(error, True) is Decision.RETRY:
            self._close_without_waiting(state.connection)
            self._detached(error)
            self._back_off(error)
        else:
            self.give_up(error)

    # --- the way there ---

    def _check_partitions(self, event: Input) -> None:
        state = CheckingPartitions()
        self._move(event, state)
        state.query = self._services.lookup.partitions(
            self._topic, self._partitions_known, self._attempt_failed
        )

    def _partitions_known(self, partitions: int) -> None:
        if partitions > 0 and self.on_partitioned is not None:
            self._depart(Input.PARTITIONED, Closed())
            self.on_partitioned(partitions)
            self._over()
            return
        if partitions > 0:
            first = self._topic.partition_name(0)
            why = f"topic {self._topic} has {partitions} partitions, and here it has to be one without"
            self._give_up(NotSupported(f"{why}; use one partition by its name, {first} for the first"))
            return
        self._not_partitioned = True
        self._look_up(Input.NOT_PARTITIONED)

    def _look_up(self, event: Input) -> None:
        state = LookingUp()
        self._move(event, state)
        state.query = self._services.lookup.find(
            self._topic, self._found, self._attempt_failed, self.directions.cluster
        )

    def _found(self, logical: Address, physical: Address) -> None:
        self._connect(Input.FOUND, logical, physical)

    def _connect(self, event: Input, logical: Address, physical: Address) -> None:
        state = Connecting()
        self._depart(event, state)
        state.waiter = self._services.pool.get(logical, physical, self._connected, self._attempt_failed)

    def _connected(self, connection: Connection) -> None:
        owner = self._owner
        state = Opening(connection, -1)
        self._move(Input.CONNECTED, state)
        # Known to the connection before the command leaves, so that a loss in between is noticed (HAND-11).
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
        assert isinstance(state, Opening)
        connection = state.connection
        if isinstance(state, Leaving):
            self._tell_broker(connection)
            return
        if self._owner.has_to_wait(reply):
            self._queue(state)
            return
        attached = Attached(connection)
        self._move(Input.OPENED, attached)
        self._owner.on_opened(connection, reply)
        if self.state is attached:  # else what the broker answered was no use, and the connection was ended
            self.was_attached = True
            if self._owner.in_place:
                self.arrived()

    def arrived(self) -> None:
        """The owner is where it has to be (`AttachmentOwner.in_place`)."""
        self._backoff.reset()
        self.last_error = None
        self._give_up_at.clear()

    def _queue(self, state: Opening) -> None:
        """It is opened when it is its turn, which may take any time."""
        if not isinstance(state, Queued):
            self._move(Input.QUEUED, Queued(state.connection, state.request_id))
            self._give_up_at.clear()
        self._services.requests.wait_on(
            state.connection, state.request_id, self._opened, self._refused, reply=self._owner.open_reply
        )

    # --- what goes wrong ---

    def _refused(self, error: PulsarError) -> None:
        """PRODUCER or SUBSCRIBE was refused, timed out, or its connection died."""
        state = self.state
        assert isinstance(state, Opening)
        if isinstance(error, TimedOut):
            self._close_without_waiting(state.connection)
        if isinstance(state, Leaving):
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
        """The lookup or the connection failed. Once attached, that is retried for ever (HAND-06)."""
        if not self.was_attached and decide(error, False) is Decision.FAIL:
            self._give_up(error)
        else:
            self._back_off(error)

    def _back_off(self, cause: PulsarError) -> None:
        lost = isinstance(self.state, Attached)
        self._depart(Input.RETRY, BackingOff(cause))
        self.directions.waited()
        now = self._context.now
        wait = self._backoff.next(now)
        self._retry_at.set(now + wait)
        self._tell_of_retry(cause, wait, lost)

    def _tell_of_retry(self, cause: PulsarError, wait: int, lost: bool) -> None:
        self.last_error = cause
        self._context.emit(Retrying(self._owner.handle, self._owner.described, cause, wait, lost))

    def _retry(self) -> None:
        if self._not_partitioned:
            self._look_up(Input.LOOK_UP_AGAIN)
        else:
            self._check_partitions(Input.CHECK_AGAIN)

    def _creation_timed_out(self) -> None:
        """Nothing came of it within the operation timeout (rules PROD-07, PROD-25)."""
        if isinstance(self.state, Opening):
            self._services.requests.cancel(self.state.connection, self.state.request_id)
            self._close_without_waiting(self.state.connection)
        if isinstance(self.state, Leaving):
            self.end()
            return
        seconds = self._services.config.operation_timeout
        self.give_up(not_ready(f"{self._owner.kind} on {self._topic}", seconds, self.last_error))

    def _give_up(self, error: PulsarError) -> None:
        self._depart(Input.GIVE_UP, Failed(error))
        self._over()
        self._owner.on_failed(error)
        self._ended(self._owner.handle, error)

    def lost(self, connection: Connection, cause: PulsarError) -> None:
        """The connection died. Of no interest unless it is the one in use (HAND-08). Opening and closing
        hear of it as requests that fail."""
        if isinstance(self.state, Attached) and self.state.connection is connection:
            self._detached(cause)
            self._back_off(cause)

    def migrated(self, url: str) -> None:
        """TOPIC_MIGRATED: from the next attempt on, see `Redirection`."""
        self.directions.migrated(url)

    def closed_by_broker(self, connection: Connection, assigned_url: str | None, cause: PulsarError) -> None:
        """CLOSE_PRODUCER or CLOSE_CONSUMER from the broker (GAP-37): come back, at once where the
        broker names where to go, else after a wait and a new lookup."""
        lost = isinstance(self.state, Attached)
        match self.state:
            case Attached():
                self._detached(cause)
            case Leaving():
                self.end()
                return
            case Opening(_, request_id):
                self._services.requests.cancel(connection, request_id)
            case Closing(_, request_id):
                self._services.requests.cancel(connection, request_id)
                self._closed(None)
                return
            case _:
                raise AssertionError("registered with a connection that it does not use")
        try:
            way = self.directions.assigned(assigned_url, connection)
        except RemoteProtocolError as error:
            self._back_off(error)  # the lookup that follows says where to go instead
            return
        if way is None:
            self._back_off(cause)
        else:
            self._connect(Input.ASSIGNED, *way)
            self._tell_of_retry(cause, 0, lost)

    def _detached(self, cause: PulsarError) -> None:
        self.down_since = self._context.now
        self._owner.on_detached(cause)

    # --- closing ---

    def _tell_broker(self, connection: Connection) -> None:
        state = Closing(connection, -1)
        self._move(Input.TELL_BROKER, state)
        self._over()
        state.request_id = self._services.requests.send(
            connection, self._owner.close_command, self._closed, self._closed
        )

    def _closed(self, _answer: object) -> None:
        """Any answer, a timeout or the loss of the connection: it is closed (PROD-53, CONS-51)."""
        self._depart(Input.ANSWERED, Closed())
        self._owner.on_closed()
        self._ended(self._owner.handle, None)

    def _close_without_waiting(self, connection: Connection) -> None:
        """The broker may have opened it after all: tell it not to."""
        self._services.requests.send(connection, self._owner.close_command, _ignore, _ignore)

    def _over(self) -> None:
        """No timer is of use any more."""
        self._retry_at.clear()
        self._give_up_at.clear()

    # --- moving ---

    def _depart(self, event: Input, following: State) -> None:
        """Move on, letting go of what the present state holds."""
        TRANSITIONS.check(self.state, event, following)
        match self.state:
            case CheckingPartitions(query) | LookingUp(query) if query is not None:
                query.cancel()
            case Connecting(waiter) if waiter is not None:
                waiter.cancel()
            case Opening(connection, request_id) | Closing(connection, request_id):
                self._services.requests.cancel(connection, request_id)
                connection.unregister(self._owner)
            case Attached(connection):
                connection.unregister(self._owner)
            case _:
                pass
        self.state = following
        self.since = self._context.now

    def _move(self, event: Input, following: State) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following
        self.since = self._context.now


def _ignore(_: object) -> None:
    """For a request whose answer changes nothing."""
