"""Attacks by which hostile peers once harmed a broker or a client: one test each, as small as possible."""

from collections.abc import Callable

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import proto
from tests.broker.peer import SubType, Type, World
from tests.work import check_in_proportion

TOPIC = "persistent://public/default/t"


@pytest.mark.parametrize("digits", ["9" * 10, "9" * 20, "9" * 5000])
def test_a_partition_number_without_end_is_no_partition(digits: str) -> None:
    """The number went into 32 bits of GET_LAST_MESSAGE_ID_RESPONSE, into the varint of a message id, and
    through `int()`. Each of these has an end: the broker fell over."""
    topic = f"{TOPIC}-partition-{digits}"
    assert TopicName.parse(topic).partition == -1
    assert str(TopicName.parse(topic).base) == topic
    world = World()
    peer = world.connect()
    if len(digits) < 100:
        peer.producer(topic)
        peer.subscribe(topic=topic)
        peer.publish(b"x")
        peer.send(Type.GET_LAST_MESSAGE_ID, proto.CommandGetLastMessageId(consumer_id=0, request_id=1))
        peer.expect(Type.SEND_RECEIPT)
        assert peer.expect(Type.MESSAGE).partition == -1
        assert peer.expect(Type.GET_LAST_MESSAGE_ID_RESPONSE).last_message_id.partition == -1
    else:
        peer.ask_producer(topic)
        peer.expect_error("InvalidTopicName")


@pytest.mark.parametrize(
    "pattern",
    ["(" * 5000 + ")" * 5000, "a{99999999999999999999}", "[[a]", "[a--b]", "(", "a**", "(?P<", "\\"],
)
def test_a_pattern_that_cannot_be_compiled(pattern: str) -> None:
    """Deep nesting exhausted the stack, a huge repetition was an OverflowError; neither is `re.error`."""
    peer = World().connect()
    peer.send(
        Type.GET_TOPICS_OF_NAMESPACE,
        proto.CommandGetTopicsOfNamespace(
            request_id=1, namespace="public/default", topics_pattern=f"persistent://public/default/{pattern}"
        ),
    )
    answer, _ = peer.inbox.popleft()
    assert answer in (Type.ERROR, Type.GET_TOPICS_OF_NAMESPACE_RESPONSE)
    assert peer.closed is None


def test_the_highest_sequence_id_of_all() -> None:
    """2^64-1 went into the signed last_sequence_id of the next PRODUCER_SUCCESS."""
    peer = World(BrokerConfig(deduplication=True)).connect()
    peer.producer(name="n")
    peer.publish(b"x", sequence_id=2**64 - 1)
    peer.publish(b"y", sequence_id=2**63 - 1)
    peer.close_producer()
    peer.inbox.clear()
    assert peer.producer(name="n").last_sequence_id == 2**63 - 1


def test_names_of_topics_have_a_length() -> None:
    """A hundred thousand topics of five megabytes of name each would have been allowed."""
    peer = World().connect()
    peer.ask_producer("x" * 5000)
    error = peer.expect_error("InvalidTopicName")
    assert len(error.message) < 100, "and it is not sent back"
    peer.ask_producer("x" * 4000)
    peer.expect(Type.PRODUCER_SUCCESS)


def test_names_of_topics_have_no_control_characters() -> None:
    peer = World().connect()
    for name in ("a\nb", "a\x00", "a\x7f", "a-partition-1\n"):
        peer.ask_producer(name)
        peer.expect_error("InvalidTopicName")


def test_a_consumer_that_asks_for_every_slot_by_itself() -> None:
    """Each range was compared with each other one: one SUBSCRIBE stopped the broker for two minutes."""

    def of_slots(count: int) -> Callable[[], object]:
        peer = World().connect()
        asked = proto.KeySharedMeta(keySharedMode=proto.STICKY)
        for slot in range(count):
            asked.hashRanges.add(start=slot, end=slot)

        def subscribe() -> None:
            peer.ask_subscribe(SubType.Key_Shared, keySharedMeta=asked)
            peer.expect(Type.SUCCESS)

        return subscribe

    check_in_proportion(of_slots, 500)
    of_slots(65536)()


def test_many_failover_consumers_come_and_go() -> None:
    """All points of all consumers were hashed and sorted for each that came or went: three hundred of them
    on one connection, and its end, took the broker a minute."""

    def of_consumers(count: int) -> Callable[[], object]:
        peer = World().connect()

        def come_and_go() -> None:
            for consumer in range(count):
                peer.ask_subscribe(SubType.Failover, consumer)
            peer.drop()

        return come_and_go

    check_in_proportion(of_consumers, 5)
