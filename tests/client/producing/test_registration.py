"""`Registration`: what a producer repeats with every PRODUCER."""

import pytest

from pulsar_sansio.client.outputs import Disconnect
from pulsar_sansio.model.config import ProducerAccessMode, ProducerSpec
from pulsar_sansio.wire import proto
from tests.client.script import Command, Script, frame_producer_success


def first_attempt(**options: object) -> tuple[Script, int, proto.CommandProducer]:
    """Open a producer up to its first PRODUCER."""
    script = Script()
    spec: dict[str, object] = {"topic": "demo", **options}
    script.client.open_producer(script.now, ProducerSpec(**spec))  # type: ignore[arg-type]
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    return script, link, script.sent(link, Command.PRODUCER)


def next_attempt(script: Script, link: int) -> proto.CommandProducer:
    """Lose the connection; return the next PRODUCER."""
    script.lose(link)
    script.said()
    script.advance(1)
    again = script.ready_link()
    script.find_topic(again)
    asked: proto.CommandProducer = script.sent(again, Command.PRODUCER)
    return asked


def test_the_name_of_the_broker_is_kept_and_the_epoch_grows() -> None:
    """WIRE-06: the epoch grows with every attempt."""
    script, link, asked = first_attempt()
    assert (asked.epoch, asked.HasField("producer_name")) == (0, False)
    assert not asked.user_provided_producer_name
    script.feed(link, frame_producer_success(asked.request_id, "standalone-0-1"))
    again = next_attempt(script, link)
    assert (again.epoch, again.producer_name) == (1, "standalone-0-1")
    assert not again.user_provided_producer_name


def test_a_name_of_the_application_is_marked_as_such() -> None:
    _, _, asked = first_attempt(name="mine")
    assert (asked.producer_name, asked.user_provided_producer_name) == ("mine", True)


@pytest.mark.parametrize(
    ("mode", "wire"),
    [
        (ProducerAccessMode.SHARED, proto.Shared),
        (ProducerAccessMode.EXCLUSIVE, proto.Exclusive),
        (ProducerAccessMode.WAIT_FOR_EXCLUSIVE, proto.WaitForExclusive),
        (ProducerAccessMode.EXCLUSIVE_WITH_FENCING, proto.ExclusiveWithFencing),
    ],
)
def test_the_access_mode_is_sent(mode: ProducerAccessMode, wire: int) -> None:
    _, _, asked = first_attempt(access_mode=mode)
    assert asked.producer_access_mode == wire


def test_the_topic_epoch_of_the_reply_is_repeated() -> None:
    """A broker refuses an old epoch: another producer had exclusive access since."""
    script, link, asked = first_attempt(access_mode=ProducerAccessMode.EXCLUSIVE)
    assert not asked.HasField("topic_epoch")
    script.feed(link, frame_producer_success(asked.request_id, topic_epoch=4))
    assert next_attempt(script, link).topic_epoch == 4


def test_the_name_that_a_waiting_producer_gets_is_final() -> None:
    script, link, asked = first_attempt(access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
    script.feed(link, frame_producer_success(asked.request_id, "waiting-1", ready=False))
    assert next_attempt(script, link).producer_name == "waiting-1"


def test_a_producer_that_did_not_ask_to_wait_is_not_made_to() -> None:
    script, link, asked = first_attempt()
    script.feed(link, frame_producer_success(asked.request_id, ready=False))
    assert "that does not wait for it" in script.expect_one(Disconnect).reason


def test_properties_and_the_initial_subscription_are_sent() -> None:
    _, _, asked = first_attempt(properties={"a": "1", "b": "2"}, initial_subscription="first")
    assert [(each.key, each.value) for each in asked.metadata] == [("a", "1"), ("b", "2")]
    assert asked.initial_subscription_name == "first"
    _, _, plain = first_attempt()
    assert not plain.HasField("initial_subscription_name")
    assert not plain.metadata
