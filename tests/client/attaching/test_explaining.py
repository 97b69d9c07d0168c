"""Explanations of an attachment, state by state."""

from pulsar_sansio.client.attaching.explaining import route
from pulsar_sansio.client.outputs import Connect
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.config import ProducerAccessMode, ProducerSpec
from pulsar_sansio.wire import proto
from tests.client.script import (
    Command,
    Script,
    frame_close_producer,
    frame_connected,
    frame_error,
    frame_lookup,
    frame_partitions,
    frame_producer_success,
)


class Explained(Script):
    """One producer whose attachment is explained."""

    def __init__(self, **spec: object) -> None:
        super().__init__()
        options: dict[str, object] = {"topic": "demo", **spec}
        self.producer = self.client.open_producer(self.now, ProducerSpec(**options))  # type: ignore[arg-type]
        self.attachment = self.client._handles.producers[self.producer].attachment  # type: ignore[union-attr]

    @property
    def text(self) -> str:
        return route(self.attachment, self.now)


def test_each_step_of_the_way_to_the_broker_is_named_with_its_age() -> None:
    script = Explained()
    connect = script.expect_one(Connect)
    script.advance(2)
    assert script.text == ("not connected for 2.0 s, and never was; connecting to broker:6650 for 2.0 s")
    script.open(connect.link)
    script.sent(connect.link, Command.CONNECT)
    script.feed(connect.link, frame_connected())
    asked = script.sent(connect.link, Command.PARTITIONED_METADATA)
    assert "asking how many partitions the topic has" in script.text
    script.feed(connect.link, frame_partitions(asked.request_id))
    lookup = script.sent(connect.link, Command.LOOKUP)
    script.advance(1)
    assert script.text.endswith("asking which broker serves the topic for 1.0 s")
    script.feed(connect.link, frame_lookup(lookup.request_id, "pulsar://other:6650"))
    assert (
        "connecting to the broker that serves the topic" in script.text
        or "connecting to other:6650" in script.text
    )
    other = script.ready_link("other")
    opening = script.sent(other, Command.PRODUCER)
    assert "waiting for other:6650 to open it" in script.text
    script.feed(other, frame_producer_success(opening.request_id))
    script.advance(3)
    assert script.text == "connected to other:6650 for 3.0 s"
    script.client.close(script.now, script.producer)
    script.advance(1)
    assert script.text == "closing: other:6650 was told 1.0 s ago and has not answered"


def test_a_lost_connection_gives_its_reason_and_the_next_attempt() -> None:
    script = Explained()
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    opening = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(opening.request_id))
    script.advance(1)
    script.lose(link, "reset by peer")
    text = script.text
    assert text.startswith("not connected for 0.0 s: ")
    assert "reset by peer" in text
    assert "; next attempt in 0." in text
    assert "never" not in text


def test_a_producer_that_waits_for_exclusive_access_says_so() -> None:
    script = Explained(access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    opening = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(opening.request_id, ready=False))
    script.advance(5)
    assert script.text == (
        "waiting for exclusive access for 5.0 s: another producer has it (connected to broker:6650)"
    )


def test_a_refusal_is_the_reason() -> None:
    script = Explained()
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    opening = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(opening.request_id, proto.ServiceNotReady, "loading"))
    assert "never was: ServiceNotReady: loading" in script.text
    script.advance(1)
    script.find_topic(link)
    opening = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_error(opening.request_id, proto.AuthorizationError, "not yours"))
    assert script.text.startswith("failed: AuthorizationError: not yours")


def test_a_topic_that_moved_is_connected_to_anew() -> None:
    script = Explained()
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    opening = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(opening.request_id))
    script.feed(link, frame_close_producer())
    assert script.text.startswith("not connected for 0.0 s")


def test_a_producer_that_was_not_started_says_so() -> None:
    """The producer of a partition is opened when its first message comes (`lazy_start`)."""
    script = Script()
    producer = Producer(script.client._services, 1, 0, ProducerSpec(topic="demo"))
    assert route(producer.attachment, script.now) == "not started: nothing was sent to it"
    producer.attachment.start()
    assert "connecting to broker:6650" in route(producer.attachment, script.now)


def test_a_closed_producer_is_closed() -> None:
    script = Explained()
    script.client.close(script.now, script.producer)
    assert script.text == "closed"
