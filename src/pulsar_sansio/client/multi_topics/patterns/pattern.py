"""`PatternTopics`: the topics that match a pattern, as they are created and deleted.

`PatternTopics` lists the topics of the namespace once, and then at an interval. A broker that supports
`TopicListWatcher` reports changes at once. Lists and reports are filtered by the pattern and make one list of
names; partitions are folded to their topic.

`on_topics` is given the whole set each time. `PatternChanges` takes the difference to the topics that it has,
so that a topic that could not be subscribed is tried again. After such a failure it calls `look_again`, and
the next list comes sooner: a broker reports the first partition of a topic before it has the last. A list
that could not be had is asked for again as soon.

A list that was asked for before the broker reported a change may be older than the change. It is asked for
again.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ....core.backoff import Backoff
from ....model.config import TopicDomain, TopicsPattern, nanoseconds_of
from ....model.errors import PulsarError, RemoteProtocolError, TooManyPartitions
from ....model.topic_name import TopicName
from ....model.topics_pattern import matcher, matches_topic
from ....wire import topics_hash
from ...connecting.services import Services
from ...lookup.questions import Query
from ...lookup.retried_lookup import RetriedLookup
from ...lookup.topic_list import TopicList, TopicListing, parsed
from .topic_list_watcher import TopicListWatcher

_LISTENS_AFTER = 10**9
"""Nanoseconds after the answer to WATCH_TOPIC_LIST in which a broker begins to listen for changes."""


class PatternTopics:
    """`on_topics(names)` is called with all topics, after each list and each change. `on_failed(error)` is
    called when the first list cannot be had; nothing else is called then."""

    def __init__(
        self,
        services: Services,
        handle: int,
        pattern: TopicsPattern,
        on_topics: Callable[[set[TopicName]], None],
        on_failed: Callable[[PulsarError], None],
    ) -> None:
        context = services.context
        self._context = context
        self._services = services
        self._handle = handle
        self._pattern = pattern
        self._on_topics = on_topics
        self._on_failed = on_failed
        self._matches = matcher(pattern.expression)
        self._most = services.config.max_partitions
        self._names: dict[str, TopicName] = {}
        """The names as brokers list them, with each partition by itself."""
        self._hash: str | None = None
        """The hash of the latest list, while `_names` is that list."""
        self._changes = 0
        interval = pattern.discovery_interval
        self._interval = 0 if interval is None else nanoseconds_of(interval)
        self._poll = context.deadlines.slot(self._ask_again)
        durations = services.durations
        self._backoff = Backoff(durations.initial_backoff, durations.max_backoff, context.rng)
        self._sooner = context.deadlines.slot(self._ask_sooner)
        self._first: RetriedLookup | None = None
        self._query: Query | None = None
        watched = pattern.topics_of is not TopicDomain.NON_PERSISTENT
        self._watch = (
            TopicListWatcher(services, services.next_watcher_id(), pattern, self) if watched else None
        )

    def is_one(self, name: TopicName) -> bool:
        """Tell whether the pattern matches a topic, or the topic of a partition."""
        pattern = self._pattern
        return (
            name.namespace_name == pattern.namespace
            and pattern.topics_of.has(name)
            and not name.local.startswith("__")
            and matches_topic(self._matches, name)
        )

    def start(self) -> None:
        """Ask for the first list; the owner calls `start` once."""
        self._first = RetriedLookup(
            self._services,
            self._handle,
            str(self._list),
            partial(self._services.lookup.topics, self._list),
            self._first_listed,
            self._on_failed,
        )
        self._first.ask()

    def watch(self) -> None:
        """The owner is ready: let the broker report changes from now on."""
        if self._watch is not None:
            self._watch.ensure()

    def look_again(self) -> None:
        """A topic could not be subscribed, or a list could not be had: list the topics again after a wait.

        The wait grows until the list changes.
        """
        if self._sooner.when is None:
            now = self._context.now
            self._sooner.set(now + self._backoff.next(now))

    def close(self) -> None:
        """Ask nothing more, and end the watcher."""
        self._poll.clear()
        self._sooner.clear()
        if self._first is not None:
            self._first.cancel()
        if self._query is not None:
            self._query.cancel()
        if self._watch is not None:
            self._watch.close()

    # --- asking ------------------------------------------------------------------------------------

    @property
    def _list(self) -> TopicList:
        pattern = self._pattern
        return TopicList(pattern.namespace, pattern.topics_of, pattern.text, self._hash)

    def _first_listed(self, listed: TopicListing) -> None:
        try:
            self._take(listed)
        except TooManyPartitions as error:
            self._on_failed(error)
            return
        if self._interval:
            self._poll.set(self._context.now + self._interval)
        self._announce()

    def _ask_again(self) -> None:
        """Ask at every interval, except while an answer is outstanding (rule PATTERN-03)."""
        self._poll.set(self._context.now + self._interval)
        if self._watch is not None:
            self._watch.ensure()
        self._ask_sooner()

    def _ask_sooner(self) -> None:
        if self._query is None:
            self._ask()

    def _ask(self) -> None:
        self._query = self._services.lookup.topics(
            self._list, partial(self._listed, self._changes), self._not_listed
        )

    def _not_listed(self, _error: PulsarError) -> None:
        """Keep the names, and ask again soon: a pattern may have no interval."""
        self._query = None
        self.look_again()

    def _listed(self, changes: int, listed: TopicListing) -> None:
        self._query = None
        if changes != self._changes:
            self._ask()
            return
        try:
            self._take(listed)
        except TooManyPartitions:
            return  # keep the names until the next list
        self._announce()

    def _take(self, listed: TopicListing) -> None:
        """Raises `TooManyPartitions`."""
        if not listed.changed:
            return
        names = self._wanted(listed.names)
        if len(names) > self._most:
            raise TooManyPartitions(
                f"pattern {self._pattern} matches {len(names)} topics and partitions, allowed are "
                f"{self._most} (max_partitions)"
            )
        self._names = names
        self._hash = listed.hash
        self._backoff.reset()

    def _wanted(self, names: Iterable[str]) -> dict[str, TopicName]:
        found = ((name, parsed(name)) for name in names)
        return {name: topic for name, topic in found if topic is not None and self.is_one(topic)}

    def _announce(self) -> None:
        self._on_topics({name.base for name in self._names.values()})

    # --- the owner of a `TopicListWatcher` ---------------------------------------------------------

    def watched_hash(self) -> str:
        """See `topic_list_watcher.WatcherOwner`. Only persistent topics are watched."""
        return topics_hash([text for text, name in self._names.items() if name.persistent])

    def on_watched(self) -> None:
        """See `topic_list_watcher.WatcherOwner`. A real broker lists the topics before it listens for
        changes. A topic created in between is in neither, so the topics are listed once more."""
        self._sooner.set(self._context.now + _LISTENS_AFTER)

    def on_watched_list(self, names: Sequence[str]) -> None:
        """See `topic_list_watcher.WatcherOwner`."""
        persistent = {text: name for text, name in self._wanted(names).items() if name.persistent}
        others = {text: name for text, name in self._names.items() if not name.persistent}
        self._change(persistent | others)

    def on_watch_update(self, added: Sequence[str], deleted: Sequence[str]) -> None:
        """See `topic_list_watcher.WatcherOwner`."""
        gone = set(deleted)
        names = {text: name for text, name in self._names.items() if text not in gone}
        self._change(names | self._wanted(added))

    def _change(self, names: dict[str, TopicName]) -> None:
        if len(names) > self._most:
            raise RemoteProtocolError(
                f"the broker names {len(names)} topics for {self._pattern}, allowed are {self._most}"
            )
        self._names = names
        self._hash = None
        self._backoff.reset()
        self._changes += 1
        self._announce()
