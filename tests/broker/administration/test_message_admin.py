"""Messages that an administrator publishes: dispatched, refused and stored as those of producers."""

import pytest

from pulsar_sansio.broker import NewMessage, NotApplicable, NotFound
from tests.broker.peer import TOPIC, World

MESSAGE = NewMessage(b"x", "admin", 0)


def test_a_consumer_receives_a_message_once_it_is_stored() -> None:
    world = World()
    peer = world.connect()
    peer.subscribe()
    world.hold_writes = True
    message_id = world.broker.message_administration.publish(world.now, TOPIC, MESSAGE)
    world.pump()
    peer.nothing()
    world.sync()
    assert peer.payloads() == [b"x"]
    assert world.broker.topic_administration.last_message_id(TOPIC) == message_id


def test_topics_that_take_no_message() -> None:
    world = World()
    administration = world.broker.topic_administration
    publish = world.broker.message_administration.publish
    with pytest.raises(NotFound):
        publish(0, TOPIC, MESSAGE)
    administration.create_partitioned_topic(0, TOPIC, 1)
    with pytest.raises(NotApplicable, match="partitioned"):
        publish(0, TOPIC, MESSAGE)
    administration.terminate(0, f"{TOPIC}-partition-0")
    with pytest.raises(NotApplicable, match="already terminated"):
        publish(0, f"{TOPIC}-partition-0", MESSAGE)
    administration.create_topic(0, "persistent://public/default/moved")
    administration.migrate(0, "persistent://public/default/moved", "pulsar://other:6650")
    with pytest.raises(NotApplicable, match="temporarily unavailable"):
        publish(0, "persistent://public/default/moved", MESSAGE)
    administration.create_topic(0, "non-persistent://public/default/v")
    with pytest.raises(NotApplicable, match="not persistent"):
        publish(0, "non-persistent://public/default/v", MESSAGE)
