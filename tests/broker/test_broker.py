"""The main job, end to end through raw frames: publish, deliver, acknowledge, survive."""

from typing import Any

import pytest

from pulsar_sansio import InvalidConfiguration
from pulsar_sansio.broker import Broker, BrokerConfig
from pulsar_sansio.broker.serving.lookups import MAX_PROPERTIES, PAIR
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, SubType, Type, World, ids


def test_a_message_is_confirmed_delivered_and_acknowledged() -> None:
    world = World()
    producing, consuming = world.connect(), world.connect()
    success = producing.producer()
    assert success.producer_name == "standalone-1-0"
    assert success.last_sequence_id == -1
    assert success.schema_version == b""
    assert success.producer_ready
    consuming.subscribe()
    for number in range(3):
        producing.publish(b"m%d" % number, number)
    assert producing.receipts() == [(0, 0, 0), (1, 0, 1), (2, 0, 2)]
    messages = consuming.messages()
    assert ids(messages) == [(0, 0), (0, 1), (0, 2)]
    assert all(message.partition == -1 for message in messages)
    consuming.ack(*messages)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["backlog"] == 0


def test_nothing_is_confirmed_or_delivered_before_it_is_durable() -> None:
    """BROKER-41, STORE-43. Rules STORE-11 and STORE-12."""
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe()
    world.hold_writes = True
    producing.publish(b"a", 0)
    producing.publish(b"b", 1)
    producing.nothing()
    consuming.nothing()
    assert len(world.held) == 1, "one write is outstanding, the second message waits for the next"
    world.sync()
    assert [sequence for sequence, _, _ in producing.receipts()] == [0, 1]
    assert consuming.payloads() == [b"a", b"b"]


def test_a_new_broker_over_the_same_store_goes_on() -> None:
    """Rules BROKER-48 and STORE-04."""
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe(SubType.Shared)
    for number in range(5):
        producing.publish(b"m%d" % number, number)
    messages = consuming.messages()
    consuming.ack(messages[0], messages[3], request_id=7)
    assert consuming.expect(Type.ACK_RESPONSE).request_id == 7
    world.start()
    again = world.connect()
    again.subscribe(SubType.Shared)
    assert again.payloads() == [b"m1", b"m2", b"m4"]
    assert world.connect().producer().producer_name == "standalone-2-0", "names are unique over restarts"


def test_two_brokers_of_one_seed_and_input_say_the_same() -> None:
    def run() -> list[bytes]:
        world = World()
        peer = world.connect()
        peer.producer()
        peer.subscribe(SubType.Key_Shared)
        for number in range(20):
            peer.publish(b"x", number, partition_key=f"k{number % 5}")
        world.advance(61)
        return [message.payload for number, message in peer.inbox if number == Type.MESSAGE]

    assert run() == run()


def test_stale_links_are_ignored() -> None:
    world = World()
    broker: Broker = world.broker
    broker.receive_data(0, 99, b"\0\0\0\5")
    broker.receive_eof(0, 99)
    broker.disconnected(0, 99, "never was")
    assert broker.data_to_send(99) == []
    assert not broker.wants_read(99)
    assert broker.next_output() is None


def test_a_time_may_be_ten_years_and_no_longer() -> None:
    longest = 10.0 * 365 * 86_400
    for name in ("keepalive_interval", "delayed_delivery_tick"):
        allowed: dict[str, Any] = {name: longest}
        assert getattr(BrokerConfig(**allowed), name) == longest
        with pytest.raises(InvalidConfiguration):
            BrokerConfig(**{**allowed, name: longest + 1})


def test_properties_may_be_as_large_as_the_limit() -> None:
    world = World()
    peer = world.connect()
    for size, answer in ((MAX_PROPERTIES, Type.SUCCESS), (MAX_PROPERTIES + 1, Type.ERROR)):
        properties = [proto.KeyValue(key="k", value="v" * (size - PAIR - 1))]
        peer.ask_subscribe(subscription=f"s{size}", consumer_id=size, subscription_properties=properties)
        peer.expect(answer)


def test_properties_of_a_schema_may_be_as_large_as_the_limit() -> None:
    world = World()
    peer = world.connect()
    for size, answer in ((MAX_PROPERTIES, Type.SUCCESS), (MAX_PROPERTIES + 1, Type.ERROR)):
        schema = proto.Schema(name="", type=proto.Schema.String, schema_data=b"")
        schema.properties.add(key="k", value="v" * (size - PAIR - 1))
        peer.ask_subscribe(subscription=f"s{size}", consumer_id=size, schema=schema)
        peer.expect(answer)
