"""Bugs of consumers of several topics: of lists, of partitions that grow, of patterns and their watchers."""

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from pulsar_sansio.broker.serving.topic_list_watch import Watchers
from pulsar_sansio.broker.topics.topic_names import TopicNames
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.delivery.merged_queue import MergedQueue
from pulsar_sansio.client.delivery.received_entries import Messages
from pulsar_sansio.client.joint.gathered_requests import GatheredRequests
from pulsar_sansio.client.multi_topics.ack_commands import MultiTopicsAckCommands
from pulsar_sansio.client.multi_topics.member import Member
from pulsar_sansio.client.multi_topics.members import Members
from pulsar_sansio.client.multi_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_sansio.client.multi_topics.partition_growth import PartitionGrowth
from pulsar_sansio.client.multi_topics.patterns.pattern import PatternTopics
from pulsar_sansio.client.multi_topics.patterns.topic_list_watcher import TopicListWatcher
from pulsar_sansio.model.config import consumer as consumer_config
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import LATEST

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs
from ..preconditions import multi_topics as group_needs
from ..preconditions import reading as reading_needs

# --- which topics there are ------------------------------------------------------------------------------


@bug(
    "BUG-009",
    caught_by=("INV-N5",),
    needs=[group_needs.told_of_topics, group_needs.appears, needs.reconnects],
)
def topics_created_while_opening_stay_unknown(patches: Patches) -> None:
    """The client does not look for topics created between the loss of a watcher and its next registration. It
    ignores the list that comes with the answer, and does not ask for another."""
    patches.replace(PatternTopics, "on_watched", nothing)
    patches.replace(PatternTopics, "on_watched_list", nothing)


@bug(
    "BUG-010",
    caught_by=("INV-N5",),
    needs=[group_needs.polls, group_needs.appears, needs.fault("watch_update_lost")],
)
def watched_topics_are_never_asked_for(patches: Patches) -> None:
    """A client that is told of topics that come and go does not ask any more which topics there are. It never
    learns of changes that a broker failed to announce."""

    def ask_again(original: Any, self: Any) -> None:
        if self._watch is not None and type(self._watch.state).__name__ == "Watching":
            self._poll.set(self._context.now + self._interval)
            return
        original(self)

    patches.around(PatternTopics, "_ask_again", ask_again)


@bug("BUG-031", caught_by=("INV-C16", "INV-N4"), needs=[group_needs.named_twice])
def a_topic_that_is_named_twice_has_two_consumers(patches: Patches) -> None:
    """The client does not check whether a list of topics names one twice."""
    patches.replace(consumer_config, "check_topics", nothing)


@bug("BUG-074", caught_by=("INV-N5", "INV-C6"), needs=[group_needs.groups_halt, group_needs.comes_late])
def new_topics_stay_paused(patches: Patches) -> None:
    """A consumer that resumes after a pause tells the topics that are there. Topics that join later are
    opened as they were while it was paused."""

    def resume(self: Any) -> None:
        for member in self.by_topic.values():
            member.consumer.resume()

    patches.replace(Members, "resume", resume)


@bug("BUG-105", caught_by=("INV-N9",), needs=[group_needs.watches_alone])
def connections_with_only_a_watcher_are_idle(patches: Patches) -> None:
    """A connection used only by a watcher of topics is ended as one that is not used."""

    def is_idle(original: Any, self: Any) -> bool:
        watchers, self.watchers = self.watchers, {}
        try:
            return bool(original(self))
        finally:
            self.watchers = watchers

    patches.around(Connection, "_is_idle_for_too_long", is_idle)


@bug("BUG-107", caught_by=("INV-N5",), needs=[group_needs.groups_grow, needs.fault("partitions_refused")])
def growth_is_asked_for_until_it_fails(patches: Patches) -> None:
    """When the number of partitions cannot be told once, a consumer waits for that answer for ever."""
    patches.replace(PartitionGrowth, "_not_known", nothing)


@bug(
    "BUG-107",
    caught_by=("INV-N5",),
    needs=[group_needs.polls, group_needs.comes_late, needs.fault("topics_refused")],
)
def topics_are_asked_for_until_it_fails(patches: Patches) -> None:
    """When the topics of a namespace cannot be told once, a consumer waits for that answer for ever."""
    patches.replace(PatternTopics, "_not_listed", nothing)


@bug(
    "own",
    caught_by=("INV-N5",),
    needs=[group_needs.told_of_topics, group_needs.comes_late],
)
def a_refused_question_for_topics_is_not_put_again(patches: Patches) -> None:
    """A consumer waits for a topic that could not be subscribed, has no interval, and asks which topics there
    are. When that is refused, it does not ask again."""

    def not_listed(self: Any, _error: Any) -> None:
        self._query = None

    patches.replace(PatternTopics, "_not_listed", not_listed)


@bug("own", caught_by=("INV-N5",), needs=[group_needs.groups_grow])
def consumers_do_not_notice_growth(patches: Patches) -> None:
    """A consumer keeps the partitions that it has begun with."""
    patches.replace(PartitionGrowth, "_partitions_known", nothing)


@bug(
    "own", caught_by=("INV-C3", "INV-C7", "INV-C15", "INV-C18", "INV-N5"), needs=[reading_needs.reads_growing]
)
def what_is_in_a_new_partition_already_is_not_read(patches: Patches) -> None:
    """When a partition is added during reading, the reader gets only messages sent after its client finds the
    partition."""

    def new_partitions(
        original: Any, self: Any, topic: Any, indexes: Any, wire_id: Any = None, late: bool = False
    ) -> Any:
        before = self._members.spec
        if late and not before.durable:
            self._members.spec = replace(before, start_message_id=LATEST)
        try:
            return original(self, topic, indexes, wire_id)
        finally:
            self._members.spec = before

    patches.around(PartitionGrowth, "_new_partitions", new_partitions)


@bug(
    "own",
    caught_by=("INV-N5",),
    needs=[group_needs.groups_grow, needs.fault("subscribe_refused", "request_unanswered")],
)
def growth_that_failed_is_taken_for_done(patches: Patches) -> None:
    """The client gives up a new partition that cannot be opened, and takes it that the topic has no more."""

    def growth_failed(self: Any, topic: Any) -> None:
        growth, topic.growth = topic.growth, []
        topic.missing.clear()
        for member in growth:
            self._members.close_one(member)

    patches.replace(PartitionGrowth, "give_up", growth_failed)


@bug("own", caught_by=("INV-C16", "INV-N9"), needs=[group_needs.polls])
def an_unchanged_list_is_an_empty_one(patches: Patches) -> None:
    """A broker that says "as before" names no topics: all of them leave."""

    def take(self: Any, listed: Any) -> None:
        self._names = self._wanted(listed.names)
        self._hash = listed.hash

    patches.replace(PatternTopics, "_take", take)


@bug("own", caught_by=("INV-N5", "INV-C16"), needs=[group_needs.patterns])
def patterns_match_a_part_of_the_name(patches: Patches) -> None:
    """The pattern has to be found somewhere in the name, not to be all of it."""
    from pulsar_sansio.client.multi_topics.patterns import pattern as pattern_topics

    def matches(is_match: Any, name: Any) -> bool:
        return True

    patches.replace(pattern_topics, "matches_topic", matches)
    patches.replace(TopicNames, "matching", lambda self, namespace, names, _: list(names))


@bug("own", caught_by=("INV-N5", "INV-C16"), needs=[group_needs.vanishes])
def members_of_a_pattern_make_topics_anew(patches: Patches) -> None:
    """A topic that was deleted is made anew by the consumer that was on it."""

    def init(original: Any, self: Any, *arguments: Any, create_topic: bool) -> None:
        original(self, *arguments, create_topic=True)

    patches.around(Member, "__init__", init)


@bug("own", caught_by=("INV-N5",), needs=[group_needs.is_recreated])
def a_topic_created_anew_is_not_looked_at(patches: Patches) -> None:
    """A topic that was deleted once is believed to stay so."""

    def tell(original: Any, self: Any) -> None:
        left, before = _KNOWN.setdefault(self, (set(), set()))
        left |= before - set(self._names)
        self._names = {text: name for text, name in self._names.items() if text not in left}
        before.clear()
        before |= set(self._names)
        original(self)

    patches.around(PatternTopics, "_announce", tell)


_KNOWN: "WeakKeyDictionary[PatternTopics, tuple[set[str], set[str]]]" = WeakKeyDictionary()
"""Topics that have left, and those that are there."""


@bug("own", caught_by=("INV-N9", "INV-C16"), needs=[group_needs.vanishes])
def one_topic_takes_the_others_with_it(patches: Patches) -> None:
    """When one topic ends for good, the whole consumer ends."""

    def lost(self: Any, member: Any, error: Any) -> None:
        self._stop()
        self._over(error)

    patches.replace(MultiTopicsConsumer, "_lost", lost)


@bug("own", caught_by=("INV-N5",), needs=[group_needs.told_of_topics, group_needs.comes_late])
def brokers_push_one_change_only(patches: Patches) -> None:
    """A broker pushes one change to a watcher, and none after it."""

    def changed(original: Any, self: Any, name: str, there: bool) -> None:
        if not getattr(self, "has_told", False):
            original(self, name, there)
            self.has_told = bool(self._all)

    patches.around(Watchers, "changed", changed)


@bug("own", caught_by=("INV-N11", "INV-N4"), needs=[group_needs.told_of_topics, group_needs.comes_late])
def a_watcher_is_not_closed(patches: Patches) -> None:
    """The watcher of a closed consumer stays: the broker goes on to notify it."""
    patches.replace(TopicListWatcher, "close", nothing)


# --- many that are one -------------------------------------------------------------------------------------


@bug("BUG-050", caught_by=("INV-C16", "INV-L1", "INV-N5"), needs=[group_needs.vanishes])
def closed_topics_stay_on_the_list(patches: Patches) -> None:
    """Acknowledgements and other calls for messages of a topic that has left go to its consumer, which is
    closed."""

    def strike(self: Any, member: Any) -> None:
        self._queue.remove(member.consumer.queue)

    patches.replace(Members, "remove", strike)


@bug("BUG-054", caught_by=("INV-C8", "INV-C9"), needs=[group_needs.groups_redeliver])
def the_shared_queue_survives_a_redelivery(patches: Patches) -> None:
    """Messages move from the queues of the topics into one of their own, which is not dropped when everything
    is asked for again."""
    _fan_in(patches)


@bug("BUG-060", caught_by=("INV-C15", "INV-C7", "INV-C3"), needs=[group_needs.tours])
def the_shared_queue_survives_a_seek(patches: Patches) -> None:
    """The shared queue of a multi-topics consumer is not dropped when the subscription is moved."""
    _fan_in(patches)


def _fan_in(patches: Patches) -> None:
    """Messages that were taken from the topics' queues ahead of time by each merged queue."""
    held: dict[Any, list[Any]] = {}

    def take(original: Any, self: Any, limit: int, whole_batches: bool = False) -> Any:
        waiting = held.setdefault(self, [])
        waiting += list(original(self, limit + 5, whole_batches))
        given, held[self] = waiting[:limit], waiting[limit:]
        return Messages([given] if given else [])

    def receive(original: Any, self: Any) -> Any:
        waiting = held.setdefault(self, [])
        message = original(self)
        if message is not None:
            waiting.append(message)
        while len(waiting) < 5 and (message := original(self)) is not None:
            waiting.append(message)
        return waiting.pop(0) if waiting else None

    def available(original: Any, self: Any) -> int:
        return int(original.fget(self)) + len(held.get(self, ()))

    patches.around(MergedQueue, "take", take)
    patches.around(MergedQueue, "receive", receive)
    count = vars(MergedQueue)["available"]
    patches.replace(MergedQueue, "available", property(lambda self: available(count, self)))


@bug("BUG-043", caught_by=("INV-N1",), needs=[group_needs.groups])
def acknowledgements_of_other_topics_vanish(patches: Patches) -> None:
    """An id of a topic that was never one of these is taken, and nothing comes of it."""
    patches.replace(MultiTopicsAckCommands, "_of_topic", _of_topic_or_nobody)


def _of_topic_or_nobody(self: Any, topic: str, what: object) -> Any:
    member = self._members.get(topic)
    return () if member is None else (member.consumer,)


@bug("own", caught_by=("INV-C4", "INV-C2"), needs=[group_needs.groups_cumulative])
def a_cumulative_acknowledgement_goes_to_all(patches: Patches) -> None:
    """One topic's place is acknowledged in all of them."""

    def acknowledge_cumulative(self: Any, what: Any) -> None:
        for _, part in self.spread_one(what):
            position = part.message_id if isinstance(part, Message) else part
            for member in self._members.values():
                member.consumer.acknowledge_cumulative(
                    position._replace(partition=member.consumer.topic.partition)
                )

    patches.replace(MultiTopicsAckCommands, "acknowledge_cumulative", acknowledge_cumulative)


@bug("own", caught_by=("INV-C9", "INV-N5", "INV-C1"), needs=[group_needs.groups_nack])
def only_the_first_topic_gets_negative_acknowledgements(patches: Patches) -> None:
    """A negative acknowledgement is passed on to the topic that is first by name, or to no topic."""

    def negative_acknowledge(self: Any, what: Any) -> None:
        first = min(self._members, default=None)
        for consumer, part in self.spread(what):
            if str(consumer.topic) == first:
                consumer.negative_acknowledge(part)

    patches.replace(MultiTopicsAckCommands, "negative_acknowledge", negative_acknowledge)


@bug("own", caught_by=("INV-C16",), needs=[group_needs.groups_are_busy])
def the_first_topic_is_always_first(patches: Patches) -> None:
    """One topic keeps its turn for as long as it has messages."""

    def end_turn(self: Any, queue: Any) -> None:
        if not queue.announced:
            self._turns.popleft()
            self._has_turn.remove(queue)
        self._begin_turn()

    patches.replace(MergedQueue, "_end_turn", end_turn)


@bug("own", caught_by=("INV-C16", "INV-C14", "INV-N5"), needs=[group_needs.vanishes])
def messages_of_a_closed_topic_are_delivered(patches: Patches) -> None:
    """The queue of a topic that has left keeps its turn."""
    patches.replace(MergedQueue, "remove", nothing)


@bug("own", caught_by=("INV-C16",), needs=[group_needs.groups])
def ready_with_the_first_topic(patches: Patches) -> None:
    """The whole is said to be open when one topic is."""

    def ready(original: Any, self: Any) -> None:
        topics = self._topics
        self._topics = {name: topic for name, topic in topics.items() if topic.opened}
        try:
            original(self)
        finally:
            self._topics = topics

    patches.around(MultiTopicsConsumer, "finish_opening", ready)


@bug("own", caught_by=("INV-C6",), needs=[group_needs.shares_a_queue])
def every_partition_has_the_whole_queue(patches: Patches) -> None:
    """The total of a receiver queue is not shared among partitions."""

    def new_partitions(original: Any, self: Any, topic: Any, *rest: Any, **options: Any) -> Any:
        partitions, topic.partitions = topic.partitions, 1
        try:
            return original(self, topic, *rest, **options)
        finally:
            topic.partitions = partitions

    patches.around(PartitionGrowth, "_new_partitions", new_partitions)


# --- requests to all of them -------------------------------------------------------------------------------


@bug("own", caught_by=("INV-C7", "INV-C3", "INV-N5"), needs=[group_needs.tours])
def a_seek_moves_the_first_topic_only(patches: Patches) -> None:
    """A seek to a position that has a meaning in every topic is passed on to one topic only."""
    from pulsar_sansio.client.multi_topics import commands as topics_commands

    def positions(original: Any, *arguments: Any) -> Any:
        found = original(*arguments)
        first = min(found, default=None)
        return {name: position for name, position in found.items() if name == first}

    patches.around(topics_commands, "seek_positions", positions)


@bug("own", caught_by=("INV-C7", "INV-C4", "INV-C15", "INV-C3"), needs=[group_needs.tours])
def the_first_answer_counts_for_all_topics(patches: Patches) -> None:
    """A question to all topics is answered when the first topic has answered."""

    def answered(original: Any, self: Any, name: str, outcome: Any) -> None:
        asked = self._asked.get(outcome.request)
        if asked is not None and name in asked.waiting:
            asked.waiting = {name}
        original(self, name, outcome)

    patches.around(GatheredRequests, "answered", answered)


@bug("own", caught_by=("INV-C15",), needs=[group_needs.tours])
def more_only_where_all_have_more(patches: Patches) -> None:
    """The client says that there is more only where every topic has more."""
    from pulsar_sansio.client.multi_topics import commands as topics_commands

    patches.replace(topics_commands, "anything", lambda results: all(results.values()))


@bug("own", caught_by=("INV-C7", "INV-C3", "INV-N5", "INV-C16"), needs=[group_needs.leaves_several])
def one_topic_is_unsubscribed(patches: Patches) -> None:
    """UNSUBSCRIBE is said in one topic, and the others are closed."""

    def unsubscribe(original: Any, self: Any, request: int, force: bool) -> None:
        members = list(self._members.by_topic.values())
        for member in members[1:]:
            self._members.close_one(member)
        original(self, request, force)

    patches.around(MultiTopicsConsumer, "unsubscribe", unsubscribe)
