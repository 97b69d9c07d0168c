"""Rare worlds: events that independent draws would hardly ever produce.

Owns the draws that change a drawn world, each from a stream of its own: a world that is not chosen stays
unchanged.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pulsar_sansio.model.config import ProducerAccessMode, SubscriptionType

from ..engine.clock import MILLISECOND, SECOND
from ..engine.profile import (
    BrokerPlan,
    EndPlan,
    MigrationPlan,
    PartitionedPlan,
    Profile,
    TransientSubscriberPlan,
)
from ..engine.randomness import Stream, Streams
from .faults import MOST_FAULTS

MIGRATION_VERSION = 20
"""The protocol version from which a broker can send clients to another cluster."""


def draw_special(streams: Streams, profile: Profile, faults: bool) -> None:
    """Draw each kind of rare world, perhaps."""
    draw_interceptors(streams.stream("interceptors"), profile)
    draw_migrations(streams.stream("migrations"), profile)
    if faults:
        draw_rarity(streams.stream("rarities"), profile)
        draw_stubborn(streams.stream("stubborn"), profile)


def draw_interceptors(draw: Stream, profile: Profile) -> None:
    """Give some producers interceptors, in any order."""
    for plan in profile.producers:
        if draw.chance(120):
            kinds = [kind for kind in ("watches", "changes", "raises") if draw.chance(600)]
            draw.shuffle(kinds)
            plan.interceptors = kinds


def draw_migrations(draw: Stream, profile: Profile, always: bool = False) -> None:
    """Topics that migrate to another cluster: one, or all that can, at one moment or one after another.

    The other cluster does not know the producers' state: a partly stored message in chunks, epochs of
    exclusive access, sequence ids for deduplication. So no application that needs these uses such a topic,
    nor one that leaves a subscription behind or seeks.
    """
    if not (always or draw.chance(100)):
        return
    found = [topic for topic in range(profile.topics) if _can_migrate(profile, topic)]
    if not found:
        return
    if not draw.chance(300):
        found = [draw.choice(found)]
    after = draw.spread(10 * MILLISECOND, 10 * SECOND)
    for topic in found:
        profile.migrations.append(MigrationPlan(topic, after))
        if draw.chance(500):
            after += draw.spread(MILLISECOND, SECOND)
    profile.transient_subscribers = [
        plan for plan in profile.transient_subscribers if plan.topic not in found
    ]
    for broker in profile.brokers:
        broker.protocol_version = max(broker.protocol_version, MIGRATION_VERSION)


def _can_migrate(profile: Profile, topic: int) -> bool:
    if any(plan.topic == topic for plan in profile.ends):
        return False
    return not any(
        plan.topic == topic
        and plan.partitioned is None
        and (
            plan.chunk_size or plan.explicit or plan.contested or plan.access is not ProducerAccessMode.SHARED
        )
        for plan in profile.producers
    )


# --- rare worlds ----------------------------------------------------------------------------------------

Rarity: TypeAlias = Callable[[Stream, Profile], None]

RARITIES: dict[str, Rarity] = {}
"""Functions that make a rare event likely in a world, by name."""


def rarity(function: Rarity) -> Rarity:
    RARITIES[function.__name__] = function
    return function


def draw_rarity(draw: Stream, profile: Profile) -> None:
    """Make a world about one rare event, 150 times per thousand."""
    if draw.chance(150):
        RARITIES[draw.choice(sorted(RARITIES))](draw, profile)


def trouble(draw: Stream, profile: Profile, *kinds: str, every: int = 300 * MILLISECOND) -> None:
    """Draw these kinds of faults and no others while messages are sent, and at least some of them."""
    profile.faults = sorted(kinds)
    profile.run_time = 10 * SECOND
    profile.fault_gap = max(draw.spread(every // 4, every), profile.run_time // MOST_FAULTS)
    profile.lingers = True


def busy(profile: Profile) -> None:
    """Let every producer send often, with a slow store."""
    profile.store_delay = 300 * MILLISECOND
    for plan in profile.producers:
        plan.pause = min(plan.pause, 50 * MILLISECOND)
        plan.window = max(plan.window, 50)


def _in_chunks(draw: Stream, profile: Profile) -> None:
    """Messages in chunks to topics without partitions, one chunk at a time."""
    for plan in profile.producers:
        if plan.chunk_size == 0:
            plan.messages = min(plan.messages, 12)
        plan.batching, plan.chunk_size, plan.burst = None, draw.choice([20, 50]), 4
        plan.largest = 8 * plan.chunk_size
        plan.partitioned = plan.initial = None
        plan.explicit = plan.contested = False
        plan.access = ProducerAccessMode.SHARED
        plan.window = max(plan.window, 50)
    profile.migrations.clear()
    profile.memory_limit = None


def _several_brokers(profile: Profile) -> None:
    while len(profile.brokers) < 2:
        profile.brokers.append(BrokerPlan())
    profile.ends = [plan for plan in profile.ends if not plan.deleted]


@rarity
def many_rejections(draw: Stream, profile: Profile) -> None:
    """A connection has so many refused lookups that the client leaves it."""
    profile.max_rejected_requests = draw.between(1, 2)
    trouble(draw, profile, "lookup_refused", "unload_everything")


@rarity
def unsubscribed_on_the_move(draw: Stream, profile: Profile) -> None:
    """A topic is unloaded between UNSUBSCRIBE and its answer: the broker closes the consumer, and answers."""
    profile.transient_subscribers = [
        TransientSubscriberPlan(
            draw.below(profile.clients), draw.below(profile.topics), True, 200 * MILLISECOND, 10
        )
        for _ in range(2)
    ]
    profile.migrations.clear()
    profile.store_delay = 100 * MILLISECOND
    trouble(draw, profile, "closed_while_unsubscribing")


@rarity
def half_a_message(draw: Stream, profile: Profile) -> None:
    """A producer is lost in the middle of a chunked message, or reconnects to send the rest."""
    _in_chunks(draw, profile)
    trouble(draw, profile, "cut_between_chunks", "producer_abandoned", "client_crashed", "receipt_repeated")


@rarity
def chunks_begun_anew(draw: Stream, profile: Profile) -> None:
    """Receipts of chunks are lost with their connection or repeated: some chunks are resent."""
    _in_chunks(draw, profile)
    profile.store_delay = 100 * MILLISECOND
    for plan in profile.producers:
        plan.window = draw.choice([1, 2, 50])
    trouble(
        draw, profile, "cut_in_flight", "reset", "broker_killed", "cut_between_chunks", "receipt_repeated"
    )


@rarity
def a_connection_nobody_uses(draw: Stream, profile: Profile) -> None:
    """Topics move to another broker early and stay there: the connection to the first one becomes idle."""
    _several_brokers(profile)
    profile.all_addresses = False
    trouble(draw, profile, "topic_moved_with_address", "topic_moved")
    profile.fault_gap = 20 * SECOND
    profile.run_time = 150 * SECOND
    profile.keepalive = 10.0
    profile.broker = replace(profile.broker, keepalive_interval=10.0)
    profile.connections_per_broker = 1


@rarity
def moved_in_the_middle(draw: Stream, profile: Profile) -> None:
    """Topics are unloaded, moved and stolen while messages are being written."""
    busy(profile)
    _several_brokers(profile)
    kinds = ("unload", "unload_everything", "topic_moved", "topic_moved_with_address", "topic_stolen")
    trouble(draw, profile, *kinds, every=SECOND)


@rarity
def ended_in_the_middle(draw: Stream, profile: Profile) -> None:
    """A topic is terminated while messages are being written."""
    busy(profile)
    profile.migrations.clear()
    topic = next((plan.topic for plan in profile.producers if plan.partitioned is None), 0)
    profile.ends = [EndPlan(topic, draw.between(200, 900) * MILLISECOND)]


@rarity
def unloaded_and_closed_at_once(draw: Stream, profile: Profile) -> None:
    """Brokers unload topics while applications close handles on them."""
    profile.latency = draw.between(20, 200) * MILLISECOND
    profile.operation_timeout = max(profile.operation_timeout, 5.0)  # opening takes fourteen one-way trips
    trouble(draw, profile, "unload_everything", "producer_closed", "consumer_closed")


@rarity
def turns_that_change(draw: Stream, profile: Profile) -> None:
    """Failover consumers ask for redelivery of everything, and become active and inactive."""
    for plan in profile.subscriptions:
        plan.kind = SubscriptionType.FAILOVER
    profile.consumers += [replace(plan, client=draw.below(profile.clients)) for plan in profile.consumers]
    profile.broker = replace(profile.broker, failover_delay=0.0)
    profile.latency = draw.between(5, 50) * MILLISECOND
    trouble(draw, profile, "redeliver_all", "consumer_closed", "consumer_abandoned", "reset")


@rarity
def partitions_by_hearsay(draw: Stream, profile: Profile) -> None:
    """Brokers answer with an old number of partitions."""
    profile.ends.clear()
    _partitioned(profile)
    for plan in profile.producers:
        plan.update_interval = 1.0
    trouble(draw, profile, "partitions_out_of_date", "partitions_refused")


def _partitioned(profile: Profile) -> None:
    """Let a producer send to partitions."""
    if not profile.partitioned:
        profile.partitioned.append(PartitionedPlan(3))
        plan = profile.producers[0]
        plan.partitioned, plan.chunk_size, plan.explicit, plan.contested = 0, 0, False, False
        plan.access, plan.initial = ProducerAccessMode.SHARED, None


@rarity
def every_partition_ends(draw: Stream, profile: Profile) -> None:
    """All partitions of a topic are terminated, one after another; its producers end with the last one."""
    profile.ends.clear()
    _partitioned(profile)
    for partitioned in profile.partitioned:
        partitioned.growth.clear()
    for plan in profile.producers:
        plan.lazy = False
        plan.routing = "round_robin"
    after = draw.between(300, 2000) * MILLISECOND
    for index in range(profile.partitioned[0].partitions):
        profile.ends.append(EndPlan(profile.topics + index, after))
        after += draw.choice([0, 50 * MILLISECOND])
    trouble(draw, profile, "reset", "slow_store", every=SECOND)


@rarity
def nobody_answers(draw: Stream, profile: Profile) -> None:
    """Connections to one of several brokers hang, while applications begin again and again."""
    _several_brokers(profile)
    profile.operation_timeout = 2.0
    profile.all_addresses, profile.redirect_permille = False, 0
    profile.broker = replace(profile.broker, keepalive_interval=1.0)
    trouble(draw, profile, "partition", "producer_closed", "consumer_closed", "client_crashed")


@rarity
def waiting_in_vain(draw: Stream, profile: Profile) -> None:
    """Producers wait for a topic with an exclusive producer, and some are abandoned."""
    plain = [plan for plan in profile.producers if plan.partitioned is None]
    for plan in plain:
        plan.topic, plan.contested, plan.explicit, plan.initial = plain[0].topic, True, False, None
        plan.access = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
        plan.chunk_size = 0
        plan.pause = max(plan.pause, 200 * MILLISECOND)
    profile.migrations.clear()
    profile.ends.clear()
    profile.memory_limit = None
    _several_brokers(profile)
    if draw.chance(300):
        profile.ends = [EndPlan(plain[0].topic, draw.between(300, 2000) * MILLISECOND)] if plain else []
    often = ["producer_abandoned"] * 4
    trouble(draw, profile, *often, "producer_closed", "topic_moved_with_address")


@rarity
def cut_on_the_way_far(draw: Stream, profile: Profile) -> None:
    """Connections are lost just when a topic has migrated."""
    draw_migrations(draw, profile, always=True)
    if profile.migrations:
        trouble(draw, profile, "cut_at_migration", "reset", "unload", "broker_killed", every=SECOND)


# --- events that small worlds hardly reach --------------------------------------------------------------


def draw_stubborn(draw: Stream, profile: Profile) -> None:
    """Make one world in thirty about an answer that never comes, or one that is lost with its broker. It has
    a draw of its own, so that the other rare worlds do not change."""
    if draw.chance(30):
        draw.choice((never_answered, restarted_before_the_receipt))(draw, profile)


def never_answered(draw: Stream, profile: Profile) -> None:
    """Requests have no answer, on connections that stay."""
    trouble(draw, profile, "request_unanswered", "producer_closed", "consumer_closed")
    profile.last_reset = 0


def restarted_before_the_receipt(draw: Stream, profile: Profile) -> None:
    """Brokers that deduplicate restart while their receipts are in flight for a long time."""
    profile.deduplication = True
    profile.broker = replace(profile.broker, deduplication=True)
    profile.migrations.clear()
    profile.latency = draw.between(20, 100) * MILLISECOND
    profile.operation_timeout = max(profile.operation_timeout, 5.0)
    for plan in profile.producers:
        plan.pause = min(plan.pause, 100 * MILLISECOND)
        plan.burst, plan.window = min(plan.burst, 8), max(plan.window, 50)
    trouble(draw, profile, "broker_killed", "broker_machine_lost")
