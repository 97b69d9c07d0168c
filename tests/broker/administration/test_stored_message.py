"""`StoredMessage`: an entry as an administrator reads it."""

import pytest

from pulsar_sansio.model.message_id import MessageId
from tests.broker.peer import TOPIC, SubType, World


def test_a_single_entry_has_its_metadata_and_payload() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared, permits=0)
    peer.publish(b"text", 7)
    stored = world.broker.subscription_administration.peek(TOPIC, "s", 1)
    assert stored.message_id == MessageId(0, 0)
    assert (stored.payload, stored.stored_size) == (b"text", 4)
    assert stored.metadata.sequence_id == 7


def test_a_batch_is_one_entry() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared, permits=0)
    peer.publish_batch([b"a", b"b"], 0)
    stored = world.broker.subscription_administration.peek(TOPIC, "s", 1)
    assert stored.metadata.num_messages_in_batch == 2
    assert stored.stored_size == len(stored.payload)
    assert b"a" in stored.payload
    assert b"b" in stored.payload


@pytest.mark.parametrize("partition", [0, 2])
def test_the_id_names_the_partition(partition: int) -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(world.now, "p", 3)
    topic = f"persistent://public/default/p-partition-{partition}"
    peer = world.connect()
    peer.producer(topic=topic)
    peer.subscribe(SubType.Shared, topic=topic, permits=0)
    peer.publish(b"x", 0)
    assert world.broker.subscription_administration.peek(topic, "s", 1).message_id.partition == partition
