"""A topic is unloaded, terminated or deleted while producers of every access mode are attached or wait.

Seen on a Pulsar 4.0.7: attached producers get CLOSE_PRODUCER, and the first waiting one gets an ERROR for its
request. There the other waiting producers get no answer; this broker answers all.
"""

from collections.abc import Callable

import pytest

from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, Peer, Type, World

VOLATILE = TOPIC.replace("persistent", "non-persistent", 1)
MODES = [proto.Shared, proto.Exclusive, proto.WaitForExclusive, proto.ExclusiveWithFencing]

modes = pytest.mark.parametrize("mode", MODES, ids=[proto.ProducerAccessMode.Name(mode) for mode in MODES])


def unload(world: World, topic: str) -> None:
    world.broker.topic_administration.unload(world.now, topic)


def terminate(world: World, topic: str) -> None:
    world.broker.topic_administration.terminate(world.now, topic)


def delete(world: World, topic: str) -> None:
    world.broker.topic_administration.delete_topic(world.now, topic, force=True)


WAYS: list[tuple[Callable[[World, str], None], str]] = [
    (unload, "ServiceNotReady"),
    (terminate, "TopicTerminatedError"),
    (delete, "ServiceNotReady"),
]
ways = pytest.mark.parametrize(("way", "code"), WAYS, ids=["unload", "terminate", "delete"])


@ways
@modes
def test_an_attached_producer_is_closed_after_its_receipts(
    way: Callable[[World, str], None], code: str, mode: proto.ProducerAccessMode
) -> None:
    world = World()
    peer = world.connect()
    peer.producer(producer_access_mode=mode)
    world.hold_writes = True
    peer.publish(b"x")
    way(world, TOPIC)
    world.pump()
    peer.nothing()
    world.hold_writes = False
    world.sync()
    peer.expect(Type.SEND_RECEIPT)
    assert peer.expect(Type.CLOSE_PRODUCER).request_id == 2**64 - 1
    peer.ask_producer(producer_access_mode=mode)
    if code == "TopicTerminatedError":
        peer.expect_error(code)
    else:
        assert peer.expect(Type.PRODUCER_SUCCESS).producer_ready


@ways
@pytest.mark.parametrize("topic", [TOPIC, VOLATILE], ids=["persistent", "non-persistent"])
def test_waiting_producers_are_refused_and_none_is_admitted(
    way: Callable[[World, str], None], code: str, topic: str
) -> None:
    if topic == VOLATILE and way is terminate:
        return  # only persistent topics end
    world = World()
    first, *waiting = [world.connect() for _ in range(3)]
    first.producer(topic, producer_access_mode=proto.Exclusive)
    requests = []
    for peer in waiting:
        requests.append(peer.ask_producer(topic, producer_access_mode=proto.WaitForExclusive))
        assert not peer.expect(Type.PRODUCER_SUCCESS).producer_ready
    way(world, topic)
    world.pump()
    first.expect(Type.CLOSE_PRODUCER)
    for peer, request_id in zip(waiting, requests, strict=True):
        assert peer.expect_error(code).request_id == request_id
        peer.nothing()
    if code == "ServiceNotReady":
        waiting[0].ask_producer(topic, producer_access_mode=proto.WaitForExclusive)
        assert waiting[0].expect(Type.PRODUCER_SUCCESS).producer_ready, "the row begins anew"


@ways
def test_a_waiting_ones_connection_goes_on(way: Callable[[World, str], None], code: str) -> None:
    """Only the waiting producer is refused; others of its connection continue."""
    world = World()
    first, peer = world.connect(), world.connect()
    first.producer(producer_access_mode=proto.Exclusive)
    peer.producer(f"{TOPIC}-other", 1, "other")
    peer.ask_producer(producer_access_mode=proto.WaitForExclusive)
    peer.expect(Type.PRODUCER_SUCCESS)
    way(world, TOPIC)
    world.pump()
    peer.expect_error(code)
    peer.publish(b"x", producer_id=1)
    peer.expect(Type.SEND_RECEIPT)


def test_after_the_end_a_send_on_its_way_is_refused_as_the_topic_is_over() -> None:
    world = World()
    peer: Peer = world.connect()
    peer.producer(producer_access_mode=proto.Exclusive)
    world.hold_writes = True
    peer.publish(b"stored", 0)
    terminate(world, TOPIC)
    peer.publish(b"too late", 1)
    world.hold_writes = False
    world.sync()
    peer.expect(Type.SEND_RECEIPT)
    found = [number for number, _ in peer.inbox]
    assert sorted(found) == sorted([Type.SEND_ERROR, Type.CLOSE_PRODUCER])
