"""Consumers of several topics: of a list, of partitions, or of a pattern; and topics that are created and
deleted meanwhile.

The draws have streams of their own and follow the rest of a world: one that is not chosen stays unchanged.
"""

from dataclasses import replace

from pulsar_sansio.model.config import HashingScheme, ProducerAccessMode, SubscriptionType

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import (
    AppearancePlan,
    ConsumerPlan,
    GroupPlan,
    GrowthPlan,
    MultiTopicsSeekerPlan,
    PartitionedPlan,
    ProducerPlan,
    Profile,
)
from ...engine.randomness import Stream
from ...faults.catalogue import GROUP_FAULTS
from ..producers import usual_batch
from .consumers import may_be_refused

PATTERNS = ("[tn].*", "[np].*", "[tnp].*", "n[0-9]+", "n.*", "(t|n)[0-9]", "p.*")
"""Patterns of topics' local names, which begin with t, with p for partitioned topics, and with n for topics
created later."""

WATCHING_VERSION = 21
"""The protocol version of all brokers in a world that relies on topic-list watchers."""

LATE_INTERVAL = 10.0
"""Seconds between two requests, at least, in a world with a quiet minute."""


def draw_groups(draw: Stream, profile: Profile, always: bool = False) -> None:
    """One or two groups, where topics do not migrate."""
    if not (always or draw.chance(150)):
        return
    if profile.migrations or any(plan.deleted for plan in profile.ends):
        return
    for _ in range(draw.weighted([(1, 4), (2, 1)])):
        _draw_group(draw, profile)
    if profile.fault_gap:
        polled = all(not group.pattern or _is_short(group.discovery_interval) for group in profile.groups)
        kinds = [kind for kind in GROUP_FAULTS if kind != "watch_update_lost" or polled]
        some = [kind for kind in kinds if draw.chance(500)]
        others = list(profile.faults)
        if some and draw.chance(400):  # they strike often, and few others do
            draw.shuffle(others)
            others = others[:4]
        profile.faults = sorted({*others, *some})


def _is_short(interval: float | None) -> bool:
    return interval is not None and interval < 10.0


def _draw_group(draw: Stream, profile: Profile) -> None:
    kind = draw.choice(list(SubscriptionType))
    several = kind is not SubscriptionType.EXCLUSIVE
    count = draw.weighted([(1, 4), (2, 3), (3, 1)] if several else [(1, 8), (2, 1)])
    group = GroupPlan(kind, [_receiver(draw, profile) for _ in range(count)])
    _draw_topics(draw, profile, group)
    profile.groups.append(group)


def draw_multi_topics_seekers(draw: Stream, profile: Profile) -> None:
    """An application that seeks in several topics, which do not migrate, without chunks."""
    if not draw.chance(90):
        return
    if profile.migrations or any(plan.deleted for plan in profile.ends):
        return
    if any(plan.chunk_size for plan in profile.producers):
        return
    group = GroupPlan(SubscriptionType.EXCLUSIVE, [])
    _draw_topics(draw, profile, group)
    profile.multi_topics_seekers.append(
        MultiTopicsSeekerPlan(
            client=draw.below(profile.clients),
            group=group,
            times="wall_clock_set" not in profile.faults and draw.chance(500),
            queue=draw.choice([1, 2, 10, 100, 1000]),
            take=draw.choice([1, 3, 10, 100]),
            pause=draw.spread(MILLISECOND, SECOND),
            seek_permille=draw.choice([50, 200, 500]),
            ask_permille=draw.choice([0, 200, 500]),
            leave_permille=draw.choice([0, 0, 50, 200]),
            close_permille=draw.choice([0, 0, 20]),
        )
    )
    seeker = profile.multi_topics_seekers[-1]
    if not group.pattern and draw.chance(500):
        seeker.reads, seeker.leave_permille, group.twice = True, 0, 0
    may_be_refused(draw, profile)


def _draw_topics(draw: Stream, profile: Profile, group: GroupPlan) -> None:
    """Draw the topics, and the intervals between requests for them."""
    group.update_interval = draw.choice([0.5, 1.0, 3.0])
    group.total_queue = draw.choice([50_000, 50_000, 8])
    what = draw.weighted([("pattern", 6), ("partitioned", 2), ("list", 3)])
    if what == "pattern":
        _draw_pattern(draw, profile, group)
    elif what == "partitioned":
        _need_partitions(draw, profile)
        group.partitioned = [0]
    else:
        group.topics = [topic for topic in range(profile.topics) if draw.chance(800)]
        if not group.topics or draw.chance(300):
            _need_partitions(draw, profile)
            group.partitioned = [0]
        group.twice = draw.weighted([(0, 1), (1, 2)])


def _draw_pattern(draw: Stream, profile: Profile, group: GroupPlan) -> None:
    group.pattern = draw.choice(PATTERNS)
    if "p" in group.pattern:
        _need_partitions(draw, profile)
    watched = draw.chance(850)
    profile.broker = replace(profile.broker, topic_list_watcher=watched or profile.broker.topic_list_watcher)
    group.discovery_interval = draw.choice([0.5, 1.0, 3.0])
    if watched and draw.chance(600):
        group.discovery_interval = draw.choice([60.0, None, None, None])
        for broker in profile.brokers:
            broker.protocol_version, broker.feature_flags = WATCHING_VERSION, True
    for _ in range(draw.weighted([(0, 1), (1, 6), (2, 2), (3, 1)])):
        late = draw.chance(100)
        if late:  # during that time only due frames are written
            profile.keepalive = 10.0
            profile.broker = replace(profile.broker, keepalive_interval=10.0)
            group.update_interval = LATE_INTERVAL
            if group.discovery_interval is not None:
                group.discovery_interval = max(group.discovery_interval, LATE_INTERVAL)
        after = draw.spread(60 * SECOND, 100 * SECOND) if late else draw.between(1, 100) * 100 * MILLISECOND
        appearance = AppearancePlan(after, made=draw.chance(600))
        if draw.chance(500):
            appearance.gone_after = draw.spread(100 * MILLISECOND, 10 * SECOND)
            if not late and draw.chance(600):
                appearance.back_after = draw.spread(100 * MILLISECOND, 5 * SECOND)
        profile.appearances.append(appearance)
        profile.producers.append(
            replace(_sender(draw, profile), appearing=len(profile.appearances) - 1, partitioned=None)
        )


def _need_partitions(draw: Stream, profile: Profile) -> None:
    """A partitioned topic that grows, and a producer for it."""
    if profile.partitioned:
        return
    plan = PartitionedPlan(draw.weighted([(1, 1), (2, 4), (3, 3)]))
    count, after = plan.partitions, 0
    for _ in range(draw.weighted([(0, 2), (1, 4), (2, 1)])):
        count += draw.between(1, 2)
        after += draw.spread(10 * MILLISECOND, 8 * SECOND)
        plan.growth.append(GrowthPlan(after, count))
    profile.partitioned.append(plan)
    profile.producers.append(replace(_sender(draw, profile), partitioned=0, appearing=None))


def _sender(draw: Stream, profile: Profile) -> ProducerPlan:
    """Return the plan of a producer that sends a few messages, like one of the existing producers."""
    plan = draw.choice(profile.producers)
    return replace(
        plan,
        client=draw.below(profile.clients),
        messages=draw.spread(4, 32),
        chunk_size=0,
        largest=min(plan.largest, 2000),
        access=ProducerAccessMode.SHARED,
        contested=False,
        explicit=False,
        initial=None,
        interceptors=[],
        routing=draw.choice(["round_robin", "single_partition"]),
        hashing=HashingScheme.JAVA_STRING,
        update_interval=draw.choice([1.0, 2.0, 5.0]),
    )


def _receiver(draw: Stream, profile: Profile) -> ConsumerPlan:
    batch = max(map(usual_batch, profile.producers))
    plan = ConsumerPlan(
        client=draw.below(profile.clients),
        topic=0,
        subscription=0,
        queue=draw.choice([1, 5, 20, 20, 100, 1000]) * (batch if draw.chance(900) else 1),
        receipts=draw.chance(400),
        batch_index=draw.chance(500),
        group_time=draw.choice([0.0, 0.01, 0.1, 0.1, 1.0]),
        group_size=draw.choice([2, 20, 1000]),
        nack_delay=draw.choice([0.0, 0.1, 1.0]),
        nack_permille=draw.choice([0, 0, 20, 50, 100]),
        keep_permille=draw.choice([0, 0, 100, 500]),
        cumulative_permille=draw.choice([0, 100, 1000]),
        redeliver_permille=draw.choice([0, 0, 20]),
        close_permille=draw.choice([0, 0, 10, 50]),
        confirm_permille=draw.choice([0, 50, 200]),
        pause=draw.spread(MILLISECOND, SECOND),
        take=draw.choice([1, 5, 5, 100]),
        priority=0,
    )
    if draw.chance(200):
        plan.tick = draw.choice([0.05, 0.2, 1.0])
        plan.timeout = plan.tick * draw.choice([1, 3, 10])
        plan.forget_permille = draw.choice([0, 20, 100])
        plan.growing = draw.chance(400)
    if draw.chance(200):
        plan.halt_permille = draw.choice([0, 50, 200])
        plan.starts_halted = draw.chance(300)
        plan.scaled = draw.chance(200)
    return plan


def draw_retries(draw: Stream, profile: Profile) -> None:
    """A subscription whose messages are reconsumed later now and then. Its topic does not migrate and has no
    chunks, and wall clocks are not set."""
    if not draw.chance(110) or profile.migrations or any(plan.deleted for plan in profile.ends):
        return
    if "wall_clock_set" in profile.faults:
        return
    chunked = {plan.topic for plan in profile.producers if plan.chunk_size}
    plain = {plan.topic for plan in profile.producers if plan.partitioned is None and plan.appearing is None}
    used = sorted(plain - chunked)
    if not used:
        return
    topics = [draw.choice(used)] if draw.chance(700) else used
    kinds = [SubscriptionType.SHARED, SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]
    kind = draw.choice([*kinds, SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
    several = kind is not SubscriptionType.EXCLUSIVE
    count = draw.weighted([(1, 3), (2, 2)]) if several else 1
    consumers = [_receiver(draw, profile) for _ in range(count)]
    for plan in consumers:
        plan.timeout, plan.forget_permille, plan.growing = 0.0, 0, False
        plan.reconsume_permille = draw.choice([100, 300])
        if kind.cumulative:
            plan.keep_permille = draw.choice([0, 100, 500])
            plan.cumulative_permille = draw.choice([0, 0, 500])
    profile.groups.append(GroupPlan(kind, consumers, topics=topics, retry=draw.choice([1, 1, 2, 3])))
