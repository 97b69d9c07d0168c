"""`ConsumerRequests`: an application's requests, and the explanation of a consumer that delivers nothing."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import BatchReceivePolicy, DeadLetterPolicy, SubscriptionType
from pulsar_sansio.model.errors import ClosedError, ConnectionLost, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId, TopicMessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, WALL, ConsumerScript
from tests.client.consuming.consumer_script import SHARED, started
from tests.client.letter_topics.letters_script import LettersScript
from tests.client.positions.positions_script import answer, asked

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


def test_a_consumer_without_its_position_says_so_while_it_is_connected() -> None:
    script = ConsumerScript(durable=False, start_message_id=LATEST)
    script.answers_positions = False
    unknown = "it is being moved to its position; no message comes before that"
    assert unknown not in lines(script), "there is no connection"
    script.accept()
    request = asked(script)
    assert unknown in lines(script)
    answer(script, request, (7, 3, -1))
    assert unknown not in lines(script)


def test_copies_on_their_way_are_counted() -> None:
    script = started(subscription_type=SHARED, dead_letter=DeadLetterPolicy(1))
    script.message(0, redelivery_count=2)
    assert "1 entries wait until their copies are safe in the dead-letter topic" in lines(script)


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
    ("cumulative", "ack_type"), [(False, proto.CommandAck.Individual), (True, proto.CommandAck.Cumulative)]
)
def test_the_message_is_acknowledged_when_its_copy_is_stored(cumulative: bool, ack_type: int) -> None:
    script = LettersScript(SubscriptionType.EXCLUSIVE, retry=True)
    for entry in range(2):
        script.message(entry)
    request = script.later(script.take()[1], 1.0, cumulative=cumulative)
    script.accept_producer()
    script.sends()
    script.outputs()
    assert script.frames() == [], "nothing is acknowledged before"
    script.confirm(0)
    (ack,) = script.expect("ACK")
    assert (ack.ack_type, ack.message_ids) == (ack_type, [(1, 1, None)])
    assert script.outputs() == [RequestDone(request, None)]


@pytest.mark.parametrize(
    ("kind", "cumulative", "redelivered"), [(SHARED, False, [1]), (SubscriptionType.EXCLUSIVE, True, [])]
)
def test_the_message_is_requested_again_when_its_copy_failed(
    kind: SubscriptionType, cumulative: bool, redelivered: list[int]
) -> None:
    """A request to redeliver everything names no message."""
    script = LettersScript(kind, retry=True)
    for entry in range(2):
        script.message(entry)
    request = script.later(script.take()[1], 1.0, cumulative=cumulative)
    script.outputs()
    script.refuse_producer()
    (failed,) = script.outputs()
    assert isinstance(failed, RequestFailed)
    assert failed.request == request
    script.pass_time(2 * SECOND)
    (again,) = script.expect("REDELIVER_UNACKNOWLEDGED_MESSAGES")
    assert [each.entryId for each in again.message_ids] == redelivered


@pytest.mark.parametrize("batched", [False, True])
def test_a_message_that_is_reconsumed_later_is_no_longer_negatively_acknowledged(batched: bool) -> None:
    """The other messages of its batch are."""
    script = LettersScript(retry=True)
    if batched:
        script.batch(0, 2)
    else:
        script.message(0)
    messages = script.take()
    for message in messages:
        script.negative_acknowledge(message)
    script.later(messages[0], 9.0)
    script.accept_producer()
    script.frames()
    script.pass_time(2 * SECOND)
    script.expect(*["REDELIVER_UNACKNOWLEDGED_MESSAGES"] * batched)


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


def test_processing_is_what_the_driver_makes_of_the_message() -> None:
    script = started()
    script.client.set_processing(script.consumer, lambda message: cast(Any, ("block", message.data)))
    script.message(0)
    assert cast(Any, script.receive().processing()) == ("block", b"m")


def test_a_checkpoint_is_the_id_before_the_next_message() -> None:
    script = started(durable=False)
    script.message(3)
    script.message(4)
    message = script.receive()
    assert script.client.checkpoint(script.consumer) == {"persistent://public/default/t": message.message_id}


@pytest.mark.parametrize(
    "target", [MessageId(1, 2), TopicMessageId("persistent://public/default/t", MessageId(1, 2))]
)
def test_a_seek_takes_an_id_of_the_topic(target: MessageId | TopicMessageId) -> None:
    script = started()
    script.client.seek(script.now, script.consumer, target)
    (command,) = script.expect("SEEK")
    assert (command.message_id.ledgerId, command.message_id.entryId) == (1, 2)


def test_a_seek_to_an_id_of_another_topic_is_refused() -> None:
    script = started()
    other = TopicMessageId("persistent://public/default/other", MessageId(1, 2))
    with pytest.raises(LocalProtocolError, match="public/default/other"):
        script.client.seek(script.now, script.consumer, other)
    assert script.frames() == []


def test_a_topic_that_turns_out_to_have_partitions_fails_positions_and_keeps_batch_receives() -> None:
    """The partitions have to answer questions about positions; batch receives go on with them."""
    script = started(batch_receive=BatchReceivePolicy(max_messages=5))
    batch = script.client.batch_receive(script.now, script.consumer)
    question = script.client.last_message_id(script.now, script.consumer)
    assert script.machine.hand_over() == [batch]
    (failed,) = script.outputs()
    assert isinstance(failed, RequestFailed)
    assert (failed.request, type(failed.error)) == (question, ConnectionLost)
    assert "was found to have partitions" in str(failed.error)


def test_without_a_policy_there_is_no_batch_receive_to_keep() -> None:
    assert started().machine.hand_over() == []


def test_unsubscribing_names_the_cause_of_the_lost_connection() -> None:
    """CONS-45: UNSUBSCRIBE needs a connection; the request fails at once without one."""
    script = started()
    script.lose("cut")
    script.outputs()
    request = script.client.unsubscribe(script.now, script.consumer)
    (failed,) = script.outputs()
    assert isinstance(failed, RequestFailed)
    assert (failed.request, type(failed.error)) == (request, ConnectionLost)
    assert "cut" in str(failed.error.__cause__)
    script.pass_time(SECOND)
    script.accept()
    script.message(0)
    assert script.receive() is not None, "the consumer goes on"


def test_each_request_that_is_cancelled_has_no_answer_at_the_end() -> None:
    script = started(batch_receive=BatchReceivePolicy(max_messages=5))
    script.message(0)
    script.acknowledge(script.receive())
    script.outputs()
    script.lose()
    requests = [
        script.client.batch_receive(script.now, script.consumer),
        script.client.last_message_id(script.now, script.consumer),
        script.client.seek(script.now, script.consumer, EARLIEST),
        script.client.flush_acknowledgements(script.now, script.consumer),
    ]
    for request in requests:
        script.client.abandon(script.now, request)
    script.client.close(script.now, script.consumer)
    answered = [output for output in script.outputs() if isinstance(output, RequestDone | RequestFailed)]
    assert not [output for output in answered if output.request in requests]
