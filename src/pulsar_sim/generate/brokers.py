"""The brokers of a world: their common options, their number, and the options of each."""

from dataclasses import replace
from typing import Any

from pulsar_sansio.broker.config import BrokerConfig

from ..engine.clock import MICROSECOND, MILLISECOND
from ..engine.profile import BrokerPlan, Profile
from ..engine.randomness import Stream

ENTRY_CACHE = 4096
"""Bytes of memory for entries, where a broker reads them back: fewer than most topics have."""


def broker_config(draw: Stream, deduplication: bool) -> BrokerConfig:
    """Draw the options of all brokers."""
    return BrokerConfig(
        service_url="pulsar://broker-0:6650",
        deduplication=deduplication,
        keepalive_interval=draw.choice([1.0, 2.0, 5.0, 10.0, 10.0, 10.0, 10.0]),
        liveness_timeout=draw.between(1, 4) * 1.0,
        ledger_max_entries=draw.choice([3, 10, 50, 50_000]),
        entry_cache_bytes=ENTRY_CACHE,
        cursor_flush_interval=draw.choice([0.0, 0.01, 0.1, 1.0]),
        batch_index_acknowledgement=draw.chance(600),
        failover_delay=draw.choice([0.0, 0.05, 1.0]),
        entries_per_turn=draw.choice([1, 2, 20]),
        max_unacked_messages_per_consumer=draw.choice([50_000, 50_000, 100]),
        topic_list_watcher=False,
    )


UNUSUAL: list[dict[str, Any]] = [
    {"broker_entry_metadata": True},
    {"broker_entry_metadata": True},
    {"key_shared_consistent_hashing": True},
    {"key_shared_look_ahead": 1},
    {"key_shared_look_ahead": 5},
    {"delayed_delivery_strict": True},
    {"delayed_delivery_tick": 0.05},
    {"ledger_max_bytes": 1024},
    {"max_unacked_messages_per_subscription": 100},
    {"max_pending_publishes": 2},
    {"max_unsent_bytes": 1024},
    {"housekeeping_interval": 1.0},
]
"""Options that few brokers have: other dispatching of keys and delays, and limits that are soon reached."""

UNUSUAL_PERMILLE = 300


def draw_options(draw: Stream, profile: Profile) -> None:
    """Draw some unusual options."""
    if draw.chance(UNUSUAL_PERMILLE):
        for _ in range(draw.between(1, 3)):
            profile.broker = replace(profile.broker, **draw.choice(UNUSUAL))


def draw_brokers(draw: Stream, profile: Profile) -> None:
    """Draw the number of brokers, and the options of each."""
    for _ in range(draw.weighted([(1, 6), (2, 3), (3, 1)])):
        plan = BrokerPlan()
        if draw.chance(400):
            plan.protocol_version = draw.choice([20, 19, 17, 16, 15, 12])
        plan.feature_flags = plan.protocol_version >= 19 and draw.chance(800)
        if draw.chance(100):
            plan.slowness = draw.spread(100 * MICROSECOND, 20 * MILLISECOND)
        profile.brokers.append(plan)
    profile.all_addresses = draw.chance(500)
    profile.redirect_permille = draw.choice([0, 500, 1000])
    profile.stale_lookup_permille = draw.choice([0, 0, 200])
