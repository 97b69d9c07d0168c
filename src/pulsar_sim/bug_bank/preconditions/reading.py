"""Preconditions about readers, seeks, table views and compaction.

See `general`.
"""

from ...engine.profile import Profile
from .general import fault, grows, in_chunks


def roams(profile: Profile) -> bool:
    """A consumer or reader of one topic seeks."""
    return any(plan.seek_permille for plan in profile.single_topic_seekers)


def roams_and_acknowledges(profile: Profile) -> bool:
    return any(
        plan.durable and plan.acknowledge_permille and plan.group_time
        for plan in profile.single_topic_seekers
    )


def reads(profile: Profile) -> bool:
    """At least one application reads a topic with a reader."""
    return any(not plan.durable for plan in profile.single_topic_seekers)


def reads_partitions(profile: Profile) -> bool:
    """A reader reads several partitions, or a table view views them."""
    reads = any(plan.reads and plan.group.partitioned for plan in profile.multi_topics_seekers)
    several = any(plan.partitions > 1 for plan in profile.partitioned)
    return (reads and several) or tables_of_partitions(profile)


def whispers_to_readers(profile: Profile) -> bool:
    """A reader reads a non-persistent topic."""
    return any(plan.reads for plan in profile.nonpersistent_apps)


def asks(profile: Profile) -> bool:
    """A consumer or reader asks whether more messages are available."""
    return any(plan.ask_permille for plan in profile.single_topic_seekers)


def tables(profile: Profile) -> bool:
    """At least one application has a table view."""
    return bool(profile.tables)


def tables_of_partitions(profile: Profile) -> bool:
    """A table view views a topic of several partitions."""
    several = any(plan.partitions > 1 for plan in profile.partitioned)
    return several and any(plan.partitioned is not None for plan in profile.tables)


def tables_that_grow(profile: Profile) -> bool:
    """A table view views a topic that gets more partitions meanwhile."""
    return grows(profile) and any(plan.partitioned is not None for plan in profile.tables)


def reads_growing(profile: Profile) -> bool:
    """A reader or a table view, which has no durable subscription, reads a topic that gets more
    partitions."""
    reads = any(plan.reads and plan.group.partitioned for plan in profile.multi_topics_seekers)
    return tables_that_grow(profile) or (reads and grows(profile))


def tables_close(profile: Profile) -> bool:
    """An application now and then closes a table view, alone or with its client."""
    return tables(profile) and (
        any(plan.close_permille for plan in profile.tables) or fault("client_closed")(profile)
    )


def compactions(profile: Profile) -> bool:
    """At least one topic is compacted."""
    return bool(profile.compactions)


def roams_compacted(profile: Profile) -> bool:
    """An application reads a compacted topic, message by message."""
    return compactions(profile) and any(plan.compacted for plan in profile.single_topic_seekers)


def reads_compacted(profile: Profile) -> bool:
    """An application reads a compacted topic, message by message or with a table view."""
    return compactions(profile) and (tables(profile) or roams_compacted(profile))


def roams_among_chunks(profile: Profile) -> bool:
    """A consumer or reader seeks in a topic with messages in chunks."""
    topics = {plan.topic for plan in in_chunks(profile) if plan.partitioned is None}
    return any(plan.seek_permille and plan.topic in topics for plan in profile.single_topic_seekers)


def reads_chunks(profile: Profile) -> bool:
    """A reader reads a topic with messages in chunks."""
    topics = {plan.topic for plan in in_chunks(profile) if plan.partitioned is None}
    return any(not plan.durable and plan.topic in topics for plan in profile.single_topic_seekers)
