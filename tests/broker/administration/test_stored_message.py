"""`StoredMessage`: an entry as an administrator reads it."""

import pytest

from pulsar_sansio.model.message_id import MessageId
from tests.broker.peer import TOPIC, SubType, World
from tests.broker.transacting import InTransaction


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


def test_entries_of_transactions_are_marked_as_such() -> None:
    """As with a Java broker, markers and aborted entries are read like all others."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared, permits=0)
    peer.publish(b"plain", 0)
    committed, aborted, still_open = (InTransaction(peer) for _ in range(3))
    peer.inbox.clear()
    committed.publish(b"committed", 1)
    aborted.publish(b"aborted", 2)
    committed.end()
    aborted.abort()
    still_open.publish(b"open", 3)
    peer.publish(b"behind", 4)
    peek = world.broker.subscription_administration.peek
    found = [peek(TOPIC, "s", number) for number in range(1, 8)]
    assert [(each.payload, each.aborted, each.uncommitted) for each in found] == [
        (b"plain", None, False),
        (b"committed", False, False),
        (b"aborted", True, False),
        (b"", False, False),
        (b"", True, False),
        (b"open", False, True),
        (b"behind", None, True),
    ]
