"""Faults of what clients send: it is refused, delayed, lost, handled twice or damaged, or ends all."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.broker import REFUSALS
from pulsar_sansio.broker.faults.commands import FROM_CLIENT, NOT_REFUSABLE
from pulsar_sansio.wire import proto
from tests.broker.faults.conftest import AddRule
from tests.broker.peer import TOPIC, Type, World

ServerErrors = proto.ServerError


def test_a_send_is_refused_and_its_producer_closed(add: AddRule, world: World) -> None:
    """Messages behind it are ignored, and cannot overtake it when the client sends all of them again."""
    add("SEND", "error", code="PersistenceError", message="disk full", after=1, times=1)
    peer = world.connect()
    peer.producer(name="p")
    for sequence in range(3):
        peer.publish(b"x", sequence)
    assert peer.expect(Type.SEND_RECEIPT).sequence_id == 0
    refused = peer.expect(Type.SEND_ERROR)
    assert (refused.sequence_id, refused.error, refused.message) == (
        1,
        ServerErrors.PersistenceError,
        "disk full",
    )
    assert peer.expect(Type.CLOSE_PRODUCER).producer_id == 0
    peer.nothing()
    peer.producer(name="p")
    peer.publish(b"x", 1)
    peer.publish(b"x", 2)
    assert [each[0] for each in peer.receipts()] == [1, 2]


def test_the_refusal_of_a_send_follows_the_receipts_of_those_before_it(add: AddRule, world: World) -> None:
    add("SEND", "error", code="NotAllowedError", after=1, times=1)
    peer = world.connect()
    peer.producer(name="p")
    world.hold_writes = True
    peer.publish(b"a", 0)
    peer.publish(b"b", 1)
    peer.nothing()
    world.sync()
    assert peer.expect(Type.SEND_RECEIPT).sequence_id == 0
    assert peer.expect(Type.SEND_ERROR).error == ServerErrors.NotAllowedError
    peer.publish(b"c", 2)  # NotAllowedError is about one message alone
    world.sync()
    assert [each[0] for each in peer.receipts()] == [2]


ANSWERS = {
    "CONNECT": Type.ERROR,
    "LOOKUP": Type.LOOKUP_RESPONSE,
    "PARTITIONED_METADATA": Type.PARTITIONED_METADATA_RESPONSE,
    "PRODUCER": Type.ERROR,
    "SUBSCRIBE": Type.ERROR,
    "SEEK": Type.ERROR,
    "UNSUBSCRIBE": Type.ERROR,
    "CONSUMER_STATS": Type.CONSUMER_STATS_RESPONSE,
    "GET_SCHEMA": Type.GET_SCHEMA_RESPONSE,
    "GET_OR_CREATE_SCHEMA": Type.GET_OR_CREATE_SCHEMA_RESPONSE,
    "NEW_TXN": Type.NEW_TXN_RESPONSE,
    "END_TXN": Type.END_TXN_RESPONSE,
    "ADD_PARTITION_TO_TXN": Type.ADD_PARTITION_TO_TXN_RESPONSE,
    "ADD_SUBSCRIPTION_TO_TXN": Type.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    "TC_CLIENT_CONNECT_REQUEST": Type.TC_CLIENT_CONNECT_RESPONSE,
    "GET_TOPICS_OF_NAMESPACE": Type.ERROR,
    "WATCH_TOPIC_LIST": Type.ERROR,
    "GET_LAST_MESSAGE_ID": Type.ERROR,
    "CLOSE_PRODUCER": Type.ERROR,
    "CLOSE_CONSUMER": Type.ERROR,
    "WATCH_TOPIC_LIST_CLOSE": Type.ERROR,
    "ACK": Type.ACK_RESPONSE,
}
"""Command -> the type of its refusal."""

SCHEMA = proto.Schema(name="s", schema_data=b"", type=proto.Schema.Type.String)

REQUESTS: dict[str, Any] = {
    "CONNECT": proto.CommandConnect(client_version="test", protocol_version=21),
    "LOOKUP": proto.CommandLookupTopic(topic=TOPIC, request_id=7),
    "PARTITIONED_METADATA": proto.CommandPartitionedTopicMetadata(topic=TOPIC, request_id=7),
    "PRODUCER": proto.CommandProducer(topic=TOPIC, producer_id=1, request_id=7),
    "SUBSCRIBE": proto.CommandSubscribe(
        topic=TOPIC, subscription="s", subType=proto.CommandSubscribe.Exclusive, consumer_id=1, request_id=7
    ),
    "SEEK": proto.CommandSeek(consumer_id=0, request_id=7, message_publish_time=1),
    "UNSUBSCRIBE": proto.CommandUnsubscribe(consumer_id=0, request_id=7),
    "CONSUMER_STATS": proto.CommandConsumerStats(consumer_id=0, request_id=7),
    "GET_SCHEMA": proto.CommandGetSchema(topic=TOPIC, request_id=7),
    "GET_OR_CREATE_SCHEMA": proto.CommandGetOrCreateSchema(topic=TOPIC, request_id=7, schema=SCHEMA),
    "NEW_TXN": proto.CommandNewTxn(request_id=7, tc_id=0),
    "END_TXN": proto.CommandEndTxn(request_id=7, txnid_most_bits=3, txnid_least_bits=4),
    "ADD_PARTITION_TO_TXN": proto.CommandAddPartitionToTxn(
        request_id=7, txnid_most_bits=3, txnid_least_bits=4, partitions=[TOPIC]
    ),
    "ADD_SUBSCRIPTION_TO_TXN": proto.CommandAddSubscriptionToTxn(
        request_id=7,
        txnid_most_bits=3,
        txnid_least_bits=4,
        subscription=[proto.Subscription(topic=TOPIC, subscription="s")],
    ),
    "TC_CLIENT_CONNECT_REQUEST": proto.CommandTcClientConnectRequest(request_id=7, tc_id=0),
    "GET_TOPICS_OF_NAMESPACE": proto.CommandGetTopicsOfNamespace(namespace="public/default", request_id=7),
    "WATCH_TOPIC_LIST": proto.CommandWatchTopicList(
        request_id=7, watcher_id=1, namespace="public/default", topics_pattern=".*"
    ),
    "GET_LAST_MESSAGE_ID": proto.CommandGetLastMessageId(consumer_id=0, request_id=7),
    "CLOSE_PRODUCER": proto.CommandCloseProducer(producer_id=0, request_id=7),
    "CLOSE_CONSUMER": proto.CommandCloseConsumer(consumer_id=0, request_id=7),
    "WATCH_TOPIC_LIST_CLOSE": proto.CommandWatchTopicListClose(request_id=7, watcher_id=1),
}


def test_the_table_has_every_command_that_can_be_refused() -> None:
    assert set(ANSWERS) == set(FROM_CLIENT) - set(NOT_REFUSABLE) - {"SEND", "AUTH_RESPONSE"}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_refused_as_the_broker_does(add: AddRule, world: World, name: str) -> None:
    sent_by = "client" if name.startswith("CLOSE_") else None
    rule = add(name, "error", code="TooManyRequests", message="later", sent_by=sent_by)
    number = Type.Value(name)
    peer = world.raw() if name == "CONNECT" else world.connect()
    peer.send(number, REQUESTS[name])
    answer = peer.expect(ANSWERS[name])
    error = answer.error_code if hasattr(answer, "error_code") else answer.error
    text = answer.error_message if hasattr(answer, "error_message") else answer.message
    assert (error, text) == (ServerErrors.TooManyRequests, "later")
    if name == "CONNECT":
        assert peer.closed is not None
    else:
        assert answer.request_id == 7
    if hasattr(answer, "txnid_least_bits") and name != "NEW_TXN":
        assert (answer.txnid_most_bits, answer.txnid_least_bits) == (3, 4)
    assert rule.fired == 1
    assert number in REFUSALS
    peer.nothing()


def test_an_acknowledgement_is_refused_only_where_the_client_asks_for_an_answer(
    add: AddRule, world: World
) -> None:
    peer = world.connect()
    peer.producer(name="p")
    peer.subscribe(SubTypeShared)
    peer.publish(b"x")
    peer.expect(Type.SEND_RECEIPT)
    (message,) = peer.messages()
    rule = add("ACK", "error", code="MetadataError", message="not now")
    peer.ack(message)
    peer.nothing()
    peer.ack(message, request_id=9)
    answer = peer.expect(Type.ACK_RESPONSE)
    assert (answer.request_id, answer.error, answer.message) == (9, ServerErrors.MetadataError, "not now")
    assert rule.fired == 2
    assert world.broker.topics.by_name[TOPIC].subscriptions["s"].backlog == 1


SubTypeShared = proto.CommandSubscribe.SubType.Shared


def test_a_command_is_lost(add: AddRule, world: World) -> None:
    add("ACK", "drop", times=1)
    peer = world.connect()
    peer.producer(name="p")
    peer.subscribe()
    peer.publish(b"x")
    peer.expect(Type.SEND_RECEIPT)
    (message,) = peer.messages()
    subscription = world.broker.topics.by_name[TOPIC].subscriptions["s"]
    peer.ack(message)
    assert subscription.backlog == 1
    peer.ack(message)
    assert subscription.backlog == 0


def test_the_connection_ends_in_place_of_a_command(add: AddRule, world: World) -> None:
    add("SUBSCRIBE", "close", topic="t")
    peer = world.connect()
    peer.ask_subscribe()
    peer.nothing()
    assert peer.closed is not None
    assert "SUBSCRIBE close" in peer.closed
    assert "s" not in getattr(world.broker.topics.by_name.get(TOPIC), "subscriptions", {})


@pytest.mark.breaks("CHECK-34", why="the SEND that is handled twice is sent once")
def test_a_command_is_handled_twice(add: AddRule, world: World) -> None:
    add("SEND", "duplicate", times=1)
    peer = world.connect()
    peer.producer(name="p")
    peer.subscribe()
    peer.publish(b"x")
    assert [each[0] for each in [*peer_receipts(peer, 2)]] == [0, 0]
    assert peer.payloads() == [b"x", b"x"]


def peer_receipts(peer: Any, count: int) -> list[tuple[int, int]]:
    """Return the sequence and entry ids of receipts among other frames, which stay."""
    found = [each for each in peer.inbox if each[0] == Type.SEND_RECEIPT]
    for each in found:
        peer.inbox.remove(each)
    assert len(found) == count
    return [(command.sequence_id, command.entry_id) for _, command in found]


def test_a_damaged_message_is_refused_for_its_checksum(add: AddRule, world: World) -> None:
    add("SEND", "corrupt", times=1)
    peer = world.connect()
    peer.producer(name="p")
    peer.publish(b"x")
    assert peer.expect(Type.SEND_ERROR).error == ServerErrors.ChecksumError
    peer.publish(b"x")
    assert len(peer.receipts()) == 1


def test_a_delayed_command_holds_up_what_follows_of_its_producer_alone(add: AddRule, world: World) -> None:
    peer = world.connect()
    peer.producer(name="p", producer_id=0)
    peer.producer(name="q", producer_id=1)
    add("SEND", "delay", seconds=2.0, times=1)
    peer.publish(b"a", 0)
    peer.publish(b"b", 1)
    peer.publish(b"c", 0, producer_id=1)
    assert [each[0] for each in peer.receipts()] == [0], "of the other producer"
    world.advance(1.9)
    peer.nothing()
    world.advance(0.1)
    assert [each[0] for each in peer.receipts()] == [0, 1]


def test_delayed_commands_without_an_owner_do_not_wait_for_each_other(add: AddRule, world: World) -> None:
    add("LOOKUP", "delay", topic="slow", seconds=5.0)
    peer = world.connect()
    peer.send(Type.LOOKUP, proto.CommandLookupTopic(topic="slow", request_id=1))
    peer.send(Type.LOOKUP, proto.CommandLookupTopic(topic="fast", request_id=2))
    assert peer.expect(Type.LOOKUP_RESPONSE).request_id == 2
    world.advance(5.0)
    assert peer.expect(Type.LOOKUP_RESPONSE).request_id == 1


def test_clear_carries_out_what_was_delayed_and_takes_the_rules_away(add: AddRule, world: World) -> None:
    peer = world.connect()
    peer.producer(name="p")
    add("SEND", "delay", seconds=1000.0)
    peer.publish(b"a", 0)
    peer.publish(b"b", 1)
    peer.nothing()
    world.broker.faults.clear(world.now)
    world.pump()
    assert [each[0] for each in peer.receipts()] == [0, 1]
    peer.publish(b"c", 2)
    assert [each[0] for each in peer.receipts()] == [2]
    assert world.broker.faults.rules == ()


def test_a_delay_after_which_the_connection_is_gone_does_nothing(add: AddRule, world: World) -> None:
    peer = world.connect()
    peer.producer(name="p")
    add("SEND", "delay", seconds=1.0)
    peer.publish(b"a", 0)
    peer.drop()
    world.advance(2.0)
    assert world.broker.topics.by_name[TOPIC].counters()[0] == 0


def test_a_delayed_command_that_breaks_the_protocol_ends_its_connection(add: AddRule, world: World) -> None:
    add("SEND", "delay", seconds=1.0)
    peer = world.connect()
    peer.publish(b"a", 0, producer_id=5)
    assert peer.closed is None
    world.advance(1.0)
    assert peer.closed is not None
    assert "producer 5" in peer.closed


def test_what_is_delayed_is_bounded_by_not_reading(add: AddRule) -> None:
    """Rule of `max_pending_publishes`: a client cannot fill the broker's memory with delayed messages."""
    world = World(BrokerConfig(max_pending_publishes=4))
    world.broker.faults.add(0, "SEND", "delay", seconds=1.0)
    peer = world.connect()
    peer.producer(name="p")
    for sequence in range(4):
        assert world.broker.wants_read(peer.link)
        peer.publish(b"a", sequence)
    assert not world.broker.wants_read(peer.link)
    world.advance(1.0)
    assert len(peer.receipts()) == 4
    assert world.broker.wants_read(peer.link)
    assert peer.resumed == 1


def test_a_handshake_is_delayed(add: AddRule, world: World) -> None:
    add("CONNECT", "delay", seconds=3.0)
    peer = world.raw()
    peer.send(Type.CONNECT, REQUESTS["CONNECT"])
    peer.nothing()
    world.advance(3.0)
    peer.expect(Type.CONNECTED)
    peer.producer(name="p")


def test_a_command_that_the_schema_does_not_know_passes(add: AddRule, world: World) -> None:
    add("*")
    peer = world.raw()
    body = b"\x08\x78"
    peer.feed((4 + len(body)).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body)
    assert peer.closed is not None
    assert "before CONNECT" in peer.closed


def test_commands_are_counted_by_topic(add: AddRule, world: World) -> None:
    """Producers and consumers that were open before the rule are known, too."""
    peer = world.connect()
    peer.producer(topic="old", name="p")
    rule = add("*")
    peer.publish(b"x")
    peer.expect(Type.SEND_RECEIPT)
    peer.subscribe(topic="t", consumer_id=3)
    peer.send(Type.GET_LAST_MESSAGE_ID, proto.CommandGetLastMessageId(consumer_id=3, request_id=50))
    peer.send(Type.PING, proto.CommandPing())
    old, new = "persistent://public/default/old", TOPIC
    assert rule.counts == {
        "SEND": {old: 1},
        "SEND_RECEIPT": {old: 1},
        "SUBSCRIBE": {new: 1},
        "SUCCESS": {new: 1},
        "FLOW": {new: 1},
        "GET_LAST_MESSAGE_ID": {new: 1},
        "GET_LAST_MESSAGE_ID_RESPONSE": {new: 1},
        "PING": {"": 1},
        "PONG": {"": 1},
    }


def test_without_rules_a_connection_is_as_without_faults(add: AddRule, world: World) -> None:
    """The handlers are those of every other connection, and the outbox is given as it is."""
    peer = world.connect()
    connection = world.broker.links[peer.link]
    handlers = connection._handlers
    assert connection.interposed is None
    add("SEND", "drop")
    assert connection.interposed is not None
    world.broker.faults.clear(world.now)
    assert connection.interposed is None
    assert connection._handlers is handlers
    assert world.connect() is not None
    assert all(each.interposed is None for each in world.broker.links.values())
