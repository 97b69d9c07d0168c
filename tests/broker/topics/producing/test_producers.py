"""PRODUCER: names, epochs, access modes, liveness of the present producer."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import encode_ping, proto
from tests.broker.peer import TOPIC, Peer, Type, World

EXCLUSIVE, WAIT, FENCING = proto.Exclusive, proto.WaitForExclusive, proto.ExclusiveWithFencing


def test_generated_names_are_unique() -> None:
    """Rule PROD-01."""
    world = World()
    peer = world.connect()
    names = [peer.producer(producer_id=number).producer_name for number in range(3)]
    assert names == ["standalone-1-0", "standalone-1-1", "standalone-1-2"]


def test_asking_again_answers_again() -> None:
    """BROKER-37: the answer repeats the id; last_sequence_id is -1 then."""
    peer = World().connect()
    peer.producer(name="a")
    again = peer.producer(name="a")
    assert (again.producer_name, again.last_sequence_id) == ("a", -1)


def test_asking_again_too_early() -> None:
    world = World()
    peer = world.connect()
    world.hold_writes = True
    peer.ask_producer(name="a")
    request_id = peer.ask_producer(name="a")
    assert peer.expect_error("ServiceNotReady").request_id == request_id
    world.sync()
    peer.expect(Type.PRODUCER_SUCCESS)


def test_a_name_on_the_same_connection_is_refused_at_once() -> None:
    """Seen: java-producer-name-conflict."""
    peer = World().connect()
    peer.producer(name="a")
    peer.ask_producer(name="a", producer_id=1)
    peer.expect_error("ProducerBusy")
    peer.nothing()


def test_a_name_on_another_connection_that_lives() -> None:
    """BROKER-42: a PING to the present producer decides."""
    world = World()
    old, new = world.connect(), world.connect()
    old.producer(name="a")
    new.ask_producer(name="a")
    old.expect(Type.PING)
    new.nothing()
    old.feed(encode_ping())
    new.expect_error("ProducerBusy")
    assert old.closed is None


def test_a_name_on_another_connection_that_is_dead() -> None:
    world = World()
    old, new = world.connect(), world.connect()
    old.producer(name="a")
    new.ask_producer(name="a")
    world.advance(4.9)
    new.nothing()
    world.advance(0.2)
    assert old.closed is not None
    assert new.expect(Type.PRODUCER_SUCCESS).producer_name == "a"


def test_a_newcomer_that_closes_while_the_old_one_is_probed() -> None:
    world = World()
    old, new = world.connect(), world.connect()
    old.producer(name="a")
    new.ask_producer(name="a")
    new.close_producer()
    new.expect(Type.SUCCESS)
    world.advance(6)
    new.nothing()
    assert world.broker.topic_administration.stats(TOPIC)["publishers"] == []


def test_limits_and_missing_topics() -> None:
    world = World(BrokerConfig(auto_topic_creation=False))
    peer = world.connect()
    peer.ask_producer()
    peer.expect_error("TopicNotFound")
    world.broker.topic_administration.create_topic(0, TOPIC)
    peer.producer()
    world.broker.administration.set_policy(0, TOPIC, "max_producers", 1)
    peer.ask_producer(producer_id=1)
    peer.expect_error("ProducerBusy")
    peer.ask_producer("bad/name", producer_id=2)
    peer.expect_error("InvalidTopicName")
    peer.ask_producer("persistent://no/such/t", producer_id=3)
    peer.expect_error("TopicNotFound")


def test_clients_cannot_make_topics_names_and_subscriptions_without_end() -> None:
    world = World(BrokerConfig(max_topics=1, max_subscriptions_per_topic=1))
    peer = world.connect()
    peer.ask_producer(name="n" * 5000)
    peer.expect_error("ProducerBusy")
    peer.ask_subscribe(subscription="s" * 5000)
    peer.expect_error("ProducerBusy")
    peer.subscribe()
    peer.ask_subscribe(consumer_id=1, subscription="another")
    peer.expect_error("NotAllowedError")
    peer.ask_producer("another")
    peer.expect_error("NotAllowedError")


def test_partitions_are_used_one_by_one() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 2)
    peer = world.connect()
    peer.ask_producer()
    peer.expect_error("NotAllowedError")
    peer.ask_producer(TOPIC + "-partition-2")
    peer.expect_error("TopicNotFound")
    peer.producer(TOPIC + "-partition-1")


def test_an_initial_subscription_holds_what_comes() -> None:
    world = World()
    peer = world.connect()
    peer.producer(initial_subscription_name="first")
    peer.publish(b"x")
    peer.expect(Type.SEND_RECEIPT)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["first"]["backlog"] == 1
    world.broker.administration.set_policy(0, TOPIC, "auto_subscription_creation", False)
    peer.ask_producer(producer_id=1, initial_subscription_name="second")
    peer.expect_error("NotAllowedError")


# --- access modes -------------------------------------------------------------------------------------


def mode(peer: Peer, access: Any, producer_id: int, **fields: Any) -> Any:
    return peer.producer(producer_id=producer_id, producer_access_mode=access, **fields)


def refused(peer: Peer, access: Any, producer_id: int, code: str, **fields: Any) -> None:
    peer.ask_producer(producer_id=producer_id, producer_access_mode=access, **fields)
    peer.expect_error(code)


def test_exclusive() -> None:
    """Seen: java-access-exclusive. BROKER-35."""
    world = World()
    peer = world.connect()
    assert mode(peer, EXCLUSIVE, 0).topic_epoch == 0
    refused(peer, EXCLUSIVE, 1, "ProducerFenced")
    refused(peer, proto.Shared, 2, "ProducerBusy")
    peer.close_producer(0)
    peer.expect(Type.SUCCESS)
    assert mode(peer, EXCLUSIVE, 1).topic_epoch == 1
    assert world.broker.topic_administration.stats(TOPIC)["topicEpoch"] == 1


def test_exclusive_among_shared_ones() -> None:
    """Rule BROKER-34."""
    peer = World().connect()
    assert not mode(peer, proto.Shared, 0).HasField("topic_epoch")
    refused(peer, EXCLUSIVE, 1, "ProducerFenced")


def test_waiting_for_exclusiveness() -> None:
    """Seen: java-access-wait: one request is answered twice. BROKER-36."""
    peer = World().connect()
    mode(peer, EXCLUSIVE, 0)
    waiting = mode(peer, WAIT, 1)
    assert not waiting.producer_ready
    assert not waiting.HasField("topic_epoch")
    refused(peer, proto.Shared, 2, "ProducerBusy")
    peer.close_producer(0)
    peer.expect(Type.SUCCESS)
    granted = peer.expect(Type.PRODUCER_SUCCESS)
    assert granted.request_id == waiting.request_id
    assert granted.producer_name == waiting.producer_name
    assert (granted.producer_ready, granted.topic_epoch) == (True, 1)
    peer.publish(b"x", producer_id=1)
    peer.expect(Type.SEND_RECEIPT)


def test_a_waiting_producer_may_not_send() -> None:
    peer = World().connect()
    mode(peer, EXCLUSIVE, 0)
    mode(peer, WAIT, 1)
    peer.publish(b"x", producer_id=1)
    assert peer.closed is not None


def test_a_waiting_producer_may_close() -> None:
    world = World()
    peer, other = world.connect(), world.connect()
    mode(peer, EXCLUSIVE, 0)
    mode(other, WAIT, 0)
    other.close_producer(0)
    other.expect(Type.SUCCESS)
    mode(other, WAIT, 1)
    peer.drop()
    assert other.expect(Type.PRODUCER_SUCCESS).producer_ready
    other.nothing()


def test_a_producer_closed_while_waiting_gets_no_turn() -> None:
    """BROKER-36: access is free for the next producer once the close of the present one is answered."""
    world = World()
    peer, other = world.connect(), world.connect()
    mode(peer, EXCLUSIVE, 0)
    assert not mode(other, WAIT, 0).producer_ready
    other.close_producer(0)
    other.expect(Type.SUCCESS)
    peer.close_producer(0)
    peer.expect(Type.SUCCESS)
    assert mode(peer, EXCLUSIVE, 1).producer_ready
    other.nothing()


def test_fencing_out() -> None:
    """Seen: java-access-fencing: the fenced producer gets no frame; its next SEND ends the connection."""
    world = World()
    peer, other, waiter = world.connect(), world.connect(), world.connect()
    assert mode(peer, EXCLUSIVE, 0, name="a").topic_epoch == 0
    assert not mode(waiter, WAIT, 0).producer_ready
    assert mode(other, FENCING, 0, name="b").topic_epoch == 1
    waiter.expect_error("ProducerFenced")
    peer.nothing()
    peer.publish(b"x")
    assert peer.closed is not None
    again = world.connect()
    refused(again, EXCLUSIVE, 0, "ProducerFenced", name="a", topic_epoch=0)
    other.drop()
    refused(again, EXCLUSIVE, 0, "ProducerFenced", name="a", topic_epoch=0)
    assert mode(again, FENCING, 0, name="b", topic_epoch=1).topic_epoch == 1


@pytest.mark.parametrize(
    ("access", "error"),
    [(proto.Shared, "ProducerBusy"), (EXCLUSIVE, "ProducerFenced"), (FENCING, "ProducerFenced")],
)
def test_a_producer_fenced_before_its_success_is_refused(access: int, error: str) -> None:
    """BROKER-36: it would never send, so its client would wait for the answer without end."""
    world = World()
    peer, other = world.connect(), world.connect()
    world.hold_writes = True
    peer.ask_producer(name="a", producer_access_mode=access)
    peer.nothing()
    other.ask_producer(name="b", producer_access_mode=FENCING)
    peer.expect_error(error)
    world.sync()
    assert other.expect(Type.PRODUCER_SUCCESS).producer_ready
    peer.nothing()
    assert peer.closed is None


def test_a_waiting_producer_admitted_and_fenced_before_its_success_is_refused() -> None:
    """BROKER-36: the refusal answers the first request, which is then over."""
    world = World()
    first, waiter, other = world.connect(), world.connect(), world.connect()
    mode(first, EXCLUSIVE, 0, name="a")
    assert not mode(waiter, WAIT, 0, name="b").producer_ready
    world.hold_writes = True
    first.drop()
    waiter.nothing()
    other.ask_producer(name="c", producer_access_mode=FENCING)
    waiter.expect_error("ProducerFenced")
    world.sync()
    assert other.expect(Type.PRODUCER_SUCCESS).producer_ready
    waiter.nothing()


@pytest.mark.parametrize("then", ["close", "send", "nothing"])
def test_a_fenced_producer_gets_the_receipts_of_its_messages(then: str) -> None:
    """BROKER-36, WIRE-08: accepted messages are stored, and confirmed before the answer to a close."""
    world = World()
    peer, other = world.connect(), world.connect()
    peer.producer(name="a")
    world.hold_writes = True
    for sequence_id in range(2):
        peer.publish(b"x", sequence_id)
    other.ask_producer(name="b", producer_access_mode=FENCING)
    if then == "close":
        peer.close_producer(0)
    elif then == "send":
        peer.publish(b"x", 2)
        assert peer.closed is not None
        return
    peer.nothing()
    world.sync()
    assert [peer.expect(Type.SEND_RECEIPT).sequence_id for _ in range(2)] == [0, 1]
    if then == "close":
        peer.expect(Type.SUCCESS)
    peer.nothing()
    assert other.expect(Type.PRODUCER_SUCCESS).topic_epoch == 0
    peer.publish(b"x", 2)
    assert peer.closed is not None


def test_the_epoch_survives_the_broker() -> None:
    world = World()
    mode(world.connect(), FENCING, 0)
    mode(world.connect(), FENCING, 0)
    world.start()
    assert mode(world.connect(), EXCLUSIVE, 0).topic_epoch == 2


def test_a_fenced_producer_waits_again_though_its_epoch_has_passed() -> None:
    """A real broker compares epochs once no producer is there. The producer gets a new epoch. BROKER-36."""
    world = World()
    first, second = world.connect(), world.connect()
    assert mode(first, WAIT, 0).topic_epoch == 0
    assert mode(second, FENCING, 0).topic_epoch == 1
    again = world.connect()
    assert not mode(again, WAIT, 0, topic_epoch=0).producer_ready
    second.close_producer()
    second.expect(Type.SUCCESS)
    assert again.expect(Type.PRODUCER_SUCCESS).topic_epoch == 2
    again.publish(b"x")
    again.expect(Type.SEND_RECEIPT)
    again.close_producer()
    again.expect(Type.SUCCESS)
    refused(first, WAIT, 1, "ProducerFenced", topic_epoch=0)


@pytest.mark.parametrize("access", [EXCLUSIVE, FENCING])
def test_an_epoch_that_has_passed_is_refused(access: int) -> None:
    """BROKER-35: a producer with an old epoch fences no later one."""
    world = World()
    first, second, again = world.connect(), world.connect(), world.connect()
    assert mode(first, FENCING, 0).topic_epoch == 0
    assert mode(second, FENCING, 0).topic_epoch == 1
    if access == EXCLUSIVE:
        second.close_producer()
        second.expect(Type.SUCCESS)
    refused(again, access, 0, "ProducerFenced", topic_epoch=0)
    if access != EXCLUSIVE:
        second.publish(b"x")
        second.expect(Type.SEND_RECEIPT)


def test_a_later_epoch_is_taken_over() -> None:
    assert mode(World().connect(), EXCLUSIVE, 0, topic_epoch=7).topic_epoch == 7


@pytest.mark.parametrize("version", [4, 5, 21])
def test_a_producer_sent_away_by_the_broker(version: int) -> None:
    """GAP-37: request_id 2^64-1; late SENDs are ignored for one keep-alive interval."""
    world = World()
    peer = world.connect(version)
    peer.producer()
    world.broker.topic_administration.unload(world.now, TOPIC)
    world.pump()
    if version < 5:
        assert peer.closed is not None
        return
    closed = peer.expect(Type.CLOSE_PRODUCER)
    assert (closed.producer_id, closed.request_id) == (0, 2**64 - 1)
    peer.publish(b"late")
    assert peer.closed is None
    peer.nothing()
    peer.feed(encode_ping())
    world.advance(29)
    peer.feed(encode_ping())
    world.advance(2)
    peer.publish(b"far too late")
    assert peer.closed is not None


def test_a_producer_that_reconnects_and_is_fenced_has_no_late_sends() -> None:
    """BROKER-36, GAP-37: otherwise its SEND would be ignored for a keep-alive interval without an answer."""
    world = World()
    peer, other = world.connect(), world.connect()
    peer.producer(name="a")
    world.broker.topic_administration.unload(world.now, TOPIC)
    world.pump()
    peer.expect(Type.CLOSE_PRODUCER)
    peer.producer(name="a")
    other.producer(name="b", producer_access_mode=FENCING)
    peer.publish(b"x")
    assert peer.closed is not None


VOLATILE = TOPIC.replace("persistent", "non-persistent", 1)


@pytest.mark.parametrize(("command", "topic"), [("delete", TOPIC), ("delete", VOLATILE), ("unload", TOPIC)])
def test_no_producer_is_admitted_while_the_topic_goes_away(command: str, topic: str) -> None:
    """The client with the name is too old for CLOSE_PRODUCER, so its connection ends, and the waiting
    producer is next. Rule BROKER-16."""
    world = World()
    old, new = world.connect(version=4), world.connect()
    old.producer(topic, name="a")
    new.ask_producer(topic, name="a")
    old.expect(Type.PING)
    if command == "delete":
        world.broker.topic_administration.delete_topic(world.now, topic, force=True)
    else:
        world.broker.topic_administration.unload(world.now, topic)
    world.pump()
    assert old.closed is not None
    new.expect_error("ServiceNotReady")
    new.producer(topic, name="a")
    new.publish(b"x")
    new.expect(Type.SEND_RECEIPT)
    assert len(world.broker.topic_administration.stats(topic)["publishers"]) == 1


def test_two_newcomers_for_one_dead_name() -> None:
    world = World()
    old, first, second = world.connect(), world.connect(), world.connect()
    old.producer(name="a")
    first.ask_producer(name="a")
    second.ask_producer(name="a")
    world.advance(5.1)
    first.expect(Type.PRODUCER_SUCCESS)
    second.expect_error("ProducerBusy")


def test_a_producer_id_comes_free_only_after_its_receipts() -> None:
    world = World()
    peer = world.connect()
    peer.producer(name="a")
    world.hold_writes = True
    peer.publish(b"x")
    peer.close_producer()
    peer.publish(b"after the close")
    peer.ask_producer(name="a")
    peer.expect_error("ServiceNotReady")
    world.sync()
    peer.expect(Type.SEND_RECEIPT)
    peer.expect(Type.SUCCESS)
    world.hold_writes = False
    peer.producer(name="a")
