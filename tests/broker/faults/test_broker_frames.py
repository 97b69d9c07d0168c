"""Faults of what the broker sends: late, lost, doubled, damaged, cut off."""

import pytest

from pulsar_sansio import ChecksumMismatch
from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import proto, unpack_payload
from tests.broker.faults.conftest import AddRule
from tests.broker.peer import TOPIC, Peer, SubType, Type, World


def consuming(world: World) -> Peer:
    peer = world.connect()
    peer.producer(name="p")
    peer.subscribe(SubType.Shared)
    return peer


def test_a_receipt_is_late_and_those_behind_it_wait(add: AddRule, world: World) -> None:
    peer = world.connect()
    peer.producer(name="p")
    add("SEND_RECEIPT", "delay", seconds=2.0, times=1)
    peer.publish(b"a", 0)
    peer.publish(b"b", 1)
    peer.nothing()
    peer.send(Type.PING, proto.CommandPing())
    peer.expect(Type.PONG)
    world.advance(2.0)
    assert [each[0] for each in peer.receipts()] == [0, 1]
    peer.publish(b"c", 2)
    assert [each[0] for each in peer.receipts()] == [2]


def test_a_receipt_is_lost_though_the_message_is_stored(add: AddRule, world: World) -> None:
    peer = consuming(world)
    add("SEND_RECEIPT", "drop", times=1)
    peer.publish(b"a", 0)
    assert peer.payloads() == [b"a"]


@pytest.mark.breaks("CHECK-67", "NACK-03", why="a rule of faults writes a MESSAGE twice")
def test_a_frame_is_written_twice(add: AddRule, world: World) -> None:
    peer = consuming(world)
    add("MESSAGE", "duplicate", topic=TOPIC)
    add("SEND_RECEIPT", "drop")
    peer.publish(b"a", 0)
    assert peer.payloads() == [b"a", b"a"]


@pytest.mark.breaks("GAP-02", "INV-C2", why="a rule of faults damages messages")
def test_a_message_is_damaged(add: AddRule, world: World) -> None:
    """Each time another bit, of the checksum or the payload; what the broker stores stays whole."""
    add("MESSAGE", "corrupt", times=40)
    add("SEND_RECEIPT", "drop")
    peer = consuming(world)
    damaged = set()
    for number in range(40):
        peer.publish(b"payload", number)
        (message,) = peer.messages()
        with pytest.raises(ChecksumMismatch):
            unpack_payload(message.payload)
        damaged.add(message.payload)
    assert len(damaged) > 30
    peer.publish(b"payload", 40)
    (message,) = peer.messages()
    assert unpack_payload(message.payload).checksum_ok
    peer.redeliver()
    assert all(unpack_payload(each.payload).checksum_ok for each in peer.messages())


@pytest.mark.breaks("GAP-02", "INV-C2", why="a rule of faults damages messages")
def test_a_damaged_message_with_broker_entry_metadata() -> None:
    world = World(BrokerConfig(broker_entry_metadata=True))
    peer = world.raw()
    connect = proto.CommandConnect(client_version="test", protocol_version=21)
    connect.feature_flags.supports_broker_entry_metadata = True
    peer.send(Type.CONNECT, connect)
    peer.expect(Type.CONNECTED)
    peer.producer(name="p")
    peer.subscribe()
    world.broker.faults.add(0, "MESSAGE", "corrupt")
    for number in range(20):
        peer.publish(b"x", number)
        peer.expect(Type.SEND_RECEIPT)
        (message,) = peer.messages()
        assert message.payload[:2] == b"\x0e\x02", "broker entry metadata come first"
        with pytest.raises(ChecksumMismatch):
            unpack_payload(message.payload)


def test_half_a_frame_is_written_and_the_connection_ends(add: AddRule, world: World) -> None:
    peer = world.connect()
    peer.producer(name="p")
    add("SEND_RECEIPT", "half frame", after=1)
    peer.publish(b"a", 0)
    peer.publish(b"b", 1)
    assert [each[0] for each in peer.receipts()] == [0]
    assert peer.closed is not None
    assert len(peer._bytes) > 4, "the beginning of a frame is left"
    size = int.from_bytes(peer._bytes[:4], "big") + 4
    assert len(peer._bytes) == size // 2
    assert peer.link not in world.broker.links


def test_the_connection_ends_in_place_of_a_frame(add: AddRule, world: World) -> None:
    add("PRODUCER_SUCCESS", "close", topic="t")
    peer = world.connect()
    peer.ask_producer()
    peer.nothing()
    assert peer.closed is not None
    assert "PRODUCER_SUCCESS close" in peer.closed


def test_a_rule_about_the_last_frame_of_a_connection(add: AddRule, world: World) -> None:
    """The broker refuses a handshake and ends the connection: that frame can be lost as well."""
    world = World(BrokerConfig(max_connections=1))
    world.broker.faults.add(0, "ERROR", "drop")
    world.connect()
    peer = world.raw()
    peer.send(Type.CONNECT, proto.CommandConnect(client_version="test", protocol_version=21))
    peer.nothing()
    assert peer.closed == "too many connections"


def test_the_last_frame_of_a_connection_is_not_late() -> None:
    """A delay would lose it: the broker ends the connection at once."""
    world = World(BrokerConfig(max_connections=1))
    world.broker.faults.add(0, "ERROR", "delay", seconds=5.0)
    world.connect()
    peer = world.raw()
    peer.send(Type.CONNECT, proto.CommandConnect(client_version="test", protocol_version=21))
    peer.expect_error("NotAllowedError")
    assert peer.closed == "too many connections"


def test_a_late_end_of_the_connection(add: AddRule, world: World) -> None:
    """A frame behind a delayed one is cut off when its turn comes."""
    peer = world.connect()
    peer.producer(name="p")
    add("SEND_RECEIPT", "delay", seconds=1.0, times=1)
    add("SEND_RECEIPT", "half frame")
    peer.publish(b"a", 0)
    peer.publish(b"b", 1)
    peer.nothing()
    assert peer.closed is None
    world.advance(1.0)
    assert [each[0] for each in peer.receipts()] == [0]
    assert peer.closed is not None
    assert peer._bytes


def test_clear_sends_what_was_held_back(add: AddRule, world: World) -> None:
    peer = world.connect()
    peer.producer(name="p")
    add("SEND_RECEIPT", "delay", seconds=1000.0)
    peer.publish(b"a", 0)
    world.broker.faults.clear(world.now)
    world.pump()
    assert [each[0] for each in peer.receipts()] == [0]


def test_delayed_messages_count_as_unsent(add: AddRule) -> None:
    """Dispatch stops at `max_unsent_bytes`, also for bytes that a rule holds back."""
    world = World(BrokerConfig(max_unsent_bytes=10_000))
    peer = world.connect()
    peer.producer(name="p")
    peer.subscribe()
    world.broker.faults.add(0, "MESSAGE", "delay", seconds=5.0)
    for number in range(20):
        peer.publish(bytes(1000), number)
    peer.receipts()
    connection = world.broker.links[peer.link]
    assert connection.interposed is not None
    assert connection.interposed.held_bytes < 13_000
    world.advance(60.0)
    assert len([each for each in peer.inbox if each[0] == Type.MESSAGE]) == 20
    assert connection.interposed.held_bytes == 0


def test_the_two_directions_of_one_name(add: AddRule, world: World) -> None:
    peer = world.connect()
    from_broker = add("PING", sent_by="broker")
    from_client = add("PING", sent_by="client")
    peer.send(Type.PING, proto.CommandPing())
    assert (from_broker.fired, from_client.fired) == (0, 1)
    world.advance(31.0)
    assert from_broker.fired == 1
