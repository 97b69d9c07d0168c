"""`TopicListWatcher`: being told by a broker which topics come and go (WATCH_TOPIC_LIST).

It finds a broker by the pattern as if that were a topic's name, as the Java client does, says which list it
knows by its hash, and passes on what the broker says. Where the connection is lost it begins anew; where the
broker cannot or will not, it is silent: whoever wants to know asks again and again anyway, and begins it anew
with `ensure`. It refuses to know what is done with the topics.

    idle ──► finding ──► connecting ──► asking ──► watching
      ▲         │            │            │            │
      └─────────┴────────────┴────────────┴────────────┘  any failure; `ensure`, or a wait, begins anew
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from ...core.backoff import Backoff
from ...core.transitions import Transitions
from ...model.config import TopicsPattern
from ...model.errors import BrokerError, InvalidTopicName, PulsarError, ServerError, TimedOut
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..connecting.lookup import Query
from ..connecting.pool import Waiter
from ..connecting.services import ClientContext, Services

_Command = proto.BaseCommand

_REFUSED = (
    ServerError.NotAllowedError,
    ServerError.InvalidTopicName,
    ServerError.AuthorizationError,
    ServerError.UnsupportedVersionError,
)
"""It would be refused again: watching is off, or the pattern too long for it."""


@dataclass(slots=True)
class Idle:
    pass


@dataclass(slots=True)
class Finding:
    query: Query | None = None


@dataclass(slots=True)
class Connecting:
    waiter: Waiter | None = None


@dataclass(slots=True)
class Asking:
    connection: Connection
    request_id: int


@dataclass(slots=True)
class Watching:
    connection: Connection


State = Idle | Finding | Connecting | Asking | Watching


class Input(Enum):
    BEGIN = auto()
    FOUND = auto()
    CONNECTED = auto()
    ACCEPTED = auto()
    STOP = auto()


TRANSITIONS = Transitions(
    "watch of a pattern",
    {
        (Idle, Input.BEGIN): Finding,
        (Finding, Input.FOUND): Connecting,
        (Connecting, Input.CONNECTED): Asking,
        (Asking, Input.ACCEPTED): Watching,
        (Finding, Input.STOP): Idle,
        (Connecting, Input.STOP): Idle,
        (Asking, Input.STOP): Idle,
        (Watching, Input.STOP): Idle,
    },
)


class Owner(Protocol):
    """Who wants to know."""

    def watched_hash(self) -> str:
        """Of the list it has."""
        ...

    def on_watched(self) -> None:
        """It will be told from now on."""
        ...

    def on_watched_list(self, names: Sequence[str]) -> None:
        """The whole list; it differs from the one whose hash was told."""
        ...

    def on_watch_update(self, added: Sequence[str], deleted: Sequence[str]) -> None:
        """Raises `RemoteProtocolError` where there are more than can be."""
        ...


class TopicListWatcher:
    """The watch of one pattern. `wire_id`: watcher_id, unique in the client."""

    def __init__(
        self, context: ClientContext, services: Services, wire_id: int, pattern: TopicsPattern, owner: Owner
    ) -> None:
        self.state: State = Idle()
        self.wire_id = wire_id
        self._context = context
        self._services = services
        self._pattern = pattern
        self._owner = owner
        self._refused = False
        durations = services.durations
        self._backoff = Backoff(durations.initial_backoff, durations.max_backoff, context.rng)
        self._retry = context.deadlines.slot(self.ensure)
        self._closed = False

    def ensure(self) -> None:
        """Begin, unless it is under way, was refused or is closed."""
        if not isinstance(self.state, Idle) or self._refused or self._closed:
            return
        self._retry.clear()
        try:
            name = TopicName.parse(self._pattern.text)
        except InvalidTopicName:
            self._refused = True  # a broker could not be asked where it is
            return
        state = Finding()
        self._move(Input.BEGIN, state)
        state.query = self._services.lookup.find(name, self._found, self._failed)

    def close(self) -> None:
        """Nobody wants to know any more."""
        self._closed = True
        self._retry.clear()
        if isinstance(self.state, Asking | Watching):
            self._tell_closed(self.state.connection)
        self._stop()

    def _found(self, logical: Address, physical: Address) -> None:
        state = Connecting()
        self._move(Input.FOUND, state)
        state.waiter = self._services.pool.get(logical, physical, self._connected, self._failed)

    def _connected(self, connection: Connection) -> None:
        if not connection.supports_topic_watchers:
            self._stop()  # another broker may: the next `ensure` looks
            return
        state = Asking(connection, -1)
        self._move(Input.CONNECTED, state)
        connection.watchers[self.wire_id] = self
        known = self._owner.watched_hash()

        def encode(request_id: int) -> bytes:
            command = proto.CommandWatchTopicList(
                request_id=request_id,
                watcher_id=self.wire_id,
                namespace=self._pattern.namespace,
                topics_pattern=self._pattern.text,
                topics_hash=known,
            )
            return encode_command(_Command.WATCH_TOPIC_LIST, command)

        def accepted(answer: Any) -> None:
            self._move(Input.ACCEPTED, Watching(connection))
            if answer.topics_hash != known:
                self._owner.on_watched_list(answer.topic)
            self._owner.on_watched()
            self._backoff.reset()

        state.request_id = self._services.requests.send(
            connection, encode, accepted, self._failed, reply=_Command.WATCH_TOPIC_LIST_SUCCESS
        )

    def on_update(self, command: proto.CommandWatchTopicUpdate) -> None:
        """WATCH_TOPIC_UPDATE. One that comes before the answer is in the list that comes with that."""
        if isinstance(self.state, Watching):
            self._owner.on_watch_update(command.new_topics, command.deleted_topics)

    def lost(self) -> None:
        """The connection died. While asking, the request fails by itself."""
        if isinstance(self.state, Watching):
            self._again()

    def _failed(self, error: PulsarError) -> None:
        if isinstance(error, TimedOut) and isinstance(self.state, Asking):
            self._tell_closed(self.state.connection)  # it may begin yet, and nobody would listen
        if isinstance(error, BrokerError) and error.code in _REFUSED:
            self._refused = True
            self._stop()
        else:
            self._again()

    def _again(self) -> None:
        self._stop()
        now = self._context.now
        self._retry.set(now + self._backoff.next(now))

    def _stop(self) -> None:
        match self.state:
            case Idle():
                return
            case Finding(query) if query is not None:
                query.cancel()
            case Connecting(waiter) if waiter is not None:
                waiter.cancel()
            case Asking(connection, request_id):
                self._services.requests.cancel(connection, request_id)
                connection.watchers.pop(self.wire_id, None)
            case Watching(connection):
                connection.watchers.pop(self.wire_id, None)
        self._move(Input.STOP, Idle())

    def _tell_closed(self, connection: Connection) -> None:
        """The broker's answer is not waited for."""

        def encode(request_id: int) -> bytes:
            command = proto.CommandWatchTopicListClose(request_id=request_id, watcher_id=self.wire_id)
            return encode_command(_Command.WATCH_TOPIC_LIST_CLOSE, command)

        self._services.requests.send(connection, encode, _ignore, _ignore)

    def _move(self, event: Input, following: State) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following


def _ignore(_: object) -> None:
    """For a request whose answer changes nothing."""
