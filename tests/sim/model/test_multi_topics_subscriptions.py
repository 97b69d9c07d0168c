"""Consumers of several topics are drawn, and the reference model checks them."""

from collections.abc import Callable

import pytest

from pulsar_sansio.model.config import ConsumerSpec, DeadLetterPolicy, ProducerSpec, SubscriptionType
from pulsar_sim import Streams, World, draw
from pulsar_sim.engine.failures import Outcome, ViolationError
from pulsar_sim.engine.profile import Profile
from pulsar_sim.model.multi_topics_subscriptions import GroupRecord, GroupTopics
from pulsar_sim.model.partitioned_topics import PartitionedTopic
from pulsar_sim.model.positions.expected_position import START, Base
from pulsar_sim.model.positions.multi_topics_position import MultiTopicsSoughtSubscription
from pulsar_sim.model.records.consumer_record import ConsumerRecord
from pulsar_sim.model.records.entry import StoredEntry
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.subscription_record import SubscriptionRecord
from pulsar_sim.model.records.topic_record import TopicRecord

BASE = "persistent://public/default/"
SHARED = SubscriptionType.SHARED


def with_groups(count: int) -> list[tuple[int, Profile]]:
    profiles = ((seed, draw(Streams(seed))) for seed in range(1000))
    return [(seed, profile) for seed, profile in profiles if profile.groups][:count]


def test_every_kind_is_drawn() -> None:
    profiles = [profile for _, profile in with_groups(60)]
    groups = [group for profile in profiles for group in profile.groups]
    for found in (
        [group for group in groups if group.pattern],
        [group for group in groups if group.pattern and group.discovery_interval is None],
        [group for group in groups if group.partitioned],
        [group for group in groups if group.topics],
        [group for group in groups if group.twice],
        [profile for profile in profiles if profile.broker.topic_list_watcher],
        [profile for profile in profiles if any(plan.gone_after for plan in profile.appearances)],
    ):
        assert 0 < len(found) < len(groups)


def test_worlds_with_groups() -> None:
    delivered = 0
    for seed, profile in with_groups(4):
        world = World(seed, profile)
        assert world.run().outcome is Outcome.PASSED
        topics = world.model.topics.values()
        delivered += sum(
            len(topic.subscriptions[group.name].delivered)
            for group in world.topics.of_groups
            for topic in topics
            if group.means(topic.name)
        )
    assert delivered


@pytest.mark.parametrize(
    ("listed", "pattern", "topic", "means"),
    [
        ((f"{BASE}t0",), "", f"{BASE}t0", True),
        ((f"{BASE}t0",), "", f"{BASE}t1", False),
        ((f"{BASE}p0",), "", f"{BASE}p0-partition-3", True),
        ((), "[tn].*", f"{BASE}n3", True),
        ((), "n", f"{BASE}n3", False),
        ((), "p[0-9]", f"{BASE}p0-partition-3", True),
        ((), ".*", "persistent://public/other/n3", False),
    ],
)
def test_which_topics_a_group_means(listed: tuple[str, ...], pattern: str, topic: str, means: bool) -> None:
    assert GroupTopics("group-0", SHARED, listed, pattern).means(topic) is means


class Group:
    """A consumer of all topics whose names begin with n."""

    def __init__(self) -> None:
        self.topics = GroupTopics("group-0", SHARED, (), "n.*")
        self.record = GroupRecord("g0", self.topics, ConsumerSpec(f"{BASE}n", "group-0", SHARED))
        self.known = {name: TopicRecord(name, False) for name in (f"{BASE}n0", f"{BASE}n1", f"{BASE}t0")}
        for topic in self.known.values():
            topic.subscriptions["group-0"] = SubscriptionRecord(topic, "group-0", SHARED)
        self.open: list[ConsumerRecord] = []

    def subscribes(self, own: str, consumer_id: int, whole: PartitionedTopic | None = None) -> ConsumerRecord:
        name = BASE + own
        return self.record.subscribes(self.known.get(name), name, consumer_id, self.open.__contains__, whole)


def test_every_topic_has_a_part_of_its_own() -> None:
    group = Group()
    first, second = group.subscribes("n0", 1), group.subscribes("n1", 2)
    assert first is not second
    assert group.record.of(f"{BASE}n0") is first
    group.record.halted = True
    assert (first.halted, second.halted) == (True, True)
    assert first.rewinds == 0
    assert group.subscribes("n0", 1) is first
    assert first.rewinds == 1


def test_a_topic_that_comes_back_has_a_new_part() -> None:
    group = Group()
    first = group.subscribes("n0", 1)
    group.record.leaves(f"{BASE}n0")
    assert first.closed
    second = group.subscribes("n0", 2)
    assert second is not first
    assert not second.closed


def test_no_topic_twice_and_none_that_is_not_meant() -> None:
    """INV-C16: no topic twice, and none that is not meant."""
    group = Group()
    group.open.append(group.subscribes("n0", 1))
    with pytest.raises(ViolationError, match="n0 twice"):
        group.subscribes("n0", 2)
    with pytest.raises(ViolationError, match="none of its topics"):
        group.subscribes("t0", 3)
    with pytest.raises(ViolationError, match="none of its topics"):
        group.subscribes("n7", 3)
    with pytest.raises(ViolationError, match="where it is not"):
        group.record.of(f"{BASE}n1")
    with pytest.raises(ViolationError, match="was not there"):
        group.record.leaves(f"{BASE}n1")


def test_partitions_share_a_queue() -> None:
    """FLOW-16: partitions share a total of prefetched messages."""
    group = Group()
    group.record.spec = ConsumerSpec(f"{BASE}n", "group-0", SHARED, max_total_receiver_queue_size=1000)
    whole = PartitionedTopic("n", False)
    whole.counts.append(4)
    assert group.subscribes("n0", 1, whole).spec.receiver_queue_size == 250


# --- seeks in several topics ----------------------------------------------------------------------------


class Tour:
    """One of the topics, with five messages, of which the subscription has received the first."""

    def __init__(self) -> None:
        self.topic = TopicRecord(f"{BASE}n0", False)
        self.for_seekers = self.topic.subscriptions["tour-0"] = MultiTopicsSoughtSubscription(
            self.topic, "tour-0"
        )
        self.consumer = ConsumerRecord("t0.1", self.for_seekers, ConsumerSpec(self.topic.name, "tour-0"))
        producer = ProducerRecord("p", self.topic, ProducerSpec(topic=self.topic.name))
        for number in range(5):
            sent = Sent(producer, number, b"%d" % number, None, {}, 0)
            sent.sent_at = number
            self.topic.stored((1, number), StoredEntry(b"%d" % number, (sent,)))
        self.for_seekers.subscribed_again()
        self.comes(0)

    def comes(self, entry: int) -> None:
        self.for_seekers.check_order(self.consumer, (1, entry, 0))

    def comes_not(self, entry: int) -> None:
        with pytest.raises(ViolationError):
            self.comes(entry)


def test_nothing_from_before_a_seek_comes_after_it() -> None:
    """INV-C7: after a seek no message from before it comes."""
    tour = Tour()
    tour.for_seekers.is_sought(7, Base((1, 3, 0)))
    tour.for_seekers.done(7, Base((1, 3, 0)), 10)
    tour.comes_not(1)
    tour = Tour()
    tour.for_seekers.is_sought(7, Base((1, 3, 0)))
    tour.for_seekers.done(7, Base((1, 3, 0)), 10)
    tour.comes(3)
    tour.comes(4)


def test_before_the_answer_both_may_come() -> None:
    tour = Tour()
    tour.for_seekers.is_sought(7, Base((1, 3, 0)))
    tour.comes(1)
    tour.comes(3)
    tour.for_seekers.done(7, Base((1, 3, 0)), 10)
    tour.comes(4)


def test_a_seek_that_failed_may_happen_all_the_same() -> None:
    tour = Tour()
    tour.for_seekers.is_sought(7, START)
    tour.for_seekers.not_done(7)
    tour.comes(1)
    tour.comes_not(0)
    tour.for_seekers.subscribed_again()
    tour.comes(0)


def test_a_subscription_that_was_removed_begins_anew() -> None:
    tour = Tour()
    tour.for_seekers.may_be_gone()
    tour.for_seekers.begins_anew()
    tour.comes(0)
    tour.comes_not(2)


def test_a_seek_that_is_answered_late_was_done_before_a_later_one() -> None:
    tour = Tour()
    tour.for_seekers.is_sought(7, START)
    tour.for_seekers.is_sought(8, Base((1, 2, 0)))
    tour.for_seekers.done(8, Base((1, 2, 0)), 10)
    tour.for_seekers.done(7, START, 11)
    tour.comes_not(0)


# --- turns of topics ------------------------------------------------------------------------------------


class Turns(Group):
    """Two topics; one entry waits in the second."""

    def __init__(self) -> None:
        super().__init__()
        producer = ProducerRecord("p", self.known[f"{BASE}n1"], ProducerSpec(topic=f"{BASE}n1"))
        sent = Sent(producer, 0, b"waits", None, {}, 0)
        self.known[f"{BASE}n1"].stored((2, 0), StoredEntry(b"waits", (sent,)))

    def waits(self, joined: bool = True) -> None:
        self.subscribes("n0", 1)
        self.subscribes("n1", 2)
        if joined:
            self.record.joins(f"{BASE}n0", f"{BASE}n1")
        self.record.came(f"{BASE}n1", (2, 0))

    def give_from_the_other(self, messages: int, at_once: int) -> None:
        for number in range(messages):
            self.record.gave(f"{BASE}n0", (1, number), at_once)


def test_no_topic_waits_for_ever() -> None:
    """MULTI-19, INV-C16: each topic has its turn."""
    turns = Turns()
    turns.waits()
    turns.give_from_the_other(10, at_once=5)
    with pytest.raises(ViolationError, match="n1 waits with"):
        turns.give_from_the_other(1, at_once=5)


def test_what_has_not_joined_has_no_turn() -> None:
    """PART-11: its messages wait for the partitions that join with it."""
    turns = Turns()
    turns.waits(joined=False)
    turns.give_from_the_other(100, at_once=5)
    turns.record.joins(f"{BASE}n1")
    with pytest.raises(ViolationError, match="n1 waits with"):
        turns.give_from_the_other(11, at_once=5)


def test_a_consumer_that_takes_them_one_by_one_is_given_runs() -> None:
    turns = Turns()
    turns.waits()
    turns.give_from_the_other(64, at_once=1)


def test_nothing_is_known_of_what_may_be_dropped_or_become_a_dead_letter() -> None:
    turns = Turns()
    turns.waits()
    turns.record.of(f"{BASE}n1").redeliver_all = 1
    turns.give_from_the_other(100, at_once=5)
    turns = Turns()
    turns.record.spec = ConsumerSpec(f"{BASE}n", "group-0", SHARED, dead_letter=DeadLetterPolicy(1))
    turns.waits()
    turns.give_from_the_other(100, at_once=5)


# --- special worlds of several topics -------------------------------------------------------------------


def worlds(count: int, wanted: Callable[[Profile], bool]) -> list[World]:
    """Return the first `count` worlds drawn as wanted; they pass."""
    found: list[World] = []
    for seed in range(2000):
        profile = draw(Streams(seed))
        if wanted(profile):
            world = World(seed, profile)
            report = world.run()
            assert report.outcome is Outcome.PASSED, str(report)
            found.append(world)
            if len(found) == count:
                return found
    raise AssertionError(f"{len(found)} of {count} in 2,000 seeds")


def test_topics_vanish_in_worlds_of_several_brokers() -> None:
    (world,) = worlds(
        1, lambda profile: len(profile.brokers) > 1 and any(plan.gone_after for plan in profile.appearances)
    )
    assert world.faults["topic_vanished"]
    assert world.administrator.vanished


def test_topics_are_created_again() -> None:
    (world,) = worlds(1, lambda profile: any(plan.back_after for plan in profile.appearances))
    assert world.faults["topic_recreated"]
    again = set(world.administrator.ever_vanished) - set(world.administrator.vanished)
    logs = [world.model.topics[name] for name in again]
    assert any(position[0] > topic.gone for topic in logs for position in topic.log), (
        "something is sent again"
    )


def test_readers_of_several_topics() -> None:
    delivered = 0
    for world in worlds(2, lambda profile: any(plan.reads for plan in profile.multi_topics_seekers)):
        for topic in world.model.topics.values():
            for_seekers = [
                each
                for each in topic.subscriptions.values()
                if isinstance(each, MultiTopicsSoughtSubscription)
            ]
            delivered += sum(len(each.delivered) for each in for_seekers if each.reads)
    assert delivered


def test_messages_are_reconsumed_later_where_one_consumer_has_all() -> None:
    (world,) = worlds(
        1, lambda profile: any(group.retry and group.kind.cumulative for group in profile.groups)
    )
    assert world.model.retry_topics
