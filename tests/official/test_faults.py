"""Faults of the broker, and what the official client makes of each of them.

The tests are synchronous, and the broker is a process of its own: an application's tests look like this.
"""

from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from pulsar_trio_pytest import BrokerProcess, PulsarBroker
from tests.official.client import RECEIVE_TIMEOUT, official_client
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def process() -> Iterator[BrokerProcess]:
    with BrokerProcess() as process:
        yield process


@pytest.fixture
def pulsar_broker(process: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[PulsarBroker]:
    with process.namespace(request.node.name) as broker:
        yield broker


@pytest.fixture
def client(pulsar_broker: PulsarBroker) -> Iterator[Any]:
    with official_client(pulsar_broker.url) as client:
        yield client


def received(consumer: Any, count: int) -> list[bytes]:
    """Receive and acknowledge so many messages."""
    messages = [consumer.receive(RECEIVE_TIMEOUT) for _ in range(count)]
    for message in messages:
        consumer.acknowledge(message)
    return [message.data() for message in messages]


def test_a_refused_send_is_sent_again(pulsar_broker: PulsarBroker, client: Any) -> None:
    topic = pulsar_broker.topic("t")
    rule = pulsar_broker.faults.add("SEND", "error", code="PersistenceError", topic=topic, times=1)
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"x")
    assert received(consumer, 1) == [b"x"]
    assert rule.fired == 1


def test_a_producer_that_is_not_ready_yet_is_asked_for_again(
    pulsar_broker: PulsarBroker, client: Any
) -> None:
    rule = pulsar_broker.faults.add("PRODUCER", "error", code="ServiceNotReady", times=2)
    client.create_producer(pulsar_broker.topic("t")).send(b"x")
    assert rule.fired == 2


@pytest.mark.parametrize("command", ["LOOKUP", "PARTITIONED_METADATA"])
def test_a_refused_request_is_sent_again(pulsar_broker: PulsarBroker, client: Any, command: str) -> None:
    rule = pulsar_broker.faults.add(command, "error", code="ServiceNotReady", times=1)
    client.subscribe(pulsar_broker.topic("t"), "s")
    assert rule.fired == 1


def test_a_connection_that_ends_in_place_of_a_subscription(pulsar_broker: PulsarBroker, client: Any) -> None:
    """After a SUBSCRIBE that is answered ServiceNotReady this client never asks again."""
    rule = pulsar_broker.faults.add("SUBSCRIBE", "close", times=1)
    client.subscribe(pulsar_broker.topic("t"), "s")
    assert rule.fired == 1


def test_a_subscription_that_is_refused_for_good(pulsar_broker: PulsarBroker, client: Any) -> None:
    pulsar_broker.faults.add("SUBSCRIBE", "error", code="ConsumerBusy", message="taken")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(pulsar_broker.topic("t"), "s")


def test_a_lost_acknowledgement_is_delivered_again(pulsar_broker: PulsarBroker, client: Any) -> None:
    topic = pulsar_broker.topic("t")
    pulsar_broker.faults.add("ACK", "drop")
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"x")
    assert received(consumer, 1) == [b"x"]
    consumer.close()
    pulsar_broker.faults.clear()
    again = client.subscribe(topic, "s")
    assert received(again, 1) == [b"x"]
    pulsar_broker.until(backlog=0, subscription="s", timeout=PATIENCE)


def test_a_delayed_receipt(pulsar_broker: PulsarBroker, client: Any) -> None:
    """The client gives the message up after its send timeout, though the broker has stored it."""
    topic = pulsar_broker.topic("t")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, send_timeout_millis=500)
    pulsar_broker.faults.add("SEND_RECEIPT", "delay", seconds=600.0, times=1)
    with pytest.raises(pulsar.Timeout):
        producer.send(b"x")
    assert received(consumer, 1) == [b"x"]


@pytest.mark.parametrize("fault", ["close", "half frame"])
def test_a_connection_that_ends_in_place_of_a_receipt(
    pulsar_broker: PulsarBroker, client: Any, fault: Any
) -> None:
    topic = pulsar_broker.topic("t")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    rule = pulsar_broker.faults.add("SEND_RECEIPT", fault, times=1)
    producer.send(b"x")
    assert set(received(consumer, 2)) == {b"x"}, "the client sent it again, and without deduplication twice"
    assert rule.fired == 1


@pytest.mark.breaks("GAP-02", "INV-C2", why="a rule of faults damages a message")
def test_a_damaged_message_is_not_delivered(pulsar_broker: PulsarBroker, client: Any) -> None:
    topic = pulsar_broker.topic("t")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    rule = pulsar_broker.faults.add("MESSAGE", "corrupt", times=1)
    producer.send(b"x")
    producer.send(b"y")
    assert received(consumer, 1) == [b"y"]
    assert rule.fired == 1


def test_a_message_damaged_on_its_way_to_the_broker(pulsar_broker: PulsarBroker, client: Any) -> None:
    """This client gives the message up, though its own bytes are whole."""
    topic = pulsar_broker.topic("t")
    consumer = client.subscribe(topic, "s")
    pulsar_broker.faults.add("SEND", "corrupt", times=1)
    producer = client.create_producer(topic)
    with pytest.raises(pulsar.ChecksumError):
        producer.send(b"x")
    producer.send(b"y")
    assert received(consumer, 1) == [b"y"]


@pytest.mark.breaks("CHECK-67", "NACK-03", why="a rule of faults writes a MESSAGE twice")
def test_a_message_that_comes_twice(pulsar_broker: PulsarBroker, client: Any) -> None:
    topic = pulsar_broker.topic("t")
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    pulsar_broker.faults.add("MESSAGE", "duplicate", times=1)
    client.create_producer(topic).send(b"x")
    assert received(consumer, 2) == [b"x", b"x"]


def test_a_connection_that_is_refused_once(pulsar_broker: PulsarBroker, client: Any) -> None:
    rule = pulsar_broker.faults.add("CONNECT", "close", times=1)
    client.create_producer(pulsar_broker.topic("t")).send(b"x")
    assert rule.fired == 1


def test_snapshot_and_restore(pulsar_broker: PulsarBroker, client: Any) -> None:
    """The client connects again by itself."""
    topic = pulsar_broker.topic("t")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"x")
    snapshot = pulsar_broker.snapshot()
    assert received(consumer, 1) == [b"x"]
    pulsar_broker.until(backlog=0, timeout=PATIENCE)
    pulsar_broker.restore(snapshot)
    pulsar_broker.until(backlog=1, consumers=1, timeout=PATIENCE)
    assert received(consumer, 1) == [b"x"]


def test_reset(pulsar_broker: PulsarBroker, client: Any) -> None:
    topic = pulsar_broker.topic("t")
    producer = client.create_producer(topic)
    producer.send(b"x")
    pulsar_broker.reset()
    producer.send(b"y")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert reader.read_next(RECEIVE_TIMEOUT).data() == b"y"


def test_commands_are_counted_by_topic(pulsar_broker: PulsarBroker, client: Any) -> None:
    topic = pulsar_broker.topic("t")
    counting = pulsar_broker.faults.add("*", topic=topic)
    producer = client.create_producer(topic)
    for _ in range(3):
        producer.send(b"x")
    assert counting.counts["SEND"] == {topic: 3}
    assert counting.counts["SEND_RECEIPT"] == {topic: 3}
    assert counting.counts["PRODUCER"] == {topic: 1}
    counting.remove()
    with pytest.raises(LookupError):
        _ = counting.fired


def test_a_broker_of_an_older_version() -> None:
    """A broker of protocol 15 does not answer acknowledgements, and the client waits for no answer."""
    with BrokerProcess("--protocol-version", "15", "--no-feature-flags") as process:
        with process.namespace() as broker, official_client(broker.url) as client:
            answers = broker.faults.add("ACK_RESPONSE")
            acks = broker.faults.add("ACK")
            consumer = client.subscribe(broker.topic("t"), "s")
            client.create_producer(broker.topic("t")).send(b"x")
            assert received(consumer, 1) == [b"x"]
            broker.until(backlog=0, timeout=PATIENCE)
            assert (acks.fired > 0, answers.fired) == (True, 0)
