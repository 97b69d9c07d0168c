"""Features of some topics: table views, and compaction now and then.

Each function draws one feature, perhaps, from a stream of its own, and changes nothing else.
"""

from pulsar_sansio.model.config import HashingScheme

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import CompactionPlan, Profile, TableViewPlan
from ...engine.randomness import Stream
from ..producers import keep_entries, usual_batch

MOST_COMPACTIONS = 6

MOST_OF_ONE = 60
"""Messages of one producer to a partitioned topic with table views: each view reads all of them."""


def draw_tables(draw: Stream, profile: Profile) -> None:
    """A topic that is compacted and has table views; it does not migrate and has no chunks. Applications that
    seek in it may read the compacted topic."""
    if not draw.chance(100):
        return
    gone = {plan.topic for plan in profile.ends if plan.deleted} | {plan.topic for plan in profile.migrations}
    gone |= {plan.topic for plan in profile.producers if plan.chunk_size}
    used = {
        plan.topic for plan in profile.producers if plan.partitioned is None and plan.appearing is None
    } - gone
    if not used:
        return
    roamed = {plan.topic for plan in profile.single_topic_seekers}
    topic = draw.choice(sorted((used & roamed) or used))
    for plan in profile.producers:
        if plan.topic == topic and plan.partitioned is None and plan.appearing is None:
            before = usual_batch(plan)
            plan.rich_permille = draw.choice([700, 1000])
            keep_entries(plan, before)
    for _ in range(draw.weighted([(1, 3), (2, 1)])):
        profile.tables.append(
            TableViewPlan(
                client=draw.below(profile.clients),
                topic=topic,
                queue=draw.choice([1, 2, 10, 100, 1000]),
                pause=draw.spread(20 * MILLISECOND, SECOND),
                refresh_permille=draw.choice([100, 500]),
                close_permille=draw.choice([0, 0, 20, 50]),
            )
        )
    for _ in range(draw.below(MOST_COMPACTIONS + 1)):
        after = draw.spread(10 * MILLISECOND, min(profile.run_time, 20 * SECOND))
        profile.compactions.append(CompactionPlan(topic, after))
    for seeker in profile.single_topic_seekers:
        seeker.compacted = seeker.topic == topic and draw.chance(700)


def draw_tables_of_partitions(draw: Stream, profile: Profile) -> None:
    """A table view of a partitioned topic, which may grow while it is viewed."""
    if not profile.partitioned or not draw.chance(200):
        return
    senders = [plan for plan in profile.producers if plan.partitioned == 0]
    if any(plan.chunk_size for plan in senders):
        return
    for plan in senders:
        before = usual_batch(plan)
        plan.messages = min(plan.messages, MOST_OF_ONE)
        plan.rich_permille = draw.choice([700, 1000])
        plan.hashing = HashingScheme.JAVA_STRING
        if plan.routing == "by_size":
            plan.routing = "round_robin"
        keep_entries(plan, before)
    profile.tables.append(
        TableViewPlan(
            client=draw.below(profile.clients),
            topic=0,
            queue=draw.choice([1, 10, 100, 1000]),
            pause=draw.spread(50 * MILLISECOND, SECOND),
            refresh_permille=draw.choice([100, 300]),
            close_permille=draw.choice([0, 0, 20]),
            partitioned=0,
            update_interval=draw.choice([0.5, 1.0, 3.0]),
        )
    )
