"""Worlds with an application that sends and acknowledges in transactions."""

from dataclasses import replace

from pulsar_sansio.model.config import BatchingPolicy, SubscriptionType

from ...engine.clock import MILLISECOND
from ...engine.profile import Profile
from ...engine.randomness import Stream
from ...engine.transactions_plan import TransactionsPlan
from ...faults.catalogue import TRANSACTION_FAULTS

TRANSACTIONS_PERMILLE = 122
"""Worlds with transactions, per thousand of those that may have them: some five in a hundred of all."""

LEAST_VERSION = 17
"""The protocol version from which a broker answers acknowledgements."""


LEAST_UNACKED = 100
"""Messages that consumers may leave unacknowledged where messages are in chunks, at least."""


def draw_transactions(draw: Stream, profile: Profile, faults: bool) -> None:
    """Give some worlds an application with transactions.

    A broker of ours has transactions where it is the only one of its cluster. A client that changes between
    clusters, or asks over HTTP, has none. Worlds in which topics appear or migrate are about rare moments,
    which another application would make rarer.
    """
    may = len(profile.brokers) < 2 and profile.failover is None and profile.web is None
    may = may and not profile.migrations and not profile.appearances
    if not draw.chance(TRANSACTIONS_PERMILLE) or not may:
        return
    plan = profile.transactions = TransactionsPlan()
    plan.topics = draw.weighted([(1, 2), (2, 3), (3, 1)])
    plan.kinds = [draw.choice(list(SubscriptionType)) for _ in range(plan.topics + draw.below(2))]
    plan.consumers = draw.choice([1, 1, 2])
    plan.transactions = draw.between(4, 16)
    plan.messages = draw.spread(2, 30)
    plan.timeout = draw.choice([1.0, 3.0, 10.0])
    plan.short_permille = draw.choice([0, 0, 300])
    plan.at_once = draw.weighted([(1, 3), (2, 2), (4, 1)])
    plan.abort_permille = draw.choice([0, 300, 500])
    plan.linger_permille = draw.choice([0, 0, 150])
    plan.cumulative_permille = draw.choice([0, 300, 700])
    plan.plain_permille = draw.choice([0, 200])
    plan.queue = draw.choice([1, 5, 20, 1000])
    if draw.chance(400):
        plan.batching = BatchingPolicy(
            max_messages=draw.between(2, 10),
            max_delay=0.005,
            by_key=SubscriptionType.KEY_SHARED in plan.kinds,
        )
    plan.pause = draw.spread(4 * MILLISECOND, 100 * MILLISECOND)
    if faults and profile.fault_gap:
        plan.close_permille = draw.choice([0, 0, 30])
        profile.faults = sorted([*profile.faults, *TRANSACTION_FAULTS])
    coordinators = draw.choice([1, 1, 2, 16])
    profile.broker = replace(profile.broker, transaction_coordinators=coordinators)
    for broker in profile.brokers:
        broker.protocol_version = max(broker.protocol_version, LEAST_VERSION)


def draw_partitions_in_transactions(draw: Stream, profile: Profile) -> None:
    """Let some applications with transactions have partitioned topics."""
    plan = profile.transactions
    if plan is not None and draw.chance(300):
        plan.partitions = draw.between(2, 3)
        plan.topics = min(plan.topics, 2)


def draw_chunks_in_transactions(draw: Stream, profile: Profile) -> None:
    """Let some applications with transactions send messages in chunks.

    A broker sends no more while a low limit of messages is not acknowledged. The consumers of a subscription
    would wait for the rest of their messages then.
    """
    plan, broker = profile.transactions, profile.broker
    limits = (broker.max_unacked_messages_per_consumer, broker.max_unacked_messages_per_subscription)
    may = plan is not None and plan.batching is None and min(limits) >= LEAST_UNACKED
    if plan is not None and draw.chance(400) and may:
        plan.chunk_size = draw.choice([20, 40])


def draw_payloads_in_transactions(draw: Stream, profile: Profile) -> None:
    """Let some applications send payloads in transactions, by the fast path and by `send_many`."""
    plan = profile.transactions
    if plan is None or plan.partitions or SubscriptionType.KEY_SHARED in plan.kinds:
        return
    plan.payload_permille = draw.choice([0, 500, 900, 1000])


def draw_letters_in_transactions(draw: Stream, profile: Profile) -> None:
    """Let some applications have dead letters. Each aborted transaction counts as a delivery."""
    plan = profile.transactions
    if plan is not None and draw.chance(400):
        plan.dead_letters = draw.choice([1, 2, 5])
        plan.letter_permille = draw.choice([0, 50, 200])
        plan.refuse_permille = draw.choice([0, 100])


def draw_loops(draw: Stream, profile: Profile) -> None:
    """Let some applications handle the messages of one subscription in loops.

    A loop leaves messages in the queue. A consumer without room would have some chunks of a message, and
    another one the rest.
    """
    plan = profile.transactions
    if plan is not None and draw.chance(300):
        plan.looped = not plan.chunk_size or plan.consumers == 1


def draw_exactly_once(draw: Stream, profile: Profile) -> None:
    """Let some applications open transactions with `exactly_once`, and ask what is confirmed."""
    plan = profile.transactions
    if plan is not None:
        plan.exactly_once_permille = draw.choice([0, 0, 500, 1000])
        plan.flush_permille = draw.choice([0, 0, 300])
