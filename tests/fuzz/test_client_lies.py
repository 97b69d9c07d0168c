"""A client, or a peer that claims to be one, against a broker: one test for each lever that it has.

The meaning of each command, and how each is refused, is tested beside the broker's machines. These tests are
about quantity: what comes without end, what is kept of it, and how long one frame can keep a broker busy.
"""

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from fuzz.draws import Draws
from fuzz.payloads import LIES
from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.serving.lookups import MAX_PROPERTIES
from pulsar_sansio.wire import Send, encode_ack, encode_command, encode_flow, encode_ping, proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World
from tests.work import check_in_proportion

MIB = 1024 * 1024


def held(act: Callable[[], object]) -> int:
    """Bytes that are held after it and were not before."""
    tracemalloc.start()
    try:
        act()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def pairs(count: int, size: int) -> list[proto.KeyValue]:
    return [proto.KeyValue(key="k" * size, value="")] * count


def goes_on(world: World) -> bool:
    """Return whether another client can still produce and consume."""
    other = world.connect()
    other.producer("persistent://public/default/other")
    other.subscribe(topic="persistent://public/default/other")
    other.publish(b"x")
    return [number for number, _ in other.inbox] == [Type.SEND_RECEIPT, Type.MESSAGE]


# --- what is kept of it ------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "size"), [(1, MAX_PROPERTIES + 1), (40_000, 0), (3000, 50)])
def test_properties_of_a_producer_have_a_size(count: int, size: int) -> None:
    """Empty ones too: on the wire such a pair takes six bytes, and in memory a hundred and more."""
    peer = World().connect()
    now = held(lambda: peer.ask_producer(TOPIC, metadata=pairs(count, size)))
    peer.expect_error("MetadataError")
    assert now < 100_000
    peer.producer(metadata=pairs(10, 10))


@pytest.mark.parametrize(("count", "size"), [(1, 1025), (40_000, 0)])
def test_properties_of_a_consumer_have_a_size(count: int, size: int) -> None:
    peer = World().connect()
    now = held(lambda: peer.ask_subscribe(metadata=pairs(count, size)))
    peer.expect_error("MetadataError")
    assert now < 100_000
    peer.subscribe(metadata=pairs(10, 10))


@pytest.mark.parametrize(("count", "size"), [(1, MAX_PROPERTIES + 1), (40_000, 0)])
def test_properties_of_a_subscription_have_a_size(count: int, size: int) -> None:
    peer = World().connect()
    now = held(lambda: peer.ask_subscribe(subscription_properties=pairs(count, size)))
    peer.expect_error("MetadataError")
    assert now < 100_000
    peer.subscribe(subscription_properties=pairs(10, 10))


@pytest.mark.parametrize(("count", "size"), [(1, MAX_PROPERTIES + 1), (40_000, 0)])
def test_properties_of_a_schema_have_a_size(count: int, size: int) -> None:
    peer = World().connect()
    schema = proto.Schema(name="s", schema_data=b"", type=proto.Schema.String, properties=pairs(count, size))
    now = held(lambda: peer.ask_producer(TOPIC, schema=schema))
    peer.expect_error("MetadataError")
    assert now < 100_000


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
def test_key_ranges_that_mean_nothing_are_not_kept(kind: SubType) -> None:
    asked = proto.KeySharedMeta(keySharedMode=proto.STICKY if kind == SubType.Shared else proto.AUTO_SPLIT)
    for _ in range(50_000):
        asked.hashRanges.add(start=0, end=65535)
    peer = World().connect()
    assert held(lambda: peer.ask_subscribe(kind, keySharedMeta=asked)) < 100_000
    peer.expect(Type.SUCCESS)


def test_names_of_everything_have_a_length() -> None:
    peer = World().connect()
    long = "x" * 5000
    peer.ask_producer("t", name=long)
    peer.expect_error("ProducerBusy")
    peer.ask_subscribe(subscription=long)
    peer.expect_error("ProducerBusy")
    peer.ask_subscribe(consumer_name=long)
    peer.expect_error("ProducerBusy")
    peer.ask_producer(f"persistent://public/default/{long}")
    peer.expect_error("InvalidTopicName")


def test_topics_and_subscriptions_come_into_being_up_to_a_number() -> None:
    world = World(BrokerConfig(max_topics=5, max_subscriptions_per_topic=5))
    peer = world.connect()
    for number in range(10):
        peer.ask_producer(f"t{number}", number)
        peer.ask_subscribe(consumer_id=number, topic="t0", subscription=f"s{number}")
    assert len(world.broker.topics.by_name) == 5
    assert len(world.broker.topics.by_name["persistent://public/default/t0"].subscriptions) == 5


def test_a_frame_over_the_limit_is_not_waited_for() -> None:
    world = World(BrokerConfig(max_message_size=100_000))
    peer = world.connect()
    assert held(lambda: peer.feed((100_000 + 10_240).to_bytes(4, "big"))) < 10_000
    assert peer.closed is not None
    assert goes_on(world)


def test_the_same_thing_again_and_again_is_kept_once() -> None:
    """Permits, acknowledgements, questions, redeliveries, closes: nothing adds up."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared)
    peer.publish_batch([b"x"] * 10)
    commands = [
        encode_flow(0, 1),
        encode_ack(0, 0, [(0, 0, 2**64 - 2), (5, 5, None), (2**63 - 1, 0, None), (-1, -1, 0)]),
        encode_ping(),
        encode_command(
            Type.REDELIVER_UNACKNOWLEDGED_MESSAGES,
            proto.CommandRedeliverUnacknowledgedMessages(consumer_id=0),
        ),
        encode_command(Type.CLOSE_CONSUMER, proto.CommandCloseConsumer(consumer_id=9, request_id=1)),
        encode_command(Type.CLOSE_PRODUCER, proto.CommandCloseProducer(producer_id=9, request_id=1)),
        encode_command(Type.LOOKUP, proto.CommandLookupTopic(topic="t", request_id=1)),
        encode_command(Type.CONSUMER_STATS, proto.CommandConsumerStats(consumer_id=0, request_id=1)),
        encode_command(Type.GET_LAST_MESSAGE_ID, proto.CommandGetLastMessageId(consumer_id=0, request_id=1)),
    ]

    def again(times: int) -> None:
        for _ in range(times):
            for command in commands:
                peer.feed(command)
            peer.inbox.clear()

    again(20)
    assert held(lambda: again(600)) < 40_000, "a dozen bytes for each would be more"
    assert peer.closed is None


def test_unknown_commands_without_end() -> None:
    peer = World().connect()
    frame = b"\0\0\0\x07\0\0\0\x03\x08\xc8\x01" * 100

    def flood() -> None:
        for _ in range(20):
            peer.feed(frame)

    assert held(flood) < 10_000
    assert peer.closed is None
    peer.nothing()


# --- what is not read --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        encode_ping(),
        encode_command(Type.LOOKUP, proto.CommandLookupTopic(topic="t", request_id=1)),
        encode_command(Type.GET_SCHEMA, proto.CommandGetSchema(topic="t", request_id=1)),
        encode_command(Type.END_TXN, proto.CommandEndTxn(request_id=1)),
    ],
    ids=["PING", "LOOKUP", "GET_SCHEMA", "END_TXN"],
)
def test_a_client_that_asks_and_does_not_read_is_disconnected(question: bytes) -> None:
    """The broker has said before that it would rather not be asked."""
    config = BrokerConfig(max_message_size=10_000, max_unsent_bytes=4000)
    world = World(config)
    peer = world.connect()
    peer.reads = False
    waiting = 0

    def ask() -> None:
        nonlocal waiting
        while peer.closed is None:
            waiting = tracemalloc.get_traced_memory()[0]
            peer.feed(question * 10)
            if waiting > 20_000:
                assert peer.closed is not None or not world.broker.wants_read(peer.link)

    held(ask)
    assert waiting < 4 * (4000 * 16 + 10_000 + 10_240)
    assert peer.closed == "the peer asks without reading the answers"
    assert goes_on(world)


def test_a_client_that_does_not_read_messages_is_not_sent_more() -> None:
    world = World(BrokerConfig(max_message_size=10_000, max_unsent_bytes=20_000))
    peer = world.connect()
    peer.producer()
    reader = world.connect()
    reader.subscribe(permits=100_000)
    reader.reads = False

    def publish() -> None:
        for number in range(200):
            peer.publish(bytes(1000), number)

    now = held(publish)
    stored = 200 * 1000
    assert now < 2 * stored + 4 * 20_000
    reader.reads = True
    reader.read_all()
    assert len(reader.messages()) == 200


# --- payloads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_message_that_lies_is_refused_or_stored_and_stops_no_client(lie: str) -> None:
    """A broker does not look into payloads. What it makes of the headers has to hold for dispatch, for what
    is asked about the topic, and for the next start."""
    world = World()
    reader = world.connect()
    for kind in (SubType.Shared, SubType.Key_Shared, SubType.Failover):
        reader.subscribe(kind, int(kind), subscription=f"s{int(kind)}")
    hostile = connected_producer(world)
    for seed in range(30):
        if hostile.closed is not None:
            hostile = connected_producer(world)
        payload = LIES[lie](Draws.of_seed(seed), 1000)
        hostile.feed(Send(0, seed, payload=payload).encode())
        ids = [(each.ledger_id, each.entry_id, 1) for number, each in reader.inbox if number == Type.MESSAGE]
        reader.feed(encode_ack(1, 0, ids) if ids else b"")
        reader.inbox.clear()
    reader.send(Type.GET_LAST_MESSAGE_ID, proto.CommandGetLastMessageId(consumer_id=1, request_id=5))
    assert reader.expect(Type.GET_LAST_MESSAGE_ID_RESPONSE).request_id == 5
    world.broker.topic_administration.stats(TOPIC)
    world.broker.topic_administration.internal_stats(TOPIC)
    assert goes_on(world)
    world.start()
    world.broker.topic_administration.stats(TOPIC)


def connected_producer(world: World) -> Peer:
    peer = world.connect()
    peer.producer()
    return peer


# --- how long one frame keeps it busy -----------------------------------------------------------------


def heavy_ack(ids: int) -> bytes:
    return encode_ack(0, 0, [(0, entry_id, None) for entry_id in range(ids)])


def heavy_ack_set(words: int) -> bytes:
    return encode_ack(0, 0, [(0, 0, 2 ** (64 * words))])


def heavy_redelivery(ids: int) -> bytes:
    command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=0)
    for entry_id in range(ids):
        command.message_ids.add(ledgerId=0, entryId=entry_id)
    return encode_command(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, command)


def heavy_properties(count: int) -> bytes:
    command = proto.CommandProducer(topic="t", producer_id=9, request_id=9, metadata=pairs(count, 1))
    return encode_command(Type.PRODUCER, command)


HEAVY: dict[str, tuple[Callable[[int], bytes], int]] = {
    "many acknowledgements": (heavy_ack, 150),
    "many redeliveries": (heavy_redelivery, 150),
    "a large ack set": (heavy_ack_set, 300),
    "many properties": (heavy_properties, 300),
}
"""Frames by what is heavy in them, and how much of it."""


@pytest.mark.parametrize("frame", HEAVY)
def test_one_frame_does_not_stop_the_broker(frame: str) -> None:
    """The broker's work is in proportion to the frame's bytes, on a topic with as many messages and
    consumers."""
    make, size = HEAVY[frame]

    def heavy(size: int) -> Callable[[], object]:
        world = World()
        peer = world.connect()
        peer.producer(producer_id=1)
        holder = world.connect()
        for consumer_id in range(size // 20):
            holder.ask_subscribe(SubType.Shared, consumer_id)
            holder.flow(10, consumer_id)
        for number in range(size):
            peer.publish(b"x", number, producer_id=1)
        peer.inbox.clear()
        peer.subscribe(SubType.Shared)
        data = make(size)

        def feed() -> None:
            peer.feed(data)
            assert peer.closed is None

        return feed

    check_in_proportion(heavy, size)


@pytest.mark.parametrize(
    ("pattern", "matched"), [("(x+x+)+y" * 1000, False), ("(x+x+)+y", True), (".*x.*x.*y", True)]
)
def test_a_pattern_that_goes_back_over_and_over_costs_nothing(pattern: str, matched: bool) -> None:
    """A long name and some repetitions are years of work for some matchers; RE2 takes each letter once."""
    world = World()
    peer = world.connect()
    peer.producer("persistent://public/default/" + "x" * 3000)
    asked = proto.CommandGetTopicsOfNamespace(
        request_id=1, namespace="public/default", topics_pattern=pattern
    )
    peer.send(Type.GET_TOPICS_OF_NAMESPACE, asked)
    answer = peer.expect(Type.GET_TOPICS_OF_NAMESPACE_RESPONSE)
    assert answer.filtered is matched
    assert len(answer.topics) == (0 if matched else 1)
    assert goes_on(world)


@pytest.mark.parametrize(
    ("kind", "topic"),
    [
        (SubType.Shared, "persistent://public/default/t"),
        (SubType.Key_Shared, "persistent://public/default/t"),
        (SubType.Failover, "persistent://public/default/p-partition-1"),
        (SubType.Shared, "non-persistent://public/default/t"),
        (SubType.Key_Shared, "non-persistent://public/default/t"),
        (SubType.Failover, "non-persistent://public/default/t"),
    ],
)
def test_many_consumers_come_and_go(kind: SubType, topic: str) -> None:
    """The broker sorts no consumers anew, and makes no list anew, for each that comes or goes."""

    def of_consumers(count: int) -> Callable[[], object]:
        world = World()
        world.broker.topic_administration.create_partitioned_topic(0, "persistent://public/default/p", 2)
        peer = world.connect()

        def come_and_go() -> None:
            for number in range(count):
                peer.ask_subscribe(kind, number, topic, consumer_name=f"c{9999 - number}")
            peer.drop()

        return come_and_go

    check_in_proportion(of_consumers, 30)
