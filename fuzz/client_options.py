"""The client that hostile brokers meet: small limits, so that all of them are reached, and short times."""

from pulsar_sansio import (
    EARLIEST,
    BatchingPolicy,
    ClientConfig,
    ConsumerSpec,
    DeadLetterPolicy,
    ProducerSpec,
    ReaderSpec,
    SubscriptionType,
    TableViewSpec,
    TopicsPattern,
)

LIMIT = 8 * 1024
"""Bytes of one message in these rounds."""

QUEUE = 8
"""Permits of each consumer."""

WINDOW = 16
"""Unconfirmed messages of each producer."""

HOME = "pulsar://home:6650"
EVIL = "pulsar://evil:6650"

MAX_PARTITIONS = 6
"""The most partitions of a topic, and the most topics that match a pattern."""

PARTITIONED = "theirs-parts"
"""A topic that has partitions if its broker is honest."""

OFTEN = 0.5
"""Seconds between two questions for topics and partitions."""

CONSUMERS = 3 + 2 * MAX_PARTITIONS
"""Consumers at one time: two under attack, one on the honest broker, and those of several topics."""


def config(service_url: str) -> ClientConfig:
    return ClientConfig(
        service_url,
        operation_timeout=2.0,
        keepalive_interval=5.0,
        connect_timeout=1.0,
        initial_backoff=0.01,
        max_backoff=0.1,
        max_message_size=LIMIT,
        max_announced_message_size=LIMIT,
        max_pending_lookups=4,
        max_partitions=MAX_PARTITIONS,
    )


def producer_spec(topic: str, batched: bool) -> ProducerSpec:
    return ProducerSpec(
        topic,
        send_timeout=3.0,
        max_pending_messages=WINDOW,
        batching=BatchingPolicy(max_messages=4) if batched else None,
    )


def consumer_spec(topic: str, kind: SubscriptionType, indexed: bool) -> ConsumerSpec:
    return ConsumerSpec(
        topic,
        "s",
        kind,
        receiver_queue_size=QUEUE,
        acknowledgement_receipts=indexed,
        batch_index_acknowledgement=indexed,
        negative_acknowledgement_delay=0.5,
        acknowledgement_group_size=20,
        acknowledgement_timeout=1.0 if indexed else 0.0,
        acknowledgement_timeout_tick=0.2,
        dead_letter=DeadLetterPolicy(2) if indexed else None,
    )


def several_spec(topics: str | tuple[str, ...] | TopicsPattern, kind: SubscriptionType) -> ConsumerSpec:
    """A consumer of several topics. It has a retry topic, unless a pattern chooses its topics."""
    return ConsumerSpec(
        topics,
        "several",
        kind,
        receiver_queue_size=QUEUE,
        max_total_receiver_queue_size=3 * QUEUE,
        partitions_update_interval=OFTEN,
        negative_acknowledgement_delay=0.5,
        retry=not isinstance(topics, TopicsPattern),
    )


SEVERAL: tuple[str | tuple[str, ...] | TopicsPattern, ...] = (
    ("theirs", "theirs-too"),
    PARTITIONED,
    TopicsPattern("public/default/theirs.*", discovery_interval=OFTEN),
    TopicsPattern("public/default/theirs.*", discovery_interval=None),
)


def reader_spec(topic: str) -> ReaderSpec:
    return ReaderSpec(topic, EARLIEST, receiver_queue_size=QUEUE, partitions_update_interval=OFTEN)


def table_spec(topic: str) -> TableViewSpec:
    return TableViewSpec(
        topic, receiver_queue_size=QUEUE, max_size=8 * LIMIT, partitions_update_interval=OFTEN
    )
