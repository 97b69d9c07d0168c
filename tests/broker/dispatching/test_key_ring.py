"""Keys on a ring (encodings of Key_Shared; seen: java-key-shared)."""

from typing import Any

import pytest

from pulsar_sansio.broker.config import BrokerConfig
from pulsar_sansio.broker.dispatching.key_hash import AutoSplit
from pulsar_sansio.broker.dispatching.key_ring import ConsistentHash, automatic
from tests.broker.dispatching.test_key_hash import Name


def ring_of(*names: str) -> tuple[Any, list[Any]]:
    ring: Any = ConsistentHash()
    consumers = [Name(name, []) for name in names]
    for consumer in consumers:
        ring.add(consumer)
    return ring, consumers


@pytest.mark.parametrize(("key", "slot"), [(b"key-1", 11858), (b"hello", 7892), (b"NONE_KEY", 56505)])
def test_slots(key: bytes, slot: int) -> None:
    assert ConsistentHash().slot_of(key) == slot


@pytest.mark.parametrize(
    ("name", "points"),
    [("c1", [34662, 61273, 23534, 54464, 29173]), ("c2", [18701, 2959, 61677, 13833, 43465])],
)
def test_points(name: str, points: list[int]) -> None:
    ring, (consumer,) = ring_of(name)
    other = Name("other", [])
    ring.add(other)
    assert all(ring.owner(point) is consumer for point in points)


def test_the_consumer_of_a_key_is_that_of_a_real_broker() -> None:
    """Seen: java-key-shared."""
    ring, consumers = ring_of("a", "b")
    owners = [consumers.index(ring.owner(ring.slot_of(b"key-%d" % number))) for number in range(10)]
    assert owners == [1, 0, 1, 1, 1, 0, 0, 0, 1, 1]


def test_without_consumers() -> None:
    ring, consumers = ring_of("a")
    ring.remove(consumers[0])
    assert ring.owner(1) is None
    assert ring.ranges(consumers[0]) == []


def test_a_removed_consumer_moves_only_its_own_keys() -> None:
    ring, consumers = ring_of("a", "b", "c")
    before = {slot: ring.owner(slot) for slot in range(1, 65536, 7)}
    ring.remove(consumers[1])
    for slot, owner in before.items():
        assert ring.owner(slot) is not consumers[1]
        if owner is not consumers[1]:
            assert ring.owner(slot) is owner


def test_namesakes_have_points_of_their_own() -> None:
    ring, consumers = ring_of("same", "same", "same")
    shares = {each: sum(end - start + 1 for start, end in ring.ranges(each)) for each in consumers}
    assert all(10_000 < share < 35_000 for share in shares.values())
    ring.remove(consumers[1])
    again = Name("same", [])
    ring.add(again)
    assert sum(end - start + 1 for start, end in ring.ranges(again)) == shares[consumers[1]]


def test_ranges_cover_every_slot() -> None:
    ring, consumers = ring_of("a", "b", "c")
    owners = {}
    for consumer in consumers:
        for start, end in ring.ranges(consumer):
            for slot in range(start, end + 1):
                assert slot not in owners
                owners[slot] = consumer
    assert owners == {slot: ring.owner(slot) for slot in range(1, 65536)}


def test_a_broker_may_be_told_to() -> None:
    assert isinstance(automatic(BrokerConfig(key_shared_consistent_hashing=True)), ConsistentHash)
    assert isinstance(automatic(BrokerConfig()), AutoSplit)
