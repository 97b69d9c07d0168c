"""Lines of an explanation about permits and queues."""

import pytest

from pulsar_sansio.client.delivery import explaining
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.model.config import ConsumerSpec, ReadingSpec, SubscriptionType

SPEC = ConsumerSpec("demo", "orders", SubscriptionType.SHARED)


@pytest.mark.parametrize(
    ("queue_size", "at_broker", "paused", "line"),
    [
        (1000, 700, False, "700 permits are at the broker, for a queue of 1000"),
        (1000, -3, False, "0 permits are at the broker, for a queue of 1000"),
        (0, 0, False, "it asks for a message when the application waits for one (receiver_queue_size is 0)"),
        (0, 1, False, "1 permits are at the broker, for a queue of 0"),
        (1000, 700, True, "paused: it asks for no more messages until resume"),
    ],
)
def test_permits_and_the_queue(queue_size: int, at_broker: int, paused: bool, line: str) -> None:
    permits = Permits(queue_size)
    permits.at_broker = at_broker
    permits.paused = paused
    assert explaining.permits(permits, 12) == [
        line,
        "12 messages are in the receiver queue and wait for the application",
    ]


def test_a_reader_is_called_so_and_its_subscription_is_not_named() -> None:
    assert explaining.called(SPEC, "demo") == "consumer on demo"
    assert explaining.subscription(SPEC) == ", subscription 'orders'"
    reader = ReadingSpec("demo", "reader-x", SubscriptionType.EXCLUSIVE, durable=False)
    assert explaining.called(reader, "demo") == "reader of demo"
    assert explaining.subscription(reader) == ""


def test_limits_of_unacknowledged_messages() -> None:
    assert explaining.unacknowledged(7).startswith("at most 7 messages are delivered and not acknowledged")
    assert "50000" in explaining.unacknowledged(7)
    assert explaining.blocked(9, 2_500_000_000).startswith(
        "blocked: the broker said 2.5 s ago that 9 messages are unacknowledged"
    )
