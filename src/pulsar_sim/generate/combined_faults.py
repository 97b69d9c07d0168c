"""Worlds in which one misfortune comes upon another: either is frequent, both at once hardly ever happen.

Owns draws that make that likely in worlds which are fit for it, the last of all: who takes part is drawn. A
world that is not chosen is the same as it would be without them.
"""

from dataclasses import replace

from pulsar_sansio.model.config import SubscriptionType

from ..engine.clock import MILLISECOND, SECOND
from ..engine.profile import AppearancePlan, Profile, RoamerPlan
from ..engine.randomness import Stream, Streams
from .rare_worlds import busy, trouble

LATEST = 10 * SECOND
"""When topics appear, as a rule."""

MOST_GROUP_TIME = 0.1
"""Seconds: what waits for acknowledgements comes in time all the same."""

SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)

MOST_TO_COME = 6
"""Topics that appear, for each of which somebody may have to wait."""


def draw_misfortunes(streams: Streams, profile: Profile) -> None:
    """All of them, each perhaps."""
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
    """Who waits for topics that appear cannot subscribe one, nor ask then what there is."""
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
    """A broker of the cluster that a topic leaves names another one of it at that moment."""
    if len(profile.brokers) < 2 or not profile.migrations:
        return
    for migration in profile.migrations:
        migration.after = draw.between(500, 5000) * MILLISECOND
    busy(profile)
    profile.store_delay, profile.operation_timeout = SECOND, 10.0
    trouble(draw, profile, "topic_stolen", "topic_moved_with_address", every=100 * MILLISECOND)


def _unacknowledged_by_all(draw: Stream, profile: Profile) -> None:
    """A subscription may have few messages unacknowledged, whoever of its consumers holds them. Not where a
    message may be in more chunks than that: nobody would ever have all of it."""
    chunks = any(plan.chunk_size for plan in profile.producers)
    if not chunks and any(plan.kind in SHARED for plan in profile.subscriptions):
        limit = draw.choice([10, 30, 100])
        profile.broker = replace(profile.broker, max_unacked_messages_per_subscription=limit)
        for plan in [*profile.consumers, *(each for group in profile.groups for each in group.consumers)]:
            plan.group_time = min(plan.group_time, MOST_GROUP_TIME)


def _a_chunk_and_no_more(draw: Stream, profile: Profile) -> None:
    """Readers that have begun at the end of a topic have got a chunk, and nothing else, when the connection
    is lost that they share with who sends it."""
    plans = [plan for plan in profile.producers if plan.chunk_size and plan.partitioned is None]
    if not plans or profile.migrations or profile.appearances:
        return
    sender = draw.choice(plans)
    sender.largest, sender.messages = 2 * sender.chunk_size, 24
    for plan in profile.producers:
        plan.client, plan.burst = sender.client, 1
        plan.pause = max(plan.pause, SECOND)
    profile.connections_per_broker = 1
    profile.roamers += [
        RoamerPlan(
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
