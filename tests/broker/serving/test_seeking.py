"""SEEK: by id, by publish time and into a batch."""

from typing import Any

import pytest

from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type
from tests.broker.serving.stored_topics import EARLIEST, LATEST, backlog, batch_topic, topic_with


def seek(peer: Peer, **fields: Any) -> None:
    request_id = peer.request()
    peer.send(Type.SEEK, proto.CommandSeek(consumer_id=0, request_id=request_id, **fields))
    closed = peer.expect(Type.CLOSE_CONSUMER)
    assert (closed.consumer_id, closed.request_id) == (0, 2**64 - 1)
    assert peer.expect(Type.SUCCESS).request_id == request_id


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"message_id": {"ledgerId": 0, "entryId": 1}}, [b"1", b"2"]),
        ({"message_id": EARLIEST}, [b"0", b"1", b"2"]),
        ({"message_id": LATEST}, []),
        ({"message_publish_time": WALL - 1}, [b"0", b"1", b"2"]),
        ({"message_publish_time": WALL + 1}, []),
        ({"message_id": {"ledgerId": 0, "entryId": 2}, "message_publish_time": WALL - 1}, [b"2"]),
    ],
)
@pytest.mark.parametrize("durable", [True, False])
def test_seek(fields: dict[str, Any], expected: list[bytes], durable: bool) -> None:
    """GAP-35: CLOSE_CONSUMER, then SUCCESS; the client subscribes again."""
    world, peer = topic_with(b"0", b"1", b"2")
    peer.subscribe(SubType.Exclusive, durable=durable)
    peer.ack(*peer.messages())
    seek(peer, **fields)
    peer.subscribe(durable=durable)
    assert peer.payloads() == expected
    if durable:
        world.start()
        assert backlog(world) == len(expected), "the place is durable"


def test_seek_into_a_batch() -> None:
    _, peer = batch_topic()
    peer.subscribe()
    peer.messages()
    seek(peer, message_id={"ledgerId": 0, "entryId": 0, "ack_set": [0b1100]})
    peer.subscribe()
    assert peer.messages()[0].ack_set == 0b1100


def test_a_seek_sends_every_consumer_away() -> None:
    world, peer = topic_with(b"0")
    other = world.connect()
    peer.subscribe(SubType.Shared)
    other.subscribe(SubType.Shared, consumer_id=4)
    peer.inbox.clear()
    seek(peer, message_id={"ledgerId": 0, "entryId": 0})
    assert other.expect(Type.CLOSE_CONSUMER).consumer_id == 4


def test_a_seek_that_cannot_be() -> None:
    _, peer = topic_with()
    peer.send(Type.SEEK, proto.CommandSeek(consumer_id=0, request_id=1))
    peer.expect_error("MetadataError")
    peer.send(Type.SEEK, proto.CommandSeek(consumer_id=0, request_id=1, message_publish_time=0))
    assert peer.expect_error("MetadataError").message == "Consumer not found"


def test_a_reader_that_does_not_come_back_after_a_seek() -> None:
    world, peer = topic_with(b"0")
    peer.subscribe(durable=False)
    peer.inbox.clear()
    seek(peer, message_publish_time=0)
    peer.drop()
    assert "s" in world.broker.topic_administration.stats(TOPIC)["subscriptions"]
    world.advance(121)
    assert "s" not in world.broker.topic_administration.stats(TOPIC)["subscriptions"]
