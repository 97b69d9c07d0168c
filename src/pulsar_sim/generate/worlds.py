"""A world as a whole: its size, and the order of the draws.

Owns the order: features change producers drawn before, and some exclude each other. Consumers follow, when it
is known which messages are sent where; then rare worlds, and features of some consumers. A new feature is a
new function, called last, with a stream of its own.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from ..engine.clock import MICROSECOND, MILLISECOND, SECOND
from ..engine.profile import EndPlan, Profile
from ..engine.randomness import Stream, Streams
from .brokers import broker_config, draw_brokers, draw_options
from .combined_faults import draw_combined_faults
from .consumers import draw_consumers, draw_subscriptions, draw_transient_subscribers
from .faults import draw_faults
from .features.consumers import (
    draw_bad_messages,
    draw_dead_letters,
    draw_dead_letters_of_chunks,
    draw_flow,
    draw_nonpersistent_apps,
    draw_seekers_among_chunks,
    draw_single_topic_seekers,
    draw_sticky_keys,
    draw_timeouts,
)
from .features.credentials import draw_credentials
from .features.encryption import draw_encrypted_values, draw_encryption
from .features.failover import draw_control, draw_failover
from .features.multi_topics import draw_groups, draw_multi_topics_seekers, draw_retries
from .features.producers import (
    draw_access,
    draw_batches_by_key,
    draw_chunks,
    draw_creation,
    draw_delays,
    draw_identities,
    draw_partitions,
)
from .features.schemas import draw_schemas, draw_schemas_of_messages
from .features.table_views import draw_tables, draw_tables_of_partitions
from .features.transactions import (
    draw_chunks_in_transactions,
    draw_exactly_once,
    draw_letters_in_transactions,
    draw_loops,
    draw_partitions_in_transactions,
    draw_payloads_in_transactions,
    draw_transactions,
)
from .features.web import draw_crowd, draw_web
from .producers import draw_producers, usual_batch
from .rare_worlds import draw_special

SMALL_PERMILLE = 850
"""Small worlds per thousand: one topic, one or two clients, few features. Such a world takes two thirds of
the time of a large one, and shows most bugs. The others have all features."""

FEATURE_PERMILLE = 500
"""Small worlds per thousand that may have a feature: then it is as likely as in others."""

LARGE_FEATURE_PERMILLE = 300
"""Small worlds per thousand that may have a feature which makes them large: partitions, consumers of several
topics."""

LONGEST_STAY = 12 * SECOND
"""Nanoseconds of the phase with faults, at most, where it continues after everything is sent."""


def draw(streams: Streams, faults: bool = True, messages: int | None = None) -> Profile:
    """Draw the profile of a seed. `messages`: about how many are sent, in place of a drawn number."""
    small = streams.stream("small").chance(SMALL_PERMILLE)
    may = _features(streams, small)
    profile = _size(streams.stream("profile"), small)
    profile.lingers = not small and streams.stream("lingers").chance(200)
    if profile.lingers:
        profile.run_time = min(profile.run_time, LONGEST_STAY)
    draw_producers(streams.stream("producers"), profile, messages, small)
    if faults:
        draw_faults(streams, profile, small)
    draw_brokers(streams.stream("brokers"), profile)
    may(draw_transient_subscribers, "visitors", profile)
    may(_ends, "ends", profile)
    if not any(plan.deleted for plan in profile.ends):  # after a deletion the former contents are unknown
        may(draw_partitions, "partitions", profile, large=True)
        may(draw_chunks, "chunks", profile)
        draw_access(streams.stream("access"), profile)
        draw_identities(streams.stream("sequence ids"), profile)
    draw_batches_by_key(streams.stream("batches by key"), profile)
    draw_delays(streams.stream("delays"), profile)
    _memory(streams.stream("memory"), profile)
    draw_subscriptions(streams.stream("subscriptions"), profile, small)
    draw_consumers(streams.stream("consumers"), profile, small)
    draw_special(streams, profile, faults)
    may(draw_timeouts, "timeouts", profile)
    may(draw_flow, "flow", profile)
    may(draw_dead_letters, "dead letters", profile)
    may(draw_single_topic_seekers, "roamers", profile)
    may(draw_groups, "groups", profile, large=True)
    may(draw_tables, "tables", profile)
    may(draw_sticky_keys, "sticky keys", profile)
    may(draw_multi_topics_seekers, "tourists", profile, large=True)
    may(draw_retries, "retries", profile)
    may(draw_seekers_among_chunks, "roamers among chunks", profile)
    may(draw_dead_letters_of_chunks, "dead letters of chunks", profile)
    may(draw_nonpersistent_apps, "whispers", profile)
    may(draw_tables_of_partitions, "tables of partitions", profile)
    may(draw_bad_messages, "bad messages", profile)
    draw_options(streams.stream("broker options"), profile)
    draw_creation(streams.stream("creation of topics"), profile)
    if faults:
        draw_combined_faults(streams, profile)
    draw_credentials(streams.stream("credentials"), profile, faults)
    if faults:
        draw_failover(streams.stream("failover"), profile)
        draw_control(streams.stream("controlled failover"), profile)
    draw_web(streams.stream("lookups over HTTP"), profile, faults)
    draw_crowd(streams.stream("crowd of lookups"), profile)
    draw_schemas(streams.stream("schemas"), profile, faults)
    draw_encryption(streams.stream("encryption"), profile, faults)
    draw_schemas_of_messages(streams.stream("schemas of messages"), profile, faults)
    draw_encrypted_values(streams.stream("encryption of values"), profile, faults)
    draw_transactions(streams.stream("transactions"), profile, faults)
    draw_exactly_once(streams.stream("transactions exactly once"), profile)
    draw_partitions_in_transactions(streams.stream("transactions over partitions"), profile)
    draw_chunks_in_transactions(streams.stream("transactions in chunks"), profile)
    draw_payloads_in_transactions(streams.stream("payloads in transactions"), profile)
    draw_letters_in_transactions(streams.stream("letters beside transactions"), profile)
    draw_loops(streams.stream("loops of transactions"), profile)
    return profile


Feature: TypeAlias = Callable[[Stream, Profile], None]


class May(Protocol):
    """Draws a feature from the stream of its concern, perhaps. `large`: the feature makes a world large."""

    def __call__(self, feature: Feature, concern: str, profile: Profile, large: bool = False) -> None: ...


def _features(streams: Streams, small: bool) -> May:
    """Return the function that draws features: in a small world some of them."""
    allowed = streams.stream("features")

    def may(feature: Feature, concern: str, profile: Profile, large: bool = False) -> None:
        if not small or allowed.chance(LARGE_FEATURE_PERMILLE if large else FEATURE_PERMILLE):
            feature(streams.stream(concern), profile)

    return may


def _size(draw: Stream, small: bool) -> Profile:
    """Draw a world without producers."""
    clients = draw.weighted([(1, 8), (2, 8), (3, 5), (4, 3), (5, 1), (6, 1), (7, 1), (8, 1)])
    topics = draw.weighted([(1, 5), (2, 3), (3, 1)])
    if small:
        clients, topics = min(clients, 2), 1
    deduplication = draw.chance(400)
    return Profile(
        clients=clients,
        topics=topics,
        subscriptions=[],
        producers=[],
        consumers=[],
        broker=broker_config(draw, deduplication),
        deduplication=deduplication,
        keepalive=draw.choice([1.0, 2.0, 5.0, 10.0, 10.0, 10.0, 10.0]),
        operation_timeout=draw.between(2, 10) * 1.0,
        max_backoff=draw.choice([0.2, 1.0, 3.0]),
        connections_per_broker=draw.weighted([(1, 4), (2, 1)]),
        run_time=draw.spread(2, 60) * SECOND,
        lingers=False,
        latency=draw.spread(20, 20_000) * MICROSECOND,
        jitter=draw.choice([0, 100 * MICROSECOND, 5 * MILLISECOND]),
        cut_permille=draw.choice([0, 20, 200]),
        fault_gap=0,
        store_delay=draw.spread(50, 20_000) * MICROSECOND,
    )


def _ends(draw: Stream, profile: Profile) -> None:
    """A topic that is terminated or deleted."""
    if draw.chance(80):
        profile.ends.append(EndPlan(draw.below(profile.topics), draw.spread(10 * MILLISECOND, 10 * SECOND)))
    elif draw.chance(80):  # a producer must return to the topic
        topic = profile.producers[0].topic
        profile.ends.append(EndPlan(topic, draw.spread(10 * MILLISECOND, 10 * SECOND), deleted=True))


def _memory(draw: Stream, profile: Profile) -> None:
    # An exclusive client of a topic may wait for memory that others hold, which wait for the topic.
    if draw.chance(120) and not any(plan.contested for plan in profile.producers):
        limit = profile.memory_limit = draw.choice([100, 1000, 20_000])
        for plan in profile.producers:  # batches are as small as the memory
            fitting = max(1, limit // (plan.largest // 2 + 10))
            if plan.batching is not None and fitting < usual_batch(plan):
                plan.messages = max(4, plan.messages * fitting // usual_batch(plan))
