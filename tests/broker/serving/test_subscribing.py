"""SUBSCRIBE, UNSUBSCRIBE, and the questions that consumers ask."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import encode_ack, encode_ping, proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World, ids
from tests.broker.serving.stored_topics import EARLIEST, LATEST, backlog, topic_with

# --- admission ----------------------------------------------------------------------------------------


def test_asking_again_answers_again() -> None:
    """BROKER-04: no second consumer."""
    world, peer = topic_with()
    peer.subscribe()
    peer.subscribe()
    assert len(world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["consumers"]) == 1


def test_asking_again_too_early() -> None:
    """BROKER-05."""
    world, peer = topic_with()
    world.hold_writes = True
    peer.ask_subscribe()
    peer.ask_subscribe()
    peer.expect_error("ServiceNotReady")
    world.sync()
    peer.expect(Type.SUCCESS)


def test_a_consumer_closed_before_its_success() -> None:
    """BROKER-10: the consumer is closed without a frame."""
    world, peer = topic_with()
    world.hold_writes = True
    peer.ask_subscribe()
    peer.close_consumer()
    world.sync()
    peer.nothing()
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["consumers"] == []


def test_flow_before_success_is_ignored() -> None:
    """BROKER-25."""
    world, peer = topic_with(b"a")
    world.hold_writes = True
    peer.ask_subscribe()
    peer.flow(10)
    world.sync()
    peer.expect(Type.SUCCESS)
    peer.nothing()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "a/b"}, "InvalidTopicName"),
        ({"topic": "persistent://public/default/new", "force_topic_creation": False}, "TopicNotFound"),
        ({"metadata": [proto.KeyValue(key="k", value="v" * 1024)]}, "MetadataError"),
        ({"subscription": "  "}, "ProducerBusy"),
        ({"subscription": "pulsar.dedup"}, "ProducerBusy"),
        ({"subscription": "pulsar.repl.a"}, "ProducerBusy"),
        ({"kind": SubType.Shared, "read_compacted": True}, "NotAllowedError"),
        ({"kind": SubType.Key_Shared, "keySharedMeta": {"keySharedMode": "STICKY"}}, "ConsumerAssignError"),
        ({"subscription": "keep", "durable": False}, "NotAllowedError"),
    ],
)
def test_refusals(fields: dict[str, Any], code: str) -> None:
    """Rules BROKER-01, BROKER-03, BROKER-06, BROKER-07, BROKER-11, BROKER-13, BROKER-14, GAP-19 and
    CFG-507."""
    world, peer = topic_with()
    peer.ask_subscribe(**fields)
    peer.expect_error(code)
    peer.subscribe(topic=TOPIC, subscription="other")
    assert set(world.broker.topic_administration.stats(TOPIC)["subscriptions"]) <= {"keep", "other"}, (
        "a refusal leaves nothing"
    )


def test_a_client_that_cannot_read_batches() -> None:
    """Rule BROKER-14."""
    world, _ = topic_with()
    peer = world.connect(version=3)
    peer.ask_subscribe()
    peer.expect_error("UnsupportedVersionError")


def test_policies_about_consumers() -> None:
    """Rule BROKER-08."""
    world, peer = topic_with()
    for policy, value, code in (
        ("auto_subscription_creation", False, "SubscriptionNotFound"),
        ("max_consumers", 1, "ConsumerBusy"),
        ("max_consumers_per_subscription", 1, "ConsumerBusy"),
    ):
        peer.subscribe(SubType.Shared, subscription="keep", consumer_id=0)
        world.broker.administration.set_policy(0, TOPIC, policy, value)
        name = "other" if policy == "auto_subscription_creation" else "keep"
        peer.ask_subscribe(SubType.Shared, subscription=name, consumer_id=1)
        peer.expect_error(code)
        world.broker.administration.set_policy(0, TOPIC, policy, None)
        peer.close_consumer(0)


def test_the_type_may_change_while_no_consumer_is_attached() -> None:
    """Rules SUBT-14 and BROKER-23."""
    _, peer = topic_with()
    peer.subscribe(SubType.Shared)
    peer.ask_subscribe(SubType.Exclusive, consumer_id=1)
    peer.expect_error("ConsumerBusy")
    peer.close_consumer(0)
    peer.subscribe(SubType.Exclusive, consumer_id=1)


def test_exclusive_means_one_that_lives() -> None:
    """SUBT-02; seen: java-consumer-busy (PING, then the refusal, also on one connection). Rule BROKER-19."""
    world, peer = topic_with()
    peer.subscribe()
    peer.ask_subscribe(consumer_id=1)
    peer.expect(Type.PING)
    peer.nothing()
    peer.feed(encode_ping())
    peer.expect_error("ConsumerBusy")
    peer.expect(Type.PONG)
    newcomer = world.connect()
    newcomer.ask_subscribe()
    peer.expect(Type.PING)
    world.advance(5.1)
    assert peer.closed is not None
    newcomer.expect(Type.SUCCESS)


# --- initial position ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"earliest": True}, [b"0", b"1", b"2"]),
        ({"earliest": False}, []),
        ({"durable": False, "start_message_id": {"ledgerId": 0, "entryId": 1}}, [b"1", b"2"]),
        (
            {"durable": False, "start_message_id": EARLIEST},
            [b"0", b"1", b"2"],
        ),
        ({"durable": False, "start_message_id": LATEST, "earliest": False}, []),
        ({"durable": False, "start_message_id": LATEST, "earliest": True}, [b"0", b"1", b"2"]),
        ({"durable": False, "start_message_id": {"ledgerId": 9, "entryId": 0}}, [b"0", b"1", b"2"]),
        (
            {"durable": False, "start_message_id": {"ledgerId": 9, "entryId": 0}, "earliest": False},
            [],
        ),
        ({"durable": False, "start_message_id": {"ledgerId": 0, "entryId": 3}, "earliest": True}, []),
        ({"durable": False, "earliest": True}, [b"0", b"1", b"2"]),
        ({"start_message_id": {"ledgerId": 0, "entryId": 1}}, [b"0", b"1", b"2"]),
        ({"start_message_rollback_duration_sec": 10, "earliest": False}, [b"0", b"1", b"2"]),
    ],
)
def test_where_a_new_subscription_begins(fields: dict[str, Any], expected: list[bytes]) -> None:
    """BROKER-17: a start id is for non-durable subscriptions, and its message is delivered. An id behind the
    last message leaves it to the initial position, as in the Java broker. Rules READER-05 and BROKER-09."""
    _, peer = topic_with(b"0", b"1", b"2")
    peer.subscribe(**fields)
    assert peer.payloads() == expected


def test_an_existing_subscription_goes_on_where_it_was() -> None:
    """SUBT-11. Rule BROKER-22."""
    _, peer = topic_with(b"0", b"1", b"2")
    peer.subscribe()
    peer.ack(peer.messages()[0])
    peer.close_consumer()
    peer.subscribe(earliest=False, consumer_id=1)
    assert peer.payloads() == [b"1", b"2"]


def test_a_reader_leaves_nothing_behind() -> None:
    """SUBT-10."""
    world, peer = topic_with()
    peer.subscribe(durable=False)
    peer.drop()
    assert "s" not in world.broker.topic_administration.stats(TOPIC)["subscriptions"]


# --- questions ----------------------------------------------------------------------------------------


def last_id(peer: Peer) -> Any:
    peer.send(Type.GET_LAST_MESSAGE_ID, proto.CommandGetLastMessageId(consumer_id=0, request_id=8))
    return peer.expect(Type.GET_LAST_MESSAGE_ID_RESPONSE)


def test_last_message_id() -> None:
    """Seen: java-last-message-id."""
    world, peer = topic_with()
    peer.subscribe()
    answer = last_id(peer)
    assert (answer.last_message_id.ledgerId, answer.last_message_id.entryId) == (2**64 - 1, 2**64 - 1)
    assert (answer.last_message_id.partition, answer.last_message_id.batch_index) == (-1, -1)
    producing = world.connect()
    producing.producer()
    producing.publish_batch([b"0", b"1", b"2", b"3"])
    peer.inbox.clear()
    answer = last_id(peer)
    assert (answer.last_message_id.entryId, answer.last_message_id.batch_index) == (0, 3)
    assert answer.consumer_mark_delete_position.entryId == 2**64 - 1
    producing.publish(b"4", 4)
    peer.inbox.clear()
    assert last_id(peer).last_message_id.batch_index == -1
    peer.ack((0, 0, None))
    assert last_id(peer).consumer_mark_delete_position.entryId == 0


def test_consumer_stats() -> None:
    _, peer = topic_with(b"0", b"1")
    peer.subscribe(SubType.Shared, permits=10)
    peer.inbox.clear()
    peer.send(Type.CONSUMER_STATS, proto.CommandConsumerStats(request_id=1, consumer_id=0))
    stats = peer.expect(Type.CONSUMER_STATS_RESPONSE)
    assert (stats.availablePermits, stats.unackedMessages, stats.msgBacklog) == (8, 2, 2)
    assert (stats.consumerName, stats.type) == ("c0", "Shared")
    peer.send(Type.CONSUMER_STATS, proto.CommandConsumerStats(request_id=1, consumer_id=9))
    assert peer.expect(Type.CONSUMER_STATS_RESPONSE).error_code == proto.ConsumerNotFound


@pytest.mark.parametrize("number", [Type.GET_LAST_MESSAGE_ID, Type.UNSUBSCRIBE])
def test_questions_of_unknown_consumers(number: int) -> None:
    _, peer = topic_with()
    kind = proto.CommandGetLastMessageId if number == Type.GET_LAST_MESSAGE_ID else proto.CommandUnsubscribe
    peer.send(number, kind(consumer_id=3, request_id=1))
    assert peer.expect_error("MetadataError").message == "Consumer not found"


# --- end ----------------------------------------------------------------------------------------------


def unsubscribe(peer: Peer, force: bool = False) -> None:
    peer.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=2, force=force))


def test_unsubscribe() -> None:
    world, peer = topic_with(b"0")
    peer.subscribe()
    peer.inbox.clear()
    unsubscribe(peer)
    peer.expect(Type.SUCCESS)
    world.start()
    assert "s" not in world.broker.topic_administration.stats(TOPIC)["subscriptions"]


def test_unsubscribe_among_others() -> None:
    """WIRE-14."""
    world, peer = topic_with()
    other = world.connect()
    peer.subscribe(SubType.Shared)
    other.subscribe(SubType.Shared)
    unsubscribe(peer)
    peer.expect_error("MetadataError")
    unsubscribe(peer, force=True)
    peer.expect(Type.SUCCESS)
    other.expect(Type.CLOSE_CONSUMER)


def test_closing_what_is_not_there_succeeds() -> None:
    """Rule WIRE-16."""
    peer = World().connect()
    peer.close_consumer(55)


def test_end_of_topic_after_the_last_acknowledgement() -> None:
    """BROKER-43, seen: java-terminate. The C++ client (protocol 20) drops its connection on the notice."""
    world, peer = topic_with(b"0", b"1")
    cpp = world.connect(version=20)
    peer.subscribe()
    cpp.subscribe(subscription="cpp")
    messages = peer.messages()
    last = world.broker.topic_administration.terminate(0, TOPIC)
    world.pump()
    assert ids(messages)[-1] == (last.ledger_id, last.entry_id)
    peer.ack(messages[0])
    peer.nothing()
    peer.ack(messages[1])
    assert peer.expect(Type.REACHED_END_OF_TOPIC).consumer_id == 0
    cpp.ack(*cpp.messages())
    cpp.nothing()
    late = world.connect()
    late.subscribe(subscription="late", earliest=False, permits=0)
    late.expect(Type.REACHED_END_OF_TOPIC)


def test_the_end_is_not_before_what_is_still_being_written() -> None:
    world, peer = topic_with()
    peer.subscribe()
    producing = world.connect()
    producing.producer(name="p")
    world.hold_writes = True
    producing.publish(b"last")
    world.broker.topic_administration.terminate(0, TOPIC)
    world.pump()
    peer.nothing()
    world.sync()
    (message,) = peer.messages()
    peer.ack(message)
    peer.expect(Type.REACHED_END_OF_TOPIC)


def test_a_terminated_topic_takes_nothing() -> None:
    """BROKER-43."""
    world = World()
    peer = world.connect()
    peer.producer()
    world.hold_writes = True
    peer.publish(b"before", 0)
    world.broker.topic_administration.terminate(0, TOPIC)
    world.pump()
    peer.publish(b"after", 1)
    world.hold_writes = False
    world.sync()
    assert peer.expect(Type.SEND_RECEIPT).sequence_id == 0
    peer.expect(Type.CLOSE_PRODUCER)
    assert proto.ServerError.Name(peer.expect(Type.SEND_ERROR).error) == "TopicTerminatedError"
    peer.ask_producer()
    peer.expect_error("TopicTerminatedError")
    world.start()
    again = world.connect()
    again.ask_producer()
    again.expect_error("TopicTerminatedError")


def test_discarded_messages_are_acknowledged() -> None:
    """WIRE-18: validation errors are acknowledgements."""
    world, peer = topic_with(b"0")
    peer.subscribe()
    peer.messages()
    peer.feed(encode_ack(0, 0, [(0, 0, None)], validation_error=2))
    assert backlog(world) == 0


def test_one_connection_has_only_so_many_of_each() -> None:
    world = World(BrokerConfig(max_producers_per_connection=1, max_consumers_per_connection=1))
    peer = world.connect()
    peer.producer()
    peer.ask_producer(producer_id=1)
    peer.expect_error("TooManyRequests")
    peer.subscribe()
    peer.ask_subscribe(consumer_id=1, subscription="other")
    peer.expect_error("TooManyRequests")


def test_a_newcomer_that_leaves_while_the_old_one_is_probed() -> None:
    """Rules BROKER-20 and BROKER-21."""
    world, peer = topic_with()
    newcomer, third = world.connect(), world.connect()
    peer.subscribe()
    newcomer.ask_subscribe()
    third.ask_subscribe()
    newcomer.close_consumer()
    world.advance(5.1)
    assert peer.closed is not None
    newcomer.nothing()
    third.expect(Type.SUCCESS)


def test_two_newcomers_for_one_dead_place() -> None:
    world, peer = topic_with()
    first, second = world.connect(), world.connect()
    peer.subscribe()
    first.ask_subscribe()
    second.ask_subscribe()
    world.advance(5.1)
    first.expect(Type.SUCCESS)
    second.expect_error("ConsumerBusy")


def test_a_reader_whose_topic_is_unloaded_brings_its_position_along() -> None:
    world, peer = topic_with(b"0", b"1")
    peer.subscribe(durable=False)
    peer.inbox.clear()
    world.broker.topic_administration.unload(0, TOPIC)
    world.pump()
    peer.expect(Type.CLOSE_CONSUMER)
    peer.subscribe(durable=False, start_message_id={"ledgerId": 0, "entryId": 1})
    assert peer.payloads() == [b"1"]
