"""`ConsumerRequests`: an application's requests, and the explanation of a consumer that delivers nothing."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_sansio.client.outputs import RequestDone
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, WALL, ConsumerScript
from tests.client.consuming.consumer_script import SHARED, started

REQUESTS: dict[str, Callable[[Any], Any]] = {
    "pause": lambda consumer: consumer.pause(),
    "resume": lambda consumer: consumer.resume(),
    "redeliver": lambda consumer: consumer.redeliver_unacknowledged(),
    "flush": lambda consumer: consumer.flush_acknowledgements(9),
    "unsubscribe": lambda consumer: consumer.unsubscribe(9, False),
    "seek": lambda consumer: consumer.check_seek(EARLIEST),
    "last message": lambda consumer: consumer.check_last_message(),
    "checkpoint": lambda consumer: consumer.checkpoint(),
    "batch receive": lambda consumer: consumer.check_batch_receive(),
    "reconsume": lambda consumer: consumer.reconsume_later(9, cast(Any, None)),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_consumer_that_is_closing_takes_no_request(request_: Callable[[Any], Any]) -> None:
    script = started()
    machine = script.machine
    script.client.close(script.now, script.consumer)
    script.frames()
    with pytest.raises(ClosedError):
        request_(machine)
    assert script.frames() == []


def lines(script: ConsumerScript) -> list[str]:
    return script.machine.explain()


def test_a_consumer_that_waits_for_messages_is_explained() -> None:
    script = started(receiver_queue_size=10)
    assert lines(script) == [
        "connected to broker:6650 for 0.0 s",
        "10 permits are at the broker, for a queue of 10",
        "0 messages are in the receiver queue and wait for the application",
        "the application has received 0 messages; 0 acknowledgements were sent, one for a whole batch",
    ]


def test_what_waits_is_counted() -> None:
    script = started(
        subscription_type=SHARED, acknowledgement_group_time=3600.0, negative_acknowledgement_delay=60.0
    )
    for entry in range(4):
        script.message(entry)
    first, second = script.receive(), script.receive()
    script.acknowledge(first)
    script.client.negative_acknowledge(script.now, script.consumer, second)
    text = "\n".join(lines(script))
    assert "2 messages are in the receiver queue" in text
    assert "1 entries are negatively acknowledged, and asked for after their delay" in text
    assert "1 acknowledgements wait to be sent" in text
    assert "at most 1 messages are delivered and not acknowledged" in text


def test_an_inactive_consumer_and_the_end_of_the_topic_are_named() -> None:
    script = started(subscription_type=SubscriptionType.FAILOVER)
    script.say("ACTIVE_CONSUMER_CHANGE", proto.CommandActiveConsumerChange(consumer_id=0, is_active=False))
    assert "not the active consumer of this Failover subscription: another one is" in lines(script)
    script.say("ACTIVE_CONSUMER_CHANGE", proto.CommandActiveConsumerChange(consumer_id=0, is_active=True))
    assert "not the active consumer" not in "\n".join(lines(script))
    script.say("REACHED_END_OF_TOPIC", proto.CommandReachedEndOfTopic(consumer_id=0))
    assert lines(script)[-1].startswith("the topic is terminated and everything in it is acknowledged")


def test_a_seek_holds_messages_back() -> None:
    script = started()
    script.client.seek(script.now, script.consumer, EARLIEST)
    script.expect("SEEK")
    script.lose()
    script.pass_time(SECOND)
    assert "SUBSCRIBE" in [name for name, _ in script.frames()]
    assert lines(script)[0].startswith("not connected")


def test_a_paused_consumer_grants_nothing_until_it_resumes() -> None:
    """FLOW-06: while the consumer is paused no FLOW is sent. FLOW-07: `resume` grants what left the queue."""
    script = started(receiver_queue_size=2)
    script.client.pause(script.now, script.consumer)
    for entry in range(2):
        script.message(entry)
        script.receive()
    script.expect()
    assert "paused: it asks for no more messages until resume" in lines(script)
    script.client.resume(script.now, script.consumer)
    (flow,) = script.expect("FLOW")
    assert flow.message_permits == 2


@pytest.mark.parametrize(
    ("delay", "words"),
    [
        (1.0, "reconsume_later: only a consumer subscribed with retry=True can"),
        (None, "dead_letter: only a consumer subscribed with a DeadLetterPolicy or with retry=True can"),
    ],
)
def test_copies_need_a_consumer_that_makes_them(delay: float | None, words: str) -> None:
    script = started(subscription_type=SHARED)
    script.message(0)
    message = script.receive()
    with pytest.raises(LocalProtocolError, match=words):
        if delay is None:
            script.client.dead_letter(script.now, script.consumer, message, WALL)
        else:
            script.client.reconsume_later(script.now, script.consumer, message, delay, WALL)


def test_a_cancelled_request_is_carried_out_without_an_answer() -> None:
    script = started()
    request = script.client.unsubscribe(script.now, script.consumer)
    script.client.abandon(script.now, request)
    (command,) = script.expect("UNSUBSCRIBE")
    script.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
    assert not [output for output in script.outputs() if isinstance(output, RequestDone)]
