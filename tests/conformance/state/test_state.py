"""The checker's facts about a connection: what is open, and what is remembered."""

from typing import Any

import pytest

from pulsar_sansio.conformance.memory import ConsumerMemory, Memory
from pulsar_sansio.conformance.state.consumer import ObservedConsumer, partition_of
from pulsar_sansio.conformance.state.delivery import Delivery
from pulsar_sansio.conformance.state.producer import ObservedProducer
from pulsar_sansio.conformance.state.state import State, is_open
from pulsar_sansio.wire import proto

TOPIC = "persistent://public/default/demo"


def producer() -> ObservedProducer:
    memory: Any = None
    return ObservedProducer(1, proto.CommandProducer(topic=TOPIC, producer_id=1, request_id=1), memory, 5)


def consumer(topic: str = TOPIC, kind: Any = "Shared") -> ObservedConsumer:
    command = proto.CommandSubscribe(topic=topic, subscription="s", subType=kind, consumer_id=1, request_id=1)
    return ObservedConsumer(1, command, ConsumerMemory(topic, "s", "c"), 5)


@pytest.mark.parametrize("make", [producer, consumer])
def test_an_endpoint_is_open_between_its_opening_and_the_first_close(make: Any) -> None:
    assert not is_open(None)
    for side in ("closing", "closed_by_broker"):
        endpoint = make()
        assert not is_open(endpoint)
        endpoint.open_since = 7
        assert is_open(endpoint)
        setattr(endpoint, side, 9)
        assert not is_open(endpoint)


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        (TOPIC, -1),
        (TOPIC + "-partition-0", 0),
        (TOPIC + "-partition-12", 12),
        (TOPIC + "-partition-012", -1),
        (TOPIC + "-partition-", -1),
        (TOPIC + "-partition-x", -1),
        (TOPIC + "-partition-٣", -1),
        ("-partition-3", -1),
        (TOPIC + "-partition-1-partition-2", 2),
    ],
)
def test_the_partition_of_a_name(topic: str, partition: int) -> None:
    """TOPIC-03: only a number as Pulsar writes it names a partition."""
    assert partition_of(topic) == partition
    assert consumer(topic).partition == partition


def test_the_type_of_a_subscription_and_the_domain_of_a_topic() -> None:
    assert consumer(kind="Failover").single_active
    assert not consumer(kind="Key_Shared").single_active
    assert consumer().persistent
    assert not consumer("non-persistent://public/default/demo").persistent


def test_an_entry_is_known_where_it_was_delivered_or_where_that_is_forgotten() -> None:
    known = consumer()
    assert not known.known((1, 1))
    known.delivered[1, 1] = Delivery(3, 0, 0, 0, False)
    known.acknowledged[1, 2] = Delivery(3, 0, 0, 0, False)
    known.memory.earlier[1, 3] = 5
    assert [known.known((1, entry)) for entry in range(1, 5)] == [True, True, True, False]
    for entry in range(10_000):
        known.acknowledged[2, entry] = Delivery(3, 0, 0, 0, False)
    assert known.acknowledged.overflowed
    assert known.known((9, 9)), "the checker finds nothing wrong with what it may have forgotten"


def test_lookups_and_other_requests_have_number_spaces_of_their_own() -> None:
    state = State(Memory())
    assert state.requests_of(proto.BaseCommand.LOOKUP) is state.lookups
    assert state.requests_of(proto.BaseCommand.PARTITIONED_METADATA) is state.lookups
    assert state.requests_of(proto.BaseCommand.PRODUCER) is state.general
