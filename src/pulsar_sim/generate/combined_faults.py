"""Worlds in which two conditions meet: each is frequent, both at once hardly ever happen.

Owns the draws that make a combination likely in worlds fit for it. They come last, when the applications are
drawn. A world that is not chosen stays unchanged.
"""

from dataclasses import replace

from pulsar_sansio.model.config import SubscriptionType

from ..engine.clock import MILLISECOND, SECOND
from ..engine.profile import AppearancePlan, Profile, SingleTopicSeekerPlan
from ..engine.randomness import Stream, Streams
from .rare_worlds import busy, trouble

LATEST = 10 * SECOND
"""Nanoseconds until topics appear, usually."""

MOST_GROUP_TIME = 0.1
"""Seconds: acknowledgements in a group are still sent in time."""

SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)

MOST_TO_COME = 6
"""Topics that appear, for each of which a consumer may have to wait."""


def draw_combined_faults(streams: Streams, profile: Profile) -> None:
    """Draw each combination, perhaps."""
    draw = streams.stream("refused while a topic comes")
    if draw.chance(500):
        _refused_while_a_topic_comes(draw, profile)
    draw = streams.stream("named while it migrates")
    if draw.chance(300):
        _named_while_it_migrates(draw, profile)
    draw = streams.stream("unacknowledged by all")
    if draw.chance(100):
        _unacknowledged_by_all(draw, profile)
    draw = streams.stream("a chunk and no more")
    if draw.chance(150):
        _a_chunk_and_no_more(draw, profile)


def _refused_while_a_topic_comes(draw: Stream, profile: Profile) -> None:
    """Consumers that wait for topics to appear cannot subscribe to one, nor ask for topics at that time."""
    waiting = [each for each in profile.groups if each.pattern and each.discovery_interval is None]
    late = any(each.after > LATEST for each in profile.appearances)  # about a quiet minute
    if not waiting or not profile.appearances or late:
        return
    profile.operation_timeout = 2.0
    while len(profile.appearances) < MOST_TO_COME:
        profile.appearances.append(AppearancePlan(0))
    for appearance in profile.appearances:
        appearance.after = draw.between(5, 100) * 100 * MILLISECOND
    often = ["request_unanswered", "topics_refused"] * 3
    trouble(draw, profile, *often, "subscribe_refused", "partitions_refused")


def _named_while_it_migrates(draw: Stream, profile: Profile) -> None:
    """A broker of the cluster that a topic leaves names another broker of it at that moment."""
    if len(profile.brokers) < 2 or not profile.migrations:
        return
    for migration in profile.migrations:
        migration.after = draw.between(500, 5000) * MILLISECOND
    busy(profile)
    profile.store_delay, profile.operation_timeout = SECOND, 10.0
    trouble(draw, profile, "topic_stolen", "topic_moved_with_address", every=100 * MILLISECOND)


def _unacknowledged_by_all(draw: Stream, profile: Profile) -> None:
    """A subscription may have few messages unacknowledged, over all of its consumers. Leave out worlds where
    a message may have more chunks than that: no consumer would ever get all of them."""
    chunks = any(plan.chunk_size for plan in profile.producers)
    if not chunks and any(plan.kind in SHARED for plan in profile.subscriptions):
        limit = draw.choice([10, 30, 100])
        profile.broker = replace(profile.broker, max_unacked_messages_per_subscription=limit)
        for plan in [*profile.consumers, *(each for group in profile.groups for each in group.consumers)]:
            plan.group_time = min(plan.group_time, MOST_GROUP_TIME)


def _a_chunk_and_no_more(draw: Stream, profile: Profile) -> None:
    """Readers that began at the end of a topic have received one chunk and nothing else when they lose the
    connection that they share with its producer."""
    plans = [plan for plan in profile.producers if plan.chunk_size and plan.partitioned is None]
    if not plans or profile.migrations or profile.appearances:
        return
    sender = draw.choice(plans)
    sender.largest, sender.messages = 2 * sender.chunk_size, 24
    for plan in profile.producers:
        plan.client, plan.burst = sender.client, 1
        plan.pause = max(plan.pause, SECOND)
    profile.connections_per_broker = 1
    profile.single_topic_seekers += [
        SingleTopicSeekerPlan(
            client=sender.client,
            topic=sender.topic,
            durable=False,
            times=False,
            queue=draw.choice([2, 10, 100]),
            take=draw.choice([3, 100]),
            pause=draw.between(50, 300) * MILLISECOND,
            seek_permille=50,
            ask_permille=500,
            acknowledge_permille=0,
            close_permille=200,
            group_time=0.1,
        )
        for _ in range(3)
    ]
    trouble(draw, profile, "cut_between_chunks")
