"""Features of some consumers: timeouts, pauses, dead letters, seeks.

Each function draws one feature, perhaps, from a stream of its own, and changes nothing else.
"""

from dataclasses import replace
from itertools import pairwise

from pulsar_sansio.model.config import BatchingPolicy, SubscriptionType

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import NonPersistentPlan, Profile, SingleTopicSeekerPlan
from ...engine.randomness import Stream
from ...model.key_ranges import HASHES
from ..producers import keep_entries, largest_usual_batch, usual_batch

SLOW = 4 * SECOND
"""Pause of a consumer that takes one message at a time, at most: longer than its acknowledgement timeout."""


def draw_timeouts(draw: Stream, profile: Profile) -> None:
    """Consumers with an acknowledgement timeout, and delays that grow."""
    if not draw.chance(120):
        return
    for plan in profile.consumers:
        if draw.chance(700):
            plan.tick = draw.choice([0.05, 0.2, 1.0])
            plan.timeout = plan.tick * draw.choice([1, 1, 3, 10])
            plan.forget_permille = draw.choice([0, 20, 100, 300])
            if plan.forget_permille == 0:
                plan.keep_permille = max(plan.keep_permille, 100)
        plan.growing = draw.chance(400)


def draw_flow(draw: Stream, profile: Profile) -> None:
    """Consumers with a queue of size 0 or a scaled queue, and consumers that are paused for a while."""
    if not draw.chance(120):
        return
    for plan in profile.consumers:
        plan.halt_permille = draw.choice([0, 50, 200])
        plan.starts_halted = draw.chance(300)
        plan.scaled = draw.chance(300)
        if draw.chance(300):
            plan.queue = 0


def draw_dead_letters(draw: Stream, profile: Profile) -> None:
    """Subscriptions whose consumers refuse messages so often that these become dead letters."""
    if not draw.chance(120):
        return
    chunked = any(plan.chunk_size for plan in profile.producers)
    if chunked or profile.migrations or any(plan.deleted for plan in profile.ends):
        return
    give_up(draw, profile)


def give_up(draw: Stream, profile: Profile) -> None:
    """Let the consumers of shared subscriptions refuse messages, and dead-letter those refused too often."""
    for index, subscription in enumerate(profile.subscriptions):
        limit = draw.choice([1, 1, 2, 3])
        delay = draw.choice([0.0, 0.1])
        for plan in profile.consumers:
            if plan.subscription == index and not subscription.kind.cumulative:
                plan.dead_letters = limit
                plan.nack_delay = delay
                plan.nack_permille = draw.choice([200, 500])


def draw_bad_messages(draw: Stream, profile: Profile) -> None:
    """A subscription whose consumers handle one message at a time, some of them slowly, and fail for certain
    messages at each delivery; mostly in batches."""
    chunked = any(plan.chunk_size for plan in profile.producers)
    if chunked or profile.migrations or any(plan.deleted for plan in profile.ends) or not draw.chance(150):
        return
    shared = [
        index
        for index, each in enumerate(profile.subscriptions)
        if not each.kind.cumulative and any(plan.subscription == index for plan in profile.consumers)
    ]
    if not shared:
        return
    subscription = draw.choice(shared)
    limit, every = draw.choice([1, 2, 3]), draw.choice([4, 7, 11])
    delay, keep = draw.choice([0.0, 0.1, 0.5]), draw.choice([0, 200, 500])
    slow = draw.chance(300)
    for plan in profile.consumers:
        if plan.subscription == subscription:
            plan.dead_letters = limit
            plan.nack_delay = delay
            plan.nack_permille = 0
            plan.keep_permille = keep
            plan.bad_every = every
            plan.take = draw.choice([1, 1, 3])
            if slow:  # a message times out while the rest of its batch waits
                plan.timeout, plan.tick, plan.pause = 1.0, 0.5, SLOW


def draw_dead_letters_of_chunks(draw: Stream, profile: Profile) -> None:
    """Dead letters where messages come in chunks."""
    if not any(plan.chunk_size for plan in profile.producers) or not draw.chance(200):
        return
    if not profile.migrations and not any(plan.deleted for plan in profile.ends):
        give_up(draw, profile)


def draw_single_topic_seekers(draw: Stream, profile: Profile) -> None:
    """One or two applications that read and seek in a topic that does not migrate, without chunks."""
    if not draw.chance(120):
        return
    gone = {plan.topic for plan in profile.ends if plan.deleted} | {plan.topic for plan in profile.migrations}
    gone |= {plan.topic for plan in profile.producers if plan.chunk_size}
    used = {plan.topic for plan in profile.producers if plan.partitioned is None} - gone
    for _ in range(draw.between(1, 2) if used else 0):
        profile.single_topic_seekers.append(
            _seeker(draw, profile, draw.below(profile.clients), draw.choice(sorted(used)))
        )
    may_be_refused(draw, profile)


def may_be_refused(draw: Stream, profile: Profile) -> None:
    """Refuse requests that only seeking applications make, often."""
    if profile.fault_gap and draw.chance(400):
        profile.faults = sorted({*profile.faults[::2], "seek_refused", "last_message_refused"})


def _seeker(draw: Stream, profile: Profile, client: int, topic: int) -> SingleTopicSeekerPlan:
    batch = largest_usual_batch(profile, topic)
    return SingleTopicSeekerPlan(
        client=client,
        topic=topic,
        durable=draw.chance(500),
        times="wall_clock_set" not in profile.faults and draw.chance(500),
        queue=draw.choice([1, 2, 10, 100, 1000]) * (batch if draw.chance(900) else 1),
        take=draw.choice([1, 3, 10, 100]),
        pause=draw.spread(MILLISECOND, SECOND),
        seek_permille=draw.choice([50, 200, 500]),
        ask_permille=draw.choice([0, 200, 500]),
        acknowledge_permille=draw.choice([0, 300]),
        close_permille=draw.choice([0, 0, 20]),
        group_time=draw.choice([0.0, 0.1, 1.0]),
    )


def draw_seekers_among_chunks(draw: Stream, profile: Profile) -> None:
    """An application that seeks among messages in chunks."""
    topics = {plan.topic for plan in profile.producers if plan.chunk_size and plan.partitioned is None}
    if not topics or profile.migrations or not draw.chance(300):
        return
    seeker = _seeker(draw, profile, draw.below(profile.clients), draw.choice(sorted(topics)))
    seeker.times = False
    profile.single_topic_seekers.append(seeker)


def draw_sticky_keys(draw: Stream, profile: Profile) -> None:
    """A Key_Shared subscription whose consumers own fixed ranges of keys, which cover every key together."""
    found = [
        index
        for index, plan in enumerate(profile.subscriptions)
        if plan.kind is SubscriptionType.KEY_SHARED
        and any(consumer.subscription == index for consumer in profile.consumers)
    ]
    if not found or not draw.chance(200):
        return
    index = draw.choice(found)
    consumers = [plan for plan in profile.consumers if plan.subscription == index]
    if len(consumers) == 1:
        another = replace(consumers[0], client=draw.below(profile.clients), ranges=[])
        profile.consumers.append(another)
        consumers.append(another)
    ends: set[int] = set()
    while len(ends) < len(consumers) * 2:
        ends.add(draw.below(HASHES - 1))
    ranges = [[first + 1, last] for first, last in pairwise([-1, *sorted(ends), HASHES - 1])]
    draw.shuffle(ranges)
    for number, each in enumerate(ranges):
        consumers[number % len(consumers)].ranges.append(each)
    for plan in consumers:
        plan.greedy_permille = draw.choice([0, 0, 200])
    for producer in profile.producers:
        if producer.topic == profile.subscriptions[index].topic and producer.partitioned is None:
            before = usual_batch(producer)
            producer.rich_permille = draw.choice([500, 1000])
            keep_entries(producer, before)


def draw_nonpersistent_apps(draw: Stream, profile: Profile) -> None:
    """One or two applications with a non-persistent topic, where no producer waits for memory."""
    if not draw.chance(60) or profile.memory_limit is not None:
        return
    for _ in range(draw.weighted([(1, 3), (2, 1)])):
        profile.nonpersistent_apps.append(
            NonPersistentPlan(
                client=draw.below(profile.clients),
                reads=draw.chance(600),
                queue=draw.choice([1, 10, 100]),
                pause=draw.spread(50 * MILLISECOND, 2 * SECOND),
                close_permille=draw.choice([0, 0, 50]),
                batching=draw.choice([None, BatchingPolicy(max_delay=0.02)]),
            )
        )
