"""`PositionRequests`: each question has one outcome, unless it is cancelled."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import Closed, RequestDone, RequestFailed
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.client.broker_script import ConsumerScript


def asking() -> ConsumerScript:
    script = ConsumerScript()
    script.accept()
    script.frames()
    script.outputs()
    script.answers_positions = False
    return script


def answer(script: ConsumerScript, request_id: int, ledger: int = 3, entry: int = 4) -> None:
    response = proto.CommandGetLastMessageIdResponse(request_id=request_id)
    response.last_message_id.ledgerId = ledger
    response.last_message_id.entryId = entry
    response.last_message_id.partition = -1
    script.say("GET_LAST_MESSAGE_ID_RESPONSE", response)


def ask(script: ConsumerScript) -> int:
    return script.client.last_message_id(script.now, script.consumer)


def test_each_question_has_its_own_answer() -> None:
    script = asking()
    first, second = ask(script), ask(script)
    commands = script.expect("GET_LAST_MESSAGE_ID", "GET_LAST_MESSAGE_ID")
    answer(script, commands[1].request_id, 3, 9)
    answer(script, commands[0].request_id, 3, 4)
    answer(script, commands[0].request_id, 3, 5)
    done: list[Any] = script.outputs()
    assert [(output.request, output.result[:2]) for output in done] == [(second, (3, 9)), (first, (3, 4))]


def test_a_cancelled_question_has_no_outcome() -> None:
    script = asking()
    first, second = ask(script), ask(script)
    script.client.abandon(script.now, first)
    for command in script.expect("GET_LAST_MESSAGE_ID", "GET_LAST_MESSAGE_ID"):
        answer(script, command.request_id)
    (done,) = script.outputs()
    assert isinstance(done, RequestDone)
    assert done.request == second


def test_a_question_is_asked_again_over_the_next_connection() -> None:
    script = asking()
    request = ask(script)
    script.expect("GET_LAST_MESSAGE_ID")
    script.reconnect()
    commands = [command for name, command in script.frames() if name == "GET_LAST_MESSAGE_ID"]
    answer(script, commands[-1].request_id)
    done = [output for output in script.outputs() if isinstance(output, RequestDone)]
    assert [output.request for output in done] == [request]


@pytest.mark.parametrize("how", ["refused", "closed"])
def test_a_question_fails_once_with_its_cause(how: str) -> None:
    script = asking()
    request = ask(script)
    (command,) = script.expect("GET_LAST_MESSAGE_ID")
    if how == "refused":
        script.say(
            "ERROR", proto.CommandError(request_id=command.request_id, error="MetadataError", message="no")
        )
        (failed,) = script.outputs()
    else:
        script.client.close(script.now, script.consumer)
        (close,) = script.expect("CLOSE_CONSUMER")
        script.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        failed = script.outputs()[0]
        answer(script, command.request_id)
    assert isinstance(failed, RequestFailed)
    assert failed.request == request
    assert isinstance(failed.error, ClosedError) == (how == "closed")
    assert not [output for output in script.outputs() if not isinstance(output, Closed | RequestDone)]


def test_the_answer_of_an_empty_topic_has_no_entry() -> None:
    script = asking()
    request = ask(script)
    (command,) = script.expect("GET_LAST_MESSAGE_ID")
    answer(script, command.request_id, 2**64 - 1, 2**64 - 1)
    (done,) = script.outputs()
    assert isinstance(done, RequestDone)
    assert done.request == request
    assert isinstance(done.result, MessageId)
    assert done.result.entry_id == -1
