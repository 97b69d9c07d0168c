"""Non-persistent topics: delivered now or never (seen: java-non-persistent)."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.model.errors import LocalProtocolError
from pulsar_sansio.wire import encode_ping, proto
from tests.broker.peer import Peer, SubType, Type, World, ids

TOPIC = "non-persistent://public/default/t"


def world_with() -> tuple[World, Peer, Peer]:
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer(TOPIC)
    return world, producing, consuming


def join(
    peer: Peer, kind: Any = SubType.Shared, consumer_id: int = 0, permits: int = 10, **fields: Any
) -> None:
    peer.subscribe(kind, consumer_id, TOPIC, permits=permits, **fields)


def test_as_it_was_recorded() -> None:
    _, producing, consuming = world_with()
    join(consuming)
    for number in range(3):
        producing.publish(b"%d" % number, number)
    assert producing.receipts() == [(0, 0, 0), (1, 0, 0), (2, 0, 0)], "no ids, but receipts"
    assert ids(consuming.messages()) == [(0, 0)] * 3
    consuming.ack((0, 0, None), request_id=1)
    consuming.expect(Type.ACK_RESPONSE)
    consuming.redeliver()
    consuming.nothing()


def test_no_permits_no_message() -> None:
    world, producing, consuming = world_with()
    join(consuming, permits=1)
    for number in range(3):
        producing.publish(b"%d" % number, number)
    assert consuming.payloads() == [b"0"]
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["dropped"] == 2
    consuming.flow(5)
    consuming.nothing()


def test_nothing_is_stored() -> None:
    """Rule TOPIC-06."""
    world, producing, _ = world_with()
    producing.publish(b"x")
    later = world.connect()
    join(later)
    later.nothing()
    world.start()
    assert world.broker.topic_administration.topics("public/default") == []
    producing = world.connect()
    producing.producer(TOPIC)
    assert world.broker.topic_administration.internal_stats(TOPIC)["numberOfEntries"] == 0
    with pytest.raises(LocalProtocolError):
        world.broker.topic_administration.terminate(0, TOPIC)


def test_shared_is_a_round_robin_that_skips_unavailable_consumers() -> None:
    _, producing, consuming = world_with()
    for consumer_id, permits in enumerate((10, 1, 10)):
        join(consuming, consumer_id=consumer_id, permits=permits)
    for number in range(5):
        producing.publish(b"x", number)
    assert [message.consumer_id for message in consuming.messages()] == [0, 1, 2, 0, 2]


def test_key_shared_keeps_keys_together() -> None:
    _, producing, consuming = world_with()
    for consumer_id in range(2):
        join(consuming, SubType.Key_Shared, consumer_id)
    for number in range(5):
        producing.publish(b"x", number, partition_key="same")
    assert len({message.consumer_id for message in consuming.messages()}) == 1
    consuming.ask_subscribe(SubType.Key_Shared, 5, TOPIC, keySharedMeta={"keySharedMode": "STICKY"})
    consuming.expect_error("ConsumerBusy")


def test_failover_and_exclusive_have_one_receiver() -> None:
    world, producing, consuming = world_with()
    join(consuming, SubType.Failover, 0, consumer_name="b")
    join(consuming, SubType.Failover, 1, consumer_name="a")
    producing.publish(b"x")
    assert [message.consumer_id for message in consuming.messages()] == [1]
    consuming.ask_subscribe(SubType.Shared, 2, TOPIC)
    consuming.expect_error("ConsumerBusy")
    join(consuming, SubType.Exclusive, 3, subscription="e")
    other = world.connect()
    other.ask_subscribe(SubType.Exclusive, 0, TOPIC, subscription="e")
    consuming.expect(Type.PING)
    consuming.feed(encode_ping())
    other.expect_error("ConsumerBusy")


def test_what_cannot_be_asked() -> None:
    _, _, consuming = world_with()
    join(consuming)
    consuming.send(Type.SEEK, proto.CommandSeek(consumer_id=0, request_id=1, message_publish_time=0))
    consuming.expect(Type.SUCCESS)  # There is no position: the consumer goes on.
    consuming.send(Type.GET_LAST_MESSAGE_ID, proto.CommandGetLastMessageId(consumer_id=0, request_id=1))
    consuming.expect_error("UnknownError")
    consuming.send(Type.CONSUMER_STATS, proto.CommandConsumerStats(request_id=1, consumer_id=0))
    assert consuming.expect(Type.CONSUMER_STATS_RESPONSE).availablePermits == 10


@pytest.mark.parametrize("name", ["", " ", "pulsar.dedup"])
def test_names_of_subscriptions_are_free(name: str) -> None:
    """A Java broker checks them on persistent topics alone."""
    _, _, consuming = world_with()
    join(consuming, subscription=name)


def test_closing() -> None:
    world, _, consuming = world_with()
    join(consuming)
    join(consuming, consumer_id=1, subscription="other")
    consuming.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=1))
    consuming.expect(Type.SUCCESS)
    consuming.close_consumer(1)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"] == {}


def test_a_topic_without_clients_is_discarded() -> None:
    world, producing, _ = world_with()
    world.advance(61)
    assert world.broker.topic_administration.topics("public/default") == [TOPIC]
    producing.drop()
    world.advance(61)
    assert world.broker.topic_administration.topics("public/default") == []


def test_limits_and_first_ranges() -> None:
    world = World(BrokerConfig())
    peer = world.connect()
    peer.ask_subscribe(SubType.Key_Shared, 0, TOPIC, keySharedMeta={"keySharedMode": "STICKY"})
    peer.expect_error("ConsumerAssignError")
    join(peer)
    world.broker.administration.set_policy(0, TOPIC, "max_consumers_per_subscription", 1)
    peer.ask_subscribe(SubType.Shared, 1, TOPIC)
    peer.expect_error("ConsumerBusy")


def test_unloading_and_deleting() -> None:
    world, producing, consuming = world_with()
    join(consuming)
    world.broker.topic_administration.unload(0, TOPIC)
    world.pump()
    producing.expect(Type.CLOSE_PRODUCER)
    consuming.expect(Type.CLOSE_CONSUMER)
    producing.producer(TOPIC)
    join(consuming)
    world.broker.topic_administration.delete_topic(0, TOPIC, force=True)
    world.pump()
    producing.expect(Type.CLOSE_PRODUCER)
    consuming.expect(Type.CLOSE_CONSUMER)
    assert world.broker.topic_administration.topics("public/default") == []


def test_sticky_ranges() -> None:
    _, producing, consuming = world_with()

    def ranges(start: int, end: int) -> Any:
        return {"keySharedMode": "STICKY", "hashRanges": [{"start": start, "end": end}]}

    join(consuming, SubType.Key_Shared, 0, keySharedMeta=ranges(0, 30000))
    consuming.ask_subscribe(SubType.Key_Shared, 1, TOPIC, keySharedMeta=ranges(30000, 65535))
    consuming.expect_error("ConsumerAssignError")
    join(consuming, SubType.Key_Shared, 1, keySharedMeta=ranges(30001, 65535))
    producing.publish(b"x", partition_key="hello")
    assert [message.consumer_id for message in consuming.messages()] == [1]


def test_unsubscribing_all_consumers() -> None:
    world, _, consuming = world_with()
    other = world.connect()
    join(consuming)
    join(other)
    consuming.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=1, force=True))
    consuming.expect(Type.SUCCESS)
    other.expect(Type.CLOSE_CONSUMER)
    world.broker.administration.set_policy(0, TOPIC, "max_consumers", 1)
    join(other)
    consuming.ask_subscribe(SubType.Shared, 1, TOPIC)
    consuming.expect_error("ConsumerBusy")
