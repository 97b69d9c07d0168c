"""Preconditions that the profile of a world must meet so that a planted bug can matter.

A bug in batches cannot show in a world without batches. `recall` therefore draws seeds whose profiles can
show a bug: "seeds to detection" measures the checks, not the draw. Each precondition is necessary, not
sufficient.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pulsar_sansio.model.config import CompressionType, ProducerAccessMode, SubscriptionType

from ...engine.profile import ConsumerPlan, ProducerPlan, Profile
from ...engine.randomness import Streams
from ...faults.catalogue import FAULTS
from ...generate import draw

Need: TypeAlias = Callable[[Profile], bool]

BREAKING = (
    "reset",
    "reset_everything",
    "cut_in_flight",
    "half_open",
    "clean_end",
    "partition",
    "broker_killed",
    "broker_machine_lost",
    "broker_killed_while_writing",
)
"""Faults after which clients have to reconnect."""

UNLOADING = ("unload", "unload_everything", "unload_twice")


def fault(*names: str) -> Need:
    """Return a precondition: at least one of these faults may strike. Raise `ValueError` for the name of no
    fault."""
    if unknown := [name for name in names if name not in FAULTS]:
        raise ValueError(f"no fault is called {', '.join(unknown)}")

    def need(profile: Profile) -> bool:
        return bool(profile.fault_gap) and any(name in profile.faults for name in names)

    return need


reconnects = fault(*BREAKING)
kills = fault("broker_killed", "broker_machine_lost", "broker_killed_while_writing")
unloads = fault(*UNLOADING)
detaches = fault(*BREAKING, *UNLOADING)


def last_reset(profile: Profile) -> bool:
    """The simulator resets all wires once more after healing: no later event makes good what is lost then."""
    return bool(profile.last_reset)


def batches(profile: Profile) -> bool:
    """At least one producer sends batches of several messages."""
    return any(
        plan.batching is not None and plan.batching.max_messages > 1 and plan.batching.max_bytes > 64
        for plan in profile.producers
    )


def singles(profile: Profile) -> bool:
    """At least one producer sends messages outside batches."""
    return any(plan.batching is None or plan.batching.max_messages == 1 for plan in profile.producers)


def rich(profile: Profile) -> bool:
    """At least one producer sends messages with keys, properties, and empty or null payloads."""
    return any(plan.rich_permille for plan in profile.producers)


def keys(profile: Profile) -> bool:
    """At least one producer sends many messages with keys in a short time."""
    return any(plan.rich_permille >= 500 for plan in profile.producers)


def named(profile: Profile) -> bool:
    """At least one producer keeps its name when it is closed and reopened."""
    return any(plan.named for plan in profile.producers)


def blocking(profile: Profile) -> bool:
    """The broker blocks a consumer of a shared subscription at 100 unacknowledged messages or fewer."""
    return profile.broker.max_unacked_messages_per_consumer <= 100 and shared(profile)


def blocking_all(profile: Profile) -> bool:
    """The broker blocks a subscription at 100 unacknowledged messages or fewer, over all its consumers."""
    return profile.broker.max_unacked_messages_per_subscription <= 100


def compressed(profile: Profile) -> bool:
    return any(plan.compression is not CompressionType.NONE for plan in profile.producers)


def deduplication(profile: Profile) -> bool:
    return profile.deduplication


def flushes(profile: Profile) -> bool:
    return any(plan.flush_permille for plan in profile.producers)


def small_windows(profile: Profile) -> bool:
    return any(plan.window < 1000 for plan in profile.producers)


def batches_in_small_windows(profile: Profile) -> bool:
    """A producer sends batches of several messages. Its window holds several messages, but not all that it
    sends."""
    return any(
        plan.batching is not None and plan.batching.max_messages > 1 and 1 < plan.window < plan.messages
        for plan in profile.producers
    )


def timeouts_in_small_windows(profile: Profile) -> bool:
    return any(plan.send_timeout and plan.window < plan.messages for plan in profile.producers)


def slow_batches(profile: Profile) -> bool:
    """At least one producer keeps batches open for 20 ms or longer."""
    return any(
        plan.batching is not None and plan.batching.max_messages > 1 and plan.batching.max_delay >= 0.02
        for plan in profile.producers
    )


def send_timeouts(profile: Profile) -> bool:
    return any(plan.send_timeout for plan in profile.producers)


def short_send_timeouts(profile: Profile) -> bool:
    """A producer has a send timeout of at most 3 s, which expires before the faults end."""
    return any(0 < plan.send_timeout <= 3.0 and plan.messages > 16 for plan in profile.producers)


def producers_close(profile: Profile) -> bool:
    return any(plan.close_permille for plan in profile.producers) or fault(
        "producer_closed", "producer_abandoned", "client_closed"
    )(profile)


def consumers_close(profile: Profile) -> bool:
    return any(plan.close_permille for plan in profile.consumers) or fault(
        "consumer_closed", "consumer_abandoned", "client_closed"
    )(profile)


def _consumers(profile: Profile, kinds: Sequence[SubscriptionType]) -> list[ConsumerPlan]:
    return [plan for plan in profile.consumers if profile.subscriptions[plan.subscription].kind in kinds]


IN_ORDER = (SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER)
SHARED = (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)


def in_order(profile: Profile) -> bool:
    """At least one consumer has an Exclusive or Failover subscription."""
    return bool(_consumers(profile, IN_ORDER))


def shared(profile: Profile) -> bool:
    """At least one consumer has a Shared or Key_Shared subscription."""
    return bool(_consumers(profile, SHARED))


def shared_by_several(profile: Profile) -> bool:
    """A Shared or Key_Shared subscription has several consumers."""
    subscriptions = [plan.subscription for plan in _consumers(profile, SHARED)]
    return len(subscriptions) > len(set(subscriptions))


def round_robin(profile: Profile) -> bool:
    """A Shared subscription has several consumers, and at least one of them negatively acknowledges
    messages."""
    plans = _consumers(profile, (SubscriptionType.SHARED,))
    subscriptions = [plan.subscription for plan in plans]
    refusing = {plan.subscription for plan in plans if plan.nack_permille}
    return any(subscriptions.count(each) > 1 for each in refusing)


def key_shared(profile: Profile) -> bool:
    subscriptions = [plan.subscription for plan in _consumers(profile, (SubscriptionType.KEY_SHARED,))]
    return len(subscriptions) > len(set(subscriptions))


def failover(profile: Profile) -> bool:
    subscriptions = [plan.subscription for plan in _consumers(profile, (SubscriptionType.FAILOVER,))]
    return len(subscriptions) > len(set(subscriptions))


def nacks(profile: Profile) -> bool:
    return any(plan.nack_permille for plan in profile.consumers)


def nacks_when_shared(profile: Profile) -> bool:
    return any(plan.nack_permille for plan in _consumers(profile, SHARED))


def nacks_in_order(profile: Profile) -> bool:
    return any(plan.nack_permille for plan in _consumers(profile, IN_ORDER))


def cumulative(profile: Profile) -> bool:
    """A consumer of an Exclusive or Failover subscription acknowledges cumulatively."""
    return any(plan.cumulative_permille for plan in _consumers(profile, IN_ORDER))


def index_acknowledgement(profile: Profile) -> bool:
    """The broker and at least one consumer support acknowledgement of single messages of a batch."""
    return profile.broker.batch_index_acknowledgement and any(plan.batch_index for plan in profile.consumers)


def index_acknowledgement_of_batches(profile: Profile) -> bool:
    return index_acknowledgement(profile) and batches(profile)


def no_index_acknowledgement(profile: Profile) -> bool:
    return any(not plan.batch_index for plan in profile.consumers)


def kept(profile: Profile) -> bool:
    """A consumer keeps messages and acknowledges them later, in any order."""
    return any(plan.keep_permille for plan in profile.consumers)


def receipts(profile: Profile) -> bool:
    """A consumer acknowledges with receipts, and its application waits for them."""
    return any(plan.receipts and plan.confirm_permille for plan in profile.consumers)


def grouped(profile: Profile) -> bool:
    """A consumer groups its acknowledgements."""
    return any(plan.group_time and plan.group_size > 2 for plan in profile.consumers)


def ungrouped(profile: Profile) -> bool:
    return any(not plan.group_time for plan in profile.consumers)


def redeliver_all(profile: Profile) -> bool:
    return any(plan.redeliver_permille for plan in profile.consumers) or fault("redeliver_all")(profile)


def partitioned(profile: Profile) -> bool:
    """The world has a topic of several partitions."""
    return any(topic.partitions > 1 for topic in profile.partitioned)


def grows(profile: Profile) -> bool:
    """A partitioned topic gets more partitions while producers send to it."""
    return any(topic.growth for topic in profile.partitioned)


def _over_partitions(profile: Profile) -> list[ProducerPlan]:
    several = {index for index, topic in enumerate(profile.partitioned) if topic.partitions > 1}
    return [plan for plan in profile.producers if plan.partitioned in several]


def keys_over_partitions(profile: Profile) -> bool:
    return any(plan.rich_permille and plan.routing != "by_size" for plan in _over_partitions(profile))


def round_robin_over_partitions(profile: Profile) -> bool:
    """A producer sends single messages round-robin, each to the next partition."""
    return any(
        plan.batching is None and plan.routing == "round_robin" and plan.rich_permille < 1000
        for plan in _over_partitions(profile)
    )


def single_partition(profile: Profile) -> bool:
    return any(
        plan.routing == "single_partition" and plan.rich_permille < 1000 for plan in _over_partitions(profile)
    )


def flushes_over_partitions(profile: Profile) -> bool:
    return any(plan.flush_permille for plan in _over_partitions(profile))


def in_chunks(profile: Profile) -> list[ProducerPlan]:
    return [plan for plan in profile.producers if plan.chunk_size and plan.largest > plan.chunk_size]


def chunks(profile: Profile) -> bool:
    """At least one producer sends messages in chunks."""
    return bool(in_chunks(profile))


def chunks_received(profile: Profile) -> bool:
    """A consumer receives and acknowledges messages in chunks."""
    topics = {plan.topic for plan in in_chunks(profile) if plan.partitioned is None}
    return any(plan.topic in topics for plan in profile.consumers)


def chunks_refused(profile: Profile) -> bool:
    """A consumer of a shared subscription negatively acknowledges messages in chunks."""
    topics = {plan.topic for plan in in_chunks(profile) if plan.partitioned is None}
    return any(plan.nack_permille and plan.topic in topics for plan in _consumers(profile, SHARED))


def chunks_in_small_windows(profile: Profile) -> bool:
    return any(plan.window * plan.chunk_size < plan.largest for plan in in_chunks(profile))


def several_send_chunks(profile: Profile) -> bool:
    """Several producers send messages in chunks to one topic, and a consumer receives from it."""
    topics = [plan.topic for plan in in_chunks(profile) if plan.partitioned is None]
    read = {plan.topic for plan in profile.consumers}
    return any(topics.count(topic) > 1 and topic in read for topic in topics)


def exclusive(profile: Profile) -> bool:
    """Several producers want exclusive access to a topic."""
    wanting = [
        plan for plan in profile.producers if plan.contested and plan.access is not ProducerAccessMode.SHARED
    ]
    return len(wanting) > 1


def fencing(profile: Profile) -> bool:
    """One producer fences the other producers of a topic."""
    several = sum(plan.contested for plan in profile.producers) > 1
    return several and any(
        plan.access is ProducerAccessMode.EXCLUSIVE_WITH_FENCING for plan in profile.producers
    )


def waiting(profile: Profile) -> bool:
    """One producer waits until it has exclusive access to a topic."""
    several = sum(plan.contested for plan in profile.producers) > 1
    return several and any(plan.access is ProducerAccessMode.WAIT_FOR_EXCLUSIVE for plan in profile.producers)


def explicit_ids(profile: Profile) -> bool:
    return any(plan.explicit for plan in profile.producers)


def initial_ids(profile: Profile) -> bool:
    return any((plan.initial or 0) > 0 for plan in profile.producers)


def batches_by_key(profile: Profile) -> bool:
    return any(
        plan.batching is not None and plan.batching.by_key and plan.batching.max_messages > 2
        for plan in profile.producers
    )


def memory_limited(profile: Profile) -> bool:
    return profile.memory_limit is not None


def terminated(profile: Profile) -> bool:
    """A topic is terminated while a producer sends to it."""
    ended = {plan.topic for plan in profile.ends if not plan.deleted}
    return any(plan.topic in ended and plan.partitioned is None for plan in profile.producers)


def timeouts(profile: Profile) -> bool:
    """At least one consumer has an acknowledgement timeout."""
    return any(plan.timeout for plan in profile.consumers)


def timeouts_when_shared(profile: Profile) -> bool:
    return any(plan.timeout for plan in _consumers(profile, SHARED))


def timeouts_in_order(profile: Profile) -> bool:
    return any(plan.timeout for plan in _consumers(profile, IN_ORDER))


def forgets(profile: Profile) -> bool:
    """A consumer never acknowledges some messages, neither positively nor negatively. Only the
    acknowledgement timeout has them redelivered."""
    return any(plan.forget_permille for plan in profile.consumers)


def growing(profile: Profile) -> bool:
    """A consumer has redelivery delays that grow with every delivery."""
    return any(plan.growing for plan in profile.consumers)


def pauses(profile: Profile) -> bool:
    """At least one consumer pauses for a while."""
    return any(plan.halt_permille for plan in profile.consumers)


def zero_queues(profile: Profile) -> bool:
    return any(not plan.queue for plan in profile.consumers)


def scaled_queues(profile: Profile) -> bool:
    return any(plan.scaled and plan.queue for plan in profile.consumers)


def dead_letters(profile: Profile) -> bool:
    """At least one consumer sends messages to a dead-letter topic."""
    return any(plan.dead_letters for plan in profile.consumers)


def bad_messages(profile: Profile) -> bool:
    """Producers send batches, and an application fails for the same messages of its topic at every
    delivery."""
    topics = {plan.topic for plan in profile.producers if plan.partitioned is None}
    return batches(profile) and any(plan.bad_every and plan.topic in topics for plan in profile.consumers)


def dead_letters_of_several(profile: Profile) -> bool:
    """Several consumers of one subscription send messages to a dead-letter topic."""
    subscriptions = [plan.subscription for plan in profile.consumers if plan.dead_letters]
    return len(subscriptions) > len(set(subscriptions))


def migrates(profile: Profile) -> bool:
    """A topic migrates to another cluster while a producer sends to it."""
    gone = {plan.topic for plan in profile.migrations}
    return any(plan.topic in gone and plan.partitioned is None for plan in profile.producers)


def read_where_it_migrates(profile: Profile) -> bool:
    gone = {plan.topic for plan in profile.migrations}
    return any(plan.topic in gone for plan in profile.consumers)


def _intercepted(profile: Profile, kind: str) -> bool:
    return any(kind in plan.interceptors for plan in profile.producers)


def watched(profile: Profile) -> bool:
    """At least one producer has an interceptor that watches messages."""
    return _intercepted(profile, "watches")


def changed(profile: Profile) -> bool:
    """At least one producer has an interceptor that changes messages."""
    return _intercepted(profile, "changes")


def interrupted(profile: Profile) -> bool:
    """At least one producer has an interceptor that raises an error."""
    return _intercepted(profile, "raises")


def small_queues(profile: Profile) -> bool:
    return any(plan.queue <= 20 for plan in profile.consumers)


def sticky_keys(profile: Profile) -> bool:
    """A Key_Shared consumer declares its own key hash ranges."""
    return any(plan.ranges for plan in profile.consumers)


def greedy(profile: Profile) -> bool:
    """A Key_Shared consumer with ranges of its own now and then asks for the ranges of others."""
    return any(plan.ranges and plan.greedy_permille for plan in profile.consumers)


def dead_letters_of_chunks(profile: Profile) -> bool:
    """A consumer of a shared subscription sends messages in chunks to a dead-letter topic."""
    topics = {plan.topic for plan in in_chunks(profile) if plan.partitioned is None}
    return any(plan.dead_letters and plan.topic in topics for plan in _consumers(profile, SHARED))


def suitable(seed: int, needs: Sequence[Need]) -> bool:
    """True when the profile of a seed meets all these preconditions."""
    if not needs:
        return True
    profile = draw(Streams(seed))
    return all(need(profile) for need in needs)
