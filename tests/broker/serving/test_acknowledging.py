"""ACK: individual, cumulative and batch index acknowledgements, and FLOW."""

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import CUMULATIVE
from tests.broker.peer import TOPIC, SubType, Type
from tests.broker.serving.stored_topics import backlog, batch_topic, topic_with


def test_ack_receipts_wait_for_the_store() -> None:
    world, peer = topic_with(b"0", b"1")
    peer.subscribe()
    messages = peer.messages()
    world.hold_writes = True
    peer.ack(*messages, request_id=3)
    peer.nothing()
    world.sync()
    answer = peer.expect(Type.ACK_RESPONSE)
    assert (answer.consumer_id, answer.request_id, answer.HasField("error")) == (0, 3, False)
    world.start()
    assert backlog(world) == 0


def test_cumulative() -> None:
    world, peer = topic_with(b"0", b"1", b"2")
    peer.subscribe()
    messages = peer.messages()
    peer.ack(messages[1], kind=CUMULATIVE)
    assert backlog(world) == 1
    peer.ack(*messages, kind=CUMULATIVE)
    assert backlog(world) == 1, "exactly one id (WIRE-12)"


def test_cumulative_before_the_first_entry_of_a_ledger() -> None:
    """Seen: java-reader."""
    world, peer = topic_with(b"0")
    peer.subscribe()
    peer.ack((0, -1, None), kind=CUMULATIVE)
    assert backlog(world) == 1
    assert peer.closed is None


@pytest.mark.parametrize("strange", [(0, 99), (77, 0), (2**63 - 1, 2**63 - 1), (-1, -1), (77, -1)])
@pytest.mark.parametrize("kind", [0, CUMULATIVE])
def test_ids_that_do_not_exist_acknowledge_nothing(strange: tuple[int, int], kind: int) -> None:
    world, peer = topic_with(b"0", b"1")
    peer.subscribe()
    peer.ack((*strange, None), kind=kind)
    assert backlog(world) == 2
    assert peer.closed is None


def test_what_is_not_durable_cannot_be_acknowledged() -> None:
    world, peer = topic_with(b"0")
    peer.subscribe()
    world.hold_writes = True
    other = world.connect()
    other.ask_producer()
    world.sync()
    other.publish(b"1")
    peer.ack((0, 1, None))
    peer.ack((0, 1, None), kind=CUMULATIVE)
    world.sync()
    assert backlog(world) == 2


def test_cumulative_on_shared_is_ignored_and_confirmed() -> None:
    world, peer = topic_with(b"0", b"1")
    peer.subscribe(SubType.Shared)
    peer.ack(peer.messages()[1], kind=CUMULATIVE, request_id=4)
    assert not peer.expect(Type.ACK_RESPONSE).HasField("error")
    assert backlog(world) == 2


def test_unknown_consumers_get_no_answer() -> None:
    """Rule WIRE-20."""
    _, peer = topic_with(b"0")
    peer.ack((0, 0, None), consumer_id=9, request_id=1)
    peer.flow(5, consumer_id=9)
    peer.redeliver(consumer_id=9)
    peer.nothing()
    assert peer.closed is None


def test_too_many_permits() -> None:
    """Rule BROKER-26."""
    _, peer = topic_with()
    peer.subscribe(permits=2**31 - 1)
    peer.flow(1)
    assert peer.closed is not None


# --- batch indexes ------------------------------------------------------------------------------------


def test_a_partly_acknowledged_batch_is_redelivered_with_what_is_open() -> None:
    world, peer = batch_topic()
    peer.subscribe(SubType.Shared)
    (message,) = peer.messages()
    assert message.ack_set is None
    peer.ack((0, 0, 0b1101))
    peer.ack((0, 0, 0b0111), request_id=1)
    peer.expect(Type.ACK_RESPONSE)
    peer.redeliver(message)
    (again,) = peer.messages()
    assert (again.ack_set, again.redelivery_count) == (0b0101, 1)
    consumer = world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["consumers"][0]
    assert consumer["unacked"] == 2
    assert consumer["available_permits"] == 1000 - 4 - 2, "only what is delivered is charged"
    world.start()
    peer = world.connect()
    peer.subscribe()
    assert peer.messages()[0].ack_set == 0b0101, "a new broker knows it too"
    peer.ack((0, 0, 0b1010))
    assert backlog(world) == 0, "old AND given is empty: the entry is done"


def test_the_same_id_several_times_in_one_ack() -> None:
    """Seen: cpp-batch-index-ack."""
    world, peer = batch_topic()
    peer.subscribe(SubType.Shared)
    peer.messages()
    peer.ack((0, 0, 0b0001), (0, 0, 0b0001), (0, 0, 0b0001))
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["unackedMessages"] == 1


def test_cumulative_inside_a_batch() -> None:
    """Seen: java-batch-index-ack-cumulative."""
    world, peer = batch_topic()
    peer.subscribe()
    peer.messages()
    for bits, left in ((0b1110, 1), (0b1100, 1), (0b1000, 1), (0b0000, 0)):
        peer.ack((0, 0, bits), kind=CUMULATIVE)
        assert backlog(world) == left


def test_a_broker_without_batch_indexes() -> None:
    world, peer = batch_topic(BrokerConfig(batch_index_acknowledgement=False))
    peer.subscribe(SubType.Shared)
    (message,) = peer.messages()
    peer.ack((0, 0, 0b0001))
    peer.redeliver(message)
    assert peer.messages()[0].ack_set is None
    peer.ack((0, 0, None))
    assert backlog(world) == 0
