"""The producers of a world: their number, their messages, and their batches."""

from pulsar_sansio.model.config import BatchingPolicy, CompressionType

from ..engine.clock import MILLISECOND, SECOND
from ..engine.profile import ProducerPlan, Profile
from ..engine.randomness import Stream

MOST_IN_BATCHES = 300
"""Messages of one producer: one with large batches makes fewer of them."""


def draw_producers(draw: Stream, profile: Profile, messages: int | None, small: bool) -> None:
    """Draw all producers, one or two in a small world. `messages`: as for `draw`."""
    total = messages if messages is not None else draw.spread(6, 24) if small else draw.spread(12, 60)
    count = draw.between(1, 3)
    if small:
        count = (count + 1) // 2
    for index in range(count):
        sender = _producer(draw, profile, max(1, total // count))
        if index < profile.topics:
            sender.topic = index  # a topic without producers shows little
        if messages is None:
            in_batches = sender.messages * usual_batch(sender)
            sender.messages = max(sender.messages, min(in_batches, MOST_IN_BATCHES))
        profile.producers.append(sender)


def _producer(draw: Stream, profile: Profile, messages: int) -> ProducerPlan:
    batching = None
    if draw.chance(900):
        batching = BatchingPolicy(
            max_messages=draw.choice([2, 20, 20, 60]),
            max_bytes=draw.choice([500, 4096, 128 * 1024]),
            max_delay=draw.choice([0.0, 0.001, 0.02, 0.5]),
        )
    return ProducerPlan(
        client=draw.below(profile.clients),
        topic=draw.below(profile.topics),
        messages=messages,
        batching=batching,
        compression=draw.weighted(
            [
                (CompressionType.NONE, 6),
                (CompressionType.LZ4, 1),
                (CompressionType.ZLIB, 1),
                (CompressionType.ZSTD, 1),
                (CompressionType.SNAPPY, 1),
            ]
        ),
        window=draw.choice([1, 10, 50, 200, 200, 10_000, 10_000, 10_000]),
        send_timeout=draw.choice([0.0, 0.0, 1.0, 3.0, 10.0, 30.0]),
        named=draw.chance(400),
        rich_permille=draw.choice([0, 0, 100, 500]),
        largest=draw.choice([16, 200, 2000]),
        burst=draw.choice([24, 48, 80]),
        pause=draw.spread(2 * MILLISECOND, 2 * SECOND),
        close_permille=draw.choice([0, 0, 10, 50]),
        flush_permille=draw.choice([0, 50, 300]),
    )


def usual_batch(plan: ProducerPlan) -> int:
    """Return about how many messages an entry will hold."""
    batching = plan.batching
    if batching is None:
        return 1
    window = plan.window if plan.partitioned is None else min(plan.window, plan.across // 3)
    fitting = batching.max_bytes // (plan.largest // 2 + 10)
    usual = max(1, min(batching.max_messages, (plan.burst + 1) // 2, window, fitting))
    # A burst has fewer messages with one key than keys.
    return max(1, 4 * usual // (4 + usual)) if batching.by_key else usual


def largest_usual_batch(profile: Profile, topic: int) -> int:
    """Return the largest usual batch of the producers that may send to the topic."""
    plans = [plan for plan in profile.producers if plan.partitioned is not None or plan.topic == topic]
    return max(map(usual_batch, plans), default=1)


def keep_entries(plan: ProducerPlan, before: int) -> None:
    """Keep about as many entries as before a change of the batches. `before`: the usual batch before."""
    plan.messages = max(4, plan.messages * usual_batch(plan) // before)


def send_singly(plan: ProducerPlan) -> None:
    """Send one message per entry from now on."""
    before = usual_batch(plan)
    plan.batching = None
    keep_entries(plan, 2 * before)
