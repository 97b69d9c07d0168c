"""Batch receive: as many as a policy calls enough."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import BatchReceivePolicy, SubscriptionType
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import proto
from tests.client.broker_script import SECOND, ConsumerScript


def started(max_messages: int | None = None, **options: Any) -> ConsumerScript:
    spec = {name: options.pop(name) for name in list(options) if name not in ("max_bytes", "timeout")}
    policy = BatchReceivePolicy(max_messages, options.pop("max_bytes", None), options.pop("timeout", 1.0))
    script = ConsumerScript(batch_receive=policy, **spec)
    script.accept()
    script.outputs()
    return script


def ask(s: ConsumerScript) -> int:
    request = s.client.batch_receive(s.now, s.consumer)
    s.pump()
    return request


def told(s: ConsumerScript) -> list[int]:
    return [output.request for output in s.outputs() if isinstance(output, RequestDone)]


def test_so_many_messages_are_enough() -> None:
    """Rule CONS-41."""
    s = started(3)
    request = ask(s)
    s.message(0)
    s.message(1)
    assert told(s) == []
    s.message(2)
    s.message(3)
    assert told(s) == [request]
    assert len(s.take()) == 3
    assert len(s.take()) == 1


def test_they_may_be_there_already() -> None:
    s = started(3)
    s.batch(0, 7)
    for size in (3, 3):
        assert told(s) == []
        request = ask(s)
        assert told(s) == [request]
        assert len(s.take()) == size
    ask(s)
    assert told(s) == []


def test_so_many_bytes_are_enough() -> None:
    s = started(max_bytes=10)
    request = ask(s)
    for entry in range(3):
        s.message(entry, b"1234")
        assert told(s) == ([request] if entry == 2 else [])
    assert [len(message.data) for message in s.take()] == [4, 4]
    s.message(3, b"x" * 50)
    assert len(s.take()) == 1
    assert len(s.take()) == 1  # larger than the policy allows, but it must be taken


def test_a_batch_is_taken_in_parts() -> None:
    s = started(max_bytes=9)
    s.batch(0, 5)  # three bytes each
    sizes = []
    while messages := s.take():
        sizes.append(len(messages))
    assert sizes == [3, 2]


def test_when_time_is_up_what_there_is_is_enough() -> None:
    """Rule TIMER-15."""
    s = started(100, timeout=0.5)
    request = ask(s)
    s.message(0)
    s.pass_time(SECOND // 2 - 1)
    assert told(s) == []
    s.pass_time(1)
    assert told(s) == [request]
    assert len(s.take()) == 1


def test_and_if_there_is_nothing_the_first_message_is() -> None:
    s = started(100, timeout=0.5)
    request = ask(s)
    s.pass_time(SECOND)
    assert told(s) == []
    s.message(0)
    assert told(s) == [request]


def test_without_a_time_it_waits_for_ever() -> None:
    s = started(2, timeout=0.0)
    request = ask(s)
    s.message(0)
    s.pass_time(25 * SECOND)
    assert told(s) == []
    s.message(1)
    assert told(s) == [request]


def test_what_the_queue_has_room_for_is_enough() -> None:
    s = started(100, timeout=0.0, receiver_queue_size=4)
    request = ask(s)
    for entry in range(4):
        assert told(s) == []
        s.message(entry)
    assert told(s) == [request]
    assert len(s.take()) == 4


def test_requests_are_answered_in_turn() -> None:
    s = started(2)
    first, second, third = ask(s), ask(s), ask(s)
    for entry in range(5):
        s.message(entry)
    assert told(s) == [first]
    s.take()
    assert told(s) == [second]
    s.client.abandon(s.now, second)
    assert told(s) == [third]
    s.take()
    assert told(s) == []


def test_each_has_a_time_of_its_own() -> None:
    s = started(10, timeout=1.0)
    first = ask(s)
    s.pass_time(SECOND // 2)
    second = ask(s)
    s.message(0)
    s.pass_time(SECOND // 2)
    assert told(s) == [first]
    s.take()
    s.message(1)
    assert told(s) == []
    s.pass_time(SECOND // 2)
    assert told(s) == [second]


def test_a_cancelled_request_is_not_answered_and_nothing_is_lost() -> None:
    s = started(2)
    s.client.abandon(s.now, ask(s))
    s.message(0)
    s.message(1)
    assert told(s) == []
    assert len(s.take()) == 2


def test_what_is_taken_back_is_not_there() -> None:
    s = started(2, subscription_type=SubscriptionType.SHARED)
    request = ask(s)
    s.message(0)
    s.redeliver()
    s.message(1)
    assert told(s) == []
    s.message(2)
    assert told(s) == [request]


def test_the_end() -> None:
    s = started(2)
    request = ask(s)
    s.frames()
    s.close()
    (command,) = s.expect("CLOSE_CONSUMER")
    s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
    (failed,) = [output for output in s.outputs() if isinstance(output, RequestFailed)]
    assert failed.request == request
    assert isinstance(failed.error, ClosedError)


def test_a_request_that_waits_at_the_end_of_the_topic_is_answered() -> None:
    s = started(2)
    requests = [ask(s), ask(s)]
    s.say("REACHED_END_OF_TOPIC", proto.CommandReachedEndOfTopic(consumer_id=0))
    assert told(s) == requests
    assert ask(s) in told(s)
    assert not s.take()


def test_it_takes_a_policy() -> None:
    s = ConsumerScript()
    s.accept()
    with pytest.raises(LocalProtocolError, match="batch_receive"):
        s.client.batch_receive(s.now, s.consumer)
    s.close()
    with pytest.raises(ClosedError):
        s.client.batch_receive(s.now, s.consumer)


def test_a_queue_that_scales_has_room_for_what_is_collected() -> None:
    s = ConsumerScript(
        batch_receive=BatchReceivePolicy(5), auto_scaled_receiver_queue_size=True, receiver_queue_size=100
    )
    s.accept()
    (flow,) = s.expect("FLOW")
    assert flow.message_permits == 8
    request = ask(s)
    for entry in range(5):
        s.message(entry)
    assert told(s) == [request]
    assert len(s.take()) == 5


@pytest.mark.parametrize("why", ["seek", "cut"])
def test_the_end_of_the_topic_counts_as_long_as_it_is_reached(why: str) -> None:
    """An application that asks afterwards would otherwise be told again and again that nothing is enough."""
    s = started(2, timeout=0.0)
    s.say("REACHED_END_OF_TOPIC", proto.CommandReachedEndOfTopic(consumer_id=0))
    if why == "cut":
        s.reconnect()
    else:
        s.client.seek(s.now, s.consumer, EARLIEST)
        s.pump()
        (command,) = [command for name, command in s.frames() if name == "SEEK"]
        s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
    s.outputs()
    request = ask(s)
    assert told(s) == []
    s.message(0)
    assert told(s) == []
    s.message(1)
    assert told(s) == [request]
