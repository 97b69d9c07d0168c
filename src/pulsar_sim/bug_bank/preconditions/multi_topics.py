"""Preconditions about consumers of several topics, and about topics that are created and deleted.

See `general`.
"""

from ...engine.clock import SECOND
from ...engine.profile import ConsumerPlan, GroupPlan, Profile
from .general import IN_ORDER, SHARED, grows


def groups(profile: Profile) -> bool:
    """At least one consumer receives from several topics."""
    return any(len(group.topics) + len(group.partitioned) > 1 or group.pattern for group in profile.groups)


def patterns(profile: Profile) -> bool:
    return any(group.pattern for group in _of_several(profile))


def _of_several(profile: Profile) -> list[GroupPlan]:
    return [*profile.groups, *(plan.group for plan in profile.multi_topics_seekers)]


def _watches(profile: Profile) -> bool:
    return profile.broker.topic_list_watcher and any(broker.feature_flags for broker in profile.brokers)


def told_of_topics(profile: Profile) -> bool:
    """A pattern consumer knows only from the brokers which topics are created and deleted."""
    return _watches(profile) and any(
        group.pattern and group.discovery_interval is None for group in _of_several(profile)
    )


def polls(profile: Profile) -> bool:
    """A pattern consumer asks at intervals which topics exist."""
    return any(group.pattern and group.discovery_interval is not None for group in _of_several(profile))


def appears(profile: Profile) -> bool:
    """A topic is created that matches the pattern of a consumer."""
    return bool(profile.appearances) and any("n" in group.pattern for group in _of_several(profile))


def vanishes(profile: Profile) -> bool:
    """A topic that matches the pattern of a consumer is created and later deleted."""
    return appears(profile) and any(plan.gone_after for plan in profile.appearances)


def is_recreated(profile: Profile) -> bool:
    """A topic that matches the pattern of a consumer is deleted and created again."""
    return appears(profile) and any(plan.back_after for plan in profile.appearances)


def groups_grow(profile: Profile) -> bool:
    """A topic gets more partitions while a consumer receives from all of them."""
    return grows(profile) and any(group.partitioned or "p" in group.pattern for group in _of_several(profile))


def comes_late(profile: Profile) -> bool:
    """A consumer of several topics gains a topic or a partition."""
    return appears(profile) or groups_grow(profile)


def watches_alone(profile: Profile) -> bool:
    """A topic is created after at least a minute, when everything else has been quiet."""
    return (
        _watches(profile)
        and appears(profile)
        and any(plan.after >= 60 * SECOND for plan in profile.appearances)
    )


def named_twice(profile: Profile) -> bool:
    return any(group.twice for group in profile.groups)


def groups_halt(profile: Profile) -> bool:
    """A consumer of several topics pauses."""
    return any(plan.halt_permille or plan.starts_halted for plan in _consumers_of_several(profile))


def _consumers_of_several(profile: Profile) -> list[ConsumerPlan]:
    return [plan for group in profile.groups for plan in group.consumers]


def groups_redeliver(profile: Profile) -> bool:
    return groups(profile) and any(plan.redeliver_permille for plan in _consumers_of_several(profile))


def groups_cumulative(profile: Profile) -> bool:
    return groups(profile) and any(
        group.kind in IN_ORDER and any(plan.cumulative_permille for plan in group.consumers)
        for group in profile.groups
    )


def groups_nack(profile: Profile) -> bool:
    return groups(profile) and any(plan.nack_permille for plan in _consumers_of_several(profile))


def groups_are_busy(profile: Profile) -> bool:
    """A consumer of several topics has a queue of 20 messages or more, and takes at most 5 at once."""
    return any(
        group.kind in SHARED and any(plan.take <= 5 and plan.queue >= 20 for plan in group.consumers)
        for group in profile.groups
    )


def shares_a_queue(profile: Profile) -> bool:
    """Partitions share a receiver queue that is smaller than the sum of their own queues."""
    return bool(profile.partitioned) and any(
        group.total_queue < 1000 and any(plan.queue > group.total_queue // 2 for plan in group.consumers)
        for group in profile.groups
        if group.partitioned or "p" in group.pattern
    )


def tours(profile: Profile) -> bool:
    """A consumer or reader of several topics seeks."""
    return any(plan.seek_permille for plan in profile.multi_topics_seekers)


def leaves_several(profile: Profile) -> bool:
    """A consumer removes its subscription to several topics."""
    return any(plan.leave_permille for plan in profile.multi_topics_seekers)


def retries(profile: Profile) -> bool:
    """A consumer of several topics reconsumes messages later."""
    return any(group.retry for group in profile.groups)


def retries_in_order(profile: Profile) -> bool:
    """A consumer with an Exclusive or Failover subscription to several topics reconsumes messages later."""
    return any(group.retry and group.kind in IN_ORDER for group in profile.groups)


def retries_with_all_before(profile: Profile) -> bool:
    """A consumer of several topics has an Exclusive or Failover subscription and keeps messages. Reconsuming
    one message later then also completes the kept ones before it."""
    return any(
        group.retry and group.kind in IN_ORDER and any(plan.keep_permille for plan in group.consumers)
        for group in profile.groups
    )


def retries_often(profile: Profile) -> bool:
    """A consumer of several topics may reconsume one message later more than once."""
    return any(group.retry > 1 for group in profile.groups)
