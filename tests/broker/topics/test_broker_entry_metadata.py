"""Broker entry metadata in front of entries: the clients that get it, and the numbers of messages without a
gap.
"""

from typing import Any

from pulsar_sansio.broker import BrokerConfig, MemoryStore
from pulsar_sansio.wire import MessageCommand, proto, unpack_payload
from tests.broker.peer import WALL, Peer, Type, World, batch_payloads

CONFIG = BrokerConfig(broker_entry_metadata=True, ledger_max_entries=2)


def reading_peer(world: World, version: int = 21, *, reads: bool = True) -> Peer:
    """A client that announces whether it can read broker entry metadata."""
    peer = world.raw()
    connect = proto.CommandConnect(client_version="t", protocol_version=version, auth_method_name="none")
    connect.feature_flags.supports_broker_entry_metadata = reads
    peer.send(Type.CONNECT, connect)
    peer.expect(Type.CONNECTED)
    return peer


def stamps(messages: list[MessageCommand]) -> list[Any]:
    found = [unpack_payload(message.payload).broker_entry_metadata for message in messages]
    return [None if stamp is None else (stamp.broker_timestamp - WALL, stamp.index) for stamp in found]


def test_the_index_is_that_of_the_last_message_of_the_entry() -> None:
    world = World(CONFIG)
    peer = reading_peer(world)
    peer.producer(name="p")
    peer.publish_batch([b"a", b"b", b"c"], 0)
    world.advance(1.5)
    peer.publish(b"d", 3)
    peer.publish_batch([b"e", b"f"], 4)
    for _ in range(3):
        peer.expect(Type.SEND_RECEIPT)
    peer.subscribe()
    messages = peer.messages()
    assert stamps(messages) == [(0, 2), (1500, 3), (1500, 5)]
    assert batch_payloads(messages[0]) == [b"a", b"b", b"c"], "behind the stamp the entry is as it was"
    assert unpack_payload(messages[1].payload).checksum_ok


def test_what_is_delivered_again_has_the_same_stamp() -> None:
    world = World(CONFIG)
    peer = reading_peer(world)
    peer.producer(name="p")
    peer.subscribe(proto.CommandSubscribe.SubType.Shared)
    peer.publish(b"a")
    peer.expect(Type.SEND_RECEIPT)
    first = peer.messages()
    world.advance(10)
    peer.redeliver(*first)
    again = peer.messages()
    assert again[0].redelivery_count == 1
    assert stamps(again) == stamps(first) == [(0, 0)]


def test_a_client_that_cannot_read_it_gets_entries_without_it() -> None:
    """CHECK-12: from version 18 on, and with the feature flag."""
    world = World(CONFIG)
    publisher = world.connect()
    publisher.producer(name="p")
    publisher.publish(b"a")
    publisher.expect(Type.SEND_RECEIPT)
    for number, (version, reads, told) in enumerate(
        [(21, True, [(0, 0)]), (18, True, [(0, 0)]), (17, True, [None]), (21, False, [None])]
    ):
        peer = reading_peer(world, version, reads=reads)
        peer.subscribe(subscription=f"s{number}")
        assert stamps(peer.messages()) == told


def test_it_is_off_by_default() -> None:
    world = World()
    peer = reading_peer(world)
    peer.producer(name="p")
    peer.subscribe()
    peer.publish(b"a")
    peer.expect(Type.SEND_RECEIPT)
    assert stamps(peer.messages()) == [None]


def test_counting_goes_on_after_a_restart_and_where_ledgers_are_gone() -> None:
    store = MemoryStore()
    world = World(CONFIG, store)
    peer = reading_peer(world)
    peer.producer(name="p")
    for number in range(5):
        peer.publish_batch([b"a", b"b"], 2 * number)
        peer.expect(Type.SEND_RECEIPT)
    peer.subscribe()
    messages = peer.messages()
    assert stamps(messages) == [(0, index) for index in (1, 3, 5, 7, 9)]
    for message in messages:
        peer.ack(message)
    world.advance(100)
    world.start()
    peer = reading_peer(world)
    peer.producer(name="p")
    peer.subscribe()
    peer.publish(b"c", 10)
    peer.expect(Type.SEND_RECEIPT)
    assert [index for _, index in stamps(peer.messages())] == [10]
    world.start()
    peer = reading_peer(world)
    peer.subscribe(subscription="another")
    assert [index for _, index in stamps(peer.messages())] == [9, 10], "the ledgers before are gone"
