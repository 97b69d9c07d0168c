"""A world as a whole: how large it is, and in which order the others draw.

Owns the order: features change what producers were drawn before, and some exclude each other; who receives
comes after them, when it is known what is sent where. Then come the worlds of a special kind, and what some
consumers do beyond the others. One more feature is one more function, called last, with a stream of its own.
"""

from ..clock import MICROSECOND, MILLISECOND, SECOND
from ..profile import EndPlan, Profile
from ..streams import Stream, Streams
from .brokers import broker_config, draw_brokers
from .consumer_features import (
    draw_dead_letters,
    draw_dead_letters_of_chunks,
    draw_flow,
    draw_roamers,
    draw_roamers_among_chunks,
    draw_sticky_keys,
    draw_timeouts,
    draw_whispers,
)
from .consumers import draw_consumers, draw_subscriptions, draw_visitors
from .features import (
    draw_access,
    draw_batches_by_key,
    draw_chunks,
    draw_delays,
    draw_identities,
    draw_partitions,
)
from .groups import draw_groups, draw_retries, draw_tourists
from .producers import draw_producers
from .rarities import draw_special
from .tables import draw_tables, draw_tables_of_partitions
from .trouble import draw_faults

LONGEST_STAY = 12 * SECOND
"""How long the phase with faults lasts, at most, where it goes on when everything is sent."""


def draw(streams: Streams, faults: bool = True, messages: int | None = None) -> Profile:
    """The profile of a seed. `messages`: about how many are sent, in place of what would be drawn."""
    profile = _size(streams.stream("profile"))
    profile.lingers = streams.stream("lingers").chance(150)
    if profile.lingers:
        profile.run_time = min(profile.run_time, LONGEST_STAY)
    draw_producers(streams.stream("producers"), profile, messages)
    if faults:
        draw_faults(streams, profile)
    draw_brokers(streams.stream("brokers"), profile)
    draw_visitors(streams.stream("visitors"), profile)
    _ends(streams.stream("ends"), profile)
    if not any(plan.deleted for plan in profile.ends):  # nobody knows then what was on it
        draw_partitions(streams.stream("partitions"), profile)
        draw_chunks(streams.stream("chunks"), profile)
        draw_access(streams.stream("access"), profile)
        draw_identities(streams.stream("sequence ids"), profile)
    draw_batches_by_key(streams.stream("batches by key"), profile)
    draw_delays(streams.stream("delays"), profile)
    _memory(streams.stream("memory"), profile)
    draw_subscriptions(streams.stream("subscriptions"), profile)
    draw_consumers(streams.stream("consumers"), profile)
    draw_special(streams, profile, faults)
    draw_timeouts(streams.stream("timeouts"), profile)
    draw_flow(streams.stream("flow"), profile)
    draw_dead_letters(streams.stream("dead letters"), profile)
    draw_roamers(streams.stream("roamers"), profile)
    draw_groups(streams.stream("groups"), profile)
    draw_tables(streams.stream("tables"), profile)
    draw_sticky_keys(streams.stream("sticky keys"), profile)
    draw_tourists(streams.stream("tourists"), profile)
    draw_retries(streams.stream("retries"), profile)
    draw_roamers_among_chunks(streams.stream("roamers among chunks"), profile)
    draw_dead_letters_of_chunks(streams.stream("dead letters of chunks"), profile)
    draw_whispers(streams.stream("whispers"), profile)
    draw_tables_of_partitions(streams.stream("tables of partitions"), profile)
    return profile


def _size(draw: Stream) -> Profile:
    """A world that nobody sends to yet."""
    clients = draw.weighted([(1, 6), (2, 6), (3, 4), (4, 3), (5, 1), (6, 1), (7, 1), (8, 1)])
    topics = draw.weighted([(1, 5), (2, 3), (3, 1)])
    deduplication = draw.chance(400)
    return Profile(
        clients=clients,
        topics=topics,
        subscriptions=[],
        producers=[],
        consumers=[],
        broker=broker_config(draw, deduplication),
        deduplication=deduplication,
        keepalive=draw.between(1, 10) * 1.0,
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
    """A topic that comes to its end."""
    if draw.chance(80):
        profile.ends.append(EndPlan(draw.below(profile.topics), draw.spread(10 * MILLISECOND, 10 * SECOND)))
    elif draw.chance(80):  # somebody has to come back to the topic
        topic = profile.producers[0].topic
        profile.ends.append(EndPlan(topic, draw.spread(10 * MILLISECOND, 10 * SECOND), deleted=True))


def _memory(draw: Stream, profile: Profile) -> None:
    # Who keeps a topic for himself may wait for memory that others hold who wait for the topic.
    if draw.chance(120) and not any(plan.contested for plan in profile.producers):
        profile.memory_limit = draw.choice([100, 1000, 20_000])
