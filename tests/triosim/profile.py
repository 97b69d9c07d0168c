"""The profile that one seed makes for a run: sizes, limits, options, weather."""

from dataclasses import dataclass
from typing import Any

from pulsar_sansio import BatchingPolicy, BatchReceivePolicy, BrokerConfig, SubscriptionType
from pulsar_sim.engine.clock import MICROSECOND, MILLISECOND
from pulsar_sim.engine.network import Conditions
from pulsar_sim.engine.randomness import Stream

HOST = "broker"
URL = f"pulsar://{HOST}:6650"


@dataclass(frozen=True, slots=True)
class Subscription:
    topic: str
    name: str
    kind: SubscriptionType
    consumers: int


@dataclass(frozen=True, slots=True)
class Profile:
    """`messages`: of each producer. `fault_gap`: mean milliseconds between faults; 0 is none."""

    clients: int
    producers: int
    messages: int
    largest: int
    topics: tuple[str, ...]
    subscriptions: tuple[Subscription, ...]
    broker: BrokerConfig
    latency: int
    jitter: int
    cut_permille: int
    capacity: int
    cancel_permille: int
    session_permille: int
    fault_gap: int
    slow_permille: int

    def conditions(self) -> Conditions:
        return Conditions(self.latency, self.jitter, self.cut_permille)


def draw(stream: Stream) -> Profile:
    topics = ("t0", "t1")[: stream.between(1, 2)]
    subscriptions = []
    for topic in topics:
        for number in range(stream.between(1, 2)):
            kind = stream.choice(list(SubscriptionType))
            consumers = 1 if kind is SubscriptionType.EXCLUSIVE else stream.between(1, 3)
            subscriptions.append(Subscription(topic, f"s{number}", kind, consumers))
    largest = stream.choice([0, 100, 2000])
    return Profile(
        clients=stream.between(1, 2),
        producers=stream.between(1, 3),
        messages=stream.spread(8, 60),
        largest=largest,
        topics=topics,
        subscriptions=tuple(subscriptions),
        broker=BrokerConfig(
            service_url=URL,
            deduplication=stream.chance(300),
            keepalive_interval=stream.choice([1.0, 3.0]),
            max_unsent_bytes=stream.choice([1024, 8192, 2 * 1024 * 1024]),
            max_pending_publishes=stream.choice([1, 10, 1000]),
            batch_index_acknowledgement=stream.chance(500),
            failover_delay=0.05,
            entries_per_turn=stream.choice([1, 20]),
            max_unacked_messages_per_consumer=stream.choice([50_000, 50_000, 20]),
        ),
        latency=stream.spread(10 * MICROSECOND, 20 * MILLISECOND),
        jitter=stream.choice([0, MILLISECOND]),
        cut_permille=stream.choice([0, 100, 300]),
        capacity=stream.choice([4096, 65536]) if largest > 100 else stream.choice([256, 4096, 65536]),
        cancel_permille=stream.choice([0, 200, 600]),
        session_permille=stream.choice([0, 200, 600]),
        fault_gap=stream.choice([0, 200, 60]),
        slow_permille=stream.choice([0, 20, 100]),
    )


def client_options(stream: Stream) -> dict[str, Any]:
    return {
        "seed": stream.bits(32),
        "operation_timeout": 5.0,
        "keepalive_interval": stream.choice([1.0, 2.0]),
        "connect_timeout": 1.0,
        "initial_backoff": 0.01,
        "max_backoff": 0.2,
        "connections_per_broker": stream.between(1, 2),
        "statistics_interval": stream.choice([None, 0.1]),
    }


def producer_options(stream: Stream) -> dict[str, Any]:
    batching = BatchingPolicy(
        max_messages=stream.choice([2, 10, 1000]), max_delay=stream.choice([0.0, 0.001, 0.05])
    )
    return {
        "batching": stream.choice([None, batching, batching]),
        "max_pending_messages": stream.spread(1, 100),
        "send_timeout": stream.choice([0.0, 0.5, 30.0]),
        "compression": stream.choice(["none", "none", "lz4"]),
        "when_full": stream.choice(["wait", "wait", "wait", "fail"]),
    }


def consumer_options(stream: Stream) -> dict[str, Any]:
    return {
        "receiver_queue_size": stream.choice([1, 2, 10, 1000]),
        "acknowledgement_group_time": stream.choice([0.0, 0.01, 0.1]),
        "acknowledgement_group_size": stream.choice([1, 10, 1000]),
        "acknowledgement_receipts": stream.chance(500),
        "batch_index_acknowledgement": stream.chance(500),
        "negative_acknowledgement_delay": stream.choice([0.0, 0.2]),
        "initial_position": "earliest",
        "batch_receive": stream.choice([None, None, None, BatchReceivePolicy(max_messages=5, timeout=0.05)]),
    }
