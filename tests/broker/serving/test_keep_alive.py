"""`KeepAlive`: the broker asks whether a client is alive, at an interval and for a rival."""

from pulsar_sansio.wire import encode_command, encode_ping, proto
from tests.broker.peer import TOPIC, SubType, Type, World


def test_keep_alive_asks_and_then_closes() -> None:
    """CONN-01: any frame is a sign of life."""
    world = World()
    silent, lively = world.connect(), world.connect()
    world.advance(30.5)
    silent.expect(Type.PING)
    lively.expect(Type.PING)
    lively.send(Type.LOOKUP, proto.CommandLookupTopic(topic=TOPIC, request_id=1))
    lively.expect(Type.LOOKUP_RESPONSE)
    world.advance(30)
    assert silent.closed is not None
    assert lively.closed is None
    lively.expect(Type.PING)


def test_the_first_probe_comes_one_interval_after_the_handshake() -> None:
    """CONN-01: a late CONNECT is a sign of life."""
    world = World()
    peer = world.raw()
    world.advance(20)
    peer.send(Type.CONNECT, proto.CommandConnect(client_version="test", protocol_version=21))
    peer.expect(Type.CONNECTED)
    world.advance(29.9)
    peer.nothing()
    world.advance(0.1)
    peer.expect(Type.PING)


def test_a_peer_probed_just_now_is_not_late() -> None:
    """A new client claims the name just before the keep-alive is due."""
    world = World()
    holder, newcomer = world.connect(), world.connect()
    holder.subscribe()
    world.advance(29.9)
    newcomer.ask_subscribe(SubType.Exclusive)
    holder.expect(Type.PING)
    world.advance(0.2)
    assert holder.closed is None
    holder.expect(Type.PING)
    holder.feed(encode_command(Type.PONG, proto.CommandPong()))
    newcomer.expect(Type.PING)
    newcomer.expect(Type.ERROR)


def test_a_client_without_keep_alive_is_not_probed() -> None:
    world = World()
    peer = world.connect(version=0)
    world.advance(200)
    peer.nothing()
    assert peer.closed is None


def test_half_a_frame_is_no_sign_of_life() -> None:
    world = World()
    peer = world.connect()
    world.advance(31)
    peer.feed(encode_ping()[:-1])
    world.advance(30)
    assert peer.closed is not None
