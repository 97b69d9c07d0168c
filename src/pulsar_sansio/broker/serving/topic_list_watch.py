"""Lists of topics: GET_TOPICS_OF_NAMESPACE (WIRE-04) and WATCH_TOPIC_LIST (PATTERN-02).

The broker notifies a watcher of topics that are created or deleted and match its pattern, until the watcher
or its connection closes. Only persistent topics are watched. Topics that one command creates make one
WATCH_TOPIC_UPDATE.

Patterns are matched as RE2 does, in time proportional to the name, so any client may choose them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...model.errors import AuthorizationError, BrokerError, MetadataError, RemoteProtocolError, ServerError
from ...model.topic_name import TopicName
from ...model.topics_pattern import BadPattern, matcher, matches_topic, without_domain
from ...wire import proto, topics_hash
from ..topics.topic_names import Matches, TopicNames, is_system
from .lookups import refuse_request

if TYPE_CHECKING:
    from ..services import BrokerServices
    from .connection import Connection

Type = proto.BaseCommand.Type

MAX_PATTERN_LENGTH = 50
"""Characters of a pattern that this broker applies, as Apache Pulsar's `subscriptionPatternMaxLength`.

A list for a longer pattern is not filtered, and a longer pattern cannot be watched.
"""

MAX_WATCHERS_PER_CONNECTION = 100
"""A client has one watcher for each pattern consumer. A new topic is matched with each watcher's pattern."""

NOT_KNOWN_TO_RE2 = ("(?=", "(?!", "(?<=", "(?<!", "(?>", *(f"\\{digit}" for digit in range(1, 10)))
"""Syntax that other regular expressions have: the broker leaves a pattern with it to the client."""


class Watcher:
    """One WATCH_TOPIC_LIST. `added`, `deleted`: changes not sent yet."""

    __slots__ = ("added", "deleted", "id", "matches", "namespace")

    def __init__(self, watcher_id: int, namespace: str, matches: Matches) -> None:
        self.id = watcher_id
        self.namespace = namespace
        self.matches = matches
        self.added: dict[str, None] = {}
        self.deleted: dict[str, None] = {}

    def wants(self, name: TopicName) -> bool:
        return name.namespace_name == self.namespace and matches_topic(self.matches, name)

    def changed(self, name: str, there: bool) -> None:
        """Record that a topic was created or deleted. After both, the later change is sent: the client may
        know the earlier one."""
        news, olds = (self.added, self.deleted) if there else (self.deleted, self.added)
        olds.pop(name, None)
        news[name] = None


class Watchers:
    """All watchers of a broker, by connection and id."""

    def __init__(self, services: "BrokerServices", names: TopicNames) -> None:
        self._context = services.context
        self._journal = services.journal
        self._names = names
        self._all: dict[Connection, dict[int, Watcher]] = {}
        self._updates = services.context.deadlines.slot(self._send_updates)
        names.on_change = self.changed

    def changed(self, name: str, there: bool) -> None:
        """A topic was created (`there`) or deleted."""
        if not self._all:
            return
        topic = TopicName.parse(name)
        if not topic.persistent or is_system(topic):
            return
        for watchers in self._all.values():
            for watcher in watchers.values():
                if watcher.wants(topic):
                    watcher.changed(name, there)
                    self._updates.set(self._context.now)

    def _send_updates(self) -> None:
        """Send the updates. The names of a namespace are listed once for all its watchers."""
        names: dict[str, list[str]] = {}
        for connection, watchers in self._all.items():
            for watcher in watchers.values():
                if watcher.added or watcher.deleted:
                    if watcher.namespace not in names:
                        names[watcher.namespace] = self._names_of(watcher.namespace)
                    self._send_update(connection, watcher, names[watcher.namespace])

    def _send_update(self, connection: "Connection", watcher: Watcher, names: list[str]) -> None:
        update = proto.CommandWatchTopicUpdate(
            watcher_id=watcher.id,
            new_topics=sorted(watcher.added),
            deleted_topics=sorted(watcher.deleted),
            topics_hash=topics_hash(self._matching(watcher, names)),
        )
        watcher.added.clear()
        watcher.deleted.clear()

        def send() -> None:  # unless the watcher was closed before the write was durable
            if self._all.get(connection, {}).get(watcher.id) is watcher:
                connection.send(Type.WATCH_TOPIC_UPDATE, update)

        self._journal.confirm(send)

    def watched(self, watcher: Watcher) -> list[str]:
        """Return the existing topics that match the watcher's pattern."""
        names = self._names_of(watcher.namespace)
        return self._matching(watcher, names)

    def _matching(self, watcher: Watcher, names: list[str]) -> list[str]:
        return self._names.matching(watcher.namespace, names, watcher.matches)

    def _names_of(self, namespace: str) -> list[str]:
        return persistent(self._names.listed(namespace))

    def add(self, connection: "Connection", watcher: Watcher) -> None:
        """Add a watcher, or replace the one of its id. Raises `MetadataError` for one too many."""
        watchers = self._all.setdefault(connection, {})
        if len(watchers) >= MAX_WATCHERS_PER_CONNECTION and watcher.id not in watchers:
            raise MetadataError(f"More than {MAX_WATCHERS_PER_CONNECTION} watchers on one connection")
        watchers[watcher.id] = watcher

    def remove(self, connection: "Connection", watcher_id: int) -> None:
        """Remove a watcher; an unknown id changes nothing."""
        watchers = self._all.get(connection, {})
        watchers.pop(watcher_id, None)
        if not watchers:
            self._all.pop(connection, None)

    def detach(self, connection: "Connection") -> None:
        """Remove the watchers of a connection that ended."""
        self._all.pop(connection, None)


def persistent(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith("persistent://")]


def _filter(pattern: str) -> Matches | None:
    """Return a matcher; None leaves the pattern to the client. Raises `MetadataError` for no pattern."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return None
    try:
        return matcher(without_domain(pattern))
    except BadPattern as error:
        if any(sign in pattern for sign in NOT_KNOWN_TO_RE2):
            return None
        raise MetadataError(f"The pattern is not a regular expression: {error}") from None


def _check_name(namespace: str) -> None:
    """End the connection for a name that no namespace can have, as the Java broker does. Raises
    `RemoteProtocolError`."""
    parts = namespace.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise RemoteProtocolError(f"no name of a namespace: {namespace!r:.200}")


def on_topics_of_namespace(connection: "Connection", command: proto.CommandGetTopicsOfNamespace) -> None:
    """Answer with the topics of a namespace, which need not exist (WIRE-04)."""
    _check_name(command.namespace)
    try:
        if not connection.broker.authorization.may_list_topics(connection.roles, command.namespace):
            raise AuthorizationError("Client is not authorized to GetTopicsOfNamespace")
        names = connection.broker.topics.names.listed(command.namespace)
        if command.mode == proto.CommandGetTopicsOfNamespace.PERSISTENT:
            names = persistent(names)
        elif command.mode == proto.CommandGetTopicsOfNamespace.NON_PERSISTENT:
            names = [name for name in names if name.startswith("non-persistent://")]
        answer = proto.CommandGetTopicsOfNamespaceResponse(request_id=command.request_id, filtered=False)
        if command.topics_pattern and (matches := _filter(command.topics_pattern)) is not None:
            names = connection.broker.topics.names.matching(command.namespace, names, matches)
            answer.filtered = True
        answer.topics_hash = topics_hash(names)
        answer.changed = not command.HasField("topics_hash") or command.topics_hash != answer.topics_hash
        if answer.changed:
            answer.topics.extend(names)
    except BrokerError as error:
        connection.refuse(command.request_id, error)
        return
    connection.send(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE, answer)


def on_watch_topic_list(connection: "Connection", command: proto.CommandWatchTopicList) -> None:
    """Notify the client of topic changes from now on.

    The list in the answer is empty where the client has it already, by its hash.
    """
    _check_name(command.namespace)
    broker = connection.broker
    if not connection.services.config.topic_list_watcher:
        refusal = "Unable to create topic list watcher: topic list watching is disabled"
        connection.error(command.request_id, ServerError.NotAllowedError, refusal)
        return
    pattern = command.topics_pattern
    if len(pattern) > MAX_PATTERN_LENGTH:
        refusal = f"Unable to create topic list watcher: pattern longer than maximum: {MAX_PATTERN_LENGTH}"
        connection.error(command.request_id, ServerError.NotAllowedError, refusal)
        return
    try:
        matches = matcher(without_domain(pattern))
    except BadPattern as error:
        refusal = f"The pattern is not a regular expression: {error}"
        connection.error(command.request_id, ServerError.InvalidTopicName, refusal)
        return
    try:
        if not broker.authorization.may_list_topics(connection.roles, command.namespace):
            raise AuthorizationError("Client is not authorized to watchTopicList")
        broker.metadata.check_namespace(command.namespace)
        watcher = Watcher(command.watcher_id, command.namespace, matches)
        broker.watchers.add(connection, watcher)
    except BrokerError as error:
        connection.refuse(command.request_id, error)
        return
    names = broker.watchers.watched(watcher)
    answer = proto.CommandWatchTopicListSuccess(
        request_id=command.request_id, watcher_id=watcher.id, topics_hash=topics_hash(names)
    )
    if not command.HasField("topics_hash") or command.topics_hash != answer.topics_hash:
        answer.topic.extend(names)
    connection.services.journal.confirm(lambda: connection.send(Type.WATCH_TOPIC_LIST_SUCCESS, answer))


def on_watch_topic_list_close(connection: "Connection", command: proto.CommandWatchTopicListClose) -> None:
    """Answer SUCCESS, also for unknown watchers."""
    connection.broker.watchers.remove(connection, command.watcher_id)
    connection.success(command.request_id)


HANDLERS: dict[int, Any] = {
    Type.GET_TOPICS_OF_NAMESPACE: on_topics_of_namespace,
    Type.WATCH_TOPIC_LIST: on_watch_topic_list,
    Type.WATCH_TOPIC_LIST_CLOSE: on_watch_topic_list_close,
}

REFUSALS: dict[int, Any] = {
    Type.GET_TOPICS_OF_NAMESPACE: refuse_request,
    Type.WATCH_TOPIC_LIST: refuse_request,
    Type.WATCH_TOPIC_LIST_CLOSE: refuse_request,
}
"""Command -> its answer with an error, as a rule of faults gives it."""
