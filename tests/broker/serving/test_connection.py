"""The life of a connection: handshake, bad bytes, back-pressure."""

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import encode_command, encode_ping, proto
from tests.broker.peer import TOPIC, SubType, Type, World

CONNECT = proto.CommandConnect(client_version="test", protocol_version=21)


def test_connected_names_the_broker() -> None:
    """WIRE-01, as recorded brokers answer."""
    peer = World(BrokerConfig(max_message_size=4096, server_version="v")).raw()
    peer.send(Type.CONNECT, CONNECT)
    connected = peer.expect(Type.CONNECTED)
    assert connected.server_version == "v"
    assert connected.protocol_version == 21
    assert connected.max_message_size == 4096
    set_flags = [field.name for field, _ in connected.feature_flags.ListFields()]
    assert set_flags == [
        "supports_topic_watchers",
        "supports_get_partitioned_metadata_without_auto_creation",
    ], "only what is implemented"


@pytest.mark.parametrize(("asked", "answered"), [(0, 0), (15, 15), (21, 21), (99, 21), (-3, 0)])
def test_the_lower_version_counts(asked: int, answered: int) -> None:
    peer = World().raw()
    peer.send(Type.CONNECT, proto.CommandConnect(client_version="test", protocol_version=asked))
    assert peer.expect(Type.CONNECTED).protocol_version == answered


def test_credentials_are_ignored_without_authentication() -> None:
    peer = World().raw()
    peer.send(
        Type.CONNECT, proto.CommandConnect(client_version="t", auth_method_name="token", auth_data=b"secret")
    )
    peer.expect(Type.CONNECTED)


def test_only_connect_is_legal_first() -> None:
    peer = World().raw()
    peer.send(Type.LOOKUP, proto.CommandLookupTopic(topic=TOPIC, request_id=1))
    assert peer.closed is not None
    peer.nothing()


@pytest.mark.parametrize(
    "late",
    [encode_command(Type.CONNECT, CONNECT), encode_command(Type.AUTH_RESPONSE, proto.CommandAuthResponse())],
)
def test_the_handshake_comes_once(late: bytes) -> None:
    peer = World().connect()
    peer.feed(late)
    assert peer.closed is not None


def test_too_many_connections() -> None:
    world = World(BrokerConfig(max_connections=1))
    world.connect()
    peer = world.raw()
    peer.send(Type.CONNECT, CONNECT)
    assert peer.expect_error("NotAllowedError").request_id == 2**64 - 1
    assert peer.closed is not None


def test_too_many_connections_of_one_address() -> None:
    """Connections that end make room; those of another address do not count."""
    world = World(BrokerConfig(max_connections_per_address=2))
    first = world.connect()
    world.connect()
    late, other = world.raw(), world.raw(address="10.0.0.1")
    late.send(Type.CONNECT, CONNECT)
    refusal = late.expect_error("NotAllowedError")
    assert refusal.message == "Reached the maximum number of connections on address 127.0.0.1"
    assert refusal.request_id == 2**64 - 1
    assert late.closed is not None
    other.send(Type.CONNECT, CONNECT)
    other.expect(Type.CONNECTED)
    first.drop()
    world.connect()
    assert world.broker.links_from == {"127.0.0.1": 2, "10.0.0.1": 1}


def test_a_handshake_has_a_time_limit() -> None:
    world = World()
    peer = world.raw()
    world.advance(29.9)
    assert peer.closed is None
    world.advance(0.2)
    assert peer.closed is not None


def test_ping_is_always_answered() -> None:
    peer = World().raw()
    peer.feed(encode_ping())
    peer.expect(Type.PONG)
    peer.send(Type.CONNECT, CONNECT)
    peer.expect(Type.CONNECTED)
    peer.feed(encode_ping())
    peer.expect(Type.PONG)


BAD = {
    "too large": b"\x7f\xff\xff\xff\0\0\0\4",
    "sizes that contradict each other": b"\0\0\0\5\0\0\0\5\x08\x12\x92\x01\x00",
    "no command": b"\0\0\0\x08\0\0\0\4\xff\xff\xff\xff",
    "a type without its command": b"\0\0\0\6\0\0\0\2\x08\x12",
    "a peer that is not Pulsar": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "text that is not UTF-8": b"\0\0\0\x10\0\0\0\x0c\x08\x17\xba\x01\x07\x0a\x01\xff\x10\x01\x18\x00",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_bytes_cost_one_connection(bad: bytes) -> None:
    world = World()
    guilty, innocent = world.connect(), world.connect()
    guilty.producer(name="a")
    guilty.feed(bad)
    assert guilty.closed is not None
    assert innocent.closed is None
    assert innocent.producer(name="a").producer_name == "a", "what was attached to it is gone"
    assert len(world.broker.links) == 1


def test_a_flow_without_permits_costs_the_connection_of_its_consumer() -> None:
    """Rule BROKER-26. A FLOW to an unknown consumer is ignored, whatever it grants."""
    peer = World().connect()
    peer.flow(0)
    assert peer.closed is None
    peer.subscribe()
    peer.flow(0)
    assert peer.closed is not None


@pytest.mark.parametrize("namespace", ["x", "", "a/b/c/d", "public/"])
def test_what_is_no_name_of_a_namespace_costs_the_connection(namespace: str) -> None:
    """The Java broker drops it, too. Rule WIRE-04."""
    world = World()
    listing, watching, innocent = (world.connect() for _ in range(3))
    listing.send(
        Type.GET_TOPICS_OF_NAMESPACE, proto.CommandGetTopicsOfNamespace(request_id=1, namespace=namespace)
    )
    watching.send(
        Type.WATCH_TOPIC_LIST,
        proto.CommandWatchTopicList(request_id=1, watcher_id=1, namespace=namespace, topics_pattern=".*"),
    )
    assert listing.closed is not None
    assert watching.closed is not None
    innocent.send(
        Type.GET_TOPICS_OF_NAMESPACE,
        proto.CommandGetTopicsOfNamespace(request_id=1, namespace="public/nowhere"),
    )
    answer = innocent.expect(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE)
    assert (answer.topics, answer.HasField("filtered"), answer.filtered) == ([], True, False)


def test_frames_before_a_bad_one_count() -> None:
    peer = World().connect()
    peer.feed(encode_ping() + b"\xff" * 8)
    peer.expect(Type.PONG)
    assert peer.closed is not None


def test_how_much_came_behind_what_ended_the_connection_is_known() -> None:
    """A watcher of both byte streams can tell which frames were read."""
    ping = encode_ping()
    for ends, unread in (
        (b"\xff" * 8, 8 + len(ping)),  # no frame: no byte is read
        (encode_command(Type.CONNECT, CONNECT), len(ping)),  # a frame that is not legal here
    ):
        peer = World().connect()
        connection = peer.world.broker.links[peer.link]
        peer.feed(ping + ends + ping)
        assert peer.closed is not None
        assert connection.unread == unread


def test_nothing_is_unread_where_bytes_did_not_end_the_connection() -> None:
    """All bytes before the end count as read."""
    peer = World().connect()
    connection = peer.world.broker.links[peer.link]
    peer.feed(encode_ping())
    peer.drop()
    assert connection.dead
    assert connection.unread == 0


def test_unknown_commands_are_ignored() -> None:
    """A number that this schema does not have, and a command that only brokers send."""
    peer = World().connect()
    peer.feed(b"\0\0\0\7\0\0\0\3\x08\xe7\x07")
    peer.send(Type.SUCCESS, proto.CommandSuccess(request_id=1))
    assert peer.closed is None
    peer.nothing()


def test_input_may_be_cut_anywhere() -> None:
    world = World()
    peer = world.raw()
    data = encode_command(Type.CONNECT, CONNECT) + encode_ping() * 2
    for byte in data:
        peer.feed(bytes([byte]))
    for number in (Type.CONNECTED, Type.PONG, Type.PONG):
        peer.expect(number)


def test_end_of_input_ends_the_connection() -> None:
    world = World()
    peer = world.connect()
    world.broker.receive_eof(0, peer.link)
    world.pump()
    assert peer.closed is not None
    assert len(world.broker.links) == 0


# --- back-pressure ------------------------------------------------------------------------------------


def test_dispatch_stops_for_a_peer_that_does_not_read_and_goes_on_when_it_does() -> None:
    world = World(BrokerConfig(max_unsent_bytes=10_000))
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe(permits=1000)
    consuming.reads = False
    for number in range(100):
        producing.publish(b"x" * 1000, number)
    held = world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["consumers"][0]
    assert held["unacked"] == 10, "ten kilobytes are on their way, the rest waits in the topic"
    assert not world.broker.wants_read(consuming.link), "nor is anything read from it"
    consuming.read_all()
    assert len(consuming.messages()) == 100
    assert consuming.resumed > 0
    assert world.broker.wants_read(consuming.link)


def test_one_slow_consumer_does_not_hold_up_the_others() -> None:
    world = World(BrokerConfig(max_unsent_bytes=10_000))
    producing, slow, quick = world.connect(), world.connect(), world.connect()
    producing.producer()
    slow.subscribe(SubType.Shared)
    quick.subscribe(SubType.Shared)
    slow.reads = False
    for number in range(100):
        producing.publish(b"x" * 1000, number)
    assert len(quick.messages()) == 90


def test_publishes_that_are_not_durable_are_bounded() -> None:
    """The broker stops reading the socket; no frame says so."""
    world = World(BrokerConfig(max_pending_publishes=10))
    peer = world.connect()
    peer.producer()
    world.hold_writes = True
    for number in range(9):
        peer.publish(b"x", number)
        assert world.broker.wants_read(peer.link)
    peer.publish(b"x", 9)
    assert not world.broker.wants_read(peer.link)
    world.sync()
    assert world.broker.wants_read(peer.link)
    assert peer.resumed == 1


def test_a_peer_that_only_asks_is_disconnected_in_the_end() -> None:
    world = World(BrokerConfig(max_unsent_bytes=1024, max_message_size=1024))
    peer = world.connect()
    peer.reads = False
    for _ in range(10_000):
        peer.feed(encode_ping())
        if peer.closed is not None:
            break
    assert peer.closed == "the peer asks without reading the answers"


def test_a_probe_unanswered_for_our_own_back_pressure_does_not_close() -> None:
    world = World(BrokerConfig(max_pending_publishes=1))
    peer = world.connect()
    peer.producer()
    world.hold_writes = True
    peer.publish(b"x")
    assert not world.broker.wants_read(peer.link)
    world.advance(200)
    assert peer.closed is None


def test_nothing_is_delivered_to_a_connection_that_ends() -> None:
    """Entries of one of its consumers go to other connections, not to its next consumer."""
    world = World()
    producing, ending, staying = world.connect(), world.connect(), world.connect()
    producing.producer()
    for consumer_id in range(2):
        ending.subscribe(SubType.Shared, consumer_id)
    for number in range(4):
        producing.publish(b"x", number)
    assert len(ending.messages()) == 4
    ending.drop()
    assert world.broker.topic_administration.stats(TOPIC)["msgOutCounter"] == 4
    staying.subscribe(SubType.Shared)
    assert len(staying.messages()) == 4
    assert world.broker.topic_administration.stats(TOPIC)["msgOutCounter"] == 8
