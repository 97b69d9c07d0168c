"""The receivers of a world: subscriptions, the consumers of each, and transient subscribers."""

from pulsar_sansio.model.config import SubscriptionType

from ..engine.clock import MILLISECOND, SECOND
from ..engine.profile import ConsumerPlan, Profile, SubscriptionPlan, TransientSubscriberPlan
from ..engine.randomness import Stream
from .producers import largest_usual_batch

_SUBSCRIPTIONS = {1: [(1, 2), (2, 3), (3, 2)], 2: [(1, 3), (2, 3)], 3: [(1, 4), (2, 1)]}
"""Numbers of subscriptions of each topic with producers, with weights, by the number of such topics."""


_OF_A_SMALL_WORLD = [(2, 1), (3, 3), (4, 3), (5, 1)]
"""Numbers of subscriptions of the topic of a small world, with weights: more consumers read the few
messages."""


def draw_subscriptions(draw: Stream, profile: Profile, small: bool) -> None:
    """Draw the subscriptions of every topic with producers, and of most partitions that exist from the start.

    A topic without producers shows little; a few of them have a subscription all the same.
    """
    used = {plan.topic for plan in profile.producers if plan.partitioned is None}
    for topic in range(profile.topics):
        if topic in used:
            weights = _OF_A_SMALL_WORLD if small else _SUBSCRIPTIONS[len(used)]
            _subscribe(draw, profile, topic, draw.weighted(weights))
        elif draw.chance(200):
            _subscribe(draw, profile, topic, 1)
    for index in range(sum(plan.partitions for plan in profile.partitioned)):
        if draw.chance(800):
            _subscribe(draw, profile, profile.topics + index, draw.weighted([(1, 3), (2, 2)]))
    if not profile.subscriptions:
        _subscribe(draw, profile, 0, 1)


def _subscribe(draw: Stream, profile: Profile, topic: int, count: int) -> None:
    for _ in range(count):
        profile.subscriptions.append(SubscriptionPlan(topic, draw.choice(list(SubscriptionType))))


def draw_consumers(draw: Stream, profile: Profile, small: bool) -> None:
    """Draw the consumers of each subscription."""
    numbers = [(1, 6), (2, 2)] if small else [(1, 4), (2, 2), (3, 1)]
    for index, plan in enumerate(profile.subscriptions):
        several = plan.kind is not SubscriptionType.EXCLUSIVE
        for _ in range(draw.weighted(numbers if several else [(1, 6), (2, 1)])):
            profile.consumers.append(_consumer(draw, profile, index))


def _consumer(draw: Stream, profile: Profile, subscription: int) -> ConsumerPlan:
    topic = profile.subscriptions[subscription].topic
    failover = profile.subscriptions[subscription].kind is SubscriptionType.FAILOVER
    batch = largest_usual_batch(profile, topic)
    queue = draw.weighted([(1, 1), (2, 1), (10, 2), (100, 4), (1000, 4)])
    # In entries, mostly: a queue smaller than one entry asks for more after every few messages.
    queue = queue * batch if draw.chance(900) else max(queue, batch // 2)
    # Rates per message are for small batches: with large ones they would show nothing more.
    large = batch > 10
    return ConsumerPlan(
        client=draw.below(profile.clients),
        topic=topic,
        subscription=subscription,
        queue=queue,
        receipts=draw.chance(300),
        batch_index=draw.chance(500),
        group_time=draw.choice([0.01 if large else 0.0, 0.01, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0]),
        group_size=draw.choice([20 if large else 2, 20, 1000, 1000, 1000]),
        nack_delay=draw.choice([0.0, 0.1, 1.0]),
        nack_permille=draw.choice([0, 0, 20, 50, 100]),
        keep_permille=draw.choice([0, 0, 100, 500]),
        cumulative_permille=draw.choice([0, 100, 1000]),
        redeliver_permille=draw.choice([0, 20, 100] if failover else [0, 0, 20]),
        close_permille=draw.choice([0, 0, 10, 50]),
        confirm_permille=draw.choice([0, 50, 200]),
        pause=draw.spread(MILLISECOND, SECOND),
        take=draw.choice([5 if large else 1, 5, 100, 100]),
        priority=draw.choice([0, 0, 0, 1]),
    )


def draw_transient_subscribers(draw: Stream, profile: Profile) -> None:
    """Draw applications that leave no subscription behind."""
    for _ in range(draw.weighted([(0, 8), (1, 2), (2, 1)])):
        topic = draw.below(profile.topics)
        batch = largest_usual_batch(profile, topic)
        profile.transient_subscribers.append(
            TransientSubscriberPlan(
                client=draw.below(profile.clients),
                topic=topic,
                durable=draw.chance(500),
                stay=draw.spread(20 * MILLISECOND, 3 * SECOND),
                queue=batch * draw.choice([2, 10, 100, 1000]),
            )
        )
