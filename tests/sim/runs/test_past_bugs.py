"""Bugs that the simulator found, each as the shortest conversation that shows it."""

from pulsar_sansio.client.outputs import ConsumerFailed, ProducerFailed, RequestDone
from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript, Script


def test_a_refused_cumulative_acknowledgement_can_be_repeated() -> None:
    """Otherwise the message stays in the backlog for as long as the connection lives."""
    script = ConsumerScript(acknowledgement_receipts=True, acknowledgement_group_time=0.0)
    script.accept()
    for _ in range(2):
        script.message(5)
        script.frames()
        message = script.client.receive(script.now, script.consumer)
        assert message is not None
        script.client.acknowledge_cumulative(script.now, script.consumer, message)
        (ack,) = [command for name, command in script.frames() if name == "ACK"]
        script.say(
            "ACK_RESPONSE",
            proto.CommandAckResponse(
                consumer_id=0, request_id=ack.request_id, error=proto.UnknownError, message="not now"
            ),
        )


def test_opening_a_producer_or_consumer_fails_when_the_client_is_closed() -> None:
    """One that was never ready was closed without a word."""
    script = Script()
    script.answers_lookups = False
    producer = script.client.open_producer(script.now, ProducerSpec(topic="t"))
    consumer = script.client.subscribe(script.now, ConsumerSpec(topic="t", subscription="s"))
    script.frames()
    request = script.client.close(script.now, None)
    script.pass_time(40 * SECOND)
    told = [
        each for each in script.outputs() if isinstance(each, (ProducerFailed, ConsumerFailed, RequestDone))
    ]
    failed, refused, done = told
    assert isinstance(failed, ProducerFailed)
    assert (failed.producer, type(failed.error)) == (producer, ClosedError)
    assert isinstance(refused, ConsumerFailed)
    assert (refused.consumer, type(refused.error)) == (consumer, ClosedError)
    assert done == RequestDone(request, None)
