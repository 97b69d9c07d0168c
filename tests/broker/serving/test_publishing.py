"""SEND and receipts, refusals, CLOSE_PRODUCER."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import (
    MessageMetadata,
    Send,
    encode_message_metadata,
    encode_send,
    pack_payload,
    proto,
    unpack_payload,
)
from tests.broker.peer import TOPIC, WALL, Peer, Type, World, batch_payloads


def producing(**policies: Any) -> tuple[World, Peer]:
    world = World()
    peer = world.connect()
    peer.producer(name="p")
    for name, value in policies.items():
        world.broker.administration.set_policy(world.now, TOPIC, name, value)
    world.pump()
    return world, peer


def send_error(peer: Peer) -> tuple[str, int]:
    error = peer.expect(Type.SEND_ERROR)
    return proto.ServerError.Name(error.error), error.sequence_id


def test_receipts_come_in_order_and_copy_what_the_send_said() -> None:
    _, peer = producing()
    peer.publish(b"a", 0)
    peer.publish_batch([b"b", b"c"], 1)
    peer.publish(b"d", 3)
    receipts = [peer.expect(Type.SEND_RECEIPT) for _ in range(3)]
    assert [(each.sequence_id, each.highest_sequence_id) for each in receipts] == [
        (0, None),
        (1, 2),
        (3, None),
    ]
    assert [each.entry_id for each in receipts] == [0, 1, 2]


def test_an_entry_is_delivered_as_it_was_sent() -> None:
    """The broker does not rewrite metadata."""
    _, peer = producing()
    peer.subscribe()
    peer.publish_batch([b"one", b"two"], 0, properties=[("k", "v")], event_time=5)
    peer.expect(Type.SEND_RECEIPT)
    (message,) = peer.messages()
    unpacked = unpack_payload(message.payload)
    assert unpacked.checksum_ok
    assert (unpacked.metadata.producer_name, unpacked.metadata.event_time) == ("p", 5)
    assert list(unpacked.metadata.properties) == [("k", "v")]
    assert batch_payloads(message) == [b"one", b"two"]


def test_a_null_message_is_a_message() -> None:
    _, peer = producing()
    peer.subscribe()
    peer.publish(b"", null_value=True, partition_key="k")
    peer.expect(Type.SEND_RECEIPT)
    assert unpack_payload(peer.messages()[0].payload).metadata.null_value


def test_a_wrong_checksum_is_refused_and_the_connection_kept() -> None:
    world, peer = producing()
    packed = bytearray(
        b"".join(pack_payload(encode_message_metadata(MessageMetadata("p", 0, WALL)), b"hello"))
    )
    packed[-1] ^= 1
    peer.feed(Send(0, 4, payload=bytes(packed)).encode())
    assert send_error(peer) == ("ChecksumError", 4)
    assert peer.closed is None
    assert world.broker.topic_administration.stats(TOPIC)["msgInCounter"] == 0


def test_headers_that_cannot_be_parsed_cost_the_connection() -> None:
    _, peer = producing()
    peer.feed(Send(0, 0, payload=b"\0\0\0\x63nonsense").encode())
    assert peer.closed is not None


def test_send_to_a_producer_that_is_not_there_closes() -> None:
    """No answer is possible: a SEND_ERROR names a producer."""
    peer = World().connect()
    peer.publish(b"x")
    assert peer.closed is not None


@pytest.mark.parametrize("count", [0, -1, 1000, 2**31 - 1])
def test_a_batch_that_lies_about_its_size(count: int) -> None:
    _, peer = producing()
    peer.publish(b"x" * 20, 0, highest=7, num_messages_in_batch=count)
    assert send_error(peer) == ("MetadataError", 7)


def test_what_only_brokers_send() -> None:
    _, peer = producing()
    payload = b"".join(pack_payload(encode_message_metadata(MessageMetadata("p", 0, WALL)), b""))
    peer.feed(Send(0, 2, marker=True, payload=payload).encode())
    assert send_error(peer) == ("NotAllowedError", 2)
    peer.feed(Send(0, 3, message_id=b"\x08\x01\x10\x01", payload=payload).encode())
    assert send_error(peer) == ("NotAllowedError", 3)


def test_policies_about_messages() -> None:
    _, peer = producing(max_message_size=10)
    peer.publish(b"x" * 11, 0)
    assert send_error(peer) == ("NotAllowedError", 0)
    peer.publish(b"x" * 10, 1)
    assert peer.receipts() == [(1, 0, 0)]
    packed = pack_payload(encode_message_metadata(MessageMetadata("p", 2, WALL)), b"x" * 50)
    peer.feed(Send(0, 2, is_chunk=True, payload=b"".join(packed)).encode())
    assert peer.receipts() == [(2, 0, 1)], "chunks are exempt"


def test_encryption_may_be_required() -> None:
    _world, peer = producing(encryption_required=True)
    peer.publish(b"x")
    assert send_error(peer) == ("MetadataError", 0)
    peer.ask_producer(producer_id=1, name="other")
    peer.expect_error("MetadataError")


def test_closing_waits_for_the_receipts() -> None:
    """BROKER-41: the receipts come first."""
    world, peer = producing()
    world.hold_writes = True
    peer.publish(b"a", 0)
    peer.close_producer()
    peer.nothing()
    world.sync()
    peer.expect(Type.SEND_RECEIPT)
    peer.expect(Type.SUCCESS)
    peer.nothing()


def test_closing_a_producer_that_is_not_there_succeeds() -> None:
    peer = World().connect()
    peer.close_producer(77)
    peer.expect(Type.SUCCESS)


def test_a_producer_that_goes_leaves_its_messages() -> None:
    """Rule BROKER-33."""
    world, peer = producing()
    world.hold_writes = True
    peer.publish(b"a", 0)
    peer.drop()
    world.hold_writes = False
    world.sync()
    again = world.connect()
    again.subscribe()
    assert again.payloads() == [b"a"]


def test_without_a_checksum_from_the_client() -> None:
    """The delivered entry has a checksum."""
    _, peer = producing()
    peer.subscribe()
    metadata = encode_message_metadata(MessageMetadata("p", 0, WALL))
    bare = len(metadata).to_bytes(4, "big") + metadata + b"hello"
    frame = encode_send(0, 0, 1, None, [bare], len(bare))
    peer.feed(frame if isinstance(frame, bytes) else b"".join(frame))
    peer.expect(Type.SEND_RECEIPT)
    assert unpack_payload(peer.messages()[0].payload).checksum_ok


def test_a_client_that_closes_after_the_broker_gets_the_brokers_close_first() -> None:
    """A SEND between the two was ignored (GAP-37); SUCCESS alone would say that it was stored."""
    world, peer = producing()
    world.hold_writes = True
    peer.publish(b"taken", 0)
    world.broker.topic_administration.unload(world.now, TOPIC)
    world.pump()
    peer.publish(b"too late", 1)
    peer.close_producer()
    peer.nothing()
    world.sync()
    assert peer.expect(Type.SEND_RECEIPT).sequence_id == 0
    assert peer.expect(Type.CLOSE_PRODUCER).producer_id == 0
    peer.expect(Type.SUCCESS)
    peer.nothing()
    assert peer.closed is None


def test_a_producer_closed_twice_is_answered_twice() -> None:
    world, peer = producing()
    world.hold_writes = True
    peer.publish(b"taken", 0)
    peer.close_producer()
    peer.close_producer()
    world.sync()
    peer.expect(Type.SEND_RECEIPT)
    answers = [peer.expect(Type.SUCCESS).request_id for _ in range(2)]
    assert answers == sorted(answers)
    assert len(set(answers)) == 2


def test_a_refusal_does_not_overtake_the_receipts_before_it() -> None:
    """BROKER-41: a client may take it for the answer to its oldest message, and give up a stored one."""
    world, peer = producing()
    world.hold_writes = True
    peer.publish(b"first", 0)
    peer.publish(b"second", 1)
    packed = bytearray(
        b"".join(pack_payload(encode_message_metadata(MessageMetadata("p", 2, WALL)), b"damaged"))
    )
    packed[-1] ^= 1
    peer.feed(Send(0, 2, payload=bytes(packed)).encode())
    peer.publish(b"last", 3)
    peer.nothing()
    world.sync()
    answers = [peer.inbox.popleft() for _ in range(len(peer.inbox))]
    assert [(Type.Name(number), answer.sequence_id) for number, answer in answers] == [
        ("SEND_RECEIPT", 0),
        ("SEND_RECEIPT", 1),
        ("SEND_ERROR", 2),
        ("SEND_RECEIPT", 3),
    ]


def test_a_duplicate_is_confirmed_in_its_turn() -> None:
    world, peer = producing(deduplication=True)
    peer.publish(b"stored", 5)
    peer.receipts()
    world.hold_writes = True
    peer.publish(b"new", 6)
    peer.publish(b"again", 5)
    peer.publish(b"newer", 7)
    peer.nothing()
    world.sync()
    assert [sequence_id for sequence_id, _, _ in peer.receipts()] == [6, 5, 7]


def test_refusals_that_wait_for_their_turn_are_bounded() -> None:
    world = World(BrokerConfig(max_pending_publishes=10))
    peer = world.connect()
    peer.producer(name="p")
    world.broker.administration.set_policy(world.now, TOPIC, "max_message_size", 100)
    world.hold_writes = True
    peer.publish(b"small", 0)
    for number in range(1, 10):
        assert world.broker.wants_read(peer.link)
        peer.publish(bytes(200), number)
    assert not world.broker.wants_read(peer.link)
    world.sync()
    assert world.broker.wants_read(peer.link)
    assert len(peer.inbox) == 10
