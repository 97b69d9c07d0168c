"""Features of some producers: partitions, chunks, exclusive access, sequence ids of their own, batches by
key, delayed messages.

Each function draws one feature, perhaps, and leaves about as many entries as before.
"""

from dataclasses import replace

from pulsar_sansio.model.config import HashingScheme, ProducerAccessMode

from ...engine.clock import MILLISECOND, SECOND
from ...engine.profile import GrowthPlan, PartitionedPlan, Profile
from ...engine.randomness import Stream
from ..producers import keep_entries, send_singly, usual_batch

FEWEST_SENT_AGAIN = 20
"""Messages of a producer that resends those not known to be stored: with fewer it never does."""


def draw_partitions(draw: Stream, profile: Profile) -> None:
    """A partitioned topic, and its producers."""
    if not draw.chance(180):
        return
    plan = PartitionedPlan(draw.weighted([(1, 1), (2, 4), (3, 4), (4, 2)]))
    profile.partitioned.append(plan)
    count = plan.partitions
    for _ in range(draw.weighted([(0, 4), (1, 4), (2, 1)])):
        count += draw.between(1, 2)
        plan.growth.append(GrowthPlan(draw.spread(10 * MILLISECOND, 10 * SECOND), count))
    plan.growth.sort(key=lambda growth: growth.partitions)
    at = 0
    for growth in plan.growth:
        at = growth.after = max(at + MILLISECOND, growth.after)
    first = draw.below(len(profile.producers))
    for index, producer in enumerate(profile.producers):
        if index == first or draw.chance(600):
            before = usual_batch(producer)
            producer.partitioned = 0
            producer.burst *= 2  # for several partitions
            producer.routing = draw.choice(["round_robin", "round_robin", "single_partition", "by_size"])
            producer.hashing = draw.choice([HashingScheme.JAVA_STRING, HashingScheme.MURMUR3_32])
            producer.lazy = draw.chance(300)
            producer.across = draw.choice([50_000, 50_000, 50_000, 100, 100, 5])
            producer.update_interval = draw.choice([1.0, 2.0, 5.0])
            producer.rich_permille = draw.choice([0, 500, 1000])
            keep_entries(producer, before)
            if draw.chance(200):
                send_singly(producer)
    if plan.growth and profile.fault_gap and draw.chance(500):
        profile.faults = sorted({*profile.faults, "partitions_out_of_date"})


def draw_chunks(draw: Stream, profile: Profile) -> None:
    """Messages in chunks: each chunk is an entry."""
    if not draw.chance(150):
        return
    topic = profile.producers[0].topic
    for producer in profile.producers:
        if draw.chance(600):
            if draw.chance(500):  # several producers on one topic
                producer.topic = topic
            send_singly(producer)
            if draw.chance(250):
                producer.window = draw.between(1, 4)  # a window may be smaller than one message
            producer.chunk_size = draw.choice([20, 100, 100, 1000])
            producer.largest = producer.chunk_size * draw.between(1, 8)
            producer.burst = min(producer.burst, 16)
    if profile.fault_gap and draw.chance(
        800
    ):  # faults that need such a world must be among few, and strike soon
        profile.faults = sorted({*profile.faults[::8], "cut_between_chunks"})
        profile.fault_gap = min(profile.fault_gap, SECOND // 2)
        profile.run_time = min(profile.run_time, 10 * SECOND)
        for plan in profile.producers:  # a connection must have something to cut
            if plan.chunk_size:
                plan.pause = max(plan.pause, SECOND // 2)


def draw_access(draw: Stream, profile: Profile) -> None:
    """A topic to which some producers want exclusive access."""
    plain = [plan for plan in profile.producers if plan.partitioned is None]
    if len(plain) < 2 or not draw.chance(200):
        return
    topic = draw.choice(plain).topic
    modes = [mode for mode in ProducerAccessMode if mode is not ProducerAccessMode.SHARED]
    fencing = False
    for plan in plain:
        plan.topic = topic
        plan.contested = True
        plan.access = ProducerAccessMode.SHARED if draw.chance(150) else draw.choice(modes)
        if plan.access is ProducerAccessMode.EXCLUSIVE_WITH_FENCING:
            if fencing:  # two would fence each other for ever
                plan.access = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
            fencing = True


def draw_identities(draw: Stream, profile: Profile) -> None:
    """Sequence ids that applications choose. Such an application sends messages singly: a broker drops a
    whole batch when it has stored the batch's first message."""
    for plan in profile.producers:
        if profile.deduplication and plan.partitioned is None and draw.chance(250):
            plan.explicit = plan.named = True
            send_singly(plan)
            plan.messages = max(FEWEST_SENT_AGAIN, plan.messages)
            plan.close_permille = max(10, plan.close_permille)
        elif not plan.named and draw.chance(100):
            plan.initial = draw.choice([-1, 0, 7, 2**40])


def draw_batches_by_key(draw: Stream, profile: Profile) -> None:
    """One open batch per key."""
    for plan in profile.producers:
        if plan.batching is not None and draw.chance(120):
            before = usual_batch(plan)
            plan.batching = replace(plan.batching, by_key=True)
            keep_entries(plan, before)
            plan.rich_permille = draw.choice([500, 1000])


def draw_creation(draw: Stream, profile: Profile) -> None:
    """Clients that create no topics, where every topic exists and stays on one broker."""
    come_and_go = (
        profile.appearances or profile.nonpersistent_apps or any(plan.deleted for plan in profile.ends)
    )
    moves = len(profile.brokers) > 1 or profile.migrations
    if draw.chance(400) and not (come_and_go or moves):
        profile.create_topics = False


def draw_delays(draw: Stream, profile: Profile) -> None:
    """Messages with delayed delivery, where wall clocks are not set: a clock that is an hour behind delays
    delivery by an hour."""
    for plan in profile.producers:
        if draw.chance(100) and "wall_clock_set" not in profile.faults:
            plan.delayed_permille = draw.choice([50, 300])
