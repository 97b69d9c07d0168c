"""`TopicListWatcher`: a broker's reports of topics that are created and deleted (WATCH_TOPIC_LIST).

The watcher looks up a broker with the pattern in place of a topic's name, as the Java client does. It sends
the hash of the list that the owner knows, and passes on what the broker reports. After a lost connection the
watcher begins again. When the broker cannot or will not watch, the watcher reports nothing: the owner lists
the topics at an interval anyway, and begins the watcher again with `ensure`. The watcher does not know what
the owner does with the topics.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from ....core.backoff import Backoff
from ....core.callbacks import ignore
from ....model.config import TopicsPattern
from ....model.errors import BrokerError, InvalidTopicName, PulsarError, ServerError, TimedOut
from ....model.service_url import Address
from ....model.topic_name import TopicName
from ....wire import encode_command, proto
from ...connecting.connection import Connection
from ...connecting.services import Services
from . import watcher_states as states
from .watcher_states import TRANSITIONS, WatcherInput, WatcherState

_Command = proto.BaseCommand

_REFUSED = (
    ServerError.NotAllowedError,
    ServerError.InvalidTopicName,
    ServerError.AuthorizationError,
    ServerError.UnsupportedVersionError,
)
"""Errors that a broker would repeat: watching is off, or the pattern is too long."""


class WatcherOwner(Protocol):
    """The owner of a watcher, which keeps the list of topics."""

    def watched_hash(self) -> str:
        """Return the hash of the list that the owner knows."""
        ...

    def on_watched(self) -> None:
        """The broker reports changes from now on."""
        ...

    def on_watched_list(self, names: Sequence[str]) -> None:
        """Take the broker's whole list, which differs from the owner's."""
        ...

    def on_watch_update(self, added: Sequence[str], deleted: Sequence[str]) -> None:
        """Take a change. Raises `RemoteProtocolError` when the broker names too many topics."""
        ...


class TopicListWatcher:
    """The watcher of one pattern. `wire_id`: the protocol's watcher_id, unique in the client."""

    def __init__(self, services: Services, wire_id: int, pattern: TopicsPattern, owner: WatcherOwner) -> None:
        context = services.context
        self.state: WatcherState = states.Idle()
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
        """Begin to watch, unless the watcher is under way, was refused or is closed."""
        if not isinstance(self.state, states.Idle) or self._refused or self._closed:
            return
        self._retry.clear()
        try:
            name = TopicName.parse(self._pattern.text)
        except InvalidTopicName:
            return  # a broker cannot be looked up by such a name
        state = states.Finding()
        self._move(WatcherInput.BEGIN, state)
        state.query = self._services.lookup.find(name, self._found, self._failed)

    def close(self) -> None:
        """End the watcher, at the broker too."""
        self._closed = True
        self._retry.clear()
        if isinstance(self.state, states.Asking | states.Watching):
            self._send_close(self.state.connection)
        self._stop()

    def _found(self, logical: Address, physical: Address) -> None:
        state = states.Connecting()
        self._move(WatcherInput.FOUND, state)
        state.waiter = self._services.pool.get(logical, physical, self._connected, self._failed)

    def _connected(self, connection: Connection) -> None:
        if not connection.supports_topic_watchers:
            self._stop()  # the next `ensure` may find a broker that supports watchers
            return
        state = states.Asking(connection, -1)
        self._move(WatcherInput.CONNECTED, state)
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
            self._move(WatcherInput.ACCEPTED, states.Watching(connection))
            if answer.topics_hash != known:
                self._owner.on_watched_list(answer.topic)
            self._owner.on_watched()
            self._backoff.reset()

        state.request_id = self._services.requests.send(
            connection, encode, accepted, self._failed, reply=_Command.WATCH_TOPIC_LIST_SUCCESS
        )

    def on_update(self, command: proto.CommandWatchTopicUpdate) -> None:
        """Take WATCH_TOPIC_UPDATE. An update before the answer is ignored: the list in the answer has it."""
        if isinstance(self.state, states.Watching):
            self._owner.on_watch_update(command.new_topics, command.deleted_topics)

    def lost(self) -> None:
        """The connection has ended. A watcher that asks has left it before: its request failed first."""
        self._again()

    def _failed(self, error: PulsarError) -> None:
        if isinstance(error, TimedOut) and isinstance(self.state, states.Asking):
            self._send_close(self.state.connection)  # the broker may have begun to watch
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
            case states.Idle():
                return
            case states.Finding(query) if query is not None:
                query.cancel()
            case states.Connecting(waiter) if waiter is not None:
                waiter.cancel()
            case states.Asking(connection, request_id):
                self._services.requests.cancel(connection, request_id)
                connection.watchers.pop(self.wire_id, None)
            case states.Watching(connection):
                connection.watchers.pop(self.wire_id, None)
        self._move(WatcherInput.STOP, states.Idle())

    def _send_close(self, connection: Connection) -> None:
        """Send the close; the broker's answer changes nothing."""

        def encode(request_id: int) -> bytes:
            command = proto.CommandWatchTopicListClose(request_id=request_id, watcher_id=self.wire_id)
            return encode_command(_Command.WATCH_TOPIC_LIST_CLOSE, command)

        self._services.requests.send(connection, encode, ignore, ignore)

    def _move(self, event: WatcherInput, following: WatcherState) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following
