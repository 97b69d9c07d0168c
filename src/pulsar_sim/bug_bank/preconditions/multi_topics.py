"""What a world must have of consumers of several topics, and of topics that come and go, for a bug to matter.

See `needs`.
"""

from ...engine.clock import SECOND
from ...engine.profile import ConsumerPlan, GroupPlan, Profile
from .general import IN_ORDER, SHARED, grows


def groups(profile: Profile) -> bool:
    """Somebody receives from several topics."""
    return any(len(group.topics) + len(group.partitioned) > 1 or group.pattern for group in profile.groups)


def patterns(profile: Profile) -> bool:
    return any(group.pattern for group in _of_several(profile))


def _of_several(profile: Profile) -> list[GroupPlan]:
    return [*profile.groups, *(plan.group for plan in profile.multi_topics_seekers)]


def _watches(profile: Profile) -> bool:
    return profile.broker.topic_list_watcher and any(broker.feature_flags for broker in profile.brokers)


def told_of_topics(profile: Profile) -> bool:
    """Somebody knows only by what brokers tell which topics come and go."""
    return _watches(profile) and any(
        group.pattern and group.discovery_interval is None for group in _of_several(profile)
    )


def polls(profile: Profile) -> bool:
    """Somebody asks again and again which topics there are."""
    return any(group.pattern and group.discovery_interval is not None for group in _of_several(profile))


def appears(profile: Profile) -> bool:
    """Topics come into being that somebody waits for."""
    return bool(profile.appearances) and any("n" in group.pattern for group in _of_several(profile))


def vanishes(profile: Profile) -> bool:
    """Such topics are deleted again."""
    return appears(profile) and any(plan.gone_after for plan in profile.appearances)


def comes_again(profile: Profile) -> bool:
    """And made anew."""
    return appears(profile) and any(plan.back_after for plan in profile.appearances)


def groups_grow(profile: Profile) -> bool:
    """A topic gets more partitions while somebody receives from all of them."""
    return grows(profile) and any(group.partitioned or "p" in group.pattern for group in _of_several(profile))


def comes_late(profile: Profile) -> bool:
    """Topics or partitions join those that somebody has."""
    return appears(profile) or groups_grow(profile)


def watches_alone(profile: Profile) -> bool:
    """A topic comes into being when all else has been quiet for a minute."""
    return (
        _watches(profile)
        and appears(profile)
        and any(plan.after >= 60 * SECOND for plan in profile.appearances)
    )


def named_twice(profile: Profile) -> bool:
    return any(group.twice for group in profile.groups)


def groups_halt(profile: Profile) -> bool:
    """Somebody who receives from several topics pauses."""
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
    """More waits in several topics than who receives from them takes at once."""
    return any(
        group.kind in SHARED and any(plan.take <= 5 and plan.queue >= 20 for plan in group.consumers)
        for group in profile.groups
    )


def shares_a_queue(profile: Profile) -> bool:
    """Partitions share a queue that is smaller than what each would have."""
    return bool(profile.partitioned) and any(
        group.total_queue < 1000 and any(plan.queue > group.total_queue // 2 for plan in group.consumers)
        for group in profile.groups
        if group.partitioned or "p" in group.pattern
    )


def tours(profile: Profile) -> bool:
    """Somebody seeks in several topics."""
    return any(plan.seek_permille for plan in profile.multi_topics_seekers)


def leaves_several(profile: Profile) -> bool:
    """Somebody removes a subscription to several topics."""
    return any(plan.leave_permille for plan in profile.multi_topics_seekers)


def retries(profile: Profile) -> bool:
    """Messages are put off, to come again later."""
    return any(group.retry for group in profile.groups)


def retries_in_order(profile: Profile) -> bool:
    """Where one consumer has all messages, and acknowledges them one by one."""
    return any(group.retry and group.kind in IN_ORDER for group in profile.groups)


def retries_with_all_before(profile: Profile) -> bool:
    """Where one consumer has all messages, keeps some, and is done with them when it puts one off."""
    return any(
        group.retry and group.kind in IN_ORDER and any(plan.keep_permille for plan in group.consumers)
        for group in profile.groups
    )


def retries_often(profile: Profile) -> bool:
    """More than once."""
    return any(group.retry > 1 for group in profile.groups)
