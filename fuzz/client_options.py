"""The client that hostile brokers meet: small limits, so that all of them are reached, and short times."""

from pulsar_sansio import (
    BatchingPolicy,
    ClientConfig,
    ConsumerSpec,
    DeadLetterPolicy,
    ProducerSpec,
    SubscriptionType,
)

LIMIT = 8 * 1024
"""Bytes of one message in these rounds."""

QUEUE = 8
"""Permits of each consumer."""

WINDOW = 16
"""Unconfirmed messages of each producer."""

HOME = "pulsar://home:6650"
EVIL = "pulsar://evil:6650"

CONSUMERS = 3
"""At one time: two that are attacked and one on the honest broker."""


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
